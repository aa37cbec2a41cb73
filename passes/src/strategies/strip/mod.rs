//! The strategy `strip`: wavefronts of two dimensions with values in registers. Each warp computes
//! a strip of rows, and its lanes hand values on by shuffles.

mod apart;
mod block;
mod code;
mod coverage;
mod exchange;
mod frozen;
mod geometry;
mod handover;
mod in_flight;
pub mod lower_strip;
mod old_values;
mod plan;
mod point;
mod rims;
mod row_values;
mod sequences;
mod transfers;
mod wave;
mod windows;

use crate::analysis::index_width::constant_extents;
use crate::kernel::lanes::WARP;
use crate::pass::Pass;
use crate::schedule::code_size::{self, MOST_OPERATIONS};
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Shape, Strategy};
use crate::subject::Subject;
use geometry::{Geometry, StripShape};
use plan::{Function, Plan};
use std::ops::RangeInclusive;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Kernel, Schedule, Waiting};
use stencil_runtime::device::Device;
use stencil_runtime::model::Pace;
use stencil_runtime::model::wavefront::Wave;

/// The name in the IR and on the command line.
pub const NAME: &str = "strip";

/// Rows of a lane, strips of a block and times of a tile. The default is the first that fits. They
/// were measured on an H200 (`docs/decisions/022-strips.md`).
const SHAPES: [[i64; 3]; 5] = [[2, 3, 32], [2, 2, 32], [2, 2, 16], [1, 2, 16], [1, 1, 8]];

/// Clocks of a turn of the first two shapes, the second with two blocks on a multiprocessor: means
/// of whole sweeps of Smith-Waterman (`docs/decisions/022-strips.md`).
const TURNS: [(StripShape, i64, f64); 2] = [
    (StripShape { rows: 2, strips: 3, width: 32 }, 1, 2490.0),
    (StripShape { rows: 2, strips: 2, width: 32 }, 2, 2910.0),
];

/// Evaluations of point functions in the code of all kernels of a program. A tile has one for each
/// row and time, in code for tiles within the main piece and in code of each piece. A compile takes
/// about 3 ms for an evaluation.
const MOST_EVALUATIONS: i64 = 1024;

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

    fn leaves_rows(&self) -> bool {
        true
    }

    fn fuses_steps(&self) -> bool {
        false
    }

    /// Sweeps follow each other by the order of tile rows, which reads of rows above give.
    fn admit_sweeps(&self, subject: &Subject, kernel: &Kernel) -> Result<(), Error> {
        for apply in kernel.applies() {
            let dependences = subject.program.dependences(&apply.pieces)?;
            if !dependences.iter().any(|vector| vector.first().is_some_and(|row| *row < 0)) {
                let message = "strips that read nothing from the row above run one sweep per \
                               launch; leave pyramid-height out, or use the strategy wavefront";
                return Err(Error::declined(Decline::Height, message));
            }
        }
        Ok(())
    }

    /// Rows of a block, and times per tile: the first shape that a block has room for and whose
    /// code is soon compiled.
    fn shape(&self, subject: &Subject, group: &Group) -> Result<Shape, Error> {
        let Some(apply) = group.applies.first() else {
            return Err(Error::internal("a group without applies"));
        };
        admit(group.hull.alike)?;
        let (program, pieces) = (subject.program, apply.pieces.as_slice());
        let kept = apply.updates.iter().copied().filter(|field| group.keeps(apply, field));
        let module = subject.module;
        let transfers = &group.transfers;
        let stored: Vec<_> = transfers.stored.union(&transfers.last_rows).copied().collect();
        let function = Function { module, program, pieces, stored, kept: kept.collect() };
        let dependences = program.dependences(pieces)?;
        let above = dependences.iter().filter_map(|vector| vector.first()?.checked_neg());
        let above = above.fold(1, i64::max);
        let (mut copies, operations) = copies(program)?;
        // Tiles with last rows have code of their own.
        copies += i64::from(!transfers.last_rows.is_empty());
        let shapes = SHAPES.map(|[rows, strips, width]| {
            let rows = above.max(rows);
            StripShape { rows, strips, width }
        });
        // Values that no shape can read are the reason, even where the code is too long too.
        if let Some(first) = shapes.first() {
            Plan::of(&function, *first)?;
        }
        let short = |shape: &StripShape| {
            let places = shape.rows.saturating_mul(shape.width);
            copies.saturating_mul(places) <= MOST_EVALUATIONS
                && operations.saturating_mul(places) <= MOST_OPERATIONS
        };
        if !shapes.iter().any(short) {
            let message = format!(
                "the code of the program's strips would evaluate its functions at more than \
                 {MOST_EVALUATIONS} places, or have more than {MOST_OPERATIONS} operations; leave \
                 the strategy open"
            );
            return Err(Error::declined(Decline::CodeSize, message));
        }
        let points = constant_extents(group.hull.lower, group.hull.upper);
        let points = points.and_then(|points| <[i64; 2]>::try_from(points.as_slice()).ok());
        let mut best: Option<Choice> = None;
        for shape in shapes.into_iter().filter(short) {
            let plan = Plan::of(&function, shape)?;
            if plan.fits(subject.device) {
                let choice = Choice { shape, clocks: clocks(&plan, subject.device, points) };
                best = Some(match best.take() {
                    Some(best) if !choice.is_faster(&best) => best,
                    _ => choice,
                });
            }
        }
        if let Some(Choice { shape, .. }) = best {
            let block = shape.rows * WARP * shape.strips;
            return Ok(Shape { tile: vec![block, shape.width], per_thread: vec![shape.rows, 1] });
        }
        let message = "no block has room for the values that strips keep; read nearer values, or \
                       leave the strategy open";
        Err(Error::declined(Decline::SharedMemory, message))
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
}

