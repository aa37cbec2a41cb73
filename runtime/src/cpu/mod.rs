//! Runs plans on the processor: threads take the tiles of each launch in turn.
//!
//! | file | what it holds |
//! |---|---|
//! | `code.rs` | machine code of kernels, and the calls of its functions |
//! | `memory.rs` | memory in pages |
//! | `workers.rs` | threads, and how they share the tiles of a launch |
//! | `program.rs` | a loaded program as a target |
//! | `engine.rs` | the same for programs of other languages |

mod code;
#[cfg(feature = "cuda")]
mod engine;
mod memory;
mod program;
mod workers;

pub use code::Code;
#[cfg(feature = "cuda")]
pub use engine::Processor;
pub use program::{CpuError, Program};
