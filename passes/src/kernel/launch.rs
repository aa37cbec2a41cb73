//! The launch of a lowered kernel: its grid, its block, and the registers that it may take, as
//! attributes of the `gpu.func`.

use super::cut::{self, Tiling};
use super::lanes::WARP;
use super::shared_memory;
use super::tile_place::Tiles;
use crate::analysis::hull::Hull;
use crate::subject::Subject;
use melior::ir::Attribute;
use melior::ir::r#type::MemRefType;
use stencil_dialects::affine::symbolic;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{self, Bands, Halo, Kernel, TileOp};

/// Registers that a thread of a kernel with shared memory should have.
const REGISTERS: i64 = 64;

/// What a frame is made for.
pub struct FrameSpec<'c, 's> {
    /// The tile kernel.
    pub kernel: &'s Kernel<'c>,
    /// Threads of a block per dimension, slowest first; the fastest becomes x.
    pub threads: &'s [i64],
    /// Types of the shared buffers.
    pub shared: &'s [MemRefType<'c>],
    /// Whether the kernel updates its fields in place.
    pub in_place: bool,
    /// Warps of a block, where each warp has a tile of its own and `threads` is for one of them.
    pub warps: Option<i64>,
    /// Whether tiles at a rim, which take longer, have the lowest numbers.
    pub rim_first: bool,
    /// Whether tiles of the first and the last column are halved, where the grid's size is known
    /// and tiles at a rim have the lowest numbers.
    pub halves: bool,
    /// Cells at both ends of the grid per dimension that the first and the last tile take beside
    /// their own, if the grid's size is known; empty for none. A negative number before the first
    /// dimension makes its first tile smaller.
    pub margin: &'s [[i64; 2]],
    /// The most registers that a thread may take, where the lowering knows.
    pub registers: Option<i64>,
    /// Registers that a thread needs by the lowering's estimate; 0 where it has none.
    pub estimate: i64,
    /// Distance, in tile rows, of the farthest row that a tile reads; none if launches can't be
    /// cut. See [`tiled::Bands`].
    pub row_distance: Option<i64>,
    /// The cells around a tile that the kernel loads of fields, where these are more than those of
    /// its tiles.
    pub loads: Vec<(&'c str, Halo)>,
}

impl<'c, 's> FrameSpec<'c, 's> {
    /// Threads that each work on cells of one tile, without shared memory.
    pub fn plain(kernel: &'s Kernel<'c>, threads: &'s [i64]) -> Self {
        Self {
            kernel,
            threads,
            shared: &[],
            in_place: false,
            warps: None,
            rim_first: false,
            halves: false,
            margin: &[],
            registers: None,
            estimate: 0,
            row_distance: None,
            loads: Vec::new(),
        }
    }
}

/// What [`FrameSpec::loads`] is, of the cells around a tile that a load touches.
///
/// # Errors
/// Those of `touched`.
pub fn loads<'c>(
    kernel: &Kernel<'c>,
    touched: impl Fn(&TileOp<'c>) -> Result<Halo, Error>,
) -> Result<Vec<(&'c str, Halo)>, Error> {
    let mut all = Vec::new();
    for op in &kernel.body {
        if let TileOp::Load { field, .. } = op {
            all.push((*field, touched(op)?));
        }
    }
    Ok(all)
}

/// The attributes of the `gpu.func` that a launch needs.
///
/// # Errors
/// A function or a field that is not there.
pub fn attributes<'c>(
    builder: &Builder<'c>,
    subject: &Subject<'c, '_>,
    spec: &FrameSpec<'c, '_>,
    (hull, tiles, margin): (&Hull<'c>, &Tiles<'c>, &[[i64; 2]]),
) -> Result<Vec<(&'static str, Attribute<'c>)>, Error> {
    let context = builder.context;
    let map = |count| symbolic(context, subject.program.params.len(), &[count]);
    let rows = spec.row_distance.zip(tiles.counts.first());
    let bands = rows.map(|(row_distance, rows)| Bands { rows: map(*rows), row_distance });
    let mut block = [1_i32; 3];
    for (axis, threads) in block.iter_mut().zip(spec.threads.iter().rev()) {
        *axis = i32::try_from(*threads).unwrap_or(i32::MAX);
    }
    if let Some(warps) = spec.warps {
        block = [i32::try_from(warps.saturating_mul(WARP)).unwrap_or(i32::MAX), 1, 1];
    }
    let grid = (map(tiles.blocks), bands);
    let mut attributes = tiled::launch_attributes(builder, grid, block, &spec.kernel.schedule);
    attributes.extend(tiled::rotations_attribute(spec.kernel.op));
    let tiling = Tiling {
        counts: &tiles.counts,
        before: margin.iter().map(|[before, _]| *before).collect(),
        each: spec.warps.unwrap_or(1),
        order: tiles.order(spec),
        loads: &spec.loads,
    };
    match spec.kernel.wave.sweeps {
        Some(_) => attributes.push(tiled::flags_attribute(map(tiles.blocks))),
        None => {
            let cut = cut::of_tiles(context, builder, subject, spec.kernel, hull, tiling)?;
            attributes.extend(cut);
        }
    }
    attributes.extend(tiled::sweeps_attribute(builder, &spec.kernel.wave));
    attributes.push(("sym_name", attribute::string(context, spec.kernel.name)));
    attributes.push(("gpu.kernel", Attribute::unit(context)));
    if let Some(registers) = spec.registers {
        attributes.push(("nvvm.maxnreg", attribute::integer(context, registers)));
        attributes.extend(tiled::lacking_attribute(builder, spec.estimate - registers));
    } else if !spec.shared.is_empty() {
        let blocks =
            shared_memory::resident_blocks(spec.threads, spec.shared, REGISTERS, subject.device);
        attributes.push(("nvvm.minctasm", attribute::integer(context, blocks)));
    }
    Ok(attributes)
}
