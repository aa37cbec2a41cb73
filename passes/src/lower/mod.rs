//! Lowerings of tile kernels to the gpu level, one a strategy.

pub mod block;
pub mod block_limits;
pub mod emit;
pub mod evaluate;
pub mod interior;
pub mod lanes;
pub mod naive;
pub mod pieces;
pub mod shared_memory;
pub mod stream;
pub mod tile_place;
pub mod warp;
