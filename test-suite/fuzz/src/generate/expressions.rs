//! Values of numbers and conditions.

use super::{aggregates, gathers};
use crate::model::*;
use crate::random::Random;
use stencil_runtime::array::Element;

/// The names and reads that an expression may use.
pub struct Scope<'p> {
    /// The program, whose functions are not complete yet.
    pub program: &'p Program,
    /// Dimensions of the points.
    pub rank: usize,
    /// For each field, the smallest and the largest offset of each dimension; none where no read is
    /// right.
    pub offsets: Vec<Option<Vec<(i64, i64)>>>,
    /// The same as if there were no boundary rules.
    pub inside: Vec<Option<Vec<(i64, i64)>>>,
    /// Names and their types.
    pub locals: Vec<(usize, Type)>,
    next_local: usize,
    /// In a boundary rule: the type of the nearest cell, the only one that it reads.
    pub nearest: Option<Type>,
    /// Whether fields that the program updates are read at absolute places too.
    pub updated: bool,
    /// How many absolute reads this is a coordinate of, one in the other.
    pub within: usize,
}

impl<'p> Scope<'p> {
    /// That of a piece.
    pub fn of_piece(
        program: &'p Program,
        rank: usize,
        offsets: Vec<Option<Vec<(i64, i64)>>>,
        inside: Vec<Option<Vec<(i64, i64)>>>,
    ) -> Self {
        Self {
            program,
            rank,
            offsets,
            inside,
            locals: Vec::new(),
            next_local: 0,
            nearest: None,
            updated: false,
            within: 0,
        }
    }

    /// That of the boundary rule of a field with such cells.
    pub fn of_rule(program: &'p Program, rank: usize, cell: Type) -> Self {
        Self { nearest: Some(cell), ..Self::of_piece(program, rank, Vec::new(), Vec::new()) }
    }

    /// `let v = bound;` for all that follows; the number of the name.
    pub fn share(&mut self, bound: &Expr) -> usize {
        let number = self.next_local;
        self.next_local += 1;
        self.locals.push((number, bound.ty));
        number
    }

    /// `{ let v = bound; body }`.
    pub fn bind(&mut self, bound: Expr, body: impl FnOnce(&mut Self) -> Expr) -> Expr {
        let number = self.share(&bound);
        let body = body(self);
        self.locals.pop();
        Expr { ty: body.ty, kind: Kind::Let(number, Box::new(bound), Box::new(body)) }
    }
}

/// The new value of a field: a mean of neighbours, or anything, mostly kept from growing.
pub fn value(random: &mut Random, scope: &mut Scope, ty: Type) -> Expr {
    if ty.is_aggregate() {
        let depth = random.range(1, 3);
        return aggregates::aggregate(random, scope, ty, depth);
    }
    if ty.is_float() && random.percent(40) {
        let count = random.range(2, 6);
        let mut sum = read(random, scope, ty);
        for _ in 1..count {
            let term = read(random, scope, ty);
            sum = binary(random.pick(&["+", "+", "+", "-"]), ty, sum, term);
        }
        let weight = random.pick(&[0.25, 0.2, 0.1, 0.3333]);
        return binary("*", ty, number(ty, weight), sum);
    }
    let depth = random.range(1, 4);
    let any = expression(random, scope, ty, depth);
    if ty == Type::Bool || !random.percent(70) {
        return any;
    }
    let (low, high) = match ty {
        _ if ty.is_float() => (-4.0, 4.0),
        Type::Number(element) if element.size() == 1 => (0.0, 100.0),
        _ => (0.0, 1000.0),
    };
    call("min", ty, vec![call("max", ty, vec![any, number(ty, low)]), number(ty, high)])
}

/// A number that takes the type of its context.
pub fn number(ty: Type, value: f64) -> Expr {
    Expr { ty, kind: Kind::Number(value, false) }
}

/// An operator between operands.
pub fn binary(operator: &'static str, ty: Type, a: Expr, b: Expr) -> Expr {
    Expr { ty, kind: Kind::Binary(operator, Box::new(a), Box::new(b)) }
}

/// A math function.
pub fn call(function: &'static str, ty: Type, arguments: Vec<Expr>) -> Expr {
    Expr { ty, kind: Kind::Call(function, arguments) }
}

fn cast(ty: Type, of: Expr) -> Expr {
    if of.ty == ty { of } else { Expr { ty, kind: Kind::Cast(Box::new(of)) } }
}

/// A number of a cell, as a type.
fn read(random: &mut Random, scope: &mut Scope, ty: Type) -> Expr {
    let cell = cell(random, scope, |_| true);
    let cell = cell.unwrap_or(Expr { ty, kind: Kind::Number(1.0, true) });
    cast(ty, aggregates::part(random, scope.program, cell))
}

