//! The kernels that move the numbers of an array of structs to a buffer for each, and back, or that
//! make an array of blocks of it, and structs of that.
//!
//! A block of threads moves as many cells as it has threads, by way of shared memory. Neighbouring
//! threads access neighbouring elements of memory on both sides, so both are coalesced. Rows of
//! shared memory have an odd number of elements: the threads of a warp then access different banks.
//!
//! Whole blocks of cells have the same elements as their structs. An array of blocks therefore
//! takes the place of the array of structs, and needs no memory of its own. A block of threads
//! reads all its elements before it writes one.

use super::record_blocks::{self, Number};
use crate::kernel::field_buffers::extents;
use crate::kernel::function;
use crate::kernel::shared_memory::shared_type;
use crate::kernel::signature::Signature;
use crate::reduce::block::{block_id, thread_id, view};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Attribute};
use stencil_dialects::affine::symbolic;
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Record};
use stencil_dialects::tiled::{self, Binding, Region, Schedule};

/// Threads of a block, the most first.
const THREADS: [i64; 4] = [256, 128, 64, 32];

/// Elements of a thread up to which a kernel has no loop over them: all are on their way at once.
const MOST_AT_ONCE: i64 = 32;

/// Which way the numbers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// From the structs to what kernels use.
    Pack,
    /// From there to the structs.
    Unpack,
}

/// Which way elements go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To shared memory.
    In,
    /// From shared memory.
    Out,
}

/// Threads of a block, whose cells lie in shared memory; none where those of a warp, or of a block
/// of the record, have no room.
pub fn threads(subject: &Subject, record: &Record) -> Option<i64> {
    let room = i64::try_from(subject.device.static_shared_per_block).unwrap_or(i64::MAX);
    let row = row(record).saturating_mul(record.number_bytes());
    let fits = |threads: &i64| threads % record.block == 0 && row.saturating_mul(*threads) <= room;
    THREADS.into_iter().find(fits)
}

/// Elements of a row of shared memory, which has the numbers of a cell.
fn row(record: &Record) -> i64 {
    i64::try_from(record.numbers.len()).unwrap_or(i64::MAX - 1) | 1
}

/// Builds a kernel; its name. `kernel_block` are the cells of a block that kernels use; without
/// them they have a buffer for each number.
///
/// # Errors
/// Where a warp's cells have no room.
pub fn build<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    record: &Record<'c, '_>,
    kernel_block: Option<i64>,
    transform: Transform,
) -> Result<String, Error> {
    let program = subject.program;
    let fault = || Error::internal(format!("no room for cells of @{}", record.name));
    let threads = threads(subject, record).ok_or_else(fault)?;
    let location = record.numbers.first().ok_or_else(fault)?.op.location();
    let outer = function::container(context, subject.module, location)?;
    let name = kernel_name(subject, record, transform);
    let grid = program.grid_of(record.name)?;
    let zero = AffineExpr::constant(context, 0);
    let symbols = program.params.len();
    let axes = extents(context, grid.lower, grid.upper)?;
    let axes: Vec<_> =
        axes.into_iter().map(|extent| symbolic(context, symbols, &[extent, zero])).collect();
    let last = |cells: i64| {
        let mut all = vec![1; axes.len().saturating_sub(1)];
        all.push(cells);
        all
    };
    let schedule = Schedule {
        strategy: "relayout".to_owned(),
        tile: last(threads),
        per_thread: last(1),
        steps: 0,
        region: Region::default(),
    };
    let block = [i32::try_from(threads).unwrap_or(i32::MAX), 1, 1];
    let mut attributes = tiled::axes_attributes(&outer, &axes, block, &schedule);
    attributes.push(tiled::block_points_attribute(&outer, threads));
    attributes.push(("sym_name", attribute::string(context, &name)));
    attributes.push(("gpu.kernel", Attribute::unit(context)));
    let shared = shared_type(&outer, &[threads, row(record)], record.element()?)?;
    let bindings = bindings(subject, record, kernel_block, transform);
    let signature = Signature::of_bindings(&outer, program, bindings)?;
    let (_, entry) = function::declare(&outer, &signature, attributes, &[shared.into()])?;
    let body = Body { builder: outer.at(entry), record, kernel_block, threads, transform };
    body.build(subject, &signature, &mlir::arguments(entry))?;
    Ok(name)
}

