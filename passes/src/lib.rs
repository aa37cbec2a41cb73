//! The passes of stencilc: from the `stencil` dialect over `tiled` to MLIR's `gpu` level and PTX.
//!
//! A pass is one file: a value that holds its options and changes a module ([`pass::Pass`]).
//! [`pipeline`] lists the passes of a compile, [`runner`] runs such a list, [`pipeline_text`] reads
//! one from text, in which ours and upstream's may be mixed, and [`registry`] knows ours by name.

#![deny(unsafe_code)]

pub mod affine;
pub mod analysis;
pub mod gpu;
pub mod kernel;
pub mod launch_plan;
pub mod llvm;
pub mod options;
pub mod pass;
pub mod pipeline;
pub mod pipeline_text;
pub mod reduce;
pub mod registry;
pub mod runner;
pub mod schedule;
pub mod stencil;
pub mod strategies;
pub mod subject;
pub mod target;
pub mod tiled;
pub mod upstream;
