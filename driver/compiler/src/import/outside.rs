//! Boundary rules of absolute reads, and expression rules of structs and vecs, written out: after
//! this every coordinate lies in the field's grid, and no later level knows of rules but for the
//! names and for reads at offsets of fields of numbers, whose rules read no other field.
//!
//! ```text
//! K(e)     // boundary K = periodic, on [0..N-1]
//! { let at = e; { let r = at % N; K(if r < 0 then r + N else r) } }
//! K(e)     // boundary K = x0 * nearest
//! { let at = e; if at < 0 || at > N-1 then at * K(min(max(at, 0), N-1)) else K(min(max(at, 0), N-1)) }
//! W[-1].0  // boundary W = vec(nearest.1, nearest.0)
//! { let at = i - 1; if at < 0 then W[-1].1 else W[-1].0 }    // boundary W = nearest
//! ```
//!
//! Coordinates may be any integers, so nothing here overflows: what is subtracted lies within two
//! periods of the grid. The checker has asked for a cell in the grid.

use std::collections::HashMap;
use stencil_frontend::program::{
    Affine, BinaryOp, Boundary, Expr, ExprKind, FieldId, LocalId, MathFunction, Piece, Program,
    Type,
};
use stencil_frontend::source::Span;
use stencil_runtime::array::Element;

const INDEX: Type = Type::Element(Element::I64);

/// The program with such reads written out.
pub fn written_out(program: &Program) -> Program {
    let mut changed = program.clone();
    for field in changed.fields.values_mut().filter(|field| field.member.is_some()) {
        if let Some(Boundary::Value(_)) = field.boundary {
            field.boundary = Some(Boundary::Nearest);
        }
    }
    let pieces = changed.functions.iter_mut().flat_map(|function| &mut function.pieces);
    let reduced = changed.reductions.iter_mut().map(|reduction| &mut reduction.piece);
    for piece in pieces.chain(reduced) {
        let mut writer = Writer { program, next: first_free(piece) };
        for expr in piece.lets.iter_mut().map(|(_, value)| value).chain(&mut piece.values) {
            writer.expr(expr);
        }
    }
    changed
}

/// A number that no local of a piece has.
fn first_free(piece: &Piece) -> u32 {
    let mut next = piece.lets.iter().map(|(id, _)| id.as_u32() + 1).max().unwrap_or(0);
    let mut open: Vec<&Expr> = piece.exprs().collect();
    while let Some(expr) = open.pop() {
        if let ExprKind::Let(id, ..) = &expr.kind {
            next = next.max(id.as_u32() + 1);
        }
        open.extend(expr.children());
    }
    next
}

struct Writer<'p> {
    program: &'p Program,
    /// The next local's number.
    next: u32,
}

