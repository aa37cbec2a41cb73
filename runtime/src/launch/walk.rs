//! Goes through a prepared schedule, action by action.

use super::prepare::{self, Body, Prepared, PreparedLaunch, PreparedUntil, Slot};
use super::{Action, Compare, Copy, Launch, LaunchError, Value};
use crate::bind::{Bound, BufferId};
use crate::number::Number;
use crate::plan::{Node, Plan};

/// The actions of a run in order. A launch without blocks (an empty grid) has no points and changes
/// nothing, so it is left out with its rotations.
#[derive(Clone, Debug)]
pub struct Launches<'p> {
    frames: Vec<Frame<'p>>,
    /// Steps taken, with those before the run.
    step: i64,
    epoch: i64,
    /// The number of the next launch among the turns of its node.
    turn: i64,
    /// The memory that each buffer of the plan stands for.
    memory: Vec<BufferId>,
    iterations: Vec<Iterations>,
}

/// The iterations of an `until` of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iterations {
    /// Iterations that it took, over all times that the schedule reached it.
    pub count: i64,
    /// Whether its condition held when it ended, the last time.
    pub met: bool,
}

/// A list that is being done.
#[derive(Clone, Debug)]
struct Frame<'p> {
    body: Body<'p>,
    /// Nodes of this iteration already done.
    place: usize,
    /// Iterations to come, with this one.
    left: i64,
    /// Iterations done.
    done: i64,
    until: Option<PreparedUntil>,
    /// What follows where the condition of `until` was never met.
    otherwise: Option<Body<'p>>,
}

impl<'p> Frame<'p> {
    fn once(body: Body<'p>) -> Self {
        Self { body, place: 0, left: 1, done: 0, until: None, otherwise: None }
    }

    fn is_once(&self) -> bool {
        (self.left, self.done) == (1, 0)
    }

    /// Whether it is a list of launches that take no step.
    fn takes_no_step(&self) -> bool {
        let takes_none =
            |node: &Prepared| matches!(node, Prepared::Launch(one) if one.node.steps == 0);
        self.body.iter().all(takes_none)
    }
}

