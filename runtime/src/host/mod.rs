//! Runs on memory of another program: the cells of a field lie where the caller has them, on the
//! host or on a device. The bindings for other languages are made of this.
//!
//! | file | what it holds |
//! |---|---|
//! | `binding.rs` | memory of the caller that is bound to a field |
//! | `raw.rs` | the functions with a promise, and the only ones that follow the caller's pointers |
//! | `program.rs` | a plan with what runs it |
//! | `run.rs` | a run: its settings, and how it is done by an engine |
//! | `device.rs` | how it is done on a CUDA device |
//! | `queue.rs` | runs on device memory that are sent to a stream, and not waited for |
//! | `error.rs` | why a run failed |
#![deny(clippy::undocumented_unsafe_blocks)]

mod binding;
mod device;
mod error;
mod program;
mod queue;
mod raw;
mod records;
mod run;

pub use binding::{Binding, Given, MOST_DIMENSIONS, field_extents};
pub use error::{Blame, HostError};
pub use program::{Code, Engine, Hooks, Program, Ran};
pub use queue::Sending;
pub use raw::{device_memory, host_memory};
pub use run::{Copies, Done, Run};
