//! The wavefront of a function that reads values of its own sweep: which points may be computed at
//! once.
//!
//! A dependence vector is the offset of a read of the same sweep; it is lexicographically negative.
//! Points with the same time `x + skew . rows` are independent, where `x` is the fastest coordinate
//! and `rows` are the others. In three dimensions the second coordinate is sheared by the first, so
//! that no dependence points to later rows.
//!
//! Source: Belviranli, Deng, Gupta, Zhu, Bhuyan, "PeerWave: Exploiting Wavefront Parallelism on
//! GPUs with Peer-SM Synchronization", section 3 (hyperplane transformation of tiles).

use melior::ir::Module;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Kernel, MOST_CELLS, Skew};

/// Dependence vectors.
pub type Vectors = BTreeSet<Vec<i64>>;

/// The tile kernels of a module that read values of their own sweep, with their dependence vectors.
pub fn kernels<'c>(module: &Module<'c>) -> Result<Vec<(Kernel<'c>, Vectors)>, Error> {
    let kernels = tiled::kernels(module)?;
    if kernels.is_empty() {
        return Ok(Vec::new());
    }
    let program = Program::read(module)?;
    let mut found = Vec::new();
    for kernel in kernels {
        let mut dependences = BTreeSet::new();
        for apply in kernel.applies() {
            dependences.extend(program.dependences(&apply.pieces)?);
        }
        if !dependences.is_empty() {
            found.push((kernel, dependences));
        }
    }
    Ok(found)
}

/// The wavefront of some dependence vectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wavefront {
    /// The skewing vector.
    pub skew: Skew,
    /// The most rows between a point and a point that it depends on, along the same dimensions.
    pub rows: Vec<i64>,
    /// The sheared dependences without their number along the fastest dimension.
    pub offsets: BTreeSet<Vec<i64>>,
}

impl Wavefront {
    /// The wavefront of lexicographically negative vectors of one to three numbers; none where a
    /// number is beyond [`MOST_CELLS`].
    pub fn of(dependences: &BTreeSet<Vec<i64>>, rank: usize) -> Option<Self> {
        let most = MOST_CELLS.unsigned_abs();
        if dependences.iter().flatten().any(|cells| cells.unsigned_abs() > most) {
            return None;
        }
        let mut skew = Skew { times: vec![0; rank - 1], shear: 0 };
        if rank == 3 {
            for vector in dependences {
                if let [first @ ..=-1, second, _] = *vector.as_slice() {
                    skew.shear = skew.shear.max(ceil_div(second, first.checked_neg()?));
                }
            }
        }
        // The last dimension of the rows comes first: the others count its times.
        for dimension in (0..rank - 1).rev() {
            for vector in dependences {
                // The dimensions before have no times yet.
                let (outer, time) = skew.distance(vector)?;
                let rows = outer.get(dimension)?.checked_neg()?;
                if rows <= 0 || outer.iter().take(dimension).any(|rows| *rows != 0) {
                    continue;
                }
                let own = skew.times.get_mut(dimension)?;
                let time = time.checked_add(rows.checked_mul(*own)?)?.checked_add(1)?;
                *own = ceil_div(time, rows).max(*own);
            }
        }
        Self::skewed(dependences, &skew)
    }

    /// The wavefront of vectors under a skewing vector that fits them.
    pub fn skewed(dependences: &BTreeSet<Vec<i64>>, skew: &Skew) -> Option<Self> {
        let distances = dependences.iter().map(|vector| skew.distance(vector));
        let offsets = distances.map(|found| Some(found?.0)).collect::<Option<BTreeSet<_>>>()?;
        let mut rows = vec![0; skew.times.len()];
        for offset in &offsets {
            for (most, rows) in rows.iter_mut().zip(offset) {
                *most = rows.checked_neg()?.max(*most);
            }
        }
        Some(Self { skew: skew.clone(), rows, offsets })
    }

    /// The tile rows before one on which it depends, by steps along each dimension, and how many
    /// tiles of each must be done beyond those before its own; for tile rows of some heights and
    /// tiles of a width.
    pub fn waits(&self, heights: &[i64], width: i64) -> Vec<(Vec<bool>, i64)> {
        let mut found = Vec::new();
        for choice in 1..1_usize << heights.len() {
            let before: Vec<bool> = (0..heights.len()).map(|at| choice >> at & 1 == 1).collect();
            if self.leads_before(&before) {
                let each = before.iter().zip(self.skew.times.iter().zip(heights));
                let times: i64 =
                    each.map(|(before, (skew, height))| i64::from(*before) * skew * height).sum();
                found.push((before, (width - 1 + times + width - 1) / width));
            }
        }
        found
    }

    /// The tile rows of the sweep before for which a tile waits, by steps along each dimension, and
    /// how many tiles of each must be done beyond those before its own. `distances` lead to the
    /// points that must be computed.
    ///
    /// A point of row `i` and time `t` of its tile row lies `d` rows and `e` times from one in the
    /// tile row `k` further on, where that has the row `i + d - k * height` and the time
    /// `t + e - k * skew * height`.
    pub fn waits_before(
        &self,
        distances: &Vectors,
        heights: &[i64],
        width: i64,
    ) -> Vec<(Vec<i64>, i64)> {
        let mut found: BTreeMap<Vec<i64>, i64> = BTreeMap::new();
        for (rows, times) in distances.iter().filter_map(|one| self.skew.distance(one)) {
            let mut steps = vec![Vec::new()];
            for (rows, height) in rows.iter().zip(heights) {
                let ends = rows.div_euclid(*height)..=(height - 1 + rows).div_euclid(*height);
                let longer = |step: &Vec<i64>| {
                    let step = step.clone();
                    ends.clone().map(move |last| [step.as_slice(), &[last]].concat())
                };
                steps = steps.iter().flat_map(longer).collect();
            }
            for step in steps {
                let moved = step.iter().zip(&self.skew.times).zip(heights);
                let moved: i64 = moved.map(|((step, skew), height)| step * skew * height).sum();
                let ahead = (width - 1 + times - moved).div_euclid(width) + 1;
                let most = found.entry(step).or_insert(ahead);
                *most = ahead.max(*most);
            }
        }
        found.into_iter().collect()
    }