impl Writer<'_> {
    fn expr(&mut self, expr: &mut Expr) {
        expr.children_mut().into_iter().for_each(|child| self.expr(child));
        let (ExprKind::Gather { field, .. } | ExprKind::Read { field, .. }) = &expr.kind else {
            return;
        };
        let Some(declared) = self.program.fields.get(*field) else { return };
        let Some(rule) = &declared.boundary else { return };
        let (field, ty, span) = (*field, expr.ty, expr.span);
        match (&mut expr.kind, rule) {
            (ExprKind::Gather { at, .. }, _) => {
                let at = std::mem::take(at);
                *expr = self.read_at(rule, field, at, (ty, span));
            }
            (ExprKind::Read { offset, current, .. }, Boundary::Value(value))
                if declared.member.is_some() || *current =>
            {
                let (offset, current) = (std::mem::take(offset), *current);
                *expr = self.read(value, field, (&offset, current), (ty, span));
            }
            _ => {}
        }
    }

    /// A read at an offset by an expression rule. The point lies in the grid, so that the place can
    /// be outside on one side of a dimension alone.
    fn read(
        &mut self,
        value: &Expr,
        field: FieldId,
        (offset, current): (&[i64], bool),
        (ty, span): (Type, Span),
    ) -> Expr {
        let make = Make { span };
        let places: Vec<LocalId> = offset.iter().map(|_| self.local()).collect();
        let mut outside = Vec::new();
        for ((place, distance), (lower, upper)) in places.iter().zip(offset).zip(self.bounds(field))
        {
            let (here, below) = (make.local(*place), *distance < 0);
            outside.extend((*distance != 0).then(|| match below {
                true => make.compare(BinaryOp::Lt, here, make.affine(lower)),
                false => make.compare(BinaryOp::Gt, here, make.affine(upper)),
            }));
        }
        let cell = |field| ExprKind::Read { field, offset: offset.to_vec(), current };
        let read = self.by_value(value, outside, &places, (&cell, field), (ty, span));
        let at = offset.iter().enumerate().map(|(dimension, distance)| {
            make.add(make.index(ExprKind::Coordinate(dimension)), make.int(*distance))
        });
        places.iter().zip(at).rev().fold(read, |body, (id, place)| make.bind(*id, place, body))
    }

    /// The rule's value where one of some conditions holds, else the cell.
    fn by_value(
        &mut self,
        value: &Expr,
        outside: Vec<Expr>,
        places: &[LocalId],
        (cell, field): (&dyn Fn(FieldId) -> ExprKind, FieldId),
        (ty, span): (Type, Span),
    ) -> Expr {
        let own = Expr { kind: cell(field), ty, span };
        let any = |a, b| Expr {
            kind: ExprKind::Binary(BinaryOp::Or, Box::new(a), Box::new(b)),
            ty: Type::Bool,
            span,
        };
        let Some(outside) = outside.into_iter().reduce(any) else { return own };
        let mut beyond = value.clone();
        self.place_rule(&mut beyond, places, cell, &mut HashMap::new());
        Expr { kind: ExprKind::If(Box::new(outside), Box::new(beyond), Box::new(own)), ty, span }
    }

    /// First and last coordinate of a field's grid, per dimension.
    fn bounds(&self, field: FieldId) -> impl Iterator<Item = (&Affine, &Affine)> {
        let grid =
            self.program.fields.get(field).and_then(|field| self.program.grids.get(field.grid));
        grid.into_iter().flat_map(|grid| grid.region.lower.iter().zip(&grid.region.upper))
    }

    /// An absolute read, whose coordinates get names.
    fn read_at(
        &mut self,
        rule: &Boundary,
        field: FieldId,
        at: Vec<Expr>,
        (ty, span): (Type, Span),
    ) -> Expr {
        let make = Make { span };
        let places: Vec<LocalId> = at.iter().map(|_| self.local()).collect();
        let bounds: Vec<_> = self
            .bounds(field)
            .map(|(lower, upper)| (make.affine(lower), make.affine(upper)))
            .collect();
        let mut mapped = Vec::new();
        let mut outside = Vec::new();
        for (place, (first, last)) in places.iter().zip(bounds) {
            let here = make.local(*place);
            mapped.push(match rule {
                Boundary::Nearest | Boundary::Value(_) => {
                    make.clamp(here.clone(), first.clone(), last.clone())
                }
                Boundary::Periodic => {
                    let extent = make.add(make.sub(last.clone(), first.clone()), make.int(1));
                    make.add(
                        self.repeated(make, here.clone(), first.clone(), extent),
                        first.clone(),
                    )
                }
                Boundary::Reflect => {
                    // To the last cell and back is one period.
                    let back = make.binary(
                        BinaryOp::Mul,
                        make.int(2),
                        make.sub(last.clone(), first.clone()),
                    );
                    let period = make.call(MathFunction::Max, back.clone(), make.int(1));
                    let there = self.repeated(make, here.clone(), first.clone(), period);
                    let nearer = self.named(there, |_, there| {
                        make.call(MathFunction::Min, there.clone(), make.sub(back, there))
                    });
                    make.add(nearer, first.clone())
                }
            });
            outside.push(make.compare(BinaryOp::Lt, here.clone(), first));
            outside.push(make.compare(BinaryOp::Gt, here, last));
        }
        let cell = |field| ExprKind::Gather { field, at: mapped.clone() };
        let read = match rule {
            Boundary::Value(value) => {
                self.by_value(value, outside, &places, (&cell, field), (ty, span))
            }
            _ => Expr { kind: cell(field), ty, span },
        };
        places.into_iter().zip(at).rev().fold(read, |body, (id, place)| make.bind(id, place, body))
    }

    /// A coordinate counted from `first`, less whole periods: from 0 to `period - 1`.
    fn repeated(&mut self, make: Make, at: Expr, first: Expr, period: Expr) -> Expr {
        let start = (first.kind != ExprKind::Int(0)).then_some(first);
        self.named(period, |writer, period| {
            let rest = |writer: &mut Self, of: Expr| {
                let rest = make.binary(BinaryOp::Rem, of, period.clone());
                writer.named(rest, |_, rest| make.raised(rest, period.clone()))
            };
            let at = rest(writer, at);
            match start {
                None => at,
                Some(first) => {
                    let first = rest(writer, first);
                    writer.named(make.sub(at, first), |_, gap| make.raised(gap, period.clone()))
                }
            }
        })
    }

    /// The expression of a rule at a place: its coordinates are those of the place, its locals have
    /// new numbers, and the nearest cells are those that `cell` gives.
    fn place_rule(
        &mut self,
        expr: &mut Expr,
        places: &[LocalId],
        cell: &dyn Fn(FieldId) -> ExprKind,
        names: &mut HashMap<LocalId, LocalId>,
    ) {
        match &mut expr.kind {
            ExprKind::Coordinate(dimension) => {
                if let Some(place) = places.get(*dimension) {
                    expr.kind = ExprKind::Local(*place);
                }
            }
            ExprKind::Nearest(field) => expr.kind = cell(*field),
            ExprKind::Local(id) => *id = names.get(id).copied().unwrap_or(*id),
            ExprKind::Let(id, ..) => {
                let new = self.local();
                names.insert(*id, new);
                *id = new;
                expr.children_mut()
                    .into_iter()
                    .for_each(|child| self.place_rule(child, places, cell, names));
            }
            _ => expr
                .children_mut()
                .into_iter()
                .for_each(|child| self.place_rule(child, places, cell, names)),
        }
    }

    fn local(&mut self) -> LocalId {
        self.next += 1;
        LocalId::from_u32(self.next - 1)
    }

    /// A value with a name, for what uses it more than once.
    fn named(&mut self, value: Expr, body: impl FnOnce(&mut Self, Expr) -> Expr) -> Expr {
        let (id, make) = (self.local(), Make { span: value.span });
        let body = body(self, make.local(id));
        make.bind(id, value, body)
    }
}

