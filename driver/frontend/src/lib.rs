//! The stencil language: from text to a checked [`program::Program`], and what it means.
//!
//! ```text
//! text --lexer, parser--> ast::File --check--> program::Program --oracle--> fields
//! ```
//!
//! Invariants: the parser never fails (it returns a tree and diagnostics); a checked program has
//! a meaning for all sizes that pass its checks; the oracle shares no code with any compiler
//! pass; nothing here depends on LLVM or MLIR.

#![forbid(unsafe_code)]

pub mod program;
pub mod source;
