//! The array of `SetData`: what it is in the program, and what its reads become.
//!
//! - All reads are `read(y * input_size.x + x)`: a field on the grid, whose cell a read is.
//! - Some have `n` times all cells added, an `n` of numbers and `iteration`: layers of the grid,
//!   and a read is an absolute one of layer `n`.
//! - Others: a line of `count` elements, and absolute reads.
//!
//! Indices are compared as polynomials, so that `x + input_size.x * y` and an index in a variable
//! are recognised too. Integers of C do not wrap.

use super::types::convert;
use crate::program::{
    BinaryOp, Expr, ExprKind, FieldId, LocalId, MathFunction, ParamId, Region, Type, UnaryOp,
};
use std::collections::{BTreeMap, HashMap};
use stencil_runtime::array::Element;

/// What the array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    /// Nothing reads it.
    Unused,
    /// A field on the grid.
    Cells,
    /// A field on layers of the grid.
    Layers,
    /// A field on a line.
    Line,
}

/// What an index consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Atom {
    Coordinate(usize),
    Size(ParamId),
    Step,
}

/// A sum of products with their factors; the atoms of a product are sorted.
type Polynomial = BTreeMap<Vec<Atom>, i128>;

/// Terms of a polynomial and atoms of a term.
const MOST_TERMS: usize = 32;
const MOST_ATOMS: usize = 5;

/// The index of a read.
enum Place {
    /// The number of the cell.
    Cell,
    /// The number of a cell in a layer: `factor * t + constant`.
    Layer {
        factor: i64,
        constant: i64,
    },
    Other,
}

/// What the reads of a program need the array to be. `sizes` are the params of the grid, x first.
pub fn view<'e>(
    roots: impl Iterator<Item = &'e Expr>,
    locals: &HashMap<LocalId, Expr>,
    sizes: &[ParamId],
    read: FieldId,
    edge: bool,
) -> View {
    let mut found = View::Unused;
    for root in roots {
        visit(root, &mut |expr| {
            if let ExprKind::Gather { field, at } = &expr.kind
                && *field == read
            {
                found = found.max(match place(at, locals, sizes) {
                    // The point of an edge is no cell.
                    _ if edge => View::Line,
                    Place::Cell => View::Cells,
                    // A grid has three dimensions at most.
                    Place::Layer { .. } if sizes.len() < 3 => View::Layers,
                    _ => View::Line,
                });
            }
        });
    }
    found
}

/// Writes the reads for the array as it is.
pub fn rewrite(
    expr: &mut Expr,
    view: View,
    locals: &HashMap<LocalId, Expr>,
    sizes: &[ParamId],
    read: FieldId,
) {
    expr.children_mut().into_iter().for_each(|child| rewrite(child, view, locals, sizes, read));
    let span = expr.span;
    let ExprKind::Gather { field, at } = &mut expr.kind else { return };
    if *field != read {
        return;
    }
    let number = |kind| Expr { kind, ty: Type::Element(Element::I64), span };
    let dimensions = sizes.len();
    match view {
        View::Cells | View::Unused => {
            let (field, offset) = (*field, vec![0; dimensions]);
            expr.kind = ExprKind::Read { field, offset, current: false };
        }
        View::Layers => {
            let (factor, constant) = match place(at, locals, sizes) {
                Place::Layer { factor, constant } => (factor, constant),
                _ => (0, 0),
            };
            let int = |value: i64| Box::new(number(ExprKind::Int(value.into())));
            let step = Box::new(number(ExprKind::Step));
            let layer = match factor {
                0 => *int(constant),
                1 => number(ExprKind::Binary(BinaryOp::Add, step, int(constant))),
                _ => {
                    let product = number(ExprKind::Binary(BinaryOp::Mul, step, int(factor)));
                    number(ExprKind::Binary(BinaryOp::Add, Box::new(product), int(constant)))
                }
            };
            let cell = (0..dimensions).map(|dimension| number(ExprKind::Coordinate(dimension)));
            *at = [layer].into_iter().chain(cell).collect();
        }
        View::Line => {
            for index in at {
                *index = widened(index, locals, &mut 0);
            }
        }
    }
}

