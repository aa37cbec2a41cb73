//! The cells that a lane holds from one iteration to the next: rows of tile values by age, cells of
//! other lanes, and rows that were loaded ahead of their turn.

use crate::analysis::stream_pipeline::Pipeline;
use std::collections::VecDeque;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// One column of one tile value.
#[derive(Clone, Debug)]
struct Column<'c> {
    /// Relative to the lane's first cell.
    column: i64,
    /// Age of the row when the cell comes in.
    first: i64,
    /// Cells that stay for the next iteration.
    kept: usize,
    /// Youngest first.
    cells: VecDeque<Val<'c>>,
}

/// Everything in flight.
#[derive(Clone, Debug)]
pub struct InFlight<'c> {
    values: Vec<Vec<Column<'c>>>,
    /// For each value the rows that wait for their turn; empty for values that are computed.
    waiting: Vec<VecDeque<Vec<Val<'c>>>>,
}

impl<'c> InFlight<'c> {
    /// Before the first iteration: zeros, and the rows loaded ahead.
    pub fn new(pipeline: &Pipeline, width: i64, zeros: &[Val<'c>], waiting: Vec<VecDeque<Vec<Val<'c>>>>) -> Self {
        let column = |column, first, last: i64, zero: Val<'c>| {
            let kept = usize::try_from(last - first).unwrap_or(0);
            Column { column, first, kept, cells: VecDeque::from(vec![zero; kept]) }
        };
        let values = pipeline.windows.iter().zip(zeros).map(|(window, zero)| {
            let own = (0..width).map(|cell| column(cell, 0, window.last, *zero));
            own.chain(window.edges.iter().map(|edge| column(edge.column, edge.first, edge.last, *zero))).collect()
        });
        Self { values: values.collect(), waiting }
    }

    /// All values, in an order that [`InFlight::with`] knows.
    pub fn flat(&self) -> Vec<Val<'c>> {
        let held = self.values.iter().flatten().flat_map(|column| column.cells.iter());
        held.chain(self.waiting.iter().flatten().flatten()).copied().collect()
    }

    /// The same cells with other values, in the order of [`InFlight::flat`].
    pub fn with(&self, flat: &[Val<'c>]) -> Self {
        let mut copy = self.clone();
        let held = copy.values.iter_mut().flatten().flat_map(|column| column.cells.iter_mut());
        for (cell, value) in held.chain(copy.waiting.iter_mut().flatten().flatten()).zip(flat) {
            *cell = *value;
        }
        copy
    }

    /// Takes the row whose turn it is, and puts another at the end of the queue.
    pub fn exchange(&mut self, value: usize, row: Vec<Val<'c>>) -> Result<Vec<Val<'c>>, Error> {
        let queue = self.waiting.get_mut(value).ok_or_else(|| Error::internal("a load without a queue"))?;
        queue.push_back(row);
        queue.pop_front().ok_or_else(|| Error::internal("a queue without a row"))
    }

    /// A value's new cell in a column.
    pub fn push(&mut self, value: usize, column: i64, cell: Val<'c>) -> Result<(), Error> {
        let columns = self.values.get_mut(value).ok_or_else(|| Error::internal("a value that is not in flight"))?;
        let known = columns.iter_mut().find(|known| known.column == column);
        known.ok_or_else(|| Error::internal("a column that is not in flight"))?.cells.push_front(cell);
        Ok(())
    }

    /// The cell of a column in the row of an age.
    pub fn get(&self, value: usize, column: i64, age: i64) -> Result<Val<'c>, Error> {
        let found = || {
            let known = self.values.get(value)?.iter().find(|known| known.column == column)?;
            known.cells.get(usize::try_from(age - known.first).ok()?).copied()
        };
        found().ok_or_else(|| {
            Error::internal(format!("no cell of column {column} and age {age} of value {value} is in flight"))
        })
    }

    /// Ends an iteration: every row is one older, and the oldest go.
    pub fn age(&mut self) {
        for column in self.values.iter_mut().flatten() {
            column.cells.truncate(column.kept);
        }
    }
}
