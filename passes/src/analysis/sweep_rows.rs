//! Finds the values of a sweep that need no memory.
//!
//! A temp field whose cells are read behind the sweep in the last rows of the grid alone needs no
//! memory for other rows. A reduction of values of the sweep at the point itself needs one value
//! for each row of its box.

use melior::ir::{AffineMap, TypeLike, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{
    self, Apply, Argument, Combine, Gather, Grid, Piece, Program, Reduce, Role,
};

/// Last rows that are kept at most.
const MOST_KEPT: i64 = 64;

/// A temp field that is stored as rows alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enough<'c> {
    /// The field.
    pub field: &'c str,
    /// Rows above a point whose values the sweep reads.
    pub handed: i64,
    /// Last rows of the grid that others read.
    pub kept: i64,
}

/// A reduction that is stored as one value for each row.
#[derive(Clone, Debug)]
pub struct Reduced<'c, 'p> {
    /// The reduction.
    pub reduce: &'p Reduce<'c>,
    /// The reduction that looks for the first point with its value, if there is one.
    pub place: Option<&'p Reduce<'c>>,
}

/// What a sweep stores in place of matrices.
#[derive(Clone, Debug, Default)]
pub struct SweepRows<'c, 'p> {
    /// Temp fields that are stored as rows alone.
    pub last: Vec<Enough<'c>>,
    /// Reductions that are stored as one value for each row.
    pub reduced: Vec<Reduced<'c, 'p>>,
}

/// What a sweep in two dimensions stores in place of matrices. `place` is the index of its apply in
/// the step.
pub fn of<'c, 'p>(
    program: &'p Program<'c>,
    (apply, place): (&Apply<'c>, usize),
) -> Result<SweepRows<'c, 'p>, Error> {
    let mut found = SweepRows::default();
    if !apply.repeats.is_empty() {
        return Ok(found);
    }
    for reduce in program.reduces.iter().filter(|reduce| reduce.place > place) {
        if is_reduced(program, apply, reduce)? {
            let place = place_of(program, reduce)?;
            found.reduced.push(Reduced { reduce, place });
        }
    }
    for field in &apply.updates {
        if let Some(handed) = handed(program, apply, field)?
            && let Some(kept) = kept(program, apply, field, &found.reduced)?
        {
            found.last.push(Enough { field, handed, kept });
        }
    }
    // Warps that store look for one range of rows.
    let most = found.last.iter().map(|enough| enough.kept).max().unwrap_or(0);
    found.last.iter_mut().filter(|enough| enough.kept > 0).for_each(|enough| enough.kept = most);
    Ok(found)
}

/// Whether other applies than one update a field.
fn others_update(program: &Program, apply: &Apply, field: &str) -> bool {
    let mut others = program.applies.iter().filter(|other| other.op != apply.op);
    others.any(|other| other.updates.contains(&field))
}

/// Whether a reduction's values follow from new values of a sweep at the point, in any order.
fn is_reduced<'c>(
    program: &Program<'c>,
    apply: &Apply<'c>,
    reduce: &Reduce<'c>,
) -> Result<bool, Error> {
    let any_order =
        reduce.combine != Combine::Sum || !program.field(reduce.field)?.element.is_float();
    let flat = program.reduced(reduce)?.lower.result_count() == 2;
    let whole = program.gathered(reduce.function)?.is_empty() && reduce.repeats.is_empty();
    let mut reads = 0;
    for argument in program.arguments(reduce.function)? {
        match argument {
            Argument::Read { field, offset } => {
                let here = offset.iter().all(|cells| *cells == 0);
                let own = apply.updates.contains(field) && !others_update(program, apply, field);
                let inside = has_rows_of(program.grid_of(field)?, &program.reduced(reduce)?);
                if !(here && own && inside) {
                    return Ok(false);
                }
                reads += 1;
            }
            Argument::Scalar(_) | Argument::Param(_) | Argument::Coordinate(_) => {}
            _ => return Ok(false),
        }
    }
    Ok(any_order && flat && whole && reads > 0)
}

/// Whether a grid has all rows of a box, whatever the sizes. The rows of a box without columns may
/// lie anywhere.
fn has_rows_of(grid: &Grid, piece: &Piece) -> bool {
    let above = |first: AffineMap, second: AffineMap| {
        let rows = Linear::of_map(first).zip(Linear::of_map(second));
        let gap = rows.and_then(|(first, second)| second.first()?.minus(first.first()?));
        gap.is_some_and(|gap| gap.is_never_negative())
    };
    above(grid.lower, piece.lower) && above(piece.upper, grid.upper)
}

/// The reduction that looks for the first point with the value of another one: that of `NAME`
/// where the value is `NAME.best`. Names of programs have no dots.
fn place_of<'c, 'p>(
    program: &'p Program<'c>,
    best: &Reduce<'c>,
) -> Result<Option<&'p Reduce<'c>>, Error> {
    let Some(name) = best.field.strip_suffix(".best") else { return Ok(None) };
    let Some(reduce) = program.reduces.iter().find(|reduce| reduce.field == name) else {
        return Ok(None);
    };
    let integer = !program.field(best.field)?.element.is_float();
    let extreme = matches!(best.combine, Combine::Min | Combine::Max);
    let (own, other) = (program.reduced(reduce)?, program.reduced(best)?);
    let alike = (own.lower, own.upper) == (other.lower, other.upper);
    let gathers = program.gathered(reduce.function)?;
    let looks = gathers.len() == 1 && gathers.contains(best.field);
    let takes = integer && extreme && alike && looks && reduce.combine == Combine::Min;
    Ok(takes.then_some(reduce))
}

