//! The runs of an executable on the targets of the runtime: a simulator, the processor, CUDA, and
//! several devices of a kind.

use super::Executable;
use crate::control::{Control, Progress};
use crate::failure::Failure;
use crate::gpus::Gpus;
use crate::outcome::{Ended, Outcome};
use crate::pauses;
use crate::processor::{self, Machine};
use crate::session::Session;
use crate::stages;
use crate::timeline::{COPIES, Timeline};
use crate::traffic::{self, Effort};
use std::collections::BTreeMap;
use std::sync::Arc;
use stencil_runtime::array::Array;
use stencil_runtime::bind::Bound;
use stencil_runtime::cpu::Program;
use stencil_runtime::execute::{self, Values};
use stencil_runtime::plan;
use stencil_runtime::ranks::{self, Devices};
use stencil_runtime::windows;
use stencil_simulator::{Settings, Simulator};

/// The devices that have a target in this process.
fn of_process(control: &Control<'_>) -> Devices {
    if control.link.is_some() { Devices::along(1) } else { of_run(control) }
}

/// The devices that share a run.
fn of_run(control: &Control<'_>) -> Devices {
    control.devices.as_ref().map_or_else(|| Devices::along(1), |list| list.devices)
}

/// The lines of a timeline out of core.
fn line_of_windows(line: usize) -> String {
    let [to_device, to_host] = COPIES;
    [to_device, "compute", to_host].get(line).copied().unwrap_or_default().to_owned()
}

impl Session {
    /// The same for a run on several devices: the schedule is the fastest on the busiest of them.
    pub fn shared_by(mut self, devices: Option<Devices>) -> Self {
        self.options.config.lowering.devices = devices;
        self
    }

    /// The same for runs that may be out of core.
    pub fn in_windows(mut self, windows: bool) -> Self {
        self.options.config.lowering.windows = windows;
        self
    }
}

