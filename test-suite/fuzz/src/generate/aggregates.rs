//! Vecs and structs.

use super::expressions::{self, Scope, any, binary, cell};
use super::{Mixture, element};
use crate::model::*;
use crate::random::Random;

/// Numbers that a cell of a generated type has at most.
const LARGEST: usize = 6;

/// Some types for the fields of a program, which gets the structs.
pub fn types(random: &mut Random, program: &mut Program, mixture: Mixture) -> Vec<Type> {
    let mut types = Vec::new();
    for _ in 0..random.pick(&[1, 1, 2]) {
        let of = element(random, mixture);
        types.push(Type::Vec(random.pick(&[1, 2, 2, 2, 3, 3, 4, 5]), of));
    }
    for _ in 0..random.pick(&[0, 1, 1, 2]) {
        let mut members: Vec<Type> = Vec::new();
        for _ in 0..random.range(1, 3) {
            let member = match random.percent(35) {
                true => random.pick(&types),
                false if random.percent(20) => Type::Bool,
                false => Type::Number(element(random, mixture)),
            };
            members.push(member);
        }
        let count =
            |members: &[Type]| members.iter().map(|ty| program.leaves(*ty).len()).sum::<usize>();
        while members.len() > 1 && count(&members) > LARGEST {
            members.pop();
        }
        program.structs.push(members);
        let place = program.structs.len() - 1;
        types.push(Type::Struct(place));
        if random.percent(40) && program.leaves(Type::Struct(place)).len() <= LARGEST / 2 {
            types.push(Type::Structs(2, place));
        }
    }
    types
}

/// A type of some field that is a vec or a struct; none where there is none.
pub fn some(random: &mut Random, program: &Program) -> Option<Type> {
    let types: Vec<Type> =
        program.fields.iter().map(|field| field.ty).filter(|ty| ty.is_aggregate()).collect();
    if types.is_empty() { None } else { Some(random.pick(&types)) }
}

/// One of the numbers of a value.
pub fn part(random: &mut Random, program: &Program, whole: Expr) -> Expr {
    let parts = program.parts(whole.ty);
    if parts.is_empty() {
        return whole;
    }
    let place = random.below(parts.len());
    part(random, program, Expr { ty: parts[place], kind: Kind::Part(Box::new(whole), place) })
}

/// A value of a vec or a struct.
pub fn aggregate(random: &mut Random, scope: &mut Scope, ty: Type, depth: i64) -> Expr {
    let locals: Vec<usize> =
        scope.locals.iter().filter(|(_, of)| *of == ty).map(|(number, _)| *number).collect();
    if !locals.is_empty() && random.percent(50) {
        return Expr { ty, kind: Kind::Local(random.pick(&locals)) };
    }
    let deeper = depth - 1;
    match random.below(if depth > 0 { 12 } else { 6 }) {
        0..=2 => match cell(random, scope, |other| other == ty) {
            Some(cell) => cell,
            None => written(random, scope, ty, deeper),
        },
        6 => {
            let condition = expressions::expression(random, scope, Type::Bool, deeper.min(2));
            let (yes, no) =
                (aggregate(random, scope, ty, deeper), aggregate(random, scope, ty, deeper));
            Expr { ty, kind: Kind::If(Box::new([condition, yes, no])) }
        }
        7 => {
            let of = if random.percent(70) { ty } else { expressions::some_type(random) };
            let bound = any(random, scope, of, deeper);
            scope.bind(bound, |scope| aggregate(random, scope, ty, deeper))
        }
        8..=11 => match ty {
            Type::Vec(_, of) => {
                let number = Type::Number(of);
                // An integer that is written as 0 is no divisor.
                let operators: &[&str] =
                    if of.is_float() { &["+", "-", "*", "/"] } else { &["+", "-", "*"] };
                let a = aggregate(random, scope, ty, deeper);
                match random.below(6) {
                    0 => Expr { ty, kind: Kind::Unary("-", Box::new(a)) },
                    1 => binary(
                        random.pick(operators),
                        ty,
                        expressions::leaf(random, scope, number),
                        a,
                    ),
                    2 | 3 => binary(
                        random.pick(operators),
                        ty,
                        a,
                        expressions::leaf(random, scope, number),
                    ),
                    _ => {
                        binary(random.pick(operators), ty, a, aggregate(random, scope, ty, deeper))
                    }
                }
            }
            _ => written(random, scope, ty, deeper),
        },
        _ => written(random, scope, ty, deeper),
    }
}

/// `vec(...)` or `S { ... }`.
fn written(random: &mut Random, scope: &mut Scope, ty: Type, depth: i64) -> Expr {
    let parts = scope.program.parts(ty);
    let parts = parts.into_iter().map(|part| any(random, scope, part, depth.min(2))).collect();
    Expr { ty, kind: Kind::Whole(parts) }
}
