//! The strategy `naive`: one thread per point, straight from and to global memory. It is the
//! baseline that every other strategy is measured against.

pub mod lower_naive;

use crate::analysis::{footprint, index_width};
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

/// Cells of other rows that a point reads of a field from which on kernels take 64 bits; counted in
/// the machine code of all programs.
const WIDE: usize = 4;

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

    fn is_for_all_gpus(&self) -> bool {
        true
    }

    fn loads_at_points(&self) -> bool {
        true
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

    fn pyramid_height(&self, _: &Subject, _: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(1)
    }

    /// In 64 bits LLVM makes all addresses from one base; in 32 bits it makes each anew, since sums
    /// may wrap. A boundary rule's selects are cheaper in 32 bits.
    fn index_width(&self, program: &Program) -> Result<u32, Error> {
        for apply in &program.applies {
            let reads = footprint::of_pieces(program, &apply.pieces)?;
            let far = |offset: &[i64]| {
                offset.split_last().is_some_and(|(_, rows)| rows.iter().any(|row| *row != 0))
            };
            let beside = |field: &str| {
                reads.iter().filter(|read| read.field == field && far(&read.reach.lower)).count()
            };
            let mut plain = program.fields.iter().filter(|field| field.boundary.is_none());
            if plain.any(|field| beside(field.name) >= WIDE) {
                return Ok(64);
            }
        }
        index_width::of(program)
    }

    /// A thread has no checks that a version for the interior could leave out.
    fn splits_interior(&self, _: &Program, _: &Kernel) -> Result<bool, Error> {
        Ok(false)
    }
}
