//! The pipeline of a tile graph that streams its slowest dimension: how far each value runs behind
//! the newest loaded row, which rows of it stay in flight, and what that costs in registers.
//!
//! A *row* is a row of the tile in two dimensions and a plane in three. Iteration `k` computes row
//! `k - lag(v)` of every value `v`. The *age* of a row is the number of iterations since it was
//! computed, so a reader `v` that reads row offset `d` of `u` wants the row of age
//! `lag(v) - d - lag(u)`.
//!
//! Along the fastest dimension a lane holds `width` neighbouring cells, numbered 0 to `width - 1`.
//! Cells outside of these that a reader wants are *edges*: copies of other lanes' cells, taken when
//! their row is first read at that column and kept until it is last read there.

use std::collections::BTreeMap;

/// One value that an operation of the tile kernel produces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The operation; values of one operation are computed together. Operations are numbered in
    /// an order in which readers come after what they read.
    pub operation: usize,
    /// 32-bit registers that one cell takes.
    pub words: i64,
}

/// One access of an operation to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The operation that reads.
    pub operation: usize,
    /// The value that is read, by its place in the list of values.
    pub value: usize,
    /// Offset from the point, slowest dimension first.
    pub offset: Vec<i64>,
}

/// A tile graph as the pipeline sees it. An operation without reads is a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// All values, in the order of their operations.
    pub values: Vec<Value>,
    /// All accesses.
    pub reads: Vec<Read>,
    /// Neighbouring cells a lane holds.
    pub width: i64,
    /// Iterations that a computed value waits before another operation may read it: 0 lets a chain
    /// of operations run within one iteration, 1 makes the operations of an iteration independent.
    pub slack: i64,
    /// Cells a lane that point functions hold on the way to their results; 0 for sums of products.
    pub scratch: i64,
}

/// A cell of another lane, relative to this lane's first cell: negative, or at least `width`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The column.
    pub column: i64,
    /// Age of the row when the cell is first wanted.
    pub first: i64,
    /// Age of the row when it is last wanted.
    pub last: i64,
}

/// What is in flight of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows behind the newest loaded row.
    pub lag: i64,
    /// Largest age at which a row's own cells are read; 0 if only in the iteration that makes them.
    pub last: i64,
    /// Cells of other lanes, by column.
    pub edges: Vec<Edge>,
}

impl Window {
    /// Registers that hold cells of this value from one iteration to the next, in cells a lane.
    pub fn carried(&self, width: i64) -> i64 {
        self.last * width + self.edges.iter().map(|edge| edge.last - edge.first).sum::<i64>()
    }
}

/// The pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// One for each value of the graph.
    pub windows: Vec<Window>,
    /// Iterations in the loop's body, so that a row's cells change their names and not their
    /// registers.
    pub unroll: i64,
    /// Rows that are loaded before their turn.
    pub ahead: i64,
    /// An estimate of the registers a lane needs, prefetched rows included.
    pub registers: i64,
}

/// Bodies longer than this many rows are not tried.
const LONGEST_UNROLL: i64 = 9;

/// Registers for addresses, the loop and what a point function computes; measured, with ptxas of
/// CUDA 13.0, on stars and boxes of radius 1 and 2.
const OVERHEAD: i64 = 28;
/// More of them where cells take two registers.
const WIDE_OVERHEAD: i64 = 16;
/// More of them for each field that is loaded beside the first, in cells.
const FIELD_OVERHEAD: i64 = 12;

/// Registers a thread at which one more warp fits on a multiprocessor with 65,536 of them, in steps
/// that matter: 16, 12, 10 and 8 warps.
const REGISTER_STEPS: [i64; 4] = [128, 168, 200, 255];

/// Warps that a multiprocessor holds of a kernel with this limit to its registers.
pub fn resident_warps(limit: i64) -> i64 {
    // Registers are given out to a warp in units of 256, 8 a lane.
    65_536 / (32 * ((limit + 7) / 8 * 8)).max(1024)
}

/// The limit to give to a kernel of which this many registers are estimated: the next step that
/// leaves it the room that it needs.
pub fn register_limit(estimate: i64) -> i64 {
    REGISTER_STEPS.into_iter().find(|step| estimate <= *step).unwrap_or(255)
}

