//! `share-subexpressions`: computes an expression that a function evaluates for several points once
//! a point, in a temp field, where that is predicted to be faster.
//!
//! Two expressions are the same but for their place if they have the same operations on reads,
//! whose offsets differ by one vector. A flux function of the cells on both sides of a face is an
//! example: the face on the left of a point is that on the right of its neighbour.
//! Source: Deitz, Chamberlain, Snyder, "Eliminating redundancies in sum-of-products array
//! computations" (ICS 2001), array subexpression elimination; here for expressions with a division,
//! a root or a function of `math`. What costs less is not worth a field.
//!
//! It is the inverse of `fuse-functions`, and decides as that does: by the predicted time of the
//! best schedule that the options leave.
//!
//! Needs: a verified stencil program with simplified point functions. Guarantees: the same results,
//! without contraction bit for bit: every operation stays what it was.
//!
//! Declines a function
//! - of several pieces, or with values of its own sweep;
//! - whose shared expressions would be needed outside the grid, unless the fields that they read
//!   have one boundary rule: `periodic`, or `nearest` or `reflect` and no read beside the point;
//! - where it does not pay, or no schedule can be predicted.
//!
//! ```text
//! func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: -1>},
//!                      %b: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
//!   %0 = math.sqrt %a   %1 = math.sqrt %b   %2 = arith.addf %0, %1
//! }
//! "stencil.apply"() {updates = [@A], pieces = [{function = @f, ...}]}
//! ```
//! becomes, with a temp field on the grid of `A`,
//! ```text
//! func.func private @f_shared(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) {
//!   %0 = math.sqrt %a
//! }
//! "stencil.apply"() {updates = [@f_shared_0], pieces = [{function = @f_shared, ...}]}
//! func.func private @f_rest(%a: f32 {stencil.read = @f_shared_0, stencil.offset = array<i64: -1>},
//!                           %b: f32 {stencil.read = @f_shared_0, stencil.offset = array<i64: 1>}) {
//!   %2 = arith.addf %a, %b
//! }
//! "stencil.apply"() {updates = [@A], pieces = [{function = @f_rest, ...}]}
//! ```

use crate::analysis::shared_expressions::{self, Expressions, Group, minus};
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choice;
use crate::schedule::choose_schedule::{OPTIONS, Request};
use crate::target::Target;
use melior::Context;
use melior::ir::operation::{Operation, OperationLike};
use melior::ir::{Module, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::Builder;
use stencil_dialects::cover::{self, Bounds};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Apply, Argument, Arguments, Boundary, Piece, Program, Role};
use stencil_dialects::verify;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "share-subexpressions",
    summary: "compute what several points share once, in temp fields, where that is predicted to \
              be faster",
    options: OPTIONS,
    read: |options: &Options| Ok(Box::new(ShareSubexpressions(Request::read(options)?))),
};

/// The pass. Schedules are predicted within its request.
pub struct ShareSubexpressions(pub Request);

impl Pass for ShareSubexpressions {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.0.options()
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        // The times of a processor's kernels are not predicted.
        Ok(Target::of(module)?.processor.is_none())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        choice::check(&self.0.choice)?;
        let applies = Program::read(module)?.applies.len();
        // Backwards: a new apply stands in front, so that the places of earlier ones stay.
        let mut before = None;
        for place in (0..applies.min(MOST_APPLIES)).rev() {
            let Some(shared) = shared(context, module, place)? else { continue };
            if before.is_none() {
                before = self.0.best_seconds(context, module)?;
            }
            let after = self.0.best_seconds(context, &shared)?;
            if before.zip(after).is_some_and(|(before, after)| after < before) {
                (*module, before) = (shared, after);
            }
        }
        Ok(())
    }
}

/// Applies that are looked at: each may be predicted twice.
const MOST_APPLIES: usize = 20;

/// The module with the shared expressions of an apply in temp fields; none where it has none, or
/// where that can't be done.
fn shared<'c>(
    context: &'c Context,
    module: &Module<'c>,
    place: usize,
) -> Result<Option<Module<'c>>, Error> {
    let mut copy = Module::from_operation(Operation::clone(&module.as_operation()))
        .ok_or_else(|| Error::internal("a module's copy is no module"))?;
    if !share(context, &copy, place)? {
        return Ok(None);
    }
    if let Err(errors) = verify::all(&copy) {
        // A field may break a rule that the program kept, such as the limit on their number.
        let fault = errors.into_iter().find(Error::is_internal);
        return fault.map_or(Ok(None), Err);
    }
    mlir::run_upstream(context, &mut copy, "builtin.module(func.func(canonicalize,cse))")?;
    Ok(Some(copy))
}

