//! The strategy `patch`: in two and three dimensions, a block holds all of its tile in registers
//! for all steps of a launch.

mod hand_over;
mod lane_shapes;
pub(super) mod layout;
pub mod lower_patch;
pub(super) mod masks;
pub(super) mod place;
pub(super) mod rims;
pub(super) mod schedule;
mod search;
pub(super) mod tile_code;
mod updates;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Choice, Halo, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "patch";

/// Columns of a lane where its rows alone are asked for.
const WIDTH: i64 = 4;

/// The descriptor.
pub struct Patch;

impl Strategy for Patch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        2..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_patch::LowerPatch::default())
    }

    /// Rows of a lane; each has a vector of columns.
    fn widened(&self, rank: usize, cells: i64) -> Vec<i64> {
        if rank == 2 { vec![cells, WIDTH] } else { vec![cells; rank] }
    }

    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let fit = schedule::of_group(subject, group, false)?;
        Ok(Shape { tile: fit.tile, per_thread: fit.per_thread })
    }

    fn pyramid_height(&self, subject: &Subject, group: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(schedule::of_group(subject, group, false)?.steps)
    }

    fn fit(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
        halos: &[&Halo],
    ) -> Result<Option<Vec<i64>>, Error> {
        schedule::tile(subject, group, schedule, (halos, false)).map(Some)
    }

    fn candidates(
        &self,
        subject: &Subject,
        rank: usize,
        _: &Choice,
    ) -> Result<Vec<Candidates>, Error> {
        schedule::candidates(subject, rank, false)
    }

    /// Tiles at no rim have code of their own, and so have lanes at no rim of rows.
    fn copies(&self, per_thread: &[i64]) -> i64 {
        per_thread.iter().copied().fold(3, i64::saturating_mul)
    }

    fn usual_copies(&self, _: usize) -> i64 {
        8
    }

    fn keeps_cells(&self) -> bool {
        true
    }

    fn exchanges_rows(&self) -> bool {
        true
    }
}
