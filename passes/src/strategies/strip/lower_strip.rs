//! `lower-strip`: wavefront kernels whose warps compute strips of rows in registers.
//!
//! A block owns some strips, one below the other, a warp for each. A lane owns some rows of the
//! strip (`geometry.rs`). It keeps the values that it reads of the same sweep in registers and gets
//! those of the lane above by shuffles. All warps meet at a barrier after each tile; a strip is some
//! tiles behind the strip above it. Other warps of the block move data meanwhile, so that no access
//! to global memory delays a strip:
//!
//! | warps | what they do, beside tile `t` |
//! |---|---|
//! | one for each strip | store tile `t - 1`: whole rows of a tile, from shared memory |
//! | one or two for each strip | load the old values of tile `t + 1`, if there are any |
//! | one | loads the values above the block for tile `t + 1` |
//! | one | waits until the block above has stored those for tile `t + 2` |
//! | one | signals that tile `t - 2` is stored |
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), sections 3 and 4. There, a block's threads
//! exchange values through shared memory with a barrier for each diagonal.
//!
//! Needs: tile kernels of strategy `strip` with one apply in two dimensions. Guarantees: a
//! `gpu.func` for each, with an argument for its flags and one for their epoch. Tiles whose points
//! all lie in the main piece run code of their own.
//!
//! Declines: dependences that lead above the rows of the lane before, reads of old values by a
//! boundary rule, fields on different points.

use super::NAME;
use super::code::{Strips, Tile};
use super::geometry::Geometry;
use super::old_values::{self, OldValues};
use super::windows::{self, Window};
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_THREADS};
use crate::kernel::field_buffers::extents;
use crate::kernel::function::{self, KernelFunction};
use crate::kernel::early_loads;
use crate::kernel::lanes::{self, WARP};
use crate::kernel::peers::Peers;
use crate::kernel::resident::{self, Blocks};
use crate::kernel::scope::Scope;
use crate::kernel::shared_memory::{resident_blocks, shared_bytes, shared_type};
use crate::kernel::signature::Arguments;
use crate::kernel::tile_kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{AffineExpr, Attribute, Module};
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
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            let at = |error: Error| error.at(mlir::place(kernel.op.location()));
            lower(context, subject, kernel, &self.limits).map_err(at)
        })
    }
}

/// Registers of a thread: a lane's values and the addresses of a tile.
const REGISTERS: i64 = 96;

/// Blocks that a multiprocessor runs at once.
fn resident(threads: &[i64], shared: &[MemRefType], subject: &Subject) -> i64 {
    let threads_of_all = i64::from(subject.device.registers) / REGISTERS;
    let most = threads_of_all / threads.iter().product::<i64>().max(1);
    resident_blocks(threads, shared, subject.device).min(most).max(1)
}

