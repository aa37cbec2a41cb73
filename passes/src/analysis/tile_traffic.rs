//! What a tile kernel moves and computes, read off its tiles: cells of the tile itself, and of its
//! halo.

use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, TileOp};

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

/// Counts a kernel's loads, stores and applies.
pub fn of<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<TileTraffic, Error> {
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
                traffic.own += tile * bytes(field)?;
                traffic.halo += (all - tile).max(0.0) * bytes(field)?;
            }
            TileOp::Apply(apply) => {
                computed += volume(&apply.halo.extents(&kernel.schedule.tile));
                applies += 1.0;
            }
            TileOp::Store { field, .. } => traffic.own += tile * bytes(field)?,
        }
    }
    traffic.redundancy = if applies > 0.0 { computed / (applies * tile) } else { 1.0 };
    Ok(traffic)
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
