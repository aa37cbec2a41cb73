//! `stay-resident`: lets a launch of strategy `resident` take several rounds of steps, between
//! which tiles stay in registers.
//!
//! Blocks exchange rims between two rounds (`strategies/resident/lower_resident.rs`), so that a
//! round costs neither a launch nor the load and the store of a tile.
//!
//! Needs: tile kernels and the host schedule that `tile-overlapped` makes. Guarantees: where the
//! kernel of the pyramid height is launched by itself, a kernel of `rounds` rounds, and one of 8
//! for the rounds that are left over. Steps that are less than a round keep their kernels. Without
//! the option a launch takes all rounds of a run whose steps are known, up to 1,024 steps, so that
//! a run can be cancelled between launches.
//!
//! ```text
//! func.func @heat_4() attributes {tiled.steps = 4 : i64, tiled.strategy = "resident", ...}
//! "tiled.repeat"() {count = affine_map<()[n] -> (n floordiv 4)>, kernels = [@heat_4]}
//! ```
//! becomes, for `rounds=8`,
//! ```text
//! func.func @heat_4() attributes {tiled.steps = 4 : i64, tiled.strategy = "resident", ...}
//! func.func @heat_32() attributes {tiled.steps = 32 : i64, tiled.sweeps = 8 : i64, ...}
//! "tiled.repeat"() {count = affine_map<()[n] -> (n floordiv 4 floordiv 8)>, kernels = [@heat_32]}
//! "tiled.repeat"() {count = affine_map<()[n] -> (n floordiv 4 mod 8)>, kernels = [@heat_4]}
//! ```
//! Declines: steps of several kernels or reductions, several pyramid heights.

use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::{sweeps_in_flight, tile_kernel};
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Kernel, MOST_STEPS, Repeat};

/// The option for [`StayResident::rounds`].
const ROUNDS: (&str, &str) =
    ("rounds", "rounds of a launch (default: those of a run, up to 1024 steps)");

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "stay-resident",
    summary: "let a launch take several rounds of steps, between which tiles stay in registers",
    options: &[ROUNDS],
    read: |options: &Options| {
        Ok(Box::new(StayResident { rounds: options.integer(ROUNDS.0, 1..=MOST_STEPS)? }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StayResident {
    /// Rounds of a launch; none for those of a run.
    pub rounds: Option<i64>,
}

/// Steps of a launch, at most.
const STEPS: i64 = 1024;

/// Rounds of the launches for rounds that are left over.
const FEW: i64 = 8;

impl Pass for StayResident {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.rounds.map(|rounds| (ROUNDS.0, rounds.to_string())).into_iter().collect()
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(!resident(module)?.is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        let kernels = resident(module)?;
        let Some(main) = kernels.iter().max_by_key(|kernel| kernel.schedule.steps) else {
            return Ok(());
        };
        let repeats = tiled::repeats(module)?;
        let other = repeats.iter().any(|repeat| repeat.height.is_some());
        let own = repeats.into_iter().filter(|repeat| repeat.kernels.as_slice() == [main.name]);
        let own: Vec<Repeat> = own.collect();
        if own.is_empty() || other || main.wave.sweeps.is_some() {
            let message = format!(
                "the strategy {} takes a step of one kernel, by launches of one pyramid height; \
                 choose another strategy",
                main.schedule.strategy
            );
            let error = Error::declined(Decline::Height, message);
            return Err(error.at(mlir::place(main.op.location())));
        }
        let subject = Subject::of(module, &program)?;
        let builder = Builder::new(context, main.op.location(), mlir::body(module));
        let steps = main.schedule.steps.max(1);
        let most = self.rounds.unwrap_or_else(|| usual(&program, steps));
        let mut names = Vec::new();
        for rounds in [most, FEW].into_iter().filter(|rounds| *rounds > 1 && *rounds <= most) {
            if names.iter().any(|(other, _)| *other == rounds) {
                continue;
            }
            let all = steps.saturating_mul(rounds);
            let name = tile_kernel::name(&subject, all);
            let copy = tiled::copy(&builder, main.op, &name)?;
            tiled::set_steps(&builder, copy, all);
            tiled::set_sweeps(&builder, copy, rounds);
            names.push((rounds, name));
        }
        names.push((1, main.name.to_owned()));
        own.iter().try_for_each(|repeat| replace(&builder, &program, repeat, &names))
    }
}

/// The kernels of strategies that stay resident.
fn resident<'c>(module: &Module<'c>) -> Result<Vec<Kernel<'c>>, Error> {
    let mut found = Vec::new();
    for kernel in tiled::kernels(module)? {
        if strategies::named(&kernel.schedule.strategy)?.stays_resident() {
            found.push(kernel);
        }
    }
    Ok(found)
}

/// Rounds of a launch where none are asked for: those of a run, or of the steps between two looks
/// at its condition, as far as they are known.
fn usual(program: &Program, steps: i64) -> i64 {
    let single = program.steps.result(0).ok().filter(|_| program.steps.result_count() == 1);
    let known = single.filter(|steps| steps.is_constant()).map(|steps| steps.constant_value());
    let run = program.until.as_ref().map(|until| until.every).or(known).unwrap_or(STEPS);
    run.clamp(1, STEPS) / steps
}

/// Puts launches of several rounds in the place of one launch for each; `names` has the kernels
/// with their rounds, the most first.
fn replace<'c>(
    builder: &Builder<'c>,
    program: &Program<'c>,
    repeat: &Repeat<'c>,
    names: &[(i64, String)],
) -> Result<(), Error> {
    let count = repeat.count.result(0).map_err(|error| Error::internal(error.to_string()))?;
    let mut left = count;
    for (rounds, name) in names {
        let rounds = AffineExpr::constant(builder.context, *rounds);
        let taken = AffineExpr::floor_div(left, rounds);
        left = AffineExpr::modulo(left, rounds);
        sweeps_in_flight::launches(builder, program, repeat, (taken, name))?;
    }
    mlir::erase(repeat.op);
    Ok(())
}
