//! The extents and strides of a `memref.reinterpret_cast`, as values or numbers.

use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Op, Val};

/// A value of a run, or a number.
pub type Extent<'c> = Result<Val<'c>, i64>;

/// An entry of a static list that an operand gives.
const DYNAMIC: i64 = i64::MIN;

/// The extents and the strides of a cast, slowest dimension first. The operands behind the source
/// are the run-time offsets, then the extents, then the strides.
pub fn of<'c>(cast: Op<'c>) -> Option<(Vec<Extent<'c>>, Vec<Extent<'c>>)> {
    let list = |name| mlir::attribute(cast, name).and_then(attribute::as_integers);
    let mut open = mlir::operands(cast).into_iter().skip(1);
    let mut filled = |numbers: Vec<i64>| -> Option<Vec<Extent<'c>>> {
        let fill = |number| if number == DYNAMIC { open.next().map(Ok) } else { Some(Err(number)) };
        numbers.into_iter().map(fill).collect()
    };
    filled(list("static_offsets")?)?;
    let extents = filled(list("static_sizes")?)?;
    Some((extents, filled(list("static_strides")?)?))
}
