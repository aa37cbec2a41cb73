//! `.npy` files in and out.
//!
//! Reading takes C and Fortran order and either byte order, and always gives a row-major array.
//! Writing gives C order, little endian, and leaves either the whole file or none.

mod error;
mod header;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use error::NpyError;
pub use header::{MOST_DESCRIPTION, MOST_STRUCTS, description};
pub(crate) use read::read_records;
pub use read::{read, read_as};
pub use write::{ReadLeaf, check_place, write};
pub(crate) use write::{write_arrays, write_records};
