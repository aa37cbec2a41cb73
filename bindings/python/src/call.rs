//! The arguments of a call: which arrays are which fields, what is copied before a run, and the
//! key by which calls are known to differ in no more than addresses.

use crate::arrays::{Cells, Held, Library, Place, current_stream, handle, view};
use crate::copies::{Targets, check_fill, copy, fill, tell_written};
use crate::errors::argument;
use crate::fields::{Declared, Names, Slot};
use crate::memory;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString};
use std::collections::{BTreeMap, BTreeSet};
use stencil_runtime::bind::Request;
use stencil_runtime::host::{Binding, HostError, Run, field_extents};
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{FieldDecl, Plan, Role};

/// How a call treats the arrays of state fields.
pub struct Manner<'py> {
    /// They are written.
    pub in_place: bool,
    /// Arrays that get the result.
    pub out: Targets<'py>,
}

/// A number of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

/// The preparation of an array of the caller before a run writes it.
enum Prepared<'py> {
    /// It has the cells already.
    Told(Bound<'py, PyAny>),
    /// It gets the cells of another one.
    Filled(Bound<'py, PyAny>, Bound<'py, PyAny>),
}

/// The arguments of a call.
pub struct Arguments<'py> {
    /// The arrays of state fields after the run, by declared field.
    pub outputs: Vec<(String, Bound<'py, PyAny>)>,
    /// Preparations of arrays of the caller before a run writes them.
    prepared: Vec<Prepared<'py>>,
    /// Objects that keep the memory.
    held: Vec<(Role, Held<'py>)>,
    /// The memory of each field of numbers, in the plan's order.
    pub parts: Vec<Option<Cells>>,
    scalars: Vec<(usize, Number)>,
    sizes: Vec<(usize, i64)>,
    steps: Option<i64>,
    first_step: i64,
}

impl<'py> Arguments<'py> {
    /// Reads the arguments by name, and copies state fields where they are not to be written. It
    /// writes no array of the caller; [`Self::prepare`] does.
    ///
    /// # Errors
    /// A name that the program does not have, and a value that does not fit.
    pub fn read(
        names: &Names,
        plan: &Plan,
        values: &Bound<'py, PyDict>,
        (steps, first_step): (Option<i64>, i64),
        manner: &Manner<'py>,
    ) -> PyResult<Self> {
        let py = values.py();
        let mut found = Self {
            outputs: Vec::new(),
            prepared: Vec::new(),
            held: Vec::new(),
            parts: vec![None; plan.fields.len()],
            scalars: Vec::new(),
            sizes: Vec::new(),
            steps,
            first_step,
        };
        for (name, value) in values.iter() {
            let name = name.cast_into::<PyString>()?;
            let name = name.to_str()?;
            match names.slots.get(name) {
                Some(Slot::Field(place)) => {
                    let Some(field) = names.fields.get(*place) else { continue };
                    found.field(py, field, name, &value, manner)?;
                }
                Some(Slot::Part(place, leaf)) => {
                    let Some(field) = names.fields.get(*place) else { continue };
                    found.part(py, (field, *leaf), name, &value, manner)?;
                }
                Some(Slot::Scalar(place)) => found.scalars.push((*place, number(name, &value)?)),
                Some(Slot::Size(place)) => {
                    let size = value.extract().map_err(|_| {
                        argument(py, format!("the size `{name}` is no whole number: {value}"))
                    })?;
                    found.sizes.push((*place, size));
                }
                None => return Err(unknown(py, plan, names, name)),
            }
        }
        found.apart(py)?;
        Ok(found)
    }

    fn field(
        &mut self,
        py: Python<'py>,
        field: &Declared,
        name: &str,
        value: &Bound<'py, PyAny>,
        manner: &Manner<'py>,
    ) -> PyResult<()> {
        check_role(py, field)?;
        if let Ok(members) = value.cast::<PyDict>() {
            let copies = PyDict::new(py);
            let mut seen = BTreeSet::new();
            for (member, value) in members.iter() {
                let path = format!("{name}.{member}");
                let part = field.member(&member.str()?.to_string()).ok_or_else(|| {
                    let known: Vec<_> =
                        field.leaves.iter().map(|leaf| leaf.path.join(".")).collect();
                    let known = known.join(", ");
                    argument(py, format!("field `{name}` has no member `{member}`; it has {known}"))
                })?;
                for leaf in &part.leaves {
                    if !seen.insert(leaf.field) {
                        let text = format!("the cells of `{path}` are given twice");
                        return Err(argument(py, text));
                    }
                }
                self.field(py, &part, &path, &value, manner)?;
                if field.role == Role::State
                    && let Some((_, copy)) = self.outputs.pop()
                {
                    copies.set_item(member, copy)?;
                }
            }
            if field.role == Role::State {
                self.outputs.push((name.to_owned(), copies.into_any()));
            }
            return Ok(());
        }
        let array = self.target(field, name, value, manner)?;
        let held = view(&array, name)?;
        for (place, cells) in field.parts(py, &held.cells)? {
            self.put(place, cells);
        }
        self.held.push((field.role, held));
        Ok(())
    }

    fn part(
        &mut self,
        py: Python<'py>,
        (field, leaf): (&Declared, usize),
        name: &str,
        value: &Bound<'py, PyAny>,
        manner: &Manner<'py>,
    ) -> PyResult<()> {
        check_role(py, field)?;
        let array = self.target(field, name, value, manner)?;
        let held = view(&array, name)?;
        let Some(leaf) = field.leaves.get(leaf) else { return Ok(()) };
        if held.cells.kind != leaf.kind || held.cells.shape.len() != field.rank {
            let (rank, found) = (field.rank, held.cells.kind.text());
            return Err(argument(
                py,
                format!(
                    "field `{name}` is {} in {rank} dimensions, the array is {found} in {}",
                    leaf.kind.text(),
                    held.cells.shape.len()
                ),
            ));
        }
        self.put(leaf.field, held.cells.clone());
        self.held.push((field.role, held));
        Ok(())
    }

    fn put(&mut self, place: usize, cells: Cells) {
        if let Some(part) = self.parts.get_mut(place) {
            *part = Some(cells);
        }
    }

    /// The array that a run uses for an argument; that of a state field becomes an output.
    fn target(
        &mut self,
        field: &Declared,
        name: &str,
        value: &Bound<'py, PyAny>,
        manner: &Manner<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // All arguments are read before any array is written.
        let value = &match manner.out.are_elsewhere(name, value) {
            true => copy(value, name)?,
            false => value.clone(),
        };
        if field.role != Role::State {
            return Ok(value.clone());
        }
        let array = match manner.out.of(name) {
            Some(out) if out.is(value) => {
                self.prepared.push(Prepared::Told(out.clone()));
                out.clone()
            }
            Some(out) => {
                check_fill(out, value)?;
                self.prepared.push(Prepared::Filled(out.clone(), value.clone()));
                out.clone()
            }
            None if manner.in_place => {
                self.prepared.push(Prepared::Told(value.clone()));
                value.clone()
            }
            None => copy(value, name)?,
        };
        self.outputs.push((name.to_owned(), array.clone()));
        Ok(array)
    }

    /// Makes the arrays of the caller ready to be written, for a call that runs.
    ///
    /// # Errors
    /// When an array can't be written.
    pub fn prepare(&self) -> PyResult<()> {
        self.prepared.iter().try_for_each(|one| match one {
            Prepared::Told(array) => tell_written(array),
            Prepared::Filled(out, value) => fill(out, value),
        })
    }

    /// No two arrays of which one is written may share memory.
    fn apart(&self, py: Python<'_>) -> PyResult<()> {
        for (place, (role, one)) in self.held.iter().enumerate() {
            for (other_role, other) in self.held.iter().skip(place + 1) {
                let (a, b) = (&one.cells, &other.cells);
                let written = *role == Role::State || *other_role == Role::State;
                if !written || a.place != b.place || !(a.is_dense() && b.is_dense()) {
                    continue;
                }
                let (one, other) = (a.span(), b.span());
                if one.0 < other.1 && other.0 < one.1 {
                    return Err(argument(
                        py,
                        "two of the arrays share memory, and a run writes one of them; give a copy",
                    ));
                }
            }
        }
        Ok(())
    }

    /// The device of the arrays that lie on one; an error where they lie on several.
    pub fn device(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        let mut found = None;
        for (_, held) in &self.held {
            let Place::Cuda(device) = held.cells.place else { continue };
            if found.is_some_and(|found| found != device) {
                return Err(argument(py, "the arrays lie on several devices; move them to one"));
            }
            found = Some(device);
        }
        Ok(found)
    }

    /// The stream of the arrays on a device, and whether the libraries order later work behind it.
    pub fn stream(
        &self,
        py: Python<'_>,
        device: i32,
        given: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(usize, bool)> {
        let on_device = self.held.iter().map(|(_, held)| &held.cells);
        let mut on_device = on_device.filter(|cells| cells.place != Place::Host);
        let ordered = on_device.clone().all(|cells| {
            cells.library != Library::Other || (cells.stream.is_some() && given.is_some())
        });
        if let Some(given) = given {
            return Ok((handle(given)?, ordered));
        }
        let own = on_device.clone().find(|cells| cells.library != Library::Other);
        if let Some(own) = own
            && let Some(stream) = current_stream(py, own.library, device)?
        {
            return Ok((stream, ordered));
        }
        Ok((on_device.find_map(|cells| cells.stream).unwrap_or(0), ordered))
    }

    /// Whether all arrays lie on a device, row-major without padding.
    pub fn dense_on_device(&self) -> bool {
        let mut parts = self.parts.iter().flatten();
        parts.all(|cells| cells.place != Place::Host && cells.is_dense())
    }

    /// Tells calls apart that differ in more than addresses.
    pub fn key(&self, place: (u64, u64)) -> Vec<u64> {
        let mut key = Vec::with_capacity(48);
        let (steps, first_step) = (self.steps.unwrap_or(0), self.first_step);
        key.extend([place.0, place.1, u64::from(self.steps.is_some())]);
        key.extend([steps, first_step].map(i64::cast_unsigned));
        for part in &self.parts {
            key.push(u64::from(part.is_some()));
            let Some(cells) = part else { continue };
            key.push(u64::from(cells.place == Place::Host));
            key.extend(cells.shape.iter().map(|extent| *extent as u64));
        }
        key.push(self.scalars.len() as u64);
        for (place, number) in &self.scalars {
            let (tag, bits) = match number {
                Number::Integer(number) => (1, number.cast_unsigned()),
                Number::Float(number) => (2, number.to_bits().into()),
            };
            key.extend([*place as u64, tag, bits as u64, (bits >> 64) as u64]);
        }
        for (place, size) in &self.sizes {
            key.extend([*place as u64, size.cast_unsigned()]);
        }
        key
    }

    /// The request of the call, with the shapes of its arrays.
    pub fn request(&self, plan: &Plan) -> Request {
        let shapes = plan.fields.iter().zip(&self.parts);
        let shapes = shapes.filter_map(|(field, part)| Some((field, part.as_ref()?)));
        let sizes = self.sizes.iter();
        let scalars = self.scalars.iter().filter_map(|(place, number)| {
            let numeral = match number {
                Number::Integer(number) => number.to_string().parse().ok()?,
                Number::Float(number) => Numeral::from(*number),
            };
            Some((plan.scalars.get(*place)?.name.clone(), numeral))
        });
        Request {
            sizes: sizes
                .filter_map(|(place, size)| Some((plan.params.get(*place)?.clone(), *size)))
                .collect(),
            steps: self.steps,
            first_step: self.first_step,
            scalars: scalars.collect(),
            shapes: shapes
                .map(|(field, part)| {
                    (field.name.clone(), field_extents(part.shape.clone(), field.extents.len()))
                })
                .collect(),
            choices: BTreeMap::new(),
        }
    }
}

/// The memory of a call's fields.
pub struct Fields<'a> {
    /// The plan of the version that runs.
    pub plan: &'a Plan,
    /// The memory of each field of the declared plan.
    pub parts: &'a [Option<Cells>],
    /// The place of each field of the version's plan in the declared one.
    pub order: &'a [usize],
}

impl Fields<'_> {
    /// Fields that have memory, in the order of the version's plan.
    pub fn cells(&self) -> impl Iterator<Item = (&FieldDecl, &Cells)> {
        let fields = self.plan.fields.iter().zip(self.order);
        fields.filter_map(|(field, place)| Some((field, self.parts.get(*place)?.as_ref()?)))
    }

    /// The run, in a stream of a device.
    ///
    /// # Errors
    /// When an array can't be the memory of its field.
    pub fn run(
        &self,
        request: &Request,
        (device, stream): (i32, Option<usize>),
    ) -> Result<Run, HostError> {
        let mut run = Run { request: request.clone(), device, ..Run::default() };
        run.stream = stream.map(memory::stream);
        run.request.shapes.clear();
        run.request.sizes.retain(|name, _| self.plan.params.contains(name));
        for (field, cells) in self.cells() {
            let shape: Vec<i64> = cells.shape.iter().map(|extent| *extent as i64).collect();
            let given = memory::given(cells);
            let binding = Binding::new(self.plan, &field.name, field.element, &shape, given)?;
            run.fields.insert(field.name.clone(), binding);
        }
        Ok(run)
    }
}

