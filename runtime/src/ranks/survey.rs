//! What devices use of each buffer in a whole run, and which buffers they can have together.

use super::devices::Devices;
use super::error::RankError;
use super::groups::groups;
use super::region::Region;
use super::work::{Form, Work, key, of_launch};
use crate::bind::Bound;
use crate::launch::{Action, LaunchError, Launches};
use crate::plan::Plan;
use std::collections::BTreeMap;

/// Launches of a run that are counted.
const COUNTED: usize = 1000;

/// What devices use of each buffer.
#[derive(Clone, Debug)]
pub struct Survey {
    /// For each buffer and device the cells of all launches that use it, or memory that it
    /// exchanges with it.
    pub held: Vec<Vec<Region>>,
    /// For each buffer and device the cells that it writes in the launch that is done most often,
    /// or that it reads where none writes.
    pub homes: Vec<Vec<Region>>,
    /// For each buffer whether devices can have it together. No two of them write a cell of it in
    /// one launch. One that all read whole, and nobody writes, is better apart.
    pub joint: Vec<bool>,
}

/// Looks at all launches of a plan.
///
/// # Errors
/// A launch that can't be shared out.
pub fn survey(
    plan: &Plan,
    bound: &Bound,
    forms: &[Form],
    devices: Devices,
) -> Result<Survey, RankError> {
    let (count, buffers) = (devices.count(), bound.buffers.len());
    let mut held = vec![vec![Region::default(); count]; buffers];
    let times = times(plan, bound)?;
    let mut homes = vec![Home::default(); buffers];
    let (mut written, mut together) = (vec![false; buffers], vec![true; buffers]);
    for node in plan.launches() {
        let Some(grid) = crate::launch::grid_of(node, bound)? else { continue };
        let place = |name: &str| bound.buffers.iter().position(|one| one.name == name);
        let places = node.arguments.iter().map(|one| place(one.buffer()?)).collect::<Vec<_>>();
        let form = |place: &Option<usize>| forms.get((*place)?).copied();
        let arguments: Vec<_> = places.iter().map(form).collect();
        let works = of_launch(node, bound, grid, &arguments, devices)?;
        for (argument, place) in places.iter().enumerate() {
            let Some(place) = *place else { continue };
            let Some(held) = held.get_mut(place) else { continue };
            if let Some(home) = homes.get_mut(place) {
                home.note(&works, argument, times.get(&key(node)).copied().unwrap_or(0));
            }
            let mut all = Region::default();
            for (work, held) in works.iter().zip(held) {
                let (reads, writes) = (work.reads.get(argument), work.writes.get(argument));
                reads.into_iter().chain(writes).for_each(|cells| held.add(cells));
                let Some(writes) = writes else { continue };
                if let Some(together) = together.get_mut(place) {
                    *together &= all.common(writes).is_empty();
                }
                all.add(writes);
            }
            if let Some(written) = written.get_mut(place) {
                *written |= !all.is_empty();
            }
        }
    }
    let mut joint = vec![false; buffers];
    for group in groups(plan, bound) {
        for device in 0..count {
            let mut all = Region::default();
            let member = |place: &usize| held.get(*place)?.get(device);
            group.iter().filter_map(member).for_each(|one| all.add(one));
            for place in &group {
                if let Some(one) = held.get_mut(*place).and_then(|one| one.get_mut(device)) {
                    one.clone_from(&all);
                }
            }
        }
        let best = group.iter().filter_map(|place| homes.get(*place)).max_by_key(|one| one.rank());
        let best = best.cloned().unwrap_or_default();
        for place in &group {
            if let Some(home) = homes.get_mut(*place) {
                home.clone_from(&best);
            }
        }
        let is = |flags: &[bool], place: &usize| flags.get(*place) == Some(&true);
        let whole = |place: &usize| {
            let (held, form) = (held.get(*place), forms.get(*place));
            held.zip(form).is_some_and(|(held, form)| {
                let all = Region::from(form.whole());
                held.iter().all(|one| all.without(one).is_empty())
            })
        };
        let shared_out = group.iter().any(|place| is(&written, place) || !whole(place));
        let can = shared_out && group.iter().all(|place| is(&together, place));
        for place in &group {
            if let Some(joint) = joint.get_mut(*place) {
                *joint = can;
            }
        }
    }
    let homes = homes.into_iter().map(|home| home.cells).collect();
    Ok(Survey { held, homes, joint })
}

/// Where the cells of a buffer should lie.
#[derive(Clone, Debug, Default)]
struct Home {
    written: bool,
    times: u64,
    cells: Vec<Region>,
}

impl Home {
    /// Writes count before reads, and a launch that is done more often before another one.
    fn rank(&self) -> (bool, u64) {
        (self.written, self.times)
    }

    fn note(&mut self, works: &[Work], argument: usize, times: u64) {
        let cells = |of: fn(&Work) -> &Vec<Region>| -> Vec<Region> {
            works.iter().map(|work| of(work).get(argument).cloned().unwrap_or_default()).collect()
        };
        let writes = cells(|work| &work.writes);
        let written = writes.iter().any(|cells| !cells.is_empty());
        let cells = if written { writes } else { cells(|work| &work.reads) };
        let found = Self { written, times, cells };
        if self.cells.is_empty() || found.rank() > self.rank() {
            *self = found;
        }
    }
}

/// How often each launch of a plan is done among the first ones of a run.
fn times(plan: &Plan, bound: &Bound) -> Result<BTreeMap<usize, u64>, LaunchError> {
    let mut times = BTreeMap::new();
    for action in Launches::new(plan, bound)?.take(COUNTED) {
        if let Action::Launch(launch) = action {
            *times.entry(key(launch.node)).or_default() += 1;
        }
    }
    Ok(times)
}
