//! `lower-strip`: wavefront kernels whose warps compute strips of rows in registers.
//!
//! A block owns some strips, one below the other, a warp for each. A lane owns some rows of the
//! strip (`geometry.rs`). It keeps the values that it reads of the same sweep in registers and gets
//! those of the lane above by shuffles. All warps meet at a barrier after each tile; a strip is
//! some tiles behind the strip above it. Other warps of the block move data meanwhile, so that no
//! access to global memory delays a strip:
//!
//! | warps | what they do, beside tile `t` |
//! |---|---|
//! | one for each strip | store tile `t - 1`: whole rows of a tile, from shared memory |
//! | one or two for each strip | load old values and sequences of tile `t + 1`, if there are any |
//! | one | waits for the block above, and loads its values for tile `t + 1` |
//! | one | hands the last rows of tile `t - 1` to the block below, and signals it |
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), sections 3 and 4. There, a block's threads
//! exchange values through shared memory with a barrier for each diagonal.
//!
//! Needs: tile kernels of strategy `strip` with one apply in two dimensions. Guarantees: a
//! `gpu.func` for each, with an argument for its flags and one for their epoch. Tiles whose points
//! all lie in the main piece run code of their own. Fields of `tiled.last_rows` have these rows in
//! memory alone, and reductions of `tiled.row_values` are computed row by row (`row_values.rs`).
//!
//! Declines: dependences that lead above the rows of the lane before, reads from more than 16 cells
//! away, reads of old values by a boundary rule, fields on different points, elements that lanes
//! can't exchange, tiles that strips don't divide, blocks beyond the device's limits, and
//! kernels that are not skewed or wait by other means than flags.

use super::apart;
use super::block::Block;
use super::code::Strips;
use super::frozen;
use super::geometry::StripShape;
use super::in_flight::InFlight;
use super::old_values::OldValues;
use super::plan::{Function, Plan, Warps};
use super::row_values::Leaving;
use super::{NAME, Strip};
use crate::analysis::hull::Hull;
use crate::analysis::swept::reads_no_old;
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_THREADS};
use crate::kernel::early_loads;
use crate::kernel::field_buffers::extents;
use crate::kernel::function::{self, KernelFunction};
use crate::kernel::lanes::WARP;
use crate::kernel::peers::Peers;
use crate::kernel::resident::{self, Blocks, Meeting};
use crate::kernel::scope::Scope;
use crate::kernel::shared_memory::shared_type;
use crate::kernel::signature::Arguments;
use crate::kernel::tile_kernels;
use crate::kernel::tile_place;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::strategy::Strategy;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use std::cell::RefCell;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil;
use stencil_dialects::tiled::{Apply, Kernel};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-strip",
    summary: "lower tile kernels of strategy strip: wavefronts in the registers of warps",
    options: &[MAX_THREADS],
    read: |options: &Options| Ok(Box::new(LowerStrip { limits: BlockLimits::read(options)? })),
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerStrip {
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerStrip {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.limits.options()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::leaving_rows(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            let at = |error: Error| error.at(mlir::place(kernel.op.location()));
            lower(context, subject, kernel, &self.limits).map_err(at)
        })
    }
}

