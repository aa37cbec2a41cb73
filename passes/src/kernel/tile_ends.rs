//! The ends of a tile where the first and the last tile hold cells of the margin too.

use super::frame::Frame;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::Kernel;

/// Whether a tile is the first or the last along a dimension, and so holds cells of the margin;
/// none without one.
#[derive(Clone)]
pub struct Ends<'c> {
    is: Option<[Val<'c>; 2]>,
}

impl<'c> Ends<'c> {
    /// The ends of all dimensions.
    pub fn all(frame: &Frame<'c, '_>, kernel: &Kernel<'c>) -> Result<Vec<Self>, Error> {
        let builder = &frame.builder;
        let bounds = frame
            .scope
            .bounds(builder, frame.scope.hull.lower)?
            .into_iter()
            .zip(frame.scope.bounds(builder, frame.scope.hull.upper)?);
        let places = frame.origin.iter().zip(&kernel.schedule.tile).zip(&frame.margin).zip(bounds);
        let ends = places.map(|(((origin, tile), margin), (lower, upper))| {
            let [before, after] = *margin;
            if (before, after) == (0, 0) {
                return Ok(Self { is: None });
            }
            let first =
                builder.compare(Compare::Le, *origin, builder.add_constant(lower, before)?)?;
            let last = builder.compare(
                Compare::Ge,
                builder.add_constant(*origin, tile - 1 + after)?,
                upper,
            )?;
            Ok(Self { is: Some([first, last]) })
        });
        ends.collect()
    }

    /// Conditions under which the tile holds nothing of the margin.
    pub fn off_margin(ends: &[Self], builder: &Builder<'c>) -> Result<Vec<Val<'c>>, Error> {
        let mut conditions = Vec::new();
        for end in ends.iter().filter_map(|ends| ends.is).flatten() {
            conditions.push(builder.compare(
                Compare::Eq,
                end,
                builder.constant(builder.integer_type(1), 0)?,
            )?);
        }
        Ok(conditions)
    }

    /// Whether a coordinate belongs to a tile from `origin` on, of `cells` cells and what it holds
    /// of the margin.
    pub fn holds(
        &self,
        builder: &Builder<'c>,
        coordinate: Val<'c>,
        origin: Val<'c>,
        cells: i64,
    ) -> Result<Val<'c>, Error> {
        let beyond = builder.binary("arith.subi", coordinate, origin)?;
        let cells = builder.index(cells)?;
        let Some([first, last]) = self.is else {
            return builder.compare(Compare::Below, beyond, cells);
        };
        let after = builder.compare(Compare::Ge, beyond, builder.index(0)?)?;
        let before = builder.compare(Compare::Lt, beyond, cells)?;
        builder.binary(
            "arith.andi",
            builder.binary("arith.ori", after, first)?,
            builder.binary("arith.ori", before, last)?,
        )
    }
}
