//! Moves loads to the front of a block, so that their latencies overlap. The buffers must not be
//! written meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::mlir::{self, Blk, Op, Val};

/// Moves the loads from `unwritten` buffers, with their index arithmetic, where both depend only on
/// values from outside the block.
pub fn to_front<'c>(block: Blk<'c>, unwritten: &[Val<'c>]) {
    let unwritten: BTreeSet<usize> = unwritten.iter().map(|value| mlir::key(*value)).collect();
    let operations = mlir::operations(block);
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
    let mut rest = operations.iter().enumerate().filter(|(place, _)| !needed.contains(place));
    let Some((first, anchor)) = rest.next() else { return };
    for (_, op) in
        operations.iter().enumerate().filter(|(place, _)| *place > first && needed.contains(place))
    {
        mlir::move_before(*op, *anchor);
    }
}
