//! Tile kernels: every apply's inputs hold the cells that its outputs are made of. Schedules: every
//! launch names a kernel.

use super::{at, divides, launch, rows, tile_values, wave};
use crate::attribute;
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::stencil::{self, Argument, Program};
use crate::tiled::{
    self, Halo, Keeps, Kernel, Launch, MOST_CELLS, MOST_STEPS, Region, Schedule, TileOp,
};
use crate::verify::stencil::pieces as stencil_pieces;
use melior::ir::Module;
use std::collections::BTreeSet;

/// Verifies every tile kernel, every lowered kernel and the host schedule.
pub fn verify(module: &Module, errors: &mut Vec<Error>) {
    match (Program::read(module), tiled::kernels(module), tiled::launches(module)) {
        (Ok(program), Ok(kernels), Ok(launches)) => {
            let mut sound_pieces = SoundPieces::new();
            for kernel in &kernels {
                verify_kernel(&program, kernel, &mut sound_pieces, errors);
            }
            errors.extend(
                launches.iter().filter_map(|lowered| launch::verify(&program, lowered).err()),
            );
            errors.extend(verify_names(module, &kernels, &launches).err());
            errors.extend(verify_schedule(module, &program, &kernels).err());
        }
        (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => errors.push(error),
    }
    if tiled::stated_index_width(module).is_some_and(|width| !matches!(width, Some(32 | 64))) {
        errors.push(at(mlir::module_op(module), "tiled.index_width must be 32 or 64"));
    }
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
    let updated = kernel.applies().flat_map(|apply| &apply.outputs).map(|(field, _)| *field);
    let rank = rank_of(program, stored.chain(updated));
    if let Err(error) = verify_schedule_of(kernel.op, kernel.name, &kernel.schedule, rank) {
        return errors.push(error);
    }
    if mlir::entry(kernel.op).is_some_and(|body| !mlir::arguments(body).is_empty()) {
        return errors.push(at(
            kernel.op,
            format!(
                "the tile kernel @{} has arguments; remove them, because tiled.load fetches tiles",
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
                let apply = stencil::Apply { op: apply.op, updates, pieces, repeats: Vec::new() };
                stencil_pieces(program, &apply, partial, errors);
            }
            if errors.len() == before {
                sound_pieces.insert(key);
                errors.extend(verify_apply(program, kernel, apply).err());
            }
        }
    }
    errors.extend(tiled::verify_rotations(program, kernel).err());
    errors.extend(wave::verify(program, kernel, rank).err());
    errors.extend(rows::verify(program, kernel).err());
    if sound && errors.is_empty() {
        errors.extend(tile_values::wraps(program, kernel).err());
        errors.extend(tile_values::gathered(program, kernel).err());
        errors.extend(tile_values::defined(program, kernel).err());
        if kernel.schedule.region == Region::Fixed {
            errors.extend(tile_values::valid(program, kernel).err());
        }
        errors.extend(verify_steps(kernel).err());
        errors.extend(tile_values::newest(kernel).err());
    }
}

/// Checks that the applies of a kernel go through its steps in order.
fn verify_steps(kernel: &Kernel) -> Result<(), Error> {
    let mut next = 0;
    for apply in kernel.applies() {
        if apply.step != next && apply.step != next - 1 {
            let step = apply.step;
            return Err(at(
                apply.op,
                format!(
                    "a tiled.apply of step {step} stands where step {next} begins; the applies of \
                     a kernel go through its steps in order"
                ),
            ));
        }
        next = apply.step + 1;
    }
    // All sweeps of a launch run the same applies.
    let steps = (kernel.schedule.steps / kernel.wave.all_sweeps()).max(1);
    if next == steps || next == 0 {
        return Ok(());
    }
    Err(at(
        kernel.op,
        format!(
            "the kernel @{} has {steps} steps, and no tiled.apply computes step {next}",
            kernel.name
        ),
    ))
}

/// Checks that kernels, lowered or not, have names of their own in one `gpu.module`.
fn verify_names(module: &Module, kernels: &[Kernel], launches: &[Launch]) -> Result<(), Error> {
    let top = mlir::operations(mlir::body(module)).into_iter();
    let mut containers = top.filter(|op| mlir::name(*op) == "gpu.module");
    if let (Some(_), Some(second)) = (containers.next(), containers.next()) {
        return Err(at(second, "a program has one gpu.module; move its kernels to the first"));
    }
    let lowered = |kernel: &&Kernel| launches.iter().any(|launch| launch.name == kernel.name);
    match kernels.iter().find(lowered) {
        Some(kernel) => Err(at(
            kernel.op,
            format!("a lowered kernel has the name @{} too; rename one of them", kernel.name),
        )),
        None => Ok(()),
    }
}

/// The rank of a kernel that updates these fields.
pub(super) fn rank_of<'c>(
    program: &Program<'c>,
    mut updated: impl Iterator<Item = &'c str>,
) -> usize {
    let grid = updated.find_map(|field| program.grid_of(field).ok());
    grid.or(program.grids.first()).map_or(0, stencil::Grid::rank)
}

/// Names, tiles and steps that a schedule can have.
pub(super) fn verify_schedule_of(
    op: Op,
    name: &str,
    schedule: &Schedule,
    rank: usize,
) -> Result<(), Error> {
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
    // PTX has no other names, and LLVM ends the process at one. WARP_SZ is a constant of PTX.
    if !name.starts_with(|first: char| first.is_ascii_alphabetic())
        || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        || name == "WARP_SZ"
    {
        return Err(at(
            op,
            format!(
                "@\"{name}\" can't name a kernel; choose a letter, then letters, digits and _, \
                 and not WARP_SZ"
            ),
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
                        extent_text(&held.halo)
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

pub(super) fn extent_text(halo: &Halo) -> String {
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
        // In a fixed region only stored cells matter: see `tile_values::valid`.
        if held.contains(needed) || kernel.schedule.region == Region::Fixed && reads.is_near() {
            return Ok(());
        }
        Err(at(
            apply.op,
            format!(
                "the tile of @{field} {}, and the apply needs one that {}: the field is {why}",
                extent_text(held),
                extent_text(needed)
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
        let function =
            program.function(piece.function).map_err(|error| at(apply.op, error.message))?;
        for argument in stencil::arguments(function)? {
            if let Argument::Read { field, offset } = argument {
                let why = format!("read at {offset:?} by @{}", piece.function);
                let declared = program.field(field).map_err(|error| at(apply.op, error.message))?;
                require(field, &Halo::of_read(declared, &offset), &why)?;
            }
        }
    }
    Ok(())
}

/// Checks that a partial result belongs to the updated field and holds all computed cells.
fn verify_partial<'c>(kernel: &Kernel<'c>, apply: &tiled::Apply<'c>) -> Result<(), Error> {
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
            extent_text(&partial.halo),
            extent_text(&apply.halo)
        ),
    ))
}

fn verify_schedule(module: &Module, program: &Program, kernels: &[Kernel]) -> Result<(), Error> {
    // Kernels stand in the module before they are lowered, and in a gpu.module afterwards, where
    // the upstream conversions change the kind of their functions.
    let top = mlir::operations(mlir::body(module)).into_iter();
    let lowered = top
        .filter(|op| matches!(mlir::name(*op), "gpu.module" | "builtin.module"))
        .filter_map(mlir::entry)
        .flat_map(mlir::operations);
    let lowered =
        lowered.filter_map(|op| mlir::attribute(op, "sym_name").and_then(attribute::as_string));
    // A reduction that is not lowered yet stands for its kernels.
    let reduced = program.reduces.iter().map(|reduce| reduce.field);
    let known: Vec<_> =
        kernels.iter().map(|kernel| kernel.name).chain(reduced).chain(lowered).collect();
    for repeat in tiled::repeats(module)? {
        if repeat.count.result_count() != 1
            || repeat.count.dim_count() != 0
            || repeat.count.symbol_count() != program.params.len() + 1
        {
            return Err(at(
                repeat.op,
                "the count of a tiled.repeat needs one result, a symbol a run-time size, and the \
                 steps as last symbol",
            ));
        }
        if repeat.part.is_some() && program.until.is_none() {
            return Err(at(repeat.op, "tiled.until needs a stencil.until in the module"));
        }
        divides(repeat.op, repeat.count, "the count of a tiled.repeat")?;
        if let Some(name) = repeat.kernels.iter().find(|name| !known.contains(name)) {
            return Err(at(repeat.op, format!("there is no kernel @{name}")));
        }
    }
    Ok(())
}
