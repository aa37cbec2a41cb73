//! Types of numbers and cells: bits, keywords, how many cells.

use melior::ir::r#type::{DimSize, MemRefType};
use melior::ir::{ShapedTypeLike, Type, TypeLike};

/// Cells of a memref of static shape; none for others, and where their number leaves 64 bits.
pub fn static_cells(ty: Type) -> Option<i64> {
    let memref = MemRefType::try_from(ty).ok()?;
    (0..memref.rank()).try_fold(1_i64, |product, dimension| match memref.dim_size(dimension) {
        Ok(DimSize::Static(size)) => product.checked_mul(i64::try_from(size).ok()?),
        _ => None,
    })
}

/// The bits of an integer or float type; none for others.
pub fn bit_width(ty: Type) -> Option<u32> {
    // SAFETY: the kind is tested before the width is read.
    unsafe {
        let raw = ty.to_raw();
        if mlir_sys::mlirTypeIsAInteger(raw) {
            Some(mlir_sys::mlirIntegerTypeGetWidth(raw))
        } else if mlir_sys::mlirTypeIsAFloat(raw) {
            Some(mlir_sys::mlirFloatTypeGetWidth(raw))
        } else {
            None
        }
    }
}

/// The keyword of a type of numbers, such as `i32`, `bf16` or `index`; none for others.
pub fn number_keyword(ty: Type) -> Option<&'static str> {
    // SAFETY: the kind is tested before the width is read.
    unsafe {
        let raw = ty.to_raw();
        if mlir_sys::mlirTypeIsAInteger(raw) && mlir_sys::mlirIntegerTypeIsSignless(raw) {
            return match mlir_sys::mlirIntegerTypeGetWidth(raw) {
                1 => Some("i1"),
                8 => Some("i8"),
                16 => Some("i16"),
                32 => Some("i32"),
                64 => Some("i64"),
                _ => None,
            };
        }
        let floats = [
            (mlir_sys::mlirTypeIsAF32(raw), "f32"),
            (mlir_sys::mlirTypeIsAF64(raw), "f64"),
            (mlir_sys::mlirTypeIsAIndex(raw), "index"),
            (mlir_sys::mlirTypeIsAF16(raw), "f16"),
            (mlir_sys::mlirTypeIsABF16(raw), "bf16"),
        ];
        floats.into_iter().find(|(is, _)| *is).map(|(_, keyword)| keyword)
    }
}

/// Cells of a vector of one dimension, `vector<4xf32>`; 1 for other types.
pub fn vector_cells(ty: Type) -> i64 {
    // SAFETY: the kind and the rank are tested before the extent is read.
    unsafe {
        let raw = ty.to_raw();
        if mlir_sys::mlirTypeIsAVector(raw) && mlir_sys::mlirShapedTypeGetRank(raw) == 1 {
            mlir_sys::mlirShapedTypeGetDimSize(raw, 0)
        } else {
            1
        }
    }
}
