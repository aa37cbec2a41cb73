//! The parts that all lowerings of tile kernels share.

pub mod block_limits;
pub mod emit;
pub mod evaluate;
pub mod interior;
pub mod lanes;
pub mod pieces;
pub mod shared_memory;
pub mod tile_place;
