//! The declared names of a program, and the parts of arrays that are its fields of numbers.

use crate::arrays::Cells;
use crate::errors::argument;
use crate::kinds::{Kind, layout_text};
use pyo3::prelude::*;
use std::collections::HashMap;
use stencil_runtime::cell::Layout;
use stencil_runtime::plan::{BufferLayout, Plan, Role, Start};
use stencil_runtime::record::records;

/// What a name of a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A declared field, by its place.
    Field(usize),
    /// A field of numbers that is a part of a declared one, by both places.
    Part(usize, usize),
    /// A scalar.
    Scalar(usize),
    /// A run-time size.
    Size(usize),
}

/// A declared field.
pub struct Declared {
    pub name: String,
    pub role: Role,
    pub layout: Layout,
    /// The dimensions of its grid.
    pub rank: usize,
    /// Cells of a block, where the program has the field as an array of blocks; 1 elsewhere.
    pub block: usize,
    pub leaves: Vec<Leaf>,
}

/// A field of numbers.
pub struct Leaf {
    /// Its place in the plan.
    pub field: usize,
    /// The members and lanes that lead to it.
    pub path: Vec<String>,
    /// The type of a cell.
    pub kind: Kind,
}

/// All names of a program.
pub struct Names {
    pub slots: HashMap<String, Slot>,
    pub fields: Vec<Declared>,
}

impl Names {
    /// The names that a plan declares.
    pub fn of(plan: &Plan) -> Self {
        let mut slots = HashMap::new();
        let sizes = plan.params.iter().enumerate();
        slots.extend(sizes.map(|(place, name)| (name.clone(), Slot::Size(place))));
        let scalars = plan.scalars.iter().enumerate();
        slots.extend(scalars.map(|(place, scalar)| (scalar.name.clone(), Slot::Scalar(place))));
        let mut fields = Vec::new();
        for record in records(&plan.fields) {
            let Some((_, first)) = record.leaves.first() else { continue };
            let place = fields.len();
            let mut leaves = Vec::new();
            for (number, (field, declared)) in record.leaves.iter().enumerate() {
                let path = declared.name.get(record.name.len()..).unwrap_or_default();
                let path = path.split('.').filter(|part| !part.is_empty());
                let kind = match declared.boolean {
                    true => Kind::Bool,
                    false => Kind::Number(declared.element),
                };
                leaves.push(Leaf { field: *field, path: path.map(str::to_owned).collect(), kind });
                slots.insert(declared.name.clone(), Slot::Part(place, number));
            }
            slots.insert(record.name.to_owned(), Slot::Field(place));
            fields.push(Declared {
                name: record.name.to_owned(),
                role: first.role,
                layout: record.layout.clone(),
                rank: first.extents.len(),
                block: block_of(plan, record.name),
                leaves,
            });
        }
        Self { slots, fields }
    }
}

impl Names {
    /// Fields whose cells have several numbers of one type are arrays of blocks of `cells` cells,
    /// which the declarations alone do not say.
    pub fn store_in_blocks(&mut self, cells: i64) {
        for field in &mut self.fields {
            let mut kinds = field.leaves.iter().map(|leaf| &leaf.kind);
            let first = kinds.next();
            let alike = first.is_some_and(|first| kinds.all(|kind| kind == first));
            if field.leaves.len() > 1 && alike {
                field.block = cells as usize;
            }
        }
    }
}

/// Cells of a block of a declared field in a plan.
fn block_of(plan: &Plan, name: &str) -> usize {
    let is_own = |start: &Start| matches!(start, Start::Record(field) if field == name);
    let found = plan.buffers.iter().find(|buffer| is_own(&buffer.start));
    match found.map(|buffer| &buffer.layout) {
        Some(BufferLayout::Records { block, .. }) => *block as usize,
        _ => 1,
    }
}

impl Declared {
    /// A member or a lane as a field: `v` or `v.0`.
    pub fn member(&self, path: &str) -> Option<Self> {
        let mut layout = &self.layout;
        for name in path.split('.') {
            layout = match layout {
                Layout::Struct(members) => &members.iter().find(|(one, _)| one == name)?.1,
                Layout::Vec(length, of) => {
                    name.parse::<usize>().ok().filter(|lane| lane < length).map(|_| of.as_ref())?
                }
                Layout::Number(_) | Layout::Bool => return None,
            };
        }
        let depth = path.split('.').count();
        let own = |leaf: &&Leaf| leaf.path.get(..depth).is_some_and(|own| own.join(".") == path);
        let leaves = self.leaves.iter().filter(own).map(|leaf| Leaf {
            field: leaf.field,
            path: leaf.path.iter().skip(depth).cloned().collect(),
            kind: leaf.kind.clone(),
        });
        let leaves: Vec<_> = leaves.collect();
        // A lane has one name: `0`, not `00`.
        if leaves.is_empty() {
            return None;
        }
        Some(Self {
            name: format!("{}.{path}", self.name),
            role: self.role,
            layout: layout.clone(),
            rank: self.rank,
            block: 1,
            leaves,
        })
    }

