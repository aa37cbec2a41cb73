//! The copies of a loop in time: where they begin, what a thread loads of them, and the shared
//! buffers that they fill between two barriers.

use super::shared_tiles::{Copy, TimeLoop, factor};
use super::tiled_cells::Tile;
use super::tiled_copy::Copying;
use super::tiled_kernel::TiledCode;
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// A loop in time on its way through its tiles.
pub(super) struct Walk<'c, 't> {
    /// Its copies.
    pub(super) copyings: Vec<Copying<'c>>,
    /// Whether the loop changes the contents of each copy.
    pub(super) moving: Vec<bool>,
    /// The first places of each copy, for a first iteration of 0.
    pub(super) corners: Vec<Vec<Val<'c>>>,
    /// The number of the loop.
    pub(super) number: usize,
    /// The tile of the cells.
    pub(super) tile: Option<Tile<'c, 't>>,
    /// Whether a thread can hold its shares in registers: of copies that the loop does not change,
    /// and of the others.
    pub(super) held: [bool; 2],
}

impl<'c> Walk<'c, '_> {
    fn holds(&self, moving: bool) -> bool {
        let [still, moved] = self.held;
        if moving { moved } else { still }
    }

    /// The copies that the loop changes, or the others, with their numbers.
    fn of(&self, moving: bool) -> impl Iterator<Item = (usize, &Copying<'c>)> {
        let all = self.copyings.iter().zip(&self.moving).enumerate();
        all.filter(move |(_, (_, moves))| **moves == moving).map(|(at, (copying, _))| (at, copying))
    }
}

impl<'c> TiledCode<'c, '_> {
    /// The place in an array where its copy begins, without what the loop's own counter adds.
    pub(super) fn corner(
        &self,
        builder: &Builder<'c>,
        of: &TimeLoop<'c>,
        copy: &Copy,
        values: &BTreeMap<usize, i64>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let function = self.cells.function;
        let sizes = function.nest.sizes;
        let mut corner = Vec::new();
        for index in &copy.indices {
            let mut constant = index.constant;
            let mut terms: Vec<(Val<'c>, i64)> = Vec::new();
            for (place, factor) in index.coefficients.iter().enumerate().filter(|(_, f)| **f != 0) {
                let Some(at) = place.checked_sub(sizes) else {
                    let size = function.text.sizes.get(place).copied();
                    let size = size.ok_or_else(|| Error::internal("a size without a value"))?;
                    terms.push((self.cells.value(0, size)?, *factor));
                    continue;
                };
                let farthest = values.get(&at).copied().unwrap_or(1) - 1;
                constant += factor.min(&0) * farthest;
                if let Some(first) = self.first(builder, at)? {
                    terms.push((first, *factor));
                } else if let Some((first, _)) = of.within.get(&at).copied().flatten() {
                    constant += factor * first;
                } else if at != of.at {
                    let counter = function.text.counters.get(at).copied();
                    let counter = counter.ok_or_else(|| Error::internal("an unknown counter"))?;
                    terms.push((self.cells.value(0, counter)?, *factor));
                }
            }
            let mut sum = builder.index(constant)?;
            for (value, factor) in terms {
                sum = builder.add(sum, builder.multiply_constant(value, factor)?)?;
            }
            corner.push(sum);
        }
        Ok(corner)
    }

    /// The counter of the block's first cell; none for a loop that is not in space.
    fn first(&self, builder: &Builder<'c>, at: usize) -> Result<Option<Val<'c>>, Error> {
        let axis = self.launch.axes.get(&at).and_then(|axis| self.axes.get(*axis));
        let Some((axis, start)) = axis.zip(self.starts.get(&at)) else { return Ok(None) };
        builder.add(start.value, axis.first).map(Some)
    }

    /// Where a copy of the tile begins that starts with an iteration.
    fn places(
        &self,
        builder: &Builder<'c>,
        walk: &Walk<'c, '_>,
        copy: usize,
        start: Val<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let tile = walk.tile.as_ref();
        let found = tile.and_then(|tile| tile.of.copies.get(copy).zip(walk.corners.get(copy)));
        let (Some((found, corner)), Some(tile)) = (found, tile) else { return Ok(Vec::new()) };
        let places = found.indices.iter().zip(corner).map(|(index, first)| {
            match factor(self.cells.function.nest, index, tile.of.at) {
                0 => Ok(*first),
                factor => builder.add(*first, builder.multiply_constant(start, factor)?),
            }
        });
        places.collect()
    }

    /// Loads a thread's shares of the copies that the loop changes, or of the others; none if it
    /// can't hold them.
    pub(super) fn fetch(
        &self,
        builder: &Builder<'c>,
        walk: &Walk<'c, '_>,
        (moving, start): (bool, Val<'c>),
    ) -> Result<Vec<Val<'c>>, Error> {
        let mut fetched = Vec::new();
        for (number, copying) in walk.of(moving).filter(|_| walk.holds(moving)) {
            let places = self.places(builder, walk, number, start)?;
            for share in 0..copying.shares() {
                let last = share + 1 == copying.shares();
                fetched.push(copying.fetch(builder, builder.index(share)?, last, &places)?);
            }
        }
        Ok(fetched)
    }

    /// Fills the shared buffers of copies that the loop changes, or of the others, between two
    /// barriers: from what was fetched, if anything was.
    pub(super) fn fill(
        &self,
        builder: &Builder<'c>,
        walk: &Walk<'c, '_>,
        (moving, start): (bool, Val<'c>),
        fetched: &[Val<'c>],
    ) -> Result<(), Error> {
        if walk.of(moving).next().is_none() {
            return Ok(());
        }
        builder.op("gpu.barrier", &[], &[], &[])?;
        let mut fetched = fetched.iter();
        for (number, copying) in walk.of(moving) {
            if !walk.holds(moving) {
                copying.all(builder, &self.places(builder, walk, number, start)?)?;
                continue;
            }
            for share in 0..copying.shares() {
                let last = share + 1 == copying.shares();
                let value = fetched.next().copied();
                let value = value.ok_or_else(|| Error::internal("a share was not fetched"))?;
                copying.put(builder, builder.index(share)?, last, value)?;
            }
        }
        builder.op("gpu.barrier", &[], &[], &[]).map(drop)
    }
}
