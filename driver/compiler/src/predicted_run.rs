//! The predicted time of a run, in seconds by resource. Idle lanes and the share of transfers stand
//! beside it.
//!
//! The counts are those of `stencil_passes::analysis::global_traffic` over the iteration spaces of
//! the lowered kernels, and the time is that of `stencil_runtime::model`. An array counts as bytes
//! of device memory once for each launch that accesses it, and at most the sectors that the launch
//! accesses. Sectors beyond that hit the level 2 cache as halos of tiles do, and always where the
//! launch's arrays fit in it.

use crate::toolchain::KernelResources;
use crate::traffic::{self, Effort};
use melior::ir::Module;
use serde::Serialize;
use std::fmt::{self, Formatter};
use stencil_dialects::error::Error;
use stencil_dialects::tiled;
use stencil_passes::analysis::global_traffic::Executed;
use stencil_passes::analysis::{iteration_space, kernel_work};
use stencil_runtime::bind::Bound;
use stencil_runtime::device::{Device, SECTOR, WARP};
use stencil_runtime::launch::Value;
use stencil_runtime::model::{Prediction, Roofline, Work, predict};
use stencil_runtime::plan::Plan;

/// The work of a run's warps, and the transfers between host and device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mix {
    /// Branches that lanes of a warp take differently, of those that warps meet.
    pub divergent: f64,
    /// Lanes that are idle, of those of the instructions that warps execute.
    pub idle: f64,
    /// Sectors needed if the elements of each access lay side by side, of those that are
    /// moved.
    pub coalesced: f64,
    /// Bytes of arrays that a run copies to the device, and back.
    pub transferred: [u64; 2],
    /// Seconds that the copies take at least.
    pub transfer_seconds: f64,
}

/// The launches of a kernel in a predicted run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedKernel {
    /// The kernel.
    pub name: String,
    /// Its launches.
    pub launches: f64,
    /// Their time.
    pub prediction: Prediction,
}

/// A run that is predicted from what its launches execute.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedRun {
    /// The kernels that are launched, in the plan's order.
    pub kernels: Vec<PredictedKernel>,
    /// The time of all launches.
    pub prediction: Prediction,
    /// Where they lie under the roofline; none without floating-point arithmetic.
    #[serde(skip)]
    pub roofline: Option<Roofline>,
}

/// Launches of a kernel that execute the same.
struct Alike<'m> {
    kernel: usize,
    launches: f64,
    executed: Executed,
    work: Work,
    name: &'m str,
}

/// What the warps of a run do, and how long it takes. There is no time where a block of a kernel
/// does not fit on a multiprocessor. `resources` is what ptxas says of kernels, if it was asked.
///
/// # Errors
/// Kernels that were not lowered, and a run that is impossible.
pub fn of(
    module: &Module,
    plan: &Plan,
    bound: &Bound,
    resources: &[KernelResources],
    device: &Device,
) -> Result<(Mix, Option<PredictedRun>), Error> {
    let lowered = tiled::launches(module)?;
    let mut alike = Vec::new();
    for one in traffic::launched(&lowered, plan, bound, Effort::Sampled, iteration_space::of_work)?
    {
        let found = lowered.iter().find(|launch| launch.name == one.launch.kernel.name);
        let launch = found.ok_or_else(|| Error::internal("a launch of a kernel that is gone"))?;
        let (mut base, mut spills) = (kernel_work::resources(launch, device), 0.0);
        if let Some(known) = resources.iter().find(|known| known.name == launch.name) {
            base.registers = known.registers;
            spills = f64::from(known.spills);
        }
        let blocks = one.launch.grid.iter().map(|blocks| f64::from(*blocks)).product();
        let bytes = |argument: usize| match one.launch.arguments.get(argument) {
            Some(Value::Buffer(buffer)) => {
                bound.buffers.get(buffer.0).map(|buffer| buffer.bytes() as f64)
            }
            _ => None,
        };
        let mut work = work(base, blocks, &one.counted.executed, &bytes, device);
        work.lacking = lacking(&work, spills);
        alike.push(Alike {
            kernel: one.launch.index,
            launches: one.launches as f64,
            executed: one.counted.executed,
            work,
            name: launch.name,
        });
    }
    alike.sort_by_key(|one| one.kernel);
    Ok((mix(&alike, plan, bound, device), predicted(&alike, device)))
}

/// A launch's work in a block, on average.
fn work(
    base: Work,
    blocks: f64,
    executed: &Executed,
    bytes: &dyn Fn(usize) -> Option<f64>,
    device: &Device,
) -> Work {
    let (mut own, mut all) = (0.0, 0.0);
    for (argument, sectors) in &executed.sectors {
        for sectors in sectors {
            let moved = sectors * f64::from(SECTOR);
            all += moved;
            own += argument.and_then(bytes).unwrap_or(moved).min(moved);
        }
    }
    let halo = if own <= device.l2 as f64 { 0.0 } else { all - own };
    let (total, longest) = (&executed.total, &executed.longest);
    let (block, lanes) =
        (|count: f64| count / blocks, |count: f64| count * f64::from(WARP) / blocks);
    let warps = f64::from(base.threads.div_ceil(WARP));
    Work {
        blocks,
        own: block(own),
        halo: block(halo),
        single: lanes(total.single),
        double: lanes(total.double),
        integers: lanes(total.integers),
        instructions: block(total.instructions) + warps * kernel_work::START,
        longest: block(longest.instructions) + kernel_work::START,
        shuffles: block(total.shuffles),
        exchanged: lanes(total.exchanged),
        cached: block(all),
        barriers: block(longest.barriers),
        fetches: block(longest.fetches),
        rounds: block(longest.rounds),
        serial: block(longest.serial),
        redundancy: 1.0,
        ..base
    }
}

