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

/// The arguments of a call, with a copy of each array whose memory gets another field's result:
/// all are read before any is written.
pub fn before_outputs<'py>(
    values: &Bound<'py, PyDict>,
    out: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let mut given: Vec<_> = values.iter().collect();
    let Some(out) = out else { return Ok(given) };
    // Values that are no arrays are refused later, each with its reason.
    let span = |array: &Bound<'py, PyAny>| {
        let cells = view(array, "out").ok()?.cells;
        Some((cells.place, cells.span()))
    };
    let targets: Vec<_> =
        out.iter().filter_map(|(name, target)| Some((name.to_string(), span(&target)?))).collect();
    let kept = |name: &str, value: Bound<'py, PyAny>| {
        let Some((place, own)) = span(&value) else { return Ok(value) };
        let shares = |(other, (at, span)): &(String, (Place, (u64, u64)))| {
            other != name && *at == place && span.0 < own.1 && own.0 < span.1
        };
        if targets.iter().any(shares) { copy(&value, name) } else { Ok(value) }
    };
    for (name, value) in &mut given {
        let name = name.to_string();
        let Ok(members) = value.cast::<PyDict>() else {
            *value = kept(&name, value.clone())?;
            continue;
        };
        let all = PyDict::new(value.py());
        for (member, value) in members.iter() {
            all.set_item(&member, kept(&format!("{name}.{member}"), value)?)?;
        }
        *value = all.into_any();
    }
    Ok(given)
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
