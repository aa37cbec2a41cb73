//! `fuse-functions`: computes a temp field again wherever it is read, in place of keeping it, where
//! that is predicted to be faster.
//!
//! An apply of temp fields (the producer) goes into every apply that reads them (the consumers):
//! its point function is inlined at each offset of a read, with its own offsets and coordinates
//! moved by it. Upstream's `cse` then shares what several offsets have in common. Every operation
//! stays what it was, so without contraction no bit of a result changes.
//!
//! Folding saves memory traffic and a barrier or launch; it adds operations and widens footprints.
//! The faster variant stays. The strategy decides which it is: a stream keeps planes of temp fields
//! in registers, and with one kernel per function each field goes through device memory. Both are
//! compared as `choose-schedule` compares schedules, by the predicted time of the best that the
//! options leave.
//!
//! Needs: a verified stencil program with simplified point functions. Guarantees: the same results;
//! producers that were folded are gone, and no apply touches their fields any more.
//!
//! Declines a producer
//! - that reads one of its own fields, or shares one with another apply;
//! - of a field that an apply before it reads: that is the value of the step before;
//! - of a field that is read at computed places;
//! - of which a field that it reads is updated before the last consumer;
//! - where a read may leave the one piece that it begins in, or the verifier does not find, for all
//!   sizes, that what is inlined stays within the grids;
//! - where it does not pay, or no schedule can be predicted.
//!
//! ```text
//! func.func private @flux(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>},
//!                         %b: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {...}
//! func.func private @move(%l: f32 {stencil.read = @F, stencil.offset = array<i64: -1>},
//!                         %r: f32 {stencil.read = @F, stencil.offset = array<i64: 0>}) -> f32 {...}
//! "stencil.apply"() {updates = [@F], pieces = [{function = @flux, ...}]}
//! "stencil.apply"() {updates = [@A], pieces = [{function = @move, ...}]}
//! ```
//! becomes
//! ```text
//! func.func private @move_with_flux(%0: f32 {stencil.read = @A, stencil.offset = array<i64: -1>},
//!                                   %1: f32 {stencil.read = @A, stencil.offset = array<i64: 0>},
//!                                   %2: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
//!   <flux of %0 and %1> <flux of %1 and %2> <move>
//! }
//! "stencil.apply"() {updates = [@A], pieces = [{function = @move_with_flux, ...}]}
//! ```

use crate::analysis::footprint;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choice;
use crate::schedule::choose_schedule::{OPTIONS, Request};
use crate::target::Target;
use melior::Context;
use melior::ir::operation::{Operation, OperationLike};
use melior::ir::{Module, ValueLike};
use std::collections::BTreeSet;
use stencil_dialects::builder::Builder;
use stencil_dialects::cover::{self, Bounds};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{self, Apply, Argument, Arguments, Piece, Program, Role};
use stencil_dialects::verify;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "fuse-functions",
    summary: "compute temp fields again where they are read, where that is predicted to be faster",
    options: OPTIONS,
    read: |options: &Options| Ok(Box::new(FuseFunctions(Request::read(options)?))),
};

/// The pass. Schedules are predicted within its request.
pub struct FuseFunctions(pub Request);

impl Pass for FuseFunctions {
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
        run(context, module, &self.0)
    }
}

/// Applies in all programs together whose schedules are predicted. Each is lowered for every
/// candidate; in a program of more, the temp fields that are left are kept.
const MOST_PREDICTED: usize = 40;

fn run<'c>(context: &'c Context, module: &mut Module<'c>, request: &Request) -> Result<(), Error> {
    choice::check(&request.choice)?;
    // The order of a sweep would have to move with the function.
    if Program::read(module)?.sweeps()? {
        return Ok(());
    }
    let seconds = |module: &Module<'c>| request.best_seconds(context, module);
    let (mut kept, mut place, mut spent) = (None, 0, 0);
    loop {
        let applies = Program::read(module)?.applies.len();
        if place >= applies || spent + applies > MOST_PREDICTED {
            break;
        }
        let found = folded(context, module, place)?;
        place += 1;
        let Some(fused) = found else { continue };
        if kept.is_none() {
            kept = seconds(module)?;
            spent += applies;
        }
        spent += applies - 1;
        let again = seconds(&fused)?;
        if kept.zip(again).is_some_and(|(kept, again)| again < kept) {
            // What was declined before may pay in what this leaves.
            (*module, kept, place) = (fused, again, 0);
        }
    }
    Ok(())
}