/// The plan of an apply with tiles of some cells.
pub fn plan<'c>(
    subject: &Subject<'c, '_>,
    (kernel, apply): (&Kernel<'c>, &Apply<'c>),
    (tile, per_thread, sweeps): (&[i64], &[i64], i64),
) -> Result<Plan<'c>, Error> {
    let updates = || apply.outputs.iter().map(|(field, _)| *field);
    let kept = updates().filter(|field| apply.kept(field).is_some()).collect();
    let last_rows = |field| kernel.rows.of(field).is_some_and(|rows| rows.kept > 0);
    let stored = updates().filter(|field| kernel.stores(field) || last_rows(field)).collect();
    let (program, pieces) = (subject.program, apply.pieces.as_slice());
    let function = Function { module: subject.module, program, pieces, stored, kept };
    Plan::with_sweeps(&function, shape(tile, per_thread)?, sweeps)
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    limits: &BlockLimits,
) -> Result<(), Error> {
    let applies: Vec<_> = kernel.applies().collect();
    let [apply] = applies.as_slice() else {
        let message = format!("a tile kernel of strategy {NAME} has one tiled.apply");
        return Err(Error::declined(Decline::Applies, message));
    };
    super::admit_wave(&kernel.wave)?;
    let above = |offset: &[i64]| offset.first().is_some_and(|rows| *rows < 0);
    tile_kernels::check_stored_from(subject.program, kernel, &above)?;
    let hull = tile_kernels::hull(context, subject.program, kernel)?;
    super::admit(hull.alike)?;
    let (schedule, sweeps) = (&kernel.schedule, kernel.wave.all_sweeps());
    let plan = plan(subject, (kernel, apply), (&schedule.tile, &schedule.per_thread, sweeps))?;
    let in_flight = match sweeps {
        1 => None,
        _ => {
            Strip.admit_sweeps(subject, kernel)?;
            Some(InFlight::of(subject.program, apply, &plan, sweeps)?)
        }
    };
    let threads = [plan.threads()];
    let shared = plan.shared();
    let demand = Demand { threads: &threads, shared, fewer_threads: "make the tile smaller" };
    limits.admit(subject.device, kernel, &demand)?;

    let sizes = extents(context, hull.lower, hull.upper)?;
    let &[rows, columns] = sizes.as_slice() else {
        return Err(Error::declined(Decline::Rank, "strips are of two dimensions"));
    };
    let constant = |value| AffineExpr::constant(context, value);
    let geometry = &plan.geometry;
    let frozen = frozen::rows((apply, &kernel.rows), &hull, geometry);
    let counts = [
        AffineExpr::ceil_div(rows + constant(-frozen), constant(geometry.block())),
        AffineExpr::ceil_div(columns, constant(geometry.width))
            + constant(geometry.early_tiles() + geometry.late_tiles()),
    ];
    let flags = counts[0] * constant(sweeps);
    let outer = function::container(context, subject.module, kernel.op.location())?;
    let types =
        plan.buffers.iter().map(|(extents, element)| shared_type(&outer, extents, *element));
    let types = types.collect::<Result<Vec<_>, _>>()?;
    let blocks = Blocks {
        rows: flags,
        threads: plan.threads(),
        per_multiprocessor: plan.resident(subject.device),
        most: None,
        meeting: Meeting::Flags(flags),
        shared: &types,
        in_place: reads_no_old(subject.program, &apply.pieces, &apply.outputs)?,
    };
    let made = resident::build(context, subject, kernel, &blocks)?;
    let code = (plan, hull, frozen, in_flight);
    body(subject, (kernel, apply), code, ([rows, columns], counts), made)
}

