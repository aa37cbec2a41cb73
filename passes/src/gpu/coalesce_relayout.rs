//! `coalesce-relayout`: kernels use an array of blocks in place of an array of structs, or a buffer
//! for each number, where that moves fewer bytes. Two kernels on the device move the numbers there
//! at the start of a run, and back at its end.
//!
//! Needs: lowered kernels of a GPU, their `tiled.repeat`s, and fields with
//! `stencil.layout = "aos"`, before `interleave-records`. Guarantees: the fields of an array of
//! structs whose transform pays have `stencil.layout = "relaid"`, a launch of `pack` before all
//! others, and one of `unpack` behind them, if the field is a state field. A note at its first
//! field has the bytes by which that was decided.
//!
//! Blocks lie in the memory of the structs and are chosen wherever that is possible: for a state
//! field of structs whose number of cells is certainly a multiple of a block's, if no kernel stores
//! some numbers of a cell alone or hands their buffers on. Such fields have `stencil.kernel_block`,
//! and `interleave-records` lets kernels use the blocks. The others get a buffer for each number.
//!
//! ```text
//! "stencil.field"() {sym_name = "W.h", stencil.layout = "aos", ...}
//! "tiled.repeat"() {count = #steps, kernels = [@k]}
//! ```
//! becomes
//! ```text
//! "stencil.field"() {sym_name = "W.h", stencil.layout = "relaid", ...}
//! "tiled.repeat"() {count = #one, kernels = [@pack_W]}
//! "tiled.repeat"() {count = #steps, kernels = [@k]}
//! "tiled.repeat"() {count = #one, kernels = [@unpack_W]}
//! gpu.func @pack_W(%W: memref<f32>, %h: memref<f32>, ...) { ... }
//! gpu.func @unpack_W(%h: memref<f32>, ..., %W: memref<f32>) { ... }
//! ```
//! With blocks `pack` and `unpack` have `%W` alone, which they rearrange.
//!
//! The model is that of [`stencil_runtime::model::relayout`]. A field that kernels can't use as an
//! array of structs is relaid, whatever it costs.
//!
//! Declines, with a note, and leaves the fields as they are: a transform that does not pay, a run
//! that ends by a condition, several pyramid heights to choose from, and cells of more bytes than a
//! warp's share of shared memory. A second run changes nothing.

