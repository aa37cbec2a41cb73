//! The strategy `serial`: a thread of a processor computes all points of a function that reads
//! values of its own sweep, one after the other.

pub mod lower_serial;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "serial";

/// The descriptor.
pub struct Serial;

impl Strategy for Serial {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        1..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_serial::LowerSerial)
    }

    fn is_for_processors(&self) -> bool {
        true
    }

    fn sweeps(&self) -> bool {
        true
    }

    fn fuses_steps(&self) -> bool {
        false
    }

    /// The tile is the whole grid, whatever its size.
    fn shape(&self, _: &Subject, group: &Group) -> Result<Shape, Error> {
        let rank = group.hull.rank();
        Ok(Shape { tile: vec![1; rank], per_thread: vec![1; rank] })
    }

    fn pyramid_height(&self, _: &Subject, _: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(1)
    }

    fn index_width(&self, _: &Program) -> Result<u32, Error> {
        Ok(64)
    }

    fn splits_interior(&self, _: &Program, _: &Kernel) -> Result<bool, Error> {
        Ok(false)
    }
}
