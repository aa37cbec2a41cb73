//! What became of a program: its schedule, what each kernel takes of a multiprocessor, where the
//! schedule lies under the device's roofline, and the predicted rates of the schedules that were to
//! choose from.

use crate::arrays::{self, ArrayMemory};
use crate::failure::Failure;
use crate::level::Level;
use crate::predicted_run::{self, Mix, PredictedRun};
use crate::session::{Compiled, Session};
use crate::toolchain::{self, KernelResources};
use crate::traffic::{self, Effort, Traffic};
use crate::{roofline, stages, waves};
use serde::Serialize;
use serde_json::json;
use std::fmt::{self, Display, Formatter};
use stencil_frontend::source::Source;
use stencil_passes::affine;
use stencil_passes::schedule::predict::Candidate;
use stencil_passes::schedule::waves::Sweep;
use stencil_runtime::device::Device;
use stencil_runtime::model::{Prediction, Residency, Roofline, Work, residency};
use stencil_runtime::plan::{Plan, Settings};

/// What a kernel takes of a multiprocessor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u64,
    /// Registers of a thread; unknown without ptxas.
    pub registers: Option<u32>,
    /// Bytes of registers that are spilled to memory; unknown without ptxas.
    pub spills: Option<u32>,
    /// Blocks on a multiprocessor at a time; unknown without ptxas, none where a block does not
    /// fit.
    pub residency: Option<Residency>,
}

/// The report on a compile; it displays as the text of `stencilc --report`.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The program.
    pub program: String,
    /// The schedule.
    pub settings: Settings,
    /// Bits of an index.
    pub index_width: u32,
    /// Its kernels, in the plan's order.
    pub kernels: Vec<KernelReport>,
    /// Whether ptxas was there to be asked.
    pub assembled: bool,
    /// The schedules to choose from, the fastest by the model first; none where the options name
    /// the passes.
    pub candidates: Option<Vec<Candidate>>,
    /// Where the first of them lies under the roofline; none without floating-point arithmetic.
    pub roofline: Option<Roofline>,
    /// The predicted wavefronts under the chosen schedule.
    pub sweeps: Vec<Sweep>,
    /// Where kernels keep arrays; empty where the compile did not keep the gpu level.
    pub arrays: ArrayMemory,
    /// Loads and stores of a run; none where the compile did not keep the gpu level, or where the
    /// program takes no large sizes.
    pub traffic: Option<Traffic>,
    /// What the warps of the same run do; none where there is no such run.
    pub mix: Option<Mix>,
    /// The predicted time of the same run, for a function of affine loops.
    pub run: Option<PredictedRun>,
    /// Clocks of a multiprocessor in a second.
    pub clock: f64,
}

/// What a report has of a run with large sizes.
type OfRun = (Option<Traffic>, Option<Mix>, Option<PredictedRun>);

impl Session {
    /// The report on a compile of a source, which must have kept the plan and the PTX, and the gpu
    /// level for its traffic.
    ///
    /// # Errors
    /// When plan or PTX was not asked for, when ptxas can't be run or refuses the PTX.
    pub fn report(&self, source: &Source, compiled: &Compiled) -> Result<Report, Failure> {
        let (Some(plan), Some(ptx)) = (compiled.plan(), compiled.ptx()) else {
            return Err(Failure::user("a report needs the levels `plan` and `ptx`"));
        };
        let resources = match toolchain::ptxas() {
            Some(ptxas) => Some(toolchain::assemble(&ptxas, ptx, &plan.target.arch)?),
            None => None,
        };
        let device = self.options.target()?.device;
        let known = resources.as_deref().unwrap_or_default();
        let (candidates, sweeps) = match self.options.passes {
            None => (Some(self.candidates(source)?), self.waves(source)?),
            Some(_) => (None, Vec::new()),
        };
        let chosen = candidates.iter().flatten().next();
        let of_chosen = chosen.and_then(|chosen| {
            let steps = u32::try_from(chosen.choice.pyramid_height.unwrap_or(1)).ok()?;
            Roofline::of(&chosen.kernels, steps, &chosen.prediction, device)
        });
        let gpu = compiled.text(Level::Gpu);
        let of_gpu = gpu.map(|gpu| of_gpu(source, gpu, plan, known, device)).transpose()?;
        let (arrays, (traffic, mix, run)) = of_gpu.unwrap_or_default();
        let is_nest = plan.settings.strategy == affine::STRATEGY;
        let run = run.filter(|_| is_nest && candidates.is_some());
        let roofline = of_chosen.or(run.as_ref().and_then(|run| run.roofline));
        Ok(Report {
            program: plan.program.clone(),
            settings: plan.settings.clone(),
            index_width: plan.index_width,
            kernels: kernels_of(plan, known, device),
            assembled: resources.is_some(),
            candidates,
            roofline,
            sweeps,
            arrays,
            traffic,
            mix,
            run,
            clock: device.clock,
        })
    }
}