/// Keeps the reads of a line inside of it wherever they are evaluated. A kernel may evaluate a
/// boundary rule at places that no cell needs; the checks before a run are for those that some do.
pub fn keep_inside(expr: &mut Expr, read: FieldId, line: &Region) {
    expr.children_mut().into_iter().for_each(|child| keep_inside(child, read, line));
    let span = expr.span;
    let ExprKind::Gather { field, at } = &mut expr.kind else { return };
    let (Some(last), true) = (line.upper.first(), *field == read) else { return };
    let number = |kind| Expr { kind, ty: Type::Element(Element::I64), span };
    let int = |value: i64| number(ExprKind::Int(value.into()));
    let last = last.terms.first().map_or(int(last.constant), |(count, _)| {
        let (count, one) = (Box::new(number(ExprKind::Param(*count))), Box::new(int(1)));
        number(ExprKind::Binary(BinaryOp::Sub, count, one))
    });
    for index in at {
        let inner = std::mem::replace(index, int(0));
        let below = number(ExprKind::Call(MathFunction::Min, vec![inner, last.clone()]));
        *index = number(ExprKind::Call(MathFunction::Max, vec![int(0), below]));
    }
}

/// Whether a conversion of integers changes no value: coordinates, sizes and the number of the
/// iteration are an `int`.
fn keeps_value(inner: &Expr, outer: &Expr) -> bool {
    let known = match &inner.kind {
        ExprKind::Coordinate(_) | ExprKind::Param(_) | ExprKind::Step => true,
        ExprKind::Binary(BinaryOp::Add, step, _) => step.kind == ExprKind::Step,
        _ => false,
    };
    let wide = Type::Element(Element::I64);
    known || inner.ty == Type::Element(Element::I32) && outer.ty == wide || inner.ty == outer.ty
}

/// Nodes that the variables of an index may add.
const MOST_NODES: usize = 200;

/// An index in 64 bits, in which its bounds can be found: integers of C do not wrap.
fn widened(expr: &Expr, locals: &HashMap<LocalId, Expr>, nodes: &mut usize) -> Expr {
    *nodes += 1;
    let ty = Type::Element(Element::I64);
    let signed = matches!(expr.ty, Type::Element(Element::I32 | Element::I64));
    let as_it_is = || convert(expr.clone(), Element::I64);
    if !signed || *nodes > MOST_NODES {
        return as_it_is();
    }
    let mut of = |inner: &Expr| widened(inner, locals, nodes);
    let kind = match &expr.kind {
        ExprKind::Cast(inner) if keeps_value(inner, expr) => return of(inner),
        // Reads in the value of a variable are those of the text: they have their place there.
        ExprKind::Local(id) => match locals.get(id).filter(|value| !has_read(value)) {
            Some(value) => return of(value),
            None => return as_it_is(),
        },
        ExprKind::Int(value) => ExprKind::Int(*value),
        ExprKind::Unary(UnaryOp::Neg, inner) => ExprKind::Unary(UnaryOp::Neg, Box::new(of(inner))),
        ExprKind::Binary(op, a, b) if !matches!(op, BinaryOp::Shl) => {
            ExprKind::Binary(*op, Box::new(of(a)), Box::new(of(b)))
        }
        ExprKind::Call(function, operands) => {
            ExprKind::Call(*function, operands.iter().map(of).collect())
        }
        ExprKind::If(condition, yes, no) => {
            ExprKind::If(condition.clone(), Box::new(of(yes)), Box::new(of(no)))
        }
        _ => return as_it_is(),
    };
    Expr { kind, ty, span: expr.span }
}

/// Whether an element of an array is read in an expression.
fn has_read(expr: &Expr) -> bool {
    let mut found = false;
    visit(expr, &mut |expr| found |= matches!(expr.kind, ExprKind::Gather { .. }));
    found
}

