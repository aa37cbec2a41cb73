//! What devices use of each buffer in a whole run, and which buffers they can have together.

use super::devices::Devices;
use super::error::RankError;
use super::groups::groups;
use super::region::Region;
use super::work::{Form, of_launch};
use crate::bind::Bound;
use crate::plan::Plan;

/// What devices use of each buffer.
#[derive(Clone, Debug)]
pub struct Survey {
    /// For each buffer and device the cells of all launches that use it, or memory that it
    /// exchanges with it.
    pub held: Vec<Vec<Region>>,
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
    Ok(Survey { held, joint })
}
