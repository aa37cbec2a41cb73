//! How lowered kernels use the numbers of an array of structs.

use melior::ir::operation::OperationLike;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Program, Record};
use stencil_dialects::tiled::{self, Binding, Launch};

/// The numbers of a record that a kernel has buffers of, by their places in a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordUse {
    /// Read from the current buffer.
    pub read: BTreeSet<usize>,
    /// Written to the other buffer.
    pub written: BTreeSet<usize>,
    /// Updated in place.
    pub updated: BTreeSet<usize>,
}

impl RecordUse {
    /// Whether the kernel has no buffer of the record's numbers.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The arguments of a kernel that has the record in place of its numbers; the reason where
    /// there can be none.
    pub fn bindings<'c>(&self, record: &Record<'c, '_>) -> Result<Vec<Binding<'c>>, String> {
        let name = record.name;
        if self.written.is_empty() {
            let updated = !self.updated.is_empty();
            let one = if updated { Binding::ReadWrite(name) } else { Binding::Read(name) };
            return Ok(if self.is_none() { Vec::new() } else { vec![one] });
        }
        if self.written.len() < record.numbers.len() {
            return Err(format!("stores some numbers of @{name} alone"));
        }
        // A kernel that writes all numbers may use the current buffer for values on their way.
        let current = match (self.updated.is_empty(), self.read.is_empty()) {
            (false, _) => Some(Binding::ReadWrite(name)),
            (true, false) => Some(Binding::Read(name)),
            (true, true) => None,
        };
        Ok(current.into_iter().chain([Binding::Write(name)]).collect())
    }
}

/// How a kernel uses a record.
pub fn of(record: &Record, launch: &Launch) -> RecordUse {
    let mut found = RecordUse::default();
    for binding in &launch.bindings {
        let (places, name) = match binding {
            Binding::Read(name) => (&mut found.read, name),
            Binding::Write(name) => (&mut found.written, name),
            Binding::ReadWrite(name) => (&mut found.updated, name),
            _ => continue,
        };
        places.extend(record.place_of(name));
    }
    found
}

/// Why kernels can't have the array of structs itself; none where they can.
///
/// # Errors
/// Malformed attributes of a kernel.
pub fn obstacle(record: &Record, launches: &[Launch]) -> Result<Option<String>, Error> {
    for launch in launches {
        let rotated = tiled::rotations(launch.op)?.into_iter().flatten();
        if rotated.into_iter().any(|name| record.place_of(name).is_some()) {
            return Ok(Some(format!("@{} hands on its buffers", launch.name)));
        }
        if let Err(reason) = of(record, launch).bindings(record) {
            return Ok(Some(format!("@{} {reason}", launch.name)));
        }
    }
    Ok(None)
}

/// Whether a kernel has the array of structs itself.
pub fn is_interleaved(record: &Record, launches: &[Launch]) -> bool {
    let mut bindings = launches.iter().flat_map(|launch| &launch.bindings);
    bindings.any(|binding| binding.field() == Some(record.name))
}

/// The arrays of structs that no kernel has yet.
pub fn open<'c, 'p>(program: &'p Program<'c>, launches: &[Launch]) -> Vec<Record<'c, 'p>> {
    let open = |record: &Record| {
        record.layout == stencil_dialects::stencil::Layout::Aos && !is_interleaved(record, launches)
    };
    program.records().into_iter().filter(open).collect()
}

/// The arrays of structs, or of blocks, that kernels have in place of the buffers of numbers, and
/// of which some kernel has a number's buffer yet.
pub fn apart<'c, 'p>(program: &'p Program<'c>, launches: &[Launch]) -> Vec<Record<'c, 'p>> {
    let apart = |record: &Record| {
        let uses = |launch| !of(record, launch).is_none();
        record.kernel_block.is_some() && launches.iter().any(uses)
    };
    program.records().into_iter().filter(apart).collect()
}

/// Refuses kernels of a processor, which use no array of structs.
///
/// # Errors
/// The first kernel that is no kernel of a GPU, where there is an array of structs.
pub fn on_gpu(records: &[Record], launches: &[Launch]) -> Result<(), Error> {
    let other = launches.iter().find(|launch| mlir::name(launch.op) != "gpu.func");
    let Some(other) = other.filter(|_| !records.is_empty()) else { return Ok(()) };
    let text = format!("@{} is no kernel of a GPU; leave the pass out", other.name);
    Err(Error::new(mlir::place(other.op.location()), text))
}
