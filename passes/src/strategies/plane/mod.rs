//! The strategy `plane`: in two and three dimensions, a block walks along the slowest dimension for
//! one step, with planes of a thread's own cells in registers and those of others in shared memory.
//!
//! It is for functions that read far, or many fields: they are bound by memory with one step, and
//! more steps would not fit into registers.

mod held;
mod layout;
pub mod lower_plane;
mod ring;
mod schedule;
mod source;
mod update;
mod walk;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Choice, Halo, Kernel, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "plane";

/// The descriptor.
pub struct Plane;

impl Strategy for Plane {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        2..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_plane::LowerPlane::default())
    }

    fn fuses_steps(&self) -> bool {
        false
    }

    fn loads_ahead(&self) -> f64 {
        2.0
    }

    fn widened_dimension(&self, rank: usize) -> usize {
        rank.saturating_sub(1)
    }

    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        Ok(schedule::shape(subject.program, group.hull.rank()))
    }

    fn pyramid_height(&self, _: &Subject, _: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(1)
    }

    fn fit(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
        halos: &[&Halo],
    ) -> Result<Option<Vec<i64>>, Error> {
        Ok(schedule::fitted(subject, group, schedule, halos))
    }

    fn candidates(
        &self,
        subject: &Subject,
        rank: usize,
        choice: &Choice,
    ) -> Result<Vec<Candidates>, Error> {
        if !self.ranks().contains(&rank) {
            return Ok(Vec::new());
        }
        schedule::candidates(subject, rank, choice)
    }

    fn copies(&self, per_thread: &[i64]) -> i64 {
        per_thread.iter().copied().fold(1, i64::saturating_mul)
    }

    fn usual_copies(&self, _: usize) -> i64 {
        4
    }

    /// All tiles run one version with checks, which cost little beside the memory's time.
    fn splits_interior(&self, _: &Program, _: &Kernel) -> Result<bool, Error> {
        Ok(false)
    }
}
