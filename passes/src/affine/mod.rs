//! Nests of upstream's `affine` loops over memrefs.

pub mod access_checks;
pub mod arguments;
pub mod array_traffic;
pub mod bound_checks;
mod constant_arrays;
pub mod dependences;
pub mod launches;
pub mod lower_affine_nest;
pub mod mapping;
pub mod nest;
mod nest_frame;
mod nest_kernel;
pub mod shared_tiles;
pub mod sink_time_loops;
pub mod tile_affine_nest;
pub mod tile_search;
mod tile_shape;
mod tiled_cells;
mod tiled_copy;
mod tiled_fill;
mod tiled_kernel;
mod tiled_loop;
pub mod transpose_arrays;
mod transposed_array;

pub use nest_frame::STRATEGY;
