//! Shapes of fields, and device buffers with their sizes and places in memory.

use super::{BindError, sizes_text};
use crate::array::{Cell, Element, shape_text, with_cell};
use crate::expr::{Expr, Sizes};
use crate::layout::{Placement, Window};
use crate::number::Number;
use crate::plan::{BufferDecl, BufferKind, BufferLayout, FieldDecl, Part, Plan, Start};
use std::ops::Range;

/// Memory of a device: the buffer that it belongs to when a run begins, by place in
/// [`super::Bound::buffers`]. Rotations hand it on to other buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub usize);

/// A device buffer to be allocated.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Its use.
    pub kind: BufferKind,
    /// Type of a cell.
    pub element: Element,
    /// Cells per dimension, slowest first.
    pub shape: Vec<usize>,
    /// The field's cell at which it begins, per dimension.
    pub origin: Vec<usize>,
    /// How its cells lie in memory.
    pub placement: Placement,
    /// Cells of its memory, those between rows or blocks included.
    pub cells: usize,
    /// The field that it starts with, by place in [`Plan::fields`].
    pub input: Option<usize>,
    /// The fields whose numbers its records start with, in order; none for other buffers.
    pub record: Vec<usize>,
    /// The number that it starts with where it starts with no field.
    pub fill: Number,
    /// The variable of the code, in constant memory, that is its memory.
    pub constant: Option<String>,
    /// The device on which it lies.
    pub device: u32,
}

impl Buffer {
    /// Its size in bytes; no overflow, since [`super::bind`] checked it.
    pub fn bytes(&self) -> usize {
        self.cells * self.element.size()
    }

    /// The cells of a field that it can hold, per dimension.
    pub fn all_cells(&self) -> Vec<Range<usize>> {
        self.origin.iter().zip(&self.shape).map(|(from, cells)| *from..from + cells).collect()
    }

    /// Some cells of a field of the given shape in this buffer.
    pub fn window<'a>(&'a self, field: &'a [usize], cells: &'a [Range<usize>]) -> Window<'a> {
        let (buffer, origin, placement) = (&self.shape, &self.origin, &self.placement);
        Window { field, buffer, origin, placement, number: 0, cells }
    }
}

/// Cells of a field's current value that lie in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The buffer, by place in [`Plan::buffers`].
    pub buffer: usize,
    /// The cells per dimension, in the field's numbers.
    pub cells: Vec<Range<usize>>,
    /// Which number of the buffer's records is the field's; 0 where it has none.
    pub number: usize,
}

impl Held {
    /// The cells of a field of the given shape in their buffer.
    pub fn window<'a>(&'a self, field: &'a [usize], buffer: &'a Buffer) -> Window<'a> {
        Window { number: self.number, ..buffer.window(field, &self.cells) }
    }
}

/// The most cells that kernels can index.
fn most_cells(plan: &Plan) -> u128 {
    // The memory of the largest array that any machine can hold bounds 64-bit indices.
    if plan.index_width == 32 { i32::MAX as u128 } else { (isize::MAX as u128) / 64 }
}

/// Cells per dimension of a field.
pub fn shape_of(plan: &Plan, field: &FieldDecl, sizes: &Sizes) -> Result<Vec<usize>, BindError> {
    shape(plan, &field.name, &field.extents, sizes)
}

fn shape(
    plan: &Plan,
    name: &str,
    extents: &[Expr],
    sizes: &Sizes,
) -> Result<Vec<usize>, BindError> {
    let mut shape = Vec::new();
    for (dimension, extent) in extents.iter().enumerate() {
        let value = extent.evaluate(sizes)?;
        shape.push(usize::try_from(value).map_err(|_| BindError::Negative {
            field: name.to_owned(),
            dimension,
            extent: extent.clone(),
            value,
            sizes: sizes_text(sizes),
        })?);
    }
    // An extent of 0 counts as 1, so that no product of some extents overflows anywhere.
    let cells: u128 =
        shape.iter().fold(1u128, |n, &extent| n.saturating_mul(extent.max(1) as u128));
    if cells > most_cells(plan) {
        return Err(too_many(plan, name, cells, &shape));
    }
    Ok(shape)
}

fn too_many(plan: &Plan, name: &str, cells: u128, shape: &[usize]) -> BindError {
    BindError::Index {
        field: name.to_owned(),
        cells: cells.to_string(),
        shape: shape_text(shape),
        width: plan.index_width,
    }
}

