//! `sweeps-in-flight`: lets several sweeps of a wavefront run in one launch, each behind the one
//! before by the distance of its dependences. A chip then has work for all its blocks even where
//! there are few tile rows, and a launch has one beginning and one end for all its sweeps.
//!
//! The tile rows of all sweeps are numbered one sweep behind the other. A tile waits for tile rows
//! of smaller numbers alone: those before its own in its sweep, and those of the sweep before whose
//! values it reads or overwrites (`analysis/between_sweeps.rs`). Blocks take the numbers in order,
//! so some block can always go on. Each number has a flag of its own.
//!
//! Needs: tile kernels behind `hyperplane-skew` and `peer-sync`, and the host schedule that
//! `tile-overlapped` makes. Guarantees: where a step is a single kernel that sweeps, kernels of
//! `sweeps` steps and of the powers of two below, for the steps that are left over. With 1 each
//! sweep is a launch. Without the option and a pyramid height of the module, up to 32 sweeps are
//! taken, and programs of which no launch takes several are left as they are.
//!
//! ```text
//! func.func @heat_0() attributes {tiled.steps = 1 : i64, tiled.sync = "peer", ...}
//! "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@heat_0]}
//! ```
//! becomes, for `sweeps=2`,
//! ```text
//! func.func @heat_0() attributes {tiled.steps = 1 : i64, tiled.sync = "peer", ...}
//! func.func @heat_2() attributes {tiled.steps = 2 : i64, tiled.sweeps = 2 : i64, ...}
//! "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps floordiv 2)>, kernels = [@heat_2]}
//! "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps mod 2)>, kernels = [@heat_0]}
//! ```
//! Declines, where a number is asked for: a step of several kernels or reductions, more sweeps than
//! lie between two looks at the condition of the run, tiles that are not skewed or wait otherwise
//! than by flags, buffers that rotate behind the launch, strategies that run one sweep per launch,
//! old values at computed places or beyond an end of a periodic field.

use crate::analysis::between_sweeps;
use crate::analysis::wavefront::kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choice;
use crate::schedule::code_size::heights;
use crate::schedule::tile_kernel;
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Choice, Kernel, MOST_STEPS, Repeat, Waiting};

