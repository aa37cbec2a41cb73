//! The strategy `relay`: in two dimensions, the warps of a block are stages of time. Each computes
//! some steps of wide rows in registers and hands the rows to the next.

mod chain;
mod layout;
pub mod lower_relay;
mod registers;
mod rings;
mod schedule;
mod transfers;
mod walk;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::strategies::stream::registers::PREFETCH;
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Choice, Halo, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "relay";

/// The descriptor.
pub struct Relay;

impl Strategy for Relay {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_relay::LowerRelay::default())
    }

    fn widened_dimension(&self, rank: usize) -> usize {
        rank.saturating_sub(1)
    }

    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let width = schedule::width(subject, &group.applies)?;
        Ok(Shape { tile: vec![1, 1], per_thread: vec![1, width] })
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
        schedule::tile(subject, group, schedule, halos).map(Some)
    }

    fn candidates(
        &self,
        subject: &Subject,
        _: usize,
        _: &Choice,
    ) -> Result<Vec<Candidates>, Error> {
        schedule::candidates(subject)
    }

    fn copies(&self, per_thread: &[i64]) -> i64 {
        per_thread.iter().copied().fold(1, i64::saturating_mul)
    }

    fn usual_copies(&self, _: usize) -> i64 {
        4
    }

    /// Rows are prefetched into the level 2 cache, and loaded a row before their turn.
    fn loads_ahead(&self) -> f64 {
        1.0 + PREFETCH as f64
    }

    fn has_short_tiles(&self) -> bool {
        true
    }

    fn is_proposed(&self, subject: &Subject) -> Result<bool, Error> {
        schedule::pays(subject)
    }

    fn keeps_cells(&self) -> bool {
        true
    }
}
