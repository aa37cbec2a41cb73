//! Names, types and bounds of a stencil program.
//!
//! A bound that can't be decided without the sizes is taken only if a `stencil.check` of the same
//! value guards it at launch.

use crate::affine::Linear;
use crate::attribute;
use crate::cover::{Bounds, checked_values, of_points};
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::stencil::{self, Apply, Argument, Boundary, Field, Grid, Piece, Program, Role};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Module, Type, ValueLike};
use std::cell::LazyCell;

/// Verifies all declarations, and every `stencil.apply` with its point functions.
pub fn verify(module: &Module, errors: &mut Vec<Error>) {
    let program = match Program::read(module) {
        Ok(program) => program,
        Err(error) => return errors.push(error),
    };
    declarations(module, &program, errors);
    if !errors.is_empty() {
        return;
    }
    for field in &program.fields {
        if let Some(Boundary::Value(function)) = field.boundary {
            errors.extend(signature(&program, field.op, function, &Purpose::Boundary(field)).err());
        }
    }
    for apply in &program.applies {
        pieces(&program, apply, false, errors);
    }
}

fn at(op: Op, message: impl Into<String>) -> Error {
    Error::new(mlir::place(op.location()), message)
}

/// That names are unique MLIR's own verifier has checked.
fn declarations(module: &Module, program: &Program, errors: &mut Vec<Error>) {
    let whole = mlir::module_op(module);
    for (index, name) in program.params.iter().enumerate() {
        // The plan's expressions name the sizes, and `steps` beside them.
        let letters = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !letters || *name == "steps" {
            errors.push(at(
                whole,
                format!(
                    "\"{name}\" can't name a run-time size: take letters, digits and _, and \
                    not steps"
                ),
            ));
        } else if program.params.get(..index).is_some_and(|before| before.contains(name)) {
            errors.push(at(
                whole,
                format!("the run-time size \"{name}\" stands twice in stencil.params"),
            ));
        }
    }
    for grid in &program.grids {
        let rank = grid.rank();
        if !(1..=3).contains(&rank) {
            errors.push(at(
                grid.op,
                format!("a grid has 1 to 3 dimensions, @{} has {rank}", grid.name),
            ));
        }
        if grid.upper.result_count() != rank {
            errors.push(at(
                grid.op,
                format!(
                    "lower and upper of @{} have {rank} and {} results",
                    grid.name,
                    grid.upper.result_count()
                ),
            ));
        }
        for map in [grid.lower, grid.upper] {
            symbols(program, grid.op, map, errors);
        }
    }
    for field in &program.fields {
        if !program.grids.iter().any(|grid| grid.name == field.grid) {
            errors.push(at(field.op, format!("there is no stencil.grid @{}", field.grid)));
        }
        element(field.op, errors);
    }
    for scalar in &program.scalars {
        let declared = element(scalar.op, errors);
        if let Some(default) =
            scalar.default.filter(|default| attribute::type_of_number(*default) != declared)
        {
            let declared = declared.map(|declared| declared.to_string()).unwrap_or_default();
            errors.push(at(
                scalar.op,
                format!(
                    "the default of @{} must be a number of type {declared}, and is {default}",
                    scalar.name
                ),
            ));
        }
    }
    for check in &program.checks {
        symbols(program, check.op, check.value, errors);
        if check.value.result_count() != 1 {
            errors.push(at(check.op, "the value of a stencil.check has one result"));
        }
        if let Some((lower, upper)) = check.unless_empty {
            symbols(program, check.op, lower, errors);
            symbols(program, check.op, upper, errors);
            if lower.result_count() != upper.result_count() {
                errors.push(at(
                    check.op,
                    "the two bounds of unless_empty need as many results as each other",
                ));
            }
        }
    }
    if program.steps.result_count() != 1 || program.steps.symbol_count() != program.params.len() {
        errors.push(at(whole, "stencil.steps needs one result and one symbol a run-time size"));
    } else {
        symbols(program, whole, program.steps, errors);
    }
}

