//! Tile kernels: every apply's inputs hold what its outputs are made of; and what lowered kernels
//! say of their launch is possible.

use crate::attribute;
use crate::cover::Defined;
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::stencil::{self, Argument, Program};
use crate::tiled::{
    self, Binding, Halo, Keeps, Kernel, Launch, MOST_CELLS, MOST_STEPS, Region, Schedule, TileOp,
};
use crate::verify::stencil::pieces as stencil_pieces;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{AffineMap, Module, ShapedTypeLike, Type, ValueLike};
use std::collections::{BTreeMap, BTreeSet};

/// Verifies every tile kernel, every lowered kernel and the host schedule.
pub fn verify(module: &Module, errors: &mut Vec<Error>) {
    match (Program::read(module), tiled::kernels(module), tiled::launches(module)) {
        (Ok(program), Ok(kernels), Ok(launches)) => {
            let mut sound_pieces = SoundPieces::new();
            for kernel in &kernels {
                verify_kernel(&program, kernel, &mut sound_pieces, errors);
            }
            errors
                .extend(launches.iter().filter_map(|launch| verify_launch(&program, launch).err()));
            errors.extend(verify_schedule(module, &program, &kernels).err());
        }
        (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => errors.push(error),
    }
    if tiled::stated_index_width(module).is_some_and(|width| !matches!(width, Some(32 | 64))) {
        errors.push(at(mlir::module_op(module), "tiled.index_width must be 32 or 64"));
    }
}

fn at(op: Op, message: impl Into<String>) -> Error {
    Error::new(mlir::place(op.location()), message)
}

/// Updates and pieces of applies that were found sound, and whether they have a partial result: the
/// applies of all steps and kernels are few different ones.
type SoundPieces = BTreeSet<([Option<usize>; 2], bool)>;

fn verify_kernel<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    sound_pieces: &mut SoundPieces,
    errors: &mut Vec<Error>,
) {
    let stored = kernel.body.iter().filter_map(|op| match op {
        TileOp::Store { field, .. } => Some(*field),
        _ => None,
    });
    let rank = rank_of(program, stored);
    if let Err(error) = verify_schedule_of(kernel.op, kernel.name, &kernel.schedule, rank) {
        return errors.push(error);
    }
    if mlir::entry(kernel.op).is_some_and(|body| !mlir::arguments(body).is_empty()) {
        return errors.push(at(
            kernel.op,
            format!(
                "the tile kernel @{} takes no arguments; tiled.load fetches its tiles",
                kernel.name
            ),
        ));
    }
    let sound = errors.is_empty();
    for inner in &kernel.body {
        if let Err(error) = verify_tile_op(program, kernel, inner, rank) {
            errors.push(error);
        } else if let TileOp::Apply(apply) = inner {
            let before = errors.len();
            let updates = apply.outputs.iter().map(|(field, _)| *field).collect();
            let partial = apply.partial.is_some();
            let attribute = |name| mlir::attribute(apply.op, name).map(mlir::attribute_key);
            let key = (["updates", "pieces"].map(attribute), partial);
            if !sound_pieces.contains(&key) {
                let pieces = apply.pieces.clone();
                let apply = stencil::Apply { op: apply.op, updates, pieces };
                stencil_pieces(program, &apply, partial, errors);
            }
            if errors.len() == before {
                sound_pieces.insert(key);
                errors.extend(verify_apply(program, kernel, apply).err());
            }
        }
    }
    if sound && errors.is_empty() {
        errors.extend(verify_wraps(program, kernel).err());
        errors.extend(verify_defined(program, kernel).err());
        if kernel.schedule.region == Region::Fixed {
            errors.extend(verify_valid(program, kernel).err());
        }
    }
}

/// The rank of a kernel that updates these fields.
fn rank_of<'c>(program: &Program<'c>, mut updated: impl Iterator<Item = &'c str>) -> usize {
    let grid = updated.find_map(|field| program.grid_of(field).ok());
    grid.or(program.grids.first()).map_or(0, stencil::Grid::rank)
}

