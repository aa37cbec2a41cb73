//! Finds operations, and changes them.

use super::{Planted, Space};
use melior::Context;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::{Attribute, Identifier, Region, RegionLike, Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// Loads, and the place of their buffer among their operands.
pub const LOADS: (&[&str], usize) = (&["memref.load", "vector.load"], 0);
/// Stores, likewise.
pub const STORES: (&[&str], usize) = (&["memref.store", "vector.store"], 1);

/// The operations of a module, in the order of its text.
pub struct Editor<'c> {
    pub context: &'c Context,
    pub all: Vec<Op<'c>>,
}

impl<'c> Editor<'c> {
    pub fn index(&self) -> Type<'c> {
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

    /// An operation of a name that passes a test.
    pub fn nth_where(
        &self,
        name: &str,
        place: isize,
        passes: impl Fn(Op<'c>) -> bool,
    ) -> Option<Op<'c>> {
        let found = self.all.iter().copied();
        Self::pick(found.filter(|op| mlir::name(*op) == name && passes(*op)).collect(), place)
    }

    /// An operation of a name.
    pub fn nth(&self, name: &str, place: isize) -> Option<Op<'c>> {
        self.nth_where(name, place, |_| true)
    }

    /// An operation of a name that computes an index.
    pub fn nth_index(&self, name: &str, place: isize) -> Option<Op<'c>> {
        let index = self.index();
        let of_index = |value: &Val<'c>| value.r#type() == index;
        self.nth_where(name, place, |op| mlir::results(op).first().is_some_and(of_index))
    }

    /// A load or a store in the given space.
    pub fn access(
        &self,
        (names, memref): (&[&str], usize),
        space: Space,
        place: isize,
    ) -> Option<Op<'c>> {
        let of_space = |op: &Op<'c>| {
            let shared = op
                .operand(memref)
                .is_ok_and(|memref| memref.r#type().to_string().contains("workgroup"));
            names.contains(&mlir::name(*op)) && shared == (space == Space::Shared)
        };
        Self::pick(self.all.iter().copied().filter(of_space).collect(), place)
    }

    /// The operation that makes a value.
    pub fn maker(&self, value: Val<'c>) -> Option<Op<'c>> {
        let makes = |op: &Op<'c>| {
            mlir::results(*op).iter().any(|result| mlir::key(*result) == mlir::key(value))
        };
        self.all.iter().copied().find(makes)
    }

    /// The arguments of all kernels that are bound so.
    pub fn bound(&self, binding: &str) -> Vec<(Op<'c>, Val<'c>)> {
        let mut found = Vec::new();
        for op in self.all.iter().copied().filter(|op| mlir::name(*op) == "gpu.func") {
            let bound = mlir::attribute(op, "arg_attrs").and_then(attribute::as_array);
            let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
            for (bound, value) in bound.unwrap_or_default().into_iter().zip(arguments) {
                let found_binding =
                    attribute::entry(bound, "tiled.binding").and_then(attribute::as_string);
                if found_binding == Some(binding) {
                    found.push((op, value));
                }
            }
        }
        found
    }

    /// An operation without results and attributes happens only where a condition holds.
    pub fn replace_where(&self, op: Op<'c>, condition: Val<'c>) -> Planted {
        let build = |name: &str| OperationBuilder::new(name, op.location());
        let internal = |error: melior::Error| Error::internal(error.to_string());
        let region = Region::new();
        let body = region.append_block(melior::ir::Block::new(&[]));
        let name = mlir::name(op);
        let same = build(name).add_operands(&mlir::operands(op)).build().map_err(internal)?;
        body.append_operation(same);
        body.append_operation(build("scf.yield").build().map_err(internal)?);
        let guarded = build("scf.if")
            .add_operands(&[condition])
            .add_regions([region, Region::new()])
            .build()
            .map_err(internal)?;
        if let Some(block) = op.block() {
            block.insert_operation_before(op, guarded);
        }
        mlir::erase(op);
        Ok(Some(()))
    }

    /// Inserts an operation with one result before another.
    pub fn before(
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

    pub fn constant(&self, op: Op<'c>, ty: Type<'c>, value: i64) -> Result<Val<'c>, Error> {
        self.before(
            op,
            "arith.constant",
            &[],
            ty,
            &[("value", IntegerAttribute::new(ty, value).into())],
        )
    }

    /// Adds a number to an operand.
    pub fn shift_operand(&self, op: Option<Op<'c>>, operand: usize, by: i64) -> Planted {
        let Some((op, value)) =
            op.and_then(|op| Some((op, mlir::value(op.operand(operand).ok()?))))
        else {
            return Ok(None);
        };
        let by = self.constant(op, value.r#type(), by)?;
        let shifted = self.before(op, "arith.addi", &[value, by], value.r#type(), &[])?;
        mlir::set_operand(op, operand, shifted);
        Ok(Some(()))
    }

    /// Adds a number to the last index of an access.
    pub fn shift_last(&self, op: Option<Op<'c>>, by: i64) -> Planted {
        self.shift_operand(op, op.map_or(0, |op| op.operand_count().saturating_sub(1)), by)
    }

    /// Leaves an operation out.
    pub fn erase(&self, op: Option<Op<'c>>) -> Planted {
        Ok(op.map(mlir::erase))
    }

    /// Leaves an operation out, whose result becomes one of its operands.
    pub fn bypass(&self, op: Option<Op<'c>>, operand: usize) -> Option<()> {
        let op = op?;
        let value = mlir::value(op.operand(operand).ok()?);
        mlir::replace_uses(mlir::results(op).first().copied()?, value);
        Some(())
    }
}

/// Exchanges two operands.
pub fn swap(op: Op, (first, second): (usize, usize)) -> Option<()> {
    let (a, b) = (mlir::value(op.operand(first).ok()?), mlir::value(op.operand(second).ok()?));
    mlir::set_operand(op, first, b);
    mlir::set_operand(op, second, a);
    Some(())
}

/// Exchanges the last two indices of an access whose indices begin at `first`.
pub fn swap_indices(op: Op, first: usize) -> Option<()> {
    let count = op.operand_count();
    if count < first + 2 { None } else { swap(op, (count - 2, count - 1)) }
}