/// The module with one apply folded into its consumers; none where that can't be done.
fn folded<'c>(
    context: &'c Context,
    module: &Module<'c>,
    place: usize,
) -> Result<Option<Module<'c>>, Error> {
    let program = Program::read(module)?;
    let Some(consumers) = consumers(&program, place)? else { return Ok(None) };
    let mut copy = Module::from_operation(Operation::clone(&module.as_operation()))
        .ok_or_else(|| Error::internal("a module's copy is no module"))?;
    if !fold(context, &copy, place, &consumers)? {
        return Ok(None);
    }
    if let Err(errors) = verify::all(&copy) {
        // A fold may break a rule that the program kept, such as the limit on offsets.
        let fault = errors.into_iter().find(Error::is_internal);
        return fault.map_or(Ok(None), Err);
    }
    mlir::run_upstream(context, &mut copy, "builtin.module(func.func(canonicalize,cse))")?;
    Ok(Some(copy))
}

/// The places of the applies that read what one updates; none where it has to stay.
fn consumers<'c>(program: &Program<'c>, place: usize) -> Result<Option<Vec<usize>>, Error> {
    let Some(producer) = program.applies.get(place) else { return Ok(None) };
    let fields_read = |apply: &Apply<'c>| -> Result<BTreeSet<&'c str>, Error> {
        Ok(footprint::of_pieces(program, &apply.pieces)?
            .into_iter()
            .map(|read| read.field)
            .collect())
    };
    let made: BTreeSet<&str> = producer.updates.iter().copied().collect();
    let mut sources = fields_read(producer)?;
    sources.extend(program.gathered_by(&producer.pieces)?);
    let temp = |field: &&str| program.field(field).is_ok_and(|field| field.role == Role::Temp);
    if !made.iter().all(temp) || !sources.is_disjoint(&made) || program.applies.len() == 1 {
        return Ok(None);
    }
    let reduced = program.fields_reduced()?;
    if made.iter().any(|field| reduced.contains(field)) {
        return Ok(None);
    }
    let (mut found, mut changed) = (Vec::new(), false);
    for (other, apply) in program.applies.iter().enumerate().filter(|(other, _)| *other != place) {
        let updates: BTreeSet<&str> = apply.updates.iter().copied().collect();
        let reads = !fields_read(apply)?.is_disjoint(&made);
        if !program.gathered_by(&apply.pieces)?.is_disjoint(&made) {
            return Ok(None);
        }
        // A consumer sees the fields as they were before its own updates.
        if !updates.is_disjoint(&made) || reads && (other < place || changed) {
            return Ok(None);
        }
        // In another repetition the sources have other values.
        if reads && apply.repeats != producer.repeats {
            return Ok(None);
        }
        if reads {
            found.push(other);
        }
        changed |= other > place && !updates.is_disjoint(&sources);
    }
    // A reduction in between may change a value that the producer reads.
    let last = found.last().copied().unwrap_or(place);
    let between = program.reduces.iter().any(|reduce| reduce.place > place && reduce.place <= last);
    Ok((!between).then_some(found))
}

