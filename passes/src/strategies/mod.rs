//! The strategies, one folder each: the ways in which a tile kernel can run on a device.

pub mod block;
pub mod naive;
pub mod stream;
pub mod warp;
