//! A strategy: a way in which a device runs the tiles of a kernel.
//!
//! A descriptor has a strategy's ranks, candidates, fit and lowering. Only `strategies/mod.rs`
//! knows them all.

use crate::analysis::index_width;
use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::stencil::{Piece, Program};
use stencil_dialects::tiled::{Choice, Halo, Kernel, Schedule};
use stencil_runtime::model::Pace;
use stencil_runtime::model::wavefront::Wave;

/// Cells of a tile and cells per thread, slowest dimension first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Cells of a tile.
    pub tile: Vec<i64>,
    /// Cells per thread.
    pub per_thread: Vec<i64>,
}

/// Schedules to try: a shape with the pyramid heights that go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Cells of a tile; none where it is fitted to each kernel.
    pub tile: Option<Vec<i64>>,
    /// Cells per thread; none for the default.
    pub per_thread: Option<Vec<i64>>,
    /// Pyramid heights; none for the default.
    pub pyramid_heights: Vec<Option<i64>>,
}

impl Candidates {
    /// A strategy's own defaults.
    pub fn defaults() -> Self {
        Self { tile: None, per_thread: None, pyramid_heights: vec![None] }
    }
}

/// A strategy's descriptor.
pub trait Strategy: Sync {
    /// Its name, as users and the IR spell it.
    fn name(&self) -> &'static str;

    /// Numbers of dimensions that it supports.
    fn ranks(&self) -> RangeInclusive<usize>;

    /// The pass that lowers its kernels to the gpu level, with the defaults of its options.
    fn lowering(&self) -> Box<dyn Pass>;

    /// Whether its kernels are for threads of a processor, and not for blocks of a GPU.
    fn is_for_processors(&self) -> bool {
        false
    }

    /// Whether its kernels need no more than blocks, barriers and shared memory, which GPUs of all
    /// vendors have, and neither warps of 32 lanes nor flags.
    fn is_for_all_gpus(&self) -> bool {
        false
    }

    /// Whether it takes functions that read values of their own sweep, and no others.
    fn sweeps(&self) -> bool {
        false
    }

    /// Whether its sweeps may leave rows of fields and values of rows alone (`leave_rows.rs`).
    fn leaves_rows(&self) -> bool {
        false
    }

    /// Declines a kernel of which no launch takes several sweeps (`sweeps_in_flight.rs`).
    fn admit_sweeps(&self, _: &Subject, _: &Kernel) -> Result<(), Error> {
        let name = self.name();
        let message =
            format!("the strategy {name} runs one sweep per launch; leave pyramid-height out");
        Err(Error::declined(Decline::Height, message))
    }

    /// Whether its kernels hold several applies and take several steps per launch.
    fn fuses_steps(&self) -> bool {
        true
    }

    /// Whether its applies may compute fixed regions.
    fn has_fixed_regions(&self) -> bool {
        false
    }

    /// The dimension that a single number of cells per thread stands for.
    fn widened_dimension(&self, _rank: usize) -> usize {
        0
    }

    /// Cells per thread in each of so many dimensions, from those in one.
    fn widened(&self, rank: usize, cells: i64) -> Vec<i64> {
        let widened = self.widened_dimension(rank);
        (0..rank).map(|place| if place == widened { cells } else { 1 }).collect()
    }

    /// The shape where none is asked for. The tile is a placeholder where [`Self::fit`] finds it.
    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error>;

    /// The pyramid height where none is asked for.
    fn pyramid_height(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
    ) -> Result<i64, Error>;

    /// The tile of a kernel whose applies and loads reach over some halos, where none is asked for;
    /// none where the default shape stays.
    fn fit(
        &self,
        _subject: &Subject,
        _group: &Group,
        _schedule: &Schedule,
        _halos: &[&Halo],
    ) -> Result<Option<Vec<i64>>, Error> {
        Ok(None)
    }

    /// Schedules to try beside the defaults, within a choice, for grids of some rank.
    fn candidates(
        &self,
        _subject: &Subject,
        _rank: usize,
        _choice: &Choice,
    ) -> Result<Vec<Candidates>, Error> {
        Ok(Vec::new())
    }

    /// Copies of a point function's code per step of a kernel: one for each cell of a thread that
    /// has code of its own.
    fn copies(&self, _per_thread: &[i64]) -> i64 {
        1
    }

    /// Steps beside those of a launch for which a kernel has code.
    fn further_steps(&self) -> i64 {
        0
    }

    /// [`Self::copies`] of the shapes that are chosen, roughly.
    fn usual_copies(&self, _rank: usize) -> i64 {
        1
    }

    /// Whether a thread keeps cells in registers from step to step, so that no memory lies between
    /// the values of two steps.
    fn keeps_cells(&self) -> bool {
        false
    }

    /// Whether all threads of a block wait at each barrier for rows of others, with nothing else to
    /// do.
    fn exchanges_rows(&self) -> bool {
        false
    }

    /// Whether a launch takes several rounds of steps, between which tiles stay on the chip
    /// (`stay_resident.rs`).
    fn stays_resident(&self) -> bool {
        false
    }

    /// Whether the first and the last row of tiles are much shorter than others, so that a launch
    /// has less work than as many whole tiles.
    fn has_short_tiles(&self) -> bool {
        false
    }

    /// Whether it is worth a look for a program where no strategy is asked for.
    ///
    /// # Errors
    /// A field or a function that is not there.
    fn is_proposed(&self, _subject: &Subject) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether each thread loads what the piece of its point reads, and nothing else.
    fn loads_at_points(&self) -> bool {
        false
    }

    /// How many iterations before its use a cell of device memory is loaded, as a rule.
    fn loads_ahead(&self) -> f64 {
        1.0
    }

    /// Tiles that a block of some threads computes.
    fn tiles_per_block(&self, _threads: u32) -> f64 {
        1.0
    }

    /// The wave that a kernel makes with tiles of some cells on a grid of so many points, both per
    /// dimension, and its pace; none of a strategy that computes all points at once.
    ///
    /// # Errors
    /// A decline: tiles that it does not run.
    fn wave(
        &self,
        _subject: &Subject,
        _kernel: &Kernel,
        (_tile, _points): (&[i64], &[i64]),
    ) -> Result<Option<(Wave, Pace)>, Error> {
        Ok(None)
    }

    /// Bits of an index in its kernels.
    fn index_width(&self, program: &Program) -> Result<u32, Error> {
        index_width::of(program)
    }

    /// Whether tiles away from every rim run code of their own, without checks.
    fn splits_interior(&self, _program: &Program, _kernel: &Kernel) -> Result<bool, Error> {
        Ok(true)
    }

    /// The planes after which the sums of an apply are cut, so that a kernel holds fewer cells.
    fn sum_cuts<'c>(
        &self,
        _subject: &Subject<'c, '_>,
        _schedule: &Schedule,
        _updates: &[&str],
        _pieces: &[Piece<'c>],
    ) -> Result<Vec<i64>, Error> {
        Ok(Vec::new())
    }
}