/// Finds lags, windows and the unroll factor.
pub fn of(graph: &Graph) -> Pipeline {
    let lags = lags(graph);
    let mut windows: Vec<Window> = lags.iter().map(|lag| Window { lag: *lag, last: 0, edges: Vec::new() }).collect();
    let mut edges: Vec<BTreeMap<i64, (i64, i64)>> = vec![BTreeMap::new(); windows.len()];
    for read in &graph.reads {
        let (Some(window), Some(edges)) = (windows.get_mut(read.value), edges.get_mut(read.value)) else { continue };
        let age = operation_lag(graph, &lags, read.operation) - row_offset(read) - window.lag;
        window.last = window.last.max(age);
        let column = if read.offset.len() > 1 { read.offset.last().copied().unwrap_or(0) } else { 0 };
        for cell in (0..graph.width).map(|cell| cell + column).filter(|cell| !(0..graph.width).contains(cell)) {
            let life = edges.entry(cell).or_insert((age, age));
            *life = (life.0.min(age), life.1.max(age));
        }
    }
    for (window, edges) in windows.iter_mut().zip(edges) {
        window.edges = edges.into_iter().map(|(column, (first, last))| Edge { column, first, last }).collect();
    }
    let unroll = unroll(graph, &windows);
    let ahead = ahead(unroll);
    let registers = registers(graph, &windows, ahead);
    Pipeline { windows, unroll, ahead, registers }
}

fn row_offset(read: &Read) -> i64 {
    read.offset.first().copied().unwrap_or(0)
}

/// The lag of an operation's values, or 0 for one without any.
fn operation_lag(graph: &Graph, lags: &[i64], operation: usize) -> i64 {
    graph.values.iter().zip(lags).find(|(value, _)| value.operation == operation).map_or(0, |(_, lag)| *lag)
}

fn lags(graph: &Graph) -> Vec<i64> {
    let is_load = |operation: usize| !graph.reads.iter().any(|read| read.operation == operation);
    let mut lags: Vec<i64> = Vec::new();
    for value in &graph.values {
        let reads = graph.reads.iter().filter(|read| read.operation == value.operation);
        let lag = reads.filter_map(|read| {
            let of = graph.values.get(read.value)?;
            let slack = if is_load(of.operation) { 0 } else { graph.slack };
            Some(lags.get(read.value)? + row_offset(read) + slack)
        });
        lags.push(lag.max().unwrap_or(0));
    }
    // A load waits for its first reader, so that no row is kept before it is wanted.
    for (index, value) in graph.values.iter().enumerate() {
        if is_load(value.operation) {
            let readers = graph.reads.iter().filter(|read| read.value == index);
            let wait = readers.map(|read| operation_lag(graph, &lags, read.operation) - row_offset(read)).min();
            if let Some(lag) = lags.get_mut(index) {
                *lag = wait.unwrap_or(0);
            }
        }
    }
    lags
}

/// The body that costs least. A window whose length divides the body's changes names alone; another
/// is moved once a body. A row more in the body weighs as much as a move a row.
fn unroll(graph: &Graph, windows: &[Window]) -> i64 {
    let cost = |unroll: &i64| {
        let moved = graph.values.iter().zip(windows).filter(|(_, window)| unroll % (window.last + 1) != 0);
        let moves: i64 = moved.map(|(value, window)| value.words * window.carried(graph.width)).sum();
        moves + unroll * unroll
    };
    // Costs a row are compared: costs a body over the rows of the body.
    (1..=LONGEST_UNROLL).min_by(|a, b| (cost(a) * b).cmp(&(cost(b) * a))).unwrap_or(1)
}

/// Rows to load ahead: three or fewer hide the memory's latency beside the other warps' work, and a
/// divisor of the body needs no moves.
fn ahead(unroll: i64) -> i64 {
    (2..=3).rev().find(|rows| unroll % rows == 0).unwrap_or(3)
}

