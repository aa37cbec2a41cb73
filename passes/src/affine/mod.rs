//! Nests of upstream's `affine` loops over memrefs.

pub mod access_checks;
pub mod arguments;
pub mod dependences;
pub mod launches;
pub mod lower_affine_nest;
pub mod mapping;
pub mod nest;
mod nest_frame;
mod nest_kernel;