/// What each kernel takes of a multiprocessor.
fn kernels_of(plan: &Plan, known: &[KernelResources], device: &Device) -> Vec<KernelReport> {
    let kernel = |kernel: &stencil_runtime::plan::Kernel| {
        let found = known.iter().find(|found| found.name == kernel.name);
        let threads = kernel.block.iter().copied().fold(1, u32::saturating_mul);
        let shared = kernel.static_shared.saturating_add(kernel.dynamic_shared);
        let work = |registers| Work { threads, shared, registers, ..Work::default() };
        KernelReport {
            name: kernel.name.clone(),
            threads,
            shared,
            registers: found.map(|found| found.registers),
            spills: found.map(|found| found.spills),
            residency: found.and_then(|found| residency(&work(found.registers), device)),
        }
    };
    plan.kernels.iter().map(kernel).collect()
}

/// Where kernels keep arrays, and what a run with large sizes moves and executes; nothing of the
/// latter where the program takes no such sizes.
fn of_gpu(
    source: &Source,
    gpu: &str,
    plan: &Plan,
    known: &[KernelResources],
    device: &Device,
) -> Result<(ArrayMemory, OfRun), Failure> {
    let context = stages::context(source)?;
    let module = traffic::kernels(&context, gpu, source)?;
    let in_source = |error| Failure::in_source(&error, source);
    let arrays = arrays::of(&module).map_err(in_source)?;
    let Some(bound) = traffic::large(plan) else { return Ok((arrays, OfRun::default())) };
    let traffic = traffic::of(&module, plan, &bound, Effort::Limited).map_err(in_source)?;
    let found = predicted_run::of(&module, plan, &bound, known, device);
    let (mix, run) = found.map_err(in_source)?;
    Ok((arrays, (Some(traffic), Some(mix), run)))
}

impl Display for Report {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        let settings = &self.settings;
        writeln!(
            out,
            "{}: strategy {}, tile {} cells, cells per thread {}, pyramid height {}, \
             {}-bit indices",
            self.program,
            settings.strategy,
            joined(&settings.tile, " x "),
            joined(&settings.per_thread, " x "),
            settings.pyramid_height,
            self.index_width
        )?;
        for record in &settings.records {
            writeln!(out, "layout of {}: {}; {}", record.field, record.layout, record.note)?;
        }
        kernels(out, &self.kernels)?;
        self.arrays.write(out)?;
        waves::write(out, &self.sweeps)?;
        match &self.candidates {
            None => writeln!(out, "predicted: nothing; the passes are given by name")?,
            Some(_) if settings.strategy == affine::STRATEGY => match &self.run {
                Some(run) => predicted_run::write(out, run)?,
                None if self.mix.is_some() => {
                    writeln!(out, "predicted: nothing; a block does not fit on a multiprocessor")?
                }
                None => writeln!(
                    out,
                    "predicted: nothing; the function takes no sizes of 1,024 in each dimension"
                )?,
            },
            Some(candidates) if self.sweeps.is_empty() => predictions(out, candidates)?,
            Some(_) => {}
        }
        if let Some(roofline) = &self.roofline {
            roofline::write(out, roofline)?;
        }
        if let Some(name) = self.bottleneck() {
            let why = if name == "tail" { "too few blocks for the device, " } else { "" };
            writeln!(out, "bottleneck: {name}, {why}by the prediction")?;
        }
        if let Some(prediction) = self.prediction() {
            predicted_run::write_clocks(out, &prediction, self.clock)?;
        }
        if let Some(mix) = &self.mix {
            predicted_run::write_mix(out, mix, self.prediction().map(|run| run.seconds))?;
        }
        if let Some(traffic) = &self.traffic {
            write!(out, "{traffic}")?;
        }
        if !self.assembled {
            writeln!(
                out,
                "registers and spills are unknown: ptxas was not found (set STENCILC_PTXAS, or \
                 run cargo xtask setup)"
            )?;
        }
        Ok(())
    }
}

impl Report {
    /// The predicted time of a run: of its launches, or of as many steps under the chosen schedule.
    fn prediction(&self) -> Option<Prediction> {
        if let Some(run) = &self.run {
            return Some(run.prediction);
        }
        let chosen = self.candidates.iter().flatten().next()?;
        let steps = self.traffic.as_ref().map_or(1, |traffic| traffic.steps);
        let mut prediction = Prediction::default();
        prediction.add(&chosen.prediction, steps as f64);
        self.sweeps.is_empty().then_some(prediction)
    }

