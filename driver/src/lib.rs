//! The tools: `stencilc` compiles and runs programs, `stencil-opt` runs passes on IR. Here are
//! their arguments, messages and files; the work is done by `stencil-compiler`.

#![forbid(unsafe_code)]

pub mod cli;
mod compile;
mod emit;
mod emit_c;
mod files;
pub mod manual;
pub mod message;
pub mod opt;
pub mod picture;
mod run;
mod target;
