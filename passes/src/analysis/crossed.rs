//! Which ends of a grid the reads of a piece may cross, so that a boundary rule is needed.

use melior::ir::AffineMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::stencil::{Grid, Piece};

/// The ends of a grid along a dimension that reads may cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// The first coordinate: reads may lie below it.
    pub below: bool,
    /// The last coordinate: reads may lie above it.
    pub above: bool,
}

impl Crossed {
    /// For reads along a dimension of a grid, at an offset in cells from the points of a piece.
    /// Where it can't be told, a read is taken to leave the grid.
    pub fn of<'c>(piece: &Piece<'c>, grid: &Grid<'c>, dimension: usize, offset: i64) -> Self {
        let linear = |map: AffineMap<'c>| Linear::of_map(map)?.get(dimension).cloned();
        let stays = |from: AffineMap<'c>, to: AffineMap<'c>, offset: i64| {
            let room = linear(to).zip(linear(from)).and_then(|(to, from)| to.minus(&from));
            let room = room.and_then(|room| {
                let constant = room.constant.checked_sub(offset)?;
                Some(Linear { constant, ..room })
            });
            room.is_some_and(|room| room.is_never_negative())
        };
        Self {
            below: !stays(grid.lower, piece.lower, -offset),
            above: !stays(piece.upper, grid.upper, offset),
        }
    }

    /// Whether reads may leave the grid.
    pub fn any(self) -> bool {
        self.below || self.above
    }
}
