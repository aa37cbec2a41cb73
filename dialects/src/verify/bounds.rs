//! Boxes of points: pieces and reads lie inside grids, and pieces are disjoint.

use super::at;
use crate::affine::Linear;
use crate::cover::{Bounds, checked_values, of_points};
use crate::error::Error;
use crate::inequalities::imply;
use crate::limits::{GRID_END, MOST_CELLS, PIECE_END, RULE_OFFSET};
use crate::stencil::{Apply, Argument, Grid, Piece, Program};
use std::cell::LazyCell;

/// Checks that the cells which a piece reads lie in their grids.
pub(super) fn reads_inside<'c>(
    program: &Program<'c>,
    apply: &Apply<'c>,
    piece: &Piece<'c>,
    grids: &[&Grid<'c>],
) -> Result<(), Error> {
    for argument in program.arguments(piece.function)? {
        if let Argument::Current { field, offset } = argument
            && program.field(field)?.boundary.is_none()
        {
            let what = format!("the read of @{field} at {offset:?} by @{} reaches", piece.function);
            inside(program, apply, piece, grids, program.grid_of(field)?, offset, &what)?;
        }
        if let Argument::Read { field, offset } = argument {
            if program.field(field)?.boundary.is_some() {
                if offset.iter().any(|cells| cells.unsigned_abs() > RULE_OFFSET) {
                    return Err(at(
                        apply.op,
                        format!(
                            "@{} reads @{field} at {offset:?}; with a boundary rule, offsets go up \
                             to {RULE_OFFSET} cells",
                            piece.function
                        ),
                    ));
                }
                // What lies beside the grid's points is known, and nothing more.
                let grid = program.grid_of(field)?;
                if !grids.iter().any(|other| (other.lower, other.upper) == (grid.lower, grid.upper))
                {
                    let what = format!("@{} reads @{field} for a point that lies", piece.function);
                    inside(program, apply, piece, grids, grid, &vec![0; offset.len()], &what)?;
                }
                continue;
            }
            let what = format!("the read of @{field} at {offset:?} by @{} reaches", piece.function);
            inside(program, apply, piece, grids, program.grid_of(field)?, offset, &what)?;
        }
    }
    Ok(())
}

