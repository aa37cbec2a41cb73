//! Where the cells of a buffer lie in memory, all sizes known; and copies between a field's array
//! and a buffer.

use std::ops::Range;

/// A [`crate::plan::BufferLayout`] with its sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Rows of `pitch` cells each.
    Rows {
        /// Cells from the start of a row to that of the next.
        pitch: usize,
    },
    /// Bands of rows, in which diagonals lie side by side.
    Hybrid {
        /// Rows of a band, at least one.
        rows: usize,
    },
    /// Blocks one after the other.
    Blocked {
        /// Cells of a block per dimension, at least one.
        block: Vec<usize>,
    },
    /// Records in blocks; the place of a cell is that of its first number.
    Records {
        /// Numbers of a record.
        numbers: usize,
        /// Cells of a block, at least one: their first numbers lie side by side, then the others.
        block: usize,
    },
}

impl Placement {
    /// Cells of the memory of a buffer of this shape, those between rows or blocks included. At
    /// least as many as the largest intermediate result of [`Placement::place`].
    pub fn cells(&self, shape: &[usize]) -> u128 {
        let product = |extents: &[usize]| {
            extents.iter().fold(1_u128, |all, extent| all.saturating_mul(*extent as u128))
        };
        match (self, shape) {
            (Self::Rows { pitch }, [outer @ .., _]) => {
                product(outer).saturating_mul(*pitch as u128)
            }
            (Self::Hybrid { rows }, [outer @ .., height, width]) if *width > 0 => {
                let bands = height.div_ceil(*rows) as u128;
                let band = (*width as u128 + *rows as u128 - 1).saturating_mul(*rows as u128);
                product(outer).saturating_mul(bands).saturating_mul(band)
            }
            (Self::Blocked { block }, _) => {
                let filled = shape.iter().zip(block).map(|(extent, cells)| {
                    (extent.div_ceil(*cells) as u128).saturating_mul(*cells as u128)
                });
                filled.fold(1, u128::saturating_mul)
            }
            (Self::Records { numbers, block }, _) => {
                let block = *block as u128;
                let filled = product(shape).div_ceil(block).saturating_mul(block);
                filled.saturating_mul(*numbers as u128)
            }
            _ => 0,
        }
    }

    /// The place of a cell in a buffer of this shape whose memory has [`Placement::cells`].
    pub fn place(&self, shape: &[usize], index: &[usize]) -> usize {
        match (self, shape, index) {
            (Self::Rows { pitch }, [outer @ .., _], [rows @ .., column]) => {
                row_major(outer, rows) * pitch + column
            }
            (Self::Hybrid { rows }, [outer @ .., height, width], [place @ .., row, column]) => {
                let band = row_major(outer, place) * height.div_ceil(*rows) + row / rows;
                (band * (width + rows - 1) + row % rows + column) * rows + row % rows
            }
            (Self::Blocked { block }, ..) => {
                let counts: Vec<_> = shape
                    .iter()
                    .zip(block)
                    .map(|(extent, cells)| extent.div_ceil(*cells))
                    .collect();
                let (blocks, cells): (Vec<_>, Vec<_>) =
                    index.iter().zip(block).map(|(at, cells)| (at / cells, at % cells)).unzip();
                let volume: usize = block.iter().product();
                row_major(&counts, &blocks) * volume + row_major(block, &cells)
            }
            (Self::Records { numbers, block }, ..) => {
                let cell = row_major(shape, index);
                cell + (cell - cell % block) * (numbers - 1)
            }
            _ => 0,
        }
    }
}

fn row_major(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |place, (extent, at)| place * extent + at)
}

/// A box of cells of a field and the buffer that holds them, for copies between the two.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Cells of the field per dimension.
    pub field: &'a [usize],
    /// Cells of the buffer per dimension.
    pub buffer: &'a [usize],
    /// The field's cell at which the buffer begins.
    pub origin: &'a [usize],
    /// How the buffer lies in memory.
    pub placement: &'a Placement,
    /// The number of the record that is the field's; 0 for other placements. It lies a block's
    /// cells behind the one before it.
    pub number: usize,
    /// The cells per dimension, in the field's numbers; they lie in the buffer.
    pub cells: &'a [Range<usize>],
}