    /// Whether some dependence leads to earlier rows along all of the chosen dimensions.
    pub fn leads_before(&self, chosen: &[bool]) -> bool {
        let leads =
            |rows: &Vec<i64>| rows.iter().zip(chosen).all(|(rows, chosen)| !chosen || *rows < 0);
        self.offsets.iter().any(leads)
    }
}

/// A quotient of integers, rounded up.
pub fn ceil_div(value: i64, by: i64) -> i64 {
    value.div_euclid(by) + i64::from(value.rem_euclid(by) != 0)
}

/// A number of tiles, rows or points; 0 for a negative one.
pub fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the definition: every dependence has an earlier time and no later row.
    fn front(vectors: &[&[i64]]) -> Wavefront {
        let all: BTreeSet<Vec<i64>> = vectors.iter().map(|vector| vector.to_vec()).collect();
        let front = Wavefront::of(&all, vectors[0].len()).unwrap();
        for vector in vectors {
            let (last, rows) = vector.split_last().unwrap();
            let mut rows = rows.to_vec();
            if let [first, second] = rows.as_mut_slice() {
                *second += front.skew.shear * *first;
            }
            let time = last + rows.iter().zip(&front.skew.times).map(|(a, b)| a * b).sum::<i64>();
            assert!(time < 0 && rows.iter().all(|rows| *rows <= 0), "{vector:?}: {front:?}");
            assert!(rows.iter().zip(&front.rows).all(|(rows, most)| -rows <= *most), "{front:?}");
        }
        front
    }

    #[test]
    fn times_of_the_six_programs_and_of_others() {
        // Smith-Waterman, time warping and summed areas.
        assert_eq!(front(&[&[-1, -1], &[-1, 0], &[0, -1]]).skew.times, [1]);
        // A diagonal alone needs no skew: rows are independent at each column.
        assert_eq!(front(&[&[-1, -1]]).skew.times, [0]);
        // Values to the upper right.
        assert_eq!(front(&[&[-1, 1], &[0, -1]]).skew.times, [2]);
        let far = front(&[&[-2, 5], &[0, -1]]);
        assert_eq!((far.skew.times, far.rows), (vec![3], vec![2]));
        assert!(front(&[&[-1]]).skew.times.is_empty());
        // Gauss-Seidel in three dimensions.
        let seidel = front(&[&[-1, 0, 0], &[0, -1, 0], &[0, 0, -1]]);
        assert_eq!(seidel.skew, Skew { times: vec![1, 1], shear: 0 });
        assert_eq!(seidel.rows, [1, 1]);
        assert!(seidel.leads_before(&[true, false]) && !seidel.leads_before(&[true, true]));
        let sheared = front(&[&[-1, 2, 3], &[0, -1, 1], &[0, 0, -1]]);
        assert_eq!((sheared.skew.shear, sheared.rows), (2, vec![1, 1]));
    }

    /// Heat by Gauss-Seidel, tiles of 4 rows and 8 times, by hand. A point waits for the one to its
    /// right, one time later, and for the one below, one time later in the same tile row. In the
    /// tile row below the latter is in row 0, where times count from 4 later on.
    #[test]
    fn waits_for_the_sweep_before_by_hand() {
        let front = front(&[&[-1, 0], &[0, -1]]);
        let distances: Vectors = [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]].map(Vec::from).into();
        let found = front.waits_before(&distances, &[4], 8);
        // Row below: times up to 7 + 1 - 4. Own row: up to 7 + 1. Row above: up to 7 - 1 + 4.
        assert_eq!(found, [(vec![-1], 2), (vec![0], 2), (vec![1], 1)]);
    }

    /// Each point by itself: all that a tile waits for is in the tiles that it waits for.
    #[test]
    fn waits_for_the_sweep_before_cover_all_distances() {
        let front = front(&[&[-1, 1], &[0, -1], &[-2, 3]]);
        let distances: Vectors =
            [[2, -3], [1, 4], [0, 2], [-1, -5], [-2, 0], [0, 0]].map(Vec::from).into();
        for (height, width) in [(2, 1), (2, 5), (3, 8), (7, 4)] {
            let waits = front.waits_before(&distances, &[height], width);
            let time = |row: i64, x: i64| x + front.skew.times[0] * row.rem_euclid(height);
            for row in 4 * height..5 * height {
                for x in 0..40 {
                    let tile = time(row, x).div_euclid(width);
                    for distance in &distances {
                        let (to, x) = (row + distance[0], x + distance[1]);
                        let step = vec![to.div_euclid(height) - 4];
                        let ahead = waits.iter().find(|(one, _)| *one == step).unwrap().1;
                        assert!(time(to, x).div_euclid(width) < tile + ahead, "{distance:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_that_are_too_large_give_none() {
        for far in [MOST_CELLS + 1, i64::MAX, i64::MIN] {
            let all = BTreeSet::from([vec![-1, far]]);
            assert_eq!(Wavefront::of(&all, 2), None);
        }
    }
}
