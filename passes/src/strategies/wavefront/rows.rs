//! The tile rows of a wavefront kernel: how many there are, how many tiles each has, and which of
//! them a tile waits for.

use crate::analysis::between_sweeps;
use crate::analysis::wavefront::Wavefront;
use crate::kernel::field_buffers::extents;
use crate::kernel::tile_kernels;
use crate::subject::Subject;
use melior::Context;
use melior::ir::AffineExpr;
use stencil_dialects::affine::Linear;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Apply, Kernel};

/// The tile rows of a kernel.
pub struct Rows<'c> {
    pub front: Wavefront,
    /// Whether a tile is cut along the times; else along the fastest coordinate.
    pub skewed: bool,
    /// Rows of a tile row along each dimension but the fastest.
    pub heights: Vec<i64>,
    /// Times of a tile, or columns.
    pub width: i64,
    /// Points per dimension; the second of three is sheared in `counts` alone.
    pub extents: Vec<AffineExpr<'c>>,
    /// Tile rows along each dimension but the fastest.
    pub counts: Vec<AffineExpr<'c>>,
    /// Tiles of a tile row.
    pub tiles: AffineExpr<'c>,
    /// Sweeps of a launch.
    pub sweeps: i64,
    /// The tile rows of the sweep before for which a tile waits, by steps along each dimension, and
    /// how many tiles of each must be done beyond those before its own. Empty for one sweep.
    pub before: Vec<(Vec<i64>, i64)>,
    context: &'c Context,
}

impl<'c> Rows<'c> {
    pub fn of(
        context: &'c Context,
        subject: &Subject<'c, '_>,
        (kernel, apply): (&Kernel<'c>, &Apply<'c>),
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
            Some(first) if dimension == 1 && front.skew.shear > 0 => {
                let sum = *extent + *first * constant(front.skew.shear);
                let sum = sum + constant(-front.skew.shear);
                // A sum reads the same after it was printed if it has one term for each symbol.
                let symbols = subject.program.params.len();
                let terms = Linear::of(sum, symbols);
                let terms = terms.map(|sum| Linear::map(context, symbols, &[sum]).result(0));
                terms.and_then(Result::ok).unwrap_or(sum)
            }
            _ => *extent,
        };
        let counts = outer.iter().enumerate().map(sheared).zip(heights);
        let counts = counts
            .map(|(extent, height)| AffineExpr::ceil_div(extent, constant(*height)))
            .collect();
        let skewed = kernel.wave.skew.is_some();
        let behind = if skewed { behind(&front, heights) } else { 0 };
        let tiles = AffineExpr::ceil_div(*last + constant(behind), constant(width));
        let sweeps = kernel.wave.all_sweeps();
        let mut before = Vec::new();
        if sweeps > 1 {
            let updates: Vec<_> = apply.outputs.iter().map(|(field, _)| *field).collect();
            let distances = between_sweeps::distances(subject.program, &apply.pieces, &updates)?;
            before = front.waits_before(&distances, heights, width);
        }
        let heights = heights.to_vec();
        Ok(Self { front, skewed, heights, width, extents, counts, tiles, sweeps, before, context })
    }

    /// All tile rows.
    pub fn all(&self) -> AffineExpr<'c> {
        self.counts.iter().fold(self.constant(1), |all, count| all * *count)
    }

    /// The tile rows before one on which it depends, by steps along each dimension, and how many
    /// tiles of each must be done beyond those before its own.
    pub fn waits(&self) -> Vec<(Vec<bool>, i64)> {
        let mut found = self.front.waits(&self.heights, self.width);
        if !self.skewed {
            // The tile above reaches as far as the own one.
            found.iter_mut().for_each(|(_, ahead)| *ahead = 1);
        }
        found
    }

    /// Times of a tile.
    pub fn times(&self) -> i64 {
        if self.skewed { self.width } else { self.width + behind(&self.front, &self.heights) }
    }

    /// Diagonals of tiles between a tile row and the next along each dimension but the fastest: a
    /// tile depends on tiles of earlier diagonals alone. A wait for two tile rows at once is for no
    /// more tiles than the two by themselves.
    pub fn steps(&self) -> Vec<i64> {
        let waits = self.waits();
        let one = |dimension: usize| {
            let alone = |before: &[bool]| {
                before.iter().enumerate().all(|(at, before)| *before == (at == dimension))
            };
            waits.iter().find(|(before, _)| alone(before)).map_or(0, |(_, ahead)| *ahead)
        };
        (0..self.heights.len()).map(one).collect()
    }

    /// All diagonals of tiles.
    pub fn diagonals(&self) -> AffineExpr<'c> {
        self.steps().into_iter().zip(&self.counts).fold(self.tiles, |all, (step, count)| {
            all + (*count + self.constant(-1)) * self.constant(step)
        })
    }

    fn constant(&self, value: i64) -> AffineExpr<'c> {
        AffineExpr::constant(self.context, value)
    }
}

/// Times between the first row of a tile row and the last.
fn behind(front: &Wavefront, heights: &[i64]) -> i64 {
    front.skew.times.iter().zip(heights).map(|(skew, height)| skew * (height - 1)).sum()
}
