//! `interleave-records`: kernels use arrays of structs as they are.
//!
//! Needs: lowered kernels of a GPU, and fields with `stencil.layout = "aos"`, or with the
//! `stencil.kernel_block` of `coalesce-relayout`. Guarantees: a kernel has one argument for an
//! array of structs in place of one for each of its fields. Number `k` of a cell lies behind `k`
//! others there, so that a warp's access to one number is not coalesced.
//!
//! ```text
//! gpu.func @k(%a: memref<f32> {tiled.binding = "read", tiled.name = "W.h"},
//!             %b: memref<f32> {tiled.binding = "read", tiled.name = "W.u"}) {
//!   %u = memref.reinterpret_cast %b to offset: [0], sizes: [8, 16], strides: [16, 1]
//! ```
//! becomes
//! ```text
//! gpu.func @k(%w: memref<f32> {tiled.binding = "read", tiled.name = "W"}) {
//!   %u = memref.reinterpret_cast %w to offset: [1], sizes: [8, 16], strides: [32, 2]
//! ```
//!
//! An array of blocks (`stencil.block`, or `stencil.kernel_block`) has one flat view for each
//! number, and each access computes the place of its cell. Number 0 of cell `c`, of blocks of `B`
//! cells of `K` numbers, lies at `c + (c - c mod B) * (K - 1)`:
//!
//! ```text
//!   %h = memref.reinterpret_cast %w to offset: [0], sizes: [8192], strides: [1]
//! ```
//!
//! Vectors of neighbouring cells become single accesses. Declines: a kernel that stores some
//! numbers of a cell alone, or hands on the buffer of one. A second run changes nothing.

use super::record_blocks::{self, Flat, Number};
use crate::analysis::record_use;
use crate::kernel::function;
use crate::kernel::signature::Signature;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, Region, ShapedTypeLike, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute::{self, read};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{Program, Record};
use stencil_dialects::tiled::{self, Binding, Launch};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "interleave-records",
    summary: "let kernels use arrays of structs as they are",
    options: &[],
    read: |_: &Options| Ok(Box::new(InterleaveRecords)),
};

/// The pass.
pub struct InterleaveRecords;

impl Pass for InterleaveRecords {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        let program = Program::read(module)?;
        Ok(!record_use::apart(&program, &tiled::launches(module)?).is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        let launches = tiled::launches(module)?;
        let records = record_use::apart(&program, &launches);
        record_use::on_gpu(&records, &launches)?;
        for record in &records {
            if let Some(reason) = record_use::obstacle(record, &launches)? {
                let place = record.numbers.first().map(|field| field.op.location());
                let text = format!(
                    "kernels can't use the array of structs @{}: {reason}; run coalesce-relayout \
                     before",
                    record.name
                );
                return Err(place.map_or_else(
                    || Error::user(&text),
                    |place| Error::new(mlir::place(place), &text),
                ));
            }
        }
        for launch in &launches {
            let uses = |record: &&Record| !record_use::of(record, launch).is_none();
            let used: Vec<_> = records.iter().filter(uses).collect();
            if !used.is_empty() {
                Kernel { context, program: &program, launch, records: &used }.rewrite()?;
            }
        }
        Ok(())
    }
}

/// A kernel that has buffers of numbers.
struct Kernel<'c, 'p> {
    context: &'c Context,
    program: &'p Program<'c>,
    launch: &'p Launch<'c>,
    records: &'p [&'p Record<'c, 'p>],
}

/// A number's place in the buffer of its record.
#[derive(Clone, Copy)]
struct Place<'c> {
    buffer: Val<'c>,
    number: Number,
}