/// Rows above a point whose values a sweep reads of a temp field. `None` where others update the
/// field, or where the sweep reads its old values.
fn handed(program: &Program, apply: &Apply, field: &str) -> Result<Option<i64>, Error> {
    let declared = program.field(field)?;
    let alone = declared.role == Role::Temp
        && declared.boundary.is_none()
        && declared.member.is_none()
        && !others_update(program, apply, field)
        && !program.gathered_by(&apply.pieces)?.contains(field);
    let mut handed = 0;
    for piece in &apply.pieces {
        for argument in program.arguments(piece.function)? {
            match argument {
                Argument::Read { field: read, .. } if *read == field => return Ok(None),
                Argument::Current { field: read, offset } if *read == field => {
                    handed = handed.max(-offset.first().copied().unwrap_or(0));
                }
                _ => {}
            }
        }
    }
    Ok(alone.then_some(handed))
}

/// How many last rows of the grid others than a sweep read of a field: applies, and reductions that
/// are not taken. None where they read other rows too.
fn kept(
    program: &Program,
    apply: &Apply,
    field: &str,
    reduced: &[Reduced],
) -> Result<Option<i64>, Error> {
    let taken = |reduce: &Reduce| {
        let of = |one: &Reduced| {
            one.reduce.op == reduce.op || one.place.is_some_and(|place| place.op == reduce.op)
        };
        reduced.iter().any(of)
    };
    let applies = program.applies.iter().filter(|other| other.op != apply.op);
    let mut pieces: Vec<Piece> = applies.flat_map(|apply| apply.pieces.clone()).collect();
    for reduce in program.reduces.iter().filter(|reduce| !taken(reduce)) {
        pieces.push(program.reduced(reduce)?);
    }
    let grid = program.grid_of(field)?;
    let last = Linear::of_map(grid.upper).and_then(|ends| ends.into_iter().next());
    let mut kept = 0;
    for piece in pieces {
        for row in rows_read(program, &piece, field)? {
            let gap = last.as_ref().zip(row).and_then(|(last, row)| last.minus(&row));
            match gap {
                Some(gap) if gap.is_constant() && (0..MOST_KEPT).contains(&gap.constant) => {
                    kept = kept.max(gap.constant + 1);
                }
                _ => return Ok(None),
            }
        }
    }
    Ok(Some(kept))
}

/// The first row that each read of a field in a piece takes; none where it is not known.
fn rows_read(program: &Program, piece: &Piece, field: &str) -> Result<Vec<Option<Linear>>, Error> {
    let mut rows = Vec::new();
    for argument in program.arguments(piece.function)? {
        if let Argument::Read { field: read, offset } = argument
            && *read == field
        {
            let first = Linear::of_map(piece.lower).and_then(|ends| ends.into_iter().next());
            let cells = offset.first().copied().unwrap_or(0);
            rows.push(first.and_then(|mut row| {
                row.constant = row.constant.checked_add(cells)?;
                Some(row)
            }));
        }
    }
    let function = program.function(piece.function)?;
    for gather in stencil::gathers(function)?.into_iter().filter(|one| one.field == field) {
        rows.push(row_of(program, piece, &gather)?);
    }
    Ok(rows)
}

/// The row of an absolute read, where sums of sizes and numbers give it.
fn row_of(program: &Program, piece: &Piece, gather: &Gather) -> Result<Option<Linear>, Error> {
    let function = program.function(piece.function)?;
    let number = |constant| Linear { constant, coefficients: vec![0; program.params.len()] };
    let mut known = BTreeMap::new();
    for (argument, value) in stencil::arguments_with_values(function)? {
        if let Argument::Param(name) = argument {
            let mut size = number(0);
            let place = program.params.iter().position(|param| *param == name);
            if let Some(factor) = place.and_then(|place| size.coefficients.get_mut(place)) {
                *factor = 1;
            }
            known.insert(mlir::key(value), size);
        }
    }
    for op in mlir::walk(function) {
        let (results, operands) = (mlir::results(op), mlir::operands(op));
        let Some(result) = results.first() else { continue };
        let of = |place: usize| known.get(&mlir::key(*operands.get(place)? as Val));
        let value = match mlir::name(op) {
            "arith.constant" if result.r#type().is_integer() => {
                mlir::attribute(op, "value").and_then(attribute::as_integer).map(number)
            }
            "arith.addi" => of(0).zip(of(1)).and_then(|(first, second)| first.plus(second)),
            "arith.subi" => of(0).zip(of(1)).and_then(|(first, second)| first.minus(second)),
            _ => None,
        };
        if let Some(value) = value {
            known.insert(mlir::key(*result), value);
        }
    }
    Ok(gather.at.first().and_then(|row| known.get(&mlir::key(*row)).cloned()))
}
