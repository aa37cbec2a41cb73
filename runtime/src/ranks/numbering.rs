//! Which tile a block of a launch has, and which blocks have some tiles.

use crate::plan::Order;
use std::ops::Range;

/// Rows and columns of tiles that come first, of a numbering by rims.
const RIMS: u32 = 3;
/// Blocks of a row that are halves of its first tile, and of its last.
const HALVES: u32 = 2;

/// The numbers of the blocks that have some tiles of a launch, as ranges in ascending order. Tiles
/// are given by their places per dimension. None where there are not so many blocks as tiles.
pub fn blocks_of(
    order: Order,
    tiles: &[u32],
    share: &[Range<u32>],
    blocks: u32,
) -> Option<Vec<Range<u32>>> {
    if share.iter().any(Range::is_empty) {
        return Some(Vec::new());
    }
    let halves = order == Order::RimFirstInHalves;
    let more = |(place, count): (usize, &u32)| {
        u64::from(*count) + u64::from(if halves && place == 1 { HALVES } else { 0 })
    };
    let counted: u64 = tiles.iter().enumerate().map(more).product();
    if counted != u64::from(blocks) {
        return None;
    }
    let mut found: Vec<Range<u32>> = Vec::new();
    let mut push = |range: Range<u32>| match found.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => found.push(range),
    };
    if order.is_row_major() {
        let ([rows, rest @ ..], [_, counts @ ..]) = (share, tiles) else { return None };
        let row: u32 = counts.iter().product();
        // Tiles beyond the second dimension belong to one device.
        let (columns, each) = match (rest.first(), counts.first()) {
            (Some(columns), Some(count)) => (columns.clone(), row / count.max(&1)),
            _ => (0..1, 1),
        };
        for place in rows.clone() {
            push(place * row + columns.start * each..place * row + columns.end * each);
        }
        return Some(found);
    }
    for block in 0..blocks {
        let tile = rim_first(block, tiles, halves)?;
        if tile.iter().zip(share).all(|(place, share)| share.contains(place)) {
            push(block..block + 1);
        }
    }
    Some(found)
}

/// The tile of a block where those at a rim of the two fastest dimensions come first, as kernels
/// number them: rows and columns are turned by two, so that the last two lead and then the first.
/// The leading rows are numbered through, then the leading columns of the others, then the rest.
fn rim_first(block: u32, tiles: &[u32], halves: bool) -> Option<Vec<u32>> {
    let (plane, rows, columns) = match tiles {
        [rows, columns] => (None, *rows, *columns),
        [_, rows, columns] => (Some(rows * columns), *rows, *columns),
        _ => return None,
    };
    let number = plane.map_or(block, |plane| block % plane.max(1));
    let across = if halves { columns + HALVES } else { columns };
    let leading = if halves { 2 * HALVES } else { RIMS };
    let (lead_rows, lead_columns) = (rows.min(RIMS), across.min(leading));
    let second = lead_rows * across;
    let third = second + (rows - lead_rows) * lead_columns;
    let (first, width, row, column) = if number < second {
        (0, across, 0, 0)
    } else if number < third {
        (second, lead_columns, lead_rows, 0)
    } else {
        (third, across - lead_columns, lead_rows, lead_columns)
    };
    let (within, width) = (number - first, width.max(1));
    let turned = |place: u32, count: u32| (place + count - count.min(2)) % count.max(1);
    let row = turned(row + within / width, rows);
    let mut column = turned(column + within % width, across);
    if halves {
        column = if column < HALVES {
            0
        } else if column >= columns {
            columns - 1
        } else {
            column - 1
        };
    }
    Some(plane.map(|plane| block / plane.max(1)).into_iter().chain([row, column]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_major_blocks_of_rows_are_one_range() {
        let all = |share: &[Range<u32>]| blocks_of(Order::RowMajor, &[4, 3, 2], share, 24).unwrap();
        assert_eq!(all(&[1..3, 0..3, 0..2]), [6..18]);
        assert_eq!(all(&[0..2, 1..2, 0..2]), [2..4, 8..10]);
        assert_eq!(all(&[2..2, 0..3, 0..2]), []);
        assert_eq!(blocks_of(Order::RowMajor, &[5], &[2..5], 5).unwrap(), [2..5]);
        assert_eq!(blocks_of(Order::RowMajor, &[5], &[2..5], 6), None);
    }

    /// Each tile has one block, or two halves.
    #[test]
    fn rim_first_numbers_all_tiles() {
        for (rows, columns) in (1..9).flat_map(|rows| (1..9).map(move |columns| (rows, columns))) {
            for halves in [false, true].into_iter().filter(|halves| !halves || columns > 1) {
                let order = if halves { Order::RimFirstInHalves } else { Order::RimFirst };
                let across = if halves { columns + 2 } else { columns };
                let mut counted = 0;
                for (row, column) in
                    (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
                {
                    let share = [row..row + 1, column..column + 1];
                    let found = blocks_of(order, &[rows, columns], &share, rows * across).unwrap();
                    let count: u32 = found.iter().map(ExactSizeIterator::len).sum::<usize>() as u32;
                    let ends = column == 0 || column == columns - 1;
                    assert_eq!(count, if halves && ends { 2 } else { 1 }, "{row}, {column}");
                    counted += count;
                }
                assert_eq!(counted, rows * across);
            }
        }
        // By hand: of 4 x 4 tiles the last two rows and the first lead, in turned columns.
        let tile = |block| rim_first(block, &[4, 4], false).unwrap();
        assert_eq!(
            [tile(0), tile(3), tile(4), tile(12), tile(15)],
            [vec![2, 2], vec![2, 1], vec![3, 2], vec![1, 2], vec![1, 1]]
        );
        assert_eq!(rim_first(16, &[2, 4, 4], false).unwrap(), [1, 2, 2]);
    }
}
