//! What a step of a cell costs a thread, by the tile, the steps of a launch and the processor.
//!
//! A tile streams along its slowest dimension. With `t` cells of a tile, `n` of the grid,
//! `k = ceil(n / t)` tiles and a reach of `r` cells on both sides together in a dimension, a launch
//! of `T` steps computes `1 + (T - 1) / 2 * r / t * (k - 1) / k` times the tile there and loads
//! `1 + T * r / t * (k - 1) / k` times: tiles at the ends of the grid have no halo there. The
//! products over the dimensions are `computed` and `loaded`. In cycles of a thread,
//!
//! ```text
//! step = (code * (t + ENDS * lanes) + ROW) / t + CALL / (slab * rest) + state
//! cost = balance * (computed * step
//!                   + (read * loaded + 2 * written) / T / far) + LAUNCH / (T * cells of a thread)
//! ```
//!
//! where `t` is that of the rows and `rest` all but the slowest dimension. `state` is the time in
//! which a cell's step gets what it reads and writes: all rows from the second cache, and each
//! value once from the third, where that holds the windows of all steps. `far` is the rate of the
//! cache that holds the grids, or of memory. Lines that are written are read before. `balance` is
//! the cells of the busiest thread, divided by the mean over all threads.
//!
//! The rates are those of an AMD EPYC of 2024 (Zen 5). They were fitted to fourteen programs with
//! 26 schedules each ([record](../../../../test-suite/bench/results/2026-11-28-cpu-schedules.tsv)).

use stencil_runtime::processor::Processor;

/// Steps of a launch from which on the code grows and little is gained.
pub const MOST_STEPS: i64 = 32;

/// Bytes that a core takes from its second cache in a cycle: a line.
const FROM_L2: f64 = 64.0;
/// From the third cache when all cores ask.
const FROM_L3: f64 = 48.0;
/// From memory: 30 GB/s for each core at 3.9 GHz.
const FROM_MEMORY: f64 = 8.0;
/// Cycles of code for each cycle that [`super::reads`] counts. That counts two operations a cycle;
/// cores begin up to four, and a fused multiply-add is one operation in place of two.
const CODE: f64 = 0.4;
/// Vectors of a row beside those that its cells fill: the ends begin and end with the row.
const ENDS: i64 = 3;
/// Cycles until a row's first vector: the addresses of the rows that it reads.
const ROW: f64 = 50.0;
/// The part of the second cache that windows may take: grids stream through it.
const OF_L2: f64 = 0.75;
/// The part of the third cache that windows or grids may take: other programs use it too.
const OF_L3: f64 = 0.45;
/// Cycles of a call for some planes: its arguments, the bounds of its loops.
const CALL: f64 = 200.0;
/// Cycles until all threads have a launch's first tile, and until the last has ended.
const LAUNCH: f64 = 30_000.0;

/// What a group of functions does in a step, for a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Cells of the grid along each dimension; none where the size is that of a run.
    pub extents: Vec<Option<i64>>,
    /// Cells that a step reaches beyond a point, both sides together, along each dimension.
    pub reach: Vec<i64>,
    /// Cycles of the code.
    pub code: f64,
    /// Lanes of a vector.
    pub lanes: i64,
    /// Planes that a call takes at once.
    pub slab: i64,
    /// Bytes that a launch reads of the grids.
    pub read: i64,
    /// Bytes that a launch writes to the grids.
    pub written: i64,
    /// Bytes of rows that a step reads and writes: those of neighbours are read again.
    pub rows: f64,
    /// Bytes of values that a step reads and writes: neighbours stay in the second cache.
    pub state: i64,
    /// Bytes of windows for a cell of a plane, of all its planes, for each step.
    pub windows: i64,
    /// The same of a launch: those of what it loads.
    pub copies: i64,
}

