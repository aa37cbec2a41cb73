//! What a tile kernel moves and computes, read off its tiles: cells of the tile itself, and of its
//! halo.
//!
//! A field is loaded where a piece reads it, or where its cells keep their old values. Where code
//! differs from piece to piece, the tiles that no such piece touches do not load it: at the gpu
//! level they may, but nothing uses the values, and LLVM removes the loads.

use crate::analysis::used_reads;
use melior::ir::{AffineMap, Module};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{Argument, Piece, Program};
use stencil_dialects::tiled::{Apply, Kernel, TileOp};

/// Bytes and points of one tile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TileTraffic {
    /// Bytes that are loaded and stored of the tile's own cells.
    pub own: f64,
    /// Bytes that are loaded of cells beside the tile.
    pub halo: f64,
    /// Points computed for each point of the result.
    pub redundancy: f64,
}

/// Points per dimension of a box, from its first and last point.
pub type Extents<'a, 'c> = &'a dyn Fn(AffineMap<'c>, AffineMap<'c>) -> Result<Vec<i64>, Error>;

/// Counts a kernel's loads, stores and applies. `extents` is given where code differs from piece
/// to piece; else all tiles load all fields.
pub fn of<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    extents: Option<Extents<'_, 'c>>,
) -> Result<TileTraffic, Error> {
    let volume = |extents: &[i64]| extents.iter().map(|extent| *extent as f64).product::<f64>();
    let bytes = |field: &str| -> Result<f64, Error> {
        Ok(f64::from(mlir::bit_width(program.field(field)?.element).unwrap_or(64)) / 8.0)
    };
    let tile = volume(&kernel.schedule.tile);
    let mut traffic = TileTraffic::default();
    let (mut computed, mut applies) = (0.0, 0.0);
    for op in &kernel.body {
        match op {
            TileOp::Load { field, tile: loaded, .. } => {
                let all = volume(&kernel.tile(*loaded)?.halo.extents(&kernel.schedule.tile));
                let share = match extents {
                    Some(extents) => needed(program, kernel, (field, *loaded), extents)?,
                    None => 1.0,
                };
                traffic.own += share * tile * bytes(field)?;
                traffic.halo += share * (all - tile).max(0.0) * bytes(field)?;
            }
            // The parts of a sum compute the same cells.
            TileOp::Apply(apply) if apply.partial.is_none() => {
                computed += volume(&apply.halo.extents(&kernel.schedule.tile));
                applies += 1.0;
            }
            TileOp::Apply(_) => {}
            TileOp::Store { field, .. } => traffic.own += tile * bytes(field)?,
        }
    }
    traffic.redundancy = if applies > 0.0 { computed / (applies * tile) } else { 1.0 };
    Ok(traffic)
}

/// The part of a kernel's tiles that need a loaded tile of a field.
fn needed<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    (field, loaded): (&str, Val<'c>),
    extents: Extents<'_, 'c>,
) -> Result<f64, Error> {
    let is_loaded = |value: Val<'c>| mlir::key(value) == mlir::key(loaded);
    let mut share = 0.0;
    for op in &kernel.body {
        match op {
            TileOp::Apply(apply) if apply.inputs.iter().any(|(_, tile)| is_loaded(*tile)) => {
                for piece in &apply.pieces {
                    if reads(program, piece, field)? {
                        share += part(program, kernel, (apply, piece), extents)?.0;
                    }
                }
                if apply.outputs.iter().any(|(field, _)| apply.kept(field).is_some_and(is_loaded)) {
                    let mut covered = 0.0;
                    for piece in &apply.pieces {
                        covered += part(program, kernel, (apply, piece), extents)?.1;
                    }
                    share += 1.0 - covered.min(1.0);
                }
            }
            TileOp::Store { tile, .. } if is_loaded(*tile) => return Ok(1.0),
            _ => {}
        }
    }
    Ok(share.min(1.0))
}

/// Whether a piece's function reads a field at fixed places and uses a value.
fn reads<'c>(program: &Program<'c>, piece: &Piece<'c>, field: &str) -> Result<bool, Error> {
    let used = used_reads::of(program.function(piece.function)?)?;
    let is_read = |argument: &Argument| match argument {
        Argument::Read { field: read, .. } => *read == field,
        _ => false,
    };
    Ok(used.iter().any(is_read))
}

/// The parts of a grid's tiles that a piece touches, and of its points that it covers.
fn part<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    (apply, piece): (&Apply<'c>, &Piece<'c>),
    extents: Extents<'_, 'c>,
) -> Result<(f64, f64), Error> {
    let Some((field, _)) = apply.outputs.first() else { return Ok((1.0, 1.0)) };
    let grid = program.grid_of(field)?;
    let (mut touched, mut covered) = (1.0, 1.0);
    let own = extents(piece.lower, piece.upper)?;
    let tile = apply.halo.extents(&kernel.schedule.tile);
    for ((points, tile), all) in own.iter().zip(tile).zip(extents(grid.lower, grid.upper)?) {
        let part = |points: i64| (points as f64 / all.max(1) as f64).min(1.0);
        covered *= part(*points);
        touched *= if *points > 0 { part(points.saturating_add(tile)) } else { 0.0 };
    }
    Ok((touched, covered))
}

/// The first tile kernels of the host schedule: those that take the most steps a launch; each with
/// how often it stands there.
pub fn main_kernels<'c>(module: &Module<'c>) -> Result<Vec<(Kernel<'c>, usize)>, Error> {
    let repeats = stencil_dialects::tiled::repeats(module)?;
    let names = repeats.first().map(|repeat| repeat.kernels.clone()).unwrap_or_default();
    let kernels = stencil_dialects::tiled::kernels(module)?.into_iter();
    let counted = kernels.map(|kernel| {
        let times = names.iter().filter(|name| **name == kernel.name).count();
        (kernel, times)
    });
    Ok(counted.filter(|(_, times)| *times > 0).collect())
}