/// Shows an expression and all in it.
pub fn visit(expr: &Expr, show: &mut dyn FnMut(&Expr)) {
    show(expr);
    expr.children().into_iter().for_each(|child| visit(child, show));
}

/// The form of an index.
fn place(at: &[Expr], locals: &HashMap<LocalId, Expr>, sizes: &[ParamId]) -> Place {
    let index = at.first().and_then(|index| polynomial(index, locals, 0));
    let Some(mut rest) = index else { return Place::Other };
    let dimensions = sizes.len();
    let mut stride: Vec<Atom> = Vec::new();
    for (axis, size) in sizes.iter().enumerate() {
        let mut term = stride.clone();
        term.push(Atom::Coordinate(dimensions - 1 - axis));
        term.sort_unstable();
        if rest.remove(&term) != Some(1) {
            return Place::Other;
        }
        stride.push(Atom::Size(*size));
    }
    stride.sort_unstable();
    let mut stepped = stride.clone();
    stepped.push(Atom::Step);
    stepped.sort_unstable();
    let constant = rest.remove(&stride).unwrap_or(0);
    let factor = rest.remove(&stepped).unwrap_or(0);
    match (rest.is_empty(), i64::try_from(factor), i64::try_from(constant)) {
        (true, Ok(0), Ok(0)) => Place::Cell,
        (true, Ok(factor), Ok(constant)) => Place::Layer { factor, constant },
        _ => Place::Other,
    }
}

/// An integer expression as a polynomial, where it is one of a few terms.
fn polynomial(expr: &Expr, locals: &HashMap<LocalId, Expr>, depth: usize) -> Option<Polynomial> {
    let Type::Element(element) = expr.ty else { return None };
    if element.is_float() || depth > 200 {
        return None;
    }
    let of = |inner: &Expr| polynomial(inner, locals, depth + 1);
    let atom = |atom| Some(Polynomial::from([(vec![atom], 1)]));
    match &expr.kind {
        ExprKind::Int(value) => Some(tidy(Polynomial::from([(Vec::new(), *value)]))),
        ExprKind::Coordinate(dimension) => atom(Atom::Coordinate(*dimension)),
        ExprKind::Param(id) => atom(Atom::Size(*id)),
        ExprKind::Step => atom(Atom::Step),
        ExprKind::Cast(inner) if keeps_value(inner, expr) => of(inner),
        ExprKind::Local(id) => of(locals.get(id)?),
        ExprKind::Unary(UnaryOp::Neg, inner) => {
            product(&of(inner)?, &Polynomial::from([(Vec::new(), -1)]))
        }
        ExprKind::Binary(BinaryOp::Add, a, b) => sum(of(a)?, of(b)?, 1),
        ExprKind::Binary(BinaryOp::Sub, a, b) => sum(of(a)?, of(b)?, -1),
        ExprKind::Binary(BinaryOp::Mul, a, b) => product(&of(a)?, &of(b)?),
        _ => None,
    }
}

fn tidy(mut polynomial: Polynomial) -> Polynomial {
    polynomial.retain(|_, factor| *factor != 0);
    polynomial
}

fn sum(mut a: Polynomial, b: Polynomial, sign: i128) -> Option<Polynomial> {
    for (term, factor) in b {
        let slot = a.entry(term).or_default();
        *slot = slot.checked_add(factor.checked_mul(sign)?)?;
    }
    Some(tidy(a)).filter(|sum| sum.len() <= MOST_TERMS)
}

fn product(a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
    let mut result = Polynomial::new();
    for (left, x) in a {
        for (right, y) in b {
            let mut term: Vec<Atom> = left.iter().chain(right).copied().collect();
            term.sort_unstable();
            if term.len() > MOST_ATOMS {
                return None;
            }
            let slot = result.entry(term).or_default();
            *slot = slot.checked_add(x.checked_mul(*y)?)?;
        }
    }
    Some(tidy(result)).filter(|product| product.len() <= MOST_TERMS)
}