/// Cycles of a thread for a step of a cell; none where the state is too much for every cache.
pub fn cost(work: &Work, processor: Processor, tile: &[i64], steps: i64) -> Option<f64> {
    let (mut computed, mut loaded, mut tiles, mut cells) = (1.0, 1.0, 1, 1.0);
    let (mut plane, mut rest, mut own_cells) = (1.0, 1.0, 1.0);
    for (dimension, (own, reach)) in tile.iter().zip(&work.reach).enumerate() {
        let extent = work.extents.get(dimension).copied().flatten();
        let count = extent.map_or(i64::MAX, |cells| (cells + own - 1) / own).max(1);
        let inner = extent.map_or(1.0, |_| (count - 1) as f64 / count as f64);
        let halo = *reach as f64 / *own as f64 * inner;
        computed *= 1.0 + (steps - 1) as f64 / 2.0 * halo;
        loaded *= 1.0 + steps as f64 * halo;
        tiles = i64::saturating_mul(tiles, count);
        own_cells *= extent.map_or(*own, |cells| cells.min(*own)) as f64;
        cells *= extent.map_or(*own as f64, |cells| cells as f64);
        if dimension > 0 || tile.len() == 1 {
            plane *= *own as f64 * (1.0 + steps as f64 / 2.0 * halo);
            rest *= *own as f64;
        }
    }
    let threads = i64::from(processor.threads);
    let open = work.extents.iter().any(Option::is_none);
    let balance = if open {
        1.0
    } else {
        ((tiles + threads - 1) / threads * threads) as f64 * own_cells / cells
    };
    let [l2, l3] = [processor.l2, processor.l3].map(|bytes| bytes as f64);
    let (rows, state) = (work.rows, work.state as f64);
    let state = match (work.windows * steps + work.copies) as f64 * plane {
        all if all <= OF_L2 * l2 => rows / FROM_L2,
        all if all <= OF_L3 * l3 => rows / FROM_L2 + state / FROM_L3,
        _ => return (steps == 1).then_some(f64::MAX),
    };
    let grids = cells * (work.read + work.written) as f64;
    let far = if !open && grids <= OF_L3 * l3 * threads as f64 { FROM_L3 } else { FROM_MEMORY };
    let row = tile.last().copied().unwrap_or(1) as f64;
    let code = (CODE * work.code * (row + (ENDS * work.lanes) as f64) + ROW) / row;
    let step = code + CALL / (work.slab as f64 * rest) + state;
    let moved = work.read as f64 * loaded + 2.0 * work.written as f64;
    let share = if open { cells * 8.0 } else { cells / threads as f64 };
    let launch = LAUNCH / (steps as f64 * share);
    Some(balance * (computed * step + moved / steps as f64 / far) + launch)
}

/// The steps of a launch that cost least with a tile; one where nothing fits.
pub fn height(work: &Work, processor: Processor, tile: &[i64]) -> (f64, i64) {
    let mut best = (f64::INFINITY, 1);
    for steps in [1, 2, 3, 4, 6, 8, 12, 16, 24, MOST_STEPS] {
        match cost(work, processor, tile, steps) {
            Some(cost) if cost < best.0 => best = (cost, steps),
            _ => {}
        }
    }
    best
}

/// The tile that costs least.
pub fn tile(work: &Work, processor: Processor) -> Vec<i64> {
    let sides = (0..work.reach.len()).map(|dimension| sides(work, processor, dimension));
    let mut tiles = vec![Vec::new()];
    for sides in sides {
        tiles = tiles
            .iter()
            .flat_map(|tile| sides.iter().map(move |side| [tile.as_slice(), &[*side]].concat()))
            .collect();
    }
    let costs = tiles.into_iter().map(|tile| (height(work, processor, &tile).0, tile));
    let best = costs.min_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map_or_else(|| vec![1; work.reach.len()], |(_, tile)| tile)
}

