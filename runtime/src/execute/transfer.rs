//! Data between the host and the buffers of a target: inputs, outputs and values in between.

use super::{ExecuteError, Input, Inputs, Launched, Target, lendable};
use crate::array::{Array, ArrayError, Element};
use crate::bind::{Bound, Buffer, BufferId};
use crate::layout::Window;
use crate::plan::{BufferKind, Plan, Role};
use crate::watch;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fills all buffers as the plan says: with the input of a field or with a number.
///
/// # Errors
/// When the target fails or there is too little memory.
pub fn upload<I: Input>(
    plan: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, I>,
    target: &mut dyn Target,
) -> Result<(), ExecuteError> {
    let named = |field: usize| inputs.get(&plan.fields.get(field)?.name);
    for (place, buffer) in bound.buffers.iter().enumerate() {
        // A reduction starts with a number, or where another run ended.
        let value = || value_of(plan, bound, place);
        let field = buffer.input.or_else(value);
        let input = field.and_then(|field| Some((field, named(field)?)));
        let home = input.filter(|(_, input)| input.bytes().is_none());
        if let Some(home) = home.and_then(|(field, _)| lendable(plan, bound, field)) {
            if home.0 != place {
                target.copy(home, BufferId(place)).map_err(ExecuteError::Target)?;
            }
            continue;
        }
        // A copy within the device is faster than another one from the host. Reductions and temp
        // fields have values of their own, which their buffers do not name.
        let before = bound.buffers.iter().take(place);
        let alike = |one: &Buffer| {
            let (name, constant) = (buffer.name.clone(), buffer.constant.clone());
            Buffer { name, constant, ..one.clone() } == *buffer
        };
        let filled_before = buffer.input.is_some() && input.is_some() || !buffer.record.is_empty();
        if let (true, Some(same)) = (filled_before, before.clone().position(alike)) {
            target.copy(BufferId(same), BufferId(place)).map_err(ExecuteError::Target)?;
            continue;
        }
        if !buffer.record.is_empty() {
            let lent = |field: &usize| named(*field).is_some_and(|one| one.bytes().is_none());
            if buffer.record.iter().all(lent) {
                let first = buffer.record.first().and_then(|field| bound.values.get(*field));
                let home = first.and_then(|held| held.first()).map(|held| held.buffer);
                if let Some(home) = home.filter(|home| *home != place) {
                    let (home, place) = (BufferId(home), BufferId(place));
                    target.copy(home, place).map_err(ExecuteError::Target)?;
                }
                continue;
            }
            let image = joined(bound, buffer, &named)?;
            target.upload(BufferId(place), image.bytes()).map_err(ExecuteError::Target)?;
            continue;
        }
        let Some((field, array)) = input else {
            let watched = buffer.kind == BufferKind::Watched && target.watches();
            let one = Array::filled(buffer.fill, &[1])?;
            if !watched && one.bytes().iter().all(|byte| *byte == 0) {
                target.clear(BufferId(place), buffer.bytes()).map_err(ExecuteError::Target)?;
                continue;
            }
            let mut cells = Array::filled(buffer.fill, &[buffer.cells])?;
            if watched {
                watch::arm(cells.bytes_mut());
            }
            target.upload(BufferId(place), cells.bytes()).map_err(ExecuteError::Target)?;
            continue;
        };
        let bytes = array.bytes().unwrap_or_default();
        let shape = bound.shapes.get(field).map_or(&[] as &[usize], Vec::as_slice);
        let cells = buffer.all_cells();
        let window = buffer.window(shape, &cells);
        if window.is_whole() {
            target.upload(BufferId(place), bytes).map_err(ExecuteError::Target)?;
            continue;
        }
        let mut image = Array::zeros(buffer.element, &[buffer.cells])?;
        let (size, from, to) = (buffer.element.size(), bytes, image.bytes_mut());
        window.for_each_run(|there, here, run, step| {
            copy_cells((to, here, step), (from, there, 1), run, size);
        });
        target.upload(BufferId(place), image.bytes()).map_err(ExecuteError::Target)?;
    }
    Ok(())
}

