//! The geometry of strips: which lane computes which point at which time.
//!
//! A strip is the rows of a warp. Lane `l` has rows `l * rows ..` of it. Its row `r` computes the
//! point in column `c` at time `c + lag * l + skew * r`, relative to the strip. A lane computes its
//! rows from top to bottom, so rows of one lane may depend on each other within a time. Lanes
//! exchange values after each time.
//!
//! The strips of a block follow each other by whole tiles of `width` times, because a barrier
//! follows each tile.
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), section 3: a tile is skewed so that all its
//! diagonals have the same length.

use crate::analysis::wavefront::ceil_div;
use std::collections::BTreeSet;

/// Lanes of a warp.
const LANES: i64 = crate::kernel::lanes::WARP;

/// A value of the same sweep, as a lane finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The lane's own row, so many times ago; 0 for a row above at the same time.
    Own { row: i64, ago: i64 },
    /// A row of the lane above, counted from its last row as 1, so many times ago.
    Above { row: i64, ago: i64 },
}

/// The shape of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripShape {
    /// Rows of a lane.
    pub rows: i64,
    /// Strips of a block.
    pub strips: i64,
    /// Times of a tile.
    pub width: i64,
}

/// How the strips of a kernel lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Rows of a lane.
    pub rows: i64,
    /// Strips of a block.
    pub strips: i64,
    /// Times of a tile.
    pub width: i64,
    /// Times between a row of a lane and the next.
    pub skew: i64,
    /// Times between a lane and the next.
    pub lag: i64,
    /// Rows of the lane above whose values are read.
    pub above: i64,
}

impl Geometry {
    /// The geometry for dependence vectors of two dimensions. None where a vector reaches above the
    /// next lane's rows, or farther than [`FARTHEST`].
    pub fn of(dependences: &BTreeSet<Vec<i64>>, shape: StripShape) -> Option<Self> {
        let StripShape { rows, strips, width } = shape;
        let mut geometry = Self { rows, strips, width, skew: 0, lag: 0, above: 0 };
        let vectors: Vec<[i64; 2]> = dependences
            .iter()
            .map(|vector| <[i64; 2]>::try_from(vector.as_slice()).ok())
            .collect::<Option<_>>()?;
        if vectors.iter().flatten().any(|number| number.unsigned_abs() > FARTHEST) {
            return None;
        }
        for [row, column] in vectors.iter().filter(|[row, _]| *row < 0) {
            geometry.above = geometry.above.max(-row);
            // The row above has computed the column by then.
            geometry.skew = geometry.skew.max(ceil_div(*column, -row));
        }
        for [row, column] in vectors.iter().filter(|[row, _]| *row < 0) {
            let lag = column + geometry.skew * (rows + row) + 1;
            geometry.lag = geometry.lag.max(lag);
        }
        (geometry.above <= rows).then_some(geometry)
    }

    /// Where a lane's row finds the value of the same sweep at an offset.
    pub fn source(&self, row: i64, [rows, columns]: [i64; 2]) -> Source {
        let from = row + rows;
        if from >= 0 {
            return Source::Own { row: from, ago: -columns - self.skew * rows };
        }
        let ago = self.lag - columns - self.skew * (self.rows + rows);
        Source::Above { row: -from, ago }
    }

    /// Rows of a strip.
    pub fn strip(&self) -> i64 {
        self.rows * LANES
    }

    /// Rows of a block.
    pub fn block(&self) -> i64 {
        self.strip() * self.strips
    }

    /// Times by which the last row of a strip is behind the first.
    pub fn depth(&self) -> i64 {
        self.lag * (LANES - 1) + self.skew * (self.rows - 1)
    }

    /// Times from the moment a strip's last lane computes a value to its use below, if both strips
    /// were at the same time.
    pub fn handover(&self) -> i64 {
        self.lag * LANES - 1
    }

    /// Tiles by which a strip runs behind the strip above it: it may begin tile `t` once the strip
    /// above has handed on the values of `t + behind()` tiles.
    pub fn behind(&self) -> i64 {
        if self.above == 0 {
            0
        } else {
            1 + (self.width - 1 + self.handover()).div_euclid(self.width)
        }
    }

    /// Tiles by which the last strip of a block runs behind the first.
    pub fn last_strip(&self) -> i64 {
        self.behind() * (self.strips - 1)
    }

    /// The column of a value above the strip when it reaches the first lane at time 0, by its row
    /// above, from the last as 1.
    pub fn column_above(&self, row: i64) -> i64 {
        self.lag - 1 - self.skew * (self.rows - row)
    }

    /// Tiles before the first column. In them the first lane receives values above that lie ahead
    /// of its own column.
    pub fn early_tiles(&self) -> i64 {
        if self.above == 0 { 0 } else { ceil_div((self.lag - 1).max(0), self.width) }
    }

    /// Tiles that a strip needs beyond those of its columns, because its last row runs behind its
    /// first and hands on a tile's last value with the next tile.
    pub fn late_tiles(&self) -> i64 {
        self.depth().div_euclid(self.width) + 1
    }

