//! Why a `.npy` file could not be read or written.

use crate::array::{ArrayError, Element};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file could not be read or written.
#[derive(Debug, Error)]
pub enum NpyError {
    /// A file of structs that is larger than the memory.
    #[error(
        "{}: structs and truth values are read whole, and the host's memory is too small for the \
         run; raise --host-memory, or take another machine",
        path.display()
    )]
    Parts {
        /// The file.
        path: PathBuf,
    },
    /// The file can't be opened or read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file can't be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no `.npy` file, or its header is damaged.
    #[error("{} is no readable .npy file: {message}; write it with numpy.save", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The type of its cells is none that a field can have.
    #[error("{} holds cells of type {found}; a field is of {}, bool, complex numbers, vecs or \
        structs (convert it with numpy's astype)", path.display(), element_names())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The type in NumPy's words.
        found: String,
    },
    /// The file ends early.
    #[error("{} is truncated: {found} bytes of data where {shape} {element} needs {wanted}; copy \
        or write it anew", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes of data found.
        found: u64,
        /// Bytes of data needed.
        wanted: u64,
        /// The shape in its header.
        shape: String,
        /// The type in its header.
        element: Element,
    },
    /// The file goes on after its data.
    #[error("{} has bytes left after the data of {shape} {element}; it is damaged, write it \
        anew", path.display())]
    Trailing {
        /// The file.
        path: PathBuf,
        /// The shape in its header.
        shape: String,
        /// The type in its header.
        element: Element,
    },
    /// Cells of `bool` for a field of another type.
    #[error("{} holds bool cells where {wanted} is wanted; convert it with {}", path.display(),
        conversion(*wanted))]
    Bool {
        /// The file.
        path: PathBuf,
        /// Type of the field.
        wanted: Element,
    },
    /// Another type than the field's.
    #[error("{} holds {found} cells where {wanted} is wanted; convert it with {}", path.display(),
        conversion(*wanted))]
    Element {
        /// The file.
        path: PathBuf,
        /// Type of its cells.
        found: Element,
        /// Type of the field.
        wanted: Element,
    },
    /// Another number of dimensions than the field's.
    #[error("{} has {found} dimensions ({shape}) where {wanted} are wanted; reshape \
        it", path.display())]
    Rank {
        /// The file.
        path: PathBuf,
        /// Its number of dimensions.
        found: usize,
        /// Its shape.
        shape: String,
        /// Dimensions of the field.
        wanted: usize,
    },
    /// Cells of another type than the field's.
    #[error("{} holds cells of type {found} where {wanted} is wanted; {remedy}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The type in NumPy's words.
        found: String,
        /// The type of the field, likewise.
        wanted: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The numbers of a struct's cells in column-major order.
    #[error("{} holds vecs, structs or complex numbers in Fortran order; save \
        numpy.ascontiguousarray of it", path.display())]
    Fortran {
        /// The file.
        path: PathBuf,
    },
    /// Another shape than that of a field of vecs.
    #[error("{} has the shape {found} where {wanted} is wanted, with the lanes of vecs last; \
        reshape it", path.display())]
    Vecs {
        /// The file.
        path: PathBuf,
        /// Its shape.
        found: String,
        /// The extents of the field in its sizes, and the lanes.
        wanted: String,
    },
    /// The array can't be held.
    #[error("can't hold {}: {source}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ArrayError,
    },
}

/// What makes cells of a type: NumPy itself has no bf16.
fn conversion(wanted: Element) -> &'static str {
    match wanted {
        Element::Bf16 => "astype(ml_dtypes.bfloat16) of the package ml_dtypes",
        _ => "numpy's astype",
    }
}

fn element_names() -> String {
    Element::ALL.map(Element::name).join(", ")
}
