//! Buffers that are held alike.

use crate::bind::{Bound, Buffer};
use crate::plan::Plan;
use std::collections::BTreeMap;

/// Buffers that have each other's memory at times, or begin with one input.
pub fn groups(plan: &Plan, bound: &Bound) -> Vec<Vec<usize>> {
    let place = |name: &String| bound.buffers.iter().position(|one| one.name == *name);
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for names in plan.launches().flat_map(|launch| &launch.rotate) {
        let places: Vec<usize> = names.iter().filter_map(place).collect();
        pairs.extend(places.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))));
    }
    for (place, buffer) in bound.buffers.iter().enumerate() {
        let alike = |one: &Buffer| {
            buffer.input.is_some() && one.input == buffer.input
                || !buffer.record.is_empty() && one.record == buffer.record
        };
        pairs.extend(bound.buffers.iter().position(alike).map(|first| (first, place)));
    }
    let mut group: Vec<usize> = (0..bound.buffers.len()).collect();
    for (one, other) in pairs {
        let (Some(one), Some(other)) = (group.get(one).copied(), group.get(other).copied()) else {
            continue;
        };
        group.iter_mut().filter(|member| **member == other).for_each(|member| *member = one);
    }
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, group) in group.into_iter().enumerate() {
        found.entry(group).or_default().push(place);
    }
    found.into_values().collect()
}
