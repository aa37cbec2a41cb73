//! Memory of a device that holds an array of structs, or of blocks: it takes the place of a buffer
//! of records.

use super::binding::{Binding, Memory};
use crate::bind::{Bound, Buffer};
use crate::layout::Placement;
use crate::plan::Plan;
use std::collections::BTreeMap;

/// The array of structs that fields make up with their strides: its address. None where their
/// numbers do not lie side by side in the order of the buffer, or where the buffer has only a part
/// of a field's value.
pub(super) fn address(
    plan: &Plan,
    bound: &Bound,
    place: usize,
    fields: &BTreeMap<String, Binding>,
) -> Option<u64> {
    let buffer = bound.buffers.get(place)?;
    let Placement::Records { numbers, block } = buffer.placement else { return None };
    if buffer.device != 0 {
        return None;
    }
    let mut found = None;
    for (number, field) in buffer.record.iter().enumerate() {
        let binding = fields.get(&plan.fields.get(*field)?.name)?;
        let [held] = bound.values.get(*field)?.as_slice() else { return None };
        let Memory::Device { address, strides } = &binding.memory else { return None };
        let first = address.checked_sub((number * block * buffer.element.size()) as u64)?;
        let fits = *found.get_or_insert(first) == first
            && (held.buffer, held.number) == (place, number)
            && held.cells == buffer.all_cells()
            && binding.shape == buffer.shape
            && strides_fit(buffer, (numbers, block), &binding.steps, strides);
        if !fits {
            return None;
        }
    }
    found.filter(|_| buffer.cells > 0)
}

/// Whether cells with these strides are those of the buffer's records. `steps` are the cells per
/// dimension; the last of them are those of a block, where a block has several.
fn strides_fit(
    buffer: &Buffer,
    (numbers, block): (usize, usize),
    steps: &[usize],
    strides: &[isize],
) -> bool {
    let size = buffer.element.size();
    let (mut rest, mut own) = (steps, strides);
    if block > 1 {
        let (Some((cells, blocks)), Some((stride, outer))) =
            (steps.split_last(), strides.split_last())
        else {
            return false;
        };
        if *cells != block || usize::try_from(*stride) != Ok(size) {
            return false;
        }
        (rest, own) = (blocks, outer);
    }
    let mut stride = numbers * block * size;
    rest.len() == buffer.shape.len()
        && rest.iter().zip(own).rev().all(|(extent, own)| {
            let fits = *extent < 2 || usize::try_from(*own) == Ok(stride);
            stride *= extent;
            fits
        })
}