/// A shape that a block has room for, and the clocks of a sweep, where they are known.
struct Choice {
    shape: StripShape,
    clocks: Option<f64>,
}

impl Choice {
    /// Whether its sweeps are sure to be faster.
    fn is_faster(&self, other: &Self) -> bool {
        self.clocks.zip(other.clocks).is_some_and(|(own, other)| own < other)
    }
}

/// Clocks of a sweep of a grid: turns of the last tile row's block, as the rounds of tile rows give
/// them. None for a grid of open size, and for shapes whose turns were not measured.
fn clocks(plan: &Plan, device: &Device, points: Option<[i64; 2]>) -> Option<f64> {
    let geometry = &plan.geometry;
    let &Geometry { rows, strips, width, .. } = geometry;
    let shape = StripShape { rows, strips, width };
    let resident = plan.resident(device);
    let measured = TURNS.iter().find(|(known, blocks, _)| (*known, *blocks) == (shape, resident));
    let turns = wave::of_plan(plan, device, points?).critical_path()?;
    measured.map(|(_, _, turn)| turns as f64 * turn)
}

/// Copies of a point's code in the kernels of a program, one for each piece and one for each
/// function, and the operations of them all.
fn copies(program: &Program) -> Result<(i64, i64), Error> {
    let (mut copies, mut operations) = (0, 0_i64);
    for apply in &program.applies {
        if !program.dependences(&apply.pieces)?.is_empty() {
            copies += 1 + i64::try_from(apply.pieces.len()).unwrap_or(i64::MAX - 1);
            let mut longest = 0;
            for piece in &apply.pieces {
                let evaluation = code_size::evaluation(program, piece.function)?;
                operations = operations.saturating_add(evaluation);
                longest = longest.max(evaluation);
            }
            operations = operations.saturating_add(longest);
        }
    }
    Ok((copies, operations))
}

/// Declines fields on different points.
fn admit(alike: bool) -> Result<(), Error> {
    if alike {
        return Ok(());
    }
    let message = "the function updates fields on different points; leave the strategy open";
    Err(Error::declined(Decline::Applies, message))
}

/// Declines kernels on which no pass has noted a skew and flags.
fn admit_wave(wave: &tiled::Wave) -> Result<(), Error> {
    if wave.skew.is_none() {
        let message = "strips are skewed by their lanes; run hyperplane-skew, or use the strategy \
                       wavefront";
        return Err(Error::declined(Decline::Skew, message));
    }
    if wave.waiting != Some(Waiting::Peer) {
        let message = "strips wait for each other by flags; run peer-sync, or use the strategy \
                       wavefront";
        return Err(Error::declined(Decline::Sync, message));
    }
    Ok(())
}
