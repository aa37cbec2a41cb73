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
//! | `cuda` | the CUDA driver as a target (feature `cuda`) |
//! | [`device`] | devices as data |
//! | [`tune`] | schedules that were measured to be fastest |
//! | [`model`] | what a schedule is predicted to take on a device |
//! | [`whole_file`] | files written whole or not at all |
//! | `signals` | the end of a tool at a signal (feature `signals`) |

#![cfg_attr(feature = "cuda", deny(unsafe_code))]
#![cfg_attr(not(feature = "cuda"), forbid(unsafe_code))]

pub mod array;
pub mod bands;
pub mod bind;
pub mod cell;
pub mod compare;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
pub mod element;
pub mod execute;
pub mod expr;
pub mod input;
pub mod launch;
pub mod layout;
pub mod model;
pub mod npy;
pub mod number;
pub mod plan;
pub mod record;
#[cfg(all(unix, feature = "signals"))]
pub mod signals;
pub mod tune;
pub mod whole_file;
