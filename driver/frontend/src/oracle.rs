//! The meaning of a program, by plain interpretation.
//!
//! Shares no code with any pass. Every operation is done in its own type, in the order of the
//! expression tree, rounded once; nothing is contracted or re-associated; of an `if`, `&&` or
//! `||` only what is needed is evaluated at each point. All reads of a function see the fields as
//! they were before it; points that no piece covers keep their values. Integers wrap; a float
//! becomes an integer by cutting off, at the type's limits where it lies outside, 0 from NaN.
//!
//! `code.rs` flattens expressions, `lanes.rs` runs them over strips of neighbouring cells; here,
//! the cells of a function are divided among the cores.

mod code;
mod lanes;

use crate::program::{FieldId, Function, Program, Role};
use crate::sizes::{self, SizeError, Sizes};
use crate::source::Span;
use code::{Code, Environment};
use cranelift_entity::PrimaryMap;
use lanes::{LANES, Registers, Strip};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::ops::Range;
use stencil_runtime::array::{Array, ArrayError, Data, DataMut, Element, shape_text};

/// Why a run could not be done or finished.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OracleError {
    /// The sizes do not fit the program.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A state or const field without an array.
    #[error("the field `{name}` has no input; give it with --in {name}=...")]
    MissingField {
        /// The field.
        name: String,
    },
    /// An array for something that is no input.
    #[error("`{name}` is no input of the program")]
    Unexpected {
        /// The name given.
        name: String,
    },
    /// An array of another shape than the field.
    #[error("the array for `{name}` has shape {found}, but the field has shape {expected}")]
    Shape {
        /// The field.
        name: String,
        /// Its shape.
        expected: String,
        /// The array's shape.
        found: String,
    },
    /// An array of another type than the field.
    #[error("the array for `{name}` holds {found}, but the field holds {expected}")]
    Element {
        /// The field.
        name: String,
        /// Its type.
        expected: Element,
        /// The array's type.
        found: Element,
    },
    /// A scalar without a value.
    #[error("the scalar `{name}` has no value; give it with --set {name}=...")]
    MissingScalar {
        /// The scalar.
        name: String,
    },
    /// A value for something that is no scalar.
    #[error("the program has no scalar `{name}`")]
    UnknownScalar {
        /// The name given.
        name: String,
    },
    /// An integer was divided by zero.
    #[error("integer division by zero in `{function}` at {point:?}, step {step}")]
    DivisionByZero {
        /// The function.
        function: String,
        /// The point's coordinates.
        point: Vec<i64>,
        /// The step, from 0.
        step: u64,
        /// The operation.
        span: Span,
    },
    /// The run was cancelled.
    #[error("cancelled after step {0}")]
    Cancelled(u64),
    /// Not enough memory.
    #[error(transparent)]
    Memory(#[from] ArrayError),
}

/// Takes `steps` steps. `fields` holds an array for every state and const field, of the field's
/// shape and type; afterwards the state fields hold their new values. Scalars without a value
/// take their default. `progress` is called after each step with the steps done and all steps, and
/// ends the run by [`ControlFlow::Break`].
///
/// # Errors
/// See [`OracleError`]. After a division by zero the state fields hold the values before the
/// function that failed; after any other error the arrays are as they were.
pub fn run(
    program: &Program,
    sizes: &Sizes,
    scalars: &BTreeMap<String, f64>,
    steps: u64,
    fields: &mut BTreeMap<String, Array>,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), OracleError> {
    sizes::check(program, sizes)?;
    let shapes = sizes::extents(program, sizes)?;
    let values = scalar_values(program, scalars)?;
    compare(program, &shapes, fields)?;
    let environment = Environment { program, sizes, scalars: &values, shapes: &shapes };
    let mut functions = Vec::new();
    for function in &program.functions {
        functions.push(Job::new(function, &environment)?);
    }
    let mut state = State::take(program, &shapes, fields)?;
    let outcome = state.steps(&functions, steps, progress);
    state.put_back(program, fields);
    outcome
}

