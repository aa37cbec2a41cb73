//! The C interface to the runtime: `stencil.h`, which is made from `exports.rs` and
//! `exports_fields.rs`.
//!
//! | file | what it holds |
//! |---|---|
//! | `exports.rs`, `exports_fields.rs` | the functions that C calls |
//! | `caller.rs` | pointers of the caller; the only `unsafe` code |
//! | `fault.rs` | status codes, the message of a thread's last error, the end of every panic |
//! | `handles.rs` | the live objects, by number |
//! | `run.rs` | programs and runs; `stencil_runtime::host` does them |

#![deny(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks)]

#[allow(
    unsafe_code,
    clippy::not_unsafe_ptr_arg_deref,
    reason = "reads and writes memory of the caller; only the functions that C calls have pointers"
)]
#[doc(hidden)]
pub mod caller;
#[allow(unsafe_code, reason = "the attribute that exports a function's name is unsafe")]
pub mod exports;
#[allow(unsafe_code, reason = "as for exports")]
mod exports_fields;
pub mod fault;
pub mod handles;
pub mod run;
