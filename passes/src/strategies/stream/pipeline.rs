//! The pipeline of a tile graph that streams its slowest dimension: how far each value runs behind
//! the newest loaded plane, which planes of it stay in flight, and what that costs in registers.
//!
//! A *plane* is what a tile has at one coordinate of the slowest dimension: in two dimensions it is
//! a single row. Iteration `k` computes plane `k - lag(v)` of every value `v`. The *age* of a plane
//! is the number of iterations since it was computed, so a reader `v` that reads plane offset `d`
//! of `u` wants the plane of age `lag(v) - d - lag(u)`.
//!
//! Of a plane a lane holds `height` rows of `width` neighbouring cells, numbered from 0. Cells
//! outside of these that a reader wants are copies of others' cells: *edges* along a row lie in
//! other lanes and are taken when their row is first read at that column; other rows belong to
//! other parts of the block, come through shared memory, and so one iteration after they were put
//! there.

use std::collections::BTreeMap;
use stencil_runtime::device::H200;
use stencil_runtime::model;

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

impl Read {
    /// Offsets of plane, row and column.
    fn split(&self) -> [i64; 3] {
        match self.offset.as_slice() {
            [plane, row, column] => [*plane, *row, *column],
            [plane, column] => [*plane, 0, *column],
            other => [other.first().copied().unwrap_or(0), 0, 0],
        }
    }

    /// The age of a plane at which the reader can have the cell: another part's rows take an
    /// iteration.
    fn soonest(&self) -> i64 {
        i64::from(self.split()[1] != 0)
    }
}

/// A tile graph as the pipeline sees it. An operation without reads is a load, or computes from no
/// cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// All values, in the order of their operations.
    pub values: Vec<Value>,
    /// All accesses.
    pub reads: Vec<Read>,
    /// Rows of a plane a lane holds; 1 in two dimensions.
    pub height: i64,
    /// Neighbouring cells of a row a lane holds.
    pub width: i64,
    /// Cells a lane that point functions hold on the way to their results; 0 for sums of products.
    pub scratch: i64,
    /// Whether tiles away from every rim have a version of the code of their own, without checks.
    pub split: bool,
}

impl Graph {
    /// Whether planes have rows.
    fn is_solid(&self) -> bool {
        self.reads.iter().any(|read| read.offset.len() == 3)
    }

    /// Values that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = &Value> {
        self.values
            .iter()
            .filter(|value| !self.reads.iter().any(|read| read.operation == value.operation))
    }
}

/// Rows and columns that a lane holds of a plane: the graph's height and width.
pub fn shape(per_thread: &[i64]) -> (i64, i64) {
    match per_thread {
        [_, height, width] => (*height, *width),
        _ => (1, per_thread.last().copied().unwrap_or(1)),
    }
}

/// A cell of another lane, relative to this lane's first cell: negative, or at least `width`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The column.
    pub column: i64,
    /// Age of the plane when the cell is first wanted.
    pub first: i64,
    /// Age of the plane when it is last wanted.
    pub last: i64,
}

/// One row of a value's planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Relative to the lane's first row: its own from 0 to `height - 1`, others of other parts.
    pub row: i64,
    /// Age of the plane when the row comes in: 0 for own rows.
    pub first: i64,
    /// Largest age at which the row is read.
    pub last: i64,
    /// Cells of other lanes, by column.
    pub edges: Vec<Edge>,
}

/// What is in flight of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Planes behind the newest loaded one.
    pub lag: i64,
    /// Rows by number, own and others'.
    pub rows: Vec<Row>,
    /// Age at which rows are handed to other parts; none if no part wants another's.
    pub shared: Option<i64>,
}

/// Planes beside the pipeline's own depth in a tile that keeps others off the rim: bodies and loads
/// that run ahead of it.
const RIM: i64 = 8;

impl Pipeline {
    /// Planes of a first tile after which the next meets no rim: twice the largest lag covers the
    /// halo before a tile.
    pub fn first_tile(&self) -> i64 {
        let lags = self.windows.iter().map(|window| window.lag);
        lags.clone().max().unwrap_or(0) - lags.min().unwrap_or(0).min(0)
            + self.unroll
            + self.ahead
            + RIM
    }

