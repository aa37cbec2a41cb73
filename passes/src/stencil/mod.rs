//! Passes on the stencil level, and from it to the tiled level.

pub mod choose_schedule;
pub mod fuse_functions;
pub mod launch_groups;
pub mod relax_arithmetic;
pub mod stream_schedule;
pub mod tile_overlapped;
pub mod verify;
pub mod warp_schedule;
