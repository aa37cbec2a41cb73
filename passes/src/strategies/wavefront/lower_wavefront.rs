//! `lower-wavefront`: wavefront kernels whose blocks wait for each other by flags.
//!
//! A block owns a tile row at a time: a thread for each of its rows. Time runs along the fastest
//! dimension, skewed from row to row, so that all points of one time are independent
//! (`analysis/wavefront.rs`). A barrier follows each time. A tile is some times; before it, the
//! block waits until the tile rows on which it depends are far enough, and behind it raises its own
//! flag. Blocks are all on the device at once and take tile rows in order, so that some block can
//! always go on.
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), section 3 and listing 2. Flags count tiles
//! and launches and are never cleared, in place of flags that their reader resets.
//!
//! Needs: tile kernels of strategy `wavefront`, each with one apply. Guarantees: a `gpu.func` for
//! each, with an argument for its flags and one for their epoch.
//!
//! ```text
//! for row = block to rows step blocks
//!   for tile = 0 to tiles
//!     wait flags[row - 1] >= epoch * tiles + min(tile + ahead, tiles); barrier
//!     for time = tile * width to (tile + 1) * width
//!       x = time - skew * thread
//!       if x in grid { A'[row * height + thread, x] = f(...) }
//!       barrier
//!     signal flags[row] = epoch * tiles + tile + 1
//! ```
//! Declines: tiles of more rows than a block has threads, and dependences that are longer than a
//! tile row is high.

use super::NAME;
use super::skews::Skews;
use super::wave;
use crate::analysis::footprint;
use crate::analysis::wavefront::Wavefront;
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_THREADS};
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::field_buffers::extents;
use crate::kernel::function::{self, KernelFunction};
use crate::kernel::peers::Peers;
use crate::kernel::resident::{self, Blocks};
use crate::kernel::scope::Scope;
use crate::kernel::signature::Arguments;
use crate::kernel::tile_kernels;
use crate::kernel::tile_place;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{Apply, Kernel};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-wavefront",
    summary: "lower tile kernels of strategy wavefront: resident blocks that wait by flags",
    options: &[MAX_THREADS],
    read: |options: &Options| Ok(Box::new(LowerWavefront { limits: BlockLimits::read(options)? })),
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerWavefront {
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerWavefront {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.limits.options()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            lower(context, subject, kernel, &self.limits)
        })
    }
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    limits: &BlockLimits,
) -> Result<(), Error> {
    let at = mlir::place(kernel.op.location());
    let applies: Vec<_> = kernel.applies().collect();
    let ([apply], Some((width, heights))) = (applies.as_slice(), kernel.schedule.tile.split_last())
    else {
        let message = format!("a tile kernel of strategy {NAME} has one tiled.apply");
        return Err(Error::declined(Decline::Applies, message).at(at));
    };
    let demand = Demand { threads: heights, shared: 0, fewer_threads: "make the tile smaller" };
    limits.admit(subject.device, kernel, &demand)?;
    let dependences = subject.program.dependences(&apply.pieces)?;
    let front = Wavefront::of(&dependences, heights.len() + 1);
    let front =
        front.filter(|front| front.rows.iter().zip(heights).all(|(rows, height)| rows <= height));
    let front = front.ok_or_else(|| {
        let message = "the function reads values of its own sweep farther away than a tile is \
                       high; make the tile higher";
        Error::declined(Decline::FarRead, message).at(at)
    })?;
    let rows = Rows::of(context, subject, kernel, front, (heights, *width))?;

    let threads = heights.iter().product::<i64>();
    let per_multiprocessor = wave::per_multiprocessor(threads, subject.device);
    let blocks = Blocks { rows: rows.all(), threads, per_multiprocessor, shared: &[] };
    let (made, blocks) = resident::build(context, subject, kernel, &blocks)?;
    let KernelFunction { builder, op, arguments, .. } = made;
    let Arguments { sources, targets, params, scalars, step, flags, .. } = arguments;
    let Some(flags) = flags else {
        return Err(Error::internal("a wavefront kernel without flags"));
    };
    let hull = tile_kernels::hull(context, subject.program, kernel)?;
    let (module, program) = (subject.module, subject.program);
    let scope = Scope { module, program, hull, params, scalars, step };
    let sweep = Sweep { scope, sources, targets, apply, rows };
    sweep.whole(&builder, flags, blocks)?;
    builder.op("gpu.return", &[], &[], &[])?;
    function::load_gathered(&builder, &sweep.scope, op, &sweep.sources)
}

/// The tile rows of a kernel.
struct Rows<'c> {
    front: Wavefront,
    /// Rows of a tile row along each dimension but the fastest.
    heights: Vec<i64>,
    /// Times of a tile.
    width: i64,
    /// Points per dimension; the second of three is sheared in `counts` alone.
    extents: Vec<AffineExpr<'c>>,
    /// Tile rows along each dimension but the fastest.
    counts: Vec<AffineExpr<'c>>,
    /// Tiles of a tile row.
    tiles: AffineExpr<'c>,
    one: AffineExpr<'c>,
}

