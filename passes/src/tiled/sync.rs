//! `peer-sync` and `grid-sync`: note how the blocks of a wavefront kernel wait for each other.
//! Without either, each diagonal of tiles is a launch.
//!
//! Source: PeerWave (see `tiled/hyperplane_skew.rs`), section 3.2.
//!
//! | pass | how blocks wait |
//! |---|---|
//! | `peer-sync` | by flags, each for the tile rows on which its own depends |
//! | `grid-sync` | all for each other, after each diagonal of tiles |
//!
//! Needs: tile kernels, as `tile-wavefront` makes them. Guarantees: `tiled.sync = "peer"` or
//! `"grid"` on each kernel that reads values of its own sweep. Refuses a kernel that waits
//! otherwise already.

use crate::analysis::wavefront::kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::tiled::{self, Waiting};

/// `peer-sync` in the registry.
pub const PEER_INFO: Info = Info {
    name: "peer-sync",
    summary: "let the blocks of wavefronts wait for each other by flags",
    options: &[],
    read: |_: &Options| Ok(Box::new(PEER_SYNC)),
};

/// `grid-sync` in the registry.
pub const GRID_INFO: Info = Info {
    name: "grid-sync",
    summary: "let all blocks of wavefronts meet after each diagonal of tiles",
    options: &[],
    read: |_: &Options| Ok(Box::new(GRID_SYNC)),
};

/// `peer-sync`.
pub const PEER_SYNC: NoteWaiting = NoteWaiting { waiting: Waiting::Peer, info: &PEER_INFO };

/// `grid-sync`.
pub const GRID_SYNC: NoteWaiting = NoteWaiting { waiting: Waiting::Grid, info: &GRID_INFO };

/// Either pass.
pub struct NoteWaiting {
    waiting: Waiting,
    info: &'static Info,
}

impl Pass for NoteWaiting {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        for (kernel, _) in kernels(module)? {
            if let Some(waiting) = kernel.wave.waiting.filter(|waiting| *waiting != self.waiting) {
                return Err(Error::new(
                    mlir::place(kernel.op.location()),
                    format!(
                        "the blocks of @{} wait by \"{}\" already; run either peer-sync or \
                         grid-sync, by a list of --passes",
                        kernel.name,
                        waiting.name()
                    ),
                ));
            }
            let builder = Builder::new(context, kernel.op.location(), mlir::body(module));
            tiled::set_waiting(&builder, kernel.op, self.waiting);
        }
        Ok(())
    }
}
