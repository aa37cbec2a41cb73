//! Fewer grids; structs and vecs with fewer parts, until they are numbers.

use super::{each, with};
use crate::model::*;

/// A value of a type without reads: 0.5, or 1 of an integer type, in every number.
pub fn plain(program: &Program, ty: Type) -> Expr {
    let kind = match ty {
        Type::Bool => {
            let one = plain(program, Type::INDEX);
            Kind::Binary("==", Box::new(one.clone()), Box::new(one))
        }
        _ if ty.is_aggregate() => {
            Kind::Whole(program.parts(ty).into_iter().map(|part| plain(program, part)).collect())
        }
        _ => Kind::Number(if ty.is_float() { 0.5 } else { 1.0 }, true),
    };
    Expr { ty, kind }
}

/// The case with one change to its types or grids.
pub fn candidates(case: &Case) -> Vec<Case> {
    let program = &case.program;
    let mut found = Vec::new();
    let mut whole: Vec<Type> = (0..program.structs.len()).map(Type::Struct).collect();
    let cells = program
        .fields
        .iter()
        .map(|field| field.ty)
        .chain(program.structs.iter().flatten().copied());
    // A value may have a type that no field has any more.
    let mut values = Vec::new();
    program.values().for_each(|value| value.visit(&mut |part| values.push(part.ty)));
    let vec = |ty: &Type| matches!(ty, Type::Vec(..) | Type::Structs(..));
    for ty in cells.chain(values).filter(vec) {
        if !whole.contains(&ty) {
            whole.push(ty);
        }
    }
    for ty in whole.iter().copied() {
        let parts = program.parts(ty).len();
        // A vec of structs has no other lanes.
        let lane = whole.iter().any(
            |vec| matches!((vec, ty), (Type::Structs(_, of), Type::Struct(place)) if *of == place),
        );
        if parts == 1 && !lane {
            found.push(unwrapped(case, ty));
        }
        if parts > 1 {
            found.extend((0..parts).map(|part| without_part(case, ty, part)));
        }
    }
    for place in 0..program.fields.len() {
        let grid = program.fields[place].grid;
        if grid > 0 && program.grids[grid].rank() == program.rank() {
            found.push(with(case, |case| case.program.fields[place].grid = 0));
        }
    }
    for grid in 1..program.grids.len() {
        if program.fields.iter().all(|field| field.grid != grid) {
            found.push(with(case, |case| {
                case.program.grids.remove(grid);
                for field in &mut case.program.fields {
                    field.grid -= usize::from(field.grid > grid);
                }
            }));
        }
    }
    found
}

/// The types everywhere in a program replaced.
fn retyped(case: &mut Case, to: impl Fn(Type) -> Type) {
    let members = case.program.structs.iter_mut().flatten();
    for ty in case.program.fields.iter_mut().map(|field| &mut field.ty).chain(members) {
        *ty = to(*ty);
    }
    each(case, &mut |part| part.ty = to(part.ty));
}

/// A struct or a vec of one part is that part.
fn unwrapped(case: &Case, whole: Type) -> Case {
    with(case, |case| {
        let inner = case.program.parts(whole)[0];
        each(case, &mut |part| match &mut part.kind {
            // Stays one of the whole's type until all around it has seen that.
            Kind::Whole(parts) if part.ty == whole => {
                *part = Expr { ty: whole, ..parts.swap_remove(0) }
            }
            Kind::Part(of, _) if of.ty == whole => *part = Expr { ty: inner, ..(**of).clone() },
            _ => {}
        });
        let removed = if let Type::Struct(place) = whole { Some(place) } else { None };
        if let Some(place) = removed {
            case.program.structs.remove(place);
        }
        let later = |ty: Type| match (ty, removed) {
            (Type::Struct(place), Some(gone)) if place > gone => Type::Struct(place - 1),
            (Type::Structs(lanes, place), Some(gone)) if place > gone => {
                Type::Structs(lanes, place - 1)
            }
            (ty, _) => ty,
        };
        retyped(case, |ty| later(if ty == whole { inner } else { ty }));
    })
}

/// The case in which a struct lacks a member, or all vecs of a type a lane.
fn without_part(case: &Case, whole: Type, gone: usize) -> Case {
    with(case, |case| {
        let instead = plain(&case.program, case.program.parts(whole)[gone]);
        each(case, &mut |part| match &mut part.kind {
            Kind::Whole(parts) if part.ty == whole => drop(parts.remove(gone)),
            Kind::Part(of, place) if of.ty == whole && *place == gone => *part = instead.clone(),
            Kind::Part(of, place) if of.ty == whole && *place > gone => *place -= 1,
            _ => {}
        });
        match whole {
            Type::Struct(place) => drop(case.program.structs[place].remove(gone)),
            Type::Vec(lanes, element) => {
                retyped(case, |ty| if ty == whole { Type::Vec(lanes - 1, element) } else { ty });
            }
            Type::Structs(lanes, place) => {
                retyped(case, |ty| if ty == whole { Type::Structs(lanes - 1, place) } else { ty });
            }
            _ => {}
        }
    })
}