impl<'c> Rows<'c> {
    fn of(
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
        front: Wavefront,
        (heights, width): (&[i64], i64),
    ) -> Result<Self, Error> {
        let constant = |value| AffineExpr::constant(context, value);
        let hull = tile_kernels::hull(context, subject.program, kernel)?;
        let extents = extents(context, hull.lower, hull.upper)?;
        let Some((last, outer)) = extents.split_last() else {
            return Err(Error::internal("a grid of no dimensions"));
        };
        let sheared = |(dimension, extent): (usize, &AffineExpr<'c>)| match outer.first() {
            Some(first) if dimension == 1 && front.shear > 0 => {
                *extent + *first * constant(front.shear) + constant(-front.shear)
            }
            _ => *extent,
        };
        let counts = outer.iter().enumerate().map(sheared).zip(heights);
        let counts = counts
            .map(|(extent, height)| AffineExpr::ceil_div(extent, constant(*height)))
            .collect();
        let behind: i64 =
            front.skew.iter().zip(heights).map(|(skew, height)| skew * (height - 1)).sum();
        let tiles = AffineExpr::ceil_div(*last + constant(behind), constant(width));
        let heights = heights.to_vec();
        Ok(Self { front, heights, width, extents, counts, tiles, one: constant(1) })
    }

    /// All tile rows.
    fn all(&self) -> AffineExpr<'c> {
        self.counts.iter().fold(self.one, |all, count| all * *count)
    }
}

/// The code of a kernel.
struct Sweep<'c, 'p> {
    scope: Scope<'c, 'p>,
    sources: BTreeMap<&'c str, Val<'c>>,
    targets: BTreeMap<&'c str, Val<'c>>,
    apply: &'p Apply<'c>,
    rows: Rows<'c>,
}

