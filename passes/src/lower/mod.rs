//! Lowerings of tile kernels to the gpu level, one a strategy, and what
//! the gpu level says in other words further down.

pub mod block;
pub mod block_limits;
pub mod convert_prefetch_to_nvvm;
pub mod emit;
pub mod evaluate;
pub mod interior;
pub mod lanes;
pub mod load_constants;
pub mod naive;
pub mod pieces;
pub mod shared_memory;
pub mod stream;
pub mod tile_place;
pub mod warp;
