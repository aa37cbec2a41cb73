//! Runs compiled stencil programs.
//!
//! A compile leaves PTX text and a launch plan in JSON ([`plan`]). This crate loads both, binds
//! the sizes, checks the arrays and launches the kernels; it knows nothing of the compiler and
//! links neither LLVM nor MLIR, so a program runs where no compiler is installed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | the launch plan and its checks |
//! | [`expr`] | sizes as text: `(N + 63) floordiv 64` |
//! | [`element`] | the types of numbers |
//! | [`mod@array`] | dense arrays, seeded noise |
//! | [`compare`] | two arrays compared, bit by bit and by error |
//! | [`record`] | fields of structs and vecs: files to arrays of numbers and back |
//! | [`cell`] | the type of a cell of a file |
//! | [`npy`] | `.npy` files in and out |
//! | [`number`] | single numbers, typed and as text |
//! | [`input`] | where the data of an input comes from |
//! | [`bind`] | sizes found and checked, buffers laid out |
//! | [`layout`] | where the cells of a buffer lie in memory |
//! | [`launch`] | the launches in order, each with its arguments |
//! | [`bands`] | launches in parts, which overlap |
//! | [`execute`] | upload, launch, download on any [`execute::Target`] |
//! | [`ranks`] | a run on several devices |
//! | [`execute::heights`] | the pyramid height of a run, chosen while it runs |
//! | `cuda` | the CUDA driver as a target (feature `cuda`) |
//! | `host` | runs on memory of another program (feature `cuda`) |
//! | [`device`] | devices as data |
//! | [`watch`] | waits of blocks that do not end |
//! | [`tune`] | schedules that were measured to be fastest |
//! | [`model`] | what a schedule is predicted to take on a device |
//! | [`checkpoint`] | the state of a run in a file, from which it goes on |
//! | [`memory`] | how much memory is free |
//! | [`bounded_read`] | files read whole, within a limit |
//! | [`whole_file`] | files written whole or not at all |
//! | `allocator` | the end of a tool that gets no more memory (feature `signals`) |
//! | `crash` | the end of a tool at a crash (feature `signals`) |
//! | `signals` | the end of a tool at a signal (feature `signals`) |
//! | `standard_output` | standard output of a tool (feature `stdio`) |

#![deny(unsafe_code)]

#[cfg(all(target_os = "linux", feature = "signals"))]
pub mod allocator;
pub mod array;
pub mod bands;
pub mod bind;
pub mod bounded_read;
pub mod cell;
pub mod checkpoint;
pub mod compare;
#[cfg(feature = "processor")]
pub mod cpu;
#[cfg(all(target_os = "linux", feature = "signals"))]
pub mod crash;
#[cfg(feature = "cuda")]
pub mod cuda;
mod descriptor;
pub mod device;
pub mod element;
pub mod execute;
pub mod expr;
pub mod hash;
#[cfg(feature = "cuda")]
pub mod host;
pub mod input;
pub mod launch;
pub mod layout;
pub mod memory;
pub mod message;
pub mod model;
pub mod npy;
pub mod number;
pub mod on_threads;
pub mod plan;
pub mod processor;
pub mod ranks;
pub mod record;
mod shortage;
#[cfg(all(unix, feature = "signals"))]
pub mod signals;
#[cfg(feature = "stdio")]
#[allow(unsafe_code, reason = "a constructor of the process stands in a section of its own")]
pub mod standard_output;
pub mod tune;
pub mod watch;
pub mod whole_file;
pub mod windows;
