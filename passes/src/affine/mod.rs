//! Nests of upstream's `affine` loops over memrefs.

pub mod dependences;
pub mod mapping;
pub mod nest;
