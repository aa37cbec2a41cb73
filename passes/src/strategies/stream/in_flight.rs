//! The cells that a lane holds from one iteration to the next: planes of tile values by age, with
//! cells of other lanes and rows of other parts, and planes that were loaded ahead of their turn.

use crate::strategies::stream::pipeline::{Pipeline, Row};
use std::collections::VecDeque;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// A row and a column relative to the lane's first cell.
pub type Position = (i64, i64);

/// The cells of one tile value at one position.
#[derive(Clone, Debug)]
struct Held<'c> {
    position: Position,
    /// Age of the plane when its cell comes in.
    first: i64,
    /// Cells that stay for the next iteration.
    kept: usize,
    /// Youngest first.
    cells: VecDeque<Val<'c>>,
}

/// Everything in flight.
#[derive(Clone, Debug)]
pub struct InFlight<'c> {
    values: Vec<Vec<Held<'c>>>,
    /// For each value the planes that wait for their turn; empty for values that are computed.
    waiting: Vec<VecDeque<Vec<Val<'c>>>>,
}

impl<'c> InFlight<'c> {
    /// Before the first iteration: zeros, and the planes loaded ahead.
    pub fn new(
        pipeline: &Pipeline,
        width: i64,
        zeros: &[Val<'c>],
        waiting: Vec<VecDeque<Vec<Val<'c>>>>,
    ) -> Self {
        let held = |position, first, last: i64, zero: Val<'c>| {
            let kept = usize::try_from(last - first).unwrap_or(0);
            Held { position, first, kept, cells: VecDeque::from(vec![zero; kept]) }
        };
        let values = pipeline.windows.iter().zip(zeros).map(|(window, zero)| {
            let row = |row: &Row| {
                let cells =
                    (0..width).map(|cell| held((row.row, cell), row.first, row.last, *zero));
                let edges = row
                    .edges
                    .iter()
                    .map(|edge| held((row.row, edge.column), edge.first, edge.last, *zero));
                cells.chain(edges).collect::<Vec<_>>()
            };
            window.rows.iter().flat_map(row).collect()
        });
        Self { values: values.collect(), waiting }
    }

    /// All values, in an order that [`InFlight::with`] knows.
    pub fn flat(&self) -> Vec<Val<'c>> {
        let held = self.values.iter().flatten().flat_map(|held| held.cells.iter());
        held.chain(self.waiting.iter().flatten().flatten()).copied().collect()
    }

    /// The same cells with other values, in the order of [`InFlight::flat`].
    pub fn with(&self, flat: &[Val<'c>]) -> Self {
        let mut copy = self.clone();
        let held = copy.values.iter_mut().flatten().flat_map(|held| held.cells.iter_mut());
        for (cell, value) in held.chain(copy.waiting.iter_mut().flatten().flatten()).zip(flat) {
            *cell = *value;
        }
        copy
    }

    /// Planes of a loaded value that wait for their turn.
    pub fn ahead(&self, value: usize) -> i64 {
        self.waiting.get(value).and_then(|queue| i64::try_from(queue.len()).ok()).unwrap_or(0)
    }

    /// Takes the plane whose turn it is, and puts another at the end of the queue.
    pub fn exchange(&mut self, value: usize, plane: Vec<Val<'c>>) -> Result<Vec<Val<'c>>, Error> {
        let queue =
            self.waiting.get_mut(value).ok_or_else(|| Error::internal("a load without a queue"))?;
        queue.push_back(plane);
        queue.pop_front().ok_or_else(|| Error::internal("a queue without a plane"))
    }

    /// A value's new cell at a position.
    pub fn push(&mut self, value: usize, position: Position, cell: Val<'c>) -> Result<(), Error> {
        let all = self
            .values
            .get_mut(value)
            .ok_or_else(|| Error::internal("a value that is not in flight"))?;
        let held = all.iter_mut().find(|held| held.position == position);
        held.ok_or_else(|| Error::internal("a cell that is not in flight"))?.cells.push_front(cell);
        Ok(())
    }

    /// The cell at a position in the plane of an age.
    pub fn get(&self, value: usize, position: Position, age: i64) -> Result<Val<'c>, Error> {
        let found = || {
            let held = self.values.get(value)?.iter().find(|held| held.position == position)?;
            held.cells.get(usize::try_from(age - held.first).ok()?).copied()
        };
        found().ok_or_else(|| {
            Error::internal(format!(
                "no cell at {position:?} of age {age} of value {value} is in flight"
            ))
        })
    }

    /// Ends an iteration: every plane is one older, and the oldest go.
    pub fn age(&mut self) {
        for held in self.values.iter_mut().flatten() {
            held.cells.truncate(held.kept);
        }
    }
}
