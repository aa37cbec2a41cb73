//! The places of a kernel's accesses to global memory, and what its loops wait for.

use super::slice::{Origin, Slice};
use super::{Access, Body, Moved, Place, Step, Stride};
use crate::analysis::cast_layout;
use crate::analysis::lane_values;
use crate::analysis::operation_cost::LOOP;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_runtime::device::WIDEST_ACCESS;

/// Iterations of a loop with constant bounds that LLVM or ptxas unroll, in whole or in parts. Tiles
/// of affine loops have no longer ones.
const MOST_UNROLLED: i64 = 128;

/// An access to global memory.
pub(super) struct Accessed<'c> {
    buffer: Val<'c>,
    indices: Vec<Val<'c>>,
    is_store: bool,
    element: u64,
    elements: u64,
    /// Elements that one instruction accesses.
    together: u64,
}

impl Accessed<'_> {
    pub(super) fn moved(&self) -> Moved {
        let bytes = self.element * self.elements;
        let [loaded, stored] = if self.is_store { [0, bytes] } else { [bytes, 0] };
        Moved { loaded, stored }
    }
}

/// What an operation accesses in global memory; none for other operations.
pub(super) fn accessed(op: Op) -> Option<Accessed> {
    let operands = mlir::operands(op);
    let number = |name| mlir::attribute(op, name).and_then(attribute::as_integer);
    let result = || mlir::results(op).first().copied();
    let (place, elements) = match mlir::name(op) {
        "memref.load" => (0, 1),
        "vector.load" => (0, mlir::vector_cells(result()?.r#type())),
        "memref.store" => (1, 1),
        "vector.store" => (1, mlir::vector_cells(operands.first()?.r#type())),
        // It loads what it stores to shared memory.
        "nvgpu.device_async_copy" => {
            let source = operands.iter().skip(1).position(|value| is_global(value.r#type()))?;
            (source + 1, number("dstElements")?)
        }
        _ => return None,
    };
    let buffer = *operands.get(place)?;
    let memref = MemRefType::try_from(buffer.r#type()).ok()?;
    if !is_global(buffer.r#type()) {
        return None;
    }
    let indices = operands.get(place + 1..)?.iter().take(memref.rank()).copied().collect();
    let element = u64::from(mlir::bit_width(memref.element())?.div_ceil(8));
    let elements = u64::try_from(elements).ok()?;
    let bytes = element.saturating_mul(elements);
    let alignment = match mlir::name(op).starts_with("vector.") {
        true => number("alignment").and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
        // Copies are aligned by themselves.
        false => bytes,
    };
    let width = alignment.max(element).min(bytes).min(WIDEST_ACCESS.into());
    let together = (width / element.max(1)).max(1);
    let is_store = mlir::name(op).ends_with(".store");
    Some(Accessed { buffer, indices, is_store, element, elements, together })
}

/// Whether values of a type lie in global memory.
fn is_global(ty: melior::ir::Type) -> bool {
    MemRefType::try_from(ty).is_ok_and(|memref| memref.memory_space().is_none())
}

impl<'c> Slice<'c> {
    /// The values that an access's place is made of.
    pub(super) fn made_of(&self, accessed: &Accessed<'c>) -> Vec<Val<'c>> {
        let (_, strides) = self.strides(accessed);
        let open = strides.into_iter().flatten().filter_map(Result::ok);
        accessed.indices.iter().copied().chain(open).collect()
    }

    /// The accesses of an operation, with the places of their indices. A vector is one access as
    /// far as its alignment allows.
    pub(super) fn accesses(&self, accessed: &Accessed<'c>) -> Vec<Access> {
        let (argument, strides) = self.strides(accessed);
        let indices: Option<Vec<(Place, Stride)>> = strides.and_then(|strides| {
            let pairs = accessed.indices.iter().zip(strides);
            let placed = pairs.map(|(index, stride)| {
                let stride = match stride {
                    Ok(open) => Stride::Open(self.place(open)?),
                    Err(fixed) => Stride::Fixed(fixed),
                };
                Some((self.place(*index)?, stride))
            });
            placed.collect()
        });
        let Accessed { is_store, element, elements, together, .. } = *accessed;
        let first = |number: u64| (number * together).cast_signed();
        let piece = |number: u64| Access {
            argument,
            is_store,
            element,
            first: first(number),
            elements: together,
            indices: indices.clone(),
        };
        (0..elements / together.max(1)).map(piece).collect()
    }

    /// The argument that an access's array is, and its strides: values or constants.
    fn strides(&self, accessed: &Accessed<'c>) -> (Option<usize>, Option<Strides<'c>>) {
        match self.origins.get(&mlir::key(accessed.buffer)).copied() {
            Some(Origin::Argument(_, number)) => (Some(number), contiguous(accessed.buffer)),
            Some(Origin::Result(cast, _)) if mlir::name(cast) == "memref.reinterpret_cast" => {
                let source = mlir::operands(cast).first().and_then(|source| {
                    match self.origins.get(&mlir::key(*source)).copied() {
                        Some(Origin::Argument(_, number)) => Some(number),
                        _ => None,
                    }
                });
                (source, cast_layout::of(cast).map(|(_, strides)| strides))
            }
            _ => (None, None),
        }
    }

    /// What an iteration of a loop costs beside its operations: its counter, and the wait for a
    /// load from global memory or for the iteration before. Unrolled loops have neither.
    pub(super) fn iteration(&self, op: Op<'c>, body: &mut Body) {
        if self.is_unrolled(op) {
            return;
        }
        body.cost.instructions += LOOP;
        if self.loads(op) {
            body.cost.fetches += 1.0;
        } else if !has_loop(body) {
            body.cost.rounds += 1.0;
        }
    }

    /// Whether the bounds of a loop are constants, and few iterations apart.
    fn is_unrolled(&self, op: Op<'c>) -> bool {
        let constant = |value: &Val<'c>| match self.origins.get(&mlir::key(*value)).copied() {
            Some(Origin::Result(op, _)) => lane_values::constant(op),
            _ => None,
        };
        let bounds: Option<Vec<i64>> = mlir::operands(op).iter().take(3).map(constant).collect();
        match bounds.as_deref() {
            Some([first, last, step]) => {
                last.saturating_sub(*first) <= step.saturating_mul(MOST_UNROLLED)
            }
            _ => false,
        }
    }

    /// Whether an operation's regions load from global memory, not counting loops in them that are
    /// not unrolled.
    fn loads(&self, op: Op<'c>) -> bool {
        (0..op.region_count())
            .flat_map(|region| mlir::blocks(op, region))
            .flat_map(mlir::operations)
            .any(|op| match mlir::name(op) {
                "scf.for" => self.is_unrolled(op) && self.loads(op),
                _ => accessed(op).is_some_and(|found| !found.is_store) || self.loads(op),
            })
    }
}

/// Elements from an index to the next, for each dimension: a value or a constant.
type Strides<'c> = Vec<Result<Val<'c>, i64>>;

/// The strides of a memref whose extents are known and that has no other layout.
fn contiguous<'c>(buffer: Val<'c>) -> Option<Strides<'c>> {
    let memref = MemRefType::try_from(buffer.r#type()).ok()?;
    let extents: Vec<i64> = (0..memref.rank())
        .map(|dimension| match memref.dim_size(dimension).ok()? {
            melior::ir::r#type::DimSize::Static(size) => i64::try_from(size).ok(),
            melior::ir::r#type::DimSize::Dynamic => None,
        })
        .collect::<Option<_>>()
        // The slowest extent does not matter.
        .or_else(|| (memref.rank() <= 1).then(|| vec![1; memref.rank()]))?;
    let behind = |dimension: usize| extents.get(dimension + 1..).unwrap_or_default();
    Some((0..extents.len()).map(|at| Err(behind(at).iter().product())).collect())
}

/// Whether a region has a loop in it.
fn has_loop(body: &Body) -> bool {
    body.steps.iter().any(|step| match step {
        Step::Loop(_) => true,
        Step::Branch(branch) => branch.sides.iter().any(has_loop),
        _ => false,
    })
}
