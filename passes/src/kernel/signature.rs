//! The signature of a lowered kernel: its arguments in a fixed order, and their values in its body.

use super::field_buffers::whole_grid;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, Module, Type};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{self, Argument, Program};
use stencil_dialects::tiled::{self, Binding, Kernel, TileOp};

/// The arguments of a kernel.
pub struct Signature<'c> {
    /// What each argument is bound to: buffers to read, buffers to write, sizes, scalars, the step,
    /// and the first tile row.
    pub bindings: Vec<Binding<'c>>,
    /// Their types.
    pub types: Vec<Type<'c>>,
    /// Their attributes, a dictionary each.
    pub attributes: Vec<Attribute<'c>>,
}

/// The values of a kernel's arguments.
pub struct Arguments<'c> {
    /// The current buffer of each field that is read, shaped like its grid.
    pub sources: BTreeMap<&'c str, Val<'c>>,
    /// The next buffer of each field that is written.
    pub targets: BTreeMap<&'c str, Val<'c>>,
    /// Run-time sizes, as `index`.
    pub params: Vec<Val<'c>>,
    /// Run-time scalars.
    pub scalars: BTreeMap<&'c str, Val<'c>>,
    /// The number of the launch's first step.
    pub step: Val<'c>,
    /// The launch's first tile row, where launches may be cut.
    pub row: Option<Val<'c>>,
    /// The flags of the kernel, where blocks wait for each other.
    pub flags: Option<Val<'c>>,
    /// What they stand at.
    pub epoch: Option<Val<'c>>,
    /// The number of the launch, where there are several in place of one.
    pub turn: Option<Val<'c>>,
    /// The results of the blocks of a reduction.
    pub partials: BTreeMap<&'c str, Val<'c>>,
    /// The buffers of arrays of structs.
    pub records: BTreeMap<&'c str, Val<'c>>,
}

impl<'c> Signature<'c> {
    /// The signature of a tile kernel, with `more` arguments behind the usual ones. `in_place`
    /// updates fields where they lie.
    pub fn of(
        builder: &Builder<'c>,
        module: &Module<'c>,
        program: &Program<'c>,
        kernel: &Kernel<'c>,
        in_place: bool,
        more: &[Binding<'c>],
    ) -> Result<Self, Error> {
        let mut bindings = bindings(module, program, kernel, in_place)?;
        bindings.extend_from_slice(more);
        Self::of_bindings(builder, program, bindings)
    }

    /// The signature of a kernel whose arguments are bound so; one of them is the step.
    pub fn of_bindings(
        builder: &Builder<'c>,
        program: &Program<'c>,
        bindings: Vec<Binding<'c>>,
    ) -> Result<Self, Error> {
        let context = builder.context;
        let (mut types, mut attributes) = (Vec::new(), Vec::new());
        for binding in &bindings {
            let mut named = tiled::binding_attributes(builder, binding);
            types.push(match binding {
                Binding::Read(name)
                | Binding::Write(name)
                | Binding::ReadWrite(name)
                | Binding::Partials(name)
                | Binding::Unless(name) => {
                    // Another kernel may store to a condition meanwhile.
                    if !matches!(binding, Binding::Unless(_)) {
                        named.push(("llvm.noalias", Attribute::unit(context)));
                    }
                    if matches!(binding, Binding::Read(_)) {
                        named.push(("llvm.readonly", Attribute::unit(context)));
                    }
                    MemRefType::new(program.buffer_element(name)?, &[], None, None).into()
                }
                Binding::Param(_) | Binding::Row | Binding::FirstBlock | Binding::Turn => {
                    builder.index_type()
                }
                Binding::Epoch => builder.integer_type(32),
                Binding::Flags => {
                    named.push(("llvm.noalias", Attribute::unit(context)));
                    MemRefType::new(builder.integer_type(32), &[], None, None).into()
                }
                Binding::Scalar(name) => scalar_type(program, name)?,
                Binding::Step => builder.integer_type(64),
            });
            attributes.push(attribute::dictionary(context, &named));
        }
        Ok(Self { bindings, types, attributes })
    }

    /// The arguments' values in the kernel's body; views of buffers are built there.
    pub fn arguments(
        &self,
        builder: &Builder<'c>,
        program: &Program<'c>,
        values: &[Val<'c>],
    ) -> Result<Arguments<'c>, Error> {
        let bound = || self.bindings.iter().zip(values);
        let params: Vec<_> = bound()
            .filter(|(binding, _)| matches!(binding, Binding::Param(_)))
            .map(|(_, value)| *value)
            .collect();
        let (mut sources, mut targets) = (BTreeMap::new(), BTreeMap::new());
        let (mut scalars, mut step, mut row) = (BTreeMap::new(), None, None);
        let (mut flags, mut epoch, mut turn) = (None, None, None);
        let (mut partials, mut records) = (BTreeMap::new(), BTreeMap::new());
        for (binding, value) in bound() {
            let whole = |name: &str| whole_grid(builder, program, name, *value, &params);
            match binding {
                Binding::Read(name) | Binding::Write(name) | Binding::ReadWrite(name)
                    if program.record(name).is_some() =>
                {
                    records.insert(*name, *value);
                }
                Binding::Read(name) => drop(sources.insert(*name, whole(name)?)),
                Binding::Write(name) => drop(targets.insert(*name, whole(name)?)),
                Binding::ReadWrite(name) => {
                    let buffer = whole(name)?;
                    sources.insert(*name, buffer);
                    targets.insert(*name, buffer);
                }
                Binding::Param(_) | Binding::FirstBlock | Binding::Unless(_) => {}
                Binding::Epoch => epoch = Some(*value),
                Binding::Flags => flags = Some(*value),
                Binding::Turn => turn = Some(*value),
                Binding::Partials(name) => drop(partials.insert(*name, *value)),
                Binding::Scalar(name) => drop(scalars.insert(*name, *value)),
                Binding::Step => step = Some(*value),
                Binding::Row => row = Some(*value),
            }
        }
        let step = step.ok_or_else(|| Error::internal("a kernel without a step argument"))?;
        Ok(Arguments {
            sources,
            targets,
            params,
            scalars,
            step,
            row,
            flags,
            epoch,
            turn,
            partials,
            records,
        })
    }
}

fn scalar_type<'c>(program: &Program<'c>, name: &str) -> Result<Type<'c>, Error> {
    let scalar = program.scalars.iter().find(|scalar| scalar.name == name);
    scalar.map(|scalar| scalar.element).ok_or_else(|| Error::internal(format!("no scalar @{name}")))
}

