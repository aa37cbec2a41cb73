//! How many tile times a wavefront takes, and where its blocks are idle: arithmetic on tile rows.
//!
//! A wave is a list of tile rows, each cut into tiles. All tiles take the same time, the *tile
//! time*, which is the unit here. Blocks take tile rows in turn. A tile waits until the tile rows
//! above are ahead by their lag.
//!
//! Source: Belviranli, Deng, Gupta, Zhu, Bhuyan, "PeerWave: Exploiting Wavefront Parallelism on
//! GPUs with Peer-SM Synchronization", figures 2, 3 and 11 and section 4. Three things differ:
//!
//! - Tiles are counted in whole numbers. The paper divides sizes.
//! - A block waits for its own last tile row only where that ends later than the lag requires, so
//!   the paper's `B` is never negative. There are no more blocks than tile rows.
//! - The paper's equation 2 has a lag of one tile for each block. Its equation 3 has `h / w + 1`
//!   for tiles of `h` rows and `w` times, which is right. Both agree where each block has one tile
//!   row.

use super::pace::Pace;

/// The most tile rows whose starts are followed one by one.
pub const MOST_ROWS: u64 = 1 << 22;

/// Which other tile row a tile row waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The dimensions along which the other tile row lies one earlier.
    pub before: Vec<bool>,
    /// Tiles by which it must be ahead.
    pub lag: u64,
}

/// Which tile row of the sweep before a tile row waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// Tile rows along each dimension to the other one.
    pub step: Vec<i64>,
    /// Tiles by which it must be ahead. Negative where it may be behind.
    pub lag: i64,
}

/// The tile rows of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wave {
    /// Tile rows along each dimension but the fastest. Blocks take them in row-major order.
    pub counts: Vec<u64>,
    /// Tiles of a tile row.
    pub tiles: u64,
    /// Times (diagonals) of a tile.
    pub width: u64,
    /// Tile times for which a block stays busy with a tile row after its last tile.
    pub drain: u64,
    /// The tile rows that a tile row waits for.
    pub waits: Vec<Wait>,
    /// Blocks that the device runs at once.
    pub resident: u64,
    /// Sweeps of a launch, whose tile rows blocks take one sweep behind the other; 0 as 1.
    pub sweeps: u64,
    /// The tile rows of the sweep before that a tile row waits for, where there are several sweeps.
    pub behind: Vec<Behind>,
}

/// Times of tiles in which blocks have nothing to do: figure 11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// At the beginning and at the end, where there are fewer tiles than blocks.
    pub corner: u64,
    /// Between.
    pub intermediate: u64,
}

impl Wave {
    /// Tile rows of a sweep.
    pub fn rows(&self) -> u64 {
        self.counts.iter().copied().fold(1, u64::saturating_mul)
    }

    /// Tile rows of all sweeps of a launch.
    pub fn all_rows(&self) -> u64 {
        self.rows().saturating_mul(self.sweeps.max(1))
    }

    /// Blocks with something to do: the paper's `P`, but no more than tile rows.
    pub fn blocks(&self) -> u64 {
        self.resident.min(self.all_rows()).max(1)
    }

    /// Tile times of a tile row.
    fn length(&self) -> u64 {
        self.tiles.saturating_add(self.drain)
    }

    /// The lag along the only dimension of tile rows; none of several dimensions, and none of
    /// several sweeps.
    fn lag(&self) -> Option<u64> {
        let lags = self.waits.iter().map(|wait| wait.lag.min(self.tiles));
        (self.counts.len() < 2 && self.sweeps < 2).then(|| lags.max().unwrap_or(0))
    }

    /// Tile times for which a block's next tile row could begin but the block is still busy with
    /// its present one. This is equation 2 in tile times, with the lag of equation 3. None for tile
    /// rows of several dimensions.
    pub fn blocked(&self) -> Option<u64> {
        Some(self.length().saturating_sub(self.blocks().saturating_mul(self.lag()?)))
    }