fn symbols(program: &Program, op: Op, map: AffineMap, errors: &mut Vec<Error>) {
    if map.dim_count() != 0 || map.symbol_count() != program.params.len() {
        let wanted = program.params.len();
        errors.push(at(
            op,
            format!(
                "the bounds need {wanted} symbols, one a run-time size of stencil.params, and no \
                 dimensions: {map}"
            ),
        ));
    } else if Linear::of_map(map).is_none() {
        errors.push(at(op, format!("the bounds must be sums of sizes times constants: {map}")));
    }
}

/// The types of fields and scalars.
const ELEMENTS: [&str; 7] = ["f16", "f32", "f64", "i32", "i64", "ui32", "ui64"];

/// The declared type of a field or scalar.
fn element<'c>(op: Op<'c>, errors: &mut Vec<Error>) -> Option<Type<'c>> {
    let declared = mlir::attribute(op, "type").and_then(attribute::as_type)?;
    if !ELEMENTS.contains(&declared.to_string().as_str()) {
        let all = ELEMENTS.join(", ");
        errors
            .push(at(op, format!("there are no cells of type {declared}; a cell is one of {all}")));
    }
    Some(declared)
}

/// Verifies the updated fields, point functions and boxes of an apply; those of a `tiled.apply` are
/// the same as those of the `stencil.apply` that it comes from, but that its functions may go on
/// with a partial result.
pub(super) fn pieces<'c>(
    program: &Program<'c>,
    apply: &Apply<'c>,
    partial: bool,
    errors: &mut Vec<Error>,
) {
    if apply.updates.is_empty() || apply.pieces.is_empty() {
        return errors
            .push(at(apply.op, "an apply needs at least one updated field and one piece"));
    }
    for (index, name) in apply.updates.iter().enumerate() {
        match program.field(name) {
            Err(error) => return errors.push(at(apply.op, error.message)),
            Ok(field) if field.role == Role::Const => {
                errors.push(at(apply.op, format!("@{name} is a const field; it can't be updated")))
            }
            Ok(_) if apply.updates.get(..index).is_some_and(|before| before.contains(name)) => {
                errors.push(at(apply.op, format!("@{name} is updated twice by one apply")));
            }
            Ok(_) => {}
        }
    }
    let grids: Vec<&Grid> =
        apply.updates.iter().filter_map(|name| program.grid_of(name).ok()).collect();
    let Some(grid) = grids.first() else { return };
    if let Some(other) = grids.iter().find(|other| other.rank() != grid.rank()) {
        return errors.push(at(
            apply.op,
            format!(
                "the updated fields lie on grids of different ranks, @{} and @{}; write an apply \
                 for each",
                grid.name, other.name
            ),
        ));
    }
    for piece in &apply.pieces {
        for map in [piece.lower, piece.upper] {
            symbols(program, apply.op, map, errors);
            if map.result_count() != grid.rank() {
                return errors.push(at(
                    apply.op,
                    format!(
                        "a piece of @{} has {} bounds, and the grid has rank {}",
                        piece.function,
                        map.result_count(),
                        grid.rank()
                    ),
                ));
            }
        }
        if let Err(error) =
            signature(program, apply.op, piece.function, &Purpose::Point(&apply.updates, partial))
        {
            errors.push(error);
        } else if let Some(error) = grids.iter().find_map(|grid| {
            inside(program, apply, piece, &grids, grid, &vec![0; grid.rank()], "the piece reaches")
                .err()
        }) {
            errors.push(error);
        } else if let Err(error) = reads_inside(program, apply, piece, &grids) {
            errors.push(error);
        }
    }
    let boxes: Vec<_> = apply.pieces.iter().map(Bounds::of_piece).collect();
    for (index, (piece, one)) in apply.pieces.iter().zip(&boxes).enumerate() {
        for (other, another) in apply.pieces.iter().zip(&boxes).skip(index + 1) {
            let (Some(one), Some(another)) = (one, another) else { continue };
            let known = || {
                let mut known: Vec<_> = checked_values(program, &[piece, other]).collect();
                known.extend([piece, other].into_iter().flat_map(|at| of_points(at, &grids)));
                known
            };
            if !disjoint(one, another, known) {
                errors.push(at(
                    apply.op,
                    format!(
                        "the pieces of @{} and @{} may overlap: no dimension separates them for \
                         all sizes",
                        piece.function, other.function
                    ),
                ));
            }
        }
    }
}