/// Registers that a thread lacks, of which ptxas has spilled so many bytes, stores and loads
/// together. The model counts a store and a load of each at every barrier, and an iteration of a
/// tile's loop has two barriers.
fn lacking(work: &Work, spills: f64) -> f64 {
    let iterations = work.fetches.max(work.rounds).max(1.0);
    let barriers = work.barriers.max(work.rounds).max(1.0);
    spills / 8.0 * (iterations / barriers).min(1.0)
}

fn mix(alike: &[Alike], plan: &Plan, bound: &Bound, device: &Device) -> Mix {
    let mut sum = Executed::default();
    alike.iter().for_each(|one| sum.add(&one.executed, one.launches));
    let part = |some: f64, all: f64| if all > 0.0 { some / all } else { 0.0 };
    let sectors: f64 = sum.sectors.values().flatten().sum();
    let transferred = [
        bound.field_bytes(plan, |field| field.role.is_input()),
        bound.field_bytes(plan, |field| field.role.is_output()),
    ];
    let bytes = transferred.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    Mix {
        divergent: part(sum.divergent, sum.branches),
        idle: 1.0 - part(sum.lanes, sum.total.instructions * f64::from(WARP)).min(1.0),
        coalesced: part(sum.ideal, sectors),
        transferred,
        transfer_seconds: bytes as f64 / device.host_bandwidth,
    }
}

fn predicted(alike: &[Alike], device: &Device) -> Option<PredictedRun> {
    let mut kernels: Vec<PredictedKernel> = Vec::new();
    let (mut all, mut works) = (Prediction::default(), Vec::new());
    for one in alike {
        let found = predict(std::slice::from_ref(&one.work), 1, device)?;
        all.add(&found, one.launches);
        match kernels.last_mut().filter(|kernel| kernel.name == one.name) {
            Some(kernel) => {
                kernel.launches += one.launches;
                kernel.prediction.add(&found, one.launches);
            }
            None => {
                let mut prediction = Prediction::default();
                prediction.add(&found, one.launches);
                let (name, launches) = (one.name.to_owned(), one.launches);
                kernels.push(PredictedKernel { name, launches, prediction });
            }
        }
        works.push(Work { blocks: one.work.blocks * one.launches, ..one.work.clone() });
    }
    let roofline = Roofline::of(&works, 1, &all, device);
    Some(PredictedRun { kernels, prediction: all, roofline })
}

/// Writes the time of a run by kernel and term.
pub(crate) fn write(out: &mut Formatter, run: &PredictedRun) -> fmt::Result {
    writeln!(out, "predicted run, terms in us:")?;
    write!(out, "{:<24} {:>10}", "kernel", "launches")?;
    for (name, _) in run.prediction.terms() {
        write!(out, " {name:>10}")?;
    }
    writeln!(out, " {:>10}", "all")?;
    let row = |out: &mut Formatter, name: &str, launches: f64, prediction: &Prediction| {
        write!(out, "{name:<24} {launches:>10}")?;
        for (_, seconds) in prediction.terms() {
            write!(out, " {:>10.1}", seconds * 1e6)?;
        }
        writeln!(out, " {:>10.1}", prediction.seconds * 1e6)
    };
    for kernel in &run.kernels {
        row(out, &kernel.name, kernel.launches, &kernel.prediction)?;
    }
    let launches = run.kernels.iter().map(|kernel| kernel.launches).sum();
    row(out, "all", launches, &run.prediction)
}

/// Writes what warps do, and the share of transfers in a run of so many seconds.
pub(crate) fn write_mix(out: &mut Formatter, mix: &Mix, seconds: Option<f64>) -> fmt::Result {
    writeln!(
        out,
        "warps: {:.1} % of their branches diverge, {:.1} % of their lanes are idle; {:.1} % of the \
         sectors that their accesses touch are needed",
        mix.divergent * 100.0,
        mix.idle * 100.0,
        mix.coalesced * 100.0
    )?;
    let [there, back] = mix.transferred;
    write!(
        out,
        "transfers: {there} bytes to the device and {back} back, at least {:.1} us",
        mix.transfer_seconds * 1e6
    )?;
    match seconds {
        Some(seconds) => writeln!(
            out,
            ", which is {:.1} % of the run",
            mix.transfer_seconds / (mix.transfer_seconds + seconds) * 100.0
        ),
        None => writeln!(out),
    }
}

/// Writes how many clocks device memory takes, and how many the multiprocessors.
pub(crate) fn write_clocks(out: &mut Formatter, seconds: &Prediction, clock: f64) -> fmt::Result {
    let [memory, compute] = clocks(seconds, clock);
    writeln!(
        out,
        "clocks: {memory:.0} of device memory to {compute:.0} of a multiprocessor's instructions, \
         {:.2} to 1",
        memory / compute.max(f64::MIN_POSITIVE)
    )
}

/// Clocks of device memory, and those that the longer of arithmetic and issue takes.
pub(crate) fn clocks(seconds: &Prediction, clock: f64) -> [f64; 2] {
    [seconds.memory * clock, seconds.arithmetic.max(seconds.issue) * clock]
}