/// A cell of a field whose type will do; none where no such field can be read here.
pub fn cell(random: &mut Random, scope: &mut Scope, wanted: impl Fn(Type) -> bool) -> Option<Expr> {
    if let Some(ty) = scope.nearest {
        return wanted(ty).then_some(Expr { ty, kind: Kind::Nearest });
    }
    let fields = &scope.program.fields;
    let fits = |place: &usize| wanted(fields[*place].ty);
    let near: Vec<usize> =
        (0..fields.len()).filter(|place| scope.offsets[*place].is_some()).filter(fits).collect();
    let absolute = |place: &usize| {
        let fixed = fields[*place].role == Role::Const;
        (fixed || scope.updated) && gathers::may_hold(scope.program, *place)
    };
    let far: Vec<usize> = (0..fields.len()).filter(absolute).filter(fits).collect();
    let chance = if near.is_empty() { 100 } else { 20 };
    if !far.is_empty() && scope.within < 2 && random.percent(chance) {
        let field = random.pick(&far);
        return Some(gathers::gather(random, scope, field));
    }
    if near.is_empty() {
        return None;
    }
    let field = random.pick(&near);
    let close = random.percent(60);
    let offset = scope.offsets[field].iter().flatten().map(|(first, last)| match close {
        true => random.range(*first.max(&(-1).min(*last)), *last.min(&1.max(*first))),
        false => random.range(*first, *last),
    });
    Some(Expr { ty: fields[field].ty, kind: Kind::Read(field, offset.collect()) })
}

/// An expression without operands, or nearly.
pub fn leaf(random: &mut Random, scope: &mut Scope, ty: Type) -> Expr {
    let whole = |of: Type| ty != Type::Bool && of.is_aggregate();
    let locals: Vec<_> =
        scope.locals.iter().copied().filter(|(_, of)| *of == ty || whole(*of)).collect();
    if !locals.is_empty() && random.percent(60) {
        let (number, of) = random.pick(&locals);
        let local = Expr { ty: of, kind: Kind::Local(number) };
        return if of == ty {
            local
        } else {
            cast(ty, aggregates::part(random, scope.program, local))
        };
    }
    let Type::Number(element) = ty else {
        if random.percent(40)
            && let Some(cell) = cell(random, scope, |of| of == Type::Bool)
        {
            return cell;
        }
        let of = some_type(random);
        let (a, b) = (leaf(random, scope, of), leaf(random, scope, of));
        return binary(random.pick(&["<", "<=", ">", ">=", "==", "!="]), ty, a, b);
    };
    let scalars: Vec<_> = (0..scope.program.scalars.len())
        .filter(|place| scope.program.scalars[*place].element == element)
        .collect();
    if !scalars.is_empty() && random.percent(25) {
        return Expr { ty, kind: Kind::Scalar(random.pick(&scalars)) };
    }
    if element.is_float() {
        if random.percent(20) {
            let value = random.pick(&[0.0, 0.5, 1.0, 2.0, 0.1, 3.0, 1.7, 1e-3]);
            return Expr { ty, kind: Kind::Number(value, true) };
        }
        return read(random, scope, ty);
    }
    if random.percent(25) {
        return read(random, scope, ty);
    }
    if ty != Type::INDEX {
        if random.percent(50) {
            let index = leaf(random, scope, Type::INDEX);
            return cast(ty, index);
        }
        let least = if element.is_unsigned() { 0 } else { -3 };
        return Expr { ty, kind: Kind::Number(random.range(least, 9) as f64, true) };
    }
    match random.below(5) {
        0 | 1 => Expr { ty, kind: Kind::Coordinate(random.below(scope.rank)) },
        2 => Expr { ty, kind: Kind::Step },
        3 if !scope.program.params.is_empty() => {
            Expr { ty, kind: Kind::Param(random.below(scope.program.params.len())) }
        }
        _ => Expr { ty, kind: Kind::Number(random.range(-3, 9) as f64, true) },
    }
}

/// A number type; the common ones more often.
pub fn some_type(random: &mut Random) -> Type {
    let common = [Element::F32, Element::F64, Element::I64];
    Type::Number(if random.percent(50) { random.pick(&common) } else { random.pick(&Element::ALL) })
}

/// Any value of a type; a condition or a number.
pub fn expression(random: &mut Random, scope: &mut Scope, ty: Type, depth: i64) -> Expr {
    if depth <= 0 || random.percent(8) {
        return leaf(random, scope, ty);
    }
    let deeper = depth - 1;
    match random.below(20) {
        0 | 1 => {
            let condition = expression(random, scope, Type::Bool, deeper);
            let (yes, no) =
                (expression(random, scope, ty, deeper), expression(random, scope, ty, deeper));
            Expr { ty, kind: Kind::If(Box::new([condition, yes, no])) }
        }
        2 | 3 => {
            let of = match (random.below(4), aggregates::some(random, scope.program)) {
                (0, _) => ty,
                (1, _) => Type::Bool,
                (2, Some(aggregate)) => aggregate,
                _ => some_type(random),
            };
            let bound = any(random, scope, of, deeper);
            scope.bind(bound, |scope| expression(random, scope, ty, deeper))
        }
        4 if ty != Type::Bool && random.percent(50) => {
            match aggregates::some(random, scope.program) {
                Some(of) => {
                    let whole = aggregates::aggregate(random, scope, of, deeper);
                    cast(ty, aggregates::part(random, scope.program, whole))
                }
                None => leaf(random, scope, ty),
            }
        }
        _ => match ty {
            Type::Bool => condition(random, scope, deeper),
            Type::Number(element) if element.is_float() => float(random, scope, ty, deeper),
            _ => integer(random, scope, ty, deeper),
        },
    }
}

