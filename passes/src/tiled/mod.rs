//! Passes on the tiled level.

pub mod rotate_buffers;
pub mod split_interior;
pub mod split_sums;