fn scalar_values(program: &Program, given: &BTreeMap<String, f64>) -> Result<Vec<f64>, OracleError> {
    let unknown = given.keys().find(|name| program.scalars.values().all(|scalar| scalar.name != **name));
    if let Some(name) = unknown {
        return Err(OracleError::UnknownScalar { name: name.clone() });
    }
    let value = |scalar: &crate::program::Scalar| {
        let value = given.get(&scalar.name).copied().or(scalar.default);
        value.ok_or_else(|| OracleError::MissingScalar { name: scalar.name.clone() })
    };
    program.scalars.values().map(value).collect()
}

/// Whether the arrays are those that the program needs.
fn compare(
    program: &Program,
    shapes: &PrimaryMap<FieldId, Vec<usize>>,
    arrays: &BTreeMap<String, Array>,
) -> Result<(), OracleError> {
    let inputs = || program.fields.iter().filter(|(_, field)| field.role != Role::Temp);
    if let Some(name) = arrays.keys().find(|name| inputs().all(|(_, field)| field.name != **name)) {
        return Err(OracleError::Unexpected { name: name.clone() });
    }
    for (id, field) in inputs() {
        let name = field.name.clone();
        let Some(array) = arrays.get(&name) else {
            return Err(OracleError::MissingField { name });
        };
        let shape = shapes.get(id).map_or(&[][..], Vec::as_slice);
        if array.shape() != shape {
            let (expected, found) = (shape_text(shape), shape_text(array.shape()));
            return Err(OracleError::Shape { name, expected, found });
        }
        let found = array.element();
        if found != field.element {
            return Err(OracleError::Element { name, expected: field.element, found });
        }
    }
    Ok(())
}

/// A function, ready to run.
struct Job {
    name: String,
    updates: Vec<FieldId>,
    pieces: Vec<Part>,
    /// Cells per dimension, and the coordinate of the first cell.
    shape: Vec<usize>,
    origin: Vec<i64>,
}

/// A piece, ready to run.
struct Part {
    bounds: Vec<(i64, i64)>,
    code: Code,
}

impl Job {
    fn new(function: &Function, environment: &Environment) -> Result<Self, OracleError> {
        let Environment { program, sizes, shapes, .. } = environment;
        let first = function.updates.first();
        let field = first.and_then(|id| program.fields.get(*id));
        let grid = field.and_then(|field| program.grids.get(field.grid));
        let grid = grid.map(|grid| sizes::bounds(program, &grid.region, sizes)).transpose()?;
        let mut pieces = Vec::new();
        for piece in &function.pieces {
            let bounds = sizes::bounds(program, &piece.region, sizes)?;
            pieces.push(Part { bounds, code: Code::new(&piece.values, environment) });
        }
        Ok(Self {
            name: function.name.clone(),
            updates: function.updates.clone(),
            pieces,
            shape: first.and_then(|id| shapes.get(*id)).cloned().unwrap_or_default(),
            origin: grid.unwrap_or_default().into_iter().map(|(lower, _)| lower).collect(),
        })
    }

    /// Computes the cells of a range of linear indices into `new`, one part of it per field.
    fn compute(
        &self,
        old: &PrimaryMap<FieldId, Array>,
        new: &mut [DataMut],
        cells: Range<usize>,
        step: u64,
        registers: &mut Registers,
    ) -> Result<(), OracleError> {
        for (id, part) in self.updates.iter().zip(new.iter_mut()) {
            if let Some(old) = old.get(*id) {
                keep(part, old.data(), cells.start);
            }
        }
        let length = self.shape.last().copied().unwrap_or(0);
        if length == 0 || cells.is_empty() {
            return Ok(());
        }
        for row in cells.start / length..=(cells.end - 1) / length {
            let start = row * length;
            let inside = cells.start.max(start)..cells.end.min(start + length);
            for piece in &self.pieces {
                self.compute_row(piece, old, new, (row, inside.clone(), cells.start), step, registers)?;
            }
        }
        Ok(())
    }

