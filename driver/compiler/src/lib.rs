//! From the text of a stencil program to IR at any level, PTX, a launch plan or a run.
//!
//! ```text
//! .stencil --frontend--> Program --import--> stencil --> tiled --> gpu --> nvvm --> PTX
//!                                                                  +--> plan
//! ```
//!
//! A [`Session`] holds options. [`Session::compile`] gives texts and the plan, and
//! [`Session::executable`] gives what runs on arrays: on a CUDA device, on a simulated one, or on
//! the reference. Every result is `Send`; nothing is printed, and sessions share nothing. A
//! [`Control`] follows the work and ends it early.

#![forbid(unsafe_code)]

mod arrays;
mod check;
mod control;
mod copies;
mod declarations;
mod element;
mod engine;
mod executable;
mod failure;
mod gpus;
mod import;
mod inline_calls;
mod level;
mod mistaken;
mod nest;
mod options;
mod outcome;
mod parts;
mod pauses;
mod placement;
pub mod predicted_run;
mod processor;
mod report;
mod roofline;
mod schedules;
mod session;
pub mod stack;
pub mod stages;
mod tile_search;
mod timeline;
pub mod toolchain;
pub mod traffic;
mod train;
mod waves;
mod written;

pub use check::{Checked, compare};
pub use control::{Control, Pause, Pauses, Progress, Results};
pub use declarations::declarations;
pub use executable::{Executable, Target};
pub use failure::{Class, Failure, Message};
pub use level::Level;
pub use outcome::{Ended, Outcome};
pub use parts::Parts;
pub use placement::Placement;
pub use report::{KernelReport, Report};
pub use session::{Compiled, Options, Session};
pub use stencil_passes::pipeline::RecordLayout;
pub use stencil_passes::schedule::lowering::Settings as Lowering;
pub use stencil_passes::target::Arithmetic;
pub use stencil_runtime::device::short_names as device_names;
pub use tile_search::{FoundTile, TileSearch};
pub use timeline::Timeline;
pub use train::{Trained, Training};

pub use stencil_dialects::tiled::{Choice, NestTile};
pub use stencil_frontend::diagnostics::Look;
pub use stencil_frontend::source::Source;
pub use stencil_frontend::{is_reserved, sl};
pub use stencil_passes::llvm::emit_amdgpu::ARCHITECTURES as AMD_ARCHITECTURES;
pub use stencil_passes::llvm::emit_object::{Object, processors, this_processor};
pub use stencil_passes::llvm::emit_ptx::architectures;
pub use stencil_passes::llvm::load_object::kept as kept_object;
pub use stencil_passes::pipeline::Config;
pub use stencil_passes::schedule::predict::Candidate;
pub use stencil_passes::schedule::waves::Sweep;
pub use stencil_runtime::array::{Array, Data, Element};
pub use stencil_runtime::bind::Request;
pub use stencil_runtime::execute::Taken;
pub use stencil_runtime::plan::Plan;
pub use stencil_runtime::ranks::{DeviceList, Devices, Link, LinkRate};

/// A hash of the compiler's own text, which tells compilers of one version apart.
pub const TEXT_HASH: &str = env!("STENCILC_TEXT");

/// Compiles and runs the Rust blocks of the document.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;

/// Compiles and runs the Rust block of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
