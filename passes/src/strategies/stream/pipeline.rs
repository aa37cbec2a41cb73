//! The pipeline of a tile graph that streams its slowest dimension: how far each value runs behind
//! the newest loaded plane, which planes of it stay in flight, and what that costs in registers.
//!
//! A *plane* is what a tile has at one coordinate of the slowest dimension: in two dimensions it is
//! a single row. Iteration `k` computes plane `k - lag(v)` of every value `v`. The *age* of a plane
//! is the number of iterations since it was computed, so a reader `v` that reads plane offset `d`
//! of `u` needs the plane of age `lag(v) - d - lag(u)`.
//!
//! A lane holds `rows_per_lane` rows of `width` neighbouring cells of a plane, numbered from 0. A
//! reader that needs cells beyond these gets copies:
//!
//! - *Edges* along a row lie in other lanes. They are taken when their row is first read at that
//!   column.
//! - Other rows belong to other parts of the block. They come through shared memory, one iteration
//!   after they were put there.

use super::registers;
use std::collections::BTreeMap;
use stencil_runtime::device::Device;

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
    /// The value that is read, by its number in the list of values.
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
    /// Rows of a plane per lane; 1 in two dimensions.
    pub rows_per_lane: i64,
    /// Neighbouring cells of a row per lane.
    pub width: i64,
    /// Cells per lane that point functions hold on the way to results; 0 for sums of products.
    pub scratch: i64,
    /// Whether tiles away from every rim have a version of the code of their own, without checks.
    pub split: bool,
}

impl Graph {
    /// A graph without values, for lanes of some rows and columns.
    pub fn empty((rows_per_lane, width): (i64, i64)) -> Self {
        let (values, reads) = (Vec::new(), Vec::new());
        Self { values, reads, rows_per_lane, width, scratch: 0, split: true }
    }

    /// Adds an operation that loads a value of so many registers a cell; gives the value's number.
    pub fn load(&mut self, words: i64) -> usize {
        let operation = self.values.last().map_or(0, |value| value.operation + 1);
        self.values.push(Value { operation, words });
        self.values.len() - 1
    }

    /// Makes room for so many rows of cells that point functions hold on the way to results.
    pub fn hold(&mut self, rows: i64) {
        self.scratch = self.scratch.max(self.rows_per_lane * self.width * rows);
    }

    /// Whether planes have rows.
    pub fn is_solid(&self) -> bool {
        self.reads.iter().any(|read| read.offset.len() == 3)
    }

    /// Values that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = &Value> {
        self.values
            .iter()
            .filter(|value| !self.reads.iter().any(|read| read.operation == value.operation))
    }
}

/// Rows and columns that a lane holds of a plane: rows per lane and width.
pub fn shape(per_thread: &[i64]) -> (i64, i64) {
    match per_thread {
        [_, rows_per_lane, width] => (*rows_per_lane, *width),
        _ => (1, per_thread.last().copied().unwrap_or(1)),
    }
}

/// A cell of another lane, relative to this lane's first cell: negative, or at least `width`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The column.
    pub column: i64,
    /// Age of the plane when the cell is first needed.
    pub first: i64,
    /// Age of the plane when it is last needed.
    pub last: i64,
}

/// One row of a value's planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Relative to the lane's first row. Rows 0 to `rows_per_lane - 1` are its own, all others
    /// those of other parts.
    pub row: i64,
    /// Age of the plane when the row comes in: 0 for own rows.
    pub first: i64,
    /// Largest age at which the row is read.
    pub last: i64,
    /// Cells of other lanes, by column.
    pub edges: Vec<Edge>,
}

/// The planes of one value that are in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Planes behind the newest loaded one.
    pub lag: i64,
    /// Rows by number, own and others'.
    pub rows: Vec<Row>,
    /// Age at which rows are handed to other parts; none if no part needs another's.
    pub shared: Option<i64>,
}

/// Planes of a first tile beyond the span of the lags, the loop's body and the planes loaded ahead.
const RIM: i64 = 8;

impl Pipeline {
    /// Planes of a first tile after which the next meets no rim: the span of the lags covers the
    /// halo before a tile.
    pub fn first_tile(&self) -> i64 {
        let lags = self.windows.iter().map(|window| window.lag);
        lags.clone().max().unwrap_or(0) - lags.min().unwrap_or(0).min(0)
            + self.unroll
            + self.ahead
            + RIM
    }

    /// Registers per lane that hold cells from one iteration to the next.
    pub fn carried(&self, graph: &Graph) -> i64 {
        let words = graph.values.iter().zip(&self.windows);
        words.map(|(value, window)| value.words * window.carried(graph.width)).sum()
    }
}

impl Window {
    /// Cells per lane of this value that registers hold from one iteration to the next.
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
    /// Planes beyond those that are prefetched into the level 2 cache, which takes no registers; 0
    /// for none.
    pub prefetch: i64,
    /// An estimate of the registers a lane needs, planes loaded ahead included.
    pub registers: i64,
}

/// Bodies longer than this many planes are not tried.
const LONGEST_UNROLL: i64 = 9;

/// Finds lags, windows and the unroll factor.
pub fn of(graph: &Graph, device: &Device) -> Pipeline {
    let lags = lags(graph);
    let windows: Vec<Window> =
        (0..graph.values.len()).map(|value| window(graph, &lags, value)).collect();
    let unroll = unroll(graph, &windows);
    let ahead = registers::ahead(graph, unroll);
    let registers = registers::estimate(graph, &windows, ahead);
    Pipeline {
        windows,
        unroll,
        ahead,
        prefetch: registers::prefetch(graph, registers, device),
        registers,
    }
}

/// The ages from the first to the last at which a cell is needed.
type Life = (i64, i64);

fn window(graph: &Graph, lags: &[i64], value: usize) -> Window {
    let lag = lags.get(value).copied().unwrap_or(0);
    let mut rows: BTreeMap<i64, (Life, BTreeMap<i64, Life>)> =
        (0..graph.rows_per_lane).map(|row| (row, ((0, 0), BTreeMap::new()))).collect();
    for read in graph.reads.iter().filter(|read| read.value == value) {
        let [plane, row, column] = read.split();
        let age = operation_lag(graph, lags, read.operation) - plane - lag;
        for row in (0..graph.rows_per_lane).map(|own| own + row) {
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
    let own = 0..graph.rows_per_lane;
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
    // A load waits for its first reader, so that no plane is kept before it is needed.
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

/// The unroll factor that costs least. A window whose length divides it only renames its planes;
/// any other is moved once per body. One more plane in the body counts as one move per plane.
fn unroll(graph: &Graph, windows: &[Window]) -> i64 {
    let cost = |unroll: &i64| {
        let moved =
            graph.values.iter().zip(windows).filter(|(_, window)| unroll % window.length() != 0);
        let moves: i64 =
            moved.map(|(value, window)| value.words * window.carried(graph.width)).sum();
        moves + unroll * unroll
    };
    // Compares costs per plane: those of a body over its planes.
    (1..=LONGEST_UNROLL).min_by(|a, b| (cost(a) * b).cmp(&(cost(b) * a))).unwrap_or(1)
}

#[cfg(test)]
mod tests;
