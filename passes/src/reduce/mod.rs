//! Reductions: from `stencil.reduce` to kernels.

mod block;
pub mod lower_reduce;
mod points;
