//! The launches of a step: groups of applies and the reductions between them, in order, each as
//! often as the repetitions around it say.

use crate::schedule::launch_groups::Group;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Reduce, Repetition};

/// A launch of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch<'c> {
    /// Some repetitions of a group, which is given by its number.
    Group(usize, i64),
    /// The reduction whose value a field holds.
    Reduce(&'c str),
}

/// An item of a step: its launch, and the repetitions around it from the outside.
type Item<'c, 'a> = (Launch<'c>, &'a [Repetition]);

/// The launches of a step. `height` has the most repetitions of a group, given by its number, that
/// one launch takes.
///
/// # Errors
/// Those of `height`.
pub fn of<'c>(
    groups: &[Group<'c, '_>],
    reduces: &[&Reduce<'c>],
    height: &dyn Fn(usize) -> Result<i64, Error>,
) -> Result<Vec<Launch<'c>>, Error> {
    let mut items: Vec<Item> = Vec::new();
    let mut reduces = reduces.iter().peekable();
    let places = groups.iter().map(|group| group.place).chain([usize::MAX]);
    for (number, place) in places.enumerate() {
        while let Some(reduce) = reduces.next_if(|reduce| reduce.place <= place) {
            items.push((Launch::Reduce(reduce.field), &reduce.repeats));
        }
        if let Some(group) = groups.get(number) {
            items.push((Launch::Group(number, 1), &group.repeats));
        }
    }
    turn(&items, 0, height)
}

/// The launches of items that stand in so many repetitions together.
fn turn<'c>(
    items: &[Item<'c, '_>],
    depth: usize,
    height: &dyn Fn(usize) -> Result<i64, Error>,
) -> Result<Vec<Launch<'c>>, Error> {
    let mut all = Vec::new();
    let around = |item: &Item<'c, '_>| item.1.get(depth).copied();
    for some in items.chunk_by(|a, b| around(a).is_some() && around(a) == around(b)) {
        let Some(first) = some.first() else { continue };
        match (some, around(first)) {
            (_, None) => all.push(first.0),
            ([(Launch::Group(number, _), repeats)], Some(repeat)) if repeats.len() == depth + 1 => {
                let launches = digits(repeat.count, height(*number)?);
                all.extend(launches.into_iter().map(|taken| Launch::Group(*number, taken)));
            }
            (_, Some(repeat)) => {
                let body = turn(some, depth + 1, height)?;
                (0..repeat.count).for_each(|_| all.extend(&body));
            }
        }
    }
    Ok(all)
}

/// The repetitions that each launch takes, at most `height`. What is left over goes by binary
/// digits, as the steps of a run do.
fn digits(count: i64, height: i64) -> Vec<i64> {
    let height = height.clamp(1, count.max(1));
    let (mut launches, mut left) = (Vec::new(), count);
    while left > 0 {
        let taken = if left >= height { height } else { 1 << left.ilog2() };
        launches.push(taken);
        left -= taken;
    }
    launches
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTER: Repetition = Repetition { number: 0, count: 2 };
    const INNER: Repetition = Repetition { number: 1, count: 11 };

    fn launches(items: &[Item<'static, '_>]) -> Vec<Launch<'static>> {
        turn(items, 0, &|number| Ok(if number == 1 { 4 } else { 1 })).unwrap()
    }

    #[test]
    fn a_group_that_is_repeated_alone_takes_several_repetitions_per_launch() {
        let group = |taken| Launch::Group(1, taken);
        let inner = [group(4), group(4), group(2), group(1)];
        assert_eq!(launches(&[(group(1), &[INNER])]), inner);
        assert_eq!(launches(&[(group(1), &[OUTER, INNER])]), inner.repeat(2));
        assert_eq!(launches(&[(group(1), &[])]), [group(1)]);
    }

    #[test]
    fn items_that_are_repeated_together_take_turns() {
        let (a, b, r) = (Launch::Group(0, 1), Launch::Group(2, 1), Launch::Reduce("r"));
        let items = [(a, [OUTER].as_slice()), (r, &[OUTER]), (r, &[]), (b, &[])];
        assert_eq!(launches(&items), [a, r, a, r, r, b]);
        let other = Repetition { number: 2, count: 2 };
        assert_eq!(launches(&[(a, &[OUTER]), (b, &[other])]), [a, a, b, b]);
    }
}
