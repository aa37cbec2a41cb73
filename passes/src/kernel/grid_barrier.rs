//! A barrier of all blocks of a launch, by one counter in global memory that nobody clears.
//!
//! All blocks together add a fixed power of two: each block but the first adds 1, and the first
//! adds the rest. The counter is therefore a multiple of this power between barriers, also when it
//! wraps. From the value at its arrival a block knows which multiple to wait for. One thread of a
//! block arrives and waits for the others.

use super::peers;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::peer;

/// A barrier of the blocks of a launch.
pub struct GridBarrier<'c> {
    counter: Val<'c>,
    /// What the block adds.
    share: Val<'c>,
    /// What all blocks add together.
    whole: i64,
}

impl<'c> GridBarrier<'c> {
    /// The barrier of so many blocks, of which this is one; there are at most `most`.
    pub fn new(
        builder: &Builder<'c>,
        counter: Val<'c>,
        (block, blocks): (Val<'c>, Val<'c>),
        most: i64,
    ) -> Result<Self, Error> {
        let i32_type = builder.integer_type(32);
        let whole = most.max(1).unsigned_abs().next_power_of_two().cast_signed();
        let others = builder.add_constant(blocks, -1)?;
        let left = builder.binary("arith.subi", builder.index(whole)?, others)?;
        let leads = builder.compare(Compare::Eq, block, builder.index(0)?)?;
        let share = builder.select(leads, left, builder.index(1)?)?;
        let share = builder.value("arith.index_cast", &[share], i32_type, &[])?;
        let counter = peers::flags(builder, counter, builder.index(1)?)?;
        Ok(Self { counter, share, whole })
    }

    /// All blocks meet. What their threads did before a barrier of their block, all see after it.
    pub fn meet(&self, builder: &Builder<'c>, thread: Val<'c>) -> Result<(), Error> {
        let zero = builder.index(0)?;
        let first = builder.compare(Compare::Eq, thread, zero)?;
        builder.when(first, |builder| {
            let whole = |sign: i64| builder.constant(builder.integer_type(32), sign * self.whole);
            let before = peer::arrive(builder, self.counter, zero, self.share)?;
            let done = builder.binary("arith.andi", before, whole(-1)?)?;
            let goal = builder.add(done, whole(1)?)?;
            peer::wait(builder, self.counter, zero, goal).map(|_| ())
        })?;
        builder.op("gpu.barrier", &[], &[], &[]).map(|_| ())
    }
}