impl Window<'_> {
    /// Whether field and buffer have the same bytes, of all cells.
    pub fn is_whole(&self) -> bool {
        let all = self.cells.iter().zip(self.field).all(|(cells, all)| *cells == (0..*all));
        let rows =
            *self.placement == Placement::Rows { pitch: self.buffer.last().copied().unwrap_or(0) };
        all && rows && self.field == self.buffer
    }

    /// Calls `visit` with the place of each run of cells in the field and in the buffer, its
    /// length, and how far the next cell is in the buffer.
    pub fn for_each_run(&self, mut visit: impl FnMut(usize, usize, usize, usize)) {
        if self.cells.iter().any(|cells| cells.is_empty()) {
            return;
        }
        let Some((last, outer)) = self.cells.split_last() else { return };
        let (run, step) = match self.placement {
            Placement::Rows { .. } => (last.len(), 1),
            Placement::Records { numbers, block: 1 } => (last.len(), *numbers),
            Placement::Records { .. } | Placement::Hybrid { .. } | Placement::Blocked { .. } => {
                (1, 1)
            }
        };
        let number = match self.placement {
            Placement::Records { block, .. } => *block,
            _ => 1,
        };
        let mut index: Vec<usize> = self.cells.iter().map(|cells| cells.start).collect();
        loop {
            for column in last.clone().step_by(run) {
                if let Some(at) = index.last_mut() {
                    *at = column;
                }
                let inside: Vec<usize> =
                    index.iter().zip(self.origin).map(|(at, origin)| at - origin).collect();
                let place = self.placement.place(self.buffer, &inside) + self.number * number;
                visit(row_major(self.field, &index), place, run, step);
            }
            // The next row: the last dimension that has one goes on, those after it start again.
            let next = outer.iter().zip(&index).rposition(|(cells, at)| at + 1 < cells.end);
            let Some(next) = next else { return };
            for (place, (at, cells)) in index.iter_mut().zip(outer).enumerate().skip(next) {
                *at = if place == next { *at + 1 } else { cells.start };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn placements() -> Vec<Placement> {
        vec![
            Placement::Rows { pitch: 5 },
            Placement::Rows { pitch: 8 },
            Placement::Hybrid { rows: 1 },
            Placement::Hybrid { rows: 2 },
            Placement::Hybrid { rows: 4 },
            Placement::Blocked { block: vec![1, 2, 3] },
            Placement::Blocked { block: vec![4, 4, 4] },
            Placement::Records { numbers: 3, block: 1 },
            Placement::Records { numbers: 3, block: 4 },
        ]
    }

    fn indices(shape: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
        let [a, b, c] = shape;
        (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k])))
    }

    #[test]
    fn every_cell_has_a_place_of_its_own() {
        let shape = [2, 7, 5];
        for placement in placements() {
            let places: BTreeSet<usize> =
                indices(shape).map(|index| placement.place(&shape, &index)).collect();
            assert_eq!(places.len(), 70, "{placement:?}");
            let last = places.last().copied().unwrap() as u128;
            assert!(last < placement.cells(&shape), "{placement:?}");
        }
        let cells: Vec<_> = placements().iter().map(|placement| placement.cells(&shape)).collect();
        assert_eq!(
            cells,
            [70, 112, 70, 2 * 4 * 12, 2 * 2 * 32, 2 * 8 * 6, 4 * 8 * 8, 70 * 3, 72 * 3]
        );
    }

    #[test]
    fn cells_of_a_diagonal_lie_side_by_side() {
        let hybrid = Placement::Hybrid { rows: 4 };
        let diagonal = (0..4).map(|row| hybrid.place(&[8, 9], &[4 + row, 3 - row]));
        let first = hybrid.place(&[8, 9], &[4, 3]);
        assert_eq!(diagonal.collect::<Vec<_>>(), (first..first + 4).collect::<Vec<_>>());
        assert_eq!(hybrid.place(&[8, 9], &[4, 0]), 12 * 4);
        let blocked = Placement::Blocked { block: vec![2, 3] };
        assert_eq!(blocked.place(&[5, 7], &[3, 4]), (3 + 1) * 6 + 3 + 1);
        assert_eq!(Placement::Rows { pitch: 10 }.place(&[5, 7], &[3, 4]), 34);
    }

    #[test]
    fn numbers_of_a_block_lie_side_by_side() {
        let blocks = Placement::Records { numbers: 9, block: 32 };
        // Cell 70 is the seventh of the third block.
        assert_eq!(blocks.place(&[2, 64], &[1, 6]), 2 * 32 * 9 + 6);
        let structs = Placement::Records { numbers: 9, block: 1 };
        assert_eq!(structs.place(&[2, 64], &[1, 6]), 70 * 9);
    }

    #[test]
    fn sizes_without_cells_and_huge_ones_do_not_overflow() {
        for placement in placements() {
            assert_eq!(placement.cells(&[3, 0, 0]), 0, "{placement:?}");
            assert!(placement.cells(&[usize::MAX; 3]) > 1 << 64, "{placement:?}");
        }
    }

    #[test]
    fn runs_cover_a_box_once() {
        let (field, buffer, origin) = ([3, 9, 7], [2, 7, 5], [1, 2, 1]);
        let cells = [1..3, 3..9, 2..6];
        for placement in placements() {
            let window = Window {
                field: &field,
                buffer: &buffer,
                origin: &origin,
                placement: &placement,
                number: 0,
                cells: &cells,
            };
            let mut found = BTreeSet::new();
            window.for_each_run(|from, to, length, step| {
                let all = (0..length).map(|cell| (from + cell, to + cell * step));
                all.for_each(|cell| assert!(found.insert(cell)));
            });
            let wanted = indices(field)
                .filter(|index| index.iter().zip(&cells).all(|(at, cells)| cells.contains(at)));
            let wanted: BTreeSet<_> = wanted
                .map(|[i, j, k]| {
                    ((i * 9 + j) * 7 + k, placement.place(&buffer, &[i - 1, j - 2, k - 1]))
                })
                .collect();
            assert_eq!(found, wanted, "{placement:?}");
            assert!(!window.is_whole());
            let none = Window { cells: &[1..3, 3..3, 2..6], ..window };
            none.for_each_run(|_, _, _, _| panic!("a run of no cells"));
        }
    }
}
