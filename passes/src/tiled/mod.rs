//! Passes on the tiled level.

pub mod split_interior;
pub mod split_sums;
