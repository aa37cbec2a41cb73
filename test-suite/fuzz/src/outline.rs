//! The same program with parts of its expressions as functions by `let`: the oracle must give the
//! same bits.

use crate::model::*;
use crate::random::Random;
use std::collections::BTreeMap;

/// The numbers of parameters among locals begin here.
const PARAMETERS: usize = 1000;

/// Makes functions of some parts of a program's pieces and reductions.
pub fn outlined(program: &Program, random: &mut Random) -> Program {
    let mut changed = program.clone();
    let mut made = Vec::new();
    let pieces = changed.functions.iter_mut().flat_map(|function| &mut function.pieces);
    let reduced = changed.reductions.iter_mut().map(|reduction| &mut reduction.piece);
    for value in pieces.chain(reduced).flat_map(Piece::exprs_mut) {
        if random.percent(70) {
            let number = random.below(value.size());
            outline(part(value, number), random, &mut made);
        }
    }
    changed.lets = made;
    changed
}

/// A part of an expression by its number, the whole first.
fn part(expr: &mut Expr, number: usize) -> &mut Expr {
    let mut left = number;
    let mut place = None;
    if left > 0 {
        left -= 1;
        for (at, child) in expr.children().iter().enumerate() {
            if left < child.size() {
                place = Some(at);
                break;
            }
            left -= child.size();
        }
    }
    match place {
        Some(at) => part(expr.children_mut().swap_remove(at), left),
        None => expr,
    }
}

/// Makes a function of an expression, and a call in its place.
fn outline(expr: &mut Expr, random: &mut Random, made: &mut Vec<(usize, Expr)>) {
    let mut bound = Vec::new();
    expr.visit(&mut |part| {
        if let Kind::Let(number, ..) = part.kind {
            bound.push(number);
        }
    });
    // Coordinates and locals of the caller have to be arguments; other leaves may be.
    let mut arguments: Vec<Expr> = Vec::new();
    let mut known: BTreeMap<usize, usize> = BTreeMap::new();
    let mut body = expr.clone();
    body.change(&mut |part| {
        let local = match part.kind {
            Kind::Local(number) if bound.contains(&number) => return,
            Kind::Local(number) => Some(number),
            Kind::Coordinate(_) => None,
            Kind::Read(..) | Kind::Scalar(_) | Kind::Number(..) if random.percent(30) => None,
            _ => return,
        };
        let place = local.and_then(|number| known.get(&number).copied()).unwrap_or_else(|| {
            arguments.push(part.clone());
            arguments.len() - 1
        });
        known.extend(local.map(|number| (number, place)));
        part.kind = Kind::Local(PARAMETERS + place);
    });
    let count = arguments.len();
    expr.kind = Kind::Called(made.len(), arguments);
    made.push((count, body));
}

/// The name of a parameter's local.
pub fn parameters(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|place| format!("v{}", PARAMETERS + place))
}