/// Gives the shared expressions of an apply temp fields.
fn share<'c>(context: &'c Context, module: &Module<'c>, place: usize) -> Result<bool, Error> {
    let program = Program::read(module)?;
    let Some(apply) = program.applies.get(place) else { return Ok(false) };
    let ([piece], [updated, ..]) = (apply.pieces.as_slice(), apply.updates.as_slice()) else {
        return Ok(false);
    };
    let function = stencil::function(module, piece.function)?;
    if !shared_expressions::has_several_long(function) {
        return Ok(false);
    }
    let expressions = Expressions::of(function)?;
    let groups = expressions.shared();
    if groups.is_empty() {
        return Ok(false);
    }
    let Some((bounds, rule)) = domain(&program, piece, updated, &expressions, &groups)? else {
        return Ok(false);
    };
    let builder = Builder::new(context, apply.op.location(), mlir::body(module));
    let name = stencil::unused_name(module, &format!("{}_shared", piece.function));
    let grid = program.field(updated)?.grid;
    let mut fields = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let field = stencil::unused_name(module, &format!("{name}_{number}"));
        let op = stencil::field(&builder, &field, grid, group.element, Role::Temp, rule)?;
        mlir::move_before(op, function);
        fields.push(field);
    }
    let made = producer(&expressions, &builder, &name, &groups)?;
    mlir::move_before(made, function);
    let symbols = piece.lower.symbol_count();
    let lower = Linear::map(context, symbols, &bounds.lower);
    let upper = Linear::map(context, symbols, &bounds.upper);
    let names: Vec<&str> = fields.iter().map(String::as_str).collect();
    let new = stencil::apply(&builder, &names, &[Piece { function: &name, lower, upper }])?;
    stencil::set_repeats(&builder, new, &apply.repeats);
    mlir::move_before(new, apply.op);

    let rest = stencil::unused_name(module, &format!("{}_rest", piece.function));
    let made = consumer(&expressions, &builder, &rest, &groups, &names)?;
    mlir::move_before(made, function);
    let new = stencil::apply(&builder, &apply.updates, &[Piece { function: &rest, ..*piece }])?;
    stencil::set_repeats(&builder, new, &apply.repeats);
    mlir::move_before(new, apply.op);
    erase(module, &program, apply, function)?;
    Ok(true)
}

/// Takes an apply away, and its function where no other one applies it.
fn erase<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    apply: &Apply<'c>,
    function: Op<'c>,
) -> Result<(), Error> {
    let name = stencil::function_name(function)?;
    let uses = program.applies.iter().flat_map(|apply| &apply.pieces);
    let several = uses.filter(|piece| piece.function == name).count() > 1;
    mlir::erase(apply.op);
    if !several {
        mlir::erase(stencil::function(module, name)?);
    }
    Ok(())
}

/// Where the shared expressions are needed, on the grid of the updated field, and the boundary rule
/// of their fields; none where they can't be had there.
fn domain<'c>(
    program: &Program<'c>,
    piece: &Piece<'c>,
    updated: &str,
    expressions: &Expressions<'c>,
    groups: &[Group<'c>],
) -> Result<Option<(Bounds, Option<Boundary<'c>>)>, Error> {
    let grid = program.grid_of(updated)?;
    let (Some(whole), Some(own)) = (Bounds::of_grid(grid), Bounds::of_piece(piece)) else {
        return Ok(None);
    };
    let shifts = || groups.iter().flat_map(|group| group.uses.iter().map(|(shift, _)| shift));
    let Some(first) = shifts().next() else { return Ok(None) };
    let [least, most] = [i64::min as fn(i64, i64) -> i64, i64::max].map(|join| {
        shifts().fold(first.clone(), |all, shift| {
            all.iter().zip(shift).map(|(a, b)| join(*a, *b)).collect()
        })
    });
    let (Some(lower), Some(upper)) = (own.moved(&least), own.moved(&most)) else {
        return Ok(None);
    };
    let needed = Bounds { lower: lower.lower, upper: upper.upper };
    let mut known: Vec<_> = cover::checked_values(program, &[piece]).collect();
    known.extend(cover::of_points(piece, &[grid]));
    if cover::covered(&needed, std::slice::from_ref(&whole), &known) {
        return Ok(Some((needed, None)));
    }
    let (mut rules, mut beside) = (Vec::new(), false);
    for (field, offset) in groups.iter().flat_map(|group| expressions.reads(group)) {
        let field = program.field(field)?;
        if field.grid != grid.name {
            return Ok(None);
        }
        rules.push(field.boundary);
        beside |= offset.iter().any(|cells| *cells != 0);
    }
    let rule = rules.first().copied().flatten();
    let fits = match rule {
        Some(Boundary::Periodic) => true,
        Some(Boundary::Nearest | Boundary::Reflect) => !beside,
        Some(Boundary::Value(_)) | None => false,
    };
    Ok((fits && rules.iter().all(|other| *other == rule)).then_some((whole, rule)))
}

