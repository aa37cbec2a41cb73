//! The native part of the Python package `stencilc`; `python/stencilc/` has the rest.
//!
//! | file | what it holds |
//! |---|---|
//! | `native.rs` | a program: its versions, its calls |
//! | `versions.rs` | a version for some sizes |
//! | `cache.rs` | compiled programs on the disk |
//! | `call.rs` | the arguments of a call |
//! | `copies.rs` | copies of arrays before a run, and arrays that get results |
//! | `fields.rs` | names, and the parts of arrays that are fields of numbers |
//! | `arrays.rs` | arrays of NumPy, PyTorch, CuPy and others as memory |
//! | `kinds.rs` | types of cells |
//! | `memory.rs` | the only `unsafe` code: promises about pointers |
//! | `values.rs` | reductions, pictures |
//! | `watch.rs` | progress and Ctrl-C |
//! | `errors.rs` | exceptions |

#![deny(unsafe_code)]

mod arrays;
mod cache;
mod call;
mod copies;
mod errors;
mod fields;
mod kinds;
mod memory;
mod native;
mod values;
mod versions;
mod watch;

/// The native part of `stencilc`.
#[pyo3::pymodule]
mod _stencilc {
    #[pymodule_export]
    use crate::native::{Native, check_options, is_reserved};
    #[pymodule_export]
    use crate::values::png;
}
