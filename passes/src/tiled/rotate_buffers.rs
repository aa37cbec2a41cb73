//! `rotate-buffers`: a field that only takes another one's value, `P' = U`, is not copied. The
//! launch hands the buffer of `U` on to `P`, and `U` goes on in a third one.
//!
//! Needs: tile kernels whose interior is not split yet, so that it stands between `tile-overlapped`
//! and `split-interior`; before `split-sums`, which cuts applies of one field. Guarantees: the same
//! values. A kernel names in `tiled.rotates` the fields whose buffers rotate after its launch, and
//! neither computes nor stores those that it copied. Cells of `P` that no piece covers keep their
//! first value, but the buffer of `U` has others there. `tiled.computed` lists the cells that the
//! buffer holds; a plan copies the others from the input.
//!
//! ```text
//! func.func @wave_1() {
//!   %p = "tiled.load"() {field = @P, ...}
//!   %u = "tiled.load"() {field = @U, ...}
//!   %next:2 = "tiled.apply"(%p, %u) {updates = [@P, @U], pieces = [{function = @wave, ...}], ...}
//!   "tiled.store"(%next#0) {field = @P}
//!   "tiled.store"(%next#1) {field = @U}
//! }
//! ```
//! where the first result of `@wave` is its argument `U[0,0]`, becomes
//! ```text
//! func.func @wave_1() attributes {tiled.rotates = [[@P, @U]], ...} {
//!   %p = "tiled.load"() {field = @P, ...}
//!   %u = "tiled.load"() {field = @U, ...}
//!   %next = "tiled.apply"(%p, %u) {updates = [@U], pieces = [{function = @wave_result_2, ...}], ...}
//!   "tiled.store"(%next) {field = @U}
//! }
//! ```
//! A history of several values, `P' = U, U' = V`, is one list: `[[@P, @U, @V]]`.
//!
//! Declines a copy
//! - of a value that the launch itself computes, as of several steps a launch, and of a field of
//!   another type or grid, and of one that has no points;
//! - of a field that the launch does not store: then both go on with one value;
//! - of a field that another copy of the launch takes, and fields that are exchanged;
//! - of a field whose values of the same sweep the launch reads;
//! - in a program with launches of several sweeps, which exchange two buffers themselves;
//! - where some cell of `P` that no piece covers may be read, and where kernels update different
//!   cells of it. Kernels that are lowered already may do both;
//! - in a program some of whose functions have no kernel yet.

use crate::analysis::footprint;
use crate::analysis::returned_reads::returned_read;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::Builder;
use stencil_dialects::cover::{Bounds, Defined};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Argument, Field, Piece, Program, Role};
use stencil_dialects::tiled::{self, Apply, Keeps, Kernel, Launch, TileOp};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "rotate-buffers",
    summary: "hand a field's buffer on where another field takes its value",
    options: &[],
    read: |_: &Options| Ok(Box::new(RotateBuffers)),
};

/// The pass.
pub struct RotateBuffers;

impl Pass for RotateBuffers {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let program = Program::read(module)?;
    let kernels = tiled::kernels(module)?;
    let lowered = tiled::launches(module)?;
    if !program.applies.is_empty()
        || kernels.iter().any(|kernel| kernel.wave.sweeps.is_some())
        || lowered.iter().any(|launch| launch.sweeps.is_some())
    {
        return Ok(());
    }
    let mut made = Made::new();
    for kernel in kernels.iter().filter(|kernel| !kernel.split) {
        let chains = chains(module, &program, (&kernels, &lowered), kernel)?;
        if chains.is_empty() || !tiled::rotations(kernel.op)?.is_empty() {
            continue;
        }
        let builder = Builder::new(context, kernel.op.location(), mlir::body(module));
        let copied: BTreeSet<&str> =
            chains.iter().flat_map(|chain| chain.iter().rev().skip(1).copied()).collect();
        for name in &copied {
            let (field, pieces) = (program.field(name)?, pieces_of(kernel, name));
            if field.role == Role::State && !is_whole(&program, field, pieces)? {
                tiled::set_computed(&builder, field.op, pieces);
            }
        }
        tiled::set_rotations(&builder, kernel.op, &chains);
        drop_copies(&builder, module, kernel, &copied, &mut made)?;
    }
    let mut used: BTreeSet<&str> = program.reduces.iter().map(|reduce| reduce.function).collect();
    for kernel in tiled::kernels(module)? {
        used.extend(
            kernel.applies().flat_map(|apply| apply.pieces.clone()).map(|piece| piece.function),
        );
    }
    for name in made.keys().map(|(name, _)| *name).collect::<BTreeSet<_>>().difference(&used) {
        mlir::erase(stencil::function(module, name)?);
    }
    Ok(())
}