/// Checks that tiles which go on beyond the grid have one grid to repeat. An apply that computes
/// the tile alone wants no cells there.
fn verify_wraps<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    if !kernel.applies().any(tiled::Apply::reaches_beyond) || !tiled::wraps(program, kernel)? {
        return Ok(());
    }
    let mut first = None;
    for op in &kernel.body {
        let (TileOp::Load { op, field, .. } | TileOp::Store { op, field, .. }) = op else {
            continue;
        };
        let grid = program.grid_of(field)?;
        if *first.get_or_insert((grid.lower, grid.upper)) != (grid.lower, grid.upper) {
            return Err(at(
                *op,
                format!(
                    "@{field} lies on other points than the first field, and @{} reads a periodic \
                     field and computes more than the tile",
                    kernel.name
                ),
            ));
        }
    }
    Ok(())
}

/// Checks that every cell which is read or stored has a value. A tile that is loaded has them all;
/// the result of an apply has those of its pieces, and of its operand of the same field where it
/// has one.
fn verify_defined<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    let mut defined: BTreeMap<usize, Defined> = BTreeMap::new();
    for op in &kernel.body {
        match op {
            TileOp::Load { tile, .. } => drop(defined.insert(mlir::key(*tile), Defined::All)),
            TileOp::Apply(apply) => {
                for piece in &apply.pieces {
                    for argument in program.arguments(piece.function)? {
                        let Argument::Read { field, offset } = argument else { continue };
                        let known =
                            apply.input(field).and_then(|tile| defined.get(&mlir::key(tile)));
                        let held = known.is_none_or(|known| {
                            program
                                .field(field)
                                .is_ok_and(|field| known.holds_read(program, piece, field, offset))
                        });
                        if !held {
                            return Err(at(
                                apply.op,
                                format!(
                                    "@{} reads @{field} at {offset:?} where it may have no value: \
                                     the apply that makes the tile has no \
                                     operand of @{field} for the cells that its pieces leave out",
                                    piece.function
                                ),
                            ));
                        }
                    }
                }
                for (field, tile) in &apply.outputs {
                    let before =
                        apply.kept(field).and_then(|tile| defined.get(&mlir::key(tile)).cloned());
                    let after = before.unwrap_or_else(|| Defined::Pieces(Vec::new()));
                    let after = after.and(program, program.grid_of(field)?, &apply.pieces);
                    defined.insert(mlir::key(*tile), after);
                }
            }
            TileOp::Store { op, field, tile } => {
                if defined.get(&mlir::key(*tile)).is_some_and(|known| !known.is_whole()) {
                    return Err(at(
                        *op,
                        format!(
                            "tiled.store of @{field} needs a value in every cell, and the pieces \
                             of its apply may leave some out; \
                             give the apply an operand of @{field}"
                        ),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Checks that the cells which are stored come from cells that the tiles hold. Of a load all cells
/// are valid; of an apply those that read no others, and with the operand's cell keep no other.
fn verify_valid<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    let mut valid: BTreeMap<usize, Halo> = BTreeMap::new();
    for op in &kernel.body {
        match op {
            TileOp::Load { tile, .. } => {
                drop(valid.insert(mlir::key(*tile), kernel.tile(*tile)?.halo.clone()))
            }
            TileOp::Apply(apply) => {
                let rank = apply.halo.lower.len();
                let mut reads: Vec<_> =
                    apply.outputs.iter().map(|(field, _)| (*field, Halo::none(rank))).collect();
                for piece in &apply.pieces {
                    for argument in program.arguments(piece.function)? {
                        if let Argument::Read { field, offset } = argument {
                            reads.push((*field, Halo::of_read(program.field(field)?, offset)));
                        }
                    }
                }
                let mut cells = apply.halo.clone();
                for (field, reach) in reads {
                    if let Some(held) =
                        apply.input(field).and_then(|tile| valid.get(&mlir::key(tile)))
                    {
                        cells = cells.whose_reach_is_in(&reach, held);
                    }
                }
                valid.extend(
                    apply.outputs.iter().map(|(_, tile)| (mlir::key(*tile), cells.clone())),
                );
            }
            TileOp::Store { op, field, tile } => {
                let Some(cells) = valid.get(&mlir::key(*tile)) else { continue };
                if !cells.contains(&Halo::none(cells.lower.len())) {
                    return Err(at(
                        *op,
                        format!(
                            "tiled.store of @{field} needs the whole tile, and what comes from \
                             cells that tiles hold {}",
                            reach(cells)
                        ),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Names, tiles and steps that a schedule can have.
fn verify_schedule_of(op: Op, name: &str, schedule: &Schedule, rank: usize) -> Result<(), Error> {
    if schedule.tile.len() != rank || schedule.per_thread.len() != rank {
        return Err(at(
            op,
            format!("tiled.tile and tiled.per_thread need {rank} numbers, one a dimension"),
        ));
    }
    if schedule
        .tile
        .iter()
        .chain(&schedule.per_thread)
        .any(|cells| !(1..=MOST_CELLS).contains(cells))
        || !(0..=MOST_STEPS).contains(&schedule.steps)
    {
        return Err(at(
            op,
            format!(
                "tiled.tile and tiled.per_thread must be from 1 to {MOST_CELLS}, tiled.steps from \
                 0 to {MOST_STEPS}"
            ),
        ));
    }
    // PTX knows no other names, and LLVM ends the process at one.
    if !name.starts_with(|first: char| first.is_ascii_alphabetic())
        || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    {
        return Err(at(
            op,
            format!("@\"{name}\" can't name a kernel: take a letter, then letters, digits and _"),
        ));
    }
    Ok(())
}

fn verify_tile_op<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    inner: &TileOp<'c>,
    rank: usize,
) -> Result<(), Error> {
    match inner {
        TileOp::Load { op, field, tile } => {
            let grid = program.grid_of(field).map_err(|error| at(*op, error.message))?;
            if grid.rank() != rank {
                return Err(at(
                    *op,
                    format!(
                        "@{field} lies on a grid of rank {}, and the kernel's tiles have {rank}",
                        grid.rank()
                    ),
                ));
            }
            ranked(*op, &kernel.tile(*tile)?.halo, rank)
        }
        TileOp::Store { op, field, tile } => {
            let held = kernel.tile(*tile)?;
            if program.grid_of(field).map_err(|error| at(*op, error.message))?.rank() != rank {
                return Err(at(
                    *op,
                    format!("@{field} lies on a grid of another rank than the kernel's {rank}"),
                ));
            }
            if held.field != *field {
                return Err(at(*op, format!("a tile of @{} is stored to @{field}", held.field)));
            }
            if !held.halo.contains(&Halo::none(rank)) {
                return Err(at(
                    *op,
                    format!(
                        "tiled.store of @{field} needs the whole tile, and its operand {}",
                        reach(&held.halo)
                    ),
                ));
            }
            if !kernel.applies().flat_map(|apply| &apply.outputs).any(|(_, output)| output == tile)
            {
                return Err(at(
                    *op,
                    format!(
                        "tiled.store of @{field} needs the result of a tiled.apply; what is loaded \
                         is there already"
                    ),
                ));
            }
            Ok(())
        }
        TileOp::Apply(apply) => {
            ranked(apply.op, &apply.halo, rank)?;
            let steps = kernel.schedule.steps.max(1);
            if (0..steps).contains(&apply.step) {
                return Ok(());
            }
            Err(at(
                apply.op,
                format!(
                    "the step {} lies outside of the kernel's {steps}, which count from 0",
                    apply.step
                ),
            ))
        }
    }
}

fn ranked(op: Op, halo: &Halo, rank: usize) -> Result<(), Error> {
    if halo.lower.len() != rank || halo.upper.len() != rank {
        return Err(at(op, format!("lower and upper need {rank} numbers here, one a dimension")));
    }
    if !halo.is_near() {
        return Err(at(op, format!("lower and upper must be from -{MOST_CELLS} to {MOST_CELLS}")));
    }
    Ok(())
}

fn reach(halo: &Halo) -> String {
    format!("reaches from {:?} to {:?}", halo.lower, halo.upper)
}

fn verify_apply<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    apply: &tiled::Apply<'c>,
) -> Result<(), Error> {
    for (field, tile) in &apply.inputs {
        let tile = kernel.tile(*tile)?;
        if tile.field != *field {
            return Err(at(apply.op, format!("a tile of @{} stands for @{field}", tile.field)));
        }
    }
    let require = |field: &str, reads: &Halo, why: &str| {
        let needed = &apply.halo.reaching(reads);
        let input = apply
            .input(field)
            .ok_or_else(|| at(apply.op, format!("@{field} is {why} but is not among `reads`")))?;
        let held = &kernel.tile(input)?.halo;
        // Of fixed regions the cells that are stored matter alone: see `verify_valid`.
        if held.contains(needed) || kernel.schedule.region == Region::Fixed && reads.is_near() {
            return Ok(());
        }
        Err(at(
            apply.op,
            format!(
                "the tile of @{field} {}, and the apply needs one that {}: the field is {why}",
                reach(held),
                reach(needed)
            ),
        ))
    };
    // Without an operand an updated field has values where pieces lie, and nowhere else.
    for (field, _) in apply.outputs.iter().filter(|(field, _)| apply.input(field).is_some()) {
        if apply.keeps == Keeps::Old {
            require(
                field,
                &Halo::none(apply.halo.lower.len()),
                "updated, and keeps its value where no piece lies",
            )?;
        }
    }
    verify_partial(kernel, apply)?;
    for piece in &apply.pieces {
        program.function(piece.function).map_err(|error| at(apply.op, error.message))?;
        for argument in program.arguments(piece.function)? {
            if let Argument::Read { field, offset } = argument {
                let why = format!("read at {offset:?} by @{}", piece.function);
                let declared = program.field(field).map_err(|error| at(apply.op, error.message))?;
                require(field, &Halo::of_read(declared, offset), &why)?;
            }
        }
    }
    Ok(())
}

/// That a partial result is one of the updated field, and holds all cells that are computed.
fn verify_partial<'c>(kernel: &Kernel<'c>, apply: &tiled::Apply<'c>) -> Result<(), Error> {
    if kernel.schedule.strategy != "stream"
        && (apply.partial.is_some() || apply.keeps != Keeps::Old)
    {
        return Err(at(
            apply.op,
            "tiled.partial and tiled.keeps are for kernels of the strategy stream",
        ));
    }
    let Some(partial) = apply.partial else {
        return match apply.keeps {
            Keeps::Partial => {
                Err(at(apply.op, "an apply that keeps the partial result needs tiled.partial"))
            }
            _ => Ok(()),
        };
    };
    let (partial, fields) = (kernel.tile(partial)?, &apply.outputs);
    if fields.len() != 1 || fields.iter().any(|(field, _)| *field != partial.field) {
        return Err(at(
            apply.op,
            format!(
                "a partial result of @{} is for an apply that updates this field and no other",
                partial.field
            ),
        ));
    }
    if partial.halo.contains(&apply.halo) {
        return Ok(());
    }
    Err(at(
        apply.op,
        format!(
            "the partial result {}, and the apply {}",
            reach(&partial.halo),
            reach(&apply.halo)
        ),
    ))
}

/// That the arguments of a lowered kernel are what they are bound to, and its grid and block
/// possible.
fn verify_launch(program: &Program, launch: &Launch) -> Result<(), Error> {
    let written = launch.bindings.iter().filter_map(|binding| match binding {
        Binding::Write(field) | Binding::ReadWrite(field) => Some(*field),
        _ => None,
    });
    let rank = rank_of(program, written);
    verify_schedule_of(launch.op, launch.name, &launch.schedule, rank)?;
    let counts = |map: AffineMap| {
        map.result_count() == 1
            && map.dim_count() == 0
            && map.symbol_count() == program.params.len()
    };
    if !counts(launch.grid) {
        return Err(at(
            launch.op,
            "tiled.grid has one result, the number of blocks, and one symbol a run-time size",
        ));
    }
    if launch.bands.is_some_and(|bands| !counts(bands.rows) || bands.reach < 0) {
        return Err(at(
            launch.op,
            "tiled.rows has one result, the number of rows of tiles, and one symbol a run-time \
             size, and tiled.reach is not negative",
        ));
    }
    if launch.bands.is_some() != launch.bindings.contains(&Binding::Row) {
        return Err(at(
            launch.op,
            "a kernel with tiled.rows takes its first row as an argument, and no other does",
        ));
    }
    if launch.block.iter().any(|threads| !(1..=i64::from(u16::MAX)).contains(threads)) {
        return Err(at(
            launch.op,
            format!(
                "a block has a positive number of threads in each direction, and known_block_size \
                 is {:?}",
                launch.block
            ),
        ));
    }
    let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
    if arguments.len() < launch.bindings.len() {
        return Err(at(launch.op, "the kernel has fewer arguments than bindings"));
    }
    for (binding, argument) in launch.bindings.iter().zip(arguments) {
        let fits = binds(program, binding, argument.r#type())
            .map_err(|error| at(launch.op, error.message))?;
        if !fits {
            return Err(at(
                launch.op,
                format!("an argument of type {} can't be bound to {binding:?}", argument.r#type()),
            ));
        }
    }
    Ok(())
}

/// Whether an argument of a type can be bound so; an error where nothing of that name is declared.
fn binds(program: &Program, binding: &Binding, ty: Type) -> Result<bool, Error> {
    let integer = |bits: &str| ty.to_string() == bits;
    Ok(match binding {
        Binding::Read(field) | Binding::Write(field) | Binding::ReadWrite(field) => {
            let element = program.field(field)?.element;
            MemRefType::try_from(ty).is_ok_and(|memref| memref.element() == element)
        }
        Binding::Param(name) => program.params.contains(name) && integer("index"),
        Binding::Scalar(name) => {
            program.scalars.iter().any(|scalar| scalar.name == *name && scalar.element == ty)
        }
        Binding::Step => integer("i64"),
        Binding::Row => integer("index"),
    })
}

fn verify_schedule(module: &Module, program: &Program, kernels: &[Kernel]) -> Result<(), Error> {
    // Kernels stand in the module before they are lowered, and in a gpu.module afterwards, where
    // the upstream conversions change the kind of their functions.
    let top = mlir::operations(mlir::body(module)).into_iter();
    let lowered = top
        .filter(|op| mlir::name(*op) == "gpu.module")
        .filter_map(mlir::entry)
        .flat_map(mlir::operations);
    let lowered =
        lowered.filter_map(|op| mlir::attribute(op, "sym_name").and_then(attribute::as_string));
    let known: Vec<_> = kernels.iter().map(|kernel| kernel.name).chain(lowered).collect();
    for repeat in tiled::repeats(module)? {
        if repeat.count.result_count() != 1
            || repeat.count.dim_count() != 0
            || repeat.count.symbol_count() != program.params.len() + 1
        {
            return Err(at(
                repeat.op,
                "the count of a tiled.repeat has one result, a symbol a run-time size, and the \
                 steps as last symbol",
            ));
        }
        for name in repeat.kernels {
            if !known.contains(&name) {
                return Err(at(repeat.op, format!("there is no kernel @{name}")));
            }
        }
    }
    Ok(())
}
