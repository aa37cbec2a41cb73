//! `coalesce-relayout`: kernels use a buffer for each number of an array of structs, where that
//! moves fewer bytes. Two kernels on the device move the numbers there at the start of a run, and
//! back at its end.
//!
//! Needs: lowered kernels of a GPU, their `tiled.repeat`s, and fields with
//! `stencil.layout = "aos"`, before `interleave-records`. Guarantees: the fields of an array of
//! structs whose transform pays have `stencil.layout = "relaid"`, a launch of `pack` before all
//! others, and one of `unpack` behind them, if the field is a state field. A note at its first
//! field has the bytes by which that was decided.
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
//!
//! The model is that of [`stencil_runtime::model::relayout`]. A field that kernels can't use as an
//! array of structs is relaid, whatever it costs.
//!
//! Declines, with a note, and leaves the fields as they are: a transform that does not pay, a run
//! that ends by a condition, several pyramid heights to choose from, and cells of more bytes than a
//! warp's share of shared memory. A second run changes nothing.

use super::record_transform::{self, Transform};
use crate::analysis::record_use;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module, Region};
use stencil_dialects::affine::{Linear, symbolic};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Layout, Program, Record, Role, set_layout, set_layout_note};
use stencil_dialects::tiled::{self, Launch, Repeat};
use stencil_runtime::model::relayout::{Cells, NumberUse, Relayout, relayout};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "coalesce-relayout",
    summary: "move arrays of structs to an array for each number, where that pays",
    options: &[
        ("always", "on: whatever it costs"),
        ("steps", "steps of a run, by default those of the program"),
    ],
    read: |options: &Options| {
        Ok(Box::new(CoalesceRelayout {
            always: options.flag("always")?.unwrap_or(false),
            steps: options.integer("steps", 0..=1 << 48)?,
        }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoalesceRelayout {
    /// Whether the fields are relaid whatever it costs.
    pub always: bool,
    /// Steps of a run; the program's own where there are none.
    pub steps: Option<i64>,
}

impl Pass for CoalesceRelayout {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let always = self.always.then(|| ("always", "on".to_owned()));
        always.into_iter().chain(self.steps.map(|steps| ("steps", steps.to_string()))).collect()
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
            let (layout, note) = self.choice(&subject, record, &launches, &repeats)?;
            set_layout_note(&builder, begin.op, &note);
            if layout == Layout::Aos {
                continue;
            }
            record.numbers.iter().for_each(|field| set_layout(&builder, field.op, layout));
            let kernel = |direction| record_transform::build(context, &subject, record, direction);
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
