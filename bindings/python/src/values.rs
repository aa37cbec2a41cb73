//! Values that a run gives beside arrays: reductions, as numbers of Python; and pictures.

use crate::errors::argument;
use crate::fields::Names;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyTuple};
use std::collections::BTreeMap;
use stencil_runtime::array::{Array, Element};
use stencil_runtime::cell::Layout;
use stencil_runtime::number::Number;
use stencil_runtime::plan::{Plan, Role};
use stencilc::picture::{Colors, Frame, write_png};

/// Adds the values of reductions to the outputs of a run.
pub fn reductions(
    outputs: &Bound<'_, PyDict>,
    names: &Names,
    plan: &Plan,
    values: &BTreeMap<String, Array>,
) -> PyResult<()> {
    let py = outputs.py();
    for field in names.fields.iter().filter(|field| field.role == Role::Reduction) {
        let leaves = plan.fields.iter().filter(|leaf| leaf.declared_name() == field.name);
        let numbers: Option<Vec<Number>> =
            leaves.map(|leaf| values.get(&leaf.name)?.number(0)).collect();
        let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else { continue };
        let value = value(py, &field.layout, &mut numbers.into_iter())?;
        outputs.set_item(&field.name, value)?;
    }
    Ok(())
}

/// A value of a type, from its numbers in order.
fn value<'py>(
    py: Python<'py>,
    layout: &Layout,
    numbers: &mut dyn Iterator<Item = Number>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut next = || numbers.next().ok_or_else(|| argument(py, "a result has too few numbers"));
    if layout.complex().is_some() {
        let (re, im) = (next()?.as_f64(), next()?.as_f64());
        return Ok(PyComplex::from_doubles(py, re, im).into_any());
    }
    Ok(match layout {
        Layout::Bool => {
            let truth = next()?.as_f64() != 0.0;
            PyBool::new(py, truth).to_owned().into_any()
        }
        Layout::Number(_) => match next()? {
            Number::I64(whole) => whole.into_pyobject(py)?.into_any(),
            Number::U64(whole) => whole.into_pyobject(py)?.into_any(),
            number if is_float(number.element()) => number.as_f64().into_pyobject(py)?.into_any(),
            number => (number.as_f64() as i64).into_pyobject(py)?.into_any(),
        },
        Layout::Vec(length, of) => {
            let lanes: PyResult<Vec<_>> = (0..*length).map(|_| value(py, of, numbers)).collect();
            PyTuple::new(py, lanes?)?.into_any()
        }
        Layout::Struct(members) => {
            let found = PyDict::new(py);
            for (name, of) in members {
                found.set_item(name, value(py, of, numbers)?)?;
            }
            found.into_any()
        }
    })
}

fn is_float(element: Element) -> bool {
    matches!(element, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
}

/// A picture of rows of float32 cells, as the bytes of a PNG file.
#[pyfunction]
pub fn png<'py>(
    py: Python<'py>,
    shape: (usize, usize),
    cells: &[u8],
    colors: &str,
    range: Option<(f64, f64)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let colors = Colors::named(colors).map_err(|text| argument(py, text))?;
    let (height, width) = shape;
    let (cells, rest) = cells.as_chunks::<4>();
    let values = cells.iter().map(|cell| f64::from(f32::from_ne_bytes(*cell))).collect();
    let frame = Frame::new(height, width, values).filter(|_| rest.is_empty());
    let frame = frame.ok_or_else(|| argument(py, "the picture has other cells than its shape"))?;
    let mut bytes = Vec::new();
    let written = py.detach(|| write_png(&mut bytes, &frame, colors, range));
    written.map_err(|error| argument(py, error.to_string()))?;
    Ok(PyBytes::new(py, &bytes))
}