/// A buffer with its sizes. Its cells must lie inside the field that it starts with.
pub fn bound(
    plan: &Plan,
    buffer: &BufferDecl,
    shapes: &[Vec<usize>],
    sizes: &Sizes,
) -> Result<Buffer, BindError> {
    let wrong = |message: String| BindError::Buffer { message, sizes: sizes_text(sizes) };
    let shape = shape(plan, &buffer.name, &buffer.extents, sizes)?;
    let mut origin = vec![0; shape.len()];
    for (at, expr) in origin.iter_mut().zip(&buffer.origin) {
        let value = expr.evaluate(sizes)?;
        let place = usize::try_from(value).ok().filter(|place| *place <= isize::MAX as usize);
        *at = place.ok_or_else(|| {
            wrong(format!("buffer `{}` would begin at cell {value} (`{expr}`)", buffer.name))
        })?;
    }
    let width = shape.last().copied().unwrap_or(0);
    let placement = match &buffer.layout {
        BufferLayout::RowMajor => Placement::Rows { pitch: width },
        BufferLayout::Padded { pitch } => {
            let value = pitch.evaluate(sizes)?;
            let pitch = usize::try_from(value).ok().filter(|pitch| *pitch >= width);
            Placement::Rows {
                pitch: pitch.ok_or_else(|| {
                    wrong(format!(
                        "buffer `{}` would have a pitch of {value} cells for rows of {width}",
                        buffer.name
                    ))
                })?,
            }
        }
        BufferLayout::Hybrid { rows } => Placement::Hybrid { rows: *rows as usize },
        BufferLayout::Blocked { block } => {
            Placement::Blocked { block: block.iter().map(|cells| *cells as usize).collect() }
        }
        BufferLayout::Records { numbers, block } => {
            Placement::Records { numbers: *numbers as usize, block: *block as usize }
        }
    };
    let cells = placement.cells(&shape);
    if cells > most_cells(plan) {
        return Err(too_many(plan, &buffer.name, cells, &shape));
    }
    let input = match &buffer.start {
        Start::Input(name) => plan.fields.iter().position(|field| field.name == *name),
        Start::Zeros | Start::Value(_) | Start::Record(_) => None,
    };
    let zero = || with_cell!(buffer.element, T => <T as Cell>::number(T::default()));
    let fill = match &buffer.start {
        Start::Value(value) => value.number(buffer.element).unwrap_or_else(zero),
        _ => zero(),
    };
    let bound = Buffer {
        name: buffer.name.clone(),
        kind: buffer.kind,
        element: buffer.element,
        origin,
        placement,
        cells: usize::try_from(cells).unwrap_or(usize::MAX),
        input,
        record: record(plan, &buffer.start),
        fill,
        constant: buffer.constant.clone(),
        device: buffer.device,
        shape,
    };
    let begins = input.or_else(|| bound.record.first().copied());
    if let Some(field) = begins.and_then(|field| shapes.get(field))
        && bound.all_cells().iter().zip(field).any(|(cells, all)| cells.end > *all)
    {
        return Err(wrong(format!(
            "buffer `{}` would reach beyond the {} cells of its field",
            buffer.name,
            shape_text(field)
        )));
    }
    Ok(bound)
}

/// The fields with whose numbers a buffer of records starts, in order.
fn record(plan: &Plan, start: &Start) -> Vec<usize> {
    let Start::Record(name) = start else { return Vec::new() };
    let fields = plan.fields.iter().enumerate();
    let own = fields.filter(|(_, field)| field.declared_name() == name);
    own.map(|(place, _)| place).collect()
}

/// Where each field's value lies.
pub fn values(
    plan: &Plan,
    shapes: &[Vec<usize>],
    buffers: &[Buffer],
    sizes: &Sizes,
) -> Result<Vec<Vec<Held>>, BindError> {
    let of_field = |(field, shape): (&FieldDecl, &Vec<usize>)| {
        let parts = field.value.iter().map(|part| held(plan, field, part, shape, buffers, sizes));
        parts.collect()
    };
    plan.fields.iter().zip(shapes).map(of_field).collect()
}

/// The cells of a part; they must lie inside the field and the buffer.
fn held(
    plan: &Plan,
    field: &FieldDecl,
    part: &Part,
    shape: &[usize],
    buffers: &[Buffer],
    sizes: &Sizes,
) -> Result<Held, BindError> {
    let wrong = |what: &str| BindError::Buffer {
        message: format!("the part of field `{}` in buffer `{}` {what}", field.name, part.buffer),
        sizes: sizes_text(sizes),
    };
    let place = plan.buffers.iter().position(|buffer| buffer.name == part.buffer);
    let (place, buffer) = place
        .and_then(|place| Some((place, buffers.get(place)?)))
        .ok_or_else(|| wrong("is not there"))?;
    let number = part.number.unwrap_or(0) as usize;
    let all = buffer.all_cells();
    let cells = match &part.cells {
        None => all.clone(),
        Some(bounds) => {
            let mut cells = Vec::new();
            for [first, last] in bounds {
                cells.push((first.evaluate(sizes)?, last.evaluate(sizes)?));
            }
            // Without cells it may lie anywhere.
            if cells.iter().any(|(first, last)| last < first) {
                return Ok(Held { buffer: place, cells: vec![0..0; shape.len()], number });
            }
            let range = |(first, last): (i64, i64)| {
                Some(usize::try_from(first).ok()?..usize::try_from(last).ok()?.checked_add(1)?)
            };
            let cells: Option<Vec<_>> = cells.into_iter().map(range).collect();
            cells.ok_or_else(|| wrong("begins before the field"))?
        }
    };
    let inside = |cells: &[Range<usize>], all: &[Range<usize>]| {
        cells.iter().zip(all).all(|(cells, all)| all.start <= cells.start && cells.end <= all.end)
    };
    let whole: Vec<_> = shape.iter().map(|extent| 0..*extent).collect();
    if !inside(&cells, &all) || !inside(&cells, &whole) {
        return Err(wrong("reaches beyond the buffer or the field"));
    }
    Ok(Held { buffer: place, cells, number })
}