impl<'p> Launches<'p> {
    /// Prepares the actions of a plan.
    ///
    /// # Errors
    /// When a grid or a size is too large, or when the schedule takes another number of steps.
    pub fn new(plan: &'p Plan, bound: &Bound) -> Result<Launches<'p>, LaunchError> {
        let body = prepare::schedule(plan, bound)?;
        let untils = plan.nodes().into_iter().filter(|node| matches!(node, Node::Until(_)));
        Ok(Launches {
            frames: vec![Frame::once(body)],
            step: bound.first_step,
            epoch: 0,
            turn: 0,
            memory: (0..plan.buffers.len()).map(BufferId).collect(),
            iterations: vec![Iterations::default(); untils.count()],
        })
    }

    /// The same with the memory of each buffer as an earlier run has left it.
    pub fn from(self, memory: Vec<BufferId>) -> Self {
        Self { memory, ..self }
    }

    /// Steps taken by the launches given out so far, with those before the run.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The memory of each buffer after the launches given out so far, in the plan's order.
    pub fn current(&self) -> &[BufferId] {
        &self.memory
    }

    /// The iterations of each `until` so far, in the order of the file.
    pub fn iterations(&self) -> &[Iterations] {
        &self.iterations
    }

    /// Ends the loop whose comparison was given out last, because it holds.
    pub fn stop(&mut self) {
        if let Some(frame) = self.frames.last_mut()
            && let Some(until) = frame.until
        {
            (frame.left, frame.otherwise) = (0, None);
            if let Some(iterations) = self.iterations.get_mut(until.number) {
                iterations.met = true;
            }
        }
    }

    fn memory(&self, buffer: usize) -> BufferId {
        self.memory.get(buffer).copied().unwrap_or(BufferId(buffer))
    }

    /// Whether the next launch is one of a list that a run does once, and that takes no step.
    fn is_apart(&self) -> bool {
        self.frames.iter().all(Frame::is_once)
            && self.frames.last().is_some_and(Frame::takes_no_step)
    }

    /// A launch; what follows the last of its turns follows it.
    fn launch(&mut self, prepared: &PreparedLaunch<'p>) -> Launch<'p> {
        let PreparedLaunch { kernel, index, node, grid, rows, turns, arguments, rotations } =
            prepared;
        let (step, turn) = (self.step, self.turn);
        let values = arguments.iter().map(|slot| match slot {
            Slot::Buffer(buffer) => Value::Buffer(self.memory(*buffer)),
            Slot::Number(number) => Value::Number(*number),
            Slot::Step => Value::Number(Number::I64(step)),
            // All epochs of a run together fit.
            Slot::Epoch => {
                Value::Number(Number::I32(i32::try_from(self.epoch).unwrap_or(i32::MAX)))
            }
            // No schedule has so many actions that it does not fit.
            Slot::Turn(32) => Value::Number(Number::I32(i32::try_from(turn).unwrap_or(i32::MAX))),
            Slot::Turn(_) => Value::Number(Number::I64(turn)),
        });
        let arguments = values.collect();
        let launch = Launch {
            kernel,
            index: *index,
            node,
            grid: *grid,
            step,
            apart: self.is_apart(),
            arguments,
            rows: *rows,
            part: None,
        };
        self.turn += 1;
        if self.turn < *turns {
            return launch;
        }
        self.turn = 0;
        if let Some(frame) = self.frames.last_mut() {
            frame.place += 1;
        }
        self.step += i64::from(node.steps);
        self.epoch += i64::from(node.epochs);
        for names in rotations {
            // The memory of the first goes along the list, step by step, to the last.
            for pair in names.windows(2) {
                if let [one, next] = pair {
                    self.memory.swap(*one, *next);
                }
            }
        }
        launch
    }

    /// Ends an iteration of the innermost list; gives its comparison where one is due.
    fn iterated(&mut self) -> Option<Compare> {
        let frame = self.frames.last_mut()?;
        (frame.place, frame.left, frame.done) = (0, frame.left - 1, frame.done + 1);
        let until = frame.until?;
        let due = frame.done % until.every == 0;
        if let Some(iterations) = self.iterations.get_mut(until.number) {
            iterations.count = iterations.count.saturating_add(1);
        }
        let PreparedUntil { buffer, is, limit, ahead, .. } = until;
        due.then(|| Compare { buffer: self.memory(buffer), is, limit, ahead })
    }
}

impl<'p> Iterator for Launches<'p> {
    type Item = Action<'p>;

    fn next(&mut self) -> Option<Action<'p>> {
        loop {
            let frame = self.frames.last_mut()?;
            if frame.left <= 0 {
                let otherwise = frame.otherwise.take();
                self.frames.pop();
                self.frames.extend(otherwise.map(Frame::once));
                continue;
            }
            let Some(node) = frame.body.get(frame.place).cloned() else {
                if let Some(compare) = self.iterated() {
                    return Some(Action::Compare(compare));
                }
                continue;
            };
            // A launch ends with the last of its turns.
            frame.place += usize::from(!matches!(node, Prepared::Launch(_)));
            match node {
                Prepared::Launch(prepared) => return Some(Action::Launch(self.launch(&prepared))),
                Prepared::Skip { steps } => self.step = self.step.saturating_add(steps),
                Prepared::Loop { iterations, until, body, otherwise } => {
                    if let Some(until) = until
                        && let Some(iterations) = self.iterations.get_mut(until.number)
                    {
                        iterations.met = false;
                    }
                    let otherwise = Some(otherwise);
                    let (place, left, done) = (0, iterations, 0);
                    self.frames.push(Frame { body, place, left, done, until, otherwise });
                }
                Prepared::Exchange(copies) => {
                    let copies = copies.iter().map(|copy| Copy {
                        from: self.memory(copy.from),
                        from_byte: copy.from_byte,
                        to: self.memory(copy.to),
                        to_byte: copy.to_byte,
                        bytes: copy.bytes,
                    });
                    return Some(Action::Exchange(copies.collect()));
                }
                Prepared::Snapshot { field } => return Some(Action::Snapshot(field)),
            }
        }
    }
}
