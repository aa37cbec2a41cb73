//! Passes on the stencil level.

pub mod fuse_functions;
pub mod relax_arithmetic;
pub mod verify;
