//! The code of a launch whose loops in time are cut into tiles: what a thread does for its cells,
//! with copies in shared memory.
//!
//! ```text
//! affine.for %l = 0 to %k {            // in time
//!   ... %c[%i, %j] + %a[%i, %l] * %b[%l, %j] ...
//! ```
//! becomes
//! ```text
//! %sums = memref.load %c[...]          // one for each cell of the thread
//! %next = memref.load %a[...], %b[...] // the thread's share of the first tile
//! scf.for %l0 = 0 to %k step 8 iter_args(%sums, %next) {
//!   gpu.barrier; memref.store %next to shared memory; gpu.barrier
//!   %next = memref.load                // of the next tile, while this one is computed
//!   for each of 8 iterations and each cell: %sum += shared a * shared b
//! }
//! ...                                  // the last iterations, if they are no whole tile
//! memref.store %sums, %c[...]
//! ```
//!
//! All threads of a block reach all barriers: what a cell alone does is guarded between them.

use super::launches::Launch;
use super::nest_kernel::{Start, bounds, largest};
use super::shared_tiles::{Tileable, counters};
use super::tile_shape::Fitted;
use super::tiled_cells::{Cell, Cells, Offset};
use crate::analysis::total_operations::is_total;
use melior::ir::ValueLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// Threads along an axis.
#[derive(Clone, Copy)]
pub struct TiledAxis<'c> {
    /// The number of a thread in its block.
    pub thread: Val<'c>,
    /// The number of the block's first cell.
    pub first: Val<'c>,
    /// Threads of a block.
    pub threads: i64,
    /// Cells of a thread.
    pub per_thread: i64,
}

/// The code of a tiled launch.
pub struct TiledCode<'c, 'p> {
    /// What the launch holds.
    pub launch: &'p Launch<'c>,
    /// Its loops that can be tiled.
    pub tileable: &'p Tileable<'c>,
    /// Its tile.
    pub fitted: &'p Fitted<'c>,
    /// The axes of threads, x first.
    pub axes: Vec<TiledAxis<'c>>,
    /// The number of a thread among those that share the copies of one; none if it has its own.
    pub copier: Option<Val<'c>>,
    /// The loops in space: where the first thread begins.
    pub starts: BTreeMap<usize, Start<'c>>,
    /// The shared buffers of each loop's copies.
    pub buffers: Vec<Vec<Val<'c>>>,
    /// The cells of a thread.
    pub cells: Cells<'c, 'p>,
    /// Whether each cell has anything to do.
    pub runs: Vec<Val<'c>>,
}

impl<'c, 'p> TiledCode<'c, 'p> {
    /// Builds all operations of the launch.
    ///
    /// # Errors
    /// Internal ones.
    pub fn build(&mut self, builder: &Builder<'c>) -> Result<(), Error> {
        self.place_cells(builder)?;
        self.runs = vec![self.computes(builder)?; self.cells.all.len()];
        let all = self.cells.numbers();
        for op in &self.tileable.around {
            self.enter(builder, *op)?;
            if let Some(body) = mlir::entry(*op)
                && body != self.tileable.body
            {
                let ops = mlir::operations(body).into_iter();
                let ops: Vec<Op> = ops.filter(|op| is_total(*op)).collect();
                self.cells.run(builder, &ops, &all, &mut None)?;
            }
        }
        let ops = mlir::operations(self.tileable.body);
        let mut run = Vec::new();
        for (place, op) in ops.iter().enumerate() {
            let found = self.tileable.loops.iter().position(|tiled| tiled.op == *op);
            match found.and_then(|number| Some((number, self.tileable.loops.get(number)?))) {
                None => run.push(*op),
                Some((number, tiled)) => {
                    let later = ops.get(place..).unwrap_or_default();
                    self.guarded(builder, &std::mem::take(&mut run), later)?;
                    self.tiled(builder, number, tiled)?;
                }
            }
        }
        self.guarded(builder, &run, &[])
    }

    /// Whether a thread has cells: the first of those that share its copies has them.
    pub fn computes(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        match self.copier {
            Some(copier) => builder.compare(Compare::Eq, copier, builder.index(0)?),
            None => builder.constant(builder.integer_type(1), 1),
        }
    }

