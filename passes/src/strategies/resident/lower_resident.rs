//! `lower-resident`: a block holds one tile in registers for all rounds of a launch.
//!
//! A round is what a launch of the strategy `patch` is: some steps of a tile with its halo
//! (`strategies/patch/lower_patch.rs`). Between two rounds a block stores the rim of its tile, as
//! far as neighbours need it, raises its flag, waits for the flags of its neighbours, and loads the
//! halo that they have stored. Blocks are numbered in row-major order, one for each tile, and all
//! are on the device at once. The rims lie where the cells do in the field's two buffers, which
//! rounds exchange. A block that stores the rims of a round has seen its neighbours' flags of the
//! round before, so that they have loaded what it overwrites.
//!
//! Needs: tile kernels of strategy `resident`, those of several rounds with `tiled.sweeps`.
//! Guarantees: a `gpu.func` for each; those of several rounds have arguments for flags and their
//! epoch. Kernels without `tiled.sweeps` are lowered as those of strategy `patch`.
//!
//! ```text
//! %a = <loads of the lane's rows, with the halo>
//! scf.for %round = 0 to %rounds iter_args(%a) {
//!   %b = <the steps of a round>
//!   %next = scf.if (%round == %rounds - 1) {
//!     <stores of all rows in the tile>
//!     scf.yield %b
//!   } else {
//!     <stores of rows at the tile's rim>
//!     gpu.barrier
//!     scf.if (thread 0) { peer.signal %flags[block], epoch * rounds + round + 1 }
//!     scf.for <neighbours, shared out to threads> { peer.wait %flags[neighbour], ... }
//!     gpu.barrier
//!     %c = <loads of rows of the halo; %b elsewhere>
//!     scf.yield %c
//!   }
//!   scf.yield %next
//! }
//! ```
//! Declines: what `lower-patch` declines; grids whose size is not known, or that repeat; more
//! blocks than are on the device at once; tiles with fewer cells than the halo of a neighbour.

use super::NAME;
use super::rounds::Rounds;
use crate::kernel::block_limits::{BlockLimits, MAX_SHARED, MAX_THREADS};
use crate::kernel::tile_kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::strategies::patch::lower_patch::{self, Several};
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-resident",
    summary: "lower tile kernels of strategy resident: tiles that stay in registers of a block",
    options: &[MAX_SHARED, MAX_THREADS],
    read: |options: &Options| Ok(Box::new(LowerResident { limits: BlockLimits::read(options)? })),
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerResident {
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerResident {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.limits.options()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            let Some(rounds) = Rounds::plan(context, subject, kernel)? else {
                return lower_patch::lower(context, subject, kernel, &self.limits, None);
            };
            let several = Several {
                blocks: rounds.blocks(),
                body: &|code, builder, checked| rounds.body(code, builder, checked),
            };
            lower_patch::lower(context, subject, kernel, &self.limits, Some(&several))
        })
    }
}
