//! Executes the gpu level without a GPU: every kernel run and judged, by name and place.

#![forbid(unsafe_code)]

mod clock;
mod counters;
pub mod error;
mod mask;
mod memory;
mod machine;
mod program;
mod traffic;
mod translate;
mod value;
