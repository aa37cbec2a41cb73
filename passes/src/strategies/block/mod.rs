//! The strategy `block`: a block computes one tile, which lies in shared memory from step to step.

mod buffers;
pub mod lower_block;
mod tile_code;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Choice, Schedule};

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

    fn candidates(&self, _: &Subject, rank: usize, _: &Choice) -> Result<Vec<Candidates>, Error> {
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
        let candidates = |(tile, per_thread): &(&[i64], &[i64])| Candidates {
            tile: Some(tile.to_vec()),
            per_thread: Some(per_thread.to_vec()),
            pyramid_heights: pyramid_heights.iter().copied().map(Some).collect(),
        };
        Ok(shapes.iter().map(candidates).collect())
    }
}