    /// Tile times of the whole launch: equation 3 without its factor. None for tile rows of several
    /// dimensions or sweeps that are more than [`MOST_ROWS`].
    pub fn critical_path(&self) -> Option<u64> {
        let Some(others) = self.rows().checked_sub(1) else { return Some(0) };
        let Some((lag, blocked)) = self.lag().zip(self.blocked()) else {
            return self.starts()?.into_iter().max().map(|last| last.saturating_add(self.length()));
        };
        let above = lag.saturating_mul(others);
        let turns = blocked.saturating_mul(others / self.blocks());
        Some(above.saturating_add(turns).saturating_add(self.length()))
    }

    /// Seconds of a sweep: equation 3, or a launch's by its sweeps. None as for
    /// [`Self::critical_path`].
    pub fn seconds(&self, pace: &Pace) -> Option<f64> {
        let whole = self.critical_path()? as f64 * pace.tile(self.width);
        Some(whole / self.sweeps.max(1) as f64)
    }

    /// Waits of all tiles, one for each tile row that a tile looks at.
    pub fn waited(&self) -> u64 {
        let with = |wait: &Wait| {
            let counts = self.counts.iter().zip(&wait.before);
            let rows = counts.map(|(count, before)| count.saturating_sub(u64::from(*before)));
            rows.fold(1, u64::saturating_mul)
        };
        let own = self.waits.iter().map(with).fold(0, u64::saturating_add);
        let others = self.behind.iter().map(|behind| {
            let counts = self.counts.iter().zip(&behind.step);
            let rows = counts.map(|(count, step)| count.saturating_sub(step.unsigned_abs()));
            rows.fold(1, u64::saturating_mul)
        });
        let others = others.fold(0, u64::saturating_add);
        let all = own.saturating_mul(self.sweeps.max(1));
        let later = others.saturating_mul(self.sweeps.saturating_sub(1));
        all.saturating_add(later).saturating_mul(self.tiles)
    }

    /// The tile time at which each tile row of each sweep begins; none of more than [`MOST_ROWS`].
    pub fn starts(&self) -> Option<Vec<u64>> {
        self.starts_with(self.blocks())
    }

    fn starts_with(&self, blocks: u64) -> Option<Vec<u64>> {
        let all = self.all_rows();
        let count = usize::try_from(all).ok().filter(|_| all <= MOST_ROWS)?;
        let rows = usize::try_from(self.rows()).ok()?;
        let mut starts: Vec<u64> = Vec::with_capacity(count);
        let mut place = vec![0; self.counts.len()];
        for row in 0..count {
            let own = usize::try_from(blocks).ok().and_then(|blocks| row.checked_sub(blocks));
            let own = own
                .and_then(|own| starts.get(own))
                .map(|start| start.saturating_add(self.length()));
            let first = row - row % rows.max(1);
            let others = self.waits.iter().filter_map(|wait| {
                let steps = wait.before.iter().map(|before| -i64::from(*before));
                let other = starts.get(first + self.row_at(&place, steps)?)?;
                Some(other.saturating_add(wait.lag.min(self.tiles)))
            });
            let before = self.behind.iter().filter_map(|behind| {
                let other = self.row_at(&place, behind.step.iter().copied())?;
                let other = starts.get(first.checked_sub(rows)? + other)?;
                let lag = behind.lag.min(i64::try_from(self.length()).unwrap_or(i64::MAX));
                Some(other.saturating_add_signed(lag))
            });
            starts.push(others.chain(before).chain(own).max().unwrap_or(0));
            // The next place in row-major order.
            for (at, count) in place.iter_mut().zip(&self.counts).rev() {
                *at += 1;
                if *at < *count {
                    break;
                }
                *at = 0;
            }
        }
        Some(starts)
    }

    /// The number in its sweep of the tile row some steps from a place.
    fn row_at(&self, place: &[u64], steps: impl Iterator<Item = i64>) -> Option<usize> {
        let mut row = 0;
        for ((at, count), step) in place.iter().zip(&self.counts).zip(steps) {
            let at = at.checked_add_signed(step).filter(|at| at < count)?;
            row = row * count + at;
        }
        usize::try_from(row).ok()
    }

