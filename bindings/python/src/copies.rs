//! Copies of arrays before a run, and what PyTorch is told of arrays that the run writes.

use crate::arrays::{Library, Place, library, view};
use crate::errors::argument;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A copy that lies row-major without padding.
pub fn copy<'py>(array: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    match library(array)? {
        Library::Torch => {
            let dense = array.call_method0(intern!(py, "is_contiguous"))?.is_truthy()?;
            let how = if dense { intern!(py, "clone") } else { intern!(py, "contiguous") };
            array.call_method0(how)
        }
        Library::Numpy | Library::Cupy => array.call_method0(intern!(py, "copy")),
        Library::Other => match array.getattr_opt(intern!(py, "copy"))? {
            Some(copy) => copy.call0(),
            None => Err(argument(
                py,
                format!(
                    "`{name}` can't be copied; copy it before the call, or give in_place=True to \
                     have it written"
                ),
            )),
        },
    }
}

/// Arrays that get the result, each with the name of its field or member.
pub struct Targets<'py> {
    arrays: Vec<(String, Bound<'py, PyAny>)>,
    /// Their memory, in the same order.
    memory: Vec<Option<Memory>>,
}

/// Where an array lies: its place, and its first byte and the one behind its last.
type Memory = (Place, (u64, u64));

/// The memory of an array; none of what is no array, which is refused later with its reason.
fn memory(array: &Bound<'_, PyAny>) -> Option<Memory> {
    let cells = view(array, "out").ok()?.cells;
    Some((cells.place, cells.span()))
}

impl<'py> Targets<'py> {
    /// Those of a dict of arrays.
    pub fn new(out: Option<&Bound<'py, PyDict>>) -> Self {
        let arrays = out.into_iter().flatten().map(|(name, array)| (name.to_string(), array));
        let arrays: Vec<_> = arrays.collect();
        let memory = arrays.iter().map(|(_, array)| memory(array)).collect();
        Self { arrays, memory }
    }

    /// The array of a field or member.
    pub fn of(&self, name: &str) -> Option<&Bound<'py, PyAny>> {
        self.arrays.iter().find(|(own, _)| own == name).map(|(_, array)| array)
    }

    /// Whether an argument shares memory with the array of another field or member.
    pub fn are_elsewhere(&self, name: &str, value: &Bound<'_, PyAny>) -> bool {
        if self.arrays.is_empty() {
            return false;
        }
        let Some((place, own)) = memory(value) else { return false };
        self.arrays.iter().zip(&self.memory).any(|((other, _), memory)| {
            let shares = |(at, span): &Memory| *at == place && span.0 < own.1 && own.0 < span.1;
            other != name && memory.as_ref().is_some_and(shares)
        })
    }
}

/// Tells PyTorch that an array will be written, so that it refuses gradients that need the cells
/// from before.
pub fn tell_written(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    if library(array)? == Library::Torch {
        let graph = py.import(intern!(py, "torch.autograd.graph"))?;
        // Versions before 2.1 have no such function.
        if let Some(tell) = graph.getattr_opt(intern!(py, "increment_version"))? {
            tell.call1((array,))?;
        }
    }
    Ok(())
}

/// Checks that an array's cells can be copied to another.
pub fn check_fill(out: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = out.py();
    let shapes = [out, value].map(|array| array.getattr(intern!(py, "shape")));
    let [out_shape, shape] = shapes;
    if !out_shape?.eq(shape?)? {
        return Err(argument(py, "an array of `out` has another shape than that of its field"));
    }
    Ok(())
}

/// Copies an array's cells to another.
pub fn fill(out: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = out.py();
    match library(out)? {
        Library::Torch => out.call_method1(intern!(py, "copy_"), (value,)).map(drop),
        _ => out.set_item(py.Ellipsis(), value),
    }
}