/// Folds an apply of a module into its consumers. `false` where a read may leave the piece that it
/// begins in; then the module is of no use any more.
fn fold<'c>(
    context: &'c Context,
    module: &Module<'c>,
    place: usize,
    consumers: &[usize],
) -> Result<bool, Error> {
    let program = Program::read(module)?;
    let Some(producer) = program.applies.get(place) else { return Ok(false) };
    for consumer in consumers.iter().filter_map(|place| program.applies.get(*place)) {
        let builder = Builder::new(context, consumer.op.location(), mlir::body(module));
        let mut names = Vec::new();
        for piece in &consumer.pieces {
            match inlined(&builder, module, &program, producer, piece)? {
                Some(name) => names.push(name),
                None => return Ok(false),
            }
        }
        let pieces = consumer.pieces.iter().zip(&names);
        let pieces: Vec<Piece> =
            pieces.map(|(piece, name)| Piece { function: name, ..*piece }).collect();
        let apply = stencil::apply(&builder, &consumer.updates, &pieces)?;
        stencil::set_repeats(&builder, apply, &consumer.repeats);
        mlir::move_before(apply, consumer.op);
        mlir::erase(consumer.op);
    }
    mlir::erase(producer.op);
    let used: BTreeSet<String> = pieces_of(&Program::read(module)?);
    for name in pieces_of(&program).difference(&used) {
        mlir::erase(stencil::function(module, name)?);
    }
    Ok(true)
}

/// The names of all point functions that are applied.
fn pieces_of(program: &Program) -> BTreeSet<String> {
    program
        .applies
        .iter()
        .flat_map(|apply| &apply.pieces)
        .map(|piece| piece.function.to_owned())
        .collect()
}

