//! `relax-arithmetic`: uses the freedom that fast-math flags give, where it saves work.
//!
//! Afterwards the order of a sum is final: code generators that re-associate look at one cell, and
//! an order that suits one can cost registers for all that a lane holds.
//!
//! Needs: a stencil program. Guarantees: operations without fast-math flags stay as they are; of
//! those with the permission
//! - a division by a constant is a product with its reciprocal;
//! - a constant times a sum of products with constants is a sum of products with other constants,
//!   so that a weighted mean costs one fused multiply-add a term;
//! - quotients by one divisor are products with its reciprocal;
//! - a quotient by a square root that nothing else uses is a product with `math.rsqrt`;
//! - a sum over a box adds its terms plane by plane, so that `split-sums` can cut it;
//! - another sum in two dimensions that reaches two cells or more along its own row adds those
//!   cells last: in streams of rows they come from other lanes, and all of them just before they
//!   are used;
//! - no operation may be re-associated any more.
//!
//! ```text
//! %s = arith.addf %p, %q fastmath<fast>            // p = 5.1 a, q = 15 b
//! %r = arith.divf %s, %c118 fastmath<fast>
//! ```
//! becomes
//! ```text
//! %s = arith.addf %p, %q fastmath<...,contract,afn>  // p = (5.1 / 118) a, q = (15 / 118) b
//! ```

use crate::analysis::partial_sums::Planes;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::attribute::FloatAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, Type, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Named};
use stencil_dialects::error::Error;
use stencil_dialects::fast_math::FastMath;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument, Program};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "relax-arithmetic",
    summary: "rewrite arithmetic of point functions as fast-math flags permit",
    options: &[],
    read: |_: &Options| Ok(Box::new(RelaxArithmetic)),
};

/// The pass.
pub struct RelaxArithmetic;

impl Pass for RelaxArithmetic {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let program = Program::read(module)?;
    let (flags, kept) = FastMath::FAST.without(FastMath::REASSOCIATE).attribute(context)?;
    for piece in program.applies.iter().flat_map(|apply| &apply.pieces) {
        let function = stencil::function(module, piece.function)?;
        let builder = Builder::new(context, function.location(), stencil::function_body(function)?);
        let mut body = Body::of(function);
        for op in mlir::walk(function).into_iter().filter(|op| is_fast(*op)) {
            let here = Builder { location: op.location(), ..builder };
            // What replaces the operation; looked for in the function as it now is.
            let new = match (mlir::name(op), mlir::operands(op).as_slice()) {
                ("arith.divf", &[value, divisor]) => match body.constant(divisor) {
                    Some(divisor) => body.scaled(&here, op, value, 1.0 / divisor)?,
                    None => body.over_root(&here, op, value, divisor)?,
                },
                ("arith.mulf", &[left, right]) => match (body.constant(left), body.constant(right))
                {
                    (None, Some(factor)) => body.scaled(&here, op, left, factor)?,
                    (Some(factor), None) => body.scaled(&here, op, right, factor)?,
                    _ => None,
                },
                _ => None,
            };
            if let (Some(new), [result]) = (new, mlir::results(op).as_slice()) {
                body.replace(op, *result, new);
            }
        }
        body.share_reciprocals(&builder, function)?;
        let (planes, late) = match is_box(function)? {
            true => (Some(Planes::of(function)?), BTreeSet::new()),
            false => (None, late(function)?),
        };
        if planes.is_some() || !late.is_empty() {
            let body = Body::of(function);
            let place = |term: Val<'c>| match &planes {
                Some(planes) => planes.of_value(term).unwrap_or(i64::MIN),
                None => i64::from(body.is_late(term, &late)),
            };
            for op in mlir::walk(function).into_iter().filter(|op| mlir::name(*op) == "arith.addf")
            {
                body.order(&Builder { location: op.location(), ..builder }, op, &place)?;
            }
        }
        for op in mlir::walk(function).into_iter().filter(|op| is_fast(*op)) {
            mlir::set_attribute(op, flags, kept);
        }
    }
    Ok(())
}

