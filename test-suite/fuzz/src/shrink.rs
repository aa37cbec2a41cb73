//! Smaller cases that fail in the same way.
//!
//! Greedy: of all ways to make the case a little smaller, the first one that still fails is taken,
//! until none does. Candidates need not be valid programs; those that aren't fail in another way.
//! `types.rs` makes grids fewer and cells smaller.

mod types;

use crate::check::{Fault, Verdict, check};
use crate::model::*;
use melior::Context;

/// The smallest case found that fails as this one did, with its fault; none where this one did not
/// fail.
pub fn failure(
    case: &Case,
    verdict: &Verdict,
    attempts: usize,
    context: &Context,
) -> Option<(Case, Fault, String)> {
    let Verdict::Failed(fault, message) = verdict else { return None };
    let small = shrink(case, attempts, |case| check(case, context).fails_like(verdict));
    match check(&small, context) {
        Verdict::Failed(fault, message) => Some((small, fault, message)),
        // A failure that comes and goes is one too.
        _ => Some((case.clone(), *fault, format!("not every time: {message}"))),
    }
}

/// The smallest case found that `fails`, with at most so many attempts.
pub fn shrink(case: &Case, attempts: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut left = attempts;
    'smaller: loop {
        for candidate in candidates(&best) {
            if left == 0 {
                return best;
            }
            if candidate == best {
                continue;
            }
            left -= 1;
            if fails(&candidate) {
                best = candidate;
                continue 'smaller;
            }
        }
        return best;
    }
}

/// The case with one change.
fn with(case: &Case, change: impl FnOnce(&mut Case)) -> Case {
    let mut changed = case.clone();
    change(&mut changed);
    changed
}

/// Smaller cases, those that promise most first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut found = runs(case);
    found.extend(parts(case));
    found.extend(types::candidates(case));
    found.extend(sizes(case));
    found.extend(schedules(case));
    found.extend(expressions(case));
    found
}

fn runs(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    if case.schedules.len() > 1 {
        found.extend(
            (0..case.schedules.len())
                .map(|place| with(case, |case| drop(case.schedules.remove(place)))),
        );
    }
    found.push(with(case, |case| case.round_trip = false));
    found.push(with(case, |case| case.transpose = false));
    found.push(with(case, |case| case.windows = false));
    found.push(with(case, |case| case.shift = None));
    found.push(with(case, |case| case.outline = false));
    found.push(with(case, |case| case.ptx = false));
    found.push(with(case, |case| case.order = None));
    found.push(with(case, |case| case.steps_given = false));
    found.push(with(case, |case| case.data.rough = false));
    found
}

fn parts(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (place, (.., times)) in case.program.repeats.iter().enumerate() {
        found.push(with(case, |case| {
            case.program.repeats.remove(place);
        }));
        for times in nearer(*times, 1) {
            found.push(with(case, |case| case.program.repeats[place].2 = times));
        }
    }
    let functions = &case.program.functions;
    for (place, function) in functions.iter().enumerate() {
        if functions.len() > 1 {
            found.push(with(case, |case| drop(case.program.functions.remove(place))));
        }
        for piece in 0..function.pieces.len() {
            if function.pieces.len() > 1 {
                found.push(with(case, |case| {
                    drop(case.program.functions[place].pieces.remove(piece))
                }));
            }
        }
        for update in 0..function.updates.len() {
            if function.updates.len() > 1 {
                found.push(with(case, |case| {
                    let function = &mut case.program.functions[place];
                    function.updates.remove(update);
                    for piece in &mut function.pieces {
                        piece.values.remove(update);
                    }
                }));
            }
        }
    }
    for field in 0..case.program.fields.len() {
        found.extend(without_field(case, field));
        if let Some(rule) = &case.program.fields[field].rule {
            let mut simpler = vec![None];
            if *rule != Rule::Nearest {
                simpler.push(Some(Rule::Nearest));
            }
            if let Rule::Value(whole) = rule {
                simpler.extend(
                    simplified(&case.program, whole)
                        .into_iter()
                        .map(|value| Some(Rule::Value(value))),
                );
            }
            found.extend(
                simpler
                    .into_iter()
                    .map(|rule| with(case, |case| case.program.fields[field].rule = rule)),
            );
        }
    }
    if case.program.until.is_some() {
        found.push(with(case, |case| case.program.until = None));
    }
    for reduction in 0..case.program.reductions.len() {
        found.push(without_reduction(case, reduction));
    }
    for scalar in 0..case.program.scalars.len() {
        found.push(with(case, |case| {
            let value = case.program.scalars.remove(scalar).value;
            each(case, &mut |part| match part.kind {
                Kind::Scalar(place) if place == scalar => part.kind = Kind::Number(value, true),
                Kind::Scalar(place) if place > scalar => part.kind = Kind::Scalar(place - 1),
                _ => {}
            });
        }));
    }
    found
}