/// A function that computes what one reads of a producer's fields; its name, or that of the
/// function itself where it reads none. None where a read may leave the piece that it begins in.
fn inlined<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    program: &Program<'c>,
    producer: &Apply<'c>,
    piece: &Piece<'c>,
) -> Result<Option<String>, Error> {
    let function = stencil::function(module, piece.function)?;
    let (mut signature, mut inputs) = (Arguments::default(), Vec::new());
    let mut name = None;
    for (argument, value) in stencil::arguments_with_values(function)? {
        let made = match &argument {
            Argument::Read { field, offset } => {
                producer.updates.iter().position(|made| made == field).zip(Some(offset))
            }
            _ => None,
        };
        let Some((result, offset)) = made else {
            inputs.push(Input::Taken(signature.place(argument, value.r#type())));
            continue;
        };
        let Some(from) = covering(program, producer, piece, offset) else { return Ok(None) };
        name = name.or_else(|| {
            Some(stencil::unused_name(
                module,
                &format!("{}_with_{}", piece.function, from.function),
            ))
        });
        let (source, mut arguments) = (stencil::function(module, from.function)?, Vec::new());
        for (argument, value) in stencil::arguments_with_values(source)? {
            let further = match argument {
                Argument::Coordinate(dimension) => offset.get(dimension).copied().unwrap_or(0),
                _ => 0,
            };
            let Some(argument) = moved(argument, offset) else { return Ok(None) };
            arguments.push((signature.place(argument, value.r#type()), further));
        }
        inputs.push(Input::Made { source, arguments, result });
    }
    let Some(name) = name else { return Ok(Some(piece.function.to_owned())) };
    let builder = &Builder { location: function.location(), ..*builder };
    let body = stencil::function_body(function)?;
    let returned = mlir::operations(body).last().map(|op| mlir::operands(*op)).unwrap_or_default();
    let results: Vec<_> = returned.iter().map(|value| value.r#type()).collect();
    let (op, entry) = signature.function(builder, &name, &results)?;
    let (inner, values) = (builder.at(entry), mlir::arguments(entry));
    let value = |place: usize| {
        let value = values.get(place).copied();
        value.ok_or_else(|| Error::internal("an argument that the fused function lacks"))
    };
    let mut operands = Vec::new();
    for input in &inputs {
        operands.push(match input {
            Input::Taken(place) => value(*place)?,
            Input::Made { source, arguments, result } => {
                let mut inputs = Vec::new();
                for (place, further) in arguments {
                    inputs.push(inner.add_constant(value(*place)?, *further)?);
                }
                let made = mlir::inline_block(stencil::function_body(*source)?, &inputs, entry);
                made.get(*result)
                    .copied()
                    .ok_or_else(|| Error::internal("a function with too few results"))?
            }
        });
    }
    let outputs = mlir::inline_block(body, &operands, entry);
    inner.op("func.return", &outputs, &[], &[])?;
    mlir::move_before(op, function);
    Ok(Some(name))
}

/// Where a fused function takes what an argument stood for.
enum Input<'c> {
    /// From its own argument at a place.
    Taken(usize),
    /// From a result of another function, given the places of that function's arguments and what is
    /// to be added to each.
    Made { source: Op<'c>, arguments: Vec<(usize, i64)>, result: usize },
}

/// The piece of a producer that covers all that the points of a consumer's piece read at an offset.
fn covering<'p, 'c>(
    program: &Program<'c>,
    producer: &'p Apply<'c>,
    piece: &Piece<'c>,
    offset: &[i64],
) -> Option<&'p Piece<'c>> {
    let read = Bounds::of_piece(piece)?.moved(offset)?;
    let mut known: Vec<_> = cover::checked_values(program, &[piece]).collect();
    known.extend(cover::of_points(piece, &[]));
    producer.pieces.iter().find(|from| {
        Bounds::of_piece(from).is_some_and(|from| cover::covered(&read, &[from], &known))
    })
}

/// What an argument stands for, seen from a point from which the function's point lies at an
/// offset; none where that leaves 64 bits. A coordinate is then that of the other point, and the
/// offset is still to be added.
fn moved<'c>(argument: Argument<'c>, by: &[i64]) -> Option<Argument<'c>> {
    let Argument::Read { field, offset } = argument else { return Some(argument) };
    let offset =
        offset.iter().zip(by).map(|(cells, by)| cells.checked_add(*by)).collect::<Option<_>>()?;
    Some(Argument::Read { field, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_add_up_and_all_else_stays() {
        let read = |offset: &[i64]| Argument::Read { field: "A", offset: offset.to_vec() };
        assert_eq!(moved(read(&[1, -2]), &[-1, 5]), Some(read(&[0, 3])));
        assert_eq!(moved(Argument::Coordinate(1), &[-1, 5]), Some(Argument::Coordinate(1)));
        assert_eq!(moved(read(&[i64::MAX, 0]), &[1, 0]), None);
    }

    #[test]
    fn the_piece_that_covers_a_read_is_found_for_any_size() {
        let map = |bound: &str| format!("affine_map<()[n] -> ({bound})>");
        let (zero, last) = (map("0"), map("n - 1"));
        let piece = |function: &str, lower: &str, upper: &str| {
            format!("{{function = @{function}, lower = {}, upper = {}}}", map(lower), map(upper))
        };
        let text = format!(
            "module attributes {{stencil.params = [\"N\"], stencil.steps = {zero}}} {{\n\
             \"stencil.grid\"() {{sym_name = \"G\", lower = {zero}, upper = {last}}} : () -> ()\n\
             \"stencil.field\"() {{sym_name = \"A\", grid = @G, type = f32, role = \"state\"}} : \
             () -> ()\n\
             \"stencil.field\"() {{sym_name = \"T\", grid = @G, type = f32, role = \"temp\"}} : () \
             -> ()\n\
             \"stencil.apply\"() {{updates = [@T], pieces = [{}, {}]}} : () -> ()\n\
             \"stencil.apply\"() {{updates = [@A], pieces = [{}]}} : () -> ()\n}}",
            piece("first", "0", "9"),
            piece("rest", "10", "n - 1"),
            piece("reader", "11", "n - 2")
        );
        let context = stencil_dialects::context().unwrap();
        let module = Module::parse(&context, &text).unwrap();
        let program = Program::read(&module).unwrap();
        let [producer, consumer] = program.applies.as_slice() else { panic!("two applies") };
        let found = |offset| {
            covering(&program, producer, &consumer.pieces[0], &[offset]).map(|piece| piece.function)
        };
        assert_eq!([-1, 0, 1].map(found), [Some("rest"); 3]);
        // The point 11 reads the cell 9, and others those behind it; the last point would read
        // beyond the grid.
        assert_eq!([-2, 2].map(found), [None; 2]);
    }
}
