//! Kernels whose blocks take tile rows in turn. All blocks are on the device at once, or a launch
//! is repeated.

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
    /// Tile rows.
    pub rows: AffineExpr<'c>,
    /// Threads of a block.
    pub threads: i64,
    /// Blocks that a multiprocessor runs at once.
    pub per_multiprocessor: i64,
    /// The most blocks of a launch; none for as many as multiprocessors run at once.
    pub most: Option<i64>,
    /// How they meet.
    pub meeting: Meeting<'c>,
    /// Shared buffers.
    pub shared: &'s [MemRefType<'c>],
    /// Whether the kernel updates its fields in place.
    pub in_place: bool,
}

/// How the blocks of a kernel meet.
#[derive(Clone, Copy)]
pub enum Meeting<'c> {
    /// By so many flags, which count from an epoch on.
    Flags(AffineExpr<'c>),
    /// By so many counters, which nobody clears.
    Counter(AffineExpr<'c>),
    /// By the end of a launch, of which there are so many.
    Launches(AffineExpr<'c>),
}

/// Builds a kernel's function, with arguments for how blocks meet. Returns it with its number of
/// blocks at most where they meet in a launch.
pub fn build<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    blocks: &Blocks<'c, '_>,
) -> Result<(KernelFunction<'c>, i64), Error> {
    let outer = function::container(context, subject.module, kernel.op.location())?;
    let more: &[Binding] = match blocks.meeting {
        Meeting::Flags(_) => &[Binding::Flags, Binding::Epoch],
        Meeting::Counter(_) => &[Binding::Flags],
        Meeting::Launches(_) => &[Binding::Turn],
    };
    // A buffer that is handed on has another in its place.
    let in_place = blocks.in_place && tiled::rotations(kernel.op)?.is_empty();
    let signature = Signature::of(&outer, subject.module, subject.program, kernel, in_place, more)?;
    let resident = blocks.per_multiprocessor * i64::from(subject.device.multiprocessors);
    let resident = blocks.most.map_or(resident, |most| most.min(resident));
    let known = blocks.rows.is_constant().then(|| blocks.rows.constant_value().max(1));
    let count = known.map_or(resident, |rows| rows.min(resident));
    let map = |count| symbolic(context, subject.program.params.len(), &[count]);
    let block = [i32::try_from(blocks.threads).unwrap_or(i32::MAX), 1, 1];
    let grid = match (blocks.meeting, blocks.most) {
        // Blocks that do not wait for each other need not all have room.
        (Meeting::Launches(_), None) => blocks.rows,
        _ => AffineExpr::constant(context, count),
    };
    let grid = (map(grid), None);
    let mut attributes = tiled::launch_attributes(&outer, grid, block, &kernel.schedule);
    attributes.push(match blocks.meeting {
        Meeting::Flags(count) | Meeting::Counter(count) => tiled::flags_attribute(map(count)),
        Meeting::Launches(count) => tiled::turns_attribute(map(count)),
    });
    attributes.push(("sym_name", attribute::string(context, kernel.name)));
    attributes.push(("gpu.kernel", Attribute::unit(context)));
    let minimum = attribute::integer(context, blocks.per_multiprocessor);
    attributes.push(("nvvm.minctasm", minimum));
    attributes.extend(tiled::sweeps_attribute(&outer, &kernel.wave));
    attributes.extend(tiled::rotations_attribute(kernel.op));
    let made = function::build(&outer, subject, &signature, attributes, blocks.shared)?;
    Ok((made, count))
}
