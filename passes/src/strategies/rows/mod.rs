//! The strategy `rows`: threads of a processor compute bands of rows of a function that reads
//! values of its own sweep, each thread behind the one that has the band above.

mod bands;
pub mod lower_rows;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "rows";

/// The descriptor.
pub struct Rows;

impl Strategy for Rows {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        1..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_rows::LowerRows)
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

    /// Rows of a band, and columns that a thread computes between two looks at the band above. In
    /// three dimensions a band has planes, and the columns are rows.
    fn shape(&self, _: &Subject, group: &Group) -> Result<Shape, Error> {
        let tile: &[i64] = match group.hull.rank() {
            1 => &[1],
            2 => &[16, 128],
            _ => &[2, 8, 1],
        };
        Ok(Shape { tile: tile.to_vec(), per_thread: vec![1; tile.len()] })
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
