//! `combine-stores`: kernels combine the values at the points of a reduction in registers.
//!
//! Needs: kernels of the gpu level, some of which store the fields that `fuse-reductions` made.
//! Guarantees: no such field any more. Each thread combines what it would store. The lanes of a
//! warp combine their values by shuffles, and the first lane stores one partial result. A kernel
//! behind each launch combines the partial results.
//!
//! Refuses modules in which a tiled kernel is left.
//!
//! A cell is stored once, by the tile that it belongs to, so each value is combined once.
//!
//! ```text
//! scf.for ... { scf.if %own { memref.store %value, %points[%i, %j] } }
//! ```
//! becomes
//! ```text
//! %all = scf.for ... iter_args(%so_far = %neutral) {
//!   %next = scf.if %own { scf.yield max(%so_far, %value) } else { scf.yield %so_far }
//!   scf.yield %next
//! }
//! five times: max(%all, gpu.shuffle down %all by 16, 8, 4, 2, 1)
//! scf.if %lane == 0 { memref.store %all, %partials[%block * warps + %warp] }
//! ```

use super::block::{self, Operator};
use super::lower_reduce::kernel_name;
use super::partials::PartialsKernel;
use crate::kernel::lanes::{self, WARP};
use crate::kernel::tile_place::number;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Attribute, Module, Region, Type, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute::{self, read};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Field, Program};
use stencil_dialects::tiled::{self, Binding, Launch};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "combine-stores",
    summary: "combine the points of reductions in registers in place of storing them",
    options: &[],
    read: |_: &Options| Ok(Box::new(CombineStores)),
};

/// The pass.
pub struct CombineStores;

impl Pass for CombineStores {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        let program = Program::read(module)?;
        let combined = program.fields.iter().map(stencil::combined);
        Ok(combined.collect::<Result<Vec<_>, _>>()?.iter().any(Option::is_some))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        if let Some(kernel) = tiled::kernels(module)?.first() {
            return Err(Error::new(
                mlir::place(kernel.op.location()),
                "this kernel stores no points of reductions yet; run combine-stores behind the \
                 lowerings of all kernels",
            ));
        }
        let subject = Subject::of(module, &program)?;
        for field in &program.fields {
            let Some((into, combine)) = stencil::combined(field)? else { continue };
            for launch in tiled::launches(module)? {
                let stores = |binding: &Binding| match binding {
                    Binding::Write(name) | Binding::ReadWrite(name) => *name == field.name,
                    _ => false,
                };
                let Some(argument) = launch.bindings.iter().position(stores) else { continue };
                let operator = Operator::of(field, combine);
                let combining = Combining { context, subject: &subject, into, operator, launch };
                combining.kernel(field, argument)?;
            }
        }
        for field in &program.fields {
            if stencil::combined(field)?.is_some() {
                mlir::erase(field.op);
            }
        }
        Ok(())
    }
}

/// A kernel that stores the points of a reduction.
struct Combining<'c, 'p> {
    context: &'c Context,
    subject: &'p Subject<'c, 'p>,
    /// The field of the value.
    into: &'c str,
    operator: Operator<'c>,
    launch: Launch<'c>,
}

