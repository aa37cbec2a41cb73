//! The shared memory of a block: the buffers' types and bytes, how many blocks their room lets a
//! multiprocessor run, and the buffers themselves where they are too large to be declared.

use super::lanes::WIDEST;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, ShapedTypeLike, Type};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled;
use stencil_runtime::device::Device;

/// Blocks that should fit on a multiprocessor at once, as many as its shared memory has room for,
/// and its registers, if each thread has some. Without the number ptxas saves registers for blocks
/// that can't come, and spills.
pub fn resident_blocks(
    threads: &[i64],
    buffers: &[MemRefType],
    registers: i64,
    device: &Device,
) -> i64 {
    let threads = threads.iter().product::<i64>().max(1);
    let room = i64::try_from(device.shared_per_block).unwrap_or(i64::MAX);
    let fitting = room / shared_bytes(buffers).max(1);
    let resident = i64::from(device.registers) / registers;
    (resident / threads).min(fitting).clamp(1, device.blocks_per_multiprocessor.into())
}

/// Bytes to which every shared buffer is aligned: those of the widest access.
pub const BUFFER_ALIGNMENT: i64 = WIDEST;

/// Bytes of all shared buffers, each aligned.
pub fn shared_bytes(buffers: &[MemRefType]) -> i64 {
    buffers.iter().map(buffer_bytes).fold(0, i64::saturating_add)
}

fn buffer_bytes(ty: &MemRefType) -> i64 {
    let element = i64::from(mlir::bit_width(ty.element()).unwrap_or(64).div_ceil(8));
    let cells = mlir::static_cells((*ty).into()).unwrap_or(i64::MAX);
    cells.saturating_mul(element).saturating_add(BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT
        * BUFFER_ALIGNMENT
}

/// `memref<extents x element, #gpu.address_space<workgroup>>`; extents in cells, `i64::MIN` for one
/// that is not static.
pub fn shared_type<'c>(
    builder: &Builder<'c>,
    extents: &[i64],
    element: Type<'c>,
) -> Result<MemRefType<'c>, Error> {
    let space = Attribute::parse(builder.context, "#gpu.address_space<workgroup>")
        .ok_or_else(|| Error::internal("the gpu dialect is not loaded"))?;
    Ok(MemRefType::new(element, extents, None, Some(space)))
}

/// Cuts the buffers out of one dynamic shared buffer.
pub fn dynamic_shared<'c>(
    builder: &Builder<'c>,
    kernel: Op<'c>,
    buffers: &[MemRefType<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    tiled::set_dynamic_shared(builder, kernel, shared_bytes(buffers));
    let bytes = shared_type(builder, &[i64::MIN], builder.integer_type(8))?;
    let all = builder.value("gpu.dynamic_shared_memory", &[], bytes.into(), &[])?;
    let mut offset = 0;
    let mut views = Vec::new();
    for ty in buffers {
        let start = builder.index(offset)?;
        views.push(builder.value("memref.view", &[all, start], (*ty).into(), &[])?);
        offset += buffer_bytes(ty);
    }
    Ok(views)
}
