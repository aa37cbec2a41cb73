//! The parts that all lowerings of tile kernels share.

pub mod block_limits;
pub mod boundary;
pub mod cut;
pub mod early_loads;
pub mod evaluate;
pub mod field_buffers;
pub mod frame;
pub mod function;
pub mod grid_barrier;
pub mod hazards;
pub mod host_function;
pub mod in_flight;
pub mod interior;
pub mod lane_cells;
pub mod lanes;
pub mod launch;
pub mod peers;
pub mod pieces;
pub mod resident;
pub mod scope;
pub mod shared_memory;
pub mod signature;
pub mod tile_ends;
pub mod tile_kernels;
pub mod tile_place;
pub mod total_division;
