//! Which arrays a lowered kernel keeps where: copies in shared memory with their pads, and constant
//! memory.
//!
//! A shared buffer holds an array's elements where a store puts a loaded value of the array into
//! it, as it is or after arithmetic. Loops may carry the value, and branches may give it.

use super::shared_copies::{Flow, is_shared};
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, ShapedTypeLike, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{self, Launch};

/// A buffer in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBuffer {
    /// The arrays whose elements it gets, in the order of the kernel's arguments; none where it has
    /// results of the kernel alone.
    pub arrays: Vec<String>,
    /// Its extents, a row's pad included.
    pub extents: Vec<i64>,
    /// The type of an element.
    pub element: String,
    /// Words of four bytes behind each row, by `bank-pad`.
    pub pad: i64,
    /// What `bank-pad` says of it, if it ran.
    pub note: Option<String>,
}

/// A kernel's memory besides its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The kernel.
    pub kernel: String,
    /// Its buffers in shared memory, in their order.
    pub shared: Vec<SharedBuffer>,
}

/// A field in constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantArray {
    /// Its name.
    pub array: String,
    /// Its bytes, with those between it and the next one.
    pub bytes: u64,
}

/// The kernels of a module, and the fields in constant memory.
///
/// # Errors
/// Malformed attributes of kernels or variables.
pub fn of(module: &Module) -> Result<(Vec<Kept>, Vec<ConstantArray>), Error> {
    let launches = tiled::launches(module)?;
    let kernels = launches
        .iter()
        .map(|launch| Ok(Kept { kernel: launch.name.to_owned(), shared: shared(launch)? }));
    let kernels = kernels.collect::<Result<_, Error>>()?;
    let constants = tiled::constants(module)?.into_iter().map(|constant| {
        Ok(ConstantArray { array: constant.field.to_owned(), bytes: constant.bytes()? })
    });
    Ok((kernels, constants.collect::<Result<_, Error>>()?))
}

fn shared(launch: &Launch) -> Result<Vec<SharedBuffer>, Error> {
    let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
    let buffers = arguments.iter().skip(launch.bindings.len()).filter(|buffer| is_shared(**buffer));
    let pads = tiled::bank_pads(launch.op)?;
    let flow = Flow::of(launch.op);
    let mut stored: BTreeMap<usize, Vec<Val>> = BTreeMap::new();
    for op in mlir::walk(launch.op) {
        let operands = mlir::operands(op);
        if let ("memref.store" | "vector.store", [value, memref, ..]) =
            (mlir::name(op), operands.as_slice())
        {
            stored.entry(mlir::key(flow.root(*memref))).or_default().push(*value);
        }
    }
    let name = |key: &usize| {
        let place = arguments.iter().position(|argument| mlir::key(*argument) == *key)?;
        Some((place, launch.bindings.get(place)?.field()?.to_owned()))
    };
    let mut found = Vec::new();
    for (number, buffer) in buffers.enumerate() {
        let values = stored.get(&mlir::key(*buffer)).map_or(&[][..], Vec::as_slice);
        let loaded = flow.loaded(values);
        let arrays: BTreeMap<usize, String> = loaded.iter().filter_map(name).collect();
        let ty = MemRefType::try_from(buffer.r#type());
        let ty = ty.map_err(|error| Error::internal(error.to_string()))?;
        let pad = pads.get(number);
        found.push(SharedBuffer {
            arrays: arrays.into_values().collect(),
            extents: crate::analysis::lane_addresses::extents(*buffer),
            element: ty.element().to_string(),
            pad: pad.map_or(0, |pad| pad.words),
            note: pad.map(|pad| pad.note.to_owned()),
        });
    }
    Ok(found)
}
