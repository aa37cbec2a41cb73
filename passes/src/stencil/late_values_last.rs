//! `late-values-last`: a function that reads values of its own sweep combines the newest of them
//! last.
//!
//! A strip's lanes wait for the value of the row above at each time. What stands between this value
//! and the row's own result is on the critical path of the whole sweep. Integer sums, minima and
//! maxima have the same value in any order, so everything older can be combined before. A processor
//! computes row by row: there the newest value is that of the left neighbour.
//!
//! Needs: a stencil program. Guarantees: every function has the same values bit for bit. In two
//! dimensions, the operands of a chain of one associative and commutative operation are ordered by
//! the time at which the values of the sweep in them are computed. Other functions stay as they
//! are, and so do floating-point sums and products.
//!
//! ```text
//! %5 = arith.subi %up, %c1                // of [-1, 0]: one time ago, and a row above
//! %6 = arith.subi %left, %c1              // of [0, -1]: one time ago
//! %7 = arith.maxsi %5, %6
//! %8 = arith.maxsi %diagonal, %7
//! ```
//! becomes
//! ```text
//! %7 = arith.maxsi %diagonal, %6          // of [-1, -1]: two times ago
//! %8 = arith.maxsi %7, %5
//! ```

use crate::analysis::wavefront::Wavefront;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::target::Target;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Named};
use stencil_dialects::error::Error;
use stencil_dialects::fast_math::FastMath;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument, Program};

/// Times between rows that are computed one after the other: more than any read reaches.
const BY_ROWS: i64 = 1 << 32;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "late-values-last",
    summary: "combine the newest values of a function's own sweep last",
    options: &[],
    read: |_: &Options| Ok(Box::new(LateValuesLast)),
};

/// The pass.
pub struct LateValuesLast;

impl Pass for LateValuesLast {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Program::read(module)?.sweeps()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        // A processor's thread computes row by row.
        let by_rows = Target::of(module)?.processor.map(|_| BY_ROWS);
        for apply in &program.applies {
            let dependences = program.dependences(&apply.pieces)?;
            if dependences.first().is_none_or(|vector| vector.len() != 2) {
                continue;
            }
            let Some(front) = Wavefront::of(&dependences, 2) else { continue };
            let skew = by_rows.or_else(|| front.skew.times.first().copied()).unwrap_or(0);
            for piece in &apply.pieces {
                order(context, stencil::function(module, piece.function)?, skew)?;
            }
        }
        Ok(())
    }
}

/// When a value is known: times before the point's own, negative, then whether it comes from a row
/// above. None of the same sweep is known before all of them.
type Known = Option<(i64, bool)>;

/// Orders the operands of a function whose rows follow each other by some times.
fn order<'c>(context: &'c Context, function: Op<'c>, skew: i64) -> Result<(), Error> {
    let mut known: BTreeMap<usize, Known> = BTreeMap::new();
    for (argument, value) in stencil::arguments_with_values(function)? {
        if let Argument::Current { offset, .. } = argument
            && let [row, column] = *offset.as_slice()
        {
            known.insert(mlir::key(value), Some((column + skew * row, row < 0)));
        }
    }
    if known.is_empty() {
        return Ok(());
    }
    let all = mlir::walk(function);
    let mut users: BTreeMap<usize, Vec<Op>> = BTreeMap::new();
    for op in &all {
        for operand in mlir::operands(*op) {
            users.entry(mlir::key(operand)).or_default().push(*op);
        }
    }
    let mut makers: BTreeMap<usize, Op> = BTreeMap::new();
    for op in all.iter().copied() {
        let results = mlir::results(op);
        if results.is_empty() {
            continue;
        }
        // What a region computes is known no sooner than what it takes from outside.
        let operands = mlir::walk(op).into_iter().flat_map(mlir::operands);
        let last = operands.filter_map(|operand| known.get(&mlir::key(operand)).copied()).max();
        for result in results {
            known.insert(mlir::key(result), last.flatten());
            makers.insert(mlir::key(result), op);
        }
    }
    let chains = Chains { makers, users };
    let builder = Builder::new(context, function.location(), stencil::function_body(function)?);
    for op in all {
        let Some(name) = associative(op) else { continue };
        let leaves = chains.leaves(op);
        let mut ordered = leaves.clone();
        let key = |leaf: &Val<'c>| known.get(&mlir::key(*leaf)).copied().flatten();
        ordered.sort_by_key(key);
        if chains.joins_its_user(op) || leaves.len() < 3 || chains.combines(op, &ordered) {
            continue;
        }
        let here = Builder { location: op.location(), ..builder };
        if let Some(new) = rebuild(&here, (op, name), &ordered)? {
            let last = ordered.last().and_then(key);
            known.insert(mlir::key(new), last);
        }
    }
    Ok(())
}

