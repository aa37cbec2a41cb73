//! Which tile values share a buffer: values whose lives do not overlap take one slot in turn.

use std::hash::Hash;

/// The life of one value: from the operation that writes it to the last that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life<K> {
    /// What kind of slot it can take; values of different kinds never share.
    pub kind: K,
    /// Cells per dimension.
    pub extents: Vec<i64>,
    /// Position in the kernel of the operation that writes it, from 0.
    pub first: usize,
    /// Position of the last operation that reads it.
    pub last: usize,
}

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot<K> {
    /// The kind of all its values.
    pub kind: K,
    /// Cells per dimension: the largest of its values in each.
    pub extents: Vec<i64>,
    free_after: usize,
}

/// Assigns a slot to each life, first come first served; lives are sorted by `first`. Returns the
/// slots, and for each life the index of its slot. A value
/// that is written by the operation that last reads another does not take its slot.
pub fn assign<K: Clone + PartialEq + Hash>(lives: &[Life<K>]) -> (Vec<Slot<K>>, Vec<usize>) {
    let mut slots: Vec<Slot<K>> = Vec::new();
    let mut assigned = Vec::new();
    for life in lives {
        let free =
            slots.iter().position(|slot| slot.kind == life.kind && slot.free_after < life.first);
        let index = free.unwrap_or_else(|| {
            slots.push(Slot {
                kind: life.kind.clone(),
                extents: life.extents.clone(),
                free_after: 0,
            });
            slots.len() - 1
        });
        if let Some(slot) = slots.get_mut(index) {
            slot.free_after = life.last;
            for (extent, wanted) in slot.extents.iter_mut().zip(&life.extents) {
                *extent = (*extent).max(*wanted);
            }
        }
        assigned.push(index);
    }
    (slots, assigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_values_takes_two_slots() {
        let life =
            |first| Life { kind: 4, extents: vec![10 - first as i64], first, last: first + 1 };
        let (slots, assigned) = assign(&[life(0), life(1), life(2), life(3)]);
        assert_eq!(assigned, [0, 1, 0, 1]);
        assert_eq!(
            slots.iter().map(|slot| slot.extents.clone()).collect::<Vec<_>>(),
            [vec![10], vec![9]]
        );
    }

    #[test]
    fn kinds_do_not_share() {
        let life = |kind, first| Life { kind, extents: vec![1], first, last: first };
        assert_eq!(assign(&[life(4, 0), life(8, 1), life(4, 2)]).1, [0, 1, 0]);
    }
}
