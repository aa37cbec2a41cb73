//! The strategy `wavefront`: wavefronts of functions that read values of their own sweep. Blocks
//! take tile rows in turn. What passes note on a kernel says whether tiles are skewed, and how
//! blocks wait for the tile row above.

mod diagonals;
pub mod lower_wavefront;
mod rows;
mod skews;
mod sweep;
mod wave;

use crate::analysis::wavefront::Wavefront;
use crate::pass::Pass;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use std::ops::RangeInclusive;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, MOST_CELLS, Schedule};
use stencil_runtime::model::Pace;
use stencil_runtime::model::wavefront::Wave;

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

    /// Several sweeps need skews that do not depend on the grid's size (`skews.rs`).
    fn admit_sweeps(&self, _: &Subject, kernel: &Kernel) -> Result<(), Error> {
        let (skew, width) = (&kernel.wave.skew, kernel.schedule.tile.last());
        let far = skew
            .as_ref()
            .zip(width)
            .is_some_and(|(skew, width)| skews::are_far(&skew.times, *width));
        if !far {
            return Ok(());
        }
        let message = "the skew of the tiles is larger than a tile is wide, which several sweeps \
                       per launch do not take; leave pyramid-height out, or make the tile wider";
        Err(Error::declined(Decline::TileShape, message))
    }

    /// Rows of a tile, one for each thread, and times per tile. A tile is higher where the function
    /// reads rows of its own sweep from farther away.
    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let usual: &[i64] = match group.hull.rank() {
            1 => &[1024],
            2 => &[256, 64],
            _ => &[8, 32, 32],
        };
        let threads = i64::from(subject.device.threads_per_block);
        let rows = rows(subject, group)?;
        let mut tile = usual.to_vec();
        for (dimension, (height, least)) in tile.iter_mut().zip(&rows).enumerate() {
            let others = rows.iter().enumerate().filter(|(other, _)| *other != dimension);
            let others = others.fold(1_i64, |all, (_, rows)| all.saturating_mul((*rows).max(1)));
            *height = (*height).min(threads / others).max(*least);
        }
        let needed = rows.iter().fold(1_i64, |all, rows| all.saturating_mul((*rows).max(1)));
        if needed > threads {
            let message = format!(
                "the function reads values of its own sweep up to {rows:?} rows away, and a block \
                 of {threads} threads has no tile so high; read from nearer rows"
            );
            return Err(Error::declined(Decline::FarRead, message));
        }
        Ok(Shape { per_thread: vec![1; tile.len()], tile })
    }

    fn pyramid_height(&self, _: &Subject, _: &Group, _: &Schedule) -> Result<i64, Error> {
        Ok(1)
    }

    fn wave(
        &self,
        subject: &Subject,
        kernel: &Kernel,
        (tile, points): (&[i64], &[i64]),
    ) -> Result<Option<(Wave, Pace)>, Error> {
        wave::of(subject, kernel, tile, points).map(Some)
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

/// Rows of its own sweep that a group reads, along each dimension but the fastest.
fn rows(subject: &Subject, group: &Group) -> Result<Vec<i64>, Error> {
    let rank = group.hull.rank();
    let apply = group.applies.first().ok_or_else(|| Error::internal("a group without applies"))?;
    let front = Wavefront::of(&subject.program.dependences(&apply.pieces)?, rank);
    front.map(|front| front.rows).ok_or_else(|| {
        let message = format!(
            "the function reads values of its own sweep more than {MOST_CELLS} cells away; read \
             nearer ones"
        );
        Error::declined(Decline::FarRead, message)
    })
}