    /// Computes what a piece has of a row's cells; `first` is the index of the first cell of `new`.
    fn compute_row(
        &self,
        piece: &Part,
        old: &PrimaryMap<FieldId, Array>,
        new: &mut [DataMut],
        (row, inside, first): (usize, Range<usize>, usize),
        step: u64,
        registers: &mut Registers,
    ) -> Result<(), OracleError> {
        let mut point = self.point(row);
        let mut bounds = piece.bounds.iter().zip(&point).rev();
        let Some(((lower, upper), start)) = bounds.next() else { return Ok(()) };
        if bounds.any(|((lower, upper), at)| at < lower || at > upper) {
            return Ok(());
        }
        // Linear indices of the piece's cells in this row; the piece lies inside the grid.
        let row_start = (row * self.shape.last().copied().unwrap_or(0)) as i64;
        let index = |at: i64| row_start.saturating_add(at.saturating_sub(*start));
        let begin = index(*lower).max(inside.start as i64) as usize;
        let end = index(*upper).saturating_add(1).clamp(0, inside.end as i64) as usize;
        let mut at = begin;
        while at < end {
            let count = LANES.min(end - at);
            if let (Some(last), Some(origin)) = (point.last_mut(), self.origin.last()) {
                *last = origin + (at as i64 - row_start);
            }
            let strip = Strip { fields: old, index: at, point: &point, step: step as i64, count };
            let fault = lanes::execute(&piece.code, &strip, registers);
            fault.map_err(|fault| {
                let mut point = point.clone();
                if let Some(last) = point.last_mut() {
                    *last += fault.lane as i64;
                }
                let function = self.name.clone();
                OracleError::DivisionByZero { function, point, step, span: fault.span }
            })?;
            for (part, result) in new.iter_mut().zip(&piece.code.results) {
                store(part, registers, *result, at - first, count);
            }
            at += count;
        }
        Ok(())
    }

    /// The coordinates of a row's first cell.
    fn point(&self, mut row: usize) -> Vec<i64> {
        let mut point = self.origin.clone();
        let outer = self.shape.len().saturating_sub(1);
        for dimension in (0..outer).rev() {
            let extent = self.shape.get(dimension).copied().unwrap_or(1).max(1);
            if let Some(at) = point.get_mut(dimension) {
                *at += (row % extent) as i64;
            }
            row /= extent;
        }
        point
    }
}

/// The data of a run.
struct State {
    fields: PrimaryMap<FieldId, Array>,
    /// Where new values go, before they take the place of the old ones.
    spare: BTreeMap<FieldId, Array>,
    registers: Vec<Registers>,
}

/// Fewer cells than this are not worth another thread.
const CELLS_PER_THREAD: usize = 1 << 14;

