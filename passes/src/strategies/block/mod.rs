//! The strategy `block`: a block computes one tile, which lies in shared memory from step to step.

mod buffers;
pub mod lower_block;
mod tile_code;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::schedule::{choice, regions};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::tiled::{Choice, Halo, Kernel, Region, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "block";

/// The descriptor.
pub struct Block;

impl Strategy for Block {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        1..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_block::LowerBlock::default())
    }

    fn is_for_all_gpus(&self) -> bool {
        true
    }

    /// Loops over the cells of a thread, barriers and two versions of the body.
    fn copies(&self, _: &[i64]) -> i64 {
        4
    }

    fn usual_copies(&self, _: usize) -> i64 {
        4
    }

    fn has_fixed_regions(&self) -> bool {
        true
    }

    fn shape(&self, _: &Subject, group: &Group) -> Result<Shape, Error> {
        let (tile, per_thread): (&[i64], &[i64]) = match group.hull.rank() {
            1 => (&[2048], &[4]),
            2 => (&[32, 64], &[4, 1]),
            _ => (&[8, 8, 64], &[4, 2, 1]),
        };
        Ok(Shape { tile: tile.to_vec(), per_thread: per_thread.to_vec() })
    }

    fn pyramid_height(&self, _: &Subject, group: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(match group.hull.rank() {
            1 => 8,
            2 => 4,
            _ => 2,
        })
    }

    /// Equation 1 of the paper: of fixed regions, the cells of all threads are those of a region,
    /// the tile and its halo.
    fn fit(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
        _: &[&Halo],
    ) -> Result<Option<Vec<i64>>, Error> {
        if schedule.region != Region::Fixed {
            return Ok(None);
        }
        let mut regions = regions::of(subject.program, group, schedule.steps)?;
        regions.fix();
        let none = Halo::none(schedule.tile.len());
        let halo = regions.applies.first().unwrap_or(&none);
        let halo = halo.extents(&vec![0; schedule.tile.len()]);
        let tile: Vec<i64> =
            schedule.tile.iter().zip(&halo).map(|(cells, halo)| cells - halo).collect();
        if tile.iter().any(|cells| *cells < 1) {
            let list = |numbers: &[i64]| {
                numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ")
            };
            return Err(Error::declined(
                Decline::Region,
                format!(
                    "{} steps have a halo of {} cells, and the threads of a block compute {}, \
                     which leaves no tile; give a larger block, more cells per thread or a smaller \
                     pyramid-height",
                    schedule.steps,
                    list(&halo),
                    list(&schedule.tile)
                ),
            ));
        }
        Ok(Some(tile))
    }

    fn candidates(
        &self,
        _: &Subject,
        rank: usize,
        choice: &Choice,
    ) -> Result<Vec<Candidates>, Error> {
        let shapes: &[(&[i64], &[i64])] = match rank {
            1 => &[(&[2048], &[4]), (&[4096], &[4])],
            2 => &[(&[32, 64], &[4, 1]), (&[64, 64], &[8, 1])],
            3 => &[(&[8, 8, 64], &[4, 2, 1])],
            _ => &[],
        };
        let pyramid_heights: &[i64] = match rank {
            1 => &[1, 8, 32],
            2 => &[2, 4, 8],
            _ => &[1, 2],
        };
        let pyramid_heights: Vec<_> = pyramid_heights.iter().copied().map(Some).collect();
        if choice::region(choice)? == Region::Fixed {
            return Ok(vec![Candidates { pyramid_heights, ..Candidates::defaults() }]);
        }
        let candidates = |(tile, per_thread): &(&[i64], &[i64])| Candidates {
            tile: Some(tile.to_vec()),
            per_thread: Some(per_thread.to_vec()),
            pyramid_heights: pyramid_heights.clone(),
        };
        Ok(shapes.iter().map(candidates).collect())
    }
}

/// Threads of a block per dimension, slowest first: with fixed regions as many as a region has
/// cells to compute, over those of a thread; else as many as the tile has.
fn threads(kernel: &Kernel) -> Vec<i64> {
    let Schedule { tile, per_thread, region, .. } = &kernel.schedule;
    let fixed = kernel.applies().next().filter(|_| *region == Region::Fixed);
    let cells = fixed.map_or_else(|| tile.clone(), |apply| apply.halo.extents(tile));
    cells.iter().zip(per_thread).map(|(cells, each)| (cells + each - 1) / each).collect()
}