    /// The term of the prediction that takes longest.
    fn bottleneck(&self) -> Option<&'static str> {
        let of_run = self.run.as_ref().map(|run| &run.prediction);
        let of_chosen = || Some(&self.candidates.iter().flatten().next()?.prediction);
        let terms = of_run.or_else(of_chosen)?.terms();
        terms.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
    }

    /// The report as JSON: kernels, the traffic, the roofline, and the chosen schedule's predicted
    /// seconds a step.
    pub fn to_json(&self) -> String {
        let chosen = self.candidates.iter().flatten().next();
        let mut value = json!({
            "program": self.program,
            "settings": self.settings,
            "index_width": self.index_width,
            "kernels": self.kernels,
            "arrays": self.arrays.to_json(),
            "traffic": self.traffic,
            "traffic_of_a_step": self.traffic.as_ref().map(Traffic::step),
            "roofline": self.roofline,
            "bottleneck": self.bottleneck(),
            "warps": self.mix,
            "clocks": self.prediction().map(|run| predicted_run::clocks(&run, self.clock)),
            "run": self.run,
            "predicted": chosen.map(|chosen| json!({
                "gcells": chosen.gcells(),
                "seconds": chosen.prediction,
                "work": chosen.kernels,
            })),
        });
        let shared = chosen.filter(|chosen| chosen.devices.count() > 1);
        if let Some((Candidate { devices, exchange, computing, prediction, .. }, map)) =
            shared.zip(value.as_object_mut())
        {
            let shared = json!({
                "devices": devices.to_string(),
                "messages": exchange.messages,
                "bytes": exchange.bytes,
                "rate": computing / prediction.seconds,
            });
            map.insert("shared".to_owned(), shared);
        }
        format!("{value:#}\n")
    }
}

/// Writes a line for each kernel: its use of a multiprocessor.
fn kernels(out: &mut Formatter, kernels: &[KernelReport]) -> fmt::Result {
    writeln!(
        out,
        "{:<24} {:>8} {:>14} {:>10} {:>14} {:>10} {:>10}  limited by",
        "kernel", "threads", "shared bytes", "registers", "spilled bytes", "blocks/SM", "occupancy"
    )?;
    let number = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |v| v.to_string());
    for kernel in kernels {
        let resident = kernel.residency;
        writeln!(
            out,
            "{:<24} {:>8} {:>14} {:>10} {:>14} {:>10} {:>10}  {}",
            kernel.name,
            kernel.threads,
            kernel.shared,
            number(kernel.registers),
            number(kernel.spills),
            number(resident.map(|resident| resident.blocks)),
            resident.map_or("?".to_owned(), |of| format!("{:.0} %", of.occupancy * 100.0)),
            resident.map_or("?".to_owned(), |resident| resident.limit.to_string())
        )?;
    }
    Ok(())
}

/// Schedules that a report shows beside the chosen one.
const SHOWN: usize = 5;

/// The chosen schedule's predicted time by term, and the runners-up.
fn predictions(out: &mut Formatter, candidates: &[Candidate]) -> fmt::Result {
    let count = candidates.len();
    if count == 0 {
        return writeln!(out, "predicted: nothing; no schedule's blocks fit on a multiprocessor");
    }
    writeln!(out, "predicted, of {count} schedules, terms in ps a point and step:")?;
    write!(
        out,
        "{:<8} {:>14} {:>10} {:>5} {:>10} {:>8}",
        "strategy", "tile", "per thread", "steps", "GCells/s", "computed"
    )?;
    let terms = candidates.first().map(|candidate| candidate.prediction.terms());
    for (name, _) in terms.unwrap_or_default() {
        write!(out, " {name:>10}")?;
    }
    for candidate in candidates.iter().take(SHOWN) {
        let work: f64 = candidate.kernels.iter().map(|work| work.redundancy).sum();
        write!(
            out,
            "\n{:<8} {:>14} {:>10} {:>5} {:>10.1} {:>7.2}x",
            candidate.choice.strategy.as_deref().unwrap_or_default(),
            joined(&candidate.tile, "x"),
            joined(&candidate.per_thread, "x"),
            candidate.choice.pyramid_height.unwrap_or_default(),
            candidate.gcells(),
            work / candidate.kernels.len().max(1) as f64
        )?;
        for (_, seconds) in candidate.prediction.terms() {
            write!(out, " {:>10.3}", seconds / candidate.points * 1e12)?;
        }
    }
    writeln!(out)?;
    match candidates.first() {
        Some(Candidate { devices, exchange, prediction, computing, .. }) if devices.count() > 1 => {
            writeln!(
                out,
                "on {devices} devices: each receives {:.2} messages and {:.3} MB a step; {:.1} % \
                 of the rate without them",
                exchange.messages,
                exchange.bytes * 1e-6,
                100.0 * computing / prediction.seconds
            )
        }
        _ => Ok(()),
    }
}

fn joined(values: &[i64], by: &str) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(by)
}