impl State {
    /// Moves the arrays here; untouched where memory is lacking.
    fn take(
        program: &Program,
        shapes: &PrimaryMap<FieldId, Vec<usize>>,
        arrays: &mut BTreeMap<String, Array>,
    ) -> Result<Self, OracleError> {
        let zeros = |id: FieldId| {
            let element = program.fields.get(id).map_or(Element::F32, |field| field.element);
            Array::zeros(element, shapes.get(id).map_or(&[], Vec::as_slice))
        };
        let mut spare = BTreeMap::new();
        for id in program.functions.iter().flat_map(|function| &function.updates) {
            spare.insert(*id, zeros(*id)?);
        }
        let mut temps = BTreeMap::new();
        for (id, _) in program.fields.iter().filter(|(_, field)| field.role == Role::Temp) {
            temps.insert(id, zeros(id)?);
        }
        let mut fields = PrimaryMap::new();
        for (id, field) in &program.fields {
            let array = temps.remove(&id).or_else(|| arrays.remove(&field.name));
            // The inputs were compared with the program: all are there.
            fields.push(array.map_or_else(|| zeros(id), Ok)?);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let registers = (0..cores).map(|_| Registers::default()).collect();
        Ok(Self { fields, spare, registers })
    }

    fn put_back(self, program: &Program, arrays: &mut BTreeMap<String, Array>) {
        for ((_, array), field) in self.fields.into_iter().zip(program.fields.values()) {
            if field.role != Role::Temp {
                arrays.insert(field.name.clone(), array);
            }
        }
    }

    fn steps(
        &mut self,
        functions: &[Job],
        steps: u64,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), OracleError> {
        for step in 0..steps {
            for function in functions {
                self.apply(function, step)?;
            }
            if progress(step + 1, steps).is_break() {
                return Err(OracleError::Cancelled(step + 1));
            }
        }
        Ok(())
    }

    /// Computes a function's new values, then lets them take the place of the old ones.
    fn apply(&mut self, job: &Job, step: u64) -> Result<(), OracleError> {
        let cells: usize = job.shape.iter().product();
        let threads = self.registers.len().min(cells / CELLS_PER_THREAD).max(1);
        let share = cells.div_ceil(threads).max(1);
        let mut outputs: Vec<(FieldId, Array)> =
            job.updates.iter().filter_map(|id| Some((*id, self.spare.remove(id)?))).collect();
        // One list of parts per thread, with one part per updated field.
        let mut parts: Vec<Vec<DataMut>> = (0..threads).map(|_| Vec::new()).collect();
        for (_, array) in &mut outputs {
            for (list, part) in parts.iter_mut().zip(split(array.data_mut(), share)) {
                list.push(part);
            }
        }
        let old = &self.fields;
        let work = |index: usize, mut part: Vec<DataMut>, registers: &mut Registers| {
            let range = (index * share).min(cells)..((index + 1) * share).min(cells);
            job.compute(old, &mut part, range, step, registers)
        };
        let mut jobs = parts.into_iter().zip(&mut self.registers).enumerate();
        let first = jobs.next();
        let outcomes: Vec<Result<(), OracleError>> = std::thread::scope(|scope| {
            let spawned: Vec<_> =
                jobs.map(|(index, (part, registers))| scope.spawn(move || work(index, part, registers))).collect();
            let own = first.map(|(index, (part, registers))| work(index, part, registers));
            let joined = spawned.into_iter().map(|thread| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            own.into_iter().chain(joined.collect::<Vec<_>>()).collect()
        });
        let outcome = outcomes.into_iter().collect::<Result<(), _>>();
        for (id, data) in outputs {
            let new = match (&outcome, self.fields.get_mut(id)) {
                (Ok(()), Some(field)) => std::mem::replace(field, data),
                _ => data,
            };
            self.spare.insert(id, new);
        }
        outcome
    }
}

/// A field's cells in parts of so many.
fn split(cells: DataMut<'_>, share: usize) -> Vec<DataMut<'_>> {
    match cells {
        DataMut::F32(values) => values.chunks_mut(share).map(DataMut::F32).collect(),
        DataMut::F64(values) => values.chunks_mut(share).map(DataMut::F64).collect(),
        DataMut::I32(values) => values.chunks_mut(share).map(DataMut::I32).collect(),
        DataMut::I64(values) => values.chunks_mut(share).map(DataMut::I64).collect(),
    }
}

/// Takes over old values from a linear index on.
fn keep(new: &mut DataMut, old: &Data, from: usize) {
    fn copy<T: Copy>(new: &mut [T], old: &[T], from: usize) {
        if let Some(old) = old.get(from..from + new.len()) {
            new.copy_from_slice(old);
        }
    }
    match (new, old) {
        (DataMut::F32(new), Data::F32(old)) => copy(new, old, from),
        (DataMut::F64(new), Data::F64(old)) => copy(new, old, from),
        (DataMut::I32(new), Data::I32(old)) => copy(new, old, from),
        (DataMut::I64(new), Data::I64(old)) => copy(new, old, from),
        _ => {} // Both are of the field's type.
    }
}

/// Takes over a result.
fn store(new: &mut DataMut, registers: &Registers, register: usize, at: usize, count: usize) {
    fn copy<T: Copy>(new: &mut [T], result: &[T], at: usize, count: usize) {
        if let (Some(new), Some(result)) = (new.get_mut(at..at + count), result.get(..count)) {
            new.copy_from_slice(result);
        }
    }
    match new {
        DataMut::F32(new) => copy(new, registers.row(register), at, count),
        DataMut::F64(new) => copy(new, registers.row(register), at, count),
        DataMut::I32(new) => copy(new, registers.row(register), at, count),
        DataMut::I64(new) => copy(new, registers.row(register), at, count),
    }
}