/// Replaces a chain by one that combines values in an order; its value.
fn rebuild<'c>(
    builder: &Builder<'c>,
    (op, name): (Op<'c>, &str),
    ordered: &[Val<'c>],
) -> Result<Option<Val<'c>>, Error> {
    let flags: Vec<Named> = match name.ends_with('f') {
        true => vec![FastMath::of(op).attribute(builder.context)?],
        false => Vec::new(),
    };
    let mut ordered = ordered.iter().copied();
    let (Some(mut all), Some(result)) = (ordered.next(), mlir::results(op).first().copied()) else {
        return Ok(None);
    };
    for leaf in ordered {
        let next = builder.op(name, &[all, leaf], &[leaf.r#type()], &flags)?;
        mlir::move_before(next, op);
        all = mlir::results(next).first().copied().unwrap_or(all);
    }
    mlir::replace_uses(result, all);
    Ok(Some(all))
}

/// Who makes and who uses the values of a function.
struct Chains<'c> {
    makers: BTreeMap<usize, Op<'c>>,
    users: BTreeMap<usize, Vec<Op<'c>>>,
}

impl<'c> Chains<'c> {
    /// The values that an operation and those like it before it combine.
    fn leaves(&self, op: Op<'c>) -> Vec<Val<'c>> {
        let (mut leaves, mut rest) = (Vec::new(), mlir::operands(op));
        rest.reverse();
        while let Some(value) = rest.pop() {
            match self.makers.get(&mlir::key(value)).filter(|maker| self.joins(**maker, op)) {
                Some(maker) => rest.extend(mlir::operands(*maker).into_iter().rev()),
                None => leaves.push(value),
            }
        }
        leaves
    }

    /// Whether an operation combines values in this order, one after the other.
    fn combines(&self, op: Op<'c>, ordered: &[Val<'c>]) -> bool {
        let (&[before, last], Some((own_last, rest))) =
            (mlir::operands(op).as_slice(), ordered.split_last())
        else {
            return false;
        };
        let maker = || self.makers.get(&mlir::key(before)).filter(|maker| self.joins(**maker, op));
        last == *own_last
            && match rest {
                [first] => before == *first,
                _ => maker().is_some_and(|maker| self.combines(*maker, rest)),
            }
    }

    /// Whether an operation is a part of the chain of its only user.
    fn joins_its_user(&self, op: Op<'c>) -> bool {
        let results = mlir::results(op);
        let users = results.first().and_then(|result| self.users.get(&mlir::key(*result)));
        matches!(users.map(Vec::as_slice), Some([user]) if self.joins(op, *user))
    }

    /// Whether an operation has no other user and is of the same kind.
    fn joins(&self, op: Op<'c>, user: Op<'c>) -> bool {
        let single = |value: &Val<'c>| {
            self.users.get(&mlir::key(*value)).is_some_and(|users| users.len() == 1)
        };
        let (kind, of_user) = (associative(op), associative(user));
        kind.is_some()
            && kind == of_user
            && mlir::results(op).first().is_some_and(single)
            && (kind.is_some_and(|name| !name.ends_with('f'))
                || FastMath::of(op) == FastMath::of(user))
    }
}

/// The name of an operation that gives the same bits in any order.
fn associative(op: Op<'_>) -> Option<&'static str> {
    const NAMES: [&str; 12] = [
        "arith.addi",
        "arith.andi",
        "arith.ori",
        "arith.xori",
        "arith.maxsi",
        "arith.minsi",
        "arith.maxui",
        "arith.minui",
        "arith.maxnumf",
        "arith.minnumf",
        "arith.maximumf",
        "arith.minimumf",
    ];
    let name = NAMES.into_iter().find(|name| *name == mlir::name(op))?;
    // A flag may hold in one order and not in another.
    let flags = mlir::attribute(op, "overflowFlags").map(|flags| flags.to_string());
    flags.is_none_or(|flags| flags == "#arith.overflow<none>").then_some(name)
}
