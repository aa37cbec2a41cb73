//! The strategy `naive`: one thread per point, straight from and to global memory. It is the
//! baseline that every other strategy is measured against.

pub mod lower_naive;

use crate::analysis::index_width;
use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "naive";

/// The descriptor.
pub struct Naive;

impl Strategy for Naive {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        1..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_naive::LowerNaive::default())
    }

    fn fuses_steps(&self) -> bool {
        false
    }

    fn has_fixed_regions(&self) -> bool {
        true
    }

    fn shape(&self, _: &Subject, group: &Group) -> Result<Shape, Error> {
        let tile: &[i64] = match group.hull.rank() {
            1 => &[256],
            2 => &[4, 64],
            _ => &[1, 4, 64],
        };
        Ok(Shape { tile: tile.to_vec(), per_thread: vec![1; tile.len()] })
    }

    fn height(&self, _: &Subject, _: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(1)
    }

    fn index_width(&self, program: &Program) -> Result<u32, Error> {
        index_width::of_naive(program)
    }

    /// A thread has no checks that a version for the interior could leave out.
    fn splits_interior(&self, _: &Program, _: &Kernel) -> Result<bool, Error> {
        Ok(false)
    }
}