fn registers(graph: &Graph, windows: &[Window], ahead: i64) -> i64 {
    let cells = graph.values.iter().zip(windows).map(|(value, window)| {
        let load = !graph.reads.iter().any(|read| read.operation == value.operation);
        let waiting = if load { ahead * graph.width } else { 0 };
        value.words * (window.carried(graph.width) + waiting)
    });
    let widest = graph.values.iter().map(|value| value.words).max().unwrap_or(1);
    let loads =
        graph.values.iter().filter(|value| !graph.reads.iter().any(|read| read.operation == value.operation)).count();
    let fields = i64::try_from(loads).unwrap_or(1).max(1);
    let wide = if widest > 1 { WIDE_OVERHEAD } else { 0 };
    OVERHEAD
        + wide
        + (fields - 1) * FIELD_OVERHEAD * widest
        + cells.sum::<i64>()
        + widest * (graph.width + graph.scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(operation: usize) -> Value {
        Value { operation, words: 1 }
    }

    fn reads(operation: usize, value: usize, offsets: &[[i64; 2]]) -> Vec<Read> {
        offsets.iter().map(|offset| Read { operation, value, offset: offset.to_vec() }).collect()
    }

    const STAR: [[i64; 2]; 5] = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]];

    #[test]
    fn two_steps_of_a_star() {
        let values = (0..3).map(value).collect();
        let reads = [reads(1, 0, &STAR), reads(2, 1, &STAR)].concat();
        let pipeline = of(&Graph { values, reads, width: 4, slack: 0, scratch: 0 });
        // The edges of the middle row alone are read, when it is one iteration old.
        let edges = vec![Edge { column: -1, first: 1, last: 1 }, Edge { column: 4, first: 1, last: 1 }];
        assert_eq!(pipeline.windows[0], Window { lag: 0, last: 2, edges: edges.clone() });
        assert_eq!(pipeline.windows[1], Window { lag: 1, last: 2, edges });
        assert_eq!(pipeline.windows[2], Window { lag: 2, last: 0, edges: Vec::new() });
        assert_eq!(pipeline.unroll, 3);
        // Two rows of four cells of each of two values, three rows ahead, and one row of results.
        assert_eq!(pipeline.registers, OVERHEAD + 16 + 12 + 4);
    }

    #[test]
    fn edges_of_a_box_live_as_long_as_its_rows() {
        let offsets: Vec<[i64; 2]> = (-1..=1).flat_map(|y| (-1..=1).map(move |x| [y, x])).collect();
        let pipeline = of(&Graph {
            values: vec![value(0), value(1)],
            reads: reads(1, 0, &offsets),
            width: 2,
            slack: 0,
            scratch: 0,
        });
        let edges = vec![Edge { column: -1, first: 0, last: 2 }, Edge { column: 2, first: 0, last: 2 }];
        assert_eq!(pipeline.windows[0], Window { lag: 0, last: 2, edges });
        assert_eq!(pipeline.windows[0].carried(2), 8);
    }

    #[test]
    fn slack_makes_room_between_computed_values_alone() {
        let reads = [reads(1, 0, &STAR), reads(2, 1, &STAR)].concat();
        let pipeline = of(&Graph { values: (0..3).map(value).collect(), reads, width: 4, slack: 1, scratch: 0 });
        assert_eq!(
            pipeline.windows.iter().map(|window| (window.lag, window.last)).collect::<Vec<_>>(),
            [(0, 2), (1, 3), (3, 0)]
        );
    }

    #[test]
    fn three_functions_of_fdtd() {
        // Loads Ex, Ey, Hz; then ey, ex, hz of one step, each also reading the field it updates.
        let values = (0..6).map(value).collect();
        let reads = [
            reads(3, 1, &[[0, 0]]),
            reads(3, 2, &[[0, 0], [-1, 0]]),
            reads(4, 0, &[[0, 0]]),
            reads(4, 2, &[[0, 0], [0, -1]]),
            reads(5, 2, &[[0, 0]]),
            reads(5, 4, &[[0, 1], [0, 0]]),
            reads(5, 3, &[[1, 0], [0, 0]]),
        ]
        .concat();
        let pipeline = of(&Graph { values, reads, width: 4, slack: 0, scratch: 0 });
        assert_eq!(pipeline.windows.iter().map(|window| window.lag).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 1]);
        assert_eq!(pipeline.windows.iter().map(|window| window.last).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 0]);
        assert_eq!(pipeline.windows[4].edges, [Edge { column: 4, first: 1, last: 1 }]);
        assert_eq!(pipeline.unroll, 2);
    }

    #[test]
    fn a_wave_carries_a_const_field_to_its_last_step() {
        // Loads P, U, C; two steps of (P, U) = (U, f(P, U, C)). C is read first by the first step.
        let values = vec![value(0), value(1), value(2), value(3), value(3), value(4), value(4)];
        let step = |operation, p, u| {
            [reads(operation, p, &[[0, 0]]), reads(operation, u, &STAR), reads(operation, 2, &[[0, 0]])].concat()
        };
        let pipeline =
            of(&Graph { values, reads: [step(3, 0, 1), step(4, 3, 4)].concat(), width: 4, slack: 0, scratch: 0 });
        let found: Vec<_> = pipeline.windows.iter().map(|window| (window.lag, window.last)).collect();
        assert_eq!(found, [(1, 0), (0, 2), (1, 1), (1, 1), (1, 2), (2, 0), (2, 0)]);
        // Two windows of two rows and two of three: six rows change names alone, but three cost less.
        assert_eq!(pipeline.unroll, 3);
    }

    #[test]
    fn footprints_that_lean_to_one_side() {
        // Rows above alone: nothing waits. Rows below alone: the step runs two rows behind.
        let above = of(&Graph {
            values: vec![value(0), value(1)],
            reads: reads(1, 0, &[[-2, 0], [0, 3]]),
            width: 2,
            slack: 0,
            scratch: 0,
        });
        assert_eq!((above.windows[1].lag, above.windows[0].last), (0, 2));
        assert_eq!(above.windows[0].edges.iter().map(|edge| edge.column).collect::<Vec<_>>(), [3, 4]);
        let below = of(&Graph {
            values: vec![value(0), value(1)],
            reads: reads(1, 0, &[[0, 0], [2, -1]]),
            width: 2,
            slack: 0,
            scratch: 0,
        });
        assert_eq!((below.windows[1].lag, below.windows[0].last), (2, 2));
        assert_eq!(below.windows[0].edges, [Edge { column: -1, first: 0, last: 0 }]);
    }
}
