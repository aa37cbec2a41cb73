//! `hyperplane-skew`: finds the skewing vector of a wavefront kernel, so that every diagonal of a
//! tile has the same length (hyper-tiles). Without it tiles are square, and their corners have
//! diagonals with fewer points.
//!
//! Source: Belviranli, Deng, Gupta, Zhu, Bhuyan, "PeerWave: Exploiting Wavefront Parallelism on
//! GPUs with Peer-SM Synchronization", section 2 (hyperplane transformation) and figure 5.
//!
//! Needs: tile kernels, as `tile-wavefront` makes them. Guarantees: `tiled.skew`, and `tiled.shear`
//! where the rows of a plane are moved, on each kernel that reads values of its own sweep. The
//! verifier compares them with the dependence vectors. A kernel that has a skew keeps it.
//!
//! ```text
//! func.func @sw_0() attributes {tiled.strategy = "wavefront", ...}
//! ```
//! becomes, for reads at `[-1, 0]`, `[0, -1]` and `[-1, -1]`,
//! ```text
//! func.func @sw_0() attributes {tiled.skew = array<i64: 1>, tiled.strategy = "wavefront", ...}
//! ```
//! Declines: dependences that are too far.

use crate::analysis::wavefront::{Wavefront, kernels};
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::tiled::{self, MOST_CELLS};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "hyperplane-skew",
    summary: "skew the tiles of wavefronts, so that all their diagonals are as long",
    options: &[],
    read: |_: &Options| Ok(Box::new(HyperplaneSkew)),
};

/// The pass.
pub struct HyperplaneSkew;

impl Pass for HyperplaneSkew {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        for (kernel, dependences) in kernels(module)? {
            if kernel.wave.skew.is_some() {
                continue;
            }
            let rank = dependences.first().map_or(1, Vec::len);
            let front = Wavefront::of(&dependences, rank).ok_or_else(|| {
                let message = format!(
                    "the function reads values of its own sweep more than {MOST_CELLS} cells \
                     away; read nearer ones"
                );
                Error::declined(Decline::FarRead, message).at(mlir::place(kernel.op.location()))
            })?;
            let builder = Builder::new(context, kernel.op.location(), mlir::body(module));
            tiled::set_skew(&builder, kernel.op, &front.skew);
        }
        Ok(())
    }
}
