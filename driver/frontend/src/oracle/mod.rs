//! The meaning of a program, by plain interpretation.
//!
//! Shares no code with any pass. Every operation is done in its own type, in the order of the
//! expression tree, rounded once; nothing is contracted or re-associated. All reads of a function
//! see the fields as they were before it, absolute ones too. Reads of its own sweep see what was
//! computed before in row-major order. Points that no piece covers keep their values. Integers
//! wrap; `a / 0` is 0 and `a % 0` is `a`; a float becomes an integer by cutting off, at the type's
//! limits where it lies outside, 0 from NaN.
//!
//! | file | what |
//! |---|---|
//! | `compile.rs` | flattens expressions into the operations of `code.rs` |
//! | `lanes.rs` | runs operations over strips of neighbouring cells |
//! | `numbers.rs` | arithmetic of the number types |
//! | `reduce.rs` | reductions, and the condition that ends a run |
//! | `finite.rs` | the search for the first NaN or infinity |
//! | `outside.rs` | which cell a boundary rule takes |
//! | `items.rs` | the items of a step in their order |
//! | `job.rs` | a function over some rows; here they are divided among the cores |

mod code;
mod compile;
mod finite;
mod items;
mod job;
mod lanes;
mod numbers;
mod outside;
mod reduce;
mod registers;
mod scalars;

use crate::program::{FieldId, Program, Role};
use crate::sizes::{self, SizeError, Sizes};
use crate::source::Span;
use code::Environment;
use cranelift_entity::PrimaryMap;
use finite::{Finite, lost};
use items::{Item, Items};
use job::{Cells, Job, split};
use reduce::Reducer;
use registers::Registers;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::ops::Range;
use stencil_runtime::array::{Array, ArrayError, Element, shape_text};
use stencil_runtime::number::Numeral;
use stencil_runtime::on_threads::on_threads;

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
    /// A scalar's value is beyond its type.
    #[error("{value} is no {element}, the type of the scalar `{name}`")]
    Scalar {
        /// The scalar.
        name: String,
        /// Its type.
        element: Element,
        /// The value given.
        value: Numeral,
    },
    /// An absolute read lies outside the field's grid, which the checker should have found.
    #[error("`{function}` reads outside a grid, at {point:?}, in step {step}")]
    Outside {
        /// The function.
        function: String,
        /// The coordinates that are read.
        point: Vec<i64>,
        /// The step, from 0.
        step: u64,
    },
    /// A value is a NaN or an infinity, and the run was to end there.
    #[error("{}", lost(field, point, value, *step))]
    NotFinite {
        /// The field or reduction.
        field: String,
        /// The coordinates of the first such cell; none of a reduction.
        point: Vec<i64>,
        /// The value.
        value: String,
        /// The step that gave it, from 0; none for an input.
        step: Option<u64>,
        /// The expression that gave it.
        span: Option<Span>,
    },
    /// The run was cancelled.
    #[error("cancelled after step {0}")]
    Cancelled(u64),
    /// Not enough memory.
    #[error(transparent)]
    Memory(#[from] ArrayError),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The number of steps taken, with those before the run.
    pub steps: u64,
    /// Whether the condition of `until` held; the run took all its steps where not.
    pub met: bool,
}

