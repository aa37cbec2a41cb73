//! Keywords of types of numbers, and cells of shaped types.

use super::{bit_width, is_bf16};
use melior::ir::r#type::{DimSize, IntegerType, MemRefType};
use melior::ir::{ShapedTypeLike, Type, TypeLike};

/// Cells of a memref of static shape; none for others, and where their number leaves 64 bits.
pub fn static_cells(ty: Type) -> Option<i64> {
    let memref = MemRefType::try_from(ty).ok()?;
    (0..memref.rank()).try_fold(1_i64, |product, dimension| match memref.dim_size(dimension) {
        Ok(DimSize::Static(size)) => product.checked_mul(i64::try_from(size).ok()?),
        _ => None,
    })
}

/// The keyword of a type of numbers, such as `i32`, `bf16` or `index`; none for others.
pub fn number_keyword(ty: Type) -> Option<&'static str> {
    if ty.is_index() {
        return Some("index");
    }
    if let Ok(integer) = IntegerType::try_from(ty) {
        return match (integer.is_signless(), integer.width()) {
            (true, 1) => Some("i1"),
            (true, 8) => Some("i8"),
            (true, 16) => Some("i16"),
            (true, 32) => Some("i32"),
            (true, 64) => Some("i64"),
            _ => None,
        };
    }
    match bit_width(ty)? {
        16 if is_bf16(ty) => Some("bf16"),
        16 => Some("f16"),
        32 => Some("f32"),
        64 => Some("f64"),
        _ => None,
    }
}