/// A name that PTX allows, and that is free.
fn kernel_name(subject: &Subject, record: &Record, transform: Transform) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let field: String = record.name.chars().map(letter).collect();
    let verb = match transform {
        Transform::Pack => "pack",
        Transform::Unpack => "unpack",
    };
    stencil::unused_name(subject.module, &format!("{verb}_{field}"))
}

/// The array of structs, the buffer of each number if there are such, and the sizes.
fn bindings<'c>(
    subject: &Subject<'c, '_>,
    record: &Record<'c, '_>,
    kernel_block: Option<i64>,
    transform: Transform,
) -> Vec<Binding<'c>> {
    let numbers = record.numbers.iter().map(|field| field.name);
    let mut all: Vec<Binding> = match (kernel_block, transform) {
        (Some(_), _) => vec![Binding::ReadWrite(record.name)],
        (None, Transform::Pack) => std::iter::once(Binding::Read(record.name))
            .chain(numbers.map(Binding::ReadWrite))
            .collect(),
        (None, Transform::Unpack) => std::iter::once(Binding::ReadWrite(record.name))
            .chain(numbers.map(Binding::Read))
            .collect(),
    };
    all.extend(subject.program.params.iter().map(|name| Binding::Param(name)));
    all
}

/// The body of a kernel.
struct Body<'c, 'p> {
    builder: Builder<'c>,
    record: &'p Record<'c, 'p>,
    kernel_block: Option<i64>,
    threads: i64,
    transform: Transform,
}

/// The values that both halves of a body use.
struct Cells<'c> {
    /// The array of structs, or of blocks.
    structs: Val<'c>,
    /// The buffer of each number, if there are such.
    numbers: Vec<Val<'c>>,
    /// Shared memory: a row for each cell of the block.
    shared: Val<'c>,
    thread: Val<'c>,
    /// The first cell of the block.
    first: Val<'c>,
    /// The cells of the block.
    count: Val<'c>,
}

