//! Plants errors in correct kernels, to prove that the simulator finds them.
//!
//! A [`Mutation`] changes the IR of a gpu-level module in one place, as a wrong lowering would: a
//! barrier is left out, a halo is one cell too small, a signal is forgotten. Each is a small edit
//! of the operation that [`Mutation::plant`] finds, counted in the order of the text.

use melior::Context;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::{
    AffineExpr, AffineMap, Attribute, Identifier, Module, Region, RegionLike, Type, ValueLike,
};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A field's buffer.
    Global,
    /// A shared buffer.
    Shared,
}

/// An error to plant; numbers count operations of their kind from 0, from the end where negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Leaves out a barrier.
    DropBarrier(isize),
    /// Only some threads reach a barrier.
    DivergentBarrier(isize),
    /// A loop over cells ends early: the region is smaller than the next apply needs.
    ShrinkLoop(isize),
    /// A loop over cells runs on.
    GrowLoop(isize),
    /// A loop takes every second round only.
    DoubleStep(isize),
    /// The last two indices of a load are exchanged.
    SwapLoadIndices(Space, isize),
    /// The last two indices of a store are exchanged.
    SwapStoreIndices(Space, isize),
    /// A load reads the next cell.
    ShiftLoad(Space, isize),
    /// A store writes the next cell.
    ShiftStore(Space, isize),
    /// A store is left out.
    DropStore(Space, isize),
    /// The condition around some operations is always true.
    OpenGuard(isize),
    /// The condition around some operations is always false.
    CloseGuard(isize),
    /// The distance of rows in a buffer is one too small.
    WrongPitch(isize),
    /// The kernel reads the buffer that it writes.
    ReadOutput,
    /// The kernel writes the buffer that it reads.
    WriteInput,
    /// Two shared buffers become one.
    AliasShared,
    /// The launch has a block too few.
    ShortGrid,
    /// Tiles start a cell too close to each other.
    WrongOrigin,
    /// Thread numbers of x and y are exchanged.
    SwapThreads,
    /// A signal is left out.
    DropSignal,
    /// A wait is left out.
    DropWait,
    /// A signal is a plain store.
    WeakenRelease,
    /// A wait is for the next flag.
    WrongFlag,
    /// A wait is for a later epoch.
    LateEpoch,
}

impl Mutation {
    /// Plants the error; false where the module has no such place.
    pub fn plant<'c>(self, context: &'c Context, module: &Module<'c>) -> Result<bool, Error> {
        let editor = Editor { context, kernels: mlir::walk(mlir::module_op(module)) };
        Ok(editor.plant(self)?.is_some())
    }
}

struct Editor<'c> {
    context: &'c Context,
    kernels: Vec<Op<'c>>,
}

type Planted = Result<Option<()>, Error>;

