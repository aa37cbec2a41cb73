//! Registers of a lane of a relay, by the estimate of streams.

use crate::kernel::lanes::WARP;
use crate::strategies::stream::pipeline::Pipeline;
use crate::strategies::stream::registers;
use stencil_runtime::device::Device;

/// Registers of a lane of some cells, each of so many registers, estimated. Rows come from shared
/// memory in their turn, so none wait.
pub fn estimate(pipeline: &Pipeline, (width, words): (i64, i64)) -> i64 {
    pipeline.registers - pipeline.ahead * width * words
}

/// Registers of a lane by the estimate, for cells of one register and of two: with more of them
/// kernels spill so much that they lose (decision 047).
pub fn budget(words: i64) -> i64 {
    if words > 1 { 250 } else { 220 }
}

/// Registers by the estimate for which ptxas finds room beyond those of a lane, at the cost of
/// spills.
const SPILLED: i64 = 30;

/// The most registers of a lane by the estimate, with so many warps a block.
pub fn most(warps: i64, device: &Device) -> i64 {
    registers::limit(i64::from(device.registers_per_thread), warps * WARP, device) + SPILLED
}
