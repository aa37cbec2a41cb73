//! Registers of a lane of a stream: an estimate from what is in flight, the limit to give to the
//! code generator, and how many planes are loaded or prefetched before their turn.

use super::pipeline::{Graph, Window};
use super::schedule::MANY;
use stencil_runtime::device::{Device, WARP};
use stencil_runtime::model;
use stencil_runtime::ranks::Devices;

/// Registers for addresses, the loop and what a point function computes; measured, with ptxas of
/// CUDA 13.0, on stars and boxes of radius 1 and 2.
pub const OVERHEAD: i64 = 28;
/// More of them where cells take two registers.
const WIDE_OVERHEAD: i64 = 16;
/// More of them for each field that is loaded beside the first, in cells.
const FIELD_OVERHEAD: i64 = 12;

/// More of them where sums over a box go on in several planes at once; by `j3d27pt`.
const BOX_OVERHEAD: i64 = 28;

/// More of them where parts of a block exchange rows, for each row beyond the first: addresses in
/// shared memory.
const PART_OVERHEAD: i64 = 4;

/// Warps on each scheduler of a multiprocessor whose lanes have many registers.
const WARPS: [u32; 3] = [4, 3, 2];

/// Registers per thread at which one more warp fits on each scheduler, rising.
fn register_steps(device: &Device) -> [i64; 3] {
    WARPS.map(|warps| model::most_registers(warps * device.schedulers * WARP, device).into())
}

/// The register limit of a kernel with this estimate: the next step at or above the estimate, but
/// no more than all threads of a block have room for.
pub fn limit(estimate: i64, threads: i64, device: &Device) -> i64 {
    let most = model::most_registers(u32::try_from(threads).unwrap_or(u32::MAX), device);
    let step = register_steps(device).into_iter().find(|step| estimate <= *step);
    step.unwrap_or(device.registers_per_thread.into()).min(most.into())
}

/// Planes to load ahead. In two dimensions two or three hide the memory's latency beside the other
/// warps' work, and a divisor of the body needs no moves. In three dimensions one is enough,
/// because an iteration takes longer than that latency.
pub fn ahead(graph: &Graph, unroll: i64) -> i64 {
    if graph.is_solid() {
        1
    } else {
        (2..=3).rev().find(|planes| unroll % planes == 0).unwrap_or(3)
    }
}

/// Rows further on that are prefetched into the level 2 cache, so that loads wait for that cache
/// alone.
pub const PREFETCH: i64 = 4;

/// The rows to prefetch of those that one device would. A prefetch from another device's memory
/// takes long: on two H200 a launch of `star2d1r` took 0.92 ms without prefetches, and 1.31 ms with
/// them.
pub fn prefetch_of_devices(rows: i64, devices: &Devices) -> i64 {
    if devices.count() > 1 { 0 } else { rows }
}

/// The most fields that are always prefetched. With more, memory is saturated and rows fetched
/// early evict others from the cache, unless few warps leave room.
const PREFETCHED: usize = 2;

/// Planes to prefetch. On an H200 four rows made streams of one or two fields up to a quarter
/// faster and none slower. Streams of three fields were a tenth slower with 12 and 16 warps a
/// multiprocessor, and with 8 between 15 per cent faster and 4 slower. Nine fields (`d2q9`) with 8
/// warps were 6 per cent faster by one schedule, and 3 to 15 slower by four others
/// (`test-suite/bench/results/2026-11-27-h200-d2q9.tsv`). In three dimensions planes cost a fifth.
pub fn prefetch(graph: &Graph, registers: i64, device: &Device) -> i64 {
    let [_, step, _] = register_steps(device);
    let few = registers > step;
    let most = if few { MANY } else { PREFETCHED };
    if graph.is_solid() || graph.loaded().count() > most { 0 } else { PREFETCH }
}

/// An estimate of the registers that a lane needs, planes loaded ahead included.
pub fn estimate(graph: &Graph, windows: &[Window], ahead: i64) -> i64 {
    let cells = graph.values.iter().zip(windows).map(|(value, window)| {
        let load = !graph.reads.iter().any(|read| read.operation == value.operation);
        let waiting = if load { ahead * graph.width * graph.rows_per_lane } else { 0 };
        value.words * (window.carried(graph.width) + waiting)
    });
    let widest = graph.values.iter().map(|value| value.words).max().unwrap_or(1);
    // Rows of other parts are all there at once, with the edges of a plane.
    let others = graph.values.iter().zip(windows).filter(|(_, window)| window.shared.is_some());
    let coming = others.map(|(value, window)| {
        let foreign =
            || window.rows.iter().filter(|row| !(0..graph.rows_per_lane).contains(&row.row));
        let edges = window.rows.iter().map(|row| row.edges.len()).sum::<usize>();
        // A star's are taken row by row.
        let corners = foreign().any(|row| !row.edges.is_empty());
        let (edges, more) = if corners { (edges, BOX_OVERHEAD) } else { (edges / 2, 0) };
        let rows = i64::try_from(foreign().count()).unwrap_or(0);
        value.words * (rows * graph.width + i64::try_from(edges).unwrap_or(0))
            + (rows - 1) * PART_OVERHEAD
            + more
    });
    let fields = i64::try_from(graph.loaded().count()).unwrap_or(1).max(1);
    // Code of planes in one version holds no addresses of a second one.
    let more = if graph.is_solid() && !graph.split {
        0
    } else {
        (fields - 1) * FIELD_OVERHEAD + if widest > 1 { WIDE_OVERHEAD } else { 0 }
    };
    OVERHEAD
        + more
        + cells.sum::<i64>()
        + coming.max().unwrap_or(0)
        + widest * (graph.width * graph.rows_per_lane + graph.scratch)
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::{Read, Value};
    use super::*;
    use stencil_runtime::device::H200;

    /// Streams of some fields, each read by one operation.
    fn fields(count: usize) -> Graph {
        let value = |operation| Value { operation, words: 1 };
        let offsets = [[-1, 0], [0, 0], [1, 0]];
        let reads =
            |value| offsets.map(|offset| Read { operation: count, value, offset: offset.to_vec() });
        Graph {
            values: (0..=count).map(value).collect(),
            reads: (0..count).flat_map(reads).collect(),
            rows_per_lane: 1,
            width: 4,
            scratch: 0,
            split: true,
        }
    }

    #[test]
    fn register_steps_follow_from_the_warps_of_a_quarter() {
        assert_eq!(register_steps(&H200), [128, 168, 255]);
        assert_eq!(
            [100, 128, 129, 200, 300].map(|all| limit(all, 32, &H200)),
            [128, 128, 168, 255, 255]
        );
        assert_eq!(limit(200, 512, &H200), 128);
    }

    #[test]
    fn three_fields_are_prefetched_where_few_warps_fit() {
        let [_, step, _] = register_steps(&H200);
        let few = step + 1;
        assert_eq!(prefetch(&fields(2), 0, &H200), PREFETCH);
        assert_eq!(prefetch(&fields(3), step, &H200), 0);
        assert_eq!(prefetch(&fields(3), few, &H200), PREFETCH);
        assert_eq!(prefetch(&fields(9), few, &H200), 0);
    }
}