/// Builds the body of a kernel, from the rows and columns of its grid, and from its tile rows and
/// the tiles of a strip.
fn body<'c>(
    subject: &Subject<'c, '_>,
    (kernel, apply): (&Kernel<'c>, &Apply<'c>),
    (plan, hull, frozen, in_flight): (Plan<'c>, Hull<'c>, i64, Option<InFlight>),
    (extents, counts): ([AffineExpr<'c>; 2], [AffineExpr<'c>; 2]),
    (made, blocks): (KernelFunction<'c>, i64),
) -> Result<(), Error> {
    let KernelFunction { builder, op, arguments, shared } = made;
    let Arguments { mut sources, mut targets, params, scalars, step, flags, epoch, .. } = arguments;
    let Some(flags) = flags.zip(epoch) else {
        return Err(Error::internal("a wavefront kernel without flags"));
    };
    let (module, program) = (subject.module, subject.program);
    let scope = Scope { module, program, hull, params, scalars, step };
    let affine = |[first, second]: [AffineExpr<'c>; 2]| -> Result<_, Error> {
        let value = |value| builder.affine(value, &[], &scope.params);
        Ok([value(first)?, value(second)?])
    };
    let (extents, counts) = (affine(extents)?, affine(counts)?);
    let lower = scope.bounds(&builder, hull.lower)?;
    let lower = <[Val<'c>; 2]>::try_from(lower.as_slice());
    let lower = lower.map_err(|_| Error::internal("a grid of another rank"))?;
    let (rings, shared) = shared.split_at(plan.windows.len().min(shared.len()));
    let (buffers, shared) = shared.split_at(plan.old.len().min(shared.len()));
    let (loaded, results) = shared.split_at(plan.sequences.len().min(shared.len()));
    let rows = Leaving::of(kernel, &mut targets)?;
    sources.retain(|field, _| !kernel.rows.fields().any(|rows| rows == *field));
    let filled = filled(&builder, &scope, apply, &plan.old)?;
    let thread = tile_place::number(&builder, "gpu.thread_id", "x")?;
    let lanes = builder.index(WARP)?;
    let bodies = RefCell::default();
    let strips = Strips {
        scope,
        sources,
        targets,
        apply,
        geometry: plan.geometry,
        windows: plan.windows,
        rings: rings.to_vec(),
        old: plan.old.into_iter().zip(buffers.iter().copied()).collect(),
        sequences: plan.sequences.into_iter().zip(loaded.iter().copied()).collect(),
        results: plan.stored.into_iter().zip(results.iter().copied()).collect(),
        leaving: &rows,
        extents,
        lower,
        frozen,
        lane: builder.binary("arith.remsi", thread, lanes)?,
        zero: apart::zero(&builder, subject.device)?,
        bodies: &bodies,
        filled,
    };
    let [rows, tiles] = counts;
    // Rows without columns have nothing to compute.
    let none = builder.compare(Compare::Lt, strips.extents[1], builder.index(1)?)?;
    let tiles = builder.select(none, builder.index(0)?, tiles)?;
    // The sweep behind needs the last stores too, after which one more signal stands.
    let more = i64::from(in_flight.is_some());
    let all = builder.add_constant(tiles, strips.geometry.last_strip() + more)?;
    let sweeps = in_flight.as_ref().map_or(1, |in_flight| in_flight.sweeps);
    let numbers = builder.multiply_constant(rows, sweeps)?;
    let peers = Peers::new(&builder, flags.into(), (numbers, all))?;
    let role = role(&builder, &plan.warps, builder.binary("arith.divsi", thread, lanes)?)?;
    let warps = plan.warps;
    let block = Block { strips, warps, peers, role, thread, tiles, all, first: None };
    block.code(&builder, (rows, blocks), in_flight.as_ref())?;
    builder.op("gpu.return", &[], &[], &[])?;

    let strips = &block.strips;
    function::load_gathered(&builder, &strips.scope, op, &strips.sources)?;
    let read_only = strips.sources.iter().filter(|(field, _)| !strips.targets.contains_key(*field));
    let read_only = read_only.map(|(_, buffer)| *buffer);
    let unwritten: Vec<_> = read_only.chain(buffers.iter().chain(loaded).copied()).collect();
    for groups in strips.bodies.borrow().iter() {
        early_loads::advance(groups, &unwritten);
    }
    Ok(())
}

/// The role of a warp.
fn role<'c>(builder: &Builder<'c>, warps: &Warps, warp: Val<'c>) -> Result<Val<'c>, Error> {
    let mut found = warp;
    for (place, role) in (0..).zip(warps.roles()).filter(|(place, role)| place != role) {
        let here = builder.compare(Compare::Eq, warp, builder.index(place)?)?;
        found = builder.select(here, builder.index(role)?, found)?;
    }
    Ok(found)
}

/// The shape that a schedule asks for.
fn shape(tile: &[i64], per_thread: &[i64]) -> Result<StripShape, Error> {
    let (&[block, width], &[rows, 1]) = (tile, per_thread) else {
        let message = "strips are of two dimensions, and a lane has cells of one column";
        return Err(Error::declined(Decline::TileShape, message));
    };
    let strip = WARP.checked_mul(rows).filter(|strip| *strip > 0 && block % strip == 0);
    match strip {
        Some(strip) if width > 1 && width <= WARP && WARP % width == 0 => {
            Ok(StripShape { rows, strips: block / strip, width })
        }
        _ => {
            let message = format!(
                "a block of {block} rows with {rows} rows per lane and {width} times per tile is \
                 not possible; its rows must be a multiple of {WARP} lanes, and the times 2, 4, 8, \
                 16 or {WARP}"
            );
            Err(Error::declined(Decline::TileShape, message))
        }
    }
}

/// Whether every piece with absolute reads and every loaded grid holds a point; none if always
/// true.
fn filled<'c>(
    builder: &Builder<'c>,
    scope: &Scope<'c, '_>,
    apply: &Apply<'c>,
    old: &[OldValues<'c>],
) -> Result<Option<Val<'c>>, Error> {
    let mut boxes = Vec::new();
    for piece in &apply.pieces {
        if !stencil::gathers(stencil::function(scope.module, piece.function)?)?.is_empty() {
            boxes.push((piece.lower, piece.upper));
        }
    }
    for old in old.iter().filter(|old| !old.only_rims) {
        let grid = scope.program.grid_of(old.field)?;
        boxes.push((grid.lower, grid.upper));
    }
    let mut conditions = Vec::new();
    for (lower, upper) in boxes {
        conditions.push(scope.holds_points(builder, lower, upper)?);
    }
    builder.all(&conditions)
}
