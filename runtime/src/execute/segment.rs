//! A part of a run: its launches and what happens between them.

use super::transfer::value;
use super::{Control, ExecuteError, Inputs, Launched, RunProgress, Taken, Target};
use crate::array::Array;
use crate::bind::{Bound, BufferId};
use crate::launch::{Action, Compare, Launch, Launches};
use crate::plan::{BufferKind, Plan};
use crate::watch;
use std::collections::VecDeque;
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
    mut segment: Segment,
) -> Result<Launched, ExecuteError> {
    let mut launches = Launches::new(plan, bound)?;
    if let Some(current) = segment.current.take() {
        launches = launches.from(current);
    }
    let mut run = Run {
        bound,
        values: values(plan),
        state: State { launches, count: 0 },
        looks: VecDeque::new(),
        segment,
    };
    target.begin().map_err(ExecuteError::Target)?;
    loop {
        let action = match run.next(target) {
            Ok(Some(action)) => action,
            Ok(None) => break,
            Err(error) => {
                let _ = target.abandon();
                return Err(error);
            }
        };
        if control.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            target.abandon().map_err(ExecuteError::Target)?;
            let step = match &action {
                Action::Launch(launch) => launch.step,
                _ => run.state.launches.step(),
            };
            return Err(ExecuteError::Cancelled(step));
        }
        let done = match &action {
            Action::Launch(launch) => run.launch(launch, target, control),
            Action::Exchange(copies) => copies
                .iter()
                .try_for_each(|copy| target.exchange(copy))
                .map_err(ExecuteError::Target),
            Action::Compare(compare) => run.compare(compare, target),
            Action::Snapshot(field) => {
                let launches = &run.state.launches;
                take(plan, bound, inputs, launches, *field, target, control)
            }
        };
        if let Err(error) = done {
            // Launches that are under way must end before their buffers go.
            let _ = target.abandon();
            return Err(error);
        }
    }
    let elapsed = target.finish().map_err(ExecuteError::Target)?;
    check_waits(bound, target)?;
    let State { launches, count } = run.state;
    Ok(Launched {
        count,
        elapsed,
        steps: launches.step() - bound.first_step,
        iterations: launches.iterations().to_vec(),
        current: launches.current().to_vec(),
        height: None,
    })
}

/// The buffers that hold values of fields and reductions, by their places in the plan.
fn values(plan: &Plan) -> Vec<usize> {
    let parts = || plan.fields.iter().flat_map(|field| &field.value);
    let buffers = plan.buffers.iter().enumerate().filter(|(_, buffer)| {
        buffer.kind == BufferKind::Reduction || parts().any(|part| part.buffer == buffer.name)
    });
    buffers.map(|(place, _)| place).collect()
}

/// How far a part of a run is.
#[derive(Clone, Debug)]
struct State<'p> {
    launches: Launches<'p>,
    /// Launches handed to the target; without those behind a look that held.
    count: u64,
}

/// A look that is not known yet.
#[derive(Debug)]
struct Look<'p> {
    number: u64,
    compare: Compare,
    /// How far the part of the run was.
    state: State<'p>,
}

/// A part of a run while it goes on.
struct Run<'p, 'b> {
    bound: &'b Bound,
    /// The buffers that hold values, by their places in the plan.
    values: Vec<usize>,
    state: State<'p>,
    /// Looks that were taken ahead, the first one first.
    looks: VecDeque<Look<'p>>,
    segment: Segment,
}

impl<'p> Run<'p, '_> {
    /// What is to be done. Before anything but a launch or a comparison, and before the end, all
    /// looks are known.
    fn next(&mut self, target: &mut dyn Target) -> Result<Option<Action<'p>>, ExecuteError> {
        loop {
            let action = self.state.launches.next();
            if matches!(action, Some(Action::Launch(_) | Action::Compare(_)))
                || self.looks.is_empty()
            {
                return Ok(action);
            }
            target.wait().map_err(ExecuteError::Target)?;
            if !self.settle(target)? {
                return Ok(action);
            }
        }
    }

    fn launch(
        &mut self,
        launch: &Launch<'p>,
        target: &mut dyn Target,
        control: &mut Control<'_>,
    ) -> Result<(), ExecuteError> {
        target.launch(launch).map_err(ExecuteError::Target)?;
        self.state.count += 1;
        if let Some(progress) = &mut control.progress {
            let steps = self.segment.steps + self.state.launches.step() - self.bound.first_step;
            let launches = self.segment.launches + self.state.count;
            progress(RunProgress { launches, steps, of: self.segment.of });
        }
        Ok(())
    }

    /// Ends the loop where a comparison holds, now or when its look is known.
    fn compare(&mut self, compare: &Compare, target: &mut dyn Target) -> Result<(), ExecuteError> {
        let size = compare.limit.element().size();
        if compare.ahead {
            let current = self.state.launches.current();
            let values = self.values.iter().filter_map(|place| current.get(*place).copied());
            let taken = target.look_ahead(compare.buffer, size, values.collect());
            if let Some(number) = taken.map_err(ExecuteError::Target)? {
                self.looks.push_back(Look { number, compare: *compare, state: self.state.clone() });
                return self.settle(target).map(drop);
            }
        }
        target.wait().map_err(ExecuteError::Target)?;
        if self.settle(target)? {
            return Ok(());
        }
        let mut cell = Array::zeros(compare.limit.element(), &[1])?;
        target.download(compare.buffer, 0, cell.bytes_mut()).map_err(ExecuteError::Target)?;
        if holds(compare, &cell) {
            self.state.launches.stop();
        }
        Ok(())
    }

    /// Goes through the looks that are known. Where a comparison held, the run goes back to it: the
    /// launches behind it changed no value. Says whether there was one.
    fn settle(&mut self, target: &mut dyn Target) -> Result<bool, ExecuteError> {
        while let Some(found) = self.looks.front().and_then(|look| target.found(look.number))
            && let Some(look) = self.looks.pop_front()
        {
            let mut cell = Array::zeros(look.compare.limit.element(), &[1])?;
            cell.bytes_mut().iter_mut().zip(found).for_each(|(to, from)| *to = from);
            if holds(&look.compare, &cell) {
                target.drop_ahead().map_err(ExecuteError::Target)?;
                self.looks.clear();
                self.state = look.state;
                self.state.launches.stop();
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the value in a cell compares as asked.
fn holds(compare: &Compare, cell: &Array) -> bool {
    cell.number(0).is_some_and(|value| compare.is.holds(value, compare.limit))
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
