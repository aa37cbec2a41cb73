//! Lowered kernels: what their arguments are bound to, their grid and their block.

use super::tiled::{rank_of, verify_schedule_of};
use super::{at, divides};
use crate::error::Error;
use crate::mlir;
use crate::stencil::{Field, Program, Role};
use crate::tiled::{Binding, Launch};
use melior::ir::r#type::MemRefType;
use melior::ir::{AffineMap, ShapedTypeLike, Type, ValueLike};
use std::ops::RangeInclusive;

/// Numbers that a plan can hold as a count.
const COUNTS: RangeInclusive<i64> = 0..=u32::MAX as i64;

/// Checks that a lowered kernel's arguments have the types of their bindings, and that its grid and
/// block are possible.
pub(super) fn verify(program: &Program, launch: &Launch) -> Result<(), Error> {
    let written = launch.bindings.iter().filter_map(|binding| match binding {
        Binding::Write(field) | Binding::ReadWrite(field) => Some(*field),
        _ => None,
    });
    // A kernel may have an axis for each dimension of its tile, whatever the rank of its fields.
    let rank = if launch.axes { launch.grid.len() } else { rank_of(program, written) };
    verify_schedule_of(launch.op, launch.name, &launch.schedule, rank)?;
    let counts = |map: AffineMap| {
        map.result_count() == 1
            && map.dim_count() == 0
            && map.symbol_count() == program.params.len()
    };
    grid(program, launch)?;
    if launch
        .bands
        .is_some_and(|bands| !counts(bands.rows) || !COUNTS.contains(&bands.row_distance))
    {
        return Err(at(
            launch.op,
            "tiled.rows has one result, the number of tile rows, and one symbol a run-time \
             size, and tiled.reach is from 0 to 2^32 - 1",
        ));
    }
    if launch.bands.is_some() != launch.bindings.contains(&Binding::Row) {
        return Err(at(
            launch.op,
            "a kernel has an argument bound to \"row\" if, and only if, it has tiled.rows",
        ));
    }
    if launch.flags.is_some_and(|flags| !counts(flags))
        || launch.flags.is_some() != launch.bindings.contains(&Binding::Flags)
    {
        return Err(at(
            launch.op,
            "tiled.flags has one result, the number of flags, and one symbol a run-time size; a \
             kernel has an argument bound to \"flags\" if, and only if, it has tiled.flags",
        ));
    }
    if launch.turns.is_some_and(|turns| !counts(turns))
        || launch.turns.is_some() != launch.bindings.contains(&Binding::Turn)
        || launch.turns.is_some() && (launch.flags.is_some() || launch.bands.is_some())
    {
        return Err(at(
            launch.op,
            "tiled.turns has one result, the number of launches, and one symbol a run-time size; a \
             kernel has an argument bound to \"turn\" if, and only if, it has tiled.turns, and \
             then neither tiled.flags nor tiled.rows",
        ));
    }
    if launch.block.len() != 3
        || launch.block.iter().any(|threads| !(1..=i64::from(u16::MAX)).contains(threads))
    {
        return Err(at(
            launch.op,
            format!(
                "a block has a positive number of threads in each of three directions, and \
                 known_block_size is {:?}",
                launch.block
            ),
        ));
    }
    if !COUNTS.contains(&launch.dynamic_shared) {
        return Err(at(
            launch.op,
            format!(
                "tiled.dynamic_shared is from 0 to 2^32 - 1 bytes, not {}",
                launch.dynamic_shared
            ),
        ));
    }
    counts_have_values(launch)?;
    verify_arguments(program, launch)
}

/// Checks that the maps of the grid have the program's sizes.
fn grid(program: &Program, launch: &Launch) -> Result<(), Error> {
    let axis = |map: &AffineMap| {
        map.result_count() > 0 && map.dim_count() == 0 && map.symbol_count() == program.params.len()
    };
    let points = |points: i64| launch.axes && COUNTS.contains(&points) && points > 0;
    if !launch.block_points.is_none_or(points) {
        let message =
            "tiled.block_points is from 1 to 2^32 - 1, beside a list of maps in tiled.grid";
        return Err(at(launch.op, message));
    }
    let single = launch.axes || launch.grid.iter().all(|map| map.result_count() == 1);
    if launch.grid.is_empty() || !launch.grid.iter().all(axis) || !single {
        return Err(at(
            launch.op,
            "tiled.grid needs one result, the number of blocks, and one symbol a run-time size; \
             or a list of maps, one for each dimension of the tile, with results of which the \
             largest counts",
        ));
    }
    Ok(())
}

/// Checks that the numbers of blocks, rows, flags and turns divide by nothing but positive numbers.
fn counts_have_values(launch: &Launch) -> Result<(), Error> {
    let rows = launch.bands.map(|bands| (bands.rows, "tiled.rows"));
    let flags = launch.flags.map(|flags| (flags, "tiled.flags"));
    let turns = launch.turns.map(|turns| (turns, "tiled.turns"));
    let grid = launch.grid.iter().map(|map| (*map, "tiled.grid"));
    let maps = grid.chain([rows, flags, turns].into_iter().flatten());
    maps.into_iter().try_for_each(|(map, name)| divides(launch.op, map, name))
}

/// Checks that each argument has the type of its binding.
fn verify_arguments(program: &Program, launch: &Launch) -> Result<(), Error> {
    let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
    if arguments.len() < launch.bindings.len() {
        return Err(at(launch.op, "the kernel has fewer arguments than bindings"));
    }
    for (binding, argument) in launch.bindings.iter().zip(arguments) {
        let fits = binds(program, binding, argument.r#type())
            .map_err(|error| at(launch.op, error.message))?;
        if !fits {
            return Err(at(
                launch.op,
                format!("an argument of type {} can't be bound to {binding:?}", argument.r#type()),
            ));
        }
    }
    Ok(())
}

/// Whether an argument of a type can be bound so; an error where nothing of that name is declared.
fn binds(program: &Program, binding: &Binding, ty: Type) -> Result<bool, Error> {
    let integer = |bits: &str| ty.to_string() == bits;
    Ok(match binding {
        Binding::Read(name)
        | Binding::Write(name)
        | Binding::ReadWrite(name)
        | Binding::Partials(name)
        | Binding::Unless(name) => {
            let element = program.buffer_element(name)?;
            let condition = |field: &Field| field.role == Role::Condition;
            let is_condition = program.field(name).is_ok_and(condition);
            let fits = |memref: MemRefType| memref.element() == element;
            (is_condition || !matches!(binding, Binding::Unless(_)))
                && MemRefType::try_from(ty).is_ok_and(fits)
        }
        Binding::Param(name) => program.params.contains(name) && integer("index"),
        Binding::Scalar(name) => {
            program.scalars.iter().any(|scalar| scalar.name == *name && scalar.element == ty)
        }
        Binding::Step => integer("i64"),
        Binding::Row | Binding::FirstBlock | Binding::Turn => integer("index"),
        Binding::Epoch => integer("i32"),
        Binding::Flags => {
            MemRefType::try_from(ty).is_ok_and(|memref| memref.element().to_string() == "i32")
        }
    })
}
