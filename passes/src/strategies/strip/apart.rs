//! Keeps the sums of two reads of one value apart.
//!
//! `h - 1` may be read by the row below at once, and by the same row a time later. Common
//! subexpressions are computed once, and the result feeds a maximum in both rows. A processor of
//! compute capability 9.0 or later adds and takes a maximum in one instruction, but only where
//! nothing else reads the sum. So the row below gets a sum of its own, in which the constant is a
//! register whose value is known at run time alone. A row is then one instruction behind the row
//! above in place of two.

use super::code::Strips;
use super::windows::Kept;
use crate::kernel::tile_place;
use std::collections::BTreeSet;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_runtime::device::Device;

/// Bits of the operands that the instruction takes.
const BITS: u32 = 32;

/// Constants whose negation has the same type.
const LARGEST: u64 = 1 << 30;

/// Zero, as a value that no compiler knows: launches have one layer of blocks. None for a device
/// without the instruction.
pub fn zero<'c>(builder: &Builder<'c>, device: &Device) -> Result<Option<Val<'c>>, Error> {
    if !device.adds_and_compares() {
        return Ok(None);
    }
    let layers = tile_place::number(builder, "gpu.grid_dim", "z")?;
    let zero = builder.add_constant(layers, -1)?;
    builder.value("arith.index_cast", &[zero], builder.integer_type(BITS), &[]).map(Some)
}

impl<'c> Strips<'c, '_> {
    /// Rewrites sums of a constant and a value of the same time, which minima and maxima read, in
    /// the operations of a block from a place on. `values` are what they compute.
    pub fn keep_apart(
        &self,
        builder: &Builder<'c>,
        from: usize,
        (kept, values): (&[Kept<'c>], &[Val<'c>]),
    ) -> Result<(), Error> {
        let Some(zero) = self.zero else { return Ok(()) };
        let newest: BTreeSet<usize> =
            kept.iter().flat_map(Kept::of_this_time).map(|value| mlir::key(*value)).collect();
        let operations: Vec<_> = mlir::operations(builder.block).into_iter().skip(from).collect();
        let extremes = operations.iter().filter(|op| is_extreme(**op));
        let compared: BTreeSet<usize> =
            extremes.flat_map(|op| mlir::operands(*op)).map(mlir::key).collect();
        for op in operations.iter().copied() {
            let results = mlir::results(op);
            let Some(result) = results.first().filter(|sum| compared.contains(&mlir::key(**sum)))
            else {
                continue;
            };
            let Some((value, constant)) = sum(op, &operations) else { continue };
            // The function may return a sum.
            if !newest.contains(&mlir::key(value)) || values.contains(result) {
                continue;
            }
            let known = mlir::operations(builder.block).len();
            let constant = builder.constant(builder.integer_type(BITS), constant)?;
            let hidden = builder.add(constant, zero)?;
            let own = builder.add(value, hidden)?;
            // The new operations stand at the end of the block.
            for new in mlir::operations(builder.block).into_iter().skip(known) {
                mlir::move_before(new, op);
            }
            mlir::replace_uses(*result, own);
            mlir::erase(op);
        }
        Ok(())
    }
}

/// The value and the constant of which an operation is the sum.
fn sum<'c>(op: Op<'c>, operations: &[Op<'c>]) -> Option<(Val<'c>, i64)> {
    let &[left, right] = mlir::operands(op).as_slice() else { return None };
    let constant = |value: Val<'c>| {
        let defines = |op: &&Op<'c>| mlir::results(**op).first() == Some(&value);
        let op = operations.iter().find(defines)?;
        let value = mlir::attribute(*op, "value").and_then(attribute::as_integer)?;
        let small = mlir::name(*op) == "arith.constant" && value.unsigned_abs() < LARGEST;
        small.then_some(value)
    };
    if mlir::bit_width(melior::ir::ValueLike::r#type(&left)) != Some(BITS) {
        return None;
    }
    match mlir::name(op) {
        "arith.subi" => Some((left, -constant(right)?)),
        "arith.addi" => constant(right)
            .map(|constant| (left, constant))
            .or_else(|| Some((right, constant(left)?))),
        _ => None,
    }
}

/// Whether an operation is a minimum or maximum of integers.
fn is_extreme(op: Op) -> bool {
    matches!(mlir::name(op), "arith.maxsi" | "arith.minsi" | "arith.maxui" | "arith.minui")
}