use super::record_transform::{self, Transform};
use crate::analysis::record_use;
use crate::kernel::lanes::WARP;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module, Region};
use num_integer::gcd;
use stencil_dialects::affine::{Linear, symbolic};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{
    Layout, Program, Record, Role, set_kernel_block, set_layout, set_layout_note,
};
use stencil_dialects::tiled::{self, Launch, Repeat};
use stencil_runtime::model::relayout::{Cells, NumberUse, Relayout, relayout};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "coalesce-relayout",
    summary: "move arrays of structs to blocks, or to an array for each number, where that pays",
    options: &[
        ("always", "on: whatever it costs"),
        ("arrays", "on: to an array for each number, where blocks are possible too"),
        ("cells", "cells of a block, a power of two, by default 32"),
        ("steps", "steps of a run, by default those of the program"),
    ],
    read: |options: &Options| {
        Ok(Box::new(CoalesceRelayout {
            always: options.flag("always")?.unwrap_or(false),
            arrays: options.flag("arrays")?.unwrap_or(false),
            cells: options.power_of_two("cells", 1..=1024)?.unwrap_or(WARP),
            steps: options.integer("steps", 0..=1 << 48)?,
        }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug)]
pub struct CoalesceRelayout {
    /// Whether the fields are relaid whatever it costs.
    pub always: bool,
    /// Whether kernels get an array for each number, where blocks are possible too.
    pub arrays: bool,
    /// Cells of a block, a power of two.
    pub cells: i64,
    /// Steps of a run; the program's own where there are none.
    pub steps: Option<i64>,
}

impl Pass for CoalesceRelayout {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let on = |name, set: bool| set.then(|| (name, "on".to_owned()));
        let cells = (self.cells != WARP).then(|| ("cells", self.cells.to_string()));
        let steps = self.steps.map(|steps| ("steps", steps.to_string()));
        let all = [on("always", self.always), on("arrays", self.arrays), cells, steps];
        all.into_iter().flatten().collect()
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        let program = Program::read(module)?;
        let launches = tiled::launches(module)?;
        Ok(!launches.is_empty() && !record_use::open(&program, &launches).is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        let subject = Subject::of(module, &program)?;
        let launches = tiled::launches(module)?;
        let repeats = tiled::repeats(module)?;
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let records = record_use::open(&program, &launches);
        record_use::on_gpu(&records, &launches)?;
        for record in &records {
            let Some(begin) = record.numbers.first() else { continue };
            let builder = Builder::new(context, begin.op.location(), mlir::body(module));
            let (layout, mut note) = self.choice(&subject, record, &launches, &repeats)?;
            let mut block = None;
            if layout == Layout::Relaid {
                let reason = self.needs_arrays(&subject, record, &launches)?;
                note += &match &reason {
                    Some(reason) => format!("; an array for each number, as {reason}"),
                    None => "; in place".to_owned(),
                };
                block = reason.is_none().then_some(self.cells);
            }
            set_layout_note(&builder, begin.op, &note);
            if layout == Layout::Aos {
                continue;
            }
            for field in &record.numbers {
                set_layout(&builder, field.op, layout);
                if let Some(block) = block {
                    set_kernel_block(&builder, field.op, block);
                }
            }
            let kernel =
                |direction| record_transform::build(context, &subject, record, block, direction);
            first.push(kernel(Transform::Pack)?);
            if begin.role == Role::State {
                last.push(kernel(Transform::Unpack)?);
            }
        }
        let Some(begin) = repeats.first() else { return Ok(()) };
        let location = begin.op.location();
        let one = AffineExpr::constant(context, 1);
        let one = symbolic(context, program.params.len() + 1, &[one]);
        let end = Builder::new(context, location, mlir::body(module));
        if !first.is_empty() {
            let region = Region::new();
            let before = end.at(mlir::append_block(&region, &[]));
            mlir::move_before(tiled::repeat(&before, one, &first)?, begin.op);
        }
        if !last.is_empty() {
            tiled::repeat(&end, one, &last)?;
        }
        Ok(())
    }
}

impl CoalesceRelayout {
    /// The layout of a record, and why.
    fn choice(
        &self,
        subject: &Subject,
        record: &Record,
        launches: &[Launch],
        repeats: &[Repeat],
    ) -> Result<(Layout, String), Error> {
        let program = subject.program;
        if program.until.is_some() {
            return Ok((Layout::Aos, "not relaid: a condition ends the run".to_owned()));
        }
        if repeats.is_empty() || repeats.iter().any(|repeat| repeat.height.is_some()) {
            let note = "not relaid: the run chooses from several schedules";
            return Ok((Layout::Aos, note.to_owned()));
        }
        if record_transform::threads(subject, record).is_none() {
            let note = "not relaid: shared memory has no room for the cells of a warp";
            return Ok((Layout::Aos, note.to_owned()));
        }
        let found = traffic(record, launches, repeats);
        let (from, steps) = (found.pays_from(), self.steps.or_else(|| known_steps(program)));
        let pays = from.is_some_and(|from| steps.is_none_or(|steps| steps >= from));
        let obstacle = record_use::obstacle(record, launches)?;
        let layout = match self.always || pays || obstacle.is_some() {
            true => Layout::Relaid,
            false => Layout::Aos,
        };
        let saved = found.saved_by_a_step();
        let moved =
            format!("the transform moves {} bytes a cell and saves {saved:.1} a step", found.moved);
        let least = match from {
            Some(from) => format!("it pays in a run of {from} steps or more"),
            None => "it pays in no run".to_owned(),
        };
        let run = match (steps, obstacle) {
            (_, Some(obstacle)) if !pays => format!("needed, as {obstacle}"),
            _ if self.always && !pays => "it was asked for".to_owned(),
            (Some(steps), _) => format!("the program takes {steps}"),
            (None, _) => "the program has no fixed number of steps".to_owned(),
        };
        Ok((layout, format!("{moved}; {least}; {run}")))
    }
}

impl CoalesceRelayout {
    /// Why kernels get an array for each number and not blocks; none where they get blocks.
    fn needs_arrays(
        &self,
        subject: &Subject,
        record: &Record,
        launches: &[Launch],
    ) -> Result<Option<String>, Error> {
        let state = record.numbers.first().is_some_and(|field| field.role == Role::State);
        let threads = record_transform::threads(subject, record).unwrap_or(0);
        let reason = if self.arrays {
            "it was asked for".to_owned()
        } else if !state {
            "no run changes the memory of a const field".to_owned()
        } else if record.block > 1 {
            format!("it lies in blocks of {} cells", record.block)
        } else if threads % self.cells != 0 {
            format!("shared memory has no room for {} cells", self.cells)
        } else if divisor_of_cells(subject.program, record)? % self.cells.unsigned_abs() != 0 {
            format!("the number of cells may be no multiple of {}", self.cells)
        } else {
            return record_use::obstacle(record, launches);
        };
        Ok(Some(reason))
    }
}

/// A number that divides the cells of a record, whatever the sizes of the run are.
fn divisor_of_cells(program: &Program, record: &Record) -> Result<u64, Error> {
    let grid = program.grid_of(record.name)?;
    let (lower, upper) = (Linear::of_map(grid.lower), Linear::of_map(grid.upper));
    let (Some(lower), Some(upper)) = (lower, upper) else { return Ok(1) };
    let divisor = |(first, last): (&Linear, &Linear)| {
        let extent = last.minus(first).and_then(|distance| {
            Some(Linear { constant: distance.constant.checked_add(1)?, ..distance })
        });
        let Some(extent) = extent else { return 1 };
        let parts = extent.coefficients.iter().chain([&extent.constant]);
        parts.fold(0, |divisor, part| gcd(divisor, part.unsigned_abs()))
    };
    Ok(lower.iter().zip(&upper).map(divisor).fold(1, u64::saturating_mul))
}

/// The bytes that either way moves, counted in the first `tiled.repeat` that takes steps: it does
/// most of them.
fn traffic(record: &Record, launches: &[Launch], repeats: &[Repeat]) -> Relayout {
    let named = |name: &&str| launches.iter().find(|launch| launch.name == *name);
    let takes_steps = |repeat: &&Repeat| {
        repeat.kernels.iter().filter_map(named).any(|launch| launch.schedule.steps > 0)
    };
    let main = repeats.iter().find(takes_steps);
    let names = main.map(|repeat| repeat.kernels.as_slice()).unwrap_or_default();
    let (mut uses, mut steps) = (Vec::new(), 0);
    let count = |numbers: usize| i64::try_from(numbers).unwrap_or(i64::MAX);
    for launch in names.iter().filter_map(named) {
        let found = record_use::of(record, launch);
        let updated = found.updated.len();
        uses.push(NumberUse {
            read: count(found.read.len() + updated),
            written: count(found.written.len() + updated),
        });
        steps += launch.schedule.steps;
    }
    let state = record.numbers.first().is_some_and(|field| field.role == Role::State);
    let (numbers, bytes) = (count(record.numbers.len()), record.number_bytes());
    relayout(Cells { numbers, bytes, block: record.block }, &uses, steps, state)
}

/// The steps of a run, where the program has a number; of several results the positive ones count.
fn known_steps(program: &Program) -> Option<i64> {
    let parts = Linear::of_map(program.steps)?;
    let number = |part: &Linear| part.is_constant().then_some(part.constant);
    let parts: Option<Vec<i64>> = parts.iter().map(number).collect();
    Some(parts?.into_iter().map(|steps| steps.max(0)).fold(0, i64::saturating_add))
}