/// Takes `steps` steps, or fewer where the program's condition is met. `fields` holds an array for
/// every state and const field, of the field's shape and type; afterwards the state fields hold
/// their new values, and there is an array of one cell for each reduction. Scalars without a value
/// take their default. `progress` is called after each step with the steps done and all steps, and
/// ends the run by [`ControlFlow::Break`].
///
/// # Errors
/// See [`OracleError`]. After [`OracleError::Cancelled`] the state fields hold the values of the
/// last step; after any other error the arrays are as they were.
pub fn run(
    program: &Program,
    sizes: &Sizes,
    scalars: &BTreeMap<String, Numeral>,
    steps: u64,
    fields: &mut BTreeMap<String, Array>,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Ended, OracleError> {
    let ended = go_on(program, sizes, scalars, 0..steps, false, fields, progress);
    fields.retain(|name, _| {
        program.fields.values().any(|field| field.name == *name && field.role != Role::Temp)
    });
    ended
}

/// Takes the steps with the given numbers, as [`run`] does those from 0. `fields` may hold arrays
/// for temp fields and reductions too, as they are after the steps before; afterwards it has an
/// array for every field. With `finite`, the first NaN or infinity ends the run as an error.
///
/// # Errors
/// As for [`run`].
pub fn go_on(
    program: &Program,
    sizes: &Sizes,
    scalars: &BTreeMap<String, Numeral>,
    steps: Range<u64>,
    finite: bool,
    fields: &mut BTreeMap<String, Array>,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Ended, OracleError> {
    sizes::check(program, sizes, steps.end)?;
    let shapes = sizes::extents(program, sizes)?;
    let values = scalars::values(program, scalars)?;
    compare(program, &shapes, fields)?;
    let mut bounds = PrimaryMap::new();
    for grid in program.grids.values() {
        bounds.push(sizes::bounds(program, &grid.region, sizes)?);
    }
    let environment = Environment { program, sizes, scalars: &values, bounds: &bounds };
    let items = Items::new(&environment)?;
    let mut state = State::take(program, &shapes, fields)?;
    let finite = finite.then_some(Finite { program, bounds: &bounds });
    let outcome = state.steps(&items, steps, finite.as_ref(), progress);
    state.put_back(program, fields);
    outcome
}

/// Whether the arrays are those that the program needs.
fn compare(
    program: &Program,
    shapes: &PrimaryMap<FieldId, Vec<usize>>,
    arrays: &BTreeMap<String, Array>,
) -> Result<(), OracleError> {
    let is_input = |role| matches!(role, Role::State | Role::Const);
    let named = |name: &str| program.fields.values().any(|field| field.name == name);
    if let Some(name) = arrays.keys().find(|name| !named(name)) {
        return Err(OracleError::Unexpected { name: name.clone() });
    }
    for (id, field) in &program.fields {
        let name = field.name.clone();
        let Some(array) = arrays.get(&name) else {
            if is_input(field.role) {
                return Err(OracleError::MissingField { name });
            }
            continue;
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
        for reduction in &program.reductions {
            let element = program.fields.get(reduction.field).map(|field| field.element);
            let initial = reduction.initial.as_ref().zip(element);
            let value = initial.and_then(|(value, element)| value.number(element));
            if let Some(value) = value {
                temps.insert(reduction.field, Array::filled(value, &[1])?);
            }
        }
        let mut fields = PrimaryMap::new();
        for (id, field) in &program.fields {
            let array = arrays.remove(&field.name).or_else(|| temps.remove(&id));
            // The inputs were compared with the program: all are there.
            fields.push(array.map_or_else(|| zeros(id), Ok)?);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let registers = (0..cores).map(|_| Registers::default()).collect();
        Ok(Self { fields, spare, registers })
    }

    fn put_back(self, program: &Program, arrays: &mut BTreeMap<String, Array>) {
        for ((_, array), field) in self.fields.into_iter().zip(program.fields.values()) {
            arrays.insert(field.name.clone(), array);
        }
    }

    fn steps(
        &mut self,
        items: &Items,
        steps: Range<u64>,
        finite: Option<&Finite<'_>>,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Ended, OracleError> {
        finite.map_or(Ok(()), |finite| finite.inputs(&self.fields))?;
        // Steps that compute nothing are all alike.
        let until = items.until.as_ref();
        let all = steps.end - steps.start.min(steps.end);
        let skipped = if items.are_idle() && until.is_none() { all.max(1) - 1 } else { 0 };
        for step in steps.start + skipped..steps.end {
            self.turn(&items.list, 0, step, finite)?;
            if let (Some(until), Some(registers)) = (until, self.registers.first_mut())
                && until.holds(&self.fields, step, registers)
            {
                return Ok(Ended { steps: step + 1, met: true });
            }
            if progress(step + 1 - steps.start, all).is_break() {
                return Err(OracleError::Cancelled(step + 1));
            }
        }
        Ok(Ended { steps: steps.end, met: false })
    }

    /// Runs items that stand in so many `repeat`s together.
    fn turn(
        &mut self,
        items: &[Item],
        depth: usize,
        step: u64,
        finite: Option<&Finite<'_>>,
    ) -> Result<(), OracleError> {
        let together =
            |a: &Item, b: &Item| a.repeat(depth).is_some() && a.repeat(depth) == b.repeat(depth);
        for some in items.chunk_by(together) {
            match (some, some.first().and_then(|item| item.repeat(depth))) {
                (_, Some(repeat)) => {
                    for _ in 0..repeat.count {
                        self.turn(some, depth + 1, step, finite)?;
                    }
                }
                ([Item::Function(job)], None) => {
                    self.apply(job, step);
                    self.all_inside(job, step)?;
                    finite.map_or(Ok(()), |finite| finite.function(&self.fields, job, step))?;
                }
                ([Item::Reduction(reducer)], None) => self.reduce(reducer, step, finite)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether no absolute read of a function was outside a grid.
    fn all_inside(&self, function: &Job, step: u64) -> Result<(), OracleError> {
        let outside = |registers: &Registers| registers.outside.clone();
        match self.registers.iter().find_map(outside) {
            None => Ok(()),
            Some(point) => {
                Err(OracleError::Outside { function: function.name.clone(), point, step })
            }
        }
    }

    /// Computes a reduction.
    fn reduce(
        &mut self,
        reduction: &Reducer,
        step: u64,
        finite: Option<&Finite<'_>>,
    ) -> Result<(), OracleError> {
        let Some(registers) = self.registers.first_mut() else { return Ok(()) };
        let value = reduction.value(&self.fields, step, registers)?;
        if let Some(field) = self.fields.get_mut(reduction.field) {
            *field = value;
        }
        let span = |_: &[i64]| Some(reduction.span);
        finite
            .map_or(Ok(()), |finite| finite.field(&self.fields, reduction.field, Some(step), span))
    }

    /// Computes a function's new values, then lets them take the place of the old ones.
    fn apply(&mut self, job: &Job, step: u64) {
        let rows = job.rows();
        let mut outputs: Vec<(FieldId, Array)> = Vec::new();
        for updated in &job.updates {
            outputs.extend(self.spare.remove(&updated.field).map(|array| (updated.field, array)));
        }
        let cells = outputs.iter().map(|(_, array)| array.len()).max().unwrap_or(0);
        let parallel = if job.in_order.is_some() { 1 } else { self.registers.len() };
        let threads = parallel.min(cells / CELLS_PER_THREAD).max(1) as i64;
        let share = (rows.end - rows.start + threads - 1) / threads;
        let shares: Vec<Range<i64>> = (0..threads)
            .map(|thread| {
                rows.start + thread * share..(rows.start + (thread + 1) * share).min(rows.end)
            })
            .collect();
        // One list of parts per thread, with one part per updated field.
        let mut parts: Vec<Vec<Cells>> = shares.iter().map(|_| Vec::new()).collect();
        for ((_, array), updated) in outputs.iter_mut().zip(&job.updates) {
            let (first, last) = updated.rows;
            let row = array.len() / usize::try_from(last - first + 1).unwrap_or(0).max(1);
            let lengths = shares.iter().map(|share| {
                let rows = share.end.min(last + 1) - share.start.max(first);
                usize::try_from(rows).unwrap_or(0) * row
            });
            for (list, part) in parts.iter_mut().zip(split(array.data_mut(), lengths)) {
                list.push(part);
            }
        }
        let old = &self.fields;
        let work = |index: usize, mut part: Vec<Cells>, registers: &mut Registers| {
            if let Some(rows) = shares.get(index) {
                job.compute(old, &mut part, rows, step, registers);
            }
        };
        let jobs = parts.into_iter().zip(&mut self.registers).enumerate();
        on_threads(jobs.collect(), |(index, (part, registers))| work(index, part, registers));
        for (id, data) in outputs {
            if let Some(field) = self.fields.get_mut(id) {
                self.spare.insert(id, std::mem::replace(field, data));
            }
        }
    }
}