/// Strips of a block for which one warp each has to load old values.
const MANY: i64 = 8;

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
    let (module, program) = (subject.module, subject.program);
    let geometry = plan(subject, kernel, apply)?;
    let hull = tile_kernels::hull(context, program, kernel)?;
    let updates: Vec<_> = apply.outputs.iter().map(|(field, _)| *field).collect();
    super::admit(program, hull.alike, &updates)?;
    let windows = windows::windows(program, &apply.pieces, &geometry)?;
    let old = old_values::of(program, apply, &geometry)?;
    let each = if geometry.strips < MANY { 2 } else { 1 };
    let loaders = if old.is_empty() { 0 } else { each };
    let warps = Warps { strips: geometry.strips, loaders };

    let outer = function::container(context, module, kernel.op.location())?;
    let shared = shared(&outer, &geometry, &windows, &old, apply, program)?;
    let threads = [warps.all() * WARP];
    let demand = Demand {
        threads: &threads,
        shared: shared_bytes(&shared),
        fewer_threads: "make the tile smaller",
    };
    limits.admit(subject.device, kernel, &demand)?;
    let sizes = extents(context, hull.lower, hull.upper)?;
    let &[rows, columns] = sizes.as_slice() else {
        return Err(Error::declined(Decline::Rank, "strips are of two dimensions"));
    };
    let constant = |value| AffineExpr::constant(context, value);
    let counts = Counts {
        rows: AffineExpr::ceil_div(rows, constant(geometry.block())),
        tiles: AffineExpr::ceil_div(columns + constant(geometry.depth()), constant(geometry.width)),
    };
    let blocks = Blocks {
        rows: counts.rows,
        threads: threads[0],
        per_multiprocessor: resident(&threads, &shared, subject),
        shared: &shared,
    };
    let (made, blocks) = resident::build(context, subject, kernel, &blocks)?;
    let KernelFunction { builder, op, arguments, shared } = made;
    let Arguments { sources, targets, params, scalars, step, flags, .. } = arguments;
    let Some(flags) = flags else {
        return Err(Error::internal("a wavefront kernel without flags"));
    };
    let scope = Scope { module, program, hull, params, scalars, step };
    let affine = |value| builder.affine(value, &[], &scope.params);
    let lower = scope.bounds(&builder, hull.lower)?;
    let &[first_row, first_column] = lower.as_slice() else {
        return Err(Error::internal("a grid of another rank"));
    };
    let extents = [affine(rows)?, affine(columns)?];
    let counts = [affine(counts.rows)?, affine(counts.tiles)?];
    let (rings, shared) = shared.split_at(windows.len().min(shared.len()));
    let (buffers, results) = shared.split_at(old.len().min(shared.len()));
    let thread = axis(&builder, "gpu.thread_id")?;
    let filled = filled(&builder, &scope, apply, &old)?;
    let strips = Strips {
        scope,
        sources,
        targets,
        apply,
        geometry,
        windows,
        rings: rings.to_vec(),
        old: old.into_iter().zip(buffers.iter().copied()).collect(),
        results: results.to_vec(),
        extents,
        lower: [first_row, first_column],
        lane: builder.binary("arith.remsi", thread, builder.index(WARP)?)?,
        bodies: RefCell::default(),
        filled,
    };
    let warp = builder.binary("arith.divsi", thread, builder.index(WARP)?)?;
    let last = strips.geometry.behind() * (strips.geometry.strips - 1);
    let tiles = builder.add_constant(counts[1], last)?;
    let peers = Peers::new(&builder, flags, (counts[0], tiles))?;
    let block = Block { strips, warps, peers, warp, thread, tiles: counts[1], all: tiles };
    block.code(&builder, (counts[0], blocks))?;
    builder.op("gpu.return", &[], &[], &[])?;
    let strips = &block.strips;
    function::load_gathered(&builder, &strips.scope, op, &strips.sources)?;
    let read_only = strips.sources.iter().filter(|(field, _)| !strips.targets.contains_key(*field));
    let read_only = read_only.map(|(_, buffer)| *buffer);
    let unwritten: Vec<_> = read_only.chain(buffers.iter().copied()).collect();
    for body in strips.bodies.borrow().iter() {
        early_loads::to_front(*body, &unwritten);
    }
    Ok(())
}

/// Rows of blocks, and tiles of a strip.
struct Counts<'c> {
    rows: AffineExpr<'c>,
    tiles: AffineExpr<'c>,
}

/// The geometry that a kernel's schedule asks for.
fn plan(subject: &Subject, kernel: &Kernel, apply: &Apply) -> Result<Geometry, Error> {
    let schedule = &kernel.schedule;
    let (&[block, width], &[rows, 1]) = (schedule.tile.as_slice(), schedule.per_thread.as_slice())
    else {
        let message = "strips are of two dimensions, and a lane has cells of one column";
        return Err(Error::declined(Decline::TileShape, message));
    };
    let strip = WARP.checked_mul(rows).filter(|strip| *strip > 0 && block % strip == 0);
    let (Some(strip), true) = (strip, width > 1 && width <= WARP && WARP % width == 0) else {
        let message = format!(
            "a block of {block} rows with {rows} rows per lane and {width} times per tile is not \
             possible; its rows must be a multiple of {WARP} lanes, and the times 2, 4, 8, 16 or \
             {WARP}"
        );
        return Err(Error::declined(Decline::TileShape, message));
    };
    let dependences = subject.program.dependences(&apply.pieces)?;
    Geometry::of(&dependences, (rows, block / strip, width)).ok_or_else(|| {
        let message = "the function reads values of its own sweep too far away for registers; \
                       give a lane more rows";
        Error::declined(Decline::FarRead, message)
    })
}

/// The types of the shared buffers: rings, old values, results.
fn shared<'c>(
    builder: &Builder<'c>,
    geometry: &Geometry,
    windows: &[Window<'c>],
    old: &[OldValues<'c>],
    apply: &Apply<'c>,
    program: &stencil::Program<'c>,
) -> Result<Vec<MemRefType<'c>>, Error> {
    let mut types = Vec::new();
    for window in windows {
        let rows = window.above().max(1);
        types.push(shared_type(
            builder,
            &[geometry.strips, rows, geometry.ring()],
            window.element,
        )?);
    }
    let rows = [2, geometry.strips, geometry.rows];
    for old in old {
        let extents = [rows.as_slice(), &[old.all_lanes(), odd(old.columns)]].concat();
        types.push(shared_type(builder, &extents, old.element)?);
    }
    for (field, _) in &apply.outputs {
        let element = program.field(field)?.element;
        // A lane stores several times at once, and the next lane's lie in other banks.
        let vector = lanes::vector_length(element, geometry.width);
        let pitch = if vector == 1 { odd(geometry.width) } else { geometry.width + vector };
        let extents = [rows.as_slice(), &[WARP, pitch]].concat();
        types.push(shared_type(builder, &extents, element)?);
    }
    Ok(types)
}