/// Whether a lowered kernel has a buffer of a field.
fn is_bound(lowered: &[Launch], name: &str) -> bool {
    let mut bindings = lowered.iter().flat_map(|launch| &launch.bindings);
    bindings.any(|binding| binding.field() == Some(name))
}

/// Lists of fields of which each takes the value of the next, and the last is stored.
fn chains<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    kernels: (&[Kernel<'c>], &[Launch<'c>]),
    kernel: &Kernel<'c>,
) -> Result<Vec<Vec<&'c str>>, Error> {
    let mut takes: BTreeMap<&str, &str> = BTreeMap::new();
    for field in &program.fields {
        if let Some(from) = copied(module, program, kernel, field)?
            && !takes.values().any(|taken| *taken == from)
            && may_lose_rim(module, program, kernels, (kernel, field))?
        {
            takes.insert(field.name, from);
        }
    }
    let stored = stores(kernel);
    let mut chains = Vec::new();
    // Fields that are exchanged have no first one, and stay as they are.
    for first in takes.keys().filter(|field| !takes.values().any(|from| from == *field)) {
        let mut chain = vec![*first];
        while let Some(next) = chain.last().and_then(|last| takes.get(last)) {
            chain.push(*next);
        }
        if chain.last().is_some_and(|last| !stored.contains_key(last)) {
            chain.pop();
        }
        if chain.len() > 1 {
            chains.push(chain);
        }
    }
    Ok(chains)
}

/// The tile that a kernel stores of each field.
fn stores<'c>(kernel: &Kernel<'c>) -> BTreeMap<&'c str, Val<'c>> {
    let stores = kernel.body.iter().filter_map(|op| match op {
        TileOp::Store { field, tile, .. } => Some((*field, *tile)),
        _ => None,
    });
    stores.collect()
}

/// The field whose current value is all that a kernel computes of another; none where it is not.
fn copied<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    field: &Field<'c>,
) -> Result<Option<&'c str>, Error> {
    let mut writers = kernel.applies().filter(|apply| updates(apply, field.name));
    let (Some(apply), None) = (writers.next(), writers.next()) else { return Ok(None) };
    let place = apply.outputs.iter().position(|(name, _)| *name == field.name).unwrap_or(0);
    let made = apply.outputs.get(place).map(|(_, tile)| mlir::key(*tile));
    if stores(kernel).get(field.name).map(|tile| mlir::key(*tile)) != made
        || apply.partial.is_some()
        || apply.keeps != Keeps::Old
    {
        return Ok(None);
    }
    let mut source = None;
    for piece in &apply.pieces {
        for argument in stencil::arguments(stencil::function(module, piece.function)?)? {
            if matches!(argument, Argument::Current { field: read, .. } if read == field.name) {
                return Ok(None);
            }
        }
        match returned_read(module, piece, place)? {
            Some(from) if source.is_none_or(|source| source == from) => source = Some(from),
            _ => return Ok(None),
        }
    }
    let Some(source) = source.filter(|source| *source != field.name) else { return Ok(None) };
    let from = program.field(source)?;
    let alike =
        (from.grid, from.element, from.unsigned) == (field.grid, field.element, field.unsigned);
    let loaded = apply.input(source).is_some_and(|tile| {
        kernel.body.iter().any(|op| {
            matches!(op, TileOp::Load { tile: loaded, .. } if mlir::key(*loaded) == mlir::key(tile))
        })
    });
    // A kernel without points writes nothing, so there is nothing to rotate.
    let empty = Bounds::of_grid(program.grid_of(source)?).is_some_and(|grid| grid.is_empty());
    Ok((alike && loaded && !empty).then_some(source))
}

