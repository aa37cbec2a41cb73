//! `lower-wavefront`: wavefront kernels, a block per tile row.
//!
//! A block computes one tile at a time, with a thread for each row of the tile. With flags it
//! finishes a tile row before it takes the next. Time runs along the fastest dimension, skewed from
//! row to row, so that all points of one time are independent (`analysis/wavefront.rs`). A barrier
//! follows each time.
//!
//! | noted on the kernel | what it changes |
//! |---|---|
//! | `tiled.skew` | a tile is some times of all its rows |
//! | no `tiled.skew` | a tile is some columns; the times at its corners have fewer points |
//! | `tiled.sync = "peer"` | a block waits for tile rows before its own, and raises its own flag |
//! | `tiled.sync = "grid"` | all blocks meet after each diagonal of tiles |
//! | no `tiled.sync` | a launch for each diagonal of tiles |
//!
//! Blocks that wait are all on the device at once and take tile rows in order, so that some block
//! can always go on.
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), section 3 and listing 2. Flags count tiles
//! and launches and are never cleared, in place of flags that their reader resets.
//!
//! Needs: tile kernels of strategy `wavefront`, each with one apply. Guarantees: a `gpu.func` for
//! each, with arguments for its flags and their epoch, for its counter, or for its turn.
//!
//! The lag is that of the tile row above:
//! ```text
//! // skewed, peer:
//! for row = block to rows step blocks
//!   for tile = 0 to tiles
//!     wait flags[row - 1] >= epoch * tiles + min(tile + lag, tiles); barrier
//!     for time = tile * width to (tile + 1) * width
//!       x = time - skew * thread
//!       if x in grid { A'[row * height + thread, x] = f(...) }
//!       barrier
//!     signal flags[row] = epoch * tiles + tile + 1
//! // several sweeps, for a tile that waits for the tile row below of the sweep before; odd sweeps
//! // exchange A and A':
//! for number = block to sweeps * rows step blocks
//!   sweep, row = number / rows, number mod rows
//!   for tile = 0 to tiles
//!     if sweep > 0, wait flags[number - rows + 1] >= epoch * tiles + min(tile + ahead, tiles)
//!     ... flags[number] in the place of flags[row]
//! // square, grid; without sync the diagonal is an argument:
//! for diagonal = 0 to diagonals
//!   for row = block to rows step blocks, where row has a tile on the diagonal
//!     for time = 0 to width + skew * (height - 1)
//!       x = (diagonal - row) * width + time - skew * thread
//!       if x in tile { A'[row * height + thread, x] = f(...) }
//!       barrier
//!   unless it is the last diagonal: arrive at the counter; wait until all blocks have
//! ```
//! Declines: kernels of more than one apply; tiles with more rows than a block has threads;
//! dependences longer than a tile is high. Square tiles also decline dependences on later columns.
//! Several sweeps of a launch decline skews larger than a tile is wide.

use super::rows::Rows;
use super::sweep::Sweep;
use super::wave;
use super::{NAME, Wavefronts};
use crate::analysis::swept::reads_no_old;
use crate::analysis::wavefront::Wavefront;
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_THREADS};
use crate::kernel::function::{self, KernelFunction};
use crate::kernel::resident::{self, Blocks, Meeting};
use crate::kernel::scope::Scope;
use crate::kernel::signature::Arguments;
use crate::kernel::tile_kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::strategy::Strategy;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::tiled::{Kernel, Waiting};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-wavefront",
    summary: "lower tile kernels of strategy wavefront: a block per tile row",
    options: &[MAX_THREADS, BLOCKS],
    read: |options: &Options| {
        let blocks = options.integer(BLOCKS.0, 1..=MOST_BLOCKS)?;
        Ok(Box::new(LowerWavefront { limits: BlockLimits::read(options)?, blocks }))
    },
};

/// The option for [`LowerWavefront::blocks`].
const BLOCKS: (&str, &str) =
    ("blocks", "the most blocks of a launch (default: as many as are on the device at once)");

