//! The stencil compiler: `stencilc` compiles and runs programs, `stencil-opt` runs passes on IR.
//!
//! ```text
//! .stencil --frontend--> Program --import--> stencil --passes--> tiled --> gpu --> nvvm --> PTX, plan
//! ```

#![forbid(unsafe_code)]

pub mod cli;
pub mod compile;
pub mod files;
pub mod import;
pub mod manual;
pub mod message;
pub mod opt;
pub mod run;
pub mod toolchain;
