//! A part of a run: its launches and what happens between them.

use super::transfer::value;
use super::{Control, ExecuteError, Inputs, Launched, RunProgress, Taken, Target};
use crate::array::Array;
use crate::bind::{Bound, BufferId};
use crate::launch::{Action, Compare, Launches};
use crate::plan::{BufferKind, Plan};
use crate::watch;
use std::sync::atomic::Ordering;

/// A part of a run, behind those before it.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// The memory of each buffer; none where nothing was done before.
    pub current: Option<Vec<BufferId>>,
    /// Launches before.
    pub launches: u64,
    /// Steps before.
    pub steps: i64,
    /// Steps of the whole run.
    pub of: i64,
}

/// Does the schedule of a part of a run and waits for it.
///
/// # Errors
/// As [`super::launch_all`].
pub fn launch_segment(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    target: &mut dyn Target,
    control: &mut Control<'_>,
    segment: Segment,
) -> Result<Launched, ExecuteError> {
    let mut launches = Launches::new(plan, bound)?;
    if let Some(current) = segment.current {
        launches = launches.from(current);
    }
    let mut count = 0;
    target.begin().map_err(ExecuteError::Target)?;
    while let Some(action) = launches.next() {
        if control.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            target.abandon().map_err(ExecuteError::Target)?;
            let step = match &action {
                Action::Launch(launch) => launch.step,
                _ => launches.step(),
            };
            return Err(ExecuteError::Cancelled(step));
        }
        let done = match &action {
            Action::Launch(launch) => target.launch(launch).map_err(ExecuteError::Target),
            Action::Exchange(copies) => copies
                .iter()
                .try_for_each(|copy| target.exchange(copy))
                .map_err(ExecuteError::Target),
            Action::Compare(compare) => holds(bound, compare, target).map(|holds| {
                if holds {
                    launches.stop();
                }
            }),
            Action::Snapshot(field) => {
                take(plan, bound, inputs, &launches, *field, target, control)
            }
        };
        if let Err(error) = done {
            // Launches that are under way must end before their buffers go.
            let _ = target.abandon();
            return Err(error);
        }
        if matches!(action, Action::Launch(_)) {
            count += 1;
            if let Some(progress) = &mut control.progress {
                let steps = segment.steps + launches.step() - bound.first_step;
                let launches = segment.launches + count;
                progress(RunProgress { launches, steps, of: segment.of });
            }
        }
    }
    let elapsed = target.finish().map_err(ExecuteError::Target)?;
    check_waits(bound, target)?;
    Ok(Launched {
        count,
        elapsed,
        steps: launches.step() - bound.first_step,
        iterations: launches.iterations().to_vec(),
        current: launches.current().to_vec(),
        height: None,
    })
}

/// Fails where a block gave up a wait. All launches must have ended.
fn check_waits(bound: &Bound, target: &mut dyn Target) -> Result<(), ExecuteError> {
    if !target.watches() {
        return Ok(());
    }
    for (place, buffer) in bound.buffers.iter().enumerate() {
        if buffer.kind == BufferKind::Watched {
            let mut cells = Array::zeros(buffer.element, &[buffer.cells])?;
            target.download(BufferId(place), 0, cells.bytes_mut()).map_err(ExecuteError::Target)?;
            if let Some(stuck) = watch::read(&buffer.name, cells.bytes()) {
                return Err(ExecuteError::Stuck(stuck));
            }
        }
    }
    Ok(())
}

/// Reads the first cell of a buffer and compares it.
fn holds(bound: &Bound, compare: &Compare, target: &mut dyn Target) -> Result<bool, ExecuteError> {
    let Compare { buffer, is, limit } = compare;
    target.wait().map_err(ExecuteError::Target)?;
    let cells = bound.buffers.get(buffer.0).map_or(0, |buffer| buffer.cells);
    let mut value = Array::zeros(limit.element(), &[cells])?;
    target.download(*buffer, 0, value.bytes_mut()).map_err(ExecuteError::Target)?;
    Ok(value.number(0).is_some_and(|value| is.holds(value, *limit)))
}

fn take(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    launches: &Launches<'_>,
    field: usize,
    target: &mut dyn Target,
    control: &mut Control<'_>,
) -> Result<(), ExecuteError> {
    let Some(call) = &mut control.snapshot else { return Ok(()) };
    target.wait().map_err(ExecuteError::Target)?;
    let value = value(plan, bound, inputs, launches.current(), field, target)?;
    call(Taken { field, step: launches.step(), value });
    Ok(())
}
