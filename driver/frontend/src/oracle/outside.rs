//! Reads that may lie outside the grid: which cell a boundary rule takes instead.

use crate::program::FieldId;

/// A read by a boundary rule that takes another cell.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The field.
    pub field: FieldId,
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
    /// Whether the read from a point lies inside the grid.
    pub fn inside(&self, point: &[i64]) -> bool {
        let mut all = point.iter().zip(&self.offset).zip(&self.bounds);
        all.all(|((at, offset), (first, last))| (*first..=*last).contains(&at.wrapping_add(*offset)))
    }

    /// Row-major index of the cell that is read from a point.
    pub fn index(&self, point: &[i64]) -> usize {
        let all = point.iter().zip(&self.offset).zip(&self.bounds);
        all.fold(0, |index, ((at, offset), (first, last))| {
            let extent = last - first + 1;
            let cell = self.map.cell(at.wrapping_add(*offset).wrapping_sub(*first), extent);
            index * extent.max(0) as usize + cell.max(0) as usize
        })
    }
}

impl Map {
    /// The cell, from 0 to `extent - 1`, for one counted from the grid's first.
    fn cell(self, mut at: i64, extent: i64) -> i64 {
        let last = extent - 1;
        match self {
            Self::Nearest => at.min(last).max(0),
            Self::Periodic => at.rem_euclid(extent.max(1)),
            Self::Reflect if extent <= 1 => 0,
            Self::Reflect => {
                while !(0..extent).contains(&at) {
                    at = if at < 0 { -at } else { last - (at - last) };
                }
                at
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Map;

    #[test]
    fn four_cells_and_what_stands_around_them() {
        let around = |map: Map| (-5..9).map(|at| b"abcd"[map.cell(at, 4) as usize] as char).collect::<String>();
        assert_eq!(around(Map::Nearest), "aaaaaabcdddddd");
        assert_eq!(around(Map::Periodic), "dabcdabcdabcda");
        // NumPy: np.pad(list("abcd"), 5, mode="reflect")[:-1].
        assert_eq!(around(Map::Reflect), "bcdcbabcdcbabc");
        for map in [Map::Nearest, Map::Periodic, Map::Reflect] {
            assert!((-5..9).all(|at| map.cell(at, 1) == 0));
        }
    }
}
