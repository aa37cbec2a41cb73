//! The launches of a run, and what can't run on a part of the grid.

use super::error::WindowError;
use crate::bind::{Bound, BufferId};
use crate::launch::{Action, Launch, Launches};
use crate::plan::{self, Node, Parts, Plan, Use};
use crate::ranks::{Form, Sharing, Work, groups, key};
use std::collections::BTreeMap;

/// The launches of a run in order, and the parts in which each can be done.
pub struct Survey<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// Its sizes.
    pub bound: &'p Bound,
    /// How each buffer is cut.
    pub forms: Vec<Form>,
    /// The launches.
    pub launches: Vec<Launch<'p>>,
    /// For each of them its place in `kinds`.
    pub kind: Vec<usize>,
    /// Launches that differ in nothing but the memory of their arguments and the step.
    pub kinds: Vec<Kind<'p>>,
    /// Buffers that lie on the device whole: they are read anywhere, and nobody writes them.
    pub whole: Vec<bool>,
    /// Buffers that have each other's memory at times, or begin with one input.
    pub groups: Vec<Vec<usize>>,
}

/// Launches that differ in nothing but the memory of their arguments and the step.
pub struct Kind<'p> {
    /// The parts.
    pub sharing: Sharing<'p>,
    /// The forms of the arguments.
    pub forms: Vec<Option<Form>>,
    /// The work with all tiles.
    pub all: Work,
}

impl<'p> Survey<'p> {
    /// Looks at all launches of a run.
    ///
    /// # Errors
    /// A launch that needs more than a window of the grid.
    pub fn new(plan: &'p Plan, bound: &'p Bound) -> Result<Self, WindowError> {
        for node in plan.nodes() {
            let node = match node {
                Node::Exchange(_) => "exchange",
                Node::Snapshot(_) => "snapshot",
                Node::Until(_) => "until",
                _ => continue,
            };
            return Err(WindowError::Node { program: plan.program.clone(), node });
        }
        let forms: Vec<Form> = bound.buffers.iter().map(Form::of).collect();
        let (mut kinds, mut kind, mut launches) = (Vec::new(), Vec::new(), Vec::new());
        let mut places = BTreeMap::new();
        for action in Launches::new(plan, bound)? {
            let Action::Launch(launch) = action else {
                let fault = "a run has an action that the plan does not name".to_owned();
                return Err(WindowError::Fault(fault));
            };
            let place = match places.get(&(key(launch.node), launch.grid)) {
                Some(place) => *place,
                None => {
                    kinds.push(kind_of(&launch, bound, &forms)?);
                    places.insert((key(launch.node), launch.grid), kinds.len() - 1);
                    kinds.len() - 1
                }
            };
            kind.push(place);
            launches.push(launch);
        }
        let whole = bound.buffers.iter().map(|buffer| buffer.constant.is_some()).collect();
        let groups = groups(plan, bound);
        let mut survey = Self { plan, bound, forms, launches, kind, kinds, whole, groups };
        survey.find_whole()?;
        Ok(survey)
    }

    /// Finds the buffers that are read anywhere.
    fn find_whole(&mut self) -> Result<(), WindowError> {
        let mut written = vec![None; self.forms.len()];
        let mut read = vec![None; self.forms.len()];
        for (launch, kind) in self.launches.iter().zip(&self.kind) {
            let Some(known) = self.kinds.get(*kind) else { continue };
            for (place, buffer) in launch.buffers() {
                let is_written =
                    launch.node.arguments.get(place).is_some_and(|one| one.written().is_some());
                if let (true, Some(by)) = (is_written, written.get_mut(buffer.0)) {
                    by.get_or_insert(&launch.kernel.name);
                }
                let whole = matches!(known.sharing.used(place), Some(Use::Whole));
                if let (true, Some(one)) = (whole, self.whole.get_mut(buffer.0)) {
                    *one = true;
                }
                if let (true, Some(by)) = (whole, read.get_mut(buffer.0)) {
                    by.get_or_insert(&launch.kernel.name);
                }
            }
        }
        for (whole, by) in self.whole.iter().zip(written) {
            if let (true, Some(kernel)) = (whole, by) {
                let why = "another kernel reads any cell of what it writes".to_owned();
                return Err(WindowError::Kernel { kernel: kernel.clone(), why });
            }
        }
        // A result that nobody writes is what it was at the start, if it has the same memory then.
        let end = self.memory(&[self.launches.len()]);
        let end = end.first().map(Vec::as_slice).unwrap_or_default();
        for (field, parts) in self.plan.fields.iter().zip(&self.bound.values) {
            let reader = parts.iter().find_map(|held| {
                let memory = end.get(held.buffer).filter(|memory| memory.0 != held.buffer)?;
                read.get(memory.0).copied().flatten()
            });
            if let (true, Some(kernel)) = (field.role.is_output(), reader) {
                let why = format!(
                    "it reads any cell of `{}`, a result that has the memory of another field",
                    field.name
                );
                return Err(WindowError::Kernel { kernel: kernel.clone(), why });
            }
        }
        Ok(())
    }

