//! Whose work must come behind whose, where devices have memory together.
//!
//! Every device keeps the same order, so that all of them know who waits for whom and nobody has to
//! ask.

use super::region::Region;
use crate::bind::BufferId;
use std::collections::BTreeMap;

/// What a device does to a memory.
#[derive(Clone, Debug, Default)]
pub struct Deed {
    /// The cells that it reads.
    pub reads: Region,
    /// The cells that it writes.
    pub writes: Region,
}

/// What a device does to the memories that devices have together.
pub type Deeds = BTreeMap<BufferId, Deed>;

/// What each device did since each other one came behind it.
#[derive(Clone, Debug)]
pub struct Order {
    since: Vec<Vec<Deeds>>,
}

impl Order {
    /// The order of so many devices that did nothing yet.
    pub fn new(devices: usize) -> Self {
        Self { since: vec![vec![Deeds::new(); devices]; devices] }
    }

    /// Notes what the devices do next. Gives the pairs of devices of which the second one must come
    /// behind what the first one did before.
    pub fn next(&mut self, all: &[Deeds]) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (from, since) in self.since.iter_mut().enumerate() {
            for (to, since) in since.iter_mut().enumerate() {
                if from == to {
                    continue;
                }
                if all.get(to).is_some_and(|next| collide(since, next)) {
                    pairs.push((from, to));
                    since.clear();
                }
                for (buffer, deed) in all.get(from).into_iter().flatten() {
                    let known = since.entry(*buffer).or_default();
                    known.reads.add(&deed.reads);
                    known.writes.add(&deed.writes);
                }
            }
        }
        pairs
    }
}

/// Whether one of two reads or writes what the other one writes.
fn collide(before: &Deeds, next: &Deeds) -> bool {
    let meet = |one: &Region, other: &Region| !one.common(other).is_empty();
    next.iter().any(|(buffer, next)| {
        before.get(buffer).is_some_and(|before| {
            meet(&before.writes, &next.reads)
                || meet(&before.writes, &next.writes)
                || meet(&before.reads, &next.writes)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::region::Area;
    use super::*;
    use std::ops::Range;

    fn rows(rows: Range<usize>) -> Region {
        Area { rows, columns: 0..1 }.into()
    }

    /// Three devices write four rows each, and read one row beyond.
    fn launch(from: usize, to: usize) -> Vec<Deeds> {
        let of = |device: usize| {
            let own = 4 * device..4 * device + 4;
            let around = own.start.saturating_sub(1)..(own.end + 1).min(12);
            let read = Deed { reads: rows(around), ..Deed::default() };
            let write = Deed { writes: rows(own), ..Deed::default() };
            Deeds::from([(BufferId(from), read), (BufferId(to), write)])
        };
        (0..3).map(of).collect()
    }

    #[test]
    fn neighbours_wait_for_each_other_and_nobody_else() {
        let mut order = Order::new(3);
        // Nobody wrote what is read first.
        assert_eq!(order.next(&launch(0, 1)), []);
        // What the neighbours wrote is read.
        let neighbours = [(0, 1), (1, 0), (1, 2), (2, 1)];
        assert_eq!(order.next(&launch(1, 0)), neighbours);
        assert_eq!(order.next(&launch(0, 1)), neighbours);
    }

    #[test]
    fn a_cell_is_read_before_it_is_overwritten() {
        let mut order = Order::new(3);
        order.next(&launch(0, 1));
        // The first rows are read by one device alone, and rows 4 and 5 by two.
        let write = |cells| Deeds::from([(BufferId(0), Deed { writes: cells, ..Deed::default() })]);
        let nothing = Deeds::new();
        assert_eq!(order.next(&[write(rows(0..3)), nothing.clone(), nothing.clone()]), []);
        let last = [nothing.clone(), nothing, write(rows(3..5))];
        assert_eq!(order.next(&last), [(0, 2), (1, 2)]);
    }
}