    /// Registers that hold cells from one iteration to the next, in cells a lane.
    pub fn carried(&self, graph: &Graph) -> i64 {
        let words = graph.values.iter().zip(&self.windows);
        words.map(|(value, window)| value.words * window.carried(graph.width)).sum()
    }
}

impl Window {
    /// Registers that hold cells of this value from one iteration to the next, in cells a lane.
    pub fn carried(&self, width: i64) -> i64 {
        let row = |row: &Row| {
            (row.last - row.first) * width
                + row.edges.iter().map(|edge| edge.last - edge.first).sum::<i64>()
        };
        self.rows.iter().map(row).sum()
    }

    /// Iterations after which a row's registers are free again.
    fn length(&self) -> i64 {
        self.rows.iter().map(|row| row.last - row.first).max().unwrap_or(0) + 1
    }
}

/// The pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// One for each value of the graph.
    pub windows: Vec<Window>,
    /// Iterations in the loop's body, so that a plane's cells change their names and not their
    /// registers.
    pub unroll: i64,
    /// Planes that are loaded before their turn.
    pub ahead: i64,
    /// Planes beyond those that are asked for from the level 2 cache, without registers; 0 for
    /// none.
    pub prefetch: i64,
    /// An estimate of the registers a lane needs, planes loaded ahead included.
    pub registers: i64,
}

/// Bodies longer than this many planes are not tried.
const LONGEST_UNROLL: i64 = 9;

/// Registers for addresses, the loop and what a point function computes; measured, with ptxas of
/// CUDA 13.0, on stars and boxes of radius 1 and 2.
const OVERHEAD: i64 = 28;
/// More of them where cells take two registers.
const WIDE_OVERHEAD: i64 = 16;
/// More of them for each field that is loaded beside the first, in cells.
const FIELD_OVERHEAD: i64 = 12;

/// More of them where sums over a box go on in several planes at once; by `j3d27pt`.
const BOX_OVERHEAD: i64 = 28;

/// More of them where parts of a block exchange rows, for each row beyond the first: addresses in
/// shared memory.
const PART_OVERHEAD: i64 = 4;

/// Registers a thread at which one more warp fits on each quarter of a multiprocessor: 16, 12 and 8
/// warps.
const REGISTER_STEPS: [i64; 3] = [128, 168, 255];

/// The limit to give to a kernel of which this many registers are estimated: the next step that
/// leaves it the room that it needs, for all threads of a block at a time. The device is an H200;
/// others have as many registers.
pub fn register_limit(estimate: i64, threads: i64) -> i64 {
    let most = model::most_registers(u32::try_from(threads).unwrap_or(u32::MAX), &H200);
    REGISTER_STEPS.into_iter().find(|step| estimate <= *step).unwrap_or(255).min(most.into())
}

/// Finds lags, windows and the unroll factor.
pub fn of(graph: &Graph) -> Pipeline {
    let lags = lags(graph);
    let windows: Vec<Window> =
        (0..graph.values.len()).map(|value| window(graph, &lags, value)).collect();
    let unroll = unroll(graph, &windows);
    let ahead = ahead(graph, unroll);
    let registers = registers(graph, &windows, ahead);
    Pipeline { windows, unroll, ahead, prefetch: prefetch(graph, registers), registers }
}

/// The ages from the first to the last at which a cell is wanted.
type Life = (i64, i64);

fn window(graph: &Graph, lags: &[i64], value: usize) -> Window {
    let lag = lags.get(value).copied().unwrap_or(0);
    let mut rows: BTreeMap<i64, (Life, BTreeMap<i64, Life>)> =
        (0..graph.height).map(|row| (row, ((0, 0), BTreeMap::new()))).collect();
    for read in graph.reads.iter().filter(|read| read.value == value) {
        let [plane, row, column] = read.split();
        let age = operation_lag(graph, lags, read.operation) - plane - lag;
        for row in (0..graph.height).map(|own| own + row) {
            let (life, edges) = rows.entry(row).or_insert(((age, age), BTreeMap::new()));
            *life = (life.0.min(age), life.1.max(age));
            for cell in (0..graph.width)
                .map(|cell| cell + column)
                .filter(|cell| !(0..graph.width).contains(cell))
            {
                let life = edges.entry(cell).or_insert((age, age));
                *life = (life.0.min(age), life.1.max(age));
            }
        }
    }
    let own = 0..graph.height;
    // All rows are handed over in the same iteration, so that one barrier will do.
    let soonest =
        rows.iter().filter(|(row, _)| !own.contains(row)).map(|(_, (life, _))| life.0).min();
    let shared = soonest.map(|age| age - 1);
    let rows = rows.into_iter().map(|(row, ((_, last), edges))| Row {
        row,
        first: if own.contains(&row) { 0 } else { soonest.unwrap_or(0) },
        last: if own.contains(&row) { last.max(shared.unwrap_or(0)) } else { last },
        edges: edges
            .into_iter()
            .map(|(column, (first, last))| Edge { column, first, last })
            .collect(),
    });
    Window { lag, rows: rows.collect(), shared }
}