/// The option for [`SweepsInFlight::sweeps`].
const SWEEPS: (&str, &str) =
    ("sweeps", "sweeps of a launch (default: the module's pyramid height, else up to 32)");

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "sweeps-in-flight",
    summary: "let several sweeps of a wavefront run in one launch",
    options: &[SWEEPS],
    read: |options: &Options| {
        let sweeps = options.integer(SWEEPS.0, 1..=MOST_STEPS)?;
        Ok(Box::new(SweepsInFlight { sweeps }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepsInFlight {
    /// Sweeps of a launch; none for the module's choice.
    pub sweeps: Option<i64>,
}

impl Pass for SweepsInFlight {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.sweeps.map(|sweeps| (SWEEPS.0, sweeps.to_string())).into_iter().collect()
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(self.asked(module)?.is_none_or(|sweeps| sweeps > 1) && !kernels(module)?.is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let asked = self.asked(module)?;
        let sweeping = kernels(module)?;
        let Some((first, _)) = sweeping.first() else { return Ok(()) };
        let program = Program::read(module)?;
        let sweeps = asked.unwrap_or_else(|| usual(&program));
        let done = sweeping.iter().any(|(kernel, _)| kernel.wave.sweeps.is_some());
        if sweeps < 2 || done {
            return Ok(());
        }
        let subject = Subject::of(module, &program)?;
        let admitted = alone(module, first, sweeps);
        let repeats = match admitted.and_then(|all| admit(&subject, first).map(|()| all)) {
            Err(error) if asked.is_none() && error.is_decline() => return Ok(()),
            admitted => admitted.map_err(|error| error.at(mlir::place(first.op.location())))?,
        };
        let builder = Builder::new(context, first.op.location(), mlir::body(module));
        let mut names = Vec::new();
        for steps in heights(sweeps) {
            let name = match steps {
                1 => first.name.to_owned(),
                _ => {
                    let name = tile_kernel::name(&subject, steps);
                    let copy = tiled::copy(&builder, first.op, &name)?;
                    tiled::set_steps(&builder, copy, steps);
                    tiled::set_sweeps(&builder, copy, steps);
                    name
                }
            };
            names.push((steps, name));
        }
        for repeat in repeats {
            replace(&builder, &program, &repeat, &names)?;
        }
        Ok(())
    }
}

impl SweepsInFlight {
    /// The sweeps of a launch that are asked for.
    fn asked(&self, module: &Module) -> Result<Option<i64>, Error> {
        let choice = Choice { pyramid_height: self.sweeps, ..Choice::default() };
        Ok(choice::completed(&choice, module)?.pyramid_height)
    }
}

/// Sweeps of a launch where nothing is asked for. With more, rates on an H200 hardly grow
/// (`docs/wavefronts.md`).
const USUAL: i64 = 32;

/// The usual sweeps of a launch: no more than the steps of a run, or than those between two looks
/// at its condition.
fn usual(program: &Program) -> i64 {
    let single = program.steps.result(0).ok().filter(|_| program.steps.result_count() == 1);
    let known = single.filter(|steps| steps.is_constant()).map(|steps| steps.constant_value());
    let most = program.until.as_ref().map(|until| until.every).or(known).unwrap_or(USUAL);
    (0..62).map(|bit| 1 << bit).take_while(|sweeps| *sweeps <= most.min(USUAL)).last().unwrap_or(1)
}

/// The parts of the host schedule, if a kernel is all of a step.
fn alone<'c>(
    module: &Module<'c>,
    kernel: &Kernel<'c>,
    sweeps: i64,
) -> Result<Vec<Repeat<'c>>, Error> {
    let repeats = tiled::repeats(module)?;
    let (own, others): (Vec<_>, Vec<_>) =
        repeats.into_iter().partition(|repeat| repeat.kernels.as_slice() == [kernel.name]);
    let all = tiled::kernels(module)?;
    // What else there is computes reductions behind the last step.
    let others_run = others.iter().flat_map(|repeat| &repeat.kernels);
    let beside = others_run.clone().any(|name| all.iter().any(|kernel| kernel.name == *name));
    if own.is_empty() || beside || kernel.schedule.steps != 1 {
        return Err(Error::declined(
            Decline::Height,
            "a step of the program is more than one function that reads values of its own sweep, \
             so a launch takes one step; leave pyramid-height out",
        ));
    }
    let program = Program::read(module)?;
    match program.until.as_ref().map(|until| until.every) {
        Some(most) if most < sweeps => Err(Error::declined(
            Decline::Height,
            format!(
                "the condition of the run is looked at every {most} steps, so that a launch can't \
                 take {sweeps}; choose a smaller pyramid-height, or look less often"
            ),
        )),
        _ => Ok(own),
    }
}

/// Declines a kernel whose sweeps do not run at once.
fn admit<'c>(subject: &Subject<'c, '_>, kernel: &Kernel<'c>) -> Result<(), Error> {
    strategies::named(&kernel.schedule.strategy)?.admit_sweeps(subject, kernel)?;
    if kernel.wave.skew.is_none() || kernel.wave.waiting != Some(Waiting::Peer) {
        return Err(Error::declined(
            Decline::Sync,
            "several sweeps of a launch need skewed tiles whose blocks wait by flags; run \
             hyperplane-skew and peer-sync before sweeps-in-flight",
        ));
    }
    if !tiled::rotations(kernel.op)?.is_empty() {
        return Err(Error::declined(
            Decline::Height,
            "several sweeps of a launch exchange two buffers themselves, and buffers rotate behind \
             this one already; run rotate-buffers behind sweeps-in-flight",
        ));
    }
    if !kernel.rows.is_empty() {
        return Err(Error::declined(
            Decline::Height,
            "several sweeps of a launch find whole fields in memory, and this one leaves rows; \
             leave pyramid-height out",
        ));
    }
    for apply in kernel.applies() {
        let updates: Vec<_> = apply.outputs.iter().map(|(field, _)| *field).collect();
        between_sweeps::distances(subject.program, &apply.pieces, &updates)?;
    }
    Ok(())
}

/// Launches of a kernel, as often as an expression says, in front of those that they stand for.
pub(super) fn launches<'c>(
    builder: &Builder<'c>,
    program: &Program<'c>,
    repeat: &Repeat<'c>,
    (count, name): (AffineExpr<'c>, &String),
) -> Result<(), Error> {
    if count.is_constant() && count.constant_value() == 0 {
        return Ok(());
    }
    let count = symbolic(builder.context, program.params.len() + 1, &[count]);
    let made = tiled::repeat(builder, count, std::slice::from_ref(name))?;
    if let Some(part) = repeat.part {
        tiled::set_part(builder, made, part);
    }
    mlir::move_before(made, repeat.op);
    Ok(())
}

/// Puts launches of several sweeps in the place of one launch for each.
fn replace<'c>(
    builder: &Builder<'c>,
    program: &Program<'c>,
    repeat: &Repeat<'c>,
    names: &[(i64, String)],
) -> Result<(), Error> {
    let count = repeat.count.result(0).map_err(|error| Error::internal(error.to_string()))?;
    let constant = |value| AffineExpr::constant(builder.context, value);
    let most = names.iter().map(|(steps, _)| *steps).max().unwrap_or(1);
    for (steps, name) in names {
        let taken = AffineExpr::floor_div(count, constant(*steps));
        let digit = || {
            let left = AffineExpr::modulo(count, constant(most));
            AffineExpr::modulo(AffineExpr::floor_div(left, constant(*steps)), constant(2))
        };
        let count = if *steps == most { taken } else { digit() };
        launches(builder, program, repeat, (count, name))?;
    }
    mlir::erase(repeat.op);
    Ok(())
}