/// The least odd number from a number on: lanes then access different banks.
fn odd(number: i64) -> i64 {
    number | 1
}

/// Whether no piece with absolute reads is empty, and no grid whose old values are loaded.
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
    for old in old.iter().filter(|old| !old.rims) {
        let grid = scope.program.grid_of(old.field)?;
        boxes.push((grid.lower, grid.upper));
    }
    let mut conditions = Vec::new();
    for (lower, upper) in boxes {
        let ends = scope.bounds(builder, lower)?.into_iter().zip(scope.bounds(builder, upper)?);
        for (lower, upper) in ends {
            conditions.push(builder.compare(Compare::Le, lower, upper)?);
        }
    }
    builder.all(&conditions)
}

fn axis<'c>(builder: &Builder<'c>, name: &str) -> Result<Val<'c>, Error> {
    let x = Attribute::parse(builder.context, "#gpu<dim x>")
        .ok_or_else(|| Error::internal("the gpu dialect is not loaded"))?;
    builder.value(name, &[], builder.index_type(), &[("dimension", x)])
}

/// The warps of a block: those that compute, store, load, and three that look after the block above
/// and below.
struct Warps {
    strips: i64,
    loaders: i64,
}

impl Warps {
    fn loading(&self) -> i64 {
        2 * self.strips
    }

    fn messengers(&self) -> i64 {
        self.loading() + self.loaders * self.strips
    }

    fn all(&self) -> i64 {
        self.messengers() + 3
    }
}

/// The code of a block.
struct Block<'c, 'p> {
    strips: Strips<'c, 'p>,
    warps: Warps,
    peers: Peers<'c>,
    warp: Val<'c>,
    thread: Val<'c>,
    /// Tiles of a strip.
    tiles: Val<'c>,
    /// Tiles from the first one of the first strip to the last one of the last.
    all: Val<'c>,
}

/// Tiles by which waiting for a row is ahead of computing.
const AHEAD: i64 = 2;
/// Tiles by which signalling is behind computing.
const BEHIND: i64 = 2;