/// The memory of a buffer of records that begins with the inputs of fields; zeros for those that
/// have none.
fn joined<'a, I: Input + 'a>(
    bound: &Bound,
    buffer: &Buffer,
    named: &impl Fn(usize) -> Option<&'a I>,
) -> Result<Array, ArrayError> {
    let mut image = Array::zeros(buffer.element, &[buffer.cells])?;
    let (size, to, cells) = (buffer.element.size(), image.bytes_mut(), buffer.all_cells());
    for (number, field) in buffer.record.iter().enumerate() {
        let Some(from) = named(*field).and_then(Input::bytes) else { continue };
        let shape = bound.shapes.get(*field).map_or(&[] as &[usize], Vec::as_slice);
        let window = Window { number, ..buffer.window(shape, &cells) };
        window.for_each_run(|there, here, run, step| {
            copy_cells((to, here, step), (from, there, 1), run, size);
        });
    }
    Ok(image)
}

/// The reduction whose value lies in a buffer.
fn value_of(plan: &Plan, bound: &Bound, buffer: usize) -> Option<usize> {
    let mut fields = plan.fields.iter().zip(&bound.values);
    fields.position(|(field, parts)| {
        field.role == Role::Reduction && parts.iter().any(|held| held.buffer == buffer)
    })
}

/// Copies cells of `size` bytes. Each side is memory, its first cell, and the distance of the next.
fn copy_cells(
    to: (&mut [u8], usize, usize),
    from: (&[u8], usize, usize),
    cells: usize,
    size: usize,
) {
    let range = |first: usize, cells: usize| first * size..(first + cells) * size;
    let ((to, at, stride), (from, place, step)) = (to, from);
    if (stride, step) == (1, 1) {
        let both = (to.get_mut(range(at, cells)), from.get(range(place, cells)));
        if let (Some(to), Some(from)) = both {
            to.copy_from_slice(from);
        }
        return;
    }
    for cell in 0..cells {
        let both =
            (to.get_mut(range(at + cell * stride, 1)), from.get(range(place + cell * step, 1)));
        if let (Some(to), Some(from)) = both {
            to.copy_from_slice(from);
        }
    }
}

/// Downloads the values of the state fields and reductions, and of the `temps` that have buffers;
/// `current` is the memory of each buffer.
///
/// # Errors
/// When the target fails or there is too little memory.
pub fn download(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    current: &[BufferId],
    temps: bool,
    target: &mut dyn Target,
) -> Result<BTreeMap<String, Array>, ExecuteError> {
    let mut outputs = BTreeMap::new();
    for (place, field) in plan.fields.iter().enumerate() {
        if field.role.is_output() || (temps && !field.role.is_input() && !field.value.is_empty()) {
            let value = value(plan, bound, inputs, current, place, target)?;
            outputs.insert(field.name.clone(), value);
        }
    }
    Ok(outputs)
}

/// A field's value: its input, and over it what lies in its buffers.
pub fn value(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    current: &[BufferId],
    field: usize,
    target: &mut dyn Target,
) -> Result<Array, ExecuteError> {
    let (Some(declared), Some(shape)) = (plan.fields.get(field), bound.shapes.get(field)) else {
        return Ok(Array::zeros(Element::F32, &[0])?);
    };
    let mut array = match inputs.get(&declared.name) {
        Some(input) if !in_one_buffer(bound, field) => input.copy()?,
        _ => Array::zeros(declared.element, shape)?,
    };
    read_value(bound, current, field, array.bytes_mut(), target)?;
    Ok(array)
}