    /// Times of a row that the block keeps: one tile computed, two being stored, rounded up to a
    /// power of two.
    pub fn kept_times(&self) -> i64 {
        4 * self.width
    }

    /// Values per row that a strip is handed: a tile that it reads, and the next.
    pub fn ring(&self) -> i64 {
        2 * self.width
    }
}

/// Rows and columns of the farthest value that lanes hand on in registers, and of the farthest old
/// value that a tile holds.
pub const FARTHEST: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(vectors: &[[i64; 2]], rows: i64) -> Option<Geometry> {
        let all = vectors.iter().map(|vector| vector.to_vec()).collect();
        Geometry::of(&all, StripShape { rows, strips: 4, width: 16 })
    }

    fn of_width(vectors: &[[i64; 2]], width: i64) -> Geometry {
        let all = vectors.iter().map(|vector| vector.to_vec()).collect();
        Geometry::of(&all, StripShape { rows: 2, strips: 4, width }).unwrap()
    }

    /// Every value is computed before it is read: at an earlier time, or earlier at the same time.
    #[test]
    fn sources_lie_in_the_past() {
        let sets: [&[[i64; 2]]; 6] = [
            &[[-1, -1], [-1, 0], [0, -1]],
            &[[-1, 1], [0, -1]],
            &[[-2, 3], [-1, 0], [0, -2]],
            &[[-1, 5]],
            &[[-1, -7], [-2, 0]],
            &[[0, -1]],
        ];
        for vectors in sets {
            for rows in 2..=4 {
                let geometry = geometry(vectors, rows).unwrap();
                for vector in vectors {
                    for row in 0..rows {
                        match geometry.source(row, *vector) {
                            Source::Own { row: from, ago } => {
                                assert!(
                                    ago > 0 || ago == 0 && from < row,
                                    "{geometry:?} {vector:?}"
                                );
                            }
                            Source::Above { row: from, ago } => {
                                assert!(
                                    ago >= 1 && from <= geometry.above,
                                    "{geometry:?} {vector:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    /// Smith-Waterman by hand: lanes follow each other by one time, strips by 48.
    #[test]
    fn strips_of_sixteen_columns() {
        let geometry = geometry(&[[-1, -1], [-1, 0], [0, -1]], 2).unwrap();
        assert_eq!((geometry.skew, geometry.lag, geometry.above), (0, 1, 1));
        assert_eq!((geometry.depth(), geometry.handover()), (31, 31));
        assert_eq!((geometry.behind(), geometry.ring()), (3, 32));
        assert_eq!(geometry.late_tiles(), 2);
        assert_eq!(geometry.source(0, [-1, -1]), Source::Above { row: 1, ago: 2 });
        assert_eq!(geometry.source(1, [-1, -1]), Source::Own { row: 0, ago: 1 });
        assert_eq!(geometry.source(1, [-1, 0]), Source::Own { row: 0, ago: 0 });
    }

    /// The first column of the row above is handed on when the strip has begun.
    #[test]
    fn strips_begin_with_the_first_value_above() {
        for vectors in [&[[-1, 3], [-2, 0]][..], &[[-1, 5], [-1, -5]], &[[-1, -1]], &[[-1, 1]]] {
            for width in [2, 8, 16, 32] {
                let geometry = of_width(vectors, width);
                for row in 1..=geometry.above {
                    // The time at which column 0 comes.
                    assert!(
                        -geometry.column_above(row) >= -geometry.early_tiles() * width,
                        "{geometry:?}"
                    );
                }
            }
        }
    }

    /// The first lane of the block below reads a column only when the last lane of the block above
    /// has handed it on.
    #[test]
    fn blocks_read_what_is_handed_on() {
        for vectors in [&[[-1, -1], [-1, 0]][..], &[[-1, 1]], &[[-2, 5], [-1, 2]], &[[-1, -1]]] {
            for width in [2, 8, 16, 32] {
                let geometry = of_width(vectors, width);
                for tile in 0..9 {
                    // Times of use, from the moment of the first lane.
                    let last = tile * width + width - 1;
                    let handed = (tile + geometry.behind()) * width - 1 - geometry.lag * 32;
                    assert_eq!(last, handed, "{geometry:?} {tile}");
                }
            }
        }
    }

    /// A strip is handed whole tiles of values: it reads one while the next is written.
    #[test]
    fn strips_are_handed_a_tile_ahead() {
        for vectors in [&[[-1, -1], [-1, 0]][..], &[[-1, 1]], &[[-2, 5], [-1, 2]], &[[-1, -7]]] {
            for width in [2, 8, 16, 32] {
                let geometry = of_width(vectors, width);
                // The strip above is at the first time of this tile while this strip is in tile 0.
                let above = geometry.behind() * width;
                // It hands on the value of the time before, and those of the tile but the last.
                let first = above - 1 - geometry.handover();
                assert_eq!(first, width, "{geometry:?}");
            }
        }
    }

    #[test]
    fn far_values_are_declined() {
        assert_eq!(geometry(&[[-3, 0]], 2), None);
        assert_eq!(geometry(&[[-1, 1000]], 2), None);
        assert_eq!(geometry(&[[-1, i64::MIN]], 2), None);
    }
}
