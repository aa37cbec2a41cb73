//! The strategy `slab`: a thread of a processor computes a tile, some rows at a time for all steps.

mod box_function;
mod boxes;
mod lanes;
mod layout;
pub mod lower_slab;
mod model;
mod place;
mod point_code;
mod reads;
mod renames;
mod row_vectors;
mod schedule;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "slab";

/// The descriptor.
pub struct Slab;

impl Strategy for Slab {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        1..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_slab::LowerSlab)
    }

    fn is_for_processors(&self) -> bool {
        true
    }

    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        schedule::shape(subject, group)
    }

    fn pyramid_height(
        &self,
        subject: &Subject,
        group: &Group,
        schedule: &Schedule,
    ) -> Result<i64, Error> {
        schedule::pyramid_height(subject, group, schedule)
    }

    fn index_width(&self, _: &Program) -> Result<u32, Error> {
        Ok(64)
    }

    /// The bounds of its loops leave no checks inside.
    fn splits_interior(&self, _: &Program, _: &Kernel) -> Result<bool, Error> {
        Ok(false)
    }
}
