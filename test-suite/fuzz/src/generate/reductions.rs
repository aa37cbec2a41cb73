//! Reductions of a step, uses of their values, and conditions that end a run.

use super::pieces::{boxes, piece};
use crate::model::*;
use crate::random::Random;
use stencil_runtime::array::Element;

/// Adds reductions to a program, reads some of them in functions, and may end the run by one.
pub fn add(random: &mut Random, program: &mut Program) {
    let numbers: Vec<usize> = (0..program.fields.len())
        .filter(|place| matches!(program.fields[*place].ty, Type::Number(_)))
        .collect();
    if numbers.is_empty() {
        return;
    }
    for _ in 0..random.pick(&[1, 1, 2, 3]) {
        let field = random.pick(&numbers);
        let new = reduction(random, program, field);
        program.reductions.push(new);
    }
    program.reductions.sort_by_key(|reduction| (reduction.place, !reduction.within));
    for place in 0..program.reductions.len() {
        read(random, program, place);
    }
    if random.percent(35) {
        let place = random.below(program.reductions.len());
        let condition = match program.reductions[place].ty {
            Type::Bool => value_of(program, place),
            ty => {
                let operator = random.pick(&["<", "<=", ">", ">=", "==", "!="]);
                compared(operator, value_of(program, place), number(random, ty))
            }
        };
        program.until = Some((condition, random.pick(&[1, 1, 2, 3, 5])));
    }
}

/// A reduction over a box in the grid of a field.
fn reduction(random: &mut Random, program: &Program, field: usize) -> Reduction {
    let grid = program.grid_of(field).clone();
    let ruled = program.fields.iter().any(|field| field.rule.is_some());
    let extents: Vec<i64> =
        grid.bounds(&program.params).iter().map(|(first, last)| last - first + 1).collect();
    let corners = boxes(random, &extents, ruled);
    let corners = random.pick(&corners);
    let mut piece = piece(random, program, &[field], &grid, &corners);
    for (number, bound) in std::mem::take(&mut piece.lets).into_iter().rev() {
        let body = piece.values.remove(0);
        let kind = Kind::Let(number, Box::new(bound), Box::new(body));
        piece.values.push(Expr { ty: program.fields[field].ty, kind });
    }
    let operation = random.pick(&[
        "sum", "sum", "sum", "min", "max", "max", "argmin", "argmax", "count", "any", "all",
    ]);
    let mut ty = program.fields[field].ty;
    if ["argmin", "argmax"].contains(&operation) {
        ty = Type::INDEX;
    }
    if ["count", "any", "all"].contains(&operation) {
        let value = piece.values.remove(0);
        let limit = number(random, ty);
        piece.values.push(compared(random.pick(&["<", ">", ">=", "=="]), value, limit));
        ty = match operation {
            "count" => Type::Number(random.pick(&[Element::I64, Element::I32, Element::U64])),
            _ => Type::Bool,
        };
    }
    let place = random.range(0, program.functions.len() as i64) as usize;
    let within = random.percent(50);
    let initial = random.percent(20).then(|| f64::from(random.range(0, 2) as i32));
    Reduction { ty, operation, piece, place, within, initial }
}

/// Puts a reduction's value in the place of parts of functions and of other reductions. One that
/// comes behind its reader gets a value for the first step.
fn read(random: &mut Random, program: &mut Program, place: usize) {
    let (ty, value) = (program.reductions[place].ty, value_of(program, place));
    let mut early = false;
    for number in 0..program.functions.len() {
        let before = number < program.reductions[place].place;
        for part in program.functions[number].pieces.iter_mut().flat_map(Piece::exprs_mut) {
            if random.percent(45) && replace(random, part, ty, &value) {
                early |= before;
            }
        }
    }
    for other in 0..program.reductions.len() {
        let part = &mut program.reductions[other].piece.values[0];
        if random.percent(15) && replace(random, part, ty, &value) {
            early |= other <= place;
        }
    }
    for field in &mut program.fields {
        if let Some(Rule::Value(rule)) = &mut field.rule
            && random.percent(30)
        {
            early |= replace(random, rule, ty, &value);
        }
    }
    if early {
        let initial = f64::from(random.range(0, 2) as i32);
        program.reductions[place].initial.get_or_insert(initial);
    }
}

/// Replaces a part of that type by a value, if there is one. Coordinates of absolute reads stay:
/// their bounds are proved.
fn replace(random: &mut Random, whole: &mut Expr, ty: Type, value: &Expr) -> bool {
    let mut open = vec![whole];
    let mut found: Vec<&mut Expr> = Vec::new();
    while let Some(part) = open.pop() {
        if part.ty == ty && part.children().is_empty() && !matches!(part.kind, Kind::Local(_))
            || part.ty == ty && ty == Type::Bool
        {
            found.push(part);
        } else if !matches!(part.kind, Kind::Gather(..) | Kind::Cast(_)) {
            open.extend(part.children_mut());
        }
    }
    if found.is_empty() {
        return false;
    }
    let chosen = random.below(found.len());
    *found[chosen] = value.clone();
    true
}

fn value_of(program: &Program, place: usize) -> Expr {
    Expr { ty: program.reductions[place].ty, kind: Kind::Reduction(place) }
}

fn number(random: &mut Random, ty: Type) -> Expr {
    let value = match ty.is_float() {
        true => random.pick(&[0.0, 0.25, 0.5, 1.0, 30.0]),
        false => random.pick(&[0.0, 1.0, 2.0, 40.0]),
    };
    Expr { ty, kind: Kind::Number(value, true) }
}

fn compared(operator: &'static str, a: Expr, b: Expr) -> Expr {
    Expr { ty: Type::Bool, kind: Kind::Binary(operator, Box::new(a), Box::new(b)) }
}