fn is_fast(op: Op) -> bool {
    FastMath::of(op).is_fast()
}

/// Who makes and who uses the values of a function.
struct Body<'c> {
    makers: BTreeMap<usize, Op<'c>>,
    uses: BTreeMap<usize, usize>,
    /// The last user of each value.
    users: BTreeMap<usize, Op<'c>>,
}

impl<'c> Body<'c> {
    fn of(function: Op<'c>) -> Self {
        let mut body =
            Self { makers: BTreeMap::new(), uses: BTreeMap::new(), users: BTreeMap::new() };
        mlir::walk(function).into_iter().for_each(|op| body.note(op));
        body
    }

    /// Takes an operation up.
    fn note(&mut self, op: Op<'c>) {
        self.makers.extend(mlir::results(op).into_iter().map(|result| (mlir::key(result), op)));
        for operand in mlir::operands(op) {
            *self.uses.entry(mlir::key(operand)).or_insert(0) += 1;
            self.users.insert(mlir::key(operand), op);
        }
    }

    /// Takes a new operation up; its value.
    fn made(&mut self, op: Op<'c>) -> Result<Val<'c>, Error> {
        self.note(op);
        value(op)
    }

    /// An operand is used once less.
    fn unused(&mut self, operand: Val<'c>) {
        if let Some(uses) = self.uses.get_mut(&mlir::key(operand)) {
            *uses -= 1;
        }
    }

    /// Replaces an operation's value by another and removes the operation.
    fn replace(&mut self, op: Op<'c>, result: Val<'c>, new: Val<'c>) {
        mlir::operands(op).into_iter().for_each(|operand| self.unused(operand));
        self.makers.remove(&mlir::key(result));
        let uses = self.uses.remove(&mlir::key(result)).unwrap_or(0);
        *self.uses.entry(mlir::key(new)).or_insert(0) += uses;
        mlir::replace_uses(result, new);
        mlir::erase(op);
    }

    fn maker(&self, value: Val<'c>) -> Option<Op<'c>> {
        self.makers.get(&mlir::key(value)).copied()
    }

    /// The value of a constant.
    fn constant(&self, value: Val<'c>) -> Option<f64> {
        let op = self.maker(value).filter(|op| mlir::name(*op) == "arith.constant")?;
        mlir::attribute(op, "value").and_then(attribute::as_float)
    }

    /// The operation that makes a value for a single user with every permission.
    fn only(&self, value: Val<'c>) -> Option<Op<'c>> {
        let op = self.maker(value)?;
        (self.is_single(value) && is_fast(op)).then_some(op)
    }

    fn is_single(&self, value: Val<'c>) -> bool {
        self.uses.get(&mlir::key(value)) == Some(&1)
    }

    /// A value times a constant, in place of `op`: none where `op` is that already.
    fn scaled(
        &mut self,
        builder: &Builder<'c>,
        op: Op<'c>,
        value: Val<'c>,
        factor: f64,
    ) -> Result<Option<Val<'c>>, Error> {
        let ty = value.r#type();
        let normal = |number: f64| match mlir::bit_width(ty) {
            // The smallest normal number and the largest of half precision.
            Some(16) => (6.103_515_625e-5..=65504.0).contains(&number.abs()),
            Some(32) => (number as f32).is_normal(),
            _ => number.is_normal(),
        };
        let mut terms = Vec::new();
        let is_sum = self.products(value, &mut terms) && terms.len() > 1;
        if is_sum && terms.iter().all(|(.., weight)| normal(weight * factor)) {
            for (term, place, weight) in terms {
                let weight = self.made(constant(builder, term, ty, weight * factor)?)?;
                if let Some(old) = mlir::operands(term).get(place) {
                    self.unused(*old);
                }
                mlir::set_operand(term, place, weight);
                *self.uses.entry(mlir::key(weight)).or_insert(0) += 1;
            }
            return Ok(Some(value));
        }
        if mlir::name(op) != "arith.divf" || !normal(factor) {
            return Ok(None);
        }
        let factor = self.made(constant(builder, op, ty, factor)?)?;
        let product = insert(builder, op, "arith.mulf", &[value, factor], flags(builder, op)?)?;
        self.made(product).map(Some)
    }

    /// Makes quotients by one divisor products with its reciprocal.
    fn share_reciprocals(&mut self, builder: &Builder<'c>, function: Op<'c>) -> Result<(), Error> {
        let is_quotient = |op: &Op<'c>| mlir::name(*op) == "arith.divf" && is_fast(*op);
        let mut quotients: BTreeMap<usize, Vec<Op<'c>>> = BTreeMap::new();
        // Those of one block: the reciprocal stands before the first of them.
        let all = mlir::operations(stencil::function_body(function)?);
        for op in all.into_iter().filter(is_quotient) {
            let divisor = mlir::operands(op).get(1).map(|divisor| mlir::key(*divisor));
            quotients.entry(divisor.unwrap_or_default()).or_default().push(op);
        }
        for quotients in quotients.into_values().filter(|all| all.len() > 1) {
            let mut reciprocal = None;
            for op in quotients {
                let &[value, divisor] = mlir::operands(op).as_slice() else { continue };
                let (here, ty) = (Builder { location: op.location(), ..*builder }, value.r#type());
                let over = match reciprocal {
                    Some(over) => over,
                    None => {
                        let one = self.made(constant(&here, op, ty, 1.0)?)?;
                        let operands = [one, divisor];
                        let over = insert(&here, op, "arith.divf", &operands, flags(&here, op)?)?;
                        self.made(over)?
                    }
                };
                reciprocal = Some(over);
                let product = insert(&here, op, "arith.mulf", &[value, over], flags(&here, op)?)?;
                let (product, result) = (self.made(product)?, mlir::results(op));
                if let [result] = result.as_slice() {
                    self.replace(op, *result, product);
                }
            }
        }
        Ok(())
    }

    /// Whether a value is a sum of products with constants; the products, each with the place of
    /// its constant among its operands.
    fn products(&self, value: Val<'c>, terms: &mut Vec<(Op<'c>, usize, f64)>) -> bool {
        let Some(op) = self.only(value) else { return false };
        let operands = mlir::operands(op);
        let &[left, right] = operands.as_slice() else { return false };
        match (mlir::name(op), self.constant(left), self.constant(right)) {
            ("arith.addf" | "arith.subf", None, None) => {
                self.products(left, terms) && self.products(right, terms)
            }
            ("arith.mulf", Some(weight), None) => {
                terms.push((op, 0, weight));
                true
            }
            ("arith.mulf", None, Some(weight)) => {
                terms.push((op, 1, weight));
                true
            }
            _ => false,
        }
    }

    /// Whether a term is late, or a product of what is late.
    fn is_late(&self, term: Val<'c>, late: &BTreeSet<usize>) -> bool {
        let factors =
            self.only(term).filter(|op| mlir::name(*op) == "arith.mulf").map(mlir::operands);
        factors
            .unwrap_or_else(|| vec![term])
            .iter()
            .any(|factor| late.contains(&mlir::key(*factor)))
    }

    /// Puts the terms of a whole sum in the order of their places; those of one place keep theirs.
    fn order(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
        place: &impl Fn(Val<'c>) -> i64,
    ) -> Result<(), Error> {
        let is_sum = |op: &Op<'c>| mlir::name(*op) == "arith.addf" && is_fast(*op);
        let Some(result) = mlir::results(op).first().copied() else { return Ok(()) };
        if !is_sum(&op)
            || self.users.get(&mlir::key(result)).is_some_and(is_sum) && self.is_single(result)
        {
            return Ok(());
        }
        let (mut terms, mut rest) = (Vec::new(), mlir::operands(op));
        rest.reverse();
        while let Some(value) = rest.pop() {
            match self.only(value).filter(is_sum) {
                Some(sum) => rest.extend(mlir::operands(sum).into_iter().rev()),
                None => terms.push(value),
            }
        }
        terms.sort_by_key(|term| place(*term));
        let mut terms = terms.into_iter();
        let Some(mut sum) = terms.next() else { return Ok(()) };
        for term in terms {
            sum = value(insert(builder, op, "arith.addf", &[sum, term], flags(builder, op)?)?)?;
        }
        mlir::replace_uses(result, sum);
        Ok(())
    }

    /// A quotient by a square root that nothing else uses, in place of `op`.
    fn over_root(
        &mut self,
        builder: &Builder<'c>,
        op: Op<'c>,
        dividend: Val<'c>,
        divisor: Val<'c>,
    ) -> Result<Option<Val<'c>>, Error> {
        let Some(root) = self.only(divisor).filter(|root| mlir::name(*root) == "math.sqrt") else {
            return Ok(None);
        };
        let flags = flags(builder, op)?;
        let inverse = insert(builder, op, "math.rsqrt", &mlir::operands(root), flags)?;
        let inverse = self.made(inverse)?;
        if self.constant(dividend) == Some(1.0) {
            return Ok(Some(inverse));
        }
        self.made(insert(builder, op, "arith.mulf", &[dividend, inverse], flags)?).map(Some)
    }
}

/// Whether a function reads cells beside the point in other planes than the point's.
fn is_box(function: Op) -> Result<bool, Error> {
    let beside = |argument: &Argument| match argument {
        Argument::Read { offset, .. } => offset
            .split_first()
            .is_some_and(|(plane, rest)| *plane != 0 && rest.iter().any(|cells| *cells != 0)),
        _ => false,
    };
    Ok(stencil::arguments(function)?.iter().any(beside))
}

/// The arguments of a function that come late: cells of the point's own row, where some of them lie
/// two cells off or more.
fn late(function: Op) -> Result<BTreeSet<usize>, Error> {
    let (mut beside, mut far) = (BTreeSet::new(), false);
    for (argument, value) in stencil::arguments_with_values(function)? {
        if let Argument::Read { offset, .. } = argument
            && let [0, columns] = *offset.as_slice()
            && columns != 0
        {
            beside.insert(mlir::key(value));
            far |= columns.abs() > 1;
        }
    }
    Ok(if far { beside } else { BTreeSet::new() })
}

/// An operation's flags, for one that replaces it.
fn flags<'c>(builder: &Builder<'c>, op: Op) -> Result<Named<'c, 'static>, Error> {
    FastMath::of(op).attribute(builder.context)
}

/// A new operation before another, whose result has the type of its last operand.
fn insert<'c>(
    builder: &Builder<'c>,
    before: Op<'c>,
    name: &str,
    operands: &[Val<'c>],
    attribute: Named<'c, '_>,
) -> Result<Op<'c>, Error> {
    let ty = operands.last().map(|operand| operand.r#type());
    let ty = ty.ok_or_else(|| Error::internal(format!("{name} without operands")))?;
    let op = builder.op(name, operands, &[ty], &[attribute])?;
    mlir::move_before(op, before);
    Ok(op)
}

/// A new constant before an operation.
fn constant<'c>(
    builder: &Builder<'c>,
    before: Op<'c>,
    ty: Type<'c>,
    value: f64,
) -> Result<Op<'c>, Error> {
    let value = FloatAttribute::new(builder.context, ty, value).into();
    let op = builder.op("arith.constant", &[], &[ty], &[("value", value)])?;
    mlir::move_before(op, before);
    Ok(op)
}

/// The value that an operation makes.
fn value<'c>(op: Op<'c>) -> Result<Val<'c>, Error> {
    mlir::results(op)
        .first()
        .copied()
        .ok_or_else(|| Error::internal("an operation without a result"))
}