    /// The cells of a thread along each axis. They lie in groups of four, if they can, so that
    /// accesses to shared memory can be joined; the groups are cyclic shares. In blocked shares all
    /// cells are one group.
    fn place_cells(&mut self, builder: &Builder<'c>) -> Result<(), Error> {
        let mut places: Vec<(Vec<i64>, Vec<Offset<'c>>)> = vec![(Vec::new(), Vec::new())];
        for axis in &self.axes {
            let group = match axis.per_thread {
                all if self.fitted.blocked => all,
                all if all % 4 == 0 => 4,
                _ => 1,
            };
            let value = Some(builder.multiply_constant(axis.thread, group)?);
            let along = |cell: i64| Offset {
                value,
                constant: cell % group + cell / group * group * axis.threads,
            };
            let more = |(place, offsets): &(Vec<i64>, Vec<Offset<'c>>), cell: i64| {
                let (mut place, mut offsets) = (place.clone(), offsets.clone());
                place.push(cell);
                offsets.push(along(cell));
                (place, offsets)
            };
            let pairs =
                places.iter().flat_map(|before| (0..axis.per_thread).map(move |at| (before, at)));
            places = pairs.map(|(before, cell)| more(before, cell)).collect();
        }
        let cell = |(place, offsets)| Cell { place, offsets, values: BTreeMap::new() };
        self.cells.all = places.into_iter().map(cell).collect();
        Ok(())
    }

    /// Gives each cell the counters of a loop in space, and adds its bounds to what the cell needs.
    fn enter(&mut self, builder: &Builder<'c>, op: Op<'c>) -> Result<(), Error> {
        let body = mlir::entry(op).ok_or_else(|| Error::internal("a loop without a body"))?;
        let parallel = mlir::name(op) == "affine.parallel";
        let numbers = counters(self.cells.function, op);
        let mut found = Vec::new();
        for cell in self.cells.numbers() {
            found.push(bounds(builder, op, |value| self.cells.value(cell, value))?);
        }
        for (place, (at, counter)) in numbers.into_iter().zip(mlir::arguments(body)).enumerate() {
            let number = self.launch.axes.get(&at).copied().unwrap_or(0);
            let axis = self.axes.get(number).copied();
            let start = self.starts.get(&at).copied();
            let (axis, start) = axis.zip(start).ok_or_else(|| Error::internal("no such axis"))?;
            let first = builder.add(start.value, axis.first)?;
            for (cell, (lower, upper)) in found.iter().enumerate() {
                let offset = self.cells.all.get(cell).and_then(|cell| cell.offsets.get(number));
                let Some(Offset { value: Some(thread), constant }) = offset.copied() else {
                    continue;
                };
                let value = builder.add_constant(builder.add(first, thread)?, constant)?;
                let of = |all: &[Val<'c>]| match parallel {
                    true => all.get(place).map(|bound| vec![*bound]).unwrap_or_default(),
                    false => all.to_vec(),
                };
                let mut conditions = Vec::from_iter(self.runs.get(cell).copied());
                if !start.fixed {
                    let first = largest(builder, "arith.maxsi", &of(lower))?;
                    conditions.push(builder.compare(Compare::Ge, value, first)?);
                }
                for bound in of(upper) {
                    conditions.push(builder.compare(Compare::Lt, value, bound)?);
                }
                if let (Some(runs), Some(all)) =
                    (self.runs.get_mut(cell), builder.all(&conditions)?)
                {
                    *runs = all;
                }
                self.cells.set(&[cell], counter, value, &BTreeSet::from([number]));
            }
        }
        Ok(())
    }

    /// Operations between loops that are tiled. What has no effect and can't fail is of all
    /// threads; each cell that has anything to do does the rest.
    fn guarded(
        &mut self,
        builder: &Builder<'c>,
        ops: &[Op<'c>],
        later: &[Op<'c>],
    ) -> Result<(), Error> {
        let (mut free, mut rest, mut own) = (Vec::new(), Vec::new(), BTreeSet::new());
        for op in ops.iter().filter(|op| mlir::name(**op) != "affine.yield") {
            let known = mlir::operands(*op).into_iter().all(|of| !own.contains(&mlir::key(of)));
            if known && is_total(*op) {
                free.push(*op);
            } else {
                own.extend(mlir::results(*op).into_iter().map(mlir::key));
                rest.push(*op);
            }
        }
        let all = self.cells.numbers();
        self.cells.run(builder, &free, &all, &mut None)?;
        if rest.is_empty() {
            return Ok(());
        }
        let used = later.iter().flat_map(|op| mlir::walk(*op)).flat_map(mlir::operands);
        let used: BTreeSet<usize> = used.map(mlir::key).collect();
        let results = rest.iter().flat_map(|op| mlir::results(*op));
        let kept: Vec<Val> = results.filter(|value| used.contains(&mlir::key(*value))).collect();
        let types: Vec<_> = kept.iter().map(|value| value.r#type()).collect();
        let every: BTreeSet<usize> = (0..self.axes.len()).collect();
        for (cell, runs) in self.runs.clone().into_iter().enumerate() {
            let then = |builder: &Builder<'c>| {
                self.cells.run(builder, &rest, &[cell], &mut None)?;
                kept.iter().map(|value| self.cells.value(cell, *value)).collect()
            };
            let zeros = |builder: &Builder<'c>| types.iter().map(|ty| builder.zero(*ty)).collect();
            let made = builder.choose(runs, &types, then, zeros)?;
            for (value, made) in kept.iter().zip(made) {
                self.cells.set(&[cell], *value, made, &every);
            }
        }
        Ok(())
    }
}