/// Makes integer expressions that stand where the read does.
#[derive(Clone, Copy)]
struct Make {
    span: Span,
}

impl Make {
    fn index(self, kind: ExprKind) -> Expr {
        Expr { kind, ty: INDEX, span: self.span }
    }

    fn int(self, value: i64) -> Expr {
        self.index(ExprKind::Int(value.into()))
    }

    fn local(self, id: LocalId) -> Expr {
        self.index(ExprKind::Local(id))
    }

    fn affine(self, bound: &Affine) -> Expr {
        let terms = bound.terms.iter().map(|(param, factor)| match factor {
            1 => self.index(ExprKind::Param(*param)),
            _ => self.binary(BinaryOp::Mul, self.int(*factor), self.index(ExprKind::Param(*param))),
        });
        match terms.reduce(|a, b| self.add(a, b)) {
            None => self.int(bound.constant),
            Some(sum) => self.add(sum, self.int(bound.constant)),
        }
    }

    /// Sums with 0 and of numbers are left out.
    fn add(self, a: Expr, b: Expr) -> Expr {
        match (&a.kind, &b.kind) {
            (_, ExprKind::Int(0)) => a,
            (ExprKind::Int(0), _) => b,
            _ => self.binary(BinaryOp::Add, a, b),
        }
    }

    fn sub(self, a: Expr, b: Expr) -> Expr {
        if b.kind == ExprKind::Int(0) { a } else { self.binary(BinaryOp::Sub, a, b) }
    }

    fn binary(self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        self.index(ExprKind::Binary(op, Box::new(a), Box::new(b)))
    }

    fn call(self, function: MathFunction, a: Expr, b: Expr) -> Expr {
        self.index(ExprKind::Call(function, vec![a, b]))
    }

    fn compare(self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        Expr { ty: Type::Bool, ..self.binary(op, a, b) }
    }

    fn clamp(self, at: Expr, first: Expr, last: Expr) -> Expr {
        self.call(MathFunction::Min, self.call(MathFunction::Max, at, first), last)
    }

    /// A period more where the value is negative.
    fn raised(self, value: Expr, period: Expr) -> Expr {
        let negative = self.compare(BinaryOp::Lt, value.clone(), self.int(0));
        let more = self.add(value.clone(), period);
        self.index(ExprKind::If(Box::new(negative), Box::new(more), Box::new(value)))
    }

    fn bind(self, id: LocalId, value: Expr, body: Expr) -> Expr {
        let (ty, span) = (body.ty, self.span);
        Expr { kind: ExprKind::Let(id, Box::new(value), Box::new(body)), ty, span }
    }
}
