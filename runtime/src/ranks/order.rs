//! Whose work must come behind whose, where devices have memory together.
//!
//! Every device keeps the same order, so that all of them know who waits for whom and nobody has to
//! ask.

use super::region::Region;
use crate::bind::BufferId;
use std::collections::{BTreeMap, BTreeSet};

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

/// Which deeds: those of a launch in its buffers, or of a comparison.
pub type Kind = (usize, [u32; 3], Vec<usize>);

/// What each device did since each other one came behind it. Runs repeat few kinds of deeds, so
/// whether two of them collide is found once.
#[derive(Clone, Debug)]
pub struct Order {
    devices: usize,
    /// The kinds so far, with what each device does.
    kinds: BTreeMap<Kind, usize>,
    deeds: Vec<Vec<Deeds>>,
    /// For two kinds the pairs of devices of which the second one, in the second kind, must come
    /// behind the first one in the first kind.
    pairs: BTreeMap<(usize, usize), Vec<(usize, usize)>>,
    /// The kinds that the first one of two devices did since the second one came behind it.
    since: BTreeMap<(usize, usize), BTreeSet<usize>>,
}

impl Order {
    /// The order of so many devices that did nothing yet.
    pub fn new(devices: usize) -> Self {
        Self {
            devices,
            kinds: BTreeMap::new(),
            deeds: Vec::new(),
            pairs: BTreeMap::new(),
            since: BTreeMap::new(),
        }
    }

    /// Notes what the devices do next: `all` gives it for a kind that was not there before. Gives
    /// the pairs of devices of which the second one must come behind what the first one did before.
    pub fn next(&mut self, kind: Kind, all: impl FnOnce() -> Vec<Deeds>) -> Vec<(usize, usize)> {
        let next = match self.kinds.get(&kind) {
            Some(known) => *known,
            None => self.add(kind, all()),
        };
        let mut found = BTreeSet::new();
        for before in 0..self.deeds.len() {
            for pair in self.pairs.get(&(before, next)).into_iter().flatten() {
                if self.since.get(pair).is_some_and(|since| since.contains(&before)) {
                    found.insert(*pair);
                }
            }
        }
        for pair in &found {
            self.since.remove(pair);
        }
        for from in 0..self.devices {
            for to in (0..self.devices).filter(|to| *to != from) {
                self.since.entry((from, to)).or_default().insert(next);
            }
        }
        found.into_iter().collect()
    }

    /// Notes a kind, and how it collides with the others and itself.
    fn add(&mut self, kind: Kind, all: Vec<Deeds>) -> usize {
        let next = self.deeds.len();
        self.kinds.insert(kind, next);
        self.deeds.push(all);
        for other in 0..=next {
            for key in [(other, next), (next, other)] {
                let pairs = self.collisions(key);
                self.pairs.insert(key, pairs);
            }
        }
        next
    }

    fn collisions(&self, (before, next): (usize, usize)) -> Vec<(usize, usize)> {
        let (Some(before), Some(next)) = (self.deeds.get(before), self.deeds.get(next)) else {
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (from, before) in before.iter().enumerate() {
            for (to, next) in next.iter().enumerate() {
                if from != to && collide(before, next) {
                    pairs.push((from, to));
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

    fn kind(from: usize, to: usize) -> Kind {
        (0, [3, 1, 1], vec![from, to])
    }

    #[test]
    fn neighbours_wait_for_each_other_and_nobody_else() {
        let mut order = Order::new(3);
        // Nobody wrote what is read first.
        assert_eq!(order.next(kind(0, 1), || launch(0, 1)), []);
        // What the neighbours wrote is read.
        let neighbours = [(0, 1), (1, 0), (1, 2), (2, 1)];
        assert_eq!(order.next(kind(1, 0), || launch(1, 0)), neighbours);
        for turn in 0..3 {
            let (from, to) = if turn % 2 == 0 { (0, 1) } else { (1, 0) };
            assert_eq!(order.next(kind(from, to), || panic!()), neighbours);
        }
    }

    #[test]
    fn a_cell_is_read_before_it_is_overwritten() {
        let mut order = Order::new(3);
        order.next(kind(0, 1), || launch(0, 1));
        // The first rows are read by one device alone, and rows 4 and 5 by two.
        let write = |cells| Deeds::from([(BufferId(0), Deed { writes: cells, ..Deed::default() })]);
        let nothing = Deeds::new();
        let first = [write(rows(0..3)), nothing.clone(), nothing.clone()];
        assert_eq!(order.next((1, [1; 3], vec![0]), || first.to_vec()), []);
        let last = [nothing.clone(), nothing, write(rows(3..5))];
        assert_eq!(order.next((2, [1; 3], vec![0]), || last.to_vec()), [(0, 2), (1, 2)]);
        // Once behind them, it need not wait again.
        assert_eq!(order.next((2, [1; 3], vec![0]), || panic!()), []);
    }
}
