//! Moves loads to an earlier place of a block, so that their latencies overlap with other work. The
//! buffers must not be written meanwhile.
//!
//! A block is in groups of operations, one behind the other. A warp issues in order, so that a load
//! must stand far before the use of its value. All loads at the front of a block would keep the
//! warp from its work, and need a register each. The loads of a group therefore stand at the start
//! of the group before it.

use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::mlir::{self, Blk, Op, Val};

/// A block, and the last operation before each of its groups but the first.
pub struct Groups<'c> {
    /// The block.
    pub block: Blk<'c>,
    /// The last operations before the groups.
    pub ends: Vec<Op<'c>>,
}

impl<'c> Groups<'c> {
    /// A block whose first group begins.
    pub fn new(block: Blk<'c>) -> Self {
        Self { block, ends: Vec::new() }
    }

    /// Begins the next group.
    pub fn next(&mut self) {
        self.ends.extend(mlir::operations(self.block).last().copied());
    }
}

/// Moves the loads from `unwritten` buffers, with their index arithmetic, where both depend only on
/// values from outside the block.
pub fn advance<'c>(groups: &Groups<'c>, unwritten: &[Val<'c>]) {
    let unwritten: BTreeSet<usize> = unwritten.iter().map(|value| mlir::key(*value)).collect();
    let operations = mlir::operations(groups.block);
    let needed = needed(&operations, &unwritten);
    let ends = groups.ends.iter().filter_map(|end| operations.iter().position(|op| op == end));
    let starts: Vec<usize> = std::iter::once(0).chain(ends.map(|end| end + 1)).collect();
    for (place, op) in operations.iter().enumerate().filter(|(place, _)| needed.contains(place)) {
        let group = starts.iter().filter(|start| **start <= place).count();
        let start = group.checked_sub(2).and_then(|before| starts.get(before)).unwrap_or(&0);
        let rest = operations.iter().enumerate().skip(*start);
        let anchor = rest.clone().find(|(place, _)| !needed.contains(place));
        if let Some((anchor, other)) = anchor
            && anchor < place
        {
            mlir::move_before(*op, *other);
        }
    }
}

/// The places of loads that may be moved, and of what they need.
fn needed<'c>(operations: &[Op<'c>], unwritten: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut places = BTreeMap::new();
    for (place, op) in operations.iter().enumerate() {
        places.extend(mlir::results(*op).into_iter().map(|value| (mlir::key(value), place)));
    }
    let inputs = |op: Op<'c>| -> Vec<usize> {
        let known = mlir::operands(op).into_iter();
        known.filter_map(|value| places.get(&mlir::key(value)).copied()).collect()
    };
    let mut early = vec![false; operations.len()];
    let mut wanted = Vec::new();
    for (place, op) in operations.iter().enumerate() {
        let name = mlir::name(*op);
        let loads = name == "memref.load"
            && mlir::operands(*op)
                .first()
                .is_some_and(|from| unwritten.contains(&mlir::key(*from)));
        let free = loads || name.starts_with("arith.") || name == "affine.apply";
        let known = inputs(*op).into_iter().all(|input| early.get(input) == Some(&true));
        if let Some(early) = early.get_mut(place) {
            *early = free && known;
            wanted.extend((*early && loads).then_some(place));
        }
    }
    let mut needed = BTreeSet::new();
    while let Some(place) = wanted.pop() {
        if needed.insert(place) {
            wanted.extend(operations.get(place).map(|op| inputs(*op)).unwrap_or_default());
        }
    }
    needed
}
