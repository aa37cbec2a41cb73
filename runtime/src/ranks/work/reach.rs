//! The cells of a buffer that some tiles of a launch use, along one dimension.

use super::Which;
use crate::expr::Sizes;
use crate::plan::{Near, Points, Tiles};
use crate::ranks::error::RankError;
use std::ops::Range;

/// The cells of some tiles along a dimension, in the coordinates of the program.
pub fn of_tiles(
    tiles: &Tiles,
    (own, count): (&Range<u32>, u32),
    sizes: &Sizes,
    (reach, which): (Reach, Which),
) -> Result<Range<i64>, RankError> {
    let (first, last) = (tiles.first.evaluate(sizes)?, tiles.last.evaluate(sizes)?);
    let begin = |tile: u32| {
        let cells = i64::from(tile) * i64::from(tiles.cells);
        first.saturating_add(cells).saturating_add(tiles.before)
    };
    let mut start = if own.start == 0 { first } else { begin(own.start) };
    let mut end = if own.end == count { last.saturating_add(1) } else { begin(own.end) };
    if which == Which::Loaded || which == Which::Read && reach.wraps {
        // The last tile goes on at the other end. Tiles at both ends are loaded whole.
        end = end.max(begin(own.end));
    }
    if which == Which::Loaded {
        start = start.min(begin(own.start));
    }
    Ok(start..end)
}

/// The rows of the points of some blocks, in the coordinates of the program.
pub fn of_points(
    points: &Points,
    blocks: &Range<u32>,
    sizes: &Sizes,
) -> Result<Range<i64>, RankError> {
    let (first, row) = (points.first.evaluate(sizes)?, points.row.evaluate(sizes)?.max(1));
    let point = |block: u32| i64::from(block) * i64::from(points.points);
    let row_behind = |point: i64| point / row + i64::from(point % row > 0);
    let start = first.saturating_add(point(blocks.start) / row);
    Ok(start..first.saturating_add(row_behind(point(blocks.end))))
}

/// The cells of a buffer at a part and around it, along a dimension.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The coordinate of the buffer's first cell.
    pub origin: i64,
    below: i64,
    above: i64,
    spare_below: i64,
    spare_above: i64,
    wraps: bool,
    mirrors: bool,
}

impl Reach {
    /// Those of a buffer along a dimension, by its place.
    pub fn of(near: &Near, place: usize, sizes: &Sizes) -> Result<Self, RankError> {
        let at = |cells: &[i64]| cells.get(place).copied().unwrap_or(0);
        Ok(Self {
            origin: near.origin.get(place).map_or(Ok(0), |origin| origin.evaluate(sizes))?,
            below: at(&near.below),
            above: at(&near.above),
            spare_below: at(&near.spare_below),
            spare_above: at(&near.spare_above),
            wraps: near.wraps,
            mirrors: near.mirrors,
        })
    }

    /// The cells of the buffer, of so many, for those of a part: up to three ranges.
    pub fn around(self, part: Range<i64>, (extent, which): (usize, Which)) -> Vec<Range<usize>> {
        let (below, above) = match which {
            Which::Own => (0, 0),
            Which::Read => (self.below, self.above),
            Which::Loaded => (
                self.below.saturating_add(self.spare_below),
                self.above.saturating_add(self.spare_above),
            ),
        };
        let start = part.start.saturating_sub(self.origin).saturating_sub(below);
        let end = part.end.saturating_sub(self.origin).saturating_add(above);
        let size = i64::try_from(extent).unwrap_or(i64::MAX);
        let inside = |start: i64, end: i64| {
            let cell = |at: i64| usize::try_from(at.clamp(0, size)).unwrap_or(0);
            cell(start)..cell(end)
        };
        if which == Which::Own {
            return vec![inside(start, end)];
        }
        // A part may lie beyond a buffer of another grid.
        let mut found = vec![match self.mirrors {
            true => {
                let image = size.saturating_mul(2).saturating_sub(end).saturating_sub(1);
                inside(start.min(image), end.max(1_i64.saturating_sub(start)))
            }
            false => inside(start.min(size.saturating_sub(1)), end.max(1)),
        }];
        let length = end.saturating_sub(start);
        if self.wraps && length >= size {
            return vec![0..extent];
        }
        if self.wraps {
            let first = start.rem_euclid(size.max(1));
            found.extend([inside(first, first + length), inside(0, first + length - size)]);
        }
        found
    }
}