impl<'c> Combining<'c, '_> {
    /// Combines the points of a field, which an argument of the kernel is bound to.
    fn kernel(&self, field: &Field<'c>, argument: usize) -> Result<(), Error> {
        let Self { context, subject, into, operator, launch } = self;
        let location = launch.op.location();
        let fault =
            || Error::internal(format!("@{} has no buffer of @{}", launch.name, field.name));
        let entry = mlir::entry(launch.op).ok_or_else(fault)?;
        let buffer = *mlir::arguments(entry).get(argument).ok_or_else(fault)?;
        let blocks = launch.grid.first().and_then(|grid| grid.result(0).ok()).ok_or_else(fault)?;
        let stores = Stores::of(entry, buffer, *operator);
        let outer = Builder::new(context, location, entry);
        stores.replace(&outer, |builder, value| self.store(builder, buffer, blocks, value))?;
        self.bind(&outer, argument)?;
        let name = format!("{}_of_{}", kernel_name(into), launch.name);
        let name = stencil::unused_name(subject.module, &name);
        let reductions = [(*into, *operator)];
        let kernel = PartialsKernel { context, subject, reductions: &reductions, location };
        kernel.build(&name, |made| {
            let count = made.builder.affine(blocks, &[], &made.arguments.params)?;
            made.builder.multiply_constant(count, self.warps())
        })?;
        for repeat in tiled::repeats(subject.module)? {
            let list = repeat.kernels.iter().flat_map(|one| {
                let behind = (*one == launch.name).then(|| name.clone());
                [Some((*one).to_owned()), behind].into_iter().flatten()
            });
            tiled::set_kernels(&outer, repeat.op, &list.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Warps of a block.
    fn warps(&self) -> i64 {
        self.launch.block.iter().product::<i64>() / WARP
    }

    /// Combines the values of a warp, and stores the result.
    fn store(
        &self,
        builder: &Builder<'c>,
        buffer: Val<'c>,
        blocks: AffineExpr<'c>,
        mut value: Val<'c>,
    ) -> Result<(), Error> {
        let launch = &self.launch;
        let mut distance = WARP / 2;
        while distance > 0 {
            let other = lanes::shuffle(builder, value, distance)?;
            value = self.operator.combine(builder, value, other)?;
            distance /= 2;
        }
        let mut thread: Option<Val> = None;
        for (axis, count) in ["x", "y", "z"].into_iter().zip(&launch.block).rev() {
            let own = number(builder, "gpu.thread_id", axis)?;
            thread = Some(match thread {
                Some(slower) => builder.add(builder.multiply_constant(slower, *count)?, own)?,
                None => own,
            });
        }
        let thread = thread.ok_or_else(|| Error::internal("a block without threads"))?;
        let width = builder.index(WARP)?;
        let lane = builder.binary("arith.remui", thread, width)?;
        let warp = builder.binary("arith.divui", thread, width)?;
        let entry = mlir::arguments(mlir::entry(launch.op).unwrap_or(builder.block));
        let bound = |wanted: fn(&Binding) -> bool| {
            let all = launch.bindings.iter().zip(&entry);
            all.filter(move |(binding, _)| wanted(binding)).map(|(_, value)| *value)
        };
        let params: Vec<Val> = bound(|binding| matches!(binding, Binding::Param(_))).collect();
        let mut block = number(builder, "gpu.block_id", "x")?;
        let all = builder.affine(blocks, &[], &params)?;
        let row = bound(|binding| *binding == Binding::Row).next();
        if let (Some(row), Some(bands)) = (row, launch.bands) {
            // A band's blocks are numbered from 0.
            let rows = bands.rows.result(0).map_err(|error| Error::internal(error.to_string()))?;
            let rows = builder.affine(rows, &[], &params)?;
            let rows = builder.binary("arith.maxsi", rows, builder.index(1)?)?;
            let of_row = builder.binary("arith.divui", all, rows)?;
            block = builder.add(block, builder.binary("arith.muli", row, of_row)?)?;
        }
        let place = builder.add(builder.multiply_constant(block, self.warps())?, warp)?;
        let first = builder.compare(Compare::Eq, lane, builder.index(0)?)?;
        builder.when(first, |builder| {
            let count = builder.multiply_constant(all, self.warps())?;
            builder.store(value, block::view(builder, buffer, count)?, &[place])
        })
    }

    /// Binds the argument to the partial results.
    fn bind(&self, builder: &Builder<'c>, argument: usize) -> Result<(), Error> {
        let op = self.launch.op;
        let mut all = read(op, "arg_attrs", attribute::as_array)?;
        let mut named = tiled::binding_attributes(builder, &Binding::Partials(self.into));
        named.push(("llvm.noalias", Attribute::unit(self.context)));
        if let Some(attributes) = all.get_mut(argument) {
            *attributes = attribute::dictionary(self.context, &named);
        }
        mlir::set_attribute(op, "arg_attrs", attribute::array(self.context, &all));
        Ok(())
    }
}

/// The stores to a buffer in a kernel.
struct Stores<'c> {
    /// The operations of the kernel's body.
    body: Vec<Op<'c>>,
    /// The stores, and the operations around them.
    around: BTreeSet<usize>,
    operator: Operator<'c>,
}

/// The values that stand for those of the code that is replaced.
type Renamed<'c> = BTreeMap<usize, Val<'c>>;

impl<'c> Stores<'c> {
    fn of(entry: mlir::Blk<'c>, buffer: Val<'c>, operator: Operator<'c>) -> Self {
        let body = mlir::operations(entry);
        let mut views = BTreeSet::from([mlir::key(buffer)]);
        for op in &body {
            let first = mlir::operands(*op).first().copied();
            if first.is_some_and(|first| views.contains(&mlir::key(first)))
                && mlir::name(*op) == "memref.reinterpret_cast"
            {
                views.extend(mlir::results(*op).into_iter().map(mlir::key));
            }
        }
        let mut around = BTreeSet::new();
        for op in &body {
            note(*op, &views, &mut around);
        }
        Self { body, around, operator }
    }

    /// Puts combinations in the place of the stores; `end` gets the result at the kernel's end.
    fn replace(
        &self,
        outer: &Builder<'c>,
        end: impl FnOnce(&Builder<'c>, Val<'c>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let [first, .., last] = self.body.as_slice() else {
            return Err(Error::internal("a kernel that stores nothing"));
        };
        let before = |op: Op<'c>, build: &mut dyn FnMut(&Builder<'c>) -> Result<(), Error>| {
            let region = Region::new();
            let block = mlir::append_block(&region, &[]);
            build(&Builder { location: op.location(), ..outer.at(block) })?;
            mlir::move_all_before(block, op);
            Ok::<_, Error>(())
        };
        let mut value = None;
        before(*first, &mut |builder| {
            value = Some(self.operator.neutral(builder)?);
            Ok(())
        })?;
        let mut value = value.ok_or_else(|| Error::internal("no neutral value"))?;
        for op in self.body.iter().filter(|op| self.is_around(**op)) {
            let mut renamed = Renamed::new();
            before(*op, &mut |builder| {
                value = self.operation(builder, *op, value, &mut renamed)?;
                Ok(())
            })?;
            for result in mlir::results(*op) {
                if let Some(new) = renamed.get(&mlir::key(result)) {
                    mlir::replace_uses(result, *new);
                }
            }
            mlir::erase(*op);
        }
        let mut end = Some(end);
        before(*last, &mut |builder| end.take().map_or(Ok(()), |end| end(builder, value)))
    }

    fn is_around(&self, op: Op<'c>) -> bool {
        self.around.contains(&address(op))
    }

    /// Copies operations to the end of a block; gives what they combine to.
    fn operations(
        &self,
        builder: &Builder<'c>,
        block: Option<mlir::Blk<'c>>,
        mut value: Val<'c>,
        renamed: &mut Renamed<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        for op in block.map(mlir::operations).unwrap_or_default() {
            if mlir::name(op) == "scf.yield" {
                let mut yielded = of(&mlir::operands(op), renamed);
                yielded.push(value);
                return Ok(yielded);
            }
            let builder = Builder { location: op.location(), ..*builder };
            value = self.operation(&builder, op, value, renamed)?;
        }
        Ok(vec![value])
    }

    /// Copies an operation to the end of a block; gives what all before it and it combine to.
    fn operation(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
        value: Val<'c>,
        renamed: &mut Renamed<'c>,
    ) -> Result<Val<'c>, Error> {
        if !self.is_around(op) {
            mlir::copy_to(op, builder.block, renamed);
            return Ok(value);
        }
        let operands = of(&mlir::operands(op), renamed);
        let new = match (mlir::name(op), operands.as_slice()) {
            ("scf.if", [condition]) => {
                let mut types: Vec<Type> =
                    mlir::results(op).iter().map(ValueLike::r#type).collect();
                types.push(self.operator.element);
                let side = |builder: &Builder<'c>, region| {
                    let block = mlir::blocks(op, region).first().copied();
                    self.operations(builder, block, value, &mut renamed.clone())
                };
                builder.choose(*condition, &types, |one| side(one, 0), |one| side(one, 1))?
            }
            ("scf.for", [from, to, step, initial @ ..]) => {
                let body = mlir::blocks(op, 0).first().copied();
                let old = body.map(mlir::arguments).unwrap_or_default();
                let initial = [initial, &[value]].concat();
                builder.carry((*from, *to, *step), &initial, |builder, index, carried| {
                    let mut inner = renamed.clone();
                    let new = std::iter::once(index).chain(carried.iter().copied());
                    inner.extend(old.iter().map(|old| mlir::key(*old)).zip(new));
                    let value = carried.last().copied();
                    let value = value.ok_or_else(|| Error::internal("nothing is carried"))?;
                    self.operations(builder, body, value, &mut inner)
                })?
            }
            ("memref.store" | "vector.store", [stored, ..]) => {
                return self.combine(builder, value, *stored);
            }
            (name, _) => {
                return Err(Error::internal(format!("a reduction can't be taken out of {name}")));
            }
        };
        renamed.extend(mlir::results(op).into_iter().map(mlir::key).zip(new.iter().copied()));
        new.last().copied().ok_or_else(|| Error::internal("nothing is combined"))
    }

    /// Combines a value with what is stored: a number, or each element of a vector.
    fn combine(
        &self,
        builder: &Builder<'c>,
        mut value: Val<'c>,
        stored: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        if stored.r#type() == self.operator.element {
            return self.operator.combine(builder, value, stored);
        }
        for position in 0..mlir::vector_cells(stored.r#type()) {
            let position = [("static_position", attribute::integers(builder.context, &[position]))];
            let element =
                builder.value("vector.extract", &[stored], self.operator.element, &position)?;
            value = self.operator.combine(builder, value, element)?;
        }
        Ok(value)
    }
}

/// Notes an operation that stores to some buffers, and those around it.
fn note(op: Op, views: &BTreeSet<usize>, around: &mut BTreeSet<usize>) -> bool {
    let mut found = matches!(mlir::name(op), "memref.store" | "vector.store")
        && mlir::operands(op).get(1).is_some_and(|buffer| views.contains(&mlir::key(*buffer)));
    for region in 0..2 {
        for inner in mlir::blocks(op, region).into_iter().flat_map(mlir::operations) {
            found |= note(inner, views, around);
        }
    }
    if found {
        around.insert(address(op));
    }
    found
}

/// The identity of an operation.
fn address(op: Op) -> usize {
    op.to_raw().ptr as usize
}

/// What stands for some values.
fn of<'c>(values: &[Val<'c>], renamed: &Renamed<'c>) -> Vec<Val<'c>> {
    values.iter().map(|value| *renamed.get(&mlir::key(*value)).unwrap_or(value)).collect()
}
