//! The order of a sweep: every primed read must lead to a point that is computed before.
//!
//! Points are computed in row-major order, so the offset of a primed read is lexicographically
//! negative. Where one is not, another order of the dimensions may suit all of a function's primed
//! reads. An order is a permutation of the dimensions, some of which are counted from their end.

use super::Checker;
use crate::diagnostics::Diagnostic;
use crate::source::Span;

/// A primed read: the field's name, the offset and the place.
#[derive(Clone)]
pub(super) struct Primed {
    pub(super) name: String,
    pub(super) offset: Vec<i64>,
    pub(super) span: Span,
}

/// Dimensions of the largest grid for which orders are tried.
const MOST_DIMENSIONS: usize = 3;

/// Whether a point at an offset is computed before.
pub(super) fn is_before(offset: &[i64]) -> bool {
    matches!(offset.iter().find(|cells| **cells != 0), Some(first) if *first < 0)
}

impl Checker<'_> {
    /// Refuses the primed reads of a function that lead to points of later ones.
    pub(super) fn sweep_order(&mut self, function: &str, reads: &[Primed]) {
        let mut told = Vec::new();
        for read in reads.iter().filter(|read| !is_before(&read.offset)) {
            if told.contains(&read.span) {
                continue;
            }
            told.push(read.span);
            let message = "the offset of a primed read is not lexicographically negative";
            let label = format!("not computed yet in this sweep: it depends on {:?}", read.offset);
            let error = Diagnostic::error(message, read.span, label);
            self.report(error.help(remedy(function, read, reads)));
        }
    }
}

/// What makes a read legal together with all others of its function.
fn remedy(function: &str, read: &Primed, reads: &[Primed]) -> String {
    let Primed { name, offset, .. } = read;
    let old = format!("read its old value: `{name}{offset:?}`");
    if offset.iter().all(|cells| *cells == 0) {
        return format!("this is the point itself; {old}");
    }
    let Some(order) = legal(reads, offset.len()) else {
        return format!(
            "no order of the dimensions makes all primed reads of `{function}` legal; {old}"
        );
    };
    let mut changes = Vec::new();
    if !order.dimensions.is_sorted() {
        let numbers: Vec<_> = order.dimensions.iter().map(|d| (d + 1).to_string()).collect();
        changes.push(format!("the dimensions in the order {}", numbers.join(", ")));
    }
    for (dimension, _) in order.reversed.iter().enumerate().filter(|(_, reversed)| **reversed) {
        changes.push(format!("dimension {} counted from its end", dimension + 1));
    }
    format!(
        "with {}, all primed reads of `{function}` are legal; this one becomes `{name}'{:?}`",
        changes.join(" and "),
        order.apply(offset)
    )
}

/// An order of dimensions.
struct Order {
    /// The old dimensions, the slowest first.
    dimensions: Vec<usize>,
    /// Which old dimensions are counted from their end.
    reversed: Vec<bool>,
}

impl Order {
    fn apply(&self, offset: &[i64]) -> Vec<i64> {
        let cells = |dimension: &usize| {
            let cells = offset.get(*dimension).copied().unwrap_or(0);
            let reversed = self.reversed.get(*dimension).is_some_and(|reversed| *reversed);
            if reversed { cells.saturating_neg() } else { cells }
        };
        self.dimensions.iter().map(cells).collect()
    }
}

/// The order with the fewest reversed dimensions in which all reads but those of the point itself
/// are legal.
fn legal(reads: &[Primed], rank: usize) -> Option<Order> {
    if rank > MOST_DIMENSIONS || reads.iter().any(|read| read.offset.len() != rank) {
        return None;
    }
    let mut sets: Vec<usize> = (0..1 << rank).collect();
    sets.sort_by_key(|set| set.count_ones());
    for set in sets {
        let reversed: Vec<bool> = (0..rank).map(|dimension| set >> dimension & 1 == 1).collect();
        for dimensions in permutations(rank) {
            let order = Order { dimensions, reversed: reversed.clone() };
            let others = reads.iter().filter(|read| read.offset.iter().any(|cells| *cells != 0));
            if others.map(|read| order.apply(&read.offset)).all(|offset| is_before(&offset)) {
                return Some(order);
            }
        }
    }
    None
}

/// All orders of so many numbers, the natural one first.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = all.into_iter().flat_map(|begun: Vec<usize>| {
            let rest: Vec<_> = (0..count).filter(|next| !begun.contains(next)).collect();
            rest.into_iter().map(move |next| [begun.as_slice(), &[next]].concat())
        });
        all = longer.collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(offsets: &[&[i64]]) -> Option<(Vec<usize>, Vec<bool>)> {
        let read = |offset: &&[i64]| Primed {
            name: "A".into(),
            offset: offset.to_vec(),
            span: Span { start: 0, end: 0 },
        };
        let reads: Vec<_> = offsets.iter().map(read).collect();
        let order = legal(&reads, offsets.first()?.len())?;
        Some((order.dimensions, order.reversed))
    }

    #[test]
    fn orders_by_hand() {
        // The second dimension first.
        assert_eq!(found(&[&[1, -1], &[0, -1]]), Some((vec![1, 0], vec![false, false])));
        // From the right to the left.
        assert_eq!(found(&[&[-1, 0], &[0, 1]]), Some((vec![0, 1], vec![false, true])));
        // From the bottom to the top.
        assert_eq!(found(&[&[1, -1], &[1, 0]]), Some((vec![0, 1], vec![true, false])));
        // Both.
        assert_eq!(found(&[&[1, 1], &[-1, 1], &[1, 0]]), Some((vec![1, 0], vec![true, true])));
        assert_eq!(found(&[&[0, 1], &[0, -1]]), None);
        assert_eq!(found(&[&[1, 0], &[0, 1], &[-1, -1]]), None);
        assert_eq!(
            found(&[&[1, 0, -1], &[0, 1, -1], &[0, -1, 0], &[-1, 0, 0]]),
            Some((vec![2, 0, 1], vec![false; 3]))
        );
        assert_eq!(found(&[&[0, 0], &[0, 1]]), Some((vec![0, 1], vec![false, true])));
    }
}
