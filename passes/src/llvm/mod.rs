//! Passes on the NVVM and LLVM dialects, and the way from there to PTX.

pub mod annotate_loops;
pub mod convert_prefetch_to_nvvm;
pub mod emit_ptx;
pub mod load_constants;
mod parts;