impl<'c> Kernel<'c, '_> {
    /// Makes a kernel of the same name with other arguments, and the same body.
    fn rewrite(&self) -> Result<(), Error> {
        let op = self.launch.op;
        let fault = || Error::internal(format!("@{} has no body", self.launch.name));
        let old = mlir::entry(op).ok_or_else(fault)?;
        let arguments = mlir::arguments(old);
        let (bound, shared) = arguments.split_at_checked(self.bindings()).ok_or_else(fault)?;
        let region = Region::new();
        let builder = Builder::new(self.context, op.location(), mlir::append_block(&region, &[]));
        let bindings = self.new_bindings()?;
        let signature = Signature::of_bindings(&builder, self.program, bindings)?;
        let types: Vec<Type> = shared.iter().map(ValueLike::r#type).collect();
        let mut attributes = mlir::own_attributes(op);
        let known = attribute::integers32(self.context, &self.block());
        attributes.retain(|(name, _)| *name != "known_block_size");
        attributes.push(("known_block_size", known));
        attributes.push(("sym_name", attribute::string(self.context, self.launch.name)));
        let (new, entry) = function::declare(&builder, &signature, attributes, &types)?;
        let values = mlir::arguments(entry);
        let (buffers, others) = values.split_at_checked(signature.types.len()).ok_or_else(fault)?;
        let mut renamed: BTreeMap<usize, Val<'c>> =
            shared.iter().map(|old| mlir::key(*old)).zip(others.iter().copied()).collect();
        let mut places = BTreeMap::new();
        for (old, binding) in bound.iter().zip(&self.launch.bindings) {
            match self.place(binding, &signature.bindings, buffers)? {
                Some(place) => drop(places.insert(mlir::key(*old), place)),
                None => {
                    let new = signature.bindings.iter().position(|one| one == binding);
                    let new = new.and_then(|new| buffers.get(new)).ok_or_else(fault)?;
                    renamed.insert(mlir::key(*old), *new);
                }
            }
        }
        let inner = builder.at(entry);
        let mut flats = BTreeMap::new();
        for op in mlir::operations(old) {
            self.copy(&inner, op, &places, (&mut renamed, &mut flats))?;
        }
        for op in mlir::walk(new) {
            if !record_blocks::access(&inner, op, &flats)? {
                single_accesses(&inner, op)?;
            }
        }
        mlir::move_before(new, op);
        mlir::erase(op);
        Ok(())
    }

    fn bindings(&self) -> usize {
        self.launch.bindings.len()
    }

    fn block(&self) -> Vec<i32> {
        let threads = self.launch.block.iter();
        threads.map(|threads| i32::try_from(*threads).unwrap_or(i32::MAX)).collect()
    }

    /// The arguments with records in the place of their first numbers.
    fn new_bindings(&self) -> Result<Vec<Binding<'c>>, Error> {
        let mut all: Vec<Binding<'c>> = Vec::new();
        for binding in &self.launch.bindings {
            let own = match self.record_of(binding) {
                Some((record, _)) => {
                    let uses = record_use::of(record, self.launch);
                    uses.bindings(record).map_err(Error::internal)?
                }
                None => vec![binding.clone()],
            };
            for one in own {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        Ok(all)
    }

    /// The record of a number that an argument is bound to, and the number's place in a cell.
    fn record_of(&self, binding: &Binding<'c>) -> Option<(&Record<'c, '_>, usize)> {
        let name = binding.field()?;
        self.records.iter().find_map(|record| Some((*record, record.place_of(name)?)))
    }

    /// The place that stands for an argument, if that is bound to a number.
    fn place(
        &self,
        binding: &Binding<'c>,
        new: &[Binding<'c>],
        buffers: &[Val<'c>],
    ) -> Result<Option<Place<'c>>, Error> {
        let Some((record, number)) = self.record_of(binding) else { return Ok(None) };
        let is_write = matches!(binding, Binding::Write(_));
        let is_buffer = |one: &Binding| match one {
            Binding::Write(name) => is_write && *name == record.name,
            Binding::Read(name) | Binding::ReadWrite(name) => !is_write && *name == record.name,
            _ => false,
        };
        let found = new.iter().position(is_buffer).and_then(|place| buffers.get(place));
        let buffer = found.ok_or_else(|| Error::internal("a record without an argument"))?;
        let count = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let (number, numbers) = (count(number), count(record.numbers.len()));
        let number = Number { number, numbers, block: record.kernel_block.unwrap_or(1) };
        Ok(Some(Place { buffer: *buffer, number }))
    }

    /// Copies an operation of the body; a view of a number becomes one of the record.
    fn copy(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
        places: &BTreeMap<usize, Place<'c>>,
        (renamed, flats): (&mut BTreeMap<usize, Val<'c>>, &mut BTreeMap<usize, Flat<'c>>),
    ) -> Result<(), Error> {
        let builder = Builder { location: op.location(), ..*builder };
        let operands = mlir::operands(op);
        let place = operands.first().and_then(|first| places.get(&mlir::key(*first)));
        match (mlir::name(op), place) {
            ("memref.reinterpret_cast", Some(place)) => {
                let rest = operands.iter().skip(1);
                let rest = rest.map(|old| *renamed.get(&mlir::key(*old)).unwrap_or(old));
                let rest = rest.collect::<Vec<_>>();
                let view = match place.number.block {
                    1 => view(&builder, op, *place, &rest)?,
                    _ => {
                        let (view, flat) =
                            record_blocks::view(&builder, op, place.buffer, place.number, &rest)?;
                        flats.insert(mlir::key(view), flat);
                        view
                    }
                };
                for result in mlir::results(op) {
                    renamed.insert(mlir::key(result), view);
                }
            }
            _ => {
                let own = mlir::walk(op).into_iter().flat_map(mlir::operands);
                if own.into_iter().any(|value| places.contains_key(&mlir::key(value))) {
                    return Err(Error::new(
                        mlir::place(op.location()),
                        format!(
                            "{} uses the number of an array of structs; only a \
                             memref.reinterpret_cast at the top of the kernel may do so",
                            mlir::name(op)
                        ),
                    ));
                }
                mlir::copy_to(op, builder.block, renamed);
            }
        }
        Ok(())
    }
}

/// A view of a number's cells in the buffer of its record: strides are those of whole cells.
fn view<'c>(
    builder: &Builder<'c>,
    old: Op<'c>,
    place: Place<'c>,
    dynamic: &[Val<'c>],
) -> Result<Val<'c>, Error> {
    let lists = |name| read(old, name, attribute::as_integers);
    let (offsets, sizes, strides) =
        (lists("static_offsets")?, lists("static_sizes")?, lists("static_strides")?);
    if offsets != [0] {
        let message = "a view of a number of an array of structs begins with the first cell";
        return Err(Error::new(mlir::place(old.location()), message));
    }
    let apart = |stride: &i64| match *stride {
        i64::MIN => i64::MIN,
        stride => stride.saturating_mul(place.number.numbers),
    };
    let strides: Vec<i64> = strides.iter().map(apart).collect();
    let known = sizes.iter().filter(|size| **size == i64::MIN).count();
    let (extents, steps) = dynamic
        .split_at_checked(known)
        .ok_or_else(|| Error::internal("a view with too few sizes"))?;
    let mut operands = [&[place.buffer], extents].concat();
    for step in steps {
        operands.push(builder.multiply_constant(*step, place.number.numbers)?);
    }
    let context = builder.context;
    let memref = MemRefType::try_from(place.buffer.r#type());
    let element = memref.map_err(|error| Error::internal(error.to_string()))?.element();
    let layout =
        melior::ir::attribute::StridedLayoutAttribute::new(context, place.number.number, &strides);
    let ty = MemRefType::new(element, &sizes, Some(layout.into()), None);
    let segments = [1, 0, extents.len() as i32, steps.len() as i32];
    builder.value(
        "memref.reinterpret_cast",
        &operands,
        ty.into(),
        &[
            ("static_offsets", attribute::integers(context, &[place.number.number])),
            ("static_sizes", attribute::integers(context, &sizes)),
            ("static_strides", attribute::integers(context, &strides)),
            ("operandSegmentSizes", attribute::integers32(context, &segments)),
        ],
    )
}

/// Whether the neighbouring cells of a memref lie apart.
fn is_apart(memref: Val) -> bool {
    let ty = memref.r#type().to_string();
    let strides = ty.split_once("strided<[").and_then(|(_, rest)| rest.split_once(']'));
    let last = strides.and_then(|(strides, _)| strides.rsplit(", ").next());
    last.is_some_and(|stride| stride != "1")
}

/// Replaces a vector of cells that lie apart by its cells.
fn single_accesses<'c>(outer: &Builder<'c>, op: Op<'c>) -> Result<(), Error> {
    let operands = mlir::operands(op);
    let (value, memref, indices) = match (mlir::name(op), operands.as_slice()) {
        ("vector.load", [memref, indices @ ..]) => (None, *memref, indices),
        ("vector.store", [value, memref, indices @ ..]) => (Some(*value), *memref, indices),
        _ => return Ok(()),
    };
    let Some((last, rows)) = indices.split_last().filter(|_| is_apart(memref)) else {
        return Ok(());
    };
    record_blocks::replace(outer, op, |builder| {
        let place = |cell| Ok([rows, &[builder.add_constant(*last, cell)?]].concat());
        record_blocks::single_accesses(builder, op, value, memref, place)
    })
}
