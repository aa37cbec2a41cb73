//! The strategy `resident`: tiles of the strategy `patch` that stay in registers for many rounds of
//! steps. After each round, blocks exchange rims with their neighbours and wait for each other's
//! flags.

pub mod lower_resident;
mod rims;
mod rounds;

use super::patch::{Patch, schedule};
use crate::analysis::index_width::constant_extents;
use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Choice, Halo, Schedule};
use stencil_runtime::device::WARP;

/// The name in the IR and on the command line.
pub const NAME: &str = "resident";

/// The descriptor.
pub struct Resident;

impl Strategy for Resident {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        Patch.ranks()
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_resident::LowerResident::default())
    }

    fn stays_resident(&self) -> bool {
        true
    }

    fn widened(&self, rank: usize, cells: i64) -> Vec<i64> {
        Patch.widened(rank, cells)
    }

    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let fit = schedule::of_group(subject, group, true)?;
        Ok(Shape { tile: fit.tile, per_thread: fit.per_thread })
    }

    fn pyramid_height(&self, subject: &Subject, group: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(schedule::of_group(subject, group, true)?.steps)
    }

    fn fit(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
        halos: &[&Halo],
    ) -> Result<Option<Vec<i64>>, Error> {
        schedule::tile(subject, group, schedule, (halos, true)).map(Some)
    }

    fn candidates(
        &self,
        subject: &Subject,
        rank: usize,
        _: &Choice,
    ) -> Result<Vec<Candidates>, Error> {
        schedule::candidates(subject, rank, true)
    }

    fn copies(&self, per_thread: &[i64]) -> i64 {
        Patch.copies(per_thread)
    }

    fn usual_copies(&self, rank: usize) -> i64 {
        Patch.usual_copies(rank)
    }

    fn keeps_cells(&self) -> bool {
        true
    }

    fn exchanges_rows(&self) -> bool {
        true
    }

    /// Grids that the registers of the device hold. Their size must be known.
    fn is_proposed(&self, subject: &Subject) -> Result<bool, Error> {
        let device = subject.device;
        let words = i64::from(device.registers) * i64::from(device.multiprocessors);
        for field in subject.program.applies.iter().flat_map(|apply| &apply.updates) {
            let grid = subject.program.grid_of(field)?;
            let extents = constant_extents(grid.lower, grid.upper);
            let points = extents.map(|all| all.into_iter().fold(1, i64::saturating_mul));
            if !(2..=3).contains(&grid.rank()) || points.is_none_or(|points| points > words) {
                return Ok(false);
            }
        }
        Ok(device.multiprocessors >= WARP)
    }
}