/// The values of a run after its last step, which are read in parts.
pub struct Values<'a> {
    plan: &'a Plan,
    bound: &'a Bound,
    inputs: &'a Inputs,
    launched: &'a Launched,
    target: &'a mut dyn Target,
    cancel: Option<&'a AtomicBool>,
    /// Fields that lie in several buffers, by their places.
    joined: BTreeMap<usize, Array>,
    /// Why a read failed.
    failed: Option<ExecuteError>,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        (plan, bound, inputs): (&'a Plan, &'a Bound, &'a Inputs),
        launched: &'a Launched,
        target: &'a mut dyn Target,
        cancel: Option<&'a AtomicBool>,
    ) -> Self {
        let joined = BTreeMap::new();
        Self { plan, bound, inputs, launched, target, cancel, joined, failed: None }
    }

    /// Launches, steps and time.
    pub fn launched(&self) -> &Launched {
        self.launched
    }

    /// Cells of a field per dimension, slowest first.
    pub fn shape(&self, field: &str) -> Option<&[usize]> {
        self.bound.shapes.get(self.place(field)?).map(Vec::as_slice)
    }

    /// Reads numbers of a field, row-major, from a cell on.
    ///
    /// # Errors
    /// When the target fails, when the run is cancelled, when there is no such field or cell, or
    /// too little memory for a field in several buffers. The run then fails with the reason.
    pub fn read(&mut self, field: &str, first: usize, to: &mut [u8]) -> io::Result<()> {
        self.read_part(field, first, to).map_err(|error| {
            let told = io::Error::other(error.to_string());
            self.failed.get_or_insert(error);
            told
        })
    }

    /// Why a read failed, if one did.
    pub(super) fn failure(&mut self) -> Option<ExecuteError> {
        self.failed.take()
    }

    fn place(&self, field: &str) -> Option<usize> {
        self.plan.fields.iter().position(|one| one.name == field)
    }

    fn read_part(&mut self, field: &str, first: usize, to: &mut [u8]) -> Result<(), ExecuteError> {
        if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(ExecuteError::Cancelled(self.bound.first_step + self.launched.steps));
        }
        let missing = || {
            let text = format!("the run has no cell {first} of a field `{field}`");
            ExecuteError::Target(text.into())
        };
        let place = self.place(field).ok_or_else(missing)?;
        let element = self.plan.fields.get(place).map_or(Element::F32, |field| field.element);
        let begin = first.saturating_mul(element.size());
        let current = &self.launched.current;
        let held = self.bound.values.get(place).and_then(|parts| parts.first());
        let memory = held.and_then(|held| current.get(held.buffer));
        if let (Some(memory), true) = (memory, in_one_buffer(self.bound, place)) {
            return self.target.download(*memory, begin, to).map_err(ExecuteError::Target);
        }
        if !self.joined.contains_key(&place) {
            let whole = value(self.plan, self.bound, self.inputs, current, place, self.target)?;
            self.joined.insert(place, whole);
        }
        let whole = self.joined.get(&place).map_or(&[][..], Array::bytes);
        let part = whole.get(begin..).and_then(|rest| rest.get(..to.len()));
        to.copy_from_slice(part.ok_or_else(missing)?);
        Ok(())
    }
}

/// Whether all cells of a field's value lie in one buffer, in its order.
pub(super) fn in_one_buffer(bound: &Bound, field: usize) -> bool {
    match (bound.values.get(field).map(Vec::as_slice), bound.shapes.get(field)) {
        (Some([held]), Some(shape)) => bound
            .buffers
            .get(held.buffer)
            .is_some_and(|buffer| held.window(shape, buffer).is_whole()),
        _ => false,
    }
}

/// Reads a field's value over `to`, which holds the cells of its input, row-major without padding.
///
/// # Errors
/// When the target fails or there is too little memory.
pub fn read_value(
    bound: &Bound,
    current: &[BufferId],
    field: usize,
    to: &mut [u8],
    target: &mut dyn Target,
) -> Result<(), ExecuteError> {
    let shape = bound.shapes.get(field).map_or(&[] as &[_], Vec::as_slice);
    for held in bound.values.get(field).map_or(&[] as &[_], Vec::as_slice) {
        let found = current.get(held.buffer).zip(bound.buffers.get(held.buffer));
        let Some((memory, buffer)) = found else { continue };
        let window = held.window(shape, buffer);
        if window.is_whole() {
            target.download(*memory, 0, to).map_err(ExecuteError::Target)?;
            continue;
        }
        let mut image = Array::zeros(buffer.element, &[buffer.cells])?;
        target.download(*memory, 0, image.bytes_mut()).map_err(ExecuteError::Target)?;
        let (size, from) = (buffer.element.size(), image.bytes());
        window.for_each_run(|there, here, run, step| {
            copy_cells((to, there, 1), (from, here, step), run, size);
        });
    }
    Ok(())
}
