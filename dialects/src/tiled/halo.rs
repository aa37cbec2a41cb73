//! Boxes of cells relative to a tile.

use super::MOST_CELLS;
use crate::stencil::{Boundary, Field};

/// A box of cells relative to a tile, in cells: from `tile origin + lower` to
/// `tile origin + tile size - 1 + upper`, both inclusive, slowest dimension first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Halo {
    /// Offset of the first cell from the tile's first, at most 0 for a halo.
    pub lower: Vec<i64>,
    /// Offset of the last cell from the tile's last, at least 0 for a halo.
    pub upper: Vec<i64>,
}

impl Halo {
    /// The tile itself.
    pub fn none(rank: usize) -> Self {
        Self { lower: vec![0; rank], upper: vec![0; rank] }
    }

    /// The cells that a read of a field at an offset may take, relative to the point. A boundary
    /// rule maps a cell outside the grid to one inside: the nearest lies between the point and the
    /// cell, the mirrored one no farther from the point than the cell. A tile reads a periodic
    /// field as if the grid went on.
    pub fn of_read(field: &Field, offset: &[i64]) -> Self {
        let map = |f: fn(i64) -> i64| offset.iter().copied().map(f).collect();
        match field.boundary {
            None | Some(Boundary::Periodic) => {
                Self { lower: offset.to_vec(), upper: offset.to_vec() }
            }
            Some(Boundary::Nearest | Boundary::Value(_)) => {
                Self { lower: map(|o| o.min(0)), upper: map(|o| o.max(0)) }
            }
            Some(Boundary::Reflect) => Self {
                lower: map(|o| o.saturating_abs().saturating_neg()),
                upper: map(i64::saturating_abs),
            },
        }
    }

    /// All cells that lie in `reach` of one in this box.
    pub fn reaching(&self, reach: &Self) -> Self {
        let add = |bounds: &[i64], by: &[i64]| {
            bounds.iter().zip(by).map(|(bound, by)| bound.saturating_add(*by)).collect()
        };
        Self { lower: add(&self.lower, &reach.lower), upper: add(&self.upper, &reach.upper) }
    }

    /// The cells of this box from which nothing in `reach` leaves another box.
    pub fn whose_reach_is_in(&self, reach: &Self, held: &Self) -> Self {
        let ends = |own: &[i64], held: &[i64], reach: &[i64], pick: fn(i64, i64) -> i64| {
            let held = held.iter().zip(reach).map(|(held, reach)| held.saturating_sub(*reach));
            own.iter().zip(held).map(|(own, held)| pick(*own, held)).collect()
        };
        Self {
            lower: ends(&self.lower, &held.lower, &reach.lower, i64::max),
            upper: ends(&self.upper, &held.upper, &reach.upper, i64::min),
        }
    }

    /// The smallest box that holds both.
    pub fn hull(&self, other: &Self) -> Self {
        Self {
            lower: self.lower.iter().zip(&other.lower).map(|(a, b)| *a.min(b)).collect(),
            upper: self.upper.iter().zip(&other.upper).map(|(a, b)| *a.max(b)).collect(),
        }
    }

    /// Whether the box goes no farther from the tile than any may: see [`MOST_CELLS`].
    pub fn is_near(&self) -> bool {
        self.lower.iter().chain(&self.upper).all(|cells| (-MOST_CELLS..=MOST_CELLS).contains(cells))
    }

    /// Whether every cell of `other` is in this box.
    pub fn contains(&self, other: &Self) -> bool {
        self.hull(other) == *self
    }

    /// Cells per dimension of the box around a tile of the given size.
    pub fn extents(&self, tile: &[i64]) -> Vec<i64> {
        tile.iter()
            .zip(self.lower.iter().zip(&self.upper))
            .map(|(tile, (lower, upper))| tile.saturating_add(*upper).saturating_sub(*lower).max(0))
            .collect()
    }
}