impl<'c> Sweep<'c, '_> {
    fn affine(&self, builder: &Builder<'c>, value: AffineExpr<'c>) -> Result<Val<'c>, Error> {
        builder.affine(value, &[], &self.scope.params)
    }

    fn whole(&self, builder: &Builder<'c>, flags: [Val<'c>; 2], blocks: i64) -> Result<(), Error> {
        let all = self.affine(builder, self.rows.all())?;
        let counts: Vec<_> = (self.rows.counts.iter())
            .map(|count| self.affine(builder, *count))
            .collect::<Result<_, _>>()?;
        let points = self.rows.extents.last().copied();
        let points = points.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let points = self.affine(builder, points)?;
        let shape = (self.rows.heights.as_slice(), self.rows.width);
        let Skews { skews, tiles } = Skews::of(builder, &self.rows.front.skew, shape, points)?;
        let tiles = tiles.map_or_else(|| self.affine(builder, self.rows.tiles), Ok)?;
        let peers = Peers::new(builder, flags, (all, tiles))?;
        let block = tile_place::number(builder, "gpu.block_id", "x")?;
        let thread = tile_place::number(builder, "gpu.thread_id", "x")?;
        let threads = split(builder, thread, &self.rows.heights)?;
        builder.repeat((block, all, builder.index(blocks)?), |builder, row| {
            let at = split_by(builder, row, &counts)?;
            builder.repeat((builder.index(0)?, tiles, builder.index(1)?), |builder, tile| {
                self.wait(builder, (&peers, thread), (&at, &counts), tile)?;
                self.tile(builder, (&at, &threads), (&skews, points), tile)?;
                let done = builder.add_constant(tile, 1)?;
                let first = builder.compare(Compare::Eq, thread, builder.index(0)?)?;
                builder.when(first, |builder| peers.signal(builder, row, done))
            })
        })
    }

    /// Waits until the tile rows before are far enough for a tile.
    fn wait(
        &self,
        builder: &Builder<'c>,
        (peers, thread): (&Peers<'c>, Val<'c>),
        (at, counts): (&[Val<'c>], &[Val<'c>]),
        tile: Val<'c>,
    ) -> Result<(), Error> {
        let zero = builder.index(0)?;
        for (before, ahead) in self.rows.front.waits(&self.rows.heights, self.rows.width) {
            let mut conditions = vec![builder.compare(Compare::Eq, thread, zero)?];
            let mut row = zero;
            for ((at, count), before) in at.iter().zip(counts).zip(before) {
                let at = builder.add_constant(*at, -i64::from(before))?;
                conditions.push(builder.compare(Compare::Ge, at, zero)?);
                row = builder.add(builder.binary("arith.muli", row, *count)?, at)?;
            }
            let Some(all) = builder.all(&conditions)? else { continue };
            let done = builder.add_constant(tile, ahead)?;
            builder.when(all, |builder| peers.wait(builder, row, done))?;
        }
        builder.op("gpu.barrier", &[], &[], &[]).map(|_| ())
    }

    /// The times of a tile.
    fn tile(
        &self,
        builder: &Builder<'c>,
        (at, threads): (&[Val<'c>], &[Val<'c>]),
        (skews, points): (&[Val<'c>], Val<'c>),
        tile: Val<'c>,
    ) -> Result<(), Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let mut conditions = Vec::new();
        let mut relative: Vec<Val> = Vec::new();
        let mut behind = zero;
        let rows = at.iter().zip(threads).zip(&self.rows.heights).zip(skews);
        for (((at, thread), height), skew) in rows {
            let start = builder.binary("arith.muli", *at, builder.index(*height)?)?;
            let mut here = builder.add(start, *thread)?;
            if let Some(first) = relative.first() {
                let sheared = builder.index(-self.rows.front.shear)?;
                here = builder.add(here, builder.binary("arith.muli", *first, sheared)?)?;
            }
            let end = self.rows.extents.get(relative.len()).copied();
            let end = end.ok_or_else(|| Error::internal("a tile of another rank"))?;
            conditions.push(builder.compare(Compare::Ge, here, zero)?);
            conditions.push(builder.compare(Compare::Lt, here, self.affine(builder, end)?)?);
            relative.push(here);
            let late = builder.binary("arith.muli", *thread, *skew)?;
            behind = builder.add(behind, late)?;
        }
        let width = builder.index(self.rows.width)?;
        let from = builder.binary("arith.muli", tile, width)?;
        let from = builder.binary("arith.subi", from, behind)?;
        builder.repeat((zero, width, one), |builder, time| {
            let x = builder.add(from, time)?;
            let mut conditions = conditions.clone();
            conditions.push(builder.compare(Compare::Ge, x, zero)?);
            conditions.push(builder.compare(Compare::Lt, x, points)?);
            if let Some(inside) = builder.all(&conditions)? {
                let relative = [relative.as_slice(), &[x]].concat();
                builder.when(inside, |builder| self.point(builder, &relative))?;
            }
            builder.op("gpu.barrier", &[], &[], &[]).map(|_| ())
        })
    }

    /// Computes a point, given by its distance from the first.
    fn point(&self, builder: &Builder<'c>, relative: &[Val<'c>]) -> Result<(), Error> {
        let scope = &self.scope;
        let lower = scope.bounds(builder, scope.hull.lower)?;
        let point = relative.iter().zip(lower).map(|(at, first)| builder.add(*at, first));
        let point: Vec<_> = point.collect::<Result<_, _>>()?;
        let mut cells = BTreeMap::new();
        let reads = footprint::of_pieces(scope.program, &self.apply.pieces)?;
        let outputs = self.apply.outputs.iter().map(|(field, _)| *field);
        for field in reads.iter().map(|read| read.field).chain(outputs) {
            cells.insert(field, scope.cell(builder, field, &point)?);
        }
        let load = |builder: &Builder<'c>,
                    buffers: &BTreeMap<&'c str, Val<'c>>,
                    field: &str,
                    distances: &[Distance<'c>]| {
            let missing = || Error::internal(format!("no cells of @{field}"));
            let (buffer, cell) = buffers.get(field).zip(cells.get(field)).ok_or_else(missing)?;
            let at = cell.iter().zip(distances).map(|(start, by)| by.from(builder, *start));
            builder.load(*buffer, &at.collect::<Result<Vec<_>, _>>()?)
        };
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &self.sources, field, distances)
        };
        let current = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &self.targets, field, distances)
        };
        let at = At {
            point: &point,
            step: self.apply.step,
            rules: Rules::All,
            fetch: &fetch,
            current: Some(&current),
            partial: None,
        };
        let values = scope.new_values(builder, self.apply, &self.apply.pieces, &at)?;
        for ((field, _), value) in self.apply.outputs.iter().zip(values) {
            // A temp field that nobody reads later is not stored.
            let Some(target) = self.targets.get(field).copied() else { continue };
            let cell = cells.get(field).map(Vec::as_slice).unwrap_or_default();
            scope.where_it_lies(builder, field, &point, &[], |builder| {
                builder.store(value, target, cell).map(|()| Vec::new())
            })?;
        }
        Ok(())
    }
}

/// Splits a number into digits, the first of the highest place.
fn split<'c>(builder: &Builder<'c>, number: Val<'c>, sizes: &[i64]) -> Result<Vec<Val<'c>>, Error> {
    let sizes: Vec<_> = sizes.iter().map(|size| builder.index(*size)).collect::<Result<_, _>>()?;
    split_by(builder, number, &sizes)
}

fn split_by<'c>(
    builder: &Builder<'c>,
    number: Val<'c>,
    sizes: &[Val<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    match sizes {
        [] => Ok(Vec::new()),
        [_] => Ok(vec![number]),
        [rest @ .., size] => {
            let above = builder.binary("arith.divsi", number, *size)?;
            let digit = builder.binary("arith.remsi", number, *size)?;
            let mut digits = split_by(builder, above, rest)?;
            digits.push(digit);
            Ok(digits)
        }
    }
}