    /// The parts of an array that are the field's numbers.
    ///
    /// # Errors
    /// When the array has another type or number of dimensions.
    pub fn parts(&self, py: Python<'_>, cells: &Cells) -> PyResult<Vec<(usize, Cells)>> {
        if let Some(parts) = self.in_blocks(cells) {
            return Ok(parts);
        }
        let (lanes, inner) = self.layout.lanes();
        let numbers = matches!(cells.kind, Kind::Number(_) | Kind::Bool);
        let in_dimensions = numbers || inner.complex().is_some();
        let lanes_of = if in_dimensions { lanes.as_slice() } else { &[] };
        let fits = cells.shape.get(self.rank..) == Some(lanes_of);
        let mut parts = Vec::new();
        for leaf in &self.leaves {
            let part = leaf.of(cells, self.rank).filter(|_| fits);
            parts.push((leaf.field, part.ok_or_else(|| self.unfit(py, cells))?));
        }
        Ok(parts)
    }

    /// The parts of an array of blocks. Its last three dimensions are the blocks of the field's
    /// last dimension, the numbers of a cell, and the cells of a block.
    fn in_blocks(&self, cells: &Cells) -> Option<Vec<(usize, Cells)>> {
        if self.block == 1 || cells.shape.len() != self.rank + 2 {
            return None;
        }
        let part = |(number, leaf): (usize, &Leaf)| {
            let part = cells.clone().at(self.rank, number);
            (part.kind == leaf.kind).then_some((leaf.field, part))
        };
        let fits = cells.shape.get(self.rank..) == Some(&[self.leaves.len(), self.block][..]);
        fits.then(|| self.leaves.iter().enumerate().map(part).collect())?
    }

    fn unfit(&self, py: Python<'_>, cells: &Cells) -> PyErr {
        let Self { name, rank, .. } = self;
        let (wanted, found) = (layout_text(&self.layout), cells.kind.text());
        let dimensions = |count: usize| match count {
            1 => "1 dimension".to_owned(),
            count => format!("{count} dimensions"),
        };
        let lanes = self.layout.lanes().0;
        let shape = match cells.shape.len() == rank + lanes.len() && !lanes.is_empty() {
            true => format!(", of the shape {:?}", cells.shape),
            false => String::new(),
        };
        argument(
            py,
            format!(
                "field `{name}` is {wanted} in {}, the array is {found} in {}{shape}",
                dimensions(*rank),
                dimensions(cells.shape.len())
            ),
        )
    }
}

impl Leaf {
    /// The part of an array whose grid has `rank` dimensions; none where it has no such part.
    pub fn of(&self, cells: &Cells, rank: usize) -> Option<Cells> {
        let mut part = cells.clone();
        for name in &self.path {
            let number = || name.parse::<usize>().ok();
            let (offset, kind) = match &part.kind {
                Kind::Struct(_, members) => {
                    let (_, offset, kind) = members.iter().find(|(member, ..)| member == name)?;
                    (*offset as u64, kind.clone())
                }
                Kind::Complex(element) if part.shape.len() == rank => {
                    let place = match name.as_str() {
                        "re" | "0" => 0,
                        "im" | "1" => element.size() as u64,
                        _ => return None,
                    };
                    (place, Kind::Number(*element))
                }
                Kind::Lanes(shape, inner) => {
                    let (first, rest) = shape.split_first()?;
                    let lane = number().filter(|lane| lane < first)?;
                    let inner = match rest {
                        [] => inner.as_ref().clone(),
                        rest => Kind::Lanes(rest.to_vec(), inner.clone()),
                    };
                    ((lane * inner.size()) as u64, inner)
                }
                Kind::Number(_) | Kind::Bool | Kind::Complex(_) => {
                    let extent = part.shape.get(rank)?;
                    let lane = number().filter(|lane| lane < extent)?;
                    part = part.at(rank, lane);
                    (0, part.kind.clone())
                }
                Kind::Other(..) => return None,
            };
            part.address = part.address.wrapping_add(offset);
            part.kind = kind;
        }
        (part.kind == self.kind && part.shape.len() == rank).then_some(part)
    }
}
