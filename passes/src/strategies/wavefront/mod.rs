//! The strategy `wavefront`: wavefronts of functions that read values of their own sweep. Resident
//! blocks take tile rows by turns, and each waits for the tile row above by flags.

pub mod lower_wavefront;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "wavefront";

/// The descriptor.
pub struct Wavefronts;

impl Strategy for Wavefronts {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        1..=3
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_wavefront::LowerWavefront::default())
    }

    fn sweeps(&self) -> bool {
        true
    }

    fn fuses_steps(&self) -> bool {
        false
    }

    /// Rows of a tile, one for each thread, and times per tile.
    fn shape(&self, _: &Subject, group: &Group) -> Result<Shape, Error> {
        let tile: &[i64] = match group.hull.rank() {
            1 => &[1024],
            2 => &[256, 64],
            _ => &[8, 32, 32],
        };
        Ok(Shape { tile: tile.to_vec(), per_thread: vec![1; tile.len()] })
    }

    fn pyramid_height(&self, _: &Subject, _: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(1)
    }

    /// Times of a skewed grid go beyond its coordinates.
    fn index_width(&self, _: &Program) -> Result<u32, Error> {
        Ok(64)
    }

    /// All points of a wave run the same code.
    fn splits_interior(&self, _: &Program, _: &Kernel) -> Result<bool, Error> {
        Ok(false)
    }
}
