//! Passes on the tiled level.

pub mod hyperplane_skew;
pub mod rotate_buffers;
pub mod split_interior;
pub mod split_sums;
pub mod sync;
