//! The strategy `warp`: in one dimension, a warp holds its tile in registers for all steps of a
//! launch.

mod cells;
pub mod lower_warp;
mod schedule;
mod steps;

use crate::kernel::lanes::WARP;
use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::regions;
use crate::schedule::strategy::{Candidates, Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Choice, Halo, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "warp";

/// Cells that the registers of a thread hold.
const HELD: i64 = 64;

/// The descriptor.
pub struct Warp;

impl Strategy for Warp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_warp::LowerWarp::default())
    }

    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let width = schedule::width(subject.program, &group.applies)?;
        Ok(Shape { tile: vec![1], per_thread: vec![width] })
    }

    fn pyramid_height(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
    ) -> Result<i64, Error> {
        let width = schedule.per_thread.last().copied().unwrap_or(1);
        schedule::pyramid_height(width, |steps| regions::extent(subject.program, group, steps))
    }

    fn fit(
        &self,
        _: &Subject,
        _: &Group,
        schedule: &Schedule,
        halos: &[&Halo],
    ) -> Result<Option<Vec<i64>>, Error> {
        let width = schedule.per_thread.last().copied().unwrap_or(1);
        Ok(Some(vec![schedule::tile(width, halos)]))
    }

    fn candidates(&self, _: &Subject, rank: usize, _: &Choice) -> Result<Vec<Candidates>, Error> {
        let pyramid_heights = [8, 16, 32].map(Some).to_vec();
        let all = Candidates { pyramid_heights, ..Candidates::defaults() };
        Ok(if rank == 1 { vec![all] } else { Vec::new() })
    }

    /// Cells that registers do not hold are spilled, and take LLVM longer the more there are.
    fn copies(&self, per_thread: &[i64]) -> i64 {
        let width = per_thread.last().copied().unwrap_or(1);
        width.saturating_mul((width / HELD).max(1))
    }

    /// Warps at an end of the grid compute their last step by code of their own.
    fn further_steps(&self) -> i64 {
        1
    }

    fn usual_copies(&self, _: usize) -> i64 {
        2
    }

    fn keeps_cells(&self) -> bool {
        true
    }

    /// Each warp has a tile of its own.
    fn tiles_per_block(&self, threads: u32) -> f64 {
        f64::from(threads) / WARP as f64
    }
}