/// Checks that a piece, moved by an offset, lies in a grid; without an offset it lies in those
/// `within`.
pub(super) fn inside(
    program: &Program,
    apply: &Apply,
    piece: &Piece,
    within: &[&Grid],
    grid: &Grid,
    offset: &[i64],
    what: &str,
) -> Result<(), Error> {
    let internal = || {
        at(apply.op, "the bounds are too large: sums of them leave 64 bits; use smaller constants")
    };
    let bounds = |map| Linear::of_map(map).ok_or_else(internal);
    let (lower, upper) = (bounds(piece.lower)?, bounds(piece.upper)?);
    let (first, last) = (bounds(grid.lower)?, bounds(grid.upper)?);
    let empty = lower
        .iter()
        .zip(&upper)
        .any(|(lower, upper)| upper.minus(lower).is_some_and(|length| length.is_always_negative()));
    if empty {
        return Ok(());
    }
    // What is known not to be negative: the guarded values, and what follows from the piece's
    // points, because an empty piece reaches nowhere.
    let moves = offset.iter().any(|offset| *offset != 0)
        || !within.iter().any(|other| other.name == grid.name);
    let known = LazyCell::new(|| {
        let mut known: Vec<_> = checked_values(program, &[piece]).collect();
        known.extend(of_points(piece, if moves { within } else { &[] }));
        known
    });
    for dimension in 0..grid.rank() {
        let pick = |bounds: &[Linear]| bounds.get(dimension).cloned().ok_or_else(internal);
        let moved = |bound: Linear| {
            let by = Linear {
                constant: offset.get(dimension).copied().unwrap_or(0),
                coefficients: vec![0; bound.coefficients.len()],
            };
            bound.plus(&by).ok_or_else(internal)
        };
        let below = moved(pick(&lower)?)?.minus(&pick(&first)?).ok_or_else(internal)?;
        let above = pick(&last)?.minus(&moved(pick(&upper)?)?).ok_or_else(internal)?;
        for (margin, side) in [(below, "below"), (above, "above")] {
            if !margin.is_never_negative()
                && !margin.follows_from(&known)
                && !imply(&known, &margin)
            {
                let remedy = if margin.is_always_negative() {
                    "make the piece smaller"
                } else {
                    "make the piece smaller, or guard it by a stencil.check"
                };
                return Err(at(
                    apply.op,
                    format!(
                        "{what} {side} the grid @{} in dimension {dimension}; {remedy}",
                        grid.name
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Checks that a piece's bounds lie near enough to 0 for sums of them: for all sizes, or guarded by
/// checks. The bounds of an empty piece lie in no grid, but kernels compute them too.
pub(super) fn near(
    program: &Program,
    apply: &Apply,
    piece: &Piece,
    grids: &[&Grid],
) -> Result<(), Error> {
    let number = |constant| Linear { constant, coefficients: vec![0; program.params.len()] };
    let mut known = Vec::new();
    for grid in grids.iter().filter_map(|grid| Bounds::of_grid(grid)) {
        for (lower, upper) in grid.lower.iter().zip(&grid.upper) {
            let cells = upper.minus(lower).and_then(|length| length.plus(&number(1)));
            let room = cells.as_ref().and_then(|cells| number(MOST_CELLS).minus(cells));
            let ends = [lower.plus(&number(GRID_END)), number(GRID_END).minus(upper)];
            known.extend(cells.into_iter().chain(room).chain(ends.into_iter().flatten()));
        }
    }
    let Some(bounds) = Bounds::of_piece(piece) else { return Ok(()) };
    for (side, bounds) in [("lower", &bounds.lower), ("upper", &bounds.upper)] {
        for (dimension, bound) in bounds.iter().enumerate().filter(|(_, at)| !at.is_constant()) {
            // Passes move the bounds of a program, by far less than as much again.
            let most = number(2 * PIECE_END);
            let margins = [bound.plus(&most), most.minus(bound)].into_iter().flatten();
            let near = |margin: &Linear| imply(&known, margin) || guarded(program, &known, margin);
            if margins.into_iter().any(|margin| !near(&margin)) {
                return Err(at(
                    apply.op,
                    format!(
                        "the {side} bound of the piece @{} in dimension {dimension} may leave 64 \
                         bits; guard it by a stencil.check on each side, with {PIECE_END}",
                        piece.function
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Whether a value is not negative by what is known and one check, where the check is void too. All
/// checks together may be too many for a proof.
fn guarded(program: &Program, known: &[Linear], value: &Linear) -> bool {
    let by = |fact: Linear| {
        let facts: Vec<_> = known.iter().cloned().chain([fact]).collect();
        imply(&facts, value)
    };
    let void = |(lower, upper)| {
        let Some(empty) = Bounds::of(lower, upper) else { return false };
        empty.lower.iter().zip(&empty.upper).all(|(lower, upper)| {
            let gap = lower.minus(upper);
            gap.is_some_and(|gap| by(Linear { constant: gap.constant.saturating_sub(1), ..gap }))
        })
    };
    let mut of_sizes =
        program.checks.iter().filter(|at| at.value.symbol_count() == program.params.len());
    of_sizes
        .any(|check| check.linear.clone().is_some_and(by) && check.unless_empty.is_none_or(void))
}

/// Whether some dimension separates two boxes where the known values are not negative, or one of
/// them is empty there. Most boxes lie apart for all sizes, which costs least to see.
pub(super) fn disjoint(one: &Bounds, other: &Bounds, known: impl FnOnce() -> Vec<Linear>) -> bool {
    // The points between the end of one and the begin of another, which must not be negative.
    let between = |upper: &[Linear], lower: &[Linear]| -> Vec<Linear> {
        let gaps = upper.iter().zip(lower).filter_map(|(upper, lower)| lower.minus(upper));
        gaps.filter_map(|gap| {
            let constant = gap.constant.checked_sub(1)?;
            Some(Linear { constant, ..gap })
        })
        .collect()
    };
    let between = [
        between(&one.upper, &other.lower),
        between(&other.upper, &one.lower),
        between(&one.upper, &one.lower),
        between(&other.upper, &other.lower),
    ]
    .concat();
    between.iter().any(Linear::is_never_negative) || {
        let known = known();
        between.iter().any(|between| between.follows_from(&known))
            || between.iter().any(|between| imply(&known, between))
    }
}