fn updates(apply: &Apply, field: &str) -> bool {
    apply.outputs.iter().any(|(name, _)| *name == field)
}

/// The pieces by which a kernel updates a field that one apply updates.
fn pieces_of<'k, 'c>(kernel: &'k Kernel<'c>, field: &str) -> &'k [Piece<'c>] {
    kernel.applies().find(|apply| updates(apply, field)).map_or(&[], |apply| &apply.pieces)
}

/// Whether pieces cover every cell of a field.
fn is_whole(program: &Program, field: &Field, pieces: &[Piece]) -> Result<bool, Error> {
    let none = Defined::Pieces(Vec::new());
    Ok(none.and(program, program.grid_of(field.name)?, pieces).is_whole())
}

/// Whether no kernel reads a cell of a field that no piece covers, so that it may hold anything.
fn may_lose_rim<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    (kernels, lowered): (&[Kernel<'c>], &[Launch<'c>]),
    (kernel, field): (&Kernel<'c>, &Field<'c>),
) -> Result<bool, Error> {
    let pieces = pieces_of(kernel, field.name);
    if is_whole(program, field, pieces)? {
        return Ok(true);
    }
    if is_bound(lowered, field.name) || program.fields_reduced()?.contains(field.name) {
        return Ok(false);
    }
    let boxes = |pieces: &[Piece]| pieces.iter().map(Bounds::of_piece).collect::<Option<Vec<_>>>();
    let Some(covered) = boxes(pieces) else { return Ok(false) };
    let defined = Defined::Pieces(covered.clone());
    for apply in kernels.iter().flat_map(Kernel::applies) {
        if updates(apply, field.name) && boxes(&apply.pieces).as_ref() != Some(&covered)
            || program.gathered_by(&apply.pieces)?.contains(field.name)
        {
            return Ok(false);
        }
        for piece in &apply.pieces {
            for argument in stencil::arguments(stencil::function(module, piece.function)?)? {
                if let Argument::Read { field: read, offset }
                | Argument::Current { field: read, offset } = argument
                    && read == field.name
                    && !defined.holds_read(program, piece, field, &offset)
                {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// Functions that were made: what they come from, the results that they keep, and their names.
type Made<'c> = BTreeMap<(&'c str, Vec<usize>), &'c str>;

/// Takes the stores of some fields out of a kernel, and all that was for them alone.
fn drop_copies<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    kernel: &Kernel<'c>,
    copied: &BTreeSet<&str>,
    made: &mut Made<'c>,
) -> Result<(), Error> {
    for op in &kernel.body {
        if let TileOp::Store { op, field, .. } = op
            && copied.contains(field)
        {
            mlir::erase(*op);
        }
    }
    let used = |tile: Val<'c>| {
        let body = stencil::function_body(kernel.op).map(mlir::operations).unwrap_or_default();
        body.into_iter().flat_map(mlir::operands).any(|value| mlir::key(value) == mlir::key(tile))
    };
    // Backwards, so that what an apply read is free when it is gone.
    for op in kernel.body.iter().rev() {
        match op {
            TileOp::Apply(apply) => {
                let kept = |(_, (field, tile)): &(usize, &(&str, Val<'c>))| {
                    !copied.contains(field) || used(*tile)
                };
                let kept: Vec<usize> =
                    apply.outputs.iter().enumerate().filter(kept).map(|(place, _)| place).collect();
                if kept.len() < apply.outputs.len() {
                    narrow(builder, module, apply, &kept, made)?;
                }
            }
            TileOp::Load { op, tile, .. } if !used(*tile) => mlir::erase(*op),
            _ => {}
        }
    }
    Ok(())
}

/// Puts an apply of some outputs alone in the place of another.
fn narrow<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    apply: &Apply<'c>,
    kept: &[usize],
    made: &mut Made<'c>,
) -> Result<(), Error> {
    let outputs: Vec<_> =
        kept.iter().filter_map(|place| apply.outputs.get(*place)).copied().collect();
    if !outputs.is_empty() {
        let mut pieces = Vec::new();
        for piece in &apply.pieces {
            let key = (piece.function, kept.to_vec());
            let function = match made.get(&key) {
                Some(function) => *function,
                None => {
                    let name = with_results(builder, module, piece, kept)?;
                    made.insert(key, name);
                    name
                }
            };
            pieces.push(Piece { function, ..*piece });
        }
        // The functions are newer than the program.
        let reads = footprint::of_pieces(&Program::read(module)?, &pieces)?;
        let taken = |name: &str| {
            reads.iter().any(|read| read.field == name)
                || outputs.iter().any(|(updated, _)| *updated == name)
        };
        let inputs = apply.inputs.iter().filter(|(name, _)| taken(name)).copied().collect();
        let narrow = Apply { inputs, outputs: outputs.clone(), ..apply.clone() };
        let builder = Builder { location: apply.op.location(), ..*builder };
        let op = tiled::apply_in_part(&builder, &narrow, &pieces, None, apply.keeps)?;
        mlir::move_before(op, apply.op);
        for ((_, old), new) in outputs.iter().zip(mlir::results(op)) {
            mlir::replace_uses(*old, new);
        }
    }
    mlir::erase(apply.op);
    Ok(())
}

/// The name of a new function that returns some results of a point function, in order.
fn with_results<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    piece: &Piece<'c>,
    kept: &[usize],
) -> Result<&'c str, Error> {
    let function = stencil::function(module, piece.function)?;
    let body = stencil::function_body(function)?;
    let (mut used, mut returned) = (BTreeSet::new(), Vec::new());
    for op in mlir::walk(function) {
        let operands = mlir::operands(op);
        if mlir::name(op) == "func.return" {
            returned = kept.iter().filter_map(|place| operands.get(*place)).copied().collect();
            used.extend(returned.iter().map(|value| mlir::key(*value)));
        } else {
            used.extend(operands.into_iter().map(mlir::key));
        }
    }
    let arguments = stencil::arguments_with_values(function)?;
    let is_used = |value: Val<'c>| used.contains(&mlir::key(value));
    // One argument at least, to stand for those that nothing needs any more.
    let none = !arguments.iter().any(|(_, value)| is_used(*value));
    let needed: Vec<_> =
        arguments.iter().filter(|(_, value)| none || is_used(*value)).cloned().collect();
    let types: Vec<_> =
        needed.iter().map(|(argument, value)| (argument.clone(), value.r#type())).collect();
    let results: Vec<_> = returned.iter().map(|value| value.r#type()).collect();
    let places = kept.iter().map(|place| (place + 1).to_string()).collect::<Vec<_>>().join("_");
    let name = stencil::unused_name(module, &format!("{}_result_{places}", piece.function));
    let builder = &Builder { location: function.location(), ..*builder };
    let (op, entry) = stencil::point_function(builder, &name, &types, &results)?;
    let values = mlir::arguments(entry);
    let value = |old: &Val<'c>| {
        let place = needed.iter().position(|(_, value)| mlir::key(*value) == mlir::key(*old));
        values.get(place.unwrap_or(0)).copied()
    };
    let inputs: Option<Vec<_>> = arguments.iter().map(|(_, old)| value(old)).collect();
    let inputs = inputs.ok_or_else(|| Error::internal("a point function without arguments"))?;
    let all = mlir::inline_block(body, &inputs, entry);
    let outputs: Vec<_> = kept.iter().filter_map(|place| all.get(*place)).copied().collect();
    builder.at(entry).op("func.return", &outputs, &[], &[])?;
    mlir::move_before(op, function);
    stencil::function_name(op)
}