impl<'c> Block<'c, '_> {
    /// All rows of a block.
    fn code(&self, builder: &Builder<'c>, (rows, blocks): (Val<'c>, i64)) -> Result<(), Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        self.clear(builder)?;
        let block = axis(builder, "gpu.block_id")?;
        builder.repeat((block, rows, builder.index(blocks)?), |builder, row| {
            let initial = windows::zeros(&self.strips.windows, builder)?;
            let turns = builder.add_constant(self.all, AHEAD + BEHIND)?;
            builder
                .carry((zero, turns, one), &initial, |builder, turn, carried| {
                    builder.op("gpu.barrier", &[], &[], &[])?;
                    let now = builder.add_constant(turn, -AHEAD)?;
                    self.turn(builder, (row, now), carried)
                })
                .map(|_| ())
        })
    }

    /// What each warp does beside a tile.
    fn turn(
        &self,
        builder: &Builder<'c>,
        (row, now): (Val<'c>, Val<'c>),
        carried: &[Val<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let strips = self.warps.strips;
        let types = windows::types(&self.strips.windows);
        let zero = builder.index(0)?;
        let tile = self.tile(builder, (row, now), self.warp)?;
        let computes = self.is(builder, (0, strips), tile)?;
        let next = builder.choose(
            computes,
            &types,
            |builder| self.strips.tile(builder, tile.tile, carried),
            |_| Ok(carried.to_vec()),
        )?;

        let strip = builder.add_constant(self.warp, -strips)?;
        let tile = self.tile(builder, (row, builder.add_constant(now, -1)?), strip)?;
        let stores = self.is(builder, (strips, 2 * strips), tile)?;
        builder.when(stores, |builder| self.strips.store(builder, tile.tile))?;

        let soon = builder.add_constant(now, 1)?;
        if self.warps.loaders > 0 {
            let (first, end) = (self.warps.loading(), self.warps.messengers());
            let warp = builder.add_constant(self.warp, -first)?;
            let loaders = builder.index(self.warps.loaders)?;
            let strip = builder.binary("arith.divsi", warp, loaders)?;
            let part = builder.binary("arith.remsi", warp, loaders)?;
            let tile = self.tile(builder, (row, soon), strip)?;
            let loads = self.is(builder, (first, end), tile)?;
            let part = (part, self.warps.loaders);
            builder.when(loads, |builder| self.strips.load(builder, tile.tile, part))?;
        }
        if self.strips.geometry.above > 0 {
            let tile = self.tile(builder, (row, soon), zero)?;
            self.messages(builder, (row, now), tile)?;
        }
        Ok(next)
    }

    /// The three warps that look after the blocks above and below.
    fn messages(
        &self,
        builder: &Builder<'c>,
        (row, now): (Val<'c>, Val<'c>),
        soon: Numbered<'c>,
    ) -> Result<(), Error> {
        let first = self.warps.messengers();
        let zero = builder.index(0)?;
        let below = builder.compare(Compare::Gt, row, zero)?;
        let loads = self.is(builder, (first, first + 1), soon)?;
        let Some(loads) = builder.all(&[loads, below])? else { return Ok(()) };
        builder.when(loads, |builder| self.strips.load_above(builder, soon.tile))?;

        let thread =
            |number: i64| builder.compare(Compare::Eq, self.thread, builder.index(number * WARP)?);
        let tile = builder.add_constant(now, AHEAD)?;
        let there = builder.compare(Compare::Lt, tile, self.tiles)?;
        if let Some(waits) = builder.all(&[thread(first + 1)?, below, there])? {
            builder.when(waits, |builder| {
                let geometry = &self.strips.geometry;
                let done = builder.add_constant(tile, geometry.behind() * geometry.strips)?;
                self.peers.wait(builder, builder.add_constant(row, -1)?, done)
            })?;
        }
        let done = builder.add_constant(now, 1 - BEHIND)?;
        let some = builder.compare(Compare::Gt, done, zero)?;
        if let Some(signals) = builder.all(&[thread(first + 2)?, some])? {
            builder.when(signals, |builder| self.peers.signal(builder, row, done))?;
        }
        Ok(())
    }

    /// The tile of a strip beside a tile of the first strip.
    fn tile(
        &self,
        builder: &Builder<'c>,
        (row, now): (Val<'c>, Val<'c>),
        strip: Val<'c>,
    ) -> Result<Numbered<'c>, Error> {
        let geometry = &self.strips.geometry;
        let times = |value, by: i64| builder.binary("arith.muli", value, builder.index(by)?);
        let number = builder.binary("arith.subi", now, times(strip, geometry.behind())?)?;
        let first = builder.add(times(row, geometry.block())?, times(strip, geometry.strip())?)?;
        let half = builder.binary("arith.andi", now, builder.index(1)?)?;
        let time = times(number, geometry.width)?;
        Ok(Numbered { number, tile: Tile { strip, row: first, time, half } })
    }

    /// Whether the warp is one of some warps, and the tile is there.
    fn is(
        &self,
        builder: &Builder<'c>,
        (first, end): (i64, i64),
        tile: Numbered<'c>,
    ) -> Result<Val<'c>, Error> {
        let conditions = [
            builder.compare(Compare::Ge, self.warp, builder.index(first)?)?,
            builder.compare(Compare::Lt, self.warp, builder.index(end)?)?,
            builder.compare(Compare::Ge, tile.number, builder.index(0)?)?,
            builder.compare(Compare::Lt, tile.number, self.tiles)?,
        ];
        let all = builder.all(&conditions)?;
        all.ok_or_else(|| Error::internal("no condition for a warp"))
    }

    /// Zeros in the rings: the first rows of a grid have no rows above.
    fn clear(&self, builder: &Builder<'c>) -> Result<(), Error> {
        let geometry = &self.strips.geometry;
        let ring = builder.index(geometry.ring())?;
        for (window, buffer) in self.strips.windows.iter().zip(&self.strips.rings) {
            let rows = builder.index(window.above().max(1))?;
            let cells = geometry.strips * window.above().max(1) * geometry.ring();
            let bounds = (self.thread, builder.index(cells)?, builder.index(self.warps.all() * WARP)?);
            let zero = builder.zero(window.element)?;
            builder.repeat(bounds, |builder, cell| {
                let slot = builder.binary("arith.remsi", cell, ring)?;
                let row = builder.binary("arith.divsi", cell, ring)?;
                let strip = builder.binary("arith.divsi", row, rows)?;
                let row = builder.binary("arith.remsi", row, rows)?;
                builder.store(zero, *buffer, &[strip, row, slot])
            })?;
        }
        Ok(())
    }
}

/// A tile with its number in its strip.
#[derive(Clone, Copy)]
struct Numbered<'c> {
    number: Val<'c>,
    tile: Tile<'c>,
}