/// The case without a reduction; its value counts as 0.5, or 1 of an integer type.
fn without_reduction(case: &Case, reduction: usize) -> Case {
    with(case, |case| {
        let ty = case.program.reductions.remove(reduction).ty;
        let value = types::plain(&case.program, ty);
        each(case, &mut |part| match part.kind {
            Kind::Reduction(place) if place == reduction => *part = value.clone(),
            Kind::Reduction(place) if place > reduction => part.kind = Kind::Reduction(place - 1),
            _ => {}
        });
    })
}

/// The case without a field that no function updates; its cells count as 0.5, or 1 of
/// an integer type.
fn without_field(case: &Case, field: usize) -> Option<Case> {
    let program = &case.program;
    if program.fields.len() < 2
        || program.functions.iter().any(|function| function.updates.contains(&field))
    {
        return None;
    }
    Some(with(case, |case| {
        for function in &mut case.program.functions {
            for update in &mut function.updates {
                *update -= usize::from(*update > field);
            }
        }
        let cell = types::plain(&case.program, case.program.fields[field].ty);
        case.program.fields.remove(field);
        each(case, &mut |part| match &mut part.kind {
            Kind::Read(place, _) | Kind::Current(place, _) | Kind::Gather(place, _)
                if *place == field =>
            {
                *part = cell.clone()
            }
            Kind::Read(place, _) | Kind::Current(place, _) | Kind::Gather(place, _)
                if *place > field =>
            {
                *place -= 1
            }
            _ => {}
        });
    }))
}

fn each(case: &mut Case, change: &mut impl FnMut(&mut Expr)) {
    for (_, value) in case.program.values_mut() {
        value.change(change);
    }
}

/// Numbers nearer to a goal: the goal itself, half way, one step.
fn nearer(value: i64, goal: i64) -> Vec<i64> {
    let mut found = vec![goal, goal + (value - goal) / 2, value - (value - goal).signum()];
    found.dedup();
    found.retain(|other| *other != value);
    found
}

fn sizes(case: &Case) -> Vec<Case> {
    let mut found: Vec<_> = nearer(case.program.steps, 0)
        .into_iter()
        .map(|steps| with(case, |case| case.program.steps = steps))
        .collect();
    for (place, param) in case.program.params.iter().enumerate() {
        found.extend(
            nearer(param.value, 0)
                .into_iter()
                .map(|value| with(case, |case| case.program.params[place].value = value)),
        );
        found.push(with(case, |case| case.program.params[place].known = Known::File));
    }
    for dimension in 0..case.program.rank() {
        let lower = case.program.grids[0].lower[dimension];
        let mut back = vec![0; case.program.rank()];
        back[dimension] = -lower.constant;
        if lower.constant != 0 {
            found.push(crate::transform::shifted(case, &back));
        }
    }
    for (place, grid) in case.program.grids.iter().enumerate() {
        for (dimension, (lower, upper)) in grid.lower.iter().zip(&grid.upper).enumerate() {
            if upper.term.is_none() && upper.constant >= lower.constant {
                found.push(with(case, |case| {
                    case.program.grids[place].upper[dimension].constant -= 1
                }));
            }
        }
    }
    found
}

fn schedules(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (place, schedule) in case.schedules.iter().enumerate() {
        let change =
            |change: &dyn Fn(&mut Schedule)| with(case, |case| change(&mut case.schedules[place]));
        found.push(change(&|schedule| {
            (schedule.strategy, schedule.height, schedule.combination) = ("naive", None, None);
        }));
        for blocks in schedule.combination.map(|by| nearer(by.blocks, 1)).unwrap_or_default() {
            found.push(change(&|schedule| {
                schedule.combination = schedule.combination.map(|by| Combination { blocks, ..by });
            }));
        }
        found.push(change(&|schedule| schedule.per_thread = None));
        for (flag, ..) in Flag::ALL.into_iter().filter(|(flag, ..)| !schedule.flags.contains(flag))
        {
            found.push(change(&|schedule| schedule.flags.push(flag)));
        }
        for height in schedule.height.map(|height| nearer(height, 1)).unwrap_or_default() {
            found.push(change(&|schedule| schedule.height = Some(height)));
        }
        for (dimension, cells) in schedule.tile.iter().flatten().enumerate() {
            for cells in nearer(*cells, 1) {
                found.push(change(&|schedule| {
                    if let Some(tile) = &mut schedule.tile {
                        tile[dimension] = cells;
                    }
                }));
            }
        }
    }
    found
}