/// The fields that a point function reads, at offsets or at computed places.
pub fn read_by<'c>(program: &Program<'c>, function: &str) -> Result<BTreeSet<&'c str>, Error> {
    let gathers = program.gathered(function)?;
    let function = program.function(function)?;
    let offsets = stencil::arguments(function)?.into_iter().filter_map(|argument| match argument {
        Argument::Read { field, .. } => Some(field),
        _ => None,
    });
    Ok(gathers.into_iter().chain(offsets).collect())
}

/// Arguments in a fixed order: buffers to read, buffers to write, sizes, scalars, step.
fn bindings<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    in_place: bool,
) -> Result<Vec<Binding<'c>>, Error> {
    let mut read = BTreeSet::new();
    for op in &kernel.body {
        match op {
            TileOp::Load { field, .. } => drop(read.insert(*field)),
            TileOp::Apply(apply) => {
                for piece in &apply.pieces {
                    let function = stencil::function(module, piece.function)?;
                    read.extend(program.gathered_in(function)?);
                }
            }
            TileOp::Store { .. } => {}
        }
    }
    let loaded = |name: &str| read.contains(name);
    let stored = |name: &str| {
        let is = |op: &TileOp| matches!(op, TileOp::Store { field, .. } if *field == name);
        kernel.body.iter().any(is)
    };
    let names = || program.fields.iter().map(|field| field.name);
    let mut all = Vec::new();
    for name in names().filter(|name| loaded(name)) {
        // Sweeps in flight exchange the buffers.
        all.push(if (in_place || kernel.wave.sweeps.is_some()) && stored(name) {
            Binding::ReadWrite(name)
        } else {
            Binding::Read(name)
        });
    }
    let rotations = tiled::rotations(kernel.op)?;
    let handed_on = |name: &str| rotations.iter().any(|list| list.last() == Some(&name));
    // A field that no block loads is updated in place, unless its buffer is handed on.
    for name in names().filter(|name| stored(name) && !(in_place && loaded(name))) {
        let writes = loaded(name) || handed_on(name);
        all.push(if writes { Binding::Write(name) } else { Binding::ReadWrite(name) });
    }
    all.extend(kernel.rows.fields().map(Binding::ReadWrite));
    all.extend(program.params.iter().map(|name| Binding::Param(name)));
    all.extend(program.scalars.iter().map(|scalar| Binding::Scalar(scalar.name)));
    all.push(Binding::Step);
    Ok(all)
}
