//! The passes of stencilc: from the `stencil` dialect over `tiled` to MLIR's `gpu` level and PTX.
//!
//! A pass is one file with a name, options and a function on the module ([`pass::Pass`]);
//! [`registry`] lists them, [`pipeline`] puts them in order, and [`runner`] runs a pipeline in
//! which ours and upstream's may be mixed.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod kernel;
pub mod launch_plan;
pub mod llvm;
pub mod options;
pub mod pass;
pub mod pipeline;
pub mod registry;
pub mod runner;
pub mod schedule;
pub mod stencil;
pub mod strategies;
pub mod tiled;