impl<'c> Editor<'c> {
    fn plant(&self, mutation: Mutation) -> Planted {
        match mutation {
            Mutation::DropBarrier(place) => self.erase(self.nth("gpu.barrier", place)),
            Mutation::DivergentBarrier(place) => self.diverge(place),
            Mutation::ShrinkLoop(place) => self.shift_operand(self.nth("scf.for", place), 1, -1),
            Mutation::GrowLoop(place) => self.shift_operand(self.nth("scf.for", place), 1, 1),
            Mutation::DoubleStep(place) => {
                let Some(op) = self.nth("scf.for", place) else { return Ok(None) };
                let Ok(step) = op.operand(2) else { return Ok(None) };
                let doubled = self.before(
                    op,
                    "arith.addi",
                    &[mlir::value(step), mlir::value(step)],
                    self.index(),
                    &[],
                )?;
                mlir::set_operand(op, 2, doubled);
                Ok(Some(()))
            }
            Mutation::SwapLoadIndices(space, place) => {
                Ok(self.access("memref.load", 0, space, place).and_then(|op| swap(op, 1)))
            }
            Mutation::SwapStoreIndices(space, place) => {
                Ok(self.access("memref.store", 1, space, place).and_then(|op| swap(op, 2)))
            }
            Mutation::ShiftLoad(space, place) => {
                let op = self.access("memref.load", 0, space, place);
                self.shift_operand(op, op.map_or(0, |op| op.operand_count().saturating_sub(1)), 1)
            }
            Mutation::ShiftStore(space, place) => {
                let op = self.access("memref.store", 1, space, place);
                self.shift_operand(op, op.map_or(0, |op| op.operand_count().saturating_sub(1)), 1)
            }
            Mutation::DropStore(space, place) => {
                self.erase(self.access("memref.store", 1, space, place))
            }
            Mutation::OpenGuard(place) => self.guard(place, true),
            Mutation::CloseGuard(place) => self.guard(place, false),
            Mutation::WrongPitch(place) => {
                let op = self.nth("memref.reinterpret_cast", place);
                self.shift_operand(op, op.map_or(0, |op| op.operand_count().saturating_sub(1)), -1)
            }
            Mutation::ReadOutput => Ok(self
                .buffers("read", "write")
                .map(|(read, write)| mlir::replace_uses(read, write))),
            Mutation::WriteInput => Ok(self
                .buffers("write", "read")
                .map(|(write, read)| mlir::replace_uses(write, read))),
            Mutation::AliasShared => self.alias(),
            Mutation::ShortGrid => Ok(self.short_grid()),
            Mutation::WrongOrigin => self.wrong_origin(),
            Mutation::SwapThreads => Ok(self.swap_threads()),
            Mutation::DropSignal => self.erase(self.nth("peer.signal", 0)),
            Mutation::DropWait => self.erase(self.nth("peer.wait", 0)),
            Mutation::WeakenRelease => self.weaken(),
            Mutation::WrongFlag => self.shift_operand(self.nth("peer.wait", 0), 1, 1),
            Mutation::LateEpoch => {
                let Some(op) = self.nth("peer.wait", 0) else { return Ok(None) };
                let Ok(epoch) = op.operand(2) else { return Ok(None) };
                let ty = epoch.r#type();
                let one = self.before(
                    op,
                    "arith.constant",
                    &[],
                    ty,
                    &[("value", IntegerAttribute::new(ty, 1).into())],
                )?;
                let late = self.before(op, "arith.addi", &[mlir::value(epoch), one], ty, &[])?;
                mlir::set_operand(op, 2, late);
                Ok(Some(()))
            }
        }
    }