fn check_role(py: Python<'_>, field: &Declared) -> PyResult<()> {
    match field.role {
        Role::State | Role::Const => Ok(()),
        Role::Temp => {
            Err(argument(py, format!("`{}` is a temp field, which takes no array", field.name)))
        }
        Role::Reduction => Err(argument(py, format!("`{}` is a result, not an input", field.name))),
    }
}

fn unknown(py: Python<'_>, plan: &Plan, names: &Names, name: &str) -> PyErr {
    let fields = names.fields.iter().filter(|field| field.role.is_input());
    let fields = fields.map(|field| field.name.as_str());
    let scalars = plan.scalars.iter().map(|scalar| scalar.name.as_str());
    let known: Vec<_> =
        fields.chain(scalars).chain(plan.params.iter().map(String::as_str)).collect();
    let text = format!("{} has no `{name}`; it has {}", plan.program, known.join(", "));
    argument(py, text)
}

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Number> {
    let py = value.py();
    if value.is_instance_of::<PyInt>() {
        return value.extract().map(Number::Integer);
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(Number::Float(float.value()));
    }
    // Integers of NumPy and PyTorch become those of Python: a float does not have all their bits.
    if let Ok(integer) = value.call_method0(intern!(py, "__index__")) {
        return number(name, &integer);
    }
    // An array of one element, as NumPy's and PyTorch's are.
    match value.call_method0(intern!(py, "item")) {
        Ok(one) if !one.hasattr(intern!(py, "item"))? => number(name, &one),
        _ => value
            .extract()
            .map(Number::Float)
            .map_err(|_| argument(py, format!("the scalar `{name}` is no number: {value}"))),
    }
}
