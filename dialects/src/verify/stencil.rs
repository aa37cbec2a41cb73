//! Names, types and bounds of a stencil program.
//!
//! A bound that can't be decided without the sizes is accepted only if a `stencil.check` of the
//! same value guards it at launch.

use super::at;
use super::bounds::{disjoint, inside, near, reads_inside};
use super::point_function::{self, Purpose};
use super::{record, reduce, size};
use crate::affine::Linear;
use crate::attribute;
use crate::cover::{Bounds, checked_values, of_points};
use crate::error::Error;
use crate::limits::{BOUND_SIZES, GRID_END, REPEATS, REPETITIONS, STEPS};
use crate::mlir::{self, Op};
use crate::stencil::{self, Apply, Boundary, Grid, Program, Repetition, Role};
use crate::tiled;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Module, Type};
use std::collections::BTreeSet;

/// Verifies all declarations, and every `stencil.apply` with its point functions.
pub fn verify(module: &Module, errors: &mut Vec<Error>) {
    let program = match Program::read(module) {
        Ok(program) => program,
        Err(error) => return errors.push(error),
    };
    size::verify(module, &program, errors);
    if !errors.is_empty() {
        return;
    }
    declarations(module, &program, errors);
    record::verify(&program, errors);
    if !errors.is_empty() {
        return;
    }
    for field in &program.fields {
        if let Some(Boundary::Value(function)) = field.boundary {
            errors.extend(
                point_function::verify(&program, field.op, function, &Purpose::Boundary(field))
                    .err(),
            );
        }
    }
    for apply in &program.applies {
        pieces(&program, apply, false, errors);
    }
    repetitions(&program, errors);
    reduce::verify(&program, errors);
}

/// Checks that a program has an apply, or what a pass makes of one.
pub(super) fn computes(module: &Module) -> Result<(), Error> {
    let only_declares = |op: &Op| match mlir::name(*op) {
        stencil::APPLY | stencil::REDUCE => false,
        "func.func" => mlir::attribute(*op, "tiled.strategy").is_none(),
        _ => stencil::is_declaration(*op),
    };
    if mlir::operations(mlir::body(module)).iter().all(only_declares) {
        let message = "there is no stencil.apply; the program has no functions";
        return Err(at(mlir::module_op(module), message));
    }
    Ok(())
}

/// Checks that declarations stand at the top of a module that is a program. Elsewhere nobody reads
/// them.
pub(super) fn outside_of_programs(module: &Module) -> Result<(), Error> {
    let whole = mlir::module_op(module);
    let (program, top) = (stencil::is_program(module), mlir::body(module));
    let ours = |op: &Op| stencil::is_declaration(*op) || mlir::name(*op) == tiled::REPEAT;
    let is_lost = |op: &Op| ours(op) && !(program && op.block() == Some(top));
    let Some(lost) = mlir::walk(whole).into_iter().find(is_lost) else { return Ok(()) };
    let (name, place) = (mlir::name(lost), mlir::place(lost.location()));
    if program {
        let message =
            format!("{name} must stand at the top of the program's module; move it there");
        return Err(Error::new(place, message));
    }
    Err(stencil::no_program(whole).with_note(place, format!("{name} stands here")))
}

/// Items of one repetition stand together, their numbers are in range, and no more than two
/// repetitions stand in each other.
fn repetitions(program: &Program, errors: &mut Vec<Error>) {
    let applies = program.applies.iter().enumerate();
    let mut items: Vec<_> =
        applies.map(|(place, apply)| (2 * place + 1, apply.op, &apply.repeats)).collect();
    let reduces = program.reduces.iter();
    items.extend(reduces.map(|reduce| (2 * reduce.place, reduce.op, &reduce.repeats)));
    items.sort_by_key(|(place, ..)| *place);
    let (mut open, mut begun): (&[Repetition], BTreeSet<i64>) = (&[], BTreeSet::new());
    for (_, op, repeats) in items {
        let all = repeats.iter().try_fold(1_i64, |all, one| all.checked_mul(one.count));
        if repeats.len() > REPEATS
            || repeats.iter().any(|one| one.count < 1)
            || all.is_none_or(|all| all > REPETITIONS)
        {
            let message = format!(
                "stencil.repeat needs at most {REPEATS} counts from 1, whose product is at most \
                 {REPETITIONS}"
            );
            errors.push(at(op, message));
        }
        let same = repeats.iter().zip(open).take_while(|(new, old)| new == old).count();
        if repeats.iter().skip(same).any(|one| !begun.insert(one.number)) {
            let message = "items of one stencil.repeat stand together, with one count";
            errors.push(at(op, message));
        }
        open = repeats;
    }
}