/// The lag of an operation's values, or 0 for one without any.
fn operation_lag(graph: &Graph, lags: &[i64], operation: usize) -> i64 {
    graph
        .values
        .iter()
        .zip(lags)
        .find(|(value, _)| value.operation == operation)
        .map_or(0, |(_, lag)| *lag)
}

fn lags(graph: &Graph) -> Vec<i64> {
    let mut lags: Vec<i64> = Vec::new();
    for value in &graph.values {
        let reads = graph.reads.iter().filter(|read| read.operation == value.operation);
        let lag =
            reads.filter_map(|read| Some(lags.get(read.value)? + read.split()[0] + read.soonest()));
        lags.push(lag.max().unwrap_or(0));
    }
    // A load waits for its first reader, so that no plane is kept before it is wanted.
    for (index, value) in graph.values.iter().enumerate() {
        if !graph.reads.iter().any(|read| read.operation == value.operation) {
            let made = |read: &&Read| graph.values.get(read.value).map(|value| value.operation);
            let readers = graph.reads.iter().filter(|read| made(read) == Some(value.operation));
            let wait = readers
                .map(|read| {
                    operation_lag(graph, &lags, read.operation) - read.split()[0] - read.soonest()
                })
                .min();
            if let Some(lag) = lags.get_mut(index) {
                *lag = wait.unwrap_or(0);
            }
        }
    }
    lags
}

/// The body that costs least. A window whose length divides the body's changes names alone; another
/// is moved once a body. A plane more in the body weighs as much as a move a plane.
fn unroll(graph: &Graph, windows: &[Window]) -> i64 {
    let cost = |unroll: &i64| {
        let moved =
            graph.values.iter().zip(windows).filter(|(_, window)| unroll % window.length() != 0);
        let moves: i64 =
            moved.map(|(value, window)| value.words * window.carried(graph.width)).sum();
        moves + unroll * unroll
    };
    // Costs a plane are compared: costs a body over the planes of the body.
    (1..=LONGEST_UNROLL).min_by(|a, b| (cost(a) * b).cmp(&(cost(b) * a))).unwrap_or(1)
}

/// Planes to load ahead. In two dimensions two or three hide the memory's latency beside the other
/// warps' work, and a divisor of the body needs no moves; in three an iteration takes longer than
/// that.
fn ahead(graph: &Graph, unroll: i64) -> i64 {
    if graph.is_solid() {
        1
    } else {
        (2..=3).rev().find(|planes| unroll % planes == 0).unwrap_or(3)
    }
}

/// Rows further on whose cells are brought into the level 2 cache, so that loads wait for that
/// alone.
const PREFETCH: i64 = 4;

/// Of more fields the memory is as busy as it can be, and rows fetched early throw others out of
/// the cache, unless few warps leave room.
const PREFETCHED: usize = 2;

/// Planes to prefetch. On an H200 four rows made streams of one or two fields up to a quarter
/// faster and none slower. Streams of three fields were a tenth slower with 12 and 16 warps a
/// multiprocessor, and with 8 between 15 per cent faster and 4 slower; more fields were not
/// measured. In three dimensions planes cost a fifth.
fn prefetch(graph: &Graph, registers: i64) -> i64 {
    let few = registers > REGISTER_STEPS[1];
    if graph.is_solid() || (graph.loaded().count() > PREFETCHED && !few) { 0 } else { PREFETCH }
}

