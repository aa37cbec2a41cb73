//! Sweeps whose fields nobody needs whole: what stays are last rows and reductions.

use super::pieces::boxes;
use crate::model::*;
use crate::random::Random;
use stencil_runtime::array::Element;

/// Makes the fields of the first sweep temp fields, of which others read last rows alone, and adds
/// reductions of their values.
pub fn leave(random: &mut Random, program: &mut Program) {
    let sweeps = |function: &Function| {
        let mut any = false;
        for value in function.pieces.iter().flat_map(Piece::exprs) {
            value.visit(&mut |part| any |= matches!(part.kind, Kind::Current(..)));
        }
        any
    };
    let Some(mut function) = program.functions.iter().find(|one| sweeps(one)).cloned() else {
        return;
    };
    let updates = function.updates.clone();
    let plain = |field: &usize| {
        let field = &program.fields[*field];
        field.rule.is_none() && matches!(field.ty, Type::Number(_))
    };
    if !updates.iter().all(plain) {
        return;
    }
    for value in function.pieces.iter_mut().flat_map(Piece::exprs_mut) {
        value.change(&mut |part| {
            if let Kind::Read(field, _) | Kind::Gather(field, _) = &part.kind
                && updates.contains(field)
            {
                part.kind = Kind::Number(1.0, true);
            }
        });
    }
    program.functions = vec![function];
    program.repeats.clear();
    for field in &updates {
        program.fields[*field].role = Role::Temp;
    }
    let field = random.pick(&updates);
    keep(random, program, field);
    for _ in 0..random.pick(&[0, 1, 1, 2]) {
        let field = random.pick(&updates);
        let new = reduction(random, program, field);
        program.reductions.push(new);
    }
}

/// Adds a function that keeps the last rows of a field.
fn keep(random: &mut Random, program: &mut Program, field: usize) {
    let grid = program.grid_of(field).clone();
    let (ty, rows) = (program.fields[field].ty, random.pick(&[1, 1, 1, 2]));
    let mut last = grid.clone();
    last.lower[0] = grid.upper[0].plus(1 - rows);
    program.grids.push(last.clone());
    program.fields.push(Field { role: Role::State, ty, grid: program.grids.len() - 1, rule: None });
    let kind = Kind::Read(field, vec![0; grid.rank()]);
    let piece = Piece { region: last, lets: Vec::new(), values: vec![Expr { ty, kind }] };
    let updates = vec![program.fields.len() - 1];
    program.functions.push(Function { updates, pieces: vec![piece] });
}

/// A reduction of a field's values at the points of a box.
fn reduction(random: &mut Random, program: &Program, field: usize) -> Reduction {
    let grid = program.grid_of(field);
    let extents: Vec<i64> =
        grid.bounds(&program.params).iter().map(|(first, last)| last - first + 1).collect();
    let corners = boxes(random, &extents, false);
    let corners = random.pick(&corners);
    let mut region = Region { lower: Vec::new(), upper: Vec::new() };
    let ends = grid.lower.iter().zip(&grid.upper).zip(&corners);
    for ((first, last), (lower, upper)) in ends {
        region.lower.push(lower.of(*first, *last));
        region.upper.push(upper.of(*first, *last));
    }
    let mut ty = program.fields[field].ty;
    let mut value = Expr { ty, kind: Kind::Read(field, vec![0; grid.rank()]) };
    let operation = random.pick(&["min", "max", "argmin", "argmax", "argmax", "count", "sum"]);
    match operation {
        "count" => {
            let one = Expr { ty, kind: Kind::Number(1.0, true) };
            let kind = Kind::Binary(">", Box::new(value), Box::new(one));
            value = Expr { ty: Type::Bool, kind };
            ty = Type::Number(Element::I64);
        }
        "argmin" | "argmax" => ty = Type::INDEX,
        _ => {}
    }
    let piece = Piece { region, lets: Vec::new(), values: vec![value] };
    Reduction { ty, operation, piece, place: 1, within: false, initial: None }
}