    fn index(&self) -> Type<'c> {
        Type::index(self.context)
    }

    fn pick(found: Vec<Op<'c>>, place: isize) -> Option<Op<'c>> {
        let place = if place < 0 {
            found.len().checked_sub(place.unsigned_abs())?
        } else {
            place.unsigned_abs()
        };
        found.get(place).copied()
    }

    fn nth(&self, name: &str, place: isize) -> Option<Op<'c>> {
        Self::pick(
            self.kernels.iter().copied().filter(|op| mlir::name(*op) == name).collect(),
            place,
        )
    }

    /// An access whose operand `memref` lies in the given space.
    fn access(&self, name: &str, memref: usize, space: Space, place: isize) -> Option<Op<'c>> {
        let of_space = |op: &Op<'c>| {
            let shared = op
                .operand(memref)
                .is_ok_and(|memref| memref.r#type().to_string().contains("workgroup"));
            mlir::name(*op) == name && shared == (space == Space::Shared)
        };
        Self::pick(self.kernels.iter().copied().filter(of_space).collect(), place)
    }

    /// Inserts an operation with one result before another.
    fn before(
        &self,
        op: Op<'c>,
        name: &str,
        operands: &[Val<'c>],
        result: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Val<'c>, Error> {
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, attribute)| (Identifier::new(self.context, name), *attribute))
            .collect();
        let new = OperationBuilder::new(name, op.location())
            .add_operands(operands)
            .add_results(&[result])
            .add_attributes(&attributes)
            .build()
            .map_err(|error| Error::internal(error.to_string()))?;
        let block = op.block().ok_or_else(|| Error::internal("an operation outside any block"))?;
        let inserted = mlir::op(block.insert_operation_before(op, new));
        mlir::results(inserted)
            .first()
            .copied()
            .ok_or_else(|| Error::internal("an operation without a result"))
    }

    fn constant(&self, op: Op<'c>, ty: Type<'c>, value: i64) -> Result<Val<'c>, Error> {
        self.before(
            op,
            "arith.constant",
            &[],
            ty,
            &[("value", IntegerAttribute::new(ty, value).into())],
        )
    }

    fn shift_operand(&self, op: Option<Op<'c>>, operand: usize, by: i64) -> Planted {
        let Some((op, value)) =
            op.and_then(|op| Some((op, mlir::value(op.operand(operand).ok()?))))
        else {
            return Ok(None);
        };
        let by = self.constant(op, self.index(), by)?;
        let shifted = self.before(op, "arith.addi", &[value, by], self.index(), &[])?;
        mlir::set_operand(op, operand, shifted);
        Ok(Some(()))
    }

    fn erase(&self, op: Option<Op<'c>>) -> Planted {
        Ok(op.map(mlir::erase))
    }

    fn guard(&self, place: isize, open: bool) -> Planted {
        let Some(op) = self.nth("scf.if", place) else { return Ok(None) };
        let condition = self.constant(
            op,
            melior::ir::r#type::IntegerType::new(self.context, 1).into(),
            i64::from(open),
        )?;
        mlir::set_operand(op, 0, condition);
        Ok(Some(()))
    }

    fn diverge(&self, place: isize) -> Planted {
        let Some(op) = self.nth("gpu.barrier", place) else { return Ok(None) };
        let dimension = Attribute::parse(self.context, "#gpu<dim x>")
            .ok_or_else(|| Error::internal("no gpu dialect"))?;
        let thread =
            self.before(op, "gpu.thread_id", &[], self.index(), &[("dimension", dimension)])?;
        let limit = self.constant(op, self.index(), 7)?;
        let i1 = melior::ir::r#type::IntegerType::new(self.context, 1).into();
        let few = self.before(
            op,
            "arith.cmpi",
            &[thread, limit],
            i1,
            &[("predicate", attribute::integer(self.context, 2))],
        )?;
        let build = |name: &str| OperationBuilder::new(name, op.location());
        let internal = |error: melior::Error| Error::internal(error.to_string());
        let region = Region::new();
        let body = region.append_block(melior::ir::Block::new(&[]));
        body.append_operation(build("gpu.barrier").build().map_err(internal)?);
        body.append_operation(build("scf.yield").build().map_err(internal)?);
        let guarded = build("scf.if")
            .add_operands(&[few])
            .add_regions([region, Region::new()])
            .build()
            .map_err(internal)?;
        if let Some(block) = op.block() {
            block.insert_operation_before(op, guarded);
        }
        mlir::erase(op);
        Ok(Some(()))
    }

    /// The first buffers of one field with these two bindings, in one kernel.
    fn buffers(&self, first: &str, second: &str) -> Option<(Val<'c>, Val<'c>)> {
        self.kernels.iter().filter(|op| mlir::name(**op) == "gpu.func").find_map(|op| {
            let bound = attribute::as_array(mlir::attribute(*op, "arg_attrs")?)?;
            let arguments = mlir::arguments(mlir::entry(*op)?);
            let text = |argument: Attribute<'c>, name| {
                attribute::entry(argument, name).and_then(attribute::as_string)
            };
            let all: Vec<_> = bound
                .iter()
                .zip(arguments)
                .map(|(bound, value)| {
                    (text(*bound, "tiled.binding"), text(*bound, "tiled.name"), value)
                })
                .collect();
            all.iter().find_map(|(binding, field, value)| {
                let other =
                    all.iter().find(|(other, name, _)| *other == Some(second) && name == field)?;
                (*binding == Some(first)).then_some((*value, other.2))
            })
        })
    }

    /// The second shared buffer of a kernel becomes the first, seen through its own shape.
    fn alias(&self) -> Planted {
        let shared = |op: Op<'c>| {
            let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
            arguments
                .into_iter()
                .filter(|value| value.r#type().to_string().contains("workgroup"))
                .collect::<Vec<_>>()
        };
        for op in self.kernels.iter().copied().filter(|op| mlir::name(*op) == "gpu.func") {
            let mut buffers = shared(op);
            buffers.sort_by_key(|buffer| std::cmp::Reverse(cells(&buffer.r#type().to_string())));
            let ([large, small, ..], Some(entry)) = (buffers.as_slice(), mlir::entry(op)) else {
                continue;
            };
            let Some(first) = mlir::operations(entry).first().copied() else { continue };
            let ty = small.r#type();
            let extents = extents(&ty.to_string());
            let strides: Vec<_> = (0..extents.len())
                .map(|place| extents.iter().skip(place + 1).product::<i64>())
                .collect();
            let list =
                |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let text = ty.to_string();
            let layout =
                text.replacen(", #gpu", &format!(", strided<[{}]>, #gpu", list(&strides)), 1);
            let layout = Type::parse(self.context, &layout)
                .ok_or_else(|| Error::internal(format!("{layout} is no type")))?;
            let attributes = [
                ("static_offsets", attribute::integers(self.context, &[0])),
                ("static_sizes", attribute::integers(self.context, &extents)),
                ("static_strides", attribute::integers(self.context, &strides)),
                ("operandSegmentSizes", attribute::integers32(self.context, &[1, 0, 0, 0])),
            ];
            let view =
                self.before(first, "memref.reinterpret_cast", &[*large], layout, &attributes)?;
            let same = self.before(first, "memref.cast", &[view], ty, &[])?;
            mlir::replace_uses(*small, same);
            return Ok(Some(()));
        }
        Ok(None)
    }

    fn short_grid(&self) -> Option<()> {
        let op = self.nth("gpu.func", 0)?;
        let map = attribute::as_map(mlir::attribute(op, "tiled.grid")?)?;
        let less = map.result(0).ok()? + AffineExpr::constant(self.context, -1);
        let map = AffineMap::new(self.context, map.dim_count(), map.symbol_count(), &[less]);
        mlir::set_attribute(op, "tiled.grid", mlir::map_attribute(map));
        Some(())
    }

    fn wrong_origin(&self) -> Planted {
        self.shift_operand(self.nth("arith.muli", 1), 1, -1)
    }

    fn swap_threads(&self) -> Option<()> {
        let (first, second) = (self.nth("gpu.thread_id", 0)?, self.nth("gpu.thread_id", 1)?);
        let (a, b) = (mlir::attribute(first, "dimension")?, mlir::attribute(second, "dimension")?);
        mlir::set_attribute(first, "dimension", b);
        mlir::set_attribute(second, "dimension", a);
        Some(())
    }

    fn weaken(&self) -> Planted {
        let Some(op) = self.nth("peer.signal", 0) else { return Ok(None) };
        let operands = mlir::operands(op);
        let [flags, index, epoch] = operands.as_slice() else { return Ok(None) };
        let store = OperationBuilder::new("memref.store", op.location())
            .add_operands(&[*epoch, *flags, *index])
            .build();
        if let Some(block) = op.block() {
            block.insert_operation_before(
                op,
                store.map_err(|error| Error::internal(error.to_string()))?,
            );
        }
        mlir::erase(op);
        Ok(Some(()))
    }
}

fn swap(op: Op, first: usize) -> Option<()> {
    let count = op.operand_count();
    if count < first + 2 {
        return None;
    }
    let (a, b) =
        (mlir::value(op.operand(count - 2).ok()?), mlir::value(op.operand(count - 1).ok()?));
    mlir::set_operand(op, count - 2, b);
    mlir::set_operand(op, count - 1, a);
    Some(())
}

/// The extents in a type's text: `memref<18x34xf32, ...>`.
fn extents(ty: &str) -> Vec<i64> {
    let shape =
        ty.split_once('<').map_or("", |(_, rest)| rest).split(',').next().unwrap_or_default();
    shape.split('x').map_while(|part| part.parse().ok()).collect()
}

fn cells(ty: &str) -> i64 {
    extents(ty).iter().product()
}
