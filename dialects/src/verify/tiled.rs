//! Tile kernels: every apply's inputs hold what its outputs are made of.

use crate::attribute;
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::stencil::{self, Argument, Program};
use crate::tiled::{self, Halo, Kernel, TileOp};
use melior::ir::Module;
use melior::ir::operation::OperationLike;

/// Verifies every tile kernel and the host schedule.
pub fn verify(module: &Module, errors: &mut Vec<Error>) {
    match (Program::read(module), tiled::kernels(module)) {
        (Ok(program), Ok(kernels)) => {
            for kernel in &kernels {
                if let Err(error) = verify_kernel(module, &program, kernel) {
                    errors.push(error);
                }
            }
            if let Err(error) = verify_schedule(module, &program) {
                errors.push(error);
            }
        }
        (Err(error), _) | (_, Err(error)) => errors.push(error),
    }
}

fn at(op: Op, message: impl Into<String>) -> Error {
    Error::new(mlir::place(op.location()), message)
}

fn verify_kernel<'c>(module: &Module<'c>, program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    let rank = program.grids.first().map_or(0, stencil::Grid::rank);
    let Kernel { schedule, op, .. } = kernel;
    if schedule.tile.len() != rank || schedule.per_thread.len() != rank {
        return Err(at(*op, format!("tiled.tile and tiled.per_thread need {rank} numbers, one a dimension")));
    }
    if schedule.tile.iter().chain(&schedule.per_thread).any(|cells| *cells < 1) || schedule.steps < 0 {
        return Err(at(*op, "tiled.tile and tiled.per_thread must be positive, tiled.steps not negative"));
    }
    for inner in &kernel.body {
        match inner {
            TileOp::Load { op, field, tile } => {
                program.field(field).map_err(|error| at(*op, error.message))?;
                ranked(*op, &kernel.tile(*tile)?.halo, rank)?;
            }
            TileOp::Store { op, field, tile } => {
                let tile = kernel.tile(*tile)?;
                if tile.field != *field {
                    return Err(at(*op, format!("a tile of @{} is stored to @{field}", tile.field)));
                }
                if !tile.halo.contains(&Halo::none(rank)) {
                    return Err(at(*op, format!("tiled.store of @{field} needs the whole tile, and its operand {}", reach(&tile.halo))));
                }
            }
            TileOp::Apply(apply) => verify_apply(module, program, kernel, apply, rank)?,
        }
    }
    Ok(())
}

fn ranked(op: Op, halo: &Halo, rank: usize) -> Result<(), Error> {
    if halo.lower.len() == rank && halo.upper.len() == rank {
        Ok(())
    } else {
        Err(at(op, format!("lower and upper need {rank} numbers here, one a dimension")))
    }
}

fn reach(halo: &Halo) -> String {
    format!("reaches from {:?} to {:?}", halo.lower, halo.upper)
}

fn verify_apply<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    apply: &tiled::Apply<'c>,
    rank: usize,
) -> Result<(), Error> {
    ranked(apply.op, &apply.halo, rank)?;
    for (field, tile) in &apply.inputs {
        let tile = kernel.tile(*tile)?;
        if tile.field != *field {
            return Err(at(apply.op, format!("a tile of @{} stands for @{field}", tile.field)));
        }
    }
    let require = |field: &str, needed: &Halo, why: &str| {
        program.field(field).map_err(|error| at(apply.op, error.message))?;
        let input = apply.input(field).ok_or_else(|| at(apply.op, format!("@{field} is {why} but is not among `reads`")))?;
        let held = &kernel.tile(input)?.halo;
        if held.contains(needed) {
            return Ok(());
        }
        Err(at(apply.op, format!("the tile of @{field} {}, and the apply needs one that {}: the field is {why}", reach(held), reach(needed))))
    };
    if apply.outputs.is_empty() {
        return Err(at(apply.op, "tiled.apply updates nothing"));
    }
    for (field, _) in &apply.outputs {
        require(field, &apply.halo, "updated, and keeps its value where no piece lies")?;
    }
    for piece in &apply.pieces {
        let function = stencil::function(module, piece.function).map_err(|error| at(apply.op, error.message))?;
        for argument in stencil::arguments(function)? {
            if let Argument::Read { field, offset } = argument {
                let why = format!("read at {offset:?} by @{}", piece.function);
                require(field, &apply.halo.shifted(&offset), &why)?;
            }
        }
    }
    Ok(())
}

fn verify_schedule(module: &Module, program: &Program) -> Result<(), Error> {
    // Kernels stand in the module before they are lowered, and in a gpu.module afterwards, where
    // the upstream conversions change the kind of their functions.
    let top = mlir::operations(mlir::body(module));
    let lowered = top.iter().filter(|op| mlir::name(**op) == "gpu.module").filter_map(|op| mlir::entry(*op));
    let known: Vec<_> = (top.iter().copied().chain(lowered.flat_map(mlir::operations)))
        .filter_map(|op| mlir::attribute(op, "sym_name").and_then(attribute::as_string))
        .collect();
    for repeat in tiled::repeats(module)? {
        if repeat.count.result_count() != 1 || repeat.count.dim_count() != 0 || repeat.count.symbol_count() != program.params.len() + 1 {
            return Err(at(repeat.op, "the count of a tiled.repeat has one result, a symbol a run-time size, and the steps as last symbol"));
        }
        for name in repeat.kernels {
            if !known.contains(&name) {
                return Err(at(repeat.op, format!("there is no kernel @{name}")));
            }
        }
    }
    Ok(())
}