    /// Whether a memory lies on the device whole.
    pub fn is_whole(&self, memory: BufferId) -> bool {
        self.whole.get(memory.0) == Some(&true)
    }

    /// Whether a window may compute no cell from cells without a value: a kernel that reads at
    /// computed places might then read outside of a field.
    pub fn is_exact(&self) -> bool {
        self.kinds.iter().any(|kind| {
            (0..kind.forms.len()).any(|place| matches!(kind.sharing.used(place), Some(Use::Whole)))
        })
    }

    /// The form of a buffer.
    pub fn form(&self, buffer: BufferId) -> Result<Form, WindowError> {
        let form = self.forms.get(buffer.0).copied();
        form.ok_or_else(|| WindowError::Fault(format!("there is no buffer {}", buffer.0)))
    }

    /// A launch with what is known of it.
    pub fn launch(&self, place: usize) -> Result<(&Launch<'p>, &Kind<'p>), WindowError> {
        let kind = self.kind.get(place).and_then(|kind| self.kinds.get(*kind));
        let found = self.launches.get(place).zip(kind);
        found.ok_or_else(|| WindowError::Fault(format!("there is no launch {place}")))
    }

    /// The buffers of a launch that are windowed, with their places among its arguments.
    pub fn cut(&self, launch: &Launch<'p>) -> Vec<(usize, BufferId)> {
        launch.buffers().filter(|(_, buffer)| !self.is_whole(*buffer)).collect()
    }

    /// The memory of each buffer of the plan before some launches, by their places in ascending
    /// order.
    pub fn memory(&self, before: &[usize]) -> Vec<Vec<BufferId>> {
        let mut memory: Vec<BufferId> = (0..self.forms.len()).map(BufferId).collect();
        let place = |name: &String| self.plan.buffers.iter().position(|one| one.name == *name);
        let (mut all, mut done) = (Vec::new(), 0);
        for end in before {
            for launch in self.launches.get(done..*end).unwrap_or_default() {
                for names in &launch.node.rotate {
                    for pair in names.windows(2) {
                        let pair: Vec<usize> = pair.iter().filter_map(place).collect();
                        if let [one, next] = pair.as_slice() {
                            memory.swap(*one, *next);
                        }
                    }
                }
            }
            done = *end;
            all.push(memory.clone());
        }
        all
    }
}

/// What is known of a launch, or why it needs more than a window.
fn kind_of<'p>(
    launch: &Launch<'p>,
    bound: &'p Bound,
    forms: &[Form],
) -> Result<Kind<'p>, WindowError> {
    let node: &'p plan::Launch = launch.node;
    let refused = |why: &str| {
        let kernel = launch.kernel.name.clone();
        WindowError::Kernel { kernel, why: why.to_owned() }
    };
    if launch.node.cooperative || launch.node.turns.is_some() {
        return Err(refused("its blocks wait for each other"));
    }
    let Some(cut) = &node.cut else {
        return Err(refused("it computes from values of the whole grid, as a reduction does"));
    };
    let sharing = Sharing::new(node, cut, bound, launch.grid)?;
    for (place, argument) in node.arguments.iter().enumerate() {
        match sharing.used(place) {
            Some(Use::Blocks(_)) => {
                return Err(refused("it combines values of the whole grid, as a reduction does"));
            }
            Some(Use::Whole) if argument.written().is_some() => {
                return Err(refused("it writes any cell of a field"));
            }
            // Of points the number for the slowest dimension alone is known.
            Some(Use::Near(near)) if near.wraps && matches!(cut.parts, Parts::Tiles(_)) => {
                let reads = |cells: &[i64]| cells.first().is_some_and(|cells| *cells != 0);
                if reads(&near.below) || reads(&near.above) {
                    return Err(refused(
                        "its field is periodic, and the first rows are neighbours of the last ones",
                    ));
                }
            }
            _ => {}
        }
    }
    let mut own = vec![None; node.arguments.len()];
    for (place, buffer) in launch.buffers() {
        if let Some(form) = own.get_mut(place) {
            *form = forms.get(buffer.0).copied();
        }
    }
    let tiles = sharing.tiles.first().copied().unwrap_or(0);
    let all = sharing.work(&own, &sharing.rows(0..tiles))?;
    Ok(Kind { sharing, forms: own, all })
}
