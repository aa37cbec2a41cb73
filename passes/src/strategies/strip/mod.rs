//! The strategy `strip`: wavefronts of two dimensions with values in registers. Each warp computes
//! a strip of rows, and its lanes hand values on by shuffles.

mod code;
mod geometry;
pub mod lower_strip;
mod old_values;
mod transfers;
mod windows;

use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use geometry::Geometry;
use std::ops::RangeInclusive;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, Schedule};

/// The name in the IR and on the command line.
pub const NAME: &str = "strip";

/// Rows of a lane, strips of a block, and times of a tile, where none are asked for.
const SHAPE: (i64, i64, i64) = (2, 4, 16);

/// The descriptor.
pub struct Strip;

impl Strategy for Strip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ranks(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn lowering(&self) -> Box<dyn Pass> {
        Box::new(lower_strip::LowerStrip::default())
    }

    fn sweeps(&self) -> bool {
        true
    }

    fn fuses_steps(&self) -> bool {
        false
    }

    /// Rows of a block, and times per tile.
    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let refuse = |message: &str| Error::declined(Decline::FarRead, message);
        let Some(apply) = group.applies.first() else {
            return Err(Error::internal("a group without applies"));
        };
        let dependences = subject.program.dependences(&apply.pieces)?;
        let above = dependences.iter().filter_map(|vector| vector.first()?.checked_neg());
        let (rows, strips, width) = SHAPE;
        let rows = above.fold(rows, i64::max);
        let geometry = Geometry::of(&dependences, (rows, strips, width)).ok_or_else(|| {
            refuse("the function reads values of its own sweep too far away for registers")
        })?;
        admit(subject.program, group.hull.alike, &apply.updates)?;
        Ok(Shape { tile: vec![geometry.block(), width], per_thread: vec![rows, 1] })
    }

    fn pyramid_height(&self, _: &Subject, _: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(1)
    }

    fn splits_interior(&self, _: &Program, _: &Kernel) -> Result<bool, Error> {
        Ok(true)
    }
}

/// Declines fields on different points, and values that lanes can't exchange.
fn admit(program: &Program, alike: bool, updates: &[&str]) -> Result<(), Error> {
    if !alike {
        let message = "the function updates fields on different points";
        return Err(Error::declined(Decline::Applies, message));
    }
    for field in updates {
        if !matches!(mlir::bit_width(program.field(field)?.element), Some(16 | 32 | 64)) {
            let message = format!("lanes can't exchange values of @{field}");
            return Err(Error::declined(Decline::Registers, message));
        }
    }
    Ok(())
}