fn expressions(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (place, reduction) in case.program.reductions.iter().enumerate() {
        for simpler in simplified(&case.program, &reduction.piece.values[0]) {
            found.push(with(case, |case| {
                case.program.reductions[place].piece.values[0] = simpler;
            }));
        }
    }
    for (place, function) in case.program.functions.iter().enumerate() {
        for (piece, known) in function.pieces.iter().enumerate() {
            for shared in 0..known.lets.len() {
                found.push(with(case, |case| {
                    without_let(&mut case.program.functions[place].pieces[piece], shared);
                }));
            }
            for (number, whole) in known.exprs().enumerate() {
                for simpler in simplified(&case.program, whole) {
                    found.push(with(case, |case| {
                        let known = &mut case.program.functions[place].pieces[piece];
                        known.exprs_mut().nth(number).into_iter().for_each(|old| {
                            old.clone_from(&simpler);
                        });
                    }));
                }
            }
        }
    }
    found
}

/// Writes out a local that the values of a piece share.
fn without_let(piece: &mut Piece, place: usize) {
    let (number, bound) = piece.lets.remove(place);
    for value in piece.exprs_mut() {
        value.change(&mut |part| {
            if part.kind == Kind::Local(number) {
                *part = bound.clone();
            }
        });
    }
}

/// An expression with one part of it simpler.
fn simplified(program: &Program, whole: &Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    for part in 0..whole.size() {
        let mut changed = whole.clone();
        for other in replacements(program, nth(&mut changed, part)) {
            *nth(&mut changed, part) = other;
            found.push(changed);
            changed = whole.clone();
        }
    }
    found
}

/// A part of an expression by its number, the whole first.
fn nth(expr: &mut Expr, number: usize) -> &mut Expr {
    if number == 0 {
        return expr;
    }
    let mut number = number - 1;
    let sizes: Vec<_> = expr.children().iter().map(|child| child.size()).collect();
    let place = sizes.iter().position(|size| {
        let here = number < *size;
        if !here {
            number -= size;
        }
        here
    });
    match place.and_then(|place| expr.children_mut().into_iter().nth(place)) {
        Some(child) => nth(child, number),
        None => unreachable!("a part beyond the last"),
    }
}

/// Simpler expressions of the same type.
fn replacements(program: &Program, expr: &Expr) -> Vec<Expr> {
    let mut found: Vec<Expr> =
        expr.children().into_iter().filter(|child| child.ty == expr.ty).cloned().collect();
    for child in expr.children() {
        found.extend(child.children().into_iter().filter(|part| part.ty == expr.ty).cloned());
    }
    match &expr.kind {
        Kind::Read(field, offset) => {
            for (dimension, distance) in offset.iter().enumerate() {
                for distance in nearer(*distance, 0) {
                    let mut offset = offset.clone();
                    offset[dimension] = distance;
                    found.push(Expr { ty: expr.ty, kind: Kind::Read(*field, offset) });
                }
            }
        }
        Kind::Current(field, offset) => {
            found.push(Expr { ty: expr.ty, kind: Kind::Read(*field, offset.clone()) });
        }
        Kind::Number(..) => {}
        _ if expr.ty != Type::Bool => found.push(types::plain(program, expr.ty)),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn a_case_shrinks_to_what_matters() {
        // "Fails" where some function reads at an offset of 2 or more along the first dimension.
        let far = |case: &Case| {
            let mut found = false;
            for piece in case.program.functions.iter().flat_map(|function| &function.pieces) {
                for value in piece.exprs() {
                    value.visit(&mut |part| {
                        found |= matches!(&part.kind, Kind::Read(_, offset) if offset[0].abs() >= 2)
                    });
                }
            }
            found
        };
        let cases = (0..200).map(|index| generate::case(1, index)).filter(far);
        let mut count = 0;
        for case in cases {
            let small = shrink(&case, 100_000, far);
            assert!(far(&small));
            let functions = &small.program.functions;
            assert_eq!(
                (functions.len(), functions[0].pieces.len(), functions[0].pieces[0].values.len()),
                (1, 1, 1)
            );
            // `if` cell and a number in comparison `then` cell `else` cell, with a name and
            // conversions, and this in the coordinate of an absolute read, at most.
            assert!(functions[0].pieces[0].values[0].size() <= 20, "{}", small.program.text());
            assert_eq!((small.program.steps, small.schedules.len()), (0, 1));
            count += 1;
        }
        assert!(count > 20, "{count}");
    }
}
