//! Memory of a target that the caller lends: a field's cells are in it already, and its value is to
//! be there after the run.

use super::transfer::in_one_buffer;
use crate::bind::{Bound, BufferId};
use crate::plan::Plan;

/// The buffer in whose place memory with the cells of a field can serve, row-major without padding:
/// the one that holds the field's value when a run begins. None where the field's buffers lie in
/// another order, or where several make up the value.
pub fn lendable(plan: &Plan, bound: &Bound, field: usize) -> Option<BufferId> {
    let declared = plan.fields.get(field)?;
    let shape = bound.shapes.get(field)?;
    let home = bound.values.get(field)?.first()?.buffer;
    let mut begun = bound.buffers.iter().filter(|buffer| buffer.input == Some(field));
    let plain = begun.all(|buffer| {
        let cells = buffer.all_cells();
        buffer.element == declared.element
            && buffer.device == 0
            && buffer.window(shape, &cells).is_whole()
    });
    let begins = bound.buffers.get(home)?.input == Some(field);
    (plain && begins && in_one_buffer(bound, field)).then_some(BufferId(home))
}

/// The copies after which the value of each of these buffers is in its first memory again: from
/// where, to where. Rotations have handed the memory on.
pub fn homeward(current: &[BufferId], homes: &[BufferId]) -> Vec<(BufferId, BufferId)> {
    let now = |home: &BufferId| current.get(home.0).map(|now| (*now, *home));
    homes.iter().filter_map(now).filter(|(from, home)| from != home).collect()
}
