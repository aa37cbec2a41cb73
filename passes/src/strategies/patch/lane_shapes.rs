//! Cells of a lane, and parts of a block, that the search for patches tries.

use crate::kernel::lanes::WIDEST;

/// The most rows of a lane that are tried, and the most planes.
const MOST_ROWS: i64 = 12;
const MOST_PLANES: i64 = 4;

/// The same of tiles in three dimensions that stay in registers: as many cells as these hold.
const MOST_RESIDENT: [i64; 2] = [6, 8];

/// Parts of planes of a block, at most: threads of a block along its slowest dimension.
const MOST_DEPTH: i64 = 64;

/// Cells of a lane per dimension that are tried, where the widest cell has so many words. A row of
/// a lane is at most one access of that cell: two for a row make twice the requests.
pub fn shapes(rank: usize, widest: i64, resident: bool) -> impl Iterator<Item = [i64; 3]> {
    let most = match (rank, resident) {
        (2, _) => [1, MOST_ROWS],
        (_, false) => [MOST_PLANES; 2],
        (_, true) => MOST_RESIDENT,
    };
    let width = (WIDEST / (4 * widest)).max(1);
    let widths = [(width + 1) / 2, width].into_iter();
    widths.flat_map(move |width| {
        let [planes, rows] = most;
        (1..=planes).flat_map(move |plane| (1..=rows).map(move |row| [plane, row, width]))
    })
}

/// Parts of planes and rows of which a block has at most some; rows come in multiples of `unit`.
pub fn pairs(most: i64, (flat, unit): (bool, i64)) -> impl Iterator<Item = [i64; 2]> {
    let most_planes = if flat { 1 } else { most.min(MOST_DEPTH) };
    (1..=most_planes)
        .flat_map(move |planes| (1..=most / planes / unit).map(move |rows| [planes, rows * unit]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn parts_fill_a_block_and_warps() {
        let all = |most, flat, unit| pairs(most, (flat, unit)).collect::<Vec<_>>();
        assert_eq!(all(3, true, 1), [[1, 1], [1, 2], [1, 3]]);
        // Two rows of 16 lanes share a warp.
        assert_eq!(all(6, false, 2), [[1, 2], [1, 4], [1, 6], [2, 2], [3, 2]]);
    }

    #[test]
    fn lanes_of_some_cells_are_tried() {
        assert_eq!(shapes(2, 1, false).count(), 2 * 12);
        assert_eq!(shapes(3, 1, false).count(), 2 * 4 * 4);
        // Four cells of 32 bits and two of 64 are an access.
        let widths =
            |words| shapes(2, words, false).map(|[.., width]| width).collect::<BTreeSet<_>>();
        assert_eq!([1, 2, 4].map(widths), [[2, 4].into(), [1, 2].into(), [1].into()]);
    }
}
