//! Which arrays a lowered kernel keeps where: copies in shared memory with their pads, and constant
//! memory.
//!
//! A shared buffer holds an array's elements where a store puts a loaded value of the array into
//! it, as it is or after arithmetic. Loops may carry the value, and branches may give it.

use crate::analysis::shared_copies::is_shared;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, ShapedTypeLike, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled::{self, Binding, Launch};

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
    let mut sources: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for op in mlir::walk(launch.op) {
        let operands = mlir::operands(op);
        if let ("memref.store" | "vector.store", [value, memref, ..]) =
            (mlir::name(op), operands.as_slice())
        {
            let found = sources.entry(mlir::key(flow.root(*memref))).or_default();
            found.extend(flow.loaded(*value));
        }
    }
    let name = |key: &usize| {
        let place = arguments.iter().position(|argument| mlir::key(*argument) == *key)?;
        match launch.bindings.get(place)? {
            Binding::Read(name) | Binding::Write(name) | Binding::ReadWrite(name) => {
                Some((place, (*name).to_owned()))
            }
            _ => None,
        }
    };
    let mut found = Vec::new();
    for (number, buffer) in buffers.enumerate() {
        let keys = sources.get(&mlir::key(*buffer)).into_iter().flatten();
        let arrays: BTreeMap<usize, String> = keys.filter_map(name).collect();
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

/// Where the values of a kernel come from.
struct Flow<'c> {
    /// The operation that makes a value, and the number of the result.
    makers: BTreeMap<usize, (Op<'c>, usize)>,
    /// The loop that carries a value, and its number among those.
    carried: BTreeMap<usize, (Op<'c>, usize)>,
}

impl<'c> Flow<'c> {
    fn of(kernel: Op<'c>) -> Self {
        let mut flow = Self { makers: BTreeMap::new(), carried: BTreeMap::new() };
        for op in mlir::walk(kernel) {
            for (number, result) in mlir::results(op).into_iter().enumerate() {
                flow.makers.insert(mlir::key(result), (op, number));
            }
            if mlir::name(op) == "scf.for" {
                let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
                for (number, argument) in arguments.into_iter().skip(1).enumerate() {
                    flow.carried.insert(mlir::key(argument), (op, number));
                }
            }
        }
        flow
    }

    /// The memory behind views.
    fn root(&self, memref: Val<'c>) -> Val<'c> {
        let mut root = memref;
        while let Some((view, _)) = self.makers.get(&mlir::key(root)) {
            match mlir::operands(*view).first() {
                Some(from) if MemRefType::try_from(from.r#type()).is_ok() => root = *from,
                _ => break,
            }
        }
        root
    }

    /// The roots of all memory from which a value is loaded.
    fn loaded(&self, value: Val<'c>) -> BTreeSet<usize> {
        let (mut found, mut seen, mut left) = (BTreeSet::new(), BTreeSet::new(), vec![value]);
        while let Some(value) = left.pop() {
            if !seen.insert(mlir::key(value)) {
                continue;
            }
            if let Some((op, number)) = self.carried.get(&mlir::key(value)) {
                left.extend(mlir::operands(*op).get(3 + number));
                left.extend(given(*op, *number));
            }
            let Some((op, number)) = self.makers.get(&mlir::key(value)) else { continue };
            match mlir::name(*op) {
                "memref.load" | "vector.load" => {
                    let memref = mlir::operands(*op).first().copied();
                    found.extend(memref.map(|memref| mlir::key(self.root(memref))));
                }
                "scf.for" => {
                    left.extend(mlir::operands(*op).get(3 + number));
                    left.extend(given(*op, *number));
                }
                "scf.if" => left.extend(given(*op, *number)),
                _ => left.extend(mlir::operands(*op)),
            }
        }
        found
    }
}

/// What the regions of an operation give as its result of a number.
fn given<'c>(op: Op<'c>, number: usize) -> Vec<Val<'c>> {
    let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(op, region));
    let ends = blocks.filter_map(|block| mlir::operations(block).last().copied());
    ends.filter_map(|end| mlir::operands(end).get(number).copied()).collect()
}
