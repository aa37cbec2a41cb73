//! Passes on the NVVM and LLVM dialects, and the way from there to PTX.

pub mod annotate_loops;
pub mod convert_math_to_calls;
pub mod convert_prefetch_to_nvvm;
pub mod emit_object;
pub mod emit_ptx;
pub mod host_entries;
pub mod load_constants;
pub mod load_object;
mod parts;