/// Far more than are on any device at once.
const MOST_BLOCKS: i64 = 1 << 20;

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerWavefront {
    /// Limits of a block.
    pub limits: BlockLimits,
    /// The most blocks of a launch; none for as many as are on the device at once.
    pub blocks: Option<i64>,
}

impl Pass for LowerWavefront {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let blocks = self.blocks.map(|blocks| (BLOCKS.0, blocks.to_string()));
        self.limits.options().into_iter().chain(blocks).collect()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            self.lower(context, subject, kernel)
        })
    }
}

impl LowerWavefront {
    fn lower<'c>(
        &self,
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
    ) -> Result<(), Error> {
        let at = mlir::place(kernel.op.location());
        let applies: Vec<_> = kernel.applies().collect();
        let tile = kernel.schedule.tile.as_slice();
        let ([apply], Some((width, heights))) = (applies.as_slice(), tile.split_last()) else {
            let message = format!("a tile kernel of strategy {NAME} has one tiled.apply");
            return Err(Error::declined(Decline::Applies, message).at(at));
        };
        let demand = Demand { threads: heights, shared: 0, fewer_threads: "make the tile smaller" };
        self.limits.admit(subject.device, kernel, &demand)?;
        if kernel.wave.sweeps.is_some() {
            Wavefronts.admit_sweeps(subject, kernel).map_err(|error| error.at(at.clone()))?;
        }
        let dependences = subject.program.dependences(&apply.pieces)?;
        let front = match &kernel.wave.skew {
            Some(skew) => Wavefront::skewed(&dependences, skew),
            None if dependences.iter().flatten().any(|cells| *cells > 0) => {
                let message = "the function reads values of its own sweep at later columns, for \
                               which square tiles would wait for each other; run hyperplane-skew";
                return Err(Error::declined(Decline::Skew, message).at(at));
            }
            None => Wavefront::of(&dependences, heights.len() + 1),
        };
        let low =
            |front: &Wavefront| front.rows.iter().zip(heights).all(|(rows, height)| rows <= height);
        let front = front.filter(low).ok_or_else(|| {
            let message = "the function reads values of its own sweep farther away than a tile is \
                           high; make the tile higher";
            Error::declined(Decline::FarRead, message).at(at)
        })?;
        let rows = Rows::of(context, subject, (kernel, apply), front, (heights, *width))?;
        let flags = rows.all() * AffineExpr::constant(context, rows.sweeps);

        let threads = heights.iter().product::<i64>();
        let blocks = Blocks {
            rows: flags,
            threads,
            per_multiprocessor: wave::per_multiprocessor(threads, subject.device),
            most: self.blocks,
            meeting: match kernel.wave.waiting {
                Some(Waiting::Peer) => Meeting::Flags(flags),
                Some(Waiting::Grid) => Meeting::Counter(AffineExpr::constant(context, 1)),
                None => Meeting::Launches(rows.diagonals()),
            },
            shared: &[],
            in_place: reads_no_old(subject.program, &apply.pieces, &apply.outputs)?,
        };
        let (made, blocks) = resident::build(context, subject, kernel, &blocks)?;
        let KernelFunction { builder, op, arguments, .. } = made;
        let Arguments { sources, targets, params, scalars, step, flags, epoch, turn, .. } =
            arguments;
        tile_kernels::check_stored(subject.program, kernel)?;
        let hull = tile_kernels::hull(context, subject.program, kernel)?;
        let (module, program) = (subject.module, subject.program);
        let scope = Scope { module, program, hull, params, scalars, step };
        let sweep = Sweep { scope, sources, targets, apply, rows: &rows };
        match (flags.zip(epoch), flags, turn) {
            (Some(flags), ..) => sweep.by_flags(&builder, flags.into(), blocks)?,
            (None, Some(counter), _) => sweep.by_grid_barriers(&builder, counter, blocks)?,
            (None, None, Some(turn)) => sweep.of_a_turn(&builder, turn)?,
            _ => return Err(Error::internal("a wavefront kernel without flags and turns")),
        }
        builder.op("gpu.return", &[], &[], &[])?;
        function::load_gathered(&builder, &sweep.scope, op, &sweep.sources)
    }
}
