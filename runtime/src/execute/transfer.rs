//! Data between the host and the buffers of a target: inputs, outputs and values in between.

use super::{ExecuteError, Inputs, Target};
use crate::array::{Array, Element};
use crate::bind::{Bound, Buffer, BufferId};
use crate::plan::{Plan, Role};
use std::collections::BTreeMap;

/// Fills all buffers as the plan says: with the input of a field or with a number.
///
/// # Errors
/// When the target fails or there is too little memory.
pub fn upload(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    target: &mut dyn Target,
) -> Result<(), ExecuteError> {
    let named = |field: usize| inputs.get(&plan.fields.get(field)?.name);
    for (place, buffer) in bound.buffers.iter().enumerate() {
        // A reduction starts with a number, or where another run ended.
        let value = || value_of(plan, bound, place);
        let field = buffer.input.or_else(value);
        let input = field.and_then(|field| Some((field, named(field)?)));
        // A copy within the device is faster than another one from the host.
        let before = bound.buffers.iter().take(place);
        let alike = |one: &Buffer| Buffer { name: buffer.name.clone(), ..one.clone() } == *buffer;
        if let (Some(_), Some(same)) = (input, before.clone().position(alike)) {
            target.copy(BufferId(same), BufferId(place)).map_err(ExecuteError::Target)?;
            continue;
        }
        let Some((field, array)) = input else {
            let cells = Array::filled(buffer.fill, &[buffer.cells])?;
            target.upload(BufferId(place), cells.bytes()).map_err(ExecuteError::Target)?;
            continue;
        };
        let shape = bound.shapes.get(field).map_or(&[] as &[usize], Vec::as_slice);
        let cells = buffer.all_cells();
        let window = buffer.window(shape, &cells);
        if window.is_whole() {
            target.upload(BufferId(place), array.bytes()).map_err(ExecuteError::Target)?;
            continue;
        }
        let mut image = Array::zeros(buffer.element, &[buffer.cells])?;
        let (size, from, to) = (buffer.element.size(), array.bytes(), image.bytes_mut());
        window.for_each_run(|there, here, run| {
            copy_cells(to, here, from, there, run, size);
        });
        target.upload(BufferId(place), image.bytes()).map_err(ExecuteError::Target)?;
    }
    Ok(())
}

/// The reduction whose value lies in a buffer.
fn value_of(plan: &Plan, bound: &Bound, buffer: usize) -> Option<usize> {
    let mut fields = plan.fields.iter().zip(&bound.values);
    fields.position(|(field, parts)| {
        field.role == Role::Reduction && parts.iter().any(|held| held.buffer == buffer)
    })
}

fn copy_cells(to: &mut [u8], at: usize, from: &[u8], place: usize, cells: usize, size: usize) {
    let range = |first: usize| first * size..(first + cells) * size;
    if let (Some(to), Some(from)) = (to.get_mut(range(at)), from.get(range(place))) {
        to.copy_from_slice(from);
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
    let parts = bound.values.get(field).map_or(&[] as &[_], Vec::as_slice);
    let buffers = parts.iter().filter_map(|held| {
        let memory = *current.get(held.buffer)?;
        Some((bound.buffers.get(held.buffer)?, memory, held.cells.as_slice()))
    });
    let buffers: Vec<_> = buffers.collect();
    if let [(buffer, memory, cells)] = buffers.as_slice()
        && buffer.window(shape, cells).is_whole()
    {
        let mut array = Array::zeros(declared.element, shape)?;
        target.download(*memory, array.bytes_mut()).map_err(ExecuteError::Target)?;
        return Ok(array);
    }
    let mut array = match inputs.get(&declared.name) {
        Some(input) => input.copy()?,
        None => Array::zeros(declared.element, shape)?,
    };
    for (buffer, memory, cells) in buffers {
        let mut image = Array::zeros(buffer.element, &[buffer.cells])?;
        target.download(memory, image.bytes_mut()).map_err(ExecuteError::Target)?;
        let (size, from, to) = (buffer.element.size(), image.bytes(), array.bytes_mut());
        buffer.window(shape, cells).for_each_run(|here, there, run| {
            copy_cells(to, here, from, there, run, size);
        });
    }
    Ok(array)
}