impl<'c> Body<'c, '_> {
    fn build(
        &self,
        subject: &Subject<'c, '_>,
        signature: &Signature<'c>,
        values: &[Val<'c>],
    ) -> Result<(), Error> {
        let builder = &self.builder;
        let fault = || Error::internal("a transform without its arguments");
        let (bound, shared) =
            values.split_at_checked(signature.bindings.len()).ok_or_else(fault)?;
        let [structs, numbers @ ..] = bound else { return Err(fault()) };
        let buffers = if self.kernel_block.is_some() { 0 } else { self.record.numbers.len() };
        let (numbers, params) = numbers.split_at_checked(buffers).ok_or_else(fault)?;
        let grid = subject.program.grid_of(self.record.name)?;
        let mut cells = builder.index(1)?;
        for extent in extents(builder.context, grid.lower, grid.upper)? {
            let extent = builder.affine(extent, &[], params)?;
            cells = builder.binary("arith.muli", cells, extent)?;
        }
        let block = builder.multiply_constant(block_id(builder)?, self.threads)?;
        let rest = builder.binary("arith.subi", cells, block)?;
        let found = Cells {
            structs: view(builder, *structs, self.in_records(builder, cells)?)?,
            numbers: numbers
                .iter()
                .map(|buffer| view(builder, *buffer, cells))
                .collect::<Result<_, _>>()?,
            shared: *shared.first().ok_or_else(fault)?,
            thread: thread_id(builder)?,
            first: block,
            count: builder.binary("arith.minsi", rest, builder.index(self.threads)?)?,
        };
        let inside = |way| match self.kernel_block {
            Some(block) => self.records(&found, block, way),
            None => self.numbers(&found, way),
        };
        let barrier = || builder.op("gpu.barrier", &[], &[], &[]).map(drop);
        match self.transform {
            Transform::Pack => {
                self.records(&found, self.record.block, Way::In)?;
                barrier()?;
                inside(Way::Out)?;
            }
            Transform::Unpack => {
                inside(Way::In)?;
                barrier()?;
                self.records(&found, self.record.block, Way::Out)?;
            }
        }
        builder.op("gpu.return", &[], &[], &[]).map(drop)
    }

    /// Numbers of a cell.
    fn count(&self) -> i64 {
        i64::try_from(self.record.numbers.len()).unwrap_or(i64::MAX)
    }

    /// Moves the part of an array of structs, or of blocks of so many cells, that the block of
    /// threads has. A thread moves an element at a time, or all of its elements at once where no
    /// cells are missing.
    fn records(&self, cells: &Cells<'c>, block: i64, way: Way) -> Result<(), Error> {
        let builder = &self.builder;
        let in_loop = |builder: &Builder<'c>| {
            let end = self.in_records(builder, cells.count)?;
            let bounds = (cells.thread, end, builder.index(self.threads)?);
            builder.repeat(bounds, |builder, at| {
                let row = self.cell_and_number(builder, at, block)?.0;
                let copy = |builder: &Builder<'c>| self.copy(builder, cells, block, (&[at], way));
                if self.record.block == 1 {
                    return copy(builder);
                }
                // The last block of the record may have fewer cells.
                let is_cell = builder.compare(Compare::Lt, row, cells.count)?;
                builder.when(is_cell, copy)
            })
        };
        if self.count() > MOST_AT_ONCE {
            return in_loop(builder);
        }
        let all = builder.compare(Compare::Eq, cells.count, builder.index(self.threads)?)?;
        let at_once = |builder: &Builder<'c>| {
            let part = |part| builder.add_constant(cells.thread, part * self.threads);
            let places = (0..self.count()).map(part).collect::<Result<Vec<_>, _>>()?;
            self.copy(builder, cells, block, (&places, way)).map(|()| Vec::new())
        };
        builder.choose(all, &[], at_once, |builder| in_loop(builder).map(|()| Vec::new())).map(drop)
    }

    /// Copies elements at these places of the part from or to shared memory.
    fn copy(
        &self,
        builder: &Builder<'c>,
        cells: &Cells<'c>,
        block: i64,
        (places, way): (&[Val<'c>], Way),
    ) -> Result<(), Error> {
        let first = builder.multiply_constant(cells.first, self.count())?;
        let ends = places.iter().map(|at| {
            let (row, number) = self.cell_and_number(builder, *at, block)?;
            let outside = (cells.structs, vec![builder.add(first, *at)?]);
            let inside = (cells.shared, vec![row, number]);
            Ok(if way == Way::In { (outside, inside) } else { (inside, outside) })
        });
        let ends = ends.collect::<Result<Vec<_>, Error>>()?;
        let values = ends.iter().map(|((from, place), _)| builder.load(*from, place));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let mut pairs = values.into_iter().zip(&ends);
        pairs.try_for_each(|(value, (_, (to, place)))| builder.store(value, *to, place))
    }

    /// Elements of the array outside that so many cells take, whole blocks of them.
    fn in_records(&self, builder: &Builder<'c>, cells: Val<'c>) -> Result<Val<'c>, Error> {
        let (numbers, block) = (self.count(), self.record.block);
        record_blocks::elements(builder, cells, Number { number: 0, numbers, block })
    }

    /// The cell of the block of threads, and its number, at a place of the block's part of an array
    /// of blocks of so many cells.
    fn cell_and_number(
        &self,
        builder: &Builder<'c>,
        at: Val<'c>,
        block: i64,
    ) -> Result<(Val<'c>, Val<'c>), Error> {
        let numbers = builder.index(self.count())?;
        if block == 1 {
            let row = builder.binary("arith.divui", at, numbers)?;
            return Ok((row, builder.binary("arith.remui", at, numbers)?));
        }
        let block = builder.index(block)?;
        let (rows, lane) =
            (builder.binary("arith.divui", at, block)?, builder.binary("arith.remui", at, block)?);
        let before = builder.binary("arith.divui", rows, numbers)?;
        let before = builder.binary("arith.muli", before, block)?;
        Ok((builder.add(before, lane)?, builder.binary("arith.remui", rows, numbers)?))
    }

    /// Moves the numbers of the thread's own cell between shared memory and their buffers.
    fn numbers(&self, cells: &Cells<'c>, way: Way) -> Result<(), Error> {
        let builder = &self.builder;
        let own = builder.compare(Compare::Lt, cells.thread, cells.count)?;
        builder.when(own, |builder| {
            let place = builder.add(cells.first, cells.thread)?;
            for (number, buffer) in (0..).zip(&cells.numbers) {
                let inside = [cells.thread, builder.index(number)?];
                match way {
                    Way::Out => {
                        let value = builder.load(cells.shared, &inside)?;
                        builder.store(value, *buffer, &[place])?;
                    }
                    Way::In => {
                        let value = builder.load(*buffer, &[place])?;
                        builder.store(value, cells.shared, &inside)?;
                    }
                }
            }
            Ok(())
        })
    }
}
