//! The arrays of a function of affine loops that constant memory can hold: those of which algorithm
//! 1 says that all threads read the same element, to which nothing is stored, and whose size is
//! fixed. Those that come first have the room.

use super::launches::{Function, Launch};
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, ValueLike};
use std::collections::BTreeSet;
use stencil_dialects::mlir;

/// The numbers of these arrays, if constant memory has so many bytes.
pub fn of<'l, 'c: 'l>(
    function: &Function<'c, '_>,
    launches: impl Iterator<Item = &'l Launch<'c>>,
    mut room: u64,
) -> BTreeSet<usize> {
    let mut found: BTreeSet<usize> =
        launches.flat_map(|launch| &launch.constant).copied().collect();
    let accesses = function.text.accesses.iter().filter(|access| access.reference.write);
    for access in accesses {
        found.remove(&access.reference.array);
    }
    found.retain(|array| {
        let bytes = function.text.arrays.get(*array).and_then(|memref| {
            let ty = MemRefType::try_from(memref.r#type()).ok()?;
            let element = u64::from(mlir::bit_width(ty.element())?.div_ceil(8));
            u64::try_from(mlir::static_cells(ty.into())?).ok()?.checked_mul(element)
        });
        let left = bytes.and_then(|bytes| room.checked_sub(bytes.max(1).next_multiple_of(16)));
        room = left.unwrap_or(room);
        left.is_some()
    });
    found
}
