//! Reductions: from `stencil.reduce` to kernels.

pub mod block;
pub mod combine_stores;
pub mod fuse_reductions;
pub mod lower_reduce;
mod on_processor;
mod partials;
mod points;