/// Whose function it is.
enum Purpose<'p, 'c> {
    /// A piece's: it returns one value a field. It may go on with a partial result or not.
    Point(&'p [&'c str], bool),
    /// A boundary rule's: it returns the field's value outside the grid.
    Boundary(&'p Field<'c>),
}

/// Checks that a point function, or the function of a boundary rule, takes what its arguments say
/// and returns one value a field. `op` names it.
fn signature<'c>(
    program: &Program<'c>,
    op: Op<'c>,
    name: &str,
    purpose: &Purpose<'_, 'c>,
) -> Result<(), Error> {
    let function = program.function(name).map_err(|error| at(op, error.message))?;
    let entry = stencil::function_body(function)?;
    if mlir::blocks(function, 0).len() != 1 {
        return Err(at(
            function,
            format!("the point function @{name} has several blocks; use scf.if"),
        ));
    }
    let updates = match purpose {
        Purpose::Point(updates, _) => updates,
        Purpose::Boundary(field) => std::slice::from_ref(&field.name),
    };
    let rank = program.grid_of(updates.first().copied().unwrap_or_default())?.rank();
    for (argument, value) in stencil::arguments_with_values(function)? {
        let wanted = match (&argument, purpose) {
            (Argument::Read { .. }, Purpose::Boundary(field)) => {
                return Err(at(
                    function,
                    format!(
                        "the boundary rule of @{} reads no cell but the nearest: use \
                         stencil.nearest",
                        field.name
                    ),
                ));
            }
            (Argument::Nearest, Purpose::Point(..)) => {
                return Err(at(
                    function,
                    "stencil.nearest is for the functions of boundary rules; use stencil.read",
                ));
            }
            (Argument::Nearest, Purpose::Boundary(field)) => field.element,
            (Argument::Partial, Purpose::Point([field], true)) => program.field(field)?.element,
            (Argument::Partial, _) => {
                return Err(at(
                    function,
                    "stencil.partial is for a tiled.apply of one field that has tiled.partial",
                ));
            }
            (Argument::Read { field, offset }, Purpose::Point(..)) => {
                let declared = program.field(field).map_err(|error| at(function, error.message))?;
                if offset.len() != rank || program.grid_of(field)?.rank() != rank {
                    return Err(at(
                        function,
                        format!(
                            "the offset {offset:?} of @{field} has the wrong rank; the grid has \
                             {rank} dimensions"
                        ),
                    ));
                }
                declared.element
            }
            (Argument::Scalar(name), _) => {
                let scalar = program.scalars.iter().find(|scalar| scalar.name == *name);
                scalar
                    .ok_or_else(|| at(function, format!("there is no stencil.scalar @{name}")))?
                    .element
            }
            (Argument::Param(name), _) if !program.params.contains(name) => {
                return Err(at(
                    function,
                    format!("there is no run-time size \"{name}\" in stencil.params"),
                ));
            }
            (Argument::Coordinate(dimension), _) if *dimension >= rank => {
                return Err(at(
                    function,
                    format!("there is no coordinate {dimension} in a grid of {rank} dimensions"),
                ));
            }
            (Argument::Param(_) | Argument::Coordinate(_) | Argument::Step, _) => {
                mlir::parse_type(value.r#type(), "i64")
                    .ok_or_else(|| Error::internal("MLIR knows no i64"))?
            }
        };
        let found = value.r#type();
        if found != wanted {
            return Err(at(
                function,
                format!(
                    "an argument of @{name} has type {found}, and what it stands for has type \
                     {wanted}"
                ),
            ));
        }
    }
    let operations = mlir::operations(entry);
    for op in mlir::walk(function).into_iter().skip(1) {
        let name = mlir::name(op);
        let gathers = name == stencil::GATHER && matches!(purpose, Purpose::Point(..));
        let allowed = ["arith.", "math.", "scf.if", "scf.yield", "func.return"];
        if !gathers && !allowed.iter().any(|allowed| name.starts_with(allowed)) {
            return Err(at(
                op,
                format!(
                    "{name} can't stand in a point function; arith, math, scf.if and \
                     stencil.gather can"
                ),
            ));
        }
    }
    for gather in stencil::gathers(function)? {
        let field = program.field(gather.field).map_err(|error| at(gather.op, error.message))?;
        let rank = program.grid_of(gather.field)?.rank();
        let found = mlir::results(gather.op).first().map(|value| value.r#type());
        if field.role != Role::Const {
            return Err(at(
                gather.op,
                format!("@{} is no const field; read it at an offset", field.name),
            ));
        }
        if gather.at.len() != rank {
            let count = gather.at.len();
            return Err(at(
                gather.op,
                format!("@{} has {rank} dimensions, and this read {count} coordinates", field.name),
            ));
        }
        if found != Some(field.element) {
            let found = found.map(|found| found.to_string()).unwrap_or_default();
            return Err(at(
                gather.op,
                format!("a cell of @{} has type {}, not {found}", field.name, field.element),
            ));
        }
    }
    let returned = operations.last().map(|op| mlir::operands(*op)).unwrap_or_default();
    if returned.len() != updates.len() {
        let wanted = match purpose {
            Purpose::Point(updates, _) => format!("{} fields are updated", updates.len()),
            Purpose::Boundary(field) => format!("the boundary rule of @{} gives one", field.name),
        };
        return Err(at(
            function,
            format!("@{name} returns {} values, and {wanted}", returned.len()),
        ));
    }
    for (field, value) in updates.iter().zip(returned) {
        let (found, wanted) = (value.r#type(), program.field(field)?.element);
        if found != wanted {
            return Err(at(
                function,
                format!("@{name} returns {found} for @{field}, which holds {wanted}"),
            ));
        }
    }
    Ok(())
}

fn reads_inside<'c>(
    program: &Program<'c>,
    apply: &Apply<'c>,
    piece: &Piece<'c>,
    grids: &[&Grid<'c>],
) -> Result<(), Error> {
    for argument in program.arguments(piece.function)? {
        if let Argument::Read { field, offset } = argument {
            if program.field(field)?.boundary.is_some() {
                if offset.iter().any(|cells| cells.unsigned_abs() > FARTHEST) {
                    return Err(at(
                        apply.op,
                        format!(
                            "@{} reads @{field} at {offset:?}; with a boundary rule, offsets go up \
                             to {FARTHEST} cells",
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

/// Cells that a read of a field with a boundary rule may lie from its point: coordinates beyond the
/// grid must fit an index, for which 2^16 cells of room are left
/// (`passes/src/analysis/index_width.rs`).
const FARTHEST: u64 = 1 << 15;

/// Checks that a piece, moved by an offset, lies in a grid; without an offset it lies in those
/// `within`.
fn inside(
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
            if !margin.is_never_negative() && !margin.follows_from(&known) {
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

/// Whether some dimension separates two boxes where the known values are not negative, or one of
/// them is empty there. Most boxes lie apart for all sizes, which costs least to see.
fn disjoint(one: &Bounds, other: &Bounds, known: impl FnOnce() -> Vec<Linear>) -> bool {
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
    }
}
