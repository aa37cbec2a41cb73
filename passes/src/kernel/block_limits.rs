//! What a block may have: threads and bytes of shared memory. A kernel that wants more is refused
//! with what makes it smaller, before anything is built.

use crate::options::Options;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::tiled::Kernel;

/// The option of the number of threads, for a pass's list.
pub const MAX_THREADS: (&str, &str) =
    ("max-threads", "threads that a block may have (default 1024)");

/// The option of the shared memory, for a pass's list.
pub const MAX_SHARED: (&str, &str) =
    ("max-shared", "bytes of shared memory that a block may have (default 232448, sm_90)");

/// What a block may have.
pub struct BlockLimits {
    threads: i64,
    shared: i64,
}

impl BlockLimits {
    /// The limits that the options give; those of sm_90 where they give none.
    pub fn of(options: &Options) -> Result<Self, Error> {
        let most = i64::from(u32::MAX);
        // The verifier of lowered kernels accepts as many threads in a direction.
        let most_threads = i64::from(u16::MAX);
        Ok(Self {
            threads: options.integer(MAX_THREADS.0, 1..=most_threads)?.unwrap_or(1024),
            shared: options.integer(MAX_SHARED.0, 0..=most)?.unwrap_or(232_448),
        })
    }

    /// Refuses a kernel whose blocks have more threads, counted per dimension, or more bytes of
    /// shared memory.
    pub fn admit(&self, kernel: &Kernel, threads: &[i64], shared: i64) -> Result<(), Error> {
        let Self { threads: most, shared: room } = self;
        let refuse = |message| Err(Error::new(mlir::place(kernel.op.location()), message));
        let schedule = &kernel.schedule;
        let (tile, each) = (&schedule.tile, &schedule.per_thread);
        let threads =
            threads.iter().fold(1_i64, |product, threads| product.saturating_mul(*threads));
        if threads > *most {
            let remedy =
                if schedule.strategy == "naive" { "" } else { " or give a thread more cells" };
            return refuse(format!(
                "a tile of {tile:?} cells with {each:?} cells a thread and pyramid height {} needs \
                 {threads} threads, and a \
                 block has {most} at most; make the tile smaller{remedy}",
                schedule.steps
            ));
        }
        if shared > *room {
            return refuse(format!(
                "a tile of {tile:?} cells with pyramid height {} needs {shared} bytes of shared \
                 memory, and a block has \
                 {room} at most; make the tile or the pyramid height smaller",
                schedule.steps
            ));
        }
        Ok(())
    }
}
