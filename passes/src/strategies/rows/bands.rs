//! Bands of rows, and how far a band runs behind the one above.
//!
//! A band has `height` rows. It is computed in *turns*: turn `c` takes the columns
//! `c * width - shift * r` to `(c + 1) * width - shift * r` of its row `r`, the upper rows first. A
//! dependence on a value `a` rows above and `d` columns to the right is met within a band if
//! `shift * a >= d`. The first row of a band reads the band above, whose last rows are up to
//! `shift * height` columns behind: turn `c` needs its turn `c + lead`, with
//! `lead = ceil(shift * height / width)`. Bands farther above are ahead by as much again.

use crate::analysis::wavefront::{Vectors, ceil_div};
use stencil_dialects::tiled::MOST_CELLS;

/// The bands of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    /// Rows of a band.
    pub height: i64,
    /// Columns of a turn.
    pub width: i64,
    /// Columns by which a row is behind the row above in a turn.
    pub shift: i64,
    /// Turns by which the band above must be ahead.
    pub lead: i64,
}

impl Bands {
    /// The bands of a sweep with some dependence vectors; none where a vector is too long.
    pub fn of(dependences: &Vectors, (height, width): (i64, i64)) -> Option<Self> {
        let most = MOST_CELLS.unsigned_abs();
        if dependences.iter().flatten().any(|cells| cells.unsigned_abs() > most) {
            return None;
        }
        let shift = dependences.iter().filter_map(|vector| match vector.as_slice() {
            [above @ ..=-1, right, ..] => Some(ceil_div(*right, -above)),
            _ => None,
        });
        let shift = shift.max().unwrap_or(0).max(0);
        let lead = ceil_div(shift.checked_mul(height)?, width);
        Some(Self { height, width, shift, lead })
    }

    /// Columns by which the last row of a band is behind the first.
    pub fn behind(&self) -> i64 {
        self.shift.saturating_mul(self.height - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn bands(vectors: &[&[i64]], shape: (i64, i64)) -> Bands {
        let all: BTreeSet<Vec<i64>> = vectors.iter().map(|vector| vector.to_vec()).collect();
        Bands::of(&all, shape).unwrap()
    }

    /// Runs the turns of all bands as far ahead of each other as the lead allows, and checks that
    /// every value that is read is there.
    fn check(vectors: &[&[i64]], shape: (i64, i64), (rows, columns): (i64, i64)) {
        let own = bands(vectors, shape);
        let turns = ceil_div(columns + own.behind(), own.width);
        let mut done = vec![vec![false; columns as usize]; rows as usize];
        let all = ceil_div(rows, own.height);
        let mut taken = vec![0; all as usize];
        // The lowest band that may go on does, so that each is as early as it can be.
        while let Some(band) = (0..all as usize).rev().find(|band| {
            let needed = (taken[*band] + 1 + own.lead).min(turns);
            taken[*band] < turns && (*band == 0 || taken[*band - 1] >= needed)
        }) {
            for row in 0..own.height.min(rows - band as i64 * own.height) {
                let from = taken[band] * own.width - own.shift * row;
                for column in from.max(0)..(from + own.width).min(columns) {
                    let at = band as i64 * own.height + row;
                    for vector in vectors {
                        let (y, x) = (at + vector[0], column + vector[1]);
                        let inside = y >= 0 && (0..columns).contains(&x);
                        assert!(!inside || done[y as usize][x as usize], "{vector:?} at {at}");
                    }
                    done[at as usize][column as usize] = true;
                }
            }
            taken[band] += 1;
        }
        assert!(done.iter().flatten().all(|done| *done));
    }

    #[test]
    fn every_value_is_there_before_it_is_read() {
        let usual: &[&[i64]] = &[&[-1, -1], &[-1, 0], &[0, -1]];
        assert_eq!(bands(usual, (16, 128)), Bands { height: 16, width: 128, shift: 0, lead: 0 });
        let right: &[&[i64]] = &[&[-1, 3], &[0, -1]];
        assert_eq!(bands(right, (4, 8)), Bands { height: 4, width: 8, shift: 3, lead: 2 });
        let far: &[&[i64]] = &[&[-5, 7], &[-1, -9], &[0, -2]];
        for vectors in [usual, right, far, &[&[-2, 5], &[0, -1]], &[&[-7, 30]]] {
            for shape in [(1, 1), (1, 5), (3, 4), (4, 8), (16, 2)] {
                check(vectors, shape, (23, 31));
            }
        }
        let long = BTreeSet::from([vec![-1, i64::MAX]]);
        assert_eq!(Bands::of(&long, (1, 1)), None);
    }
}