/// The function that computes each expression at its own point.
fn producer<'c>(
    expressions: &Expressions<'c>,
    builder: &Builder<'c>,
    name: &str,
    groups: &[Group<'c>],
) -> Result<Op<'c>, Error> {
    let (mut signature, mut parts) = (Arguments::default(), Vec::new());
    for group in groups {
        let Some((shift, value)) = group.uses.first() else { continue };
        let (ops, needed) = expressions.needed(&[*value], &BTreeSet::new());
        let mut inputs = Vec::new();
        for (argument, own) in arguments(expressions, &needed) {
            let argument = match argument {
                Argument::Read { field, offset } => {
                    Argument::Read { field, offset: minus(offset, shift) }
                }
                other => other.clone(),
            };
            inputs.push((own, signature.place(argument, own.r#type())));
        }
        parts.push(Part { inputs, ops, results: vec![*value] });
    }
    function(expressions, builder, (name, &signature), &parts)
}

/// The function that reads the expressions and computes all else.
fn consumer<'c>(
    expressions: &Expressions<'c>,
    builder: &Builder<'c>,
    name: &str,
    groups: &[Group<'c>],
    fields: &[&'c str],
) -> Result<Op<'c>, Error> {
    let taken: BTreeSet<usize> =
        groups.iter().flat_map(|group| &group.uses).map(|(_, value)| mlir::key(*value)).collect();
    let results = expressions.ops.last().map(|op| mlir::operands(*op)).unwrap_or_default();
    let (ops, needed) = expressions.needed(&results, &taken);
    let (mut signature, mut inputs) = (Arguments::default(), Vec::new());
    for (argument, own) in arguments(expressions, &needed) {
        inputs.push((own, signature.place(argument.clone(), own.r#type())));
    }
    for (group, field) in groups.iter().zip(fields) {
        for (shift, value) in &group.uses {
            let argument = Argument::Read { field, offset: shift.clone() };
            inputs.push((*value, signature.place(argument, group.element)));
        }
    }
    function(expressions, builder, (name, &signature), &[Part { inputs, ops, results }])
}

/// The arguments of the function that are needed, with their values.
fn arguments<'e, 'c>(
    expressions: &'e Expressions<'c>,
    needed: &'e BTreeSet<usize>,
) -> impl Iterator<Item = (&'e Argument<'c>, Val<'c>)> {
    let all = expressions.arguments.iter().map(|(argument, own)| (argument, *own));
    all.filter(|(_, own)| needed.contains(&mlir::key(*own)))
}

/// Operations that a new function takes over.
struct Part<'c> {
    /// What they use from outside, with the places of the arguments that stand for it.
    inputs: Vec<(Val<'c>, usize)>,
    ops: Vec<Op<'c>>,
    /// What the new function returns of theirs.
    results: Vec<Val<'c>>,
}

/// A function of copied operations, which returns the results of all parts.
fn function<'c>(
    expressions: &Expressions<'c>,
    builder: &Builder<'c>,
    (name, signature): (&str, &Arguments<'c>),
    parts: &[Part<'c>],
) -> Result<Op<'c>, Error> {
    let results = parts.iter().flat_map(|part| &part.results);
    let results: Vec<_> = results.map(|value| value.r#type()).collect();
    let builder = &Builder { location: expressions.function.location(), ..*builder };
    let (made, entry) = signature.function(builder, name, &results)?;
    let values = mlir::arguments(entry);
    let mut outputs = Vec::new();
    for part in parts {
        let given = |(own, place): &(Val<'c>, usize)| {
            values.get(*place).map(|value| (mlir::key(*own), *value))
        };
        let mut map: BTreeMap<usize, Val<'c>> = part.inputs.iter().filter_map(given).collect();
        part.ops.iter().for_each(|op| mlir::copy_to(*op, entry, &mut map));
        outputs.extend(part.results.iter().filter_map(|value| map.get(&mlir::key(*value))));
    }
    builder.at(entry).op("func.return", &outputs, &[], &[])?;
    Ok(made)
}
