//! Reads that may lie outside the grid: which cell a boundary rule takes instead.

use std::ops::Range;

/// A read by a boundary rule that takes another cell.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Cells from the point, slowest dimension first.
    pub offset: Vec<i64>,
    /// First and last coordinate of the field's grid.
    pub bounds: Vec<(i64, i64)>,
    /// Which cell stands for one outside.
    pub map: Map,
}

/// Which cell stands for one outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// The nearest one.
    Nearest,
    /// That of the repeated grid.
    Periodic,
    /// That of the mirrored grid.
    Reflect,
}

impl Reach {
    /// Whether the reads from the row of a point lie inside the grid, but for the last dimension.
    pub fn row_inside(&self, point: &[i64]) -> bool {
        let mut outer = self.outer(point);
        outer.all(|(at, (first, last))| (first..=last).contains(&at))
    }

    /// Whether the reads from a point and its next neighbours, `count` together, lie inside.
    pub fn all_inside(&self, point: &[i64], count: usize) -> bool {
        self.row_inside(point) && self.lanes_inside(point, count) == (0..count)
    }

    /// Which of `count` neighbours along the last dimension, from a point on, read inside the grid
    /// in that dimension.
    pub fn lanes_inside(&self, point: &[i64], count: usize) -> Range<usize> {
        let (at, first, last) = self.along(point);
        let lanes = |cells: i64| usize::try_from(cells).unwrap_or(0).min(count);
        let start = lanes(first.saturating_sub(at));
        start..lanes(last.saturating_sub(at).saturating_add(1)).max(start)
    }

    /// Row-major index of the first cell of the row that is read from a point.
    pub fn row(&self, point: &[i64]) -> usize {
        let outer = self.outer(point).fold(0, |index, (at, (first, last))| {
            let extent = last - first + 1;
            index * extent.max(0) as usize + self.map.cell(at, first, extent).max(0) as usize
        });
        let (_, first, last) = self.along(point);
        outer * (last - first + 1).max(0) as usize
    }

    /// The cell of that row which is read from a neighbour along the last dimension.
    pub fn cell_of_row(&self, point: &[i64], neighbour: usize) -> usize {
        let (at, first, last) = self.along(point);
        self.map.cell(at.wrapping_add(neighbour as i64), first, last - first + 1).max(0) as usize
    }

    /// The coordinates that are read and the ends of the grid, in all dimensions but the last.
    fn outer(&self, point: &[i64]) -> impl Iterator<Item = (i64, (i64, i64))> {
        let all = point.iter().zip(&self.offset).zip(&self.bounds);
        all.take(point.len().saturating_sub(1))
            .map(|((at, offset), ends)| (at.wrapping_add(*offset), *ends))
    }

    /// The coordinate that is read and the ends of the grid, in the last dimension.
    fn along(&self, point: &[i64]) -> (i64, i64, i64) {
        let last = |values: &[i64]| values.last().copied().unwrap_or(0);
        let (first, end) = self.bounds.last().copied().unwrap_or((0, 0));
        (last(point).wrapping_add(last(&self.offset)), first, end)
    }
}

impl Map {
    /// The cell, from 0 to `extent - 1`, for a coordinate on a grid whose first is `first`; any
    /// coordinate, however far.
    pub fn cell(self, at: i64, first: i64, extent: i64) -> i64 {
        let (at, last) = (i128::from(at) - i128::from(first), i128::from(extent.max(1)) - 1);
        let cell = match self {
            Self::Nearest => at.clamp(0, last),
            Self::Periodic => at.rem_euclid(last + 1),
            Self::Reflect => {
                // To the last cell and back is one period.
                let there = at.rem_euclid((2 * last).max(1));
                there.min(2 * last - there)
            }
        };
        i64::try_from(cell).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Map;

    #[test]
    fn four_cells_and_what_stands_around_them() {
        let around = |map: Map| {
            (-5..9).map(|at| b"abcd"[map.cell(at + 7, 7, 4) as usize] as char).collect::<String>()
        };
        assert_eq!(around(Map::Nearest), "aaaaaabcdddddd");
        assert_eq!(around(Map::Periodic), "dabcdabcdabcda");
        // NumPy: np.pad(list("abcd"), 5, mode="reflect")[:-1].
        assert_eq!(around(Map::Reflect), "bcdcbabcdcbabc");
        for map in [Map::Nearest, Map::Periodic, Map::Reflect] {
            assert!((-5..9).all(|at| map.cell(at, 0, 1) == 0));
            // Of 2^63, which both are away from the first cell, periods of 4 leave 0 and periods of
            // 6 leave 2.
            let far = [map.cell(i64::MIN, 0, 4), map.cell(i64::MAX, -1, 4)];
            assert_eq!(far, [[0, 3], [0, 0], [2, 2]][map as usize], "{map:?}");
        }
    }
}
