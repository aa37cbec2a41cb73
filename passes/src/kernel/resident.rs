//! Kernels whose blocks are all on the device at once. Each block takes tile rows in turn.

use super::function::{self, KernelFunction};
use super::signature::Signature;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{AffineExpr, Attribute};
use stencil_dialects::affine::symbolic;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{self, Binding, Kernel};

/// The blocks of a resident kernel.
pub struct Blocks<'c, 's> {
    /// Tile rows, with a flag each.
    pub rows: AffineExpr<'c>,
    /// Threads of a block.
    pub threads: i64,
    /// Blocks that a multiprocessor runs at once.
    pub per_multiprocessor: i64,
    /// Shared buffers.
    pub shared: &'s [MemRefType<'c>],
}

/// Builds a kernel's function, with arguments for flags and epoch. Returns it with its number of
/// blocks.
pub fn build<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    blocks: &Blocks<'c, '_>,
) -> Result<(KernelFunction<'c>, i64), Error> {
    let outer = function::container(context, subject.module, kernel.op.location())?;
    let more = [Binding::Flags, Binding::Epoch];
    let signature = Signature::of(&outer, subject.module, subject.program, kernel, false, &more)?;
    let resident = blocks.per_multiprocessor * i64::from(subject.device.multiprocessors);
    let known = blocks.rows.is_constant().then(|| blocks.rows.constant_value().max(1));
    let count = known.map_or(resident, |rows| rows.min(resident));
    let map = |count| symbolic(context, subject.program.params.len(), &[count]);
    let block = [i32::try_from(blocks.threads).unwrap_or(i32::MAX), 1, 1];
    let grid = (map(AffineExpr::constant(context, count)), None);
    let mut attributes = tiled::launch_attributes(&outer, grid, block, &kernel.schedule);
    attributes.push(tiled::flags_attribute(map(blocks.rows)));
    attributes.push(("sym_name", attribute::string(context, kernel.name)));
    attributes.push(("gpu.kernel", Attribute::unit(context)));
    let minimum = attribute::integer(context, blocks.per_multiprocessor);
    attributes.push(("nvvm.minctasm", minimum));
    attributes.extend(tiled::rotations_attribute(kernel.op));
    let made = function::build(&outer, subject, &signature, attributes, blocks.shared)?;
    Ok((made, count))
}
