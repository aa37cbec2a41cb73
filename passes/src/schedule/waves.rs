//! The waves of a program: what the model says of its tile kernels that read values of their own
//! sweep.
//!
//! Run-time sizes count as large ones, as for `predict.rs`.

use crate::kernel::tile_kernels;
use crate::schedule::large::Large;
use crate::schedule::lowering::{self, Settings};
use crate::schedule::{predict, trial};
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Choice, Kernel};
use stencil_runtime::model::Pace;
use stencil_runtime::model::wavefront::Wave;

/// A kernel that sweeps, with its wave.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The kernel's name.
    pub kernel: String,
    /// Points per dimension, slowest first.
    pub points: Vec<i64>,
    /// Its tile.
    pub tile: Vec<i64>,
    /// Its tile rows.
    pub wave: Wave,
    /// How long its tiles take.
    pub pace: Pace,
    /// Whether the pace is measured; else it follows from numbers of the device.
    pub is_measured: bool,
}

impl Sweep {
    /// Seconds of a sweep by the model; none of too many tile rows of several dimensions.
    pub fn seconds(&self) -> Option<f64> {
        self.wave.seconds(&self.pace)
    }

    /// Points a second, in 10^9.
    pub fn gcells(&self) -> Option<f64> {
        let points: f64 = self.points.iter().map(|points| *points as f64).product();
        Some(points / self.seconds().filter(|seconds| *seconds > 0.0)? * 1e-9)
    }
}

/// The waves of a module at the stencil level, under a choice that the module's own completes.
///
/// # Errors
/// Where the choice does not fit.
pub fn of<'c>(
    context: &'c Context,
    module: &Module<'c>,
    choice: &Choice,
    settings: Settings,
) -> Result<Vec<Sweep>, Error> {
    let program = Program::read(module)?;
    if !program.sweeps()? {
        return Ok(Vec::new());
    }
    let subject = Subject::of(module, &program)?;
    let open = predict::openings(context, &subject, choice, settings)?;
    let choice = open.first().unwrap_or(choice);
    let mut copy = trial::copied(&subject)?;
    lowering::tile(choice).iter().try_for_each(|step| step.run(context, &mut copy))?;
    of_tiled(context, &copy)
}

/// The waves of a module at the tiled level.
///
/// # Errors
/// A kernel that its strategy declines.
pub fn of_tiled<'c>(context: &'c Context, module: &Module<'c>) -> Result<Vec<Sweep>, Error> {
    let program = Program::read(module)?;
    let subject = Subject::of(module, &program)?;
    let mut found = Vec::new();
    let kernels = tiled::kernels(module)?;
    let most = kernels.iter().filter_map(|kernel| kernel.wave.sweeps).max();
    // The other numbers of sweeps are for the steps that are left over.
    let counts = |kernel: &&Kernel| kernel.wave.sweeps.is_none() || kernel.wave.sweeps == most;
    for kernel in kernels.iter().filter(counts) {
        found.extend(of_kernel(context, &subject, kernel, &kernel.schedule.tile)?);
    }
    Ok(found)
}

/// The wave of a kernel with another tile; none of a kernel that computes all points at once.
///
/// # Errors
/// A tile that its strategy declines.
pub fn of_kernel<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    tile: &[i64],
) -> Result<Option<Sweep>, Error> {
    let strategy = strategies::named(&kernel.schedule.strategy)?;
    if !strategy.sweeps() {
        return Ok(None);
    }
    let hull = tile_kernels::hull(context, subject.program, kernel)?;
    let points = Large::of(subject.program).extents(hull.lower, hull.upper)?;
    let wave = strategy.wave(subject, kernel, (tile, &points))?;
    let (kernel, tile) = (kernel.name.to_owned(), tile.to_vec());
    let measured = tiled::pace(subject.module)?.map(|[diagonal, handover]| Pace {
        diagonal: diagonal as f64 * 1e-12,
        handover: handover as f64 * 1e-12,
    });
    let is_measured = measured.is_some();
    Ok(wave.map(|(wave, pace)| {
        let pace = measured.unwrap_or(pace);
        Sweep { kernel, points, tile, wave, pace, is_measured }
    }))
}
