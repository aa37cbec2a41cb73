//! Absolute reads, with coordinates that lie in the field's grid: taken from the point, or any
//! integer kept inside in one of the ways that the compiler can follow. Where the field has a
//! boundary rule, any integer will do.

use super::expressions::{Scope, binary, call, expression, leaf, number};
use crate::model::*;
use crate::random::Random;

/// Whether a field has a cell, as far as the compiler knows.
pub fn may_hold(program: &Program, field: usize) -> bool {
    let grid = program.grid_of(field);
    let at_run = |bound: &Affine| {
        bound.term.is_some_and(|(param, _)| program.params[param].known == Known::Run)
    };
    let mut bounds = grid.bounds(&program.params).into_iter().zip(&grid.upper);
    bounds.all(|((first, last), upper)| first <= last || at_run(upper))
}

/// A cell of a field.
pub fn gather(random: &mut Random, scope: &mut Scope, field: usize) -> Expr {
    scope.within += 1;
    let program = scope.program;
    let grid = program.grid_of(field);
    let ruled = program.fields[field].rule.is_some();
    let at = (0..grid.rank()).map(|dimension| {
        let beside = scope.inside[field].as_ref().map(|room| room[dimension]);
        match beside {
            _ if ruled && random.percent(60) => anywhere(random, scope),
            Some((first, last)) if random.percent(40) => {
                let point = Expr { ty: Type::INDEX, kind: Kind::Coordinate(dimension) };
                plus(point, random.range(first, last))
            }
            // The run must not have more steps than the grid has cells there.
            _ if random.percent(8) => {
                let (first, last) = grid.bounds(&program.params)[dimension];
                let spare = last - first + 1 - program.steps;
                plus(Expr { ty: Type::INDEX, kind: Kind::Step }, first + spare.clamp(0, 2))
            }
            _ => inside(random, scope, grid.lower[dimension], grid.upper[dimension]),
        }
    });
    let at = at.collect();
    scope.within -= 1;
    Expr { ty: program.fields[field].ty, kind: Kind::Gather(field, at) }
}

/// Whether there are absolute reads by boundary rules from a grid of so many dimensions. Their
/// coordinates may be so far that they wrap where they are shifted.
pub fn by_rule(program: &Program, rank: usize) -> bool {
    let mut found = false;
    for value in program.values() {
        value.visit(&mut |part| {
            if let Kind::Gather(field, _) = part.kind {
                found |=
                    program.fields[field].rule.is_some() && program.grid_of(field).rank() == rank;
            }
        });
    }
    found
}

/// Any integer; mostly not far from the point, seldom as far as can be.
fn anywhere(random: &mut Random, scope: &mut Scope) -> Expr {
    let depth = random.pick(&[0, 0, 1, 2]);
    let any = expression(random, scope, Type::INDEX, depth);
    let far = random.pick(&[0, 0, -1, 3, -7, 20, 1 << 40, 1 << 53]);
    match random.below(6) {
        0 => binary("*", Type::INDEX, any, number(Type::INDEX, far as f64)),
        1 | 2 => plus(any, far),
        _ => any,
    }
}

fn plus(expr: Expr, distance: i64) -> Expr {
    if distance == 0 {
        expr
    } else {
        binary("+", Type::INDEX, expr, number(Type::INDEX, distance as f64))
    }
}

/// A bound as an expression.
fn bound(affine: Affine) -> Expr {
    let ty = Type::INDEX;
    let Some((param, coefficient)) = affine.term else { return number(ty, affine.constant as f64) };
    let size = Expr { ty, kind: Kind::Param(param) };
    let product =
        if coefficient == 1 { size } else { binary("*", ty, number(ty, coefficient as f64), size) };
    plus(product, affine.constant)
}

/// An integer from `first` to `last`, whatever its parts are.
fn inside(random: &mut Random, scope: &mut Scope, first: Affine, last: Affine) -> Expr {
    let ty = Type::INDEX;
    let extent = || bound(last.plus(1 - first.constant));
    let depth = random.pick(&[0, 0, 1, 2]);
    let clamp = |any: Expr, last: Expr| {
        call("max", ty, vec![bound(first), call("min", ty, vec![any, last])])
    };
    match random.below(12) {
        0 => bound(random.pick(&[first, last])),
        1 => {
            let step = Expr { ty, kind: Kind::Step };
            plus(binary("%", ty, step, extent()), first.constant)
        }
        2 => {
            let any = expression(random, scope, ty, depth);
            plus(call("abs", ty, vec![binary("%", ty, any, extent())]), first.constant)
        }
        3 | 4 => {
            let any = expression(random, scope, ty, depth);
            let positive = binary("+", ty, binary("%", ty, any, extent()), extent());
            plus(binary("%", ty, positive, extent()), first.constant)
        }
        5 => {
            let condition = expression(random, scope, Type::Bool, depth);
            Expr { ty, kind: Kind::If(Box::new([condition, bound(first), bound(last)])) }
        }
        // Cut off twice as far, then halved.
        6 if first == Affine::number(0) => {
            let twice = plus(binary("*", ty, number(ty, 2.0), bound(last)), 1);
            let any = leaf(random, scope, ty);
            let (half, by) = random.pick(&[("/", 2.0), (">>", 1.0)]);
            binary(half, ty, clamp(any, twice), number(ty, by))
        }
        10 if first == Affine::number(0) && last.term.is_none() && last.constant >= 0 => {
            let any = expression(random, scope, ty, depth);
            let mask = (last.constant + 2) as u64;
            binary("&", ty, any, number(ty, (mask.next_power_of_two() / 2 - 1) as f64))
        }
        7 => {
            let any = expression(random, scope, ty, depth);
            call("min", ty, vec![bound(last), call("max", ty, vec![any, bound(first)])])
        }
        // A name for it.
        8 => {
            let any = expression(random, scope, ty, depth);
            let place = clamp(any, bound(last));
            scope.bind(place, |scope| {
                let number = scope.locals.last().map_or(0, |(number, _)| *number);
                Expr { ty, kind: Kind::Local(number) }
            })
        }
        _ => {
            let any = expression(random, scope, ty, depth);
            clamp(any, bound(last))
        }
    }
}
