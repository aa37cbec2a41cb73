//! Which accesses are ordered: barrier intervals inside a block, released and acquired flags
//! between blocks.
//!
//! Every block has a clock that ticks at each barrier and at each signal. An access carries a
//! [`Stamp`]: block, clock, thread. Inside a block an access is ordered before another of a
//! different thread iff a barrier lies between; between blocks iff what the later block acquired
//! covers it. This is the vector-clock scheme of FastTrack (Flanagan, Freund, PLDI 2009), with
//! blocks for threads and barriers for joins.

use std::collections::BTreeMap;

/// Blocks that a launch can have.
pub const MAX_BLOCKS: u64 = (1 << 20) - 1;

/// Who accessed a cell, and when; 0 is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(u64);

/// Marks a stamp: several readers in no order with each other.
const SEVERAL: u64 = 1 << 63;
/// Marks a stamp: an atomic access; together with [`SEVERAL`], readers of different blocks.
const ATOMIC: u64 = 1 << 62;

impl Stamp {
    /// The stamp of an access.
    pub fn new(block: u32, clock: u32, thread: u32) -> Self {
        Self((u64::from(block) + 1) << 42 | u64::from(clock) << 10 | u64::from(thread))
    }

    /// From its bits.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether there was no access.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The block, in launch order.
    pub fn block(self) -> u32 {
        ((self.0 >> 42 & 0xf_ffff) as u32).wrapping_sub(1)
    }

    /// The block's clock.
    pub fn clock(self) -> u32 {
        (self.0 >> 10) as u32
    }

    /// The thread.
    pub fn thread(self) -> u32 {
        (self.0 & 0x3ff) as u32
    }

    /// The same, marked as one of several.
    pub fn several(self) -> Self {
        Self(self.0 | SEVERAL)
    }

    /// Whether others accessed the cell as well, in no order with this one.
    pub fn is_several(self) -> bool {
        self.0 & SEVERAL != 0
    }

    /// The same, marked as one of several of different blocks.
    pub fn several_blocks(self) -> Self {
        Self(self.0 | SEVERAL | ATOMIC)
    }

    /// Whether threads of other blocks read the cell as well, in no order with this one.
    pub fn is_several_blocks(self) -> bool {
        self.0 & (SEVERAL | ATOMIC) == SEVERAL | ATOMIC
    }

    /// The same, marked as atomic.
    pub fn atomic(self) -> Self {
        Self(self.0 | ATOMIC)
    }

    /// Whether the access was atomic.
    pub fn is_atomic(self) -> bool {
        self.0 & (ATOMIC | SEVERAL) == ATOMIC
    }
}

/// The accesses of another block that are ordered before: those before `all`, and more of single
/// threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// Accesses of any thread at a clock below this are ordered before.
    all: u32,
    /// Accesses of these threads at a clock up to this are ordered before.
    own: BTreeMap<u32, u32>,
}

impl Known {
    fn join(&mut self, other: &Self) {
        self.all = self.all.max(other.all);
        for (thread, clock) in &other.own {
            let mine = self.own.entry(*thread).or_default();
            *mine = (*mine).max(*clock);
        }
        let all = self.all;
        self.own.retain(|_, clock| *clock >= all);
    }

    fn covers(&self, stamp: Stamp) -> bool {
        stamp.clock() < self.all
            || self.own.get(&stamp.thread()).is_some_and(|clock| stamp.clock() <= *clock)
    }
}

/// The knowledge of other blocks that a block has, or that a flag carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    blocks: BTreeMap<u32, Known>,
}

impl Knowledge {
    /// Adds the knowledge of another.
    pub fn join(&mut self, other: &Self) {
        for (block, known) in &other.blocks {
            self.blocks.entry(*block).or_default().join(known);
        }
    }

    fn covers(&self, stamp: Stamp) -> bool {
        self.blocks.get(&stamp.block()).is_some_and(|known| known.covers(stamp))
    }
}

/// The time of one block.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The block, in launch order.
    pub block: u32,
    /// The clock now.
    pub clock: u32,
    /// The clock at the last barrier.
    base: u32,
    /// Known to all threads.
    known: Knowledge,
    /// Known to single threads until the next barrier.
    pending: BTreeMap<u32, Knowledge>,
}

impl Timeline {
    /// A block about to begin.
    pub fn new(block: u32) -> Self {
        Self { block, clock: 1, base: 1, known: Knowledge::default(), pending: BTreeMap::new() }
    }

    /// The stamp of an access now.
    pub fn stamp(&self, thread: u32) -> Stamp {
        Stamp::new(self.block, self.clock, thread)
    }

    /// Whether an access of `thread` now is ordered after another.
    #[inline]
    pub fn after(&self, other: Stamp, thread: u32) -> bool {
        if other.block() == self.block {
            other.clock() < self.base || (other.thread() == thread && !other.is_several())
        } else {
            self.known.covers(other)
                || self.pending.get(&thread).is_some_and(|known| known.covers(other))
        }
    }

    /// All threads of the block meet: all know what any of them acquired.
    pub fn barrier(&mut self) {
        self.clock += 1;
        self.base = self.clock;
        for known in std::mem::take(&mut self.pending).into_values() {
            self.known.join(&known);
        }
    }

    /// Releases by `thread`. This publishes the block up to the last barrier, the thread up to now,
    /// and all that it knows of others.
    pub fn release(&mut self, thread: u32) -> Knowledge {
        let mut released = self.known.clone();
        if let Some(pending) = self.pending.get(&thread) {
            released.join(pending);
        }
        let mine = Known { all: self.base, own: BTreeMap::from([(thread, self.clock)]) };
        released.blocks.entry(self.block).or_default().join(&mine);
        self.clock += 1;
        released
    }

    /// `thread` acquires the knowledge that a flag carries.
    pub fn acquire(&mut self, thread: u32, released: &Knowledge) {
        self.pending.entry(thread).or_default().join(released);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_order_threads_of_a_block() {
        let mut time = Timeline::new(3);
        let write = time.stamp(7);
        assert_eq!((write.block(), write.clock(), write.thread()), (3, 1, 7));
        assert!(time.after(write, 7));
        assert!(!time.after(write, 8));
        time.barrier();
        assert!(time.after(write, 8));
    }

    #[test]
    fn a_flag_orders_what_was_before_the_barrier_and_the_signalling_thread() {
        let (mut a, mut b) = (Timeline::new(0), Timeline::new(1));
        let early = a.stamp(5);
        a.barrier();
        let (other, own) = (a.stamp(5), a.stamp(0));
        let flag = a.release(0);
        let late = a.stamp(0);
        b.acquire(0, &flag);
        assert!(b.after(early, 0) && b.after(own, 0));
        assert!(!b.after(other, 0), "another thread's access in the same interval is not released");
        assert!(!b.after(late, 0), "what follows the signal is not released");
        assert!(!b.after(early, 1), "another thread sees it only after a barrier");
        b.barrier();
        assert!(b.after(early, 1) && b.after(own, 1));
    }

    #[test]
    fn knowledge_is_handed_on() {
        let (mut a, mut b, mut c) = (Timeline::new(0), Timeline::new(1), Timeline::new(2));
        let write = a.stamp(0);
        let flag = a.release(0);
        b.acquire(0, &flag);
        b.barrier();
        let flag = b.release(4);
        c.acquire(9, &flag);
        assert!(c.after(write, 9));
    }
}