impl Executable {
    pub(super) fn simulate(
        &self,
        gpu: &str,
        seed: Option<u64>,
        run: &pauses::Run<'_>,
        control: Control<'_>,
    ) -> Result<Outcome, Failure> {
        let context = stages::context(&self.source)?;
        let module = traffic::kernels(&context, gpu, &self.source)?;
        let options = stencil_simulator::Options {
            settings: Settings { seed, ..Settings::default() },
            cancel: Some(Arc::clone(&control.cancel)),
            ..stencil_simulator::Options::default()
        };
        let mut simulators = (0..of_process(&control).count())
            .map(|_| Simulator::new(&module, options.clone()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| Failure::in_source(&error, &self.source))?;
        let predicts = control.traffic && control.pauses.is_none();
        let mut traffic = None;
        let ran = run.go(control, |bound, inputs, control| {
            let ran = self.on(&mut simulators, bound, inputs, control)?;
            if predicts {
                let found = traffic::of(&module, &self.plan, bound, Effort::Whole);
                traffic = Some(found.map_err(|error| Failure::in_source(&error, &self.source))?);
            }
            Ok(ran)
        })?;
        let counters = simulators.first().map(Simulator::report);
        Ok(Outcome { counters, traffic, ..ran })
    }

    pub(super) fn on_processor(
        &self,
        machine: &Machine,
        run: &pauses::Run<'_>,
        control: Control<'_>,
    ) -> Result<Outcome, Failure> {
        let devices = of_run(&control);
        if devices.count() > 1 {
            let here = if control.link.is_some() { 1 } else { devices.count() };
            let mut loaded = machine.several(&self.plan, devices.count(), here)?;
            let threads = loaded.first().map_or(0, Program::threads);
            let plural = if threads == 1 { "" } else { "s" };
            let device = Some(format!("{devices} devices of {threads} thread{plural}"));
            let ran = run.go(control, |bound, inputs, control| {
                self.on(&mut loaded, bound, inputs, control)
            })?;
            return Ok(Outcome { device, ..ran });
        }
        let mut loaded = [machine.take(&self.plan)?];
        let device = loaded.first().map(processor::label);
        let ran =
            run.go(control, |bound, inputs, control| self.on(&mut loaded, bound, inputs, control))?;
        loaded.into_iter().for_each(|loaded| machine.keep(loaded));
        Ok(Outcome { device, ..ran })
    }

    pub(super) fn launch(
        &self,
        gpus: &Gpus,
        run: &pauses::Run<'_>,
        mut control: Control<'_>,
    ) -> Result<Outcome, Failure> {
        let devices = of_process(&control);
        let numbers = control.devices.as_ref().map_or(&[] as &[i32], |list| &list.gpus);
        let (opened, parts) = gpus.open(&self.plan, devices, numbers)?;
        if parts.count() > devices.count() {
            control.devices = Some(parts.into());
        }
        let windows = control.device_memory;
        let mut loaded = opened.programs(devices, parts)?;
        let ran =
            run.go(control, |bound, inputs, control| self.on(&mut loaded, bound, inputs, control))?;
        let out_of_core = windows.is_some();
        let timeline = ran.timeline.map(|timeline| {
            if out_of_core {
                return timeline;
            }
            let part = |part: usize| opened.part(part, devices, parts);
            timeline.labelled(part)
        });
        Ok(Outcome { device: opened.name(), timeline, ..ran })
    }

    /// Runs the plan on targets of the runtime: one, or one for each of several devices.
    fn on<T: execute::Target + Send>(
        &self,
        targets: &mut [T],
        bound: &Bound,
        inputs: &BTreeMap<String, Array>,
        mut control: Control<'_>,
    ) -> Result<Outcome, Failure> {
        let cancel = Arc::clone(&control.cancel);
        let temps = control.pauses.is_some();
        let devices = of_run(&control);
        let (snapshot, results) = (control.snapshot.take(), control.results.take());
        let (link, memory) = (control.link.take(), control.device_memory);
        let backing = std::mem::take(&mut control.backing);
        let timeline = control.timeline.then(ranks::Timeline::default);
        let whole = |steps: i64| u64::try_from(steps).unwrap_or(0);
        let mut report = |progress: execute::RunProgress| {
            let (done, of) = (whole(progress.steps), whole(progress.of));
            control.report(Progress::Steps { done, of });
        };
        let mut take = results.map(|hook| move |values: &mut Values<'_>| Ok(hook(values)?));
        let mut hooks = execute::Control {
            progress: Some(&mut report),
            cancel: Some(cancel.as_ref()),
            snapshot: snapshot.map(|hook| hook as &mut dyn FnMut(_)),
            results: take.as_mut().map(|hook| hook as execute::Results<'_>),
            temps,
            backing,
        };
        let run = (&self.plan, bound, inputs);
        let mut shape = None;
        let ran = match (targets, link) {
            ([target], Some(link)) => {
                match ranks::take_part(run, devices, (target, link), &mut hooks) {
                    Ok(None) => return Ok(Outcome::of(bound)),
                    Ok(Some(outcome)) => Ok(outcome),
                    Err(error) => Err(error),
                }
            }
            ([target], None) if memory.is_some() || timeline.is_none() => match memory {
                Some(memory) => windows::run(run, target, memory, (timeline.as_ref(), &mut hooks))
                    .map(|(outcome, found)| {
                        shape = Some(found);
                        outcome
                    }),
                None => execute::run(&self.plan, bound, inputs, target, &mut hooks),
            },
            (targets, _) => {
                let mut links = ranks::channels(devices.count(), ranks::PATIENCE);
                let mut all: Vec<_> = targets
                    .iter_mut()
                    .map(|one| one as &mut (dyn execute::Target + Send))
                    .collect();
                let hooks = (timeline.as_ref(), &mut hooks);
                ranks::on_threads(run, devices, &mut all, &mut links, hooks)
            }
        };
        let cancelled = control.is_cancelled();
        let ran = ran.map_err(|error| Failure::of_source(&error, cancelled, self.written))?;
        let execute::Outcome { outputs, launched } = ran;
        let execute::Launched { count: launches, elapsed, steps, iterations, .. } = launched;
        let until = self.plan.nodes().into_iter().find_map(|node| match node {
            plan::Node::Until(until) => Some(until),
            _ => None,
        });
        let until = until.zip(iterations.first());
        let ended = until.map(|(until, of)| Ended { condition: until.text.clone(), met: of.met });
        let timeline =
            timeline.map(|timeline| Timeline::new(&self.plan.program, timeline.tracks()));
        let timeline = match memory {
            Some(_) => timeline.map(|timeline| timeline.labelled(line_of_windows)),
            None => timeline,
        };
        let outcome = Outcome { timeline, windows: shape, ..Outcome::of(bound) };
        Ok(Outcome { outputs, steps, ended, launches, elapsed, ..outcome })
    }
}
