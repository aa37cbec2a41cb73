//! Wavefront kernels that go from one diagonal of tiles to the next: in one launch, with a barrier
//! of all blocks behind each, or in a launch for each.
//!
//! The tile of column `c` in tile row `r` lies on the diagonal `c + step * r`; all tiles that it
//! depends on lie on earlier ones (`Rows::steps`).

use super::skews;
use super::sweep::{Places, Sizes, Sweep, split_by};
use crate::kernel::grid_barrier::GridBarrier;
use crate::kernel::tile_place;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

impl<'c> Sweep<'c, '_> {
    /// A whole kernel of at most so many blocks, which meet after each diagonal. Blocks beyond the
    /// tile rows leave at once.
    pub fn by_grid_barriers(
        &self,
        builder: &Builder<'c>,
        counter: Val<'c>,
        blocks: i64,
    ) -> Result<(), Error> {
        let sizes = self.sizes(builder)?;
        let places = self.places(builder)?;
        let present = builder.binary("arith.minsi", sizes.all, builder.index(blocks)?)?;
        let steps = self.steps(builder, &sizes)?;
        let mut diagonals = sizes.tiles;
        for (step, count) in steps.iter().zip(&sizes.counts) {
            let rows = builder.add_constant(*count, -1)?;
            diagonals = builder.add(diagonals, builder.binary("arith.muli", rows, *step)?)?;
        }
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let takes_part = builder.compare(Compare::Lt, places.block, present)?;
        builder.when(takes_part, |builder| {
            let barrier = GridBarrier::new(builder, counter, (places.block, present), blocks)?;
            builder.repeat((zero, diagonals, one), |builder, diagonal| {
                self.diagonal(builder, (&sizes, &places, &steps), (diagonal, present))?;
                let next = builder.add(diagonal, one)?;
                let more = builder.compare(Compare::Lt, next, diagonals)?;
                builder.when(more, |builder| barrier.meet(builder, places.thread))
            })
        })
    }

    /// A kernel for the diagonal of a number.
    pub fn of_a_turn(&self, builder: &Builder<'c>, turn: Val<'c>) -> Result<(), Error> {
        let (sizes, places) = (self.sizes(builder)?, self.places(builder)?);
        let steps = self.steps(builder, &sizes)?;
        let blocks = tile_place::number(builder, "gpu.grid_dim", "x")?;
        self.diagonal(builder, (&sizes, &places, &steps), (turn, blocks))
    }

    /// Diagonals between tile rows along each dimension but the fastest. Where a skew is far, a
    /// tile waits for no more than all tiles of another row.
    fn steps(&self, builder: &Builder<'c>, sizes: &Sizes<'c>) -> Result<Vec<Val<'c>>, Error> {
        let far = skews::are_far(&self.rows.front.skew.times, self.rows.width);
        let step = |step| {
            let step = builder.index(step)?;
            if far { builder.binary("arith.minsi", step, sizes.tiles) } else { Ok(step) }
        };
        self.rows.steps().into_iter().map(step).collect()
    }

    /// The tiles of a diagonal that are for this block: those of every so many tile rows.
    fn diagonal(
        &self,
        builder: &Builder<'c>,
        (sizes, places, steps): (&Sizes<'c>, &Places<'c>, &[Val<'c>]),
        (diagonal, blocks): (Val<'c>, Val<'c>),
    ) -> Result<(), Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let times = |a, b| builder.binary("arith.muli", a, b);
        let minus = |a, b| builder.binary("arith.subi", a, b);
        let (mut first, mut end) = (zero, sizes.all);
        // Tile rows along the first dimension that have a tile on the diagonal.
        if let (Some((step, later)), Some((count, sizes_later)), true) = (
            steps.split_first(),
            sizes.counts.split_first(),
            self.rows.steps().first().is_some_and(|step| *step > 0),
        ) {
            let (mut reach, mut plane) = (builder.add(sizes.tiles, builder.index(-1)?)?, one);
            for (step, count) in later.iter().zip(sizes_later) {
                reach = builder.add(reach, times(minus(*count, one)?, *step)?)?;
                plane = times(plane, *count)?;
            }
            // Without tiles there are no steps either, and nothing to divide by.
            let step = builder.binary("arith.maxsi", *step, one)?;
            let beyond = builder.binary("arith.maxsi", minus(diagonal, reach)?, zero)?;
            let beyond = builder.add(beyond, minus(step, one)?)?;
            first = times(builder.binary("arith.divsi", beyond, step)?, plane)?;
            let last = builder.add(builder.binary("arith.divsi", diagonal, step)?, one)?;
            end = times(builder.binary("arith.minsi", last, *count)?, plane)?;
        }
        // A block keeps its tile rows from diagonal to diagonal.
        let from = minus(places.block, builder.binary("arith.remsi", first, blocks)?)?;
        let passed = builder.compare(Compare::Lt, from, zero)?;
        let from = builder.add(from, builder.select(passed, blocks, zero)?)?;
        let start = builder.add(first, from)?;
        builder.repeat((start, end, blocks), |builder, row| {
            let at = split_by(builder, row, &sizes.counts)?;
            let mut tile = diagonal;
            for (at, step) in at.iter().zip(steps) {
                let before = builder.binary("arith.muli", *at, *step)?;
                tile = builder.binary("arith.subi", tile, before)?;
            }
            let conditions = [
                builder.compare(Compare::Ge, tile, zero)?,
                builder.compare(Compare::Lt, tile, sizes.tiles)?,
            ];
            let Some(inside) = builder.all(&conditions)? else { return Ok(()) };
            builder.when(inside, |builder| self.tile(builder, (&at, &places.threads), sizes, tile))
        })
    }
}
