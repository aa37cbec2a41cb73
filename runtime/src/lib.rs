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
//! | [`array`] | dense arrays, seeded noise, comparison |
//! | [`npy`] | `.npy` files in and out |

#![deny(unsafe_code)]

pub mod array;
pub mod expr;
pub mod npy;
pub mod plan;