fn registers(graph: &Graph, windows: &[Window], ahead: i64) -> i64 {
    let cells = graph.values.iter().zip(windows).map(|(value, window)| {
        let load = !graph.reads.iter().any(|read| read.operation == value.operation);
        let waiting = if load { ahead * graph.width * graph.height } else { 0 };
        value.words * (window.carried(graph.width) + waiting)
    });
    let widest = graph.values.iter().map(|value| value.words).max().unwrap_or(1);
    // Rows of other parts are all there at once, with the edges of a plane.
    let others = graph.values.iter().zip(windows).filter(|(_, window)| window.shared.is_some());
    let coming = others.map(|(value, window)| {
        let foreign = || window.rows.iter().filter(|row| !(0..graph.height).contains(&row.row));
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
    // One version of planes' code has no addresses of the other.
    let more = if graph.is_solid() && !graph.split {
        0
    } else {
        (fields - 1) * FIELD_OVERHEAD + if widest > 1 { WIDE_OVERHEAD } else { 0 }
    };
    OVERHEAD
        + more
        + cells.sum::<i64>()
        + coming.max().unwrap_or(0)
        + widest * (graph.width * graph.height + graph.scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(operation: usize) -> Value {
        Value { operation, words: 1 }
    }

    fn reads<const RANK: usize>(
        operation: usize,
        value: usize,
        offsets: &[[i64; RANK]],
    ) -> Vec<Read> {
        offsets.iter().map(|offset| Read { operation, value, offset: offset.to_vec() }).collect()
    }

    /// The window of a value whose planes are single rows.
    fn flat(lag: i64, last: i64, edges: Vec<Edge>) -> Window {
        Window { lag, rows: vec![Row { row: 0, first: 0, last, edges }], shared: None }
    }

    fn last(window: &Window) -> i64 {
        window.rows[0].last
    }

    const STAR: [[i64; 2]; 5] = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]];

    #[test]
    fn two_steps_of_a_star() {
        let values = (0..3).map(value).collect();
        let reads = [reads(1, 0, &STAR), reads(2, 1, &STAR)].concat();
        let pipeline = of(&Graph { values, reads, height: 1, width: 4, scratch: 0, split: true });
        // The edges of the middle row alone are read, when it is one iteration old.
        let edges =
            vec![Edge { column: -1, first: 1, last: 1 }, Edge { column: 4, first: 1, last: 1 }];
        assert_eq!(pipeline.windows[0], flat(0, 2, edges.clone()));
        assert_eq!(pipeline.windows[1], flat(1, 2, edges));
        assert_eq!(pipeline.windows[2], flat(2, 0, Vec::new()));
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
            height: 1,
            width: 2,
            scratch: 0,
            split: true,
        });
        let edges =
            vec![Edge { column: -1, first: 0, last: 2 }, Edge { column: 2, first: 0, last: 2 }];
        assert_eq!(pipeline.windows[0], flat(0, 2, edges));
        assert_eq!(pipeline.windows[0].carried(2), 8);
    }

    #[test]
    fn rows_of_other_parts_take_an_iteration() {
        // The star's rows beside the point lie in the plane before the newest, so they cost no lag.
        let star = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]];
        let graph = |offsets: &[[i64; 3]]| Graph {
            values: vec![value(0), value(1)],
            reads: reads(1, 0, offsets),
            height: 2,
            width: 4,
            scratch: 0,
            split: true,
        };
        let pipeline = of(&graph(&star));
        let row = |row, first, last, edges| Row { row, first, last, edges };
        let edges =
            vec![Edge { column: -1, first: 1, last: 1 }, Edge { column: 4, first: 1, last: 1 }];
        let rows = vec![
            row(-1, 1, 1, Vec::new()),
            row(0, 0, 2, edges.clone()),
            row(1, 0, 2, edges),
            row(2, 1, 1, Vec::new()),
        ];
        assert_eq!(pipeline.windows[0], Window { lag: 0, rows, shared: Some(0) });
        assert_eq!((pipeline.windows[0].carried(4), pipeline.windows[1].lag), (16, 1));
        // A box reads them of the newest plane, and waits for them.
        let cube: Vec<[i64; 3]> =
            (0..27_i64).map(|place| [place / 9 - 1, place / 3 % 3 - 1, place % 3 - 1]).collect();
        let pipeline = of(&graph(&cube));
        assert_eq!((pipeline.windows[0].shared, pipeline.windows[1].lag), (Some(0), 2));
        assert_eq!(
            pipeline.windows[0].rows.iter().map(|row| (row.first, row.last)).collect::<Vec<_>>(),
            [(1, 3), (0, 3), (0, 3), (1, 3)]
        );
    }

    #[test]
    fn rows_wait_with_their_part_until_they_are_wanted() {
        // Rows of radius 2 are read two planes behind the newest; their parts keep them that long.
        let star = [[-2, 0, 0], [0, -2, 0], [0, 2, 0], [2, 0, 0]];
        let graph = Graph {
            values: vec![value(0), value(1)],
            reads: reads(1, 0, &star),
            height: 1,
            width: 4,
            scratch: 0,
            split: true,
        };
        let pipeline = of(&graph);
        assert_eq!(pipeline.windows[0].shared, Some(1));
        let found: Vec<_> =
            pipeline.windows[0].rows.iter().map(|row| (row.row, row.first, row.last)).collect();
        assert_eq!(found, [(-2, 2, 2), (0, 0, 4), (2, 2, 2)]);
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
        let pipeline = of(&Graph { values, reads, height: 1, width: 4, scratch: 0, split: true });
        assert_eq!(
            pipeline.windows.iter().map(|window| window.lag).collect::<Vec<_>>(),
            [0, 0, 0, 0, 0, 1]
        );
        assert_eq!(pipeline.windows.iter().map(last).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 0]);
        assert_eq!(pipeline.windows[4].rows[0].edges, [Edge { column: 4, first: 1, last: 1 }]);
        assert_eq!(pipeline.unroll, 2);
    }

    #[test]
    fn three_fields_are_prefetched_where_few_warps_fit() {
        let fields = |count: usize| Graph {
            values: (0..=count).map(value).collect(),
            reads: (0..count).flat_map(|field| reads(count, field, &STAR)).collect(),
            height: 1,
            width: 4,
            scratch: 0,
            split: true,
        };
        let few = REGISTER_STEPS[1] + 1;
        assert_eq!(prefetch(&fields(2), 0), PREFETCH);
        assert_eq!(prefetch(&fields(3), REGISTER_STEPS[1]), 0);
        assert_eq!(prefetch(&fields(3), few), PREFETCH);
    }

    #[test]
    fn a_wave_carries_a_const_field_to_its_last_step() {
        // Loads P, U, C; two steps of (P, U) = (U, f(P, U, C)). C is read first by the first step.
        let values = vec![value(0), value(1), value(2), value(3), value(3), value(4), value(4)];
        let step = |operation, p, u| {
            [
                reads(operation, p, &[[0, 0]]),
                reads(operation, u, &STAR),
                reads(operation, 2, &[[0, 0]]),
            ]
            .concat()
        };
        let reads = [step(3, 0, 1), step(4, 3, 4)].concat();
        let pipeline = of(&Graph { values, reads, height: 1, width: 4, scratch: 0, split: true });
        let found: Vec<_> =
            pipeline.windows.iter().map(|window| (window.lag, last(window))).collect();
        assert_eq!(found, [(1, 0), (0, 2), (1, 1), (1, 1), (1, 2), (2, 0), (2, 0)]);
        // Two windows of two rows and two of three: six rows change names alone, but three cost
        // less.
        assert_eq!(pipeline.unroll, 3);
    }

    #[test]
    fn footprints_that_lean_to_one_side() {
        // Rows above alone: nothing waits. Rows below alone: the step runs two rows behind.
        let above = of(&Graph {
            values: vec![value(0), value(1)],
            reads: reads(1, 0, &[[-2, 0], [0, 3]]),
            height: 1,
            width: 2,
            scratch: 0,
            split: true,
        });
        assert_eq!((above.windows[1].lag, last(&above.windows[0])), (0, 2));
        assert_eq!(
            above.windows[0].rows[0].edges.iter().map(|edge| edge.column).collect::<Vec<_>>(),
            [3, 4]
        );
        let below = of(&Graph {
            values: vec![value(0), value(1)],
            reads: reads(1, 0, &[[0, 0], [2, -1]]),
            height: 1,
            width: 2,
            scratch: 0,
            split: true,
        });
        assert_eq!((below.windows[1].lag, last(&below.windows[0])), (2, 2));
        assert_eq!(below.windows[0].rows[0].edges, [Edge { column: -1, first: 0, last: 0 }]);
    }
}