/// Any value of any type.
pub fn any(random: &mut Random, scope: &mut Scope, ty: Type, depth: i64) -> Expr {
    match ty.is_aggregate() {
        true => aggregates::aggregate(random, scope, ty, depth),
        false => expression(random, scope, ty, depth),
    }
}

fn condition(random: &mut Random, scope: &mut Scope, deeper: i64) -> Expr {
    let ty = Type::Bool;
    match random.below(4) {
        0 => Expr { ty, kind: Kind::Unary("!", Box::new(expression(random, scope, ty, deeper))) },
        1 => {
            let (a, b) =
                (expression(random, scope, ty, deeper), expression(random, scope, ty, deeper));
            binary(random.pick(&["&&", "||", "==", "!="]), ty, a, b)
        }
        2 if random.percent(40) => {
            let from = some_type(random);
            Expr { ty, kind: Kind::Cast(Box::new(expression(random, scope, from, deeper))) }
        }
        _ => {
            let of = some_type(random);
            let (a, b) =
                (expression(random, scope, of, deeper), expression(random, scope, of, deeper));
            binary(random.pick(&["<", "<=", ">", ">=", "==", "!="]), ty, a, b)
        }
    }
}

fn integer(random: &mut Random, scope: &mut Scope, ty: Type, deeper: i64) -> Expr {
    let a = expression(random, scope, ty, deeper);
    match random.below(11) {
        8 => Expr { ty, kind: Kind::Unary("~", Box::new(a)) },
        9 => {
            let b = expression(random, scope, ty, deeper);
            binary(random.pick(&["&", "|", "^"]), ty, a, b)
        }
        10 => {
            // A literal that is too large is refused; other counts may be anything.
            let count = random.below(8) as f64;
            let b = match random.percent(50) {
                true => number(ty, count),
                false => expression(random, scope, ty, deeper.min(1)),
            };
            let b = if let Kind::Number(..) = b.kind { number(ty, count) } else { b };
            binary(random.pick(&["<<", ">>"]), ty, a, b)
        }
        0 | 1 => {
            let b = expression(random, scope, ty, deeper.min(1));
            // A literal 0 is refused.
            let b = if matches!(b.kind, Kind::Number(..)) { number(ty, 3.0) } else { b };
            binary(random.pick(&["/", "%"]), ty, a, b)
        }
        2 => call(random.pick(&["min", "max"]), ty, vec![a, expression(random, scope, ty, deeper)]),
        3 => Expr { ty, kind: Kind::Unary("-", Box::new(a)) },
        4 => {
            let from = if random.percent(15) { Type::Bool } else { some_type(random) };
            Expr { ty, kind: Kind::Cast(Box::new(expression(random, scope, from, deeper))) }
        }
        5 => call("abs", ty, vec![a]),
        _ => binary(random.pick(&["+", "-", "*"]), ty, a, expression(random, scope, ty, deeper)),
    }
}

fn float(random: &mut Random, scope: &mut Scope, ty: Type, deeper: i64) -> Expr {
    let a = expression(random, scope, ty, deeper);
    match random.below(16) {
        0 | 1 => {
            call(random.pick(&["min", "max"]), ty, vec![a, expression(random, scope, ty, deeper)])
        }
        2 => call(random.pick(&["sqrt", "abs", "abs", "floor", "ceil", "rsqrt"]), ty, vec![a]),
        3 => call("sqrt", ty, vec![call("abs", ty, vec![a])]),
        4 => {
            let (b, c) =
                (expression(random, scope, ty, deeper), expression(random, scope, ty, deeper));
            call("fma", ty, vec![a, b, c])
        }
        5 => Expr { ty, kind: Kind::Unary("-", Box::new(a)) },
        6 => {
            let from = if random.percent(15) { Type::Bool } else { some_type(random) };
            Expr { ty, kind: Kind::Cast(Box::new(expression(random, scope, from, deeper))) }
        }
        7 => binary(random.pick(&["/", "/", "%"]), ty, a, expression(random, scope, ty, deeper)),
        8 => binary(
            random.pick(&["+", "*", "-", "/"]),
            ty,
            a,
            number(ty, random.pick(&[0.5, 2.0, 0.1, 3.0])),
        ),
        _ => binary(
            random.pick(&["+", "+", "-", "-", "*"]),
            ty,
            a,
            expression(random, scope, ty, deeper),
        ),
    }
}