/// Cells of a tile along a dimension that are looked at: powers of two, and equal parts of the
/// grid, which rows fill whole or in powers of two.
fn sides(work: &Work, processor: Processor, dimension: usize) -> Vec<i64> {
    let rank = work.reach.len();
    let (least, most) = match (dimension + 1 == rank, rank) {
        (true, 1) => (10, 16),
        (true, _) => (7, 12),
        (false, 2) => (6, 10),
        _ => (3, 8),
    };
    let powers = (least..=most).map(|power| 1_i64 << power);
    let Some(extent) = work.extents.get(dimension).copied().flatten() else {
        return powers.collect();
    };
    let extent = extent.max(1);
    let mut sides: Vec<i64> = powers.filter(|side| *side < extent).collect();
    let rows = dimension + 1 == rank && rank > 1;
    let parts = match dimension {
        _ if rows => 1,
        0 => 4 * i64::from(processor.threads),
        _ => 4,
    };
    let longest = if dimension + 1 == rank { 1 << most } else { 1 << 14 };
    let equal = (1..=parts).map(|parts| ((extent + parts - 1) / parts).max(1));
    sides.extend(equal.filter(|side| *side <= longest));
    if sides.is_empty() {
        sides.push(1 << least);
    }
    sides.sort_unstable();
    sides.dedup();
    sides
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSOR: Processor =
        Processor { threads: 2, l1: 32 << 10, l2: 1 << 20, l3: 16 << 20, vector: 64 };

    /// `heat2d` in f32: two grids read and one written, windows of 8 rows, half a cycle of code.
    fn heat(extent: i64) -> Work {
        Work {
            extents: vec![Some(extent); 2],
            reach: vec![2, 2],
            code: 0.5,
            lanes: 16,
            slab: 4,
            read: 8,
            written: 4,
            rows: 24.0,
            state: 16,
            windows: 32,
            copies: 0,
        }
    }

    /// By hand, two tiles of 512 x 1024, 16 steps: halos between them alone, 2 / 512 / 2 of a tile
    /// a step. The windows are 16 * 32 * 1024 bytes, half of the second cache. The grids, 12 MiB,
    /// lie in the third.
    #[test]
    fn a_cost_by_hand() {
        let halo = 2.0 / 512.0 / 2.0;
        let code = (0.4 * 0.5 * (1024.0 + 48.0) + 50.0) / 1024.0;
        let step = code + 200.0 / 4096.0 + 24.0 / 64.0;
        let moved = (8.0 * (1.0 + 16.0 * halo) + 8.0) / 16.0 / 48.0;
        let launch = 30_000.0 / (16.0 * 524_288.0);
        let wanted = (1.0 + 7.5 * halo) * step + moved + launch;
        let found = cost(&heat(1024), PROCESSOR, &[512, 1024], 16).unwrap();
        assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        // One tile leaves a thread idle.
        assert!(cost(&heat(1024), PROCESSOR, &[1024, 1024], 16).unwrap() > 1.9 * wanted);
        // Windows beyond all caches.
        assert_eq!(cost(&heat(1 << 20), PROCESSOR, &[512, 1 << 20], 32), None);
    }

    #[test]
    fn sizes_of_a_run_are_open() {
        let work = Work { extents: vec![None; 2], ..heat(1024) };
        assert_eq!(tile(&work, PROCESSOR).len(), 2);
        assert!(cost(&work, PROCESSOR, &[512, 1024], 8).unwrap().is_finite());
    }

    #[test]
    fn all_threads_have_work() {
        for threads in [1, 2, 3, 8, 64] {
            for extent in [64, 500, 1024, 4096] {
                let processor = Processor { threads, ..PROCESSOR };
                let tile = tile(&heat(extent), processor);
                let tiles: i64 = tile.iter().map(|side| (extent + side - 1) / side).product();
                let threads = i64::from(threads);
                let busy = tiles as f64 / ((tiles + threads - 1) / threads * threads) as f64;
                assert!(busy > 0.7 || extent < 500, "{threads} threads, {extent}: {tile:?}");
            }
        }
    }

    #[test]
    fn a_larger_cache_takes_more_steps() {
        let small = Processor { l2: 256 << 10, l3: 256 << 10, ..PROCESSOR };
        let tile = [512, 1024];
        let steps = [small, PROCESSOR].map(|one| height(&heat(4096), one, &tile).1);
        assert!(steps[0] < steps[1] && steps[0] >= 4, "{steps:?}");
    }
}
