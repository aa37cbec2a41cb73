//! The number of cells of shaped types.

use melior::ir::r#type::{DimSize, MemRefType};
use melior::ir::{ShapedTypeLike, Type};

/// Cells of a memref of static shape; none for others, and where their number leaves 64 bits.
pub fn static_cells(ty: Type) -> Option<i64> {
    let memref = MemRefType::try_from(ty).ok()?;
    (0..memref.rank()).try_fold(1_i64, |product, dimension| match memref.dim_size(dimension) {
        Ok(DimSize::Static(size)) => product.checked_mul(i64::try_from(size).ok()?),
        _ => None,
    })
}
