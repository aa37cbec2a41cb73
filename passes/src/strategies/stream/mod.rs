//! The strategy `stream`: in two and three dimensions, a block walks along the slowest dimension
//! with all steps of a launch in flight in registers.

pub(super) mod in_flight;
mod lane_tile;
pub(super) mod layout;
pub mod lower_stream;
pub(super) mod pipeline;
pub(super) mod registers;
pub(super) mod rims;
pub(super) mod schedule;
mod selects;
mod shared;
mod sum_cuts;
mod tile_fit;
mod transfers;
pub(super) mod updates;
mod walk;

use crate::analysis::reductions;
use crate::kernel::lanes;
use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Piece, Program};
use stencil_dialects::tiled::{Choice, Halo, Kernel, Schedule, TileOp};

/// The name in the IR and on the command line.
pub const NAME: &str = "stream";

/// The descriptor.
pub struct Stream;

impl Strategy for Stream {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        2..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_stream::LowerStream::default())
    }

    fn widened_dimension(&self, rank: usize) -> usize {
        rank.saturating_sub(1)
    }

    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let per_thread = schedule::per_thread(subject.program, group.hull.rank());
        let mut tile = vec![1; per_thread.len()];
        if let Some(planes) = tile.first_mut() {
            *planes = tile_fit::PLANES;
        }
        Ok(Shape { tile, per_thread })
    }

    fn pyramid_height(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
    ) -> Result<i64, Error> {
        schedule::pyramid_height(subject, &group.applies, &schedule.per_thread)
    }

    fn fit(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
        halos: &[&Halo],
    ) -> Result<Option<Vec<i64>>, Error> {
        tile_fit::tile(subject, group, schedule, halos).map(Some)
    }

    /// Registers and halo bound the pyramid height. Below the bound every second one is tried,
    /// which comes close enough to the best.
    fn candidates(
        &self,
        subject: &Subject,
        rank: usize,
        choice: &Choice,
    ) -> Result<Vec<Candidates>, Error> {
        if !self.ranks().contains(&rank) {
            return Ok(Vec::new());
        }
        let applies: Vec<_> = subject.program.applies.iter().collect();
        // A launch takes no step past a reduction that each step computes.
        let single = !reductions::of(subject.program)?.each_step.is_empty();
        let candidates = |cells: Vec<i64>| {
            let highest = match single {
                true => 1,
                false => schedule::pyramid_height(subject, &applies, &cells)?,
            };
            let near = |steps: &i64| highest - steps < 2 || (highest - steps) % 2 == 0;
            let pyramid_heights = (1..=highest).rev().filter(near).map(Some).collect();
            Ok(Candidates { tile: None, per_thread: Some(cells), pyramid_heights })
        };
        let asked = choice.per_thread.clone().filter(|cells| cells.len() == rank);
        let cells =
            asked.map_or_else(|| schedule::shapes(subject.program, rank), |cells| vec![cells]);
        cells.into_iter().map(candidates).collect()
    }

    fn copies(&self, per_thread: &[i64]) -> i64 {
        per_thread.iter().copied().fold(1, i64::saturating_mul)
    }

    fn usual_copies(&self, rank: usize) -> i64 {
        if rank == 2 { 4 } else { 8 }
    }

    fn keeps_cells(&self) -> bool {
        true
    }

    fn splits_interior(&self, program: &Program, kernel: &Kernel) -> Result<bool, Error> {
        let loads = kernel.body.iter().filter_map(|op| match op {
            TileOp::Load { field, .. } => {
                Some(program.field(field).map(|field| lanes::words(field.element)))
            }
            _ => None,
        });
        let words = loads.collect::<Result<Vec<_>, _>>()?;
        let solid = kernel.schedule.tile.len() == 3;
        Ok(!(solid && schedule::has_one_version(words.into_iter())))
    }

    fn sum_cuts<'c>(
        &self,
        subject: &Subject<'c, '_>,
        schedule: &Schedule,
        updates: &[&str],
        pieces: &[Piece<'c>],
    ) -> Result<Vec<i64>, Error> {
        sum_cuts::sum_cuts(subject, updates, pieces, pipeline::shape(&schedule.per_thread))
    }
}