    /// Slots in which blocks are idle under flags: those before a block's first tile row and behind
    /// its last are corner slots, those between two of its tile rows intermediate ones. A slot is a
    /// block's time of one tile. None of more than [`MOST_ROWS`] tile rows.
    pub fn idle_with_flags(&self) -> Option<Idle> {
        let starts = self.starts()?;
        let end = self.critical_path()?;
        let blocks = usize::try_from(self.blocks()).ok()?;
        let mut idle = Idle::default();
        for (row, start) in starts.iter().enumerate() {
            match row.checked_sub(blocks).and_then(|own| starts.get(own)) {
                Some(own) => {
                    let done = own.saturating_add(self.length());
                    idle.intermediate = idle.intermediate.saturating_add(start - done);
                }
                None => idle.corner = idle.corner.saturating_add(*start),
            }
            if row + blocks >= starts.len() {
                let done = start.saturating_add(self.length());
                idle.corner = idle.corner.saturating_add(end - done);
            }
        }
        Some(idle)
    }

    /// The number of tile diagonals, and the idle slots with a barrier after each. A diagonal of
    /// `n` tiles on `p` blocks leaves `ceil(n / p) p - n` slots idle: figure 3 (a). These are
    /// corner slots where `n < p` (section 7.3), else intermediate ones. None for more than
    /// [`MOST_ROWS`] tile rows, and for several sweeps, which have no common diagonals.
    pub fn diagonals(&self) -> Option<(u64, Idle)> {
        let (rows, blocks) = (self.rows(), self.blocks());
        if self.sweeps > 1 {
            return None;
        }
        // Without other tile rows of its block, a tile row begins with its first diagonal.
        let mut firsts = self.starts_with(rows)?;
        firsts.sort_unstable();
        let end = |first: &u64| first.saturating_add(self.tiles);
        let mut ends: Vec<u64> = firsts.iter().map(end).collect();
        ends.dedup();
        let mut changes: Vec<u64> = firsts.iter().chain(&ends).copied().collect();
        changes.sort_unstable();
        changes.dedup();
        let mut idle = Idle::default();
        for (from, to) in changes.iter().zip(changes.iter().skip(1)) {
            let begun = firsts.partition_point(|first| first <= from);
            let done = firsts.partition_point(|first| end(first) <= *from);
            let tiles = (begun - done) as u64;
            let slots = (tiles.next_multiple_of(blocks) - tiles).saturating_mul(to - from);
            let kind = if tiles < blocks { &mut idle.corner } else { &mut idle.intermediate };
            *kind = kind.saturating_add(slots);
        }
        Some((ends.last().copied().unwrap_or(0), idle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tile rows one below the other.
    fn wave(rows: u64, tiles: u64, lag: u64, resident: u64) -> Wave {
        let waits = vec![Wait { before: vec![true], lag }];
        let wave = Wave { counts: vec![rows], tiles, width: 1, waits, ..Wave::default() };
        Wave { resident, ..wave }
    }

    /// Figure 2: 8 x 8 tiles on 4 multiprocessors, by hand. With a barrier the diagonals of 1 to 8
    /// to 1 tiles leave 3, 2, 1, 0, 3, 2, 1, 0, 1, 2, 3, 0, 1, 2, 3 slots idle: three diagonals at
    /// each end have fewer than 4 tiles. With flags block `b` begins `b` tile times late and ends
    /// `3 - b` early.
    #[test]
    fn figure_2_by_hand() {
        let wave = wave(8, 8, 1, 4);
        assert_eq!(wave.diagonals(), Some((15, Idle { corner: 12, intermediate: 12 })));
        assert_eq!(wave.idle_with_flags(), Some(Idle { corner: 12, intermediate: 0 }));
        assert_eq!(wave.starts(), Some(vec![0, 1, 2, 3, 8, 9, 10, 11]));
        assert_eq!((wave.blocked(), wave.critical_path()), (Some(4), Some(19)));
        assert_eq!(wave.waited(), 56);
    }

    /// Two sweeps of two tile rows with three tiles each, by hand: a tile row waits for one tile of
    /// the row above, and for one of the row below in the sweep before. With a block for each, the
    /// second sweep begins two tile times late. One block does one after the other.
    #[test]
    fn two_sweeps_by_hand() {
        let behind = [0, 1].map(|step| Behind { step: vec![step], lag: 1 }).to_vec();
        let two = Wave { sweeps: 2, behind, ..wave(2, 3, 1, 4) };
        assert_eq!(two.starts(), Some(vec![0, 1, 2, 3]));
        assert_eq!((two.critical_path(), two.blocks()), (Some(6), 4));
        let pace = Pace { diagonal: 1.0, handover: 0.0 };
        assert_eq!(two.seconds(&pace), Some(3.0));
        // Waits for the row above: 1 a sweep. For the sweep before: 2 beside, 1 below.
        assert_eq!(two.waited(), 3 * (2 + 3));
        assert_eq!(two.idle_with_flags(), Some(Idle { corner: 12, intermediate: 0 }));
        let one = Wave { resident: 1, ..two };
        assert_eq!(one.starts(), Some(vec![0, 3, 6, 9]));
        assert_eq!(one.diagonals(), None);
    }

    /// Each tile by itself: it begins when the one before is done, when the others that it waits
    /// for are, and when its block is free.
    fn followed(wave: &Wave) -> u64 {
        let (rows, tiles) = (wave.rows() as usize, wave.tiles as usize);
        let mut done = vec![vec![0; tiles]; rows];
        for row in 0..rows {
            for tile in 0..tiles {
                let mut start = match tile {
                    0 => row
                        .checked_sub(wave.blocks() as usize)
                        .map_or(0, |own| done[own][tiles - 1]),
                    _ => done[row][tile - 1],
                };
                let columns = wave.counts.last().copied().unwrap_or(1) as usize;
                for wait in &wave.waits {
                    let by = match wait.before.as_slice() {
                        [above] => usize::from(*above),
                        [above, beside] => {
                            if *beside && row % columns == 0 {
                                continue;
                            }
                            usize::from(*above) * columns + usize::from(*beside)
                        }
                        _ => continue,
                    };
                    if let Some(other) = row.checked_sub(by) {
                        let needed = (tile + wait.lag as usize).min(tiles);
                        start = start.max(done[other][needed - 1]);
                    }
                }
                done[row][tile] = start + 1;
            }
        }
        done.iter().flatten().copied().max().unwrap_or(0)
    }

    #[test]
    fn the_critical_path_is_that_of_tiles_one_by_one() {
        for rows in [1, 2, 3, 7, 8, 9] {
            for tiles in [1, 2, 5, 20] {
                for lag in [1, 2, 5] {
                    for resident in [1, 2, 3, 8, 40] {
                        let wave = wave(rows, tiles, lag, resident);
                        assert_eq!(wave.critical_path(), Some(followed(&wave)), "{wave:?}");
                        let last = wave.starts().and_then(|starts| starts.last().copied());
                        assert_eq!(last.map(|last| last + tiles), wave.critical_path(), "{wave:?}");
                        let idle = wave.idle_with_flags().unwrap();
                        let slots = wave.blocks() * wave.critical_path().unwrap();
                        assert_eq!(idle.corner + idle.intermediate + rows * tiles, slots);
                        let beside = Wave {
                            counts: vec![rows, 3],
                            waits: vec![
                                Wait { before: vec![true, false], lag },
                                Wait { before: vec![false, true], lag: 1 },
                            ],
                            ..wave
                        };
                        assert_eq!(beside.critical_path(), Some(followed(&beside)), "{beside:?}");
                    }
                }
            }
        }
    }

    /// Sizes and times of a tile, as in table 1.
    struct Paper {
        rows: f64,
        columns: f64,
        height: f64,
        blocks: f64,
        pace: Pace,
    }

    impl Paper {
        /// Equations 1 to 3 as they are printed.
        fn total(&self, width: f64) -> f64 {
            let Self { rows, columns, height, blocks, pace } = self;
            let tile = width * pace.diagonal + pace.handover;
            let blocked = (columns + height) / width * tile - blocks * tile;
            rows / height * (height / width + 1.0) * tile
                + blocked * (rows / (height * blocks) - 1.0)
                + (columns / width - 1.0) * tile
        }

        /// Equation 4 as it is printed.
        fn width(&self) -> f64 {
            let Self { rows: h, columns: w, height: t, blocks: p, pace } = self;
            let sum = h * w + h * t + h * t * p - t * t * p;
            (pace.handover * sum / (pace.diagonal * t * p * (p - 1.0))).sqrt()
        }

        /// The model for tiles of a width.
        fn model(&self, width: u64) -> f64 {
            let lag = self.height as u64 / width + 1;
            let tiles = (self.columns + self.height) as u64 / width;
            let rows = (self.rows / self.height) as u64;
            let wave = Wave { width, ..wave(rows, tiles, lag, self.blocks as u64) };
            wave.seconds(&self.pace).unwrap()
        }
    }

    /// The paper's case: 15 multiprocessors, tiles of 1,024 rows, and its matrix of 2,025 tiles.
    fn paper(rounds: f64) -> Paper {
        let pace = Pace { diagonal: 1e-6, handover: 4e-6 };
        let rows = 15.0 * 1024.0 * rounds;
        Paper { rows, columns: 46_080.0, height: 1024.0, blocks: 15.0, pace }
    }

    #[test]
    fn equation_4_is_the_limit_of_the_best_width() {
        // The printed equation 4 minimizes the printed equation 3.
        let paper = paper(1.0);
        let (width, least) = (paper.width(), paper.total(paper.width()));
        for other in [0.9 * width, 0.99 * width, 1.01 * width, 1.1 * width] {
            assert!(paper.total(other) > least, "{other} {width}");
        }
        // So does it minimize the model, where each block has one tile row.
        let widths: Vec<u64> = (1..=10).map(|power| 1 << power).collect();
        for width in &widths {
            let (model, total) = (paper.model(*width), paper.total(*width as f64));
            assert!((model / total - 1.0).abs() < 1e-12, "{width}: {model} {total}");
        }
        let best = widths.iter().min_by(|a, b| paper.model(**a).total_cmp(&paper.model(**b)));
        let best = *best.unwrap() as f64;
        assert!((0.5..2.0).contains(&(best / width)), "{best} {width}");
    }

    /// With three rounds the printed equation 2 counts waits that are not there.
    #[test]
    fn the_printed_equations_are_too_long_for_several_rounds() {
        let paper = paper(3.0);
        for width in [32, 64, 128, 256] {
            assert!(paper.total(width as f64) > 1.1 * paper.model(width), "{width}");
        }
    }

    #[test]
    fn waves_without_rows_and_of_too_many() {
        let none = wave(0, 8, 1, 4);
        assert_eq!((none.critical_path(), none.waited()), (Some(0), 0));
        assert_eq!(none.diagonals(), Some((0, Idle::default())));
        assert_eq!(none.idle_with_flags(), Some(Idle::default()));
        // Rows that depend on themselves alone: no waits.
        let alone = Wave { waits: Vec::new(), ..wave(9, 8, 1, 4) };
        assert_eq!((alone.critical_path(), alone.waited()), (Some(24), 0));
        assert_eq!(wave(MOST_ROWS + 1, 8, 1, 4).starts(), None);
        assert!(wave(MOST_ROWS + 1, 8, 1, 4).critical_path().is_some());
        assert_eq!(wave(u64::MAX, u64::MAX, u64::MAX, 4).critical_path(), Some(u64::MAX));
        // Numbers beyond 64 bits count as the largest.
        let wide = wave(9, u64::MAX / 2, u64::MAX, 4);
        assert_eq!(wide.idle_with_flags().map(|idle| idle.corner), Some(u64::MAX));
        assert!(wide.diagonals().is_some());
        // Of one dimension: a single tile row without a dimension of its own.
        let single = Wave { counts: Vec::new(), waits: Vec::new(), ..wave(1, 5, 1, 4) };
        assert_eq!((single.rows(), single.critical_path()), (1, Some(5)));
        assert_eq!(single.diagonals(), Some((5, Idle::default())));
    }
}