/// MLIR's own verifier has checked that the names of a module are unique.
fn declarations(module: &Module, program: &Program, errors: &mut Vec<Error>) {
    let whole = mlir::module_op(module);
    params(whole, program, errors);
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
            bounds(program, grid.op, map, errors);
        }
    }
    distinct(program, errors);
    for field in &program.fields {
        if !program.grids.iter().any(|grid| grid.name == field.grid) {
            errors.push(at(field.op, format!("there is no stencil.grid @{}", field.grid)));
        }
        element(field.op, errors);
    }
    scalars(program, errors);
    checks(program, errors);
    if program.steps.result_count() == 0 || program.steps.symbol_count() != program.params.len() {
        errors.push(at(whole, "stencil.steps needs a result and one symbol a run-time size"));
    } else {
        symbols(program, whole, program.steps, errors);
        let terms = Linear::of_map(program.steps).unwrap_or_default().into_iter();
        let steps = terms.filter(Linear::is_constant).map(|term| term.constant.max(0));
        if steps.fold(0, i64::saturating_add) > STEPS {
            errors.push(at(whole, format!("stencil.steps: a run has at most {STEPS} steps")));
        }
    }
}

/// Names of the run-time sizes.
fn params(whole: Op, program: &Program, errors: &mut Vec<Error>) {
    for (index, name) in program.params.iter().enumerate() {
        // The plan's expressions name the sizes, and `steps` beside them.
        let letters = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !letters || *name == "steps" {
            errors.push(at(
                whole,
                format!(
                    "\"{name}\" can't name a run-time size; choose letters, digits and _, and \
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
}

/// Fields and scalars have other names than sizes: outside of the module, one name is one thing.
fn distinct(program: &Program, errors: &mut Vec<Error>) {
    let scalars = program.scalars.iter().map(|scalar| (scalar.op, scalar.name));
    let fields = program.fields.iter().map(|field| (field.op, field.name));
    for (op, name) in scalars.chain(fields) {
        let fixed = program.constants.iter().any(|(constant, _)| *constant == name);
        if fixed || name == "steps" || program.params.contains(&name) {
            let what = if name == "steps" { "the number of steps" } else { "a size" };
            let message = format!("@{name} is declared twice: it is the name of {what}, too");
            errors.push(at(op, format!("{message}; choose another")));
        }
    }
}

/// Types and defaults of scalars.
fn scalars(program: &Program, errors: &mut Vec<Error>) {
    for scalar in &program.scalars {
        let declared = element(scalar.op, errors);
        let defaults = mlir::attribute(scalar.op, "default").and_then(attribute::as_array);
        if defaults.is_some_and(|defaults| defaults.len() > 1) {
            errors.push(at(scalar.op, format!("@{} has more than one default", scalar.name)));
        }
        if let Some(default) =
            scalar.default.filter(|default| attribute::type_of_number(*default) != declared)
        {
            let declared = declared.map(|declared| declared.to_string()).unwrap_or_default();
            errors.push(at(
                scalar.op,
                format!(
                    "the default of @{} must be a number of type {declared}, but is {default}",
                    scalar.name
                ),
            ));
        }
        if scalar.default.and_then(attribute::as_float).is_some_and(|number| !number.is_finite()) {
            errors.push(at(
                scalar.op,
                format!(
                    "the default of @{} is no finite number, which no plan holds; leave it out and \
                     give the value to the run",
                    scalar.name
                ),
            ));
        }
    }
}

/// Maps of checks.
fn checks(program: &Program, errors: &mut Vec<Error>) {
    for check in &program.checks {
        // The steps of a run may be one symbol more.
        let counts = check.value.symbol_count() == program.params.len() + 1;
        symbols_of(program.params.len() + usize::from(counts), check.op, check.value, errors);
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
}

/// Bounds of a grid or a piece: [`symbols`], and numbers that sums of bounds can hold.
fn bounds(program: &Program, op: Op, map: AffineMap, errors: &mut Vec<Error>) {
    symbols(program, op, map, errors);
    let linear: Vec<_> = Linear::of_map(map).into_iter().flatten().collect();
    let sizes = |bound: &Linear| bound.coefficients.iter().filter(|factor| **factor != 0).count();
    if linear.iter().any(|bound| sizes(bound) > BOUND_SIZES) {
        errors.push(at(op, format!("a bound has at most {BOUND_SIZES} run-time sizes: {map}")));
    }
    let mut numbers = linear
        .iter()
        .flat_map(|bound| bound.coefficients.iter().chain([&bound.constant]).collect::<Vec<_>>());
    if numbers.any(|number| number.unsigned_abs() > GRID_END.unsigned_abs()) {
        errors.push(at(
            op,
            format!(
                "constants and factors of bounds lie between -{GRID_END} and {GRID_END}: {map}"
            ),
        ));
    }
}

fn symbols(program: &Program, op: Op, map: AffineMap, errors: &mut Vec<Error>) {
    symbols_of(program.params.len(), op, map, errors);
}

fn symbols_of(wanted: usize, op: Op, map: AffineMap, errors: &mut Vec<Error>) {
    if map.dim_count() != 0 || map.symbol_count() != wanted {
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
const ELEMENTS: [&str; 12] =
    ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"];

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

/// Verifies the updated fields, point functions and boxes of an apply. A `tiled.apply` has those of
/// the `stencil.apply` that it comes from, but its functions may go on with a partial result.
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
    if !updates(program, apply, errors) {
        return;
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
            bounds(program, apply.op, map, errors);
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
        let purpose = Purpose::Point(&apply.updates, partial);
        if let Err(error) = point_function::verify(program, apply.op, piece.function, &purpose) {
            errors.push(error);
        } else if let Some(error) = grids.iter().find_map(|grid| {
            inside(program, apply, piece, &grids, grid, &vec![0; grid.rank()], "the piece reaches")
                .err()
        }) {
            errors.push(error);
        } else {
            errors.extend(reads_inside(program, apply, piece, &grids).err());
            errors.extend(near(program, apply, piece, &grids).err());
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
    errors.extend(sweeps_before(program, apply).err());
}

/// Checks that a sweep reads no field at computed places that it updates.
fn sweeps_before<'c>(program: &Program<'c>, apply: &Apply<'c>) -> Result<(), Error> {
    let functions = apply.pieces.iter().all(|piece| program.function(piece.function).is_ok());
    if !functions || program.dependences(&apply.pieces)?.is_empty() {
        return Ok(());
    }
    let gathered = program.gathered_by(&apply.pieces)?;
    match apply.updates.iter().find(|field| gathered.contains(*field)) {
        None => Ok(()),
        Some(field) => Err(at(
            apply.op,
            format!(
                "@{field} is updated by a sweep that reads it at computed places, where its old \
                 value may be gone; copy it to another field by an apply before"
            ),
        )),
    }
}

/// Checks the updated fields of an apply; false if one of them is not declared, or if it has too
/// much.
fn updates(program: &Program, apply: &Apply, errors: &mut Vec<Error>) -> bool {
    if let Some(error) = size::beyond(apply) {
        errors.push(error);
        return false;
    }
    for (index, name) in apply.updates.iter().enumerate() {
        match program.field(name) {
            Err(error) => {
                errors.push(at(apply.op, error.message));
                return false;
            }
            Ok(field) if field.role == Role::Const => {
                errors.push(at(apply.op, format!("@{name} is a const field; it can't be updated")))
            }
            Ok(field) if field.role.is_reduced() => errors.push(at(
                apply.op,
                format!("@{name} is a reduction; a stencil.reduce alone can update it"),
            )),
            Ok(_) if apply.updates.get(..index).is_some_and(|before| before.contains(name)) => {
                errors.push(at(apply.op, format!("@{name} is updated twice by one apply")));
            }
            Ok(_) => {}
        }
    }
    true
}
