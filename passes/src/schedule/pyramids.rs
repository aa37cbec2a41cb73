//! Host schedules of launches that take several steps: a main kernel, and kernels for the steps
//! that are left over.
//!
//! The steps left over are fewer than the pyramid height: each binary digit of their number is one
//! launch. With several heights, the kernel of a power of two serves the heights above it too.

use super::code_size::heights;
use super::launch_groups::{self, Group};
use super::regions;
use super::step_schedule::{Launches, StepSchedule};
use super::strategy::Strategy;
use super::tile_kernel;
use super::tile_overlapped::Tiling;
use melior::ir::AffineExpr;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::tiled::{Height, Schedule};

impl<'c> Tiling<'c, '_> {
    /// Whether a launch may take several steps of a group that is the whole step.
    pub(super) fn takes_several(
        &self,
        builder: &Builder<'c>,
        group: &Group<'c, '_>,
    ) -> Result<bool, Error> {
        let alike =
            || launch_groups::repeats_alike(builder.context, self.subject.program, &group.applies);
        Ok(!group.sweeps && !group.gathers_own && group.repeats.is_empty() && alike()?)
    }

    /// Kernels of several steps, and of the powers of two below for the steps left over.
    pub(super) fn pyramids(
        &self,
        builder: &Builder<'c>,
        (group, strategy): (&Group<'c, '_>, &'static dyn Strategy),
        schedule: &Schedule,
        pyramid_height: i64,
    ) -> Result<(), Error> {
        let names = self.kernel_names(&heights(pyramid_height));
        for (steps, name) in &names {
            let schedule = Schedule { steps: *steps, ..schedule.clone() };
            self.kernel(builder, name, (group, strategy), *steps, schedule)?;
        }
        let schedule = StepSchedule { program: self.subject.program, builder, height: None };
        schedule.all(|steps| launches(builder, steps, pyramid_height, &names))
    }

    /// Names that are free for the kernels of some heights.
    pub(super) fn kernel_names(&self, heights: &[i64]) -> Names {
        let named = |steps: &i64| (*steps, tile_kernel::name(&self.subject, *steps));
        heights.iter().map(named).collect()
    }

    /// The kernel of one of several heights, and the host schedule of its alternative.
    pub(super) fn alternative(
        &self,
        builder: &Builder<'c>,
        groups: &[Group<'c, '_>],
        names: &Names,
    ) -> Result<(), Error> {
        let height = self.choice.pyramid_height.unwrap_or(1);
        let fuses = self.strategy.fuses_steps() || height == 1;
        let (true, [group]) = (fuses, groups) else {
            return Err(declined("no launch takes all functions of a step"));
        };
        if !self.takes_several(builder, group)? {
            return Err(declined("a launch takes at most one step of this program"));
        }
        let has = |steps: &i64| names.iter().any(|(one, _)| one == steps);
        if let Some(missing) = heights(height).into_iter().find(|steps| !has(steps)) {
            return Err(Error::user(format!(
                "the steps that a pyramid height of {height} leaves over need a height of \
                 {missing}; add it to tiled.heights"
            )));
        }
        let (strategy, schedule) = self.schedule(group, groups)?;
        let schedule = Schedule { steps: height, ..schedule };
        self.kernel(builder, name_of(names, height), (group, strategy), height, schedule)?;
        let program = self.subject.program;
        let mut reach = vec![0; group.hull.rank()];
        for halo in regions::of(program, group, 1)?.loads.values() {
            let ends = halo.lower.iter().zip(&halo.upper);
            for (reach, (lower, upper)) in reach.iter_mut().zip(ends) {
                *reach = (*reach).max(-lower).max(*upper);
            }
        }
        let own = Some(Height { steps: height, reach });
        let schedule = StepSchedule { program, builder, height: own };
        schedule.all(|steps| launches(builder, steps, height, names))
    }
}

/// The launches of so many steps.
fn launches<'c>(
    builder: &Builder<'c>,
    steps: AffineExpr<'c>,
    height: i64,
    names: &Names,
) -> Launches<'c> {
    let constant = |value| AffineExpr::constant(builder.context, value);
    let left = AffineExpr::modulo(steps, constant(height));
    let launches = heights(height).into_iter().map(|taken| {
        let count = match taken == height {
            true => AffineExpr::floor_div(steps, constant(taken)),
            false => {
                let count = AffineExpr::floor_div(left, constant(taken));
                AffineExpr::modulo(count, constant(2))
            }
        };
        (count, vec![name_of(names, taken).to_owned()])
    });
    launches.collect()
}

/// Kernels by the steps that they take.
pub(super) type Names = Vec<(i64, String)>;

fn name_of(names: &Names, height: i64) -> &str {
    names.iter().find(|(one, _)| *one == height).map_or("", |(_, name)| name)
}

fn declined(reason: &str) -> Error {
    let message = format!("{reason}, so a plan has one pyramid height; leave heights out");
    Error::declined(Decline::Height, message)
}
