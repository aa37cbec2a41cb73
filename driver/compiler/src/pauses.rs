//! Runs in parts: each begins with the values that the one before ended with. A run that goes on
//! from a pause later does the same, and so gives the same bits.

use crate::control::{Control, Pause, Pauses, Progress};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::parts::check_looks;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use stencil_runtime::array::{Array, ArrayError};
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::plan::Plan;

type Arrays = BTreeMap<String, Array>;

/// A run that is asked for.
pub struct Run<'a> {
    /// The plan, or its declarations.
    pub plan: &'a Plan,
    /// Sizes, scalars and steps.
    pub request: &'a Request,
    /// The arrays.
    pub inputs: &'a BTreeMap<String, Array>,
}

impl Run<'_> {
    /// Does the run by calls of `part`, one from each pause to the next.
    pub fn go(
        &self,
        mut control: Control<'_>,
        mut part: impl FnMut(&Bound, &Arrays, Control<'_>) -> Result<Outcome, Failure>,
    ) -> Result<Outcome, Failure> {
        let bound = bind(self.plan, self.request).map_err(Failure::user)?;
        let Some(every) = control.pauses.as_ref().map(|pauses| pauses.every.clone()) else {
            return part(&bound, self.inputs, control);
        };
        // The first process alone writes what is due at a pause.
        let follows = control.link.as_ref().is_some_and(|link| link.device() > 0);
        let (mut step, last) = (bound.first_step, bound.first_step + bound.steps);
        let mut values: Option<BTreeMap<String, Array>> = None;
        let mut all: Option<Outcome> = None;
        loop {
            let next = next_pause(step, last, &every);
            let steps = Some(next - step);
            let request = Request { steps, first_step: step, ..self.request.clone() };
            let bound = bind(self.plan, &request).map_err(Failure::user)?;
            let inputs = values.as_ref().unwrap_or(self.inputs);
            let mut control = control.reborrow();
            let of = u64::try_from(last - self.request.first_step).unwrap_or(0);
            let before = u64::try_from(step - self.request.first_step).unwrap_or(0);
            let mut hook = control.progress.take();
            let mut report = |progress: Progress<'_>| {
                let progress = match progress {
                    Progress::Steps { done, .. } => Progress::Steps { done: before + done, of },
                    other @ (Progress::Pass { .. } | Progress::Candidates { .. }) => other,
                };
                if let Some(hook) = &mut hook {
                    hook(progress);
                }
            };
            let pauses = control.pauses.take();
            // The part must give all values, and pauses nowhere itself.
            let own = Pauses { every: Vec::new(), call: &mut |_| Ok(()) };
            let progress: Option<&mut dyn FnMut(Progress<'_>)> = Some(&mut report);
            let control = Control { progress, pauses: Some(own), results: None, ..control };
            let ran = part(&bound, inputs, control)?;
            step += ran.steps;
            let met = ran.ended.as_ref().is_some_and(|ended| ended.met);
            let ended = met || step >= last;
            if let Some(pauses) = pauses.filter(|_| !follows) {
                (pauses.call)(&Pause { step, values: &ran.outputs, last: ended })?;
            }
            let mut total = joined(all.take(), ran);
            if ended {
                let roles = |name: &String| self.plan.field(name).map(|field| field.role);
                total.outputs.retain(|name, _| roles(name).is_some_and(|role| role.is_output()));
                return Ok(total);
            }
            let mut carried = match values.take() {
                Some(values) => values,
                None => constants(self.plan, self.inputs)?,
            };
            carried.append(&mut total.outputs);
            (values, all) = (Some(carried), Some(total));
        }
    }
}

/// Checks that a run in parts ends where a run in one would: it looks after `every` steps whether
/// it ends early.
pub fn check(every: Option<i64>, request: &Request, control: &Control<'_>) -> Result<(), Failure> {
    let pauses = control.pauses.iter().flat_map(|pauses| &pauses.every);
    let pauses = pauses.map(|every| i64::try_from(every.get()).unwrap_or(i64::MAX));
    check_looks(every, pauses.chain([request.first_step])).map_err(Failure::user)
}

/// The number of steps at the next pause.
fn next_pause(step: i64, last: i64, every: &[NonZeroU64]) -> i64 {
    let next = |every: &NonZeroU64| {
        let every = i64::try_from(every.get()).unwrap_or(i64::MAX);
        (step / every + 1).checked_mul(every)
    };
    every.iter().filter_map(next).fold(last, i64::min)
}

/// Copies of the const fields, which no part gives.
fn constants(
    plan: &Plan,
    inputs: &BTreeMap<String, Array>,
) -> Result<BTreeMap<String, Array>, Failure> {
    let constant = |name: &str| plan.field(name).is_some_and(|field| !field.role.is_output());
    let own = inputs.iter().filter(|(name, _)| constant(name));
    let copies = own.map(|(name, array)| Ok((name.clone(), array.copy()?)));
    copies.collect::<Result<_, ArrayError>>().map_err(Failure::memory)
}

/// The outcome of some parts and the next.
fn joined(all: Option<Outcome>, part: Outcome) -> Outcome {
    let Some(all) = all else { return part };
    let elapsed = match (all.elapsed, part.elapsed) {
        (Some(all), Some(part)) => Some(all + part),
        (all, part) => all.or(part),
    };
    Outcome {
        steps: all.steps + part.steps,
        launches: all.launches + part.launches,
        elapsed,
        ..part
    }
}
