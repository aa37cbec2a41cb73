//! Passes on the NVVM, ROCDL and LLVM dialects, and the way from there to code.

pub mod annotate_loops;
pub mod convert_math_to_calls;
pub mod convert_prefetch_to_nvvm;
pub mod emit_amdgpu;
pub mod emit_object;
pub mod emit_ptx;
pub mod host_entries;
mod ir;
pub mod libdevice;
pub mod load_constants;
pub mod load_object;
mod parts;
