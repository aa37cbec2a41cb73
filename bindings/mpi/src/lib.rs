//! `stencilc-mpi`: `stencilc run` in several processes that MPI starts, each of which is a device.
//!
//! ```text
//! mpirun -n 4 stencilc-mpi run heat2d.stencil --target cpu --size N=4096 --size M=4096 ...
//! ```
//!
//! Every process compiles the program and reads the inputs. The first one says and writes what
//! `stencilc run` would. The crate is empty without its feature `mpi`, so that nothing else needs
//! an MPI library.

#![forbid(unsafe_code)]

#[cfg(feature = "mpi")]
mod link;

#[cfg(feature = "mpi")]
pub use link::MpiLink;
