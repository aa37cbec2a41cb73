//! Accesses of fields, and calls: casts, math functions, absolute reads.

use super::aggregates::Tree;
use super::complex::Complex;
use super::expressions::{Literal, Value};
use super::names::{MATH, Symbol};
use super::sweep_order::{Primed, is_before};
use super::types::{as_number, not_zero};
use super::{Checker, OFFSET, Read};
use crate::ast::{self, Name};
use crate::diagnostics::Diagnostic;
use crate::program::{Boundary, Expr, ExprKind, FieldId, MathFunction, Type};
use crate::source::Span;
use stencil_runtime::array::Element;

impl Checker<'_> {
    /// Reports `A[i-1, j]`, where every offset counts from the coordinate of its dimension.
    fn counts_from_coordinates(
        &mut self,
        name: &Name,
        primed: bool,
        offsets: &[ast::Expr],
    ) -> bool {
        if !matches!(self.symbols.get(&name.node), Some((Symbol::Field(_), _))) {
            return false;
        }
        let from = |expr: &ast::Expr, coordinate: &Option<Name>| {
            let is_own = |expr: &ast::Expr| {
                let known = coordinate.as_ref().map(|known| known.node.as_str());
                matches!(&expr.node, ast::ExprKind::Name(name) if Some(name.as_str()) == known)
            };
            match &expr.node {
                ast::ExprKind::Binary(op, left, right) if is_own(left) => {
                    let ast::ExprKind::Int(by) = right.node else { return None };
                    match op.node {
                        ast::BinaryOp::Add => Some(by.to_string()),
                        ast::BinaryOp::Sub if by > 0 => Some(format!("-{by}")),
                        ast::BinaryOp::Sub => Some(by.to_string()),
                        _ => None,
                    }
                }
                _ => is_own(expr).then(|| "0".to_owned()),
            }
        };
        let counted =
            offsets.iter().zip(&self.scope.coordinates).map(|(expr, own)| from(expr, own));
        let Some(meant) = counted.collect::<Option<Vec<_>>>() else { return false };
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return false };
        if meant.len() != offsets.len() {
            return false;
        }
        let span = first.span.to(last.span);
        let message = format!(
            "the offsets of `{}` are coordinates, but they count from the present point",
            name.node
        );
        let error = Diagnostic::error(message, span, "");
        self.report(error.help(format!(
            "write `{}{}[{}]`",
            name.node,
            if primed { "'" } else { "" },
            meant.join(", ")
        )));
        true
    }

    /// The numbers of an access's offsets.
    fn offset(&mut self, name: &Name, primed: bool, offsets: &[ast::Expr]) -> Option<Vec<i64>> {
        if self.counts_from_coordinates(name, primed, offsets) {
            return None;
        }
        let each: Vec<_> = offsets.iter().map(|expr| self.constant(expr, OFFSET)).collect();
        each.into_iter().collect()
    }

    /// `A[o, o]` and `A'[o, o]`
    pub(super) fn access(
        &mut self,
        name: &Name,
        primed: bool,
        offsets: &[ast::Expr],
        span: Span,
    ) -> Option<Tree> {
        let offset = self.offset(name, primed, offsets);
        if self.scope.coordinates.iter().flatten().any(|known| known.node == name.node) {
            let message = format!("`{}` is a coordinate and takes no offsets", name.node);
            self.report(Diagnostic::error(message, name.span, "").help("write its name alone"));
            return None;
        }
        let field = match self.resolve_field(name)? {
            Symbol::Field(id) => id,
            other => {
                let message =
                    format!("`{}` is {} and takes no offsets", name.node, other.describe());
                self.report(Diagnostic::error(message, name.span, "").help("write its name alone"));
                return None;
            }
        };
        if self.reads_in_rule(name, span) {
            return None;
        }
        let declared = self.program.fields.get(field)?;
        let grid = self.program.grids.get(declared.grid)?;
        let dimensions = grid.region.lower.len();
        if offsets.len() != dimensions {
            let plural = |n: usize| if n == 1 { "" } else { "s" };
            let message = format!(
                "`{}` has {dimensions} dimension{}, but this access has {} offset{}",
                name.node,
                plural(dimensions),
                offsets.len(),
                plural(offsets.len())
            );
            let zeros = vec!["0"; dimensions].join(", ");
            let error = Diagnostic::error(message, span, "")
                .see(declared.span, format!("declared on `{}`", grid.name))
                .help(format!("its value at the present point is `{}[{zeros}]`", name.node));
            self.report(error);
            return None;
        }
        let offset = offset?;
        if let Some(rank) = self.scope.rank.filter(|rank| *rank != dimensions) {
            let message = format!(
                "`{}` has {}, but `{}` runs over {rank}",
                name.node,
                super::regions::count(dimensions),
                self.scope.function
            );
            let error = Diagnostic::error(message, span, "")
                .see(declared.span, format!("declared on `{}`", grid.name))
                .help(
                    "an offset counts from the present point, so the grids need as many \
                     dimensions as each other",
                );
            self.report(error);
            return None;
        }
        if primed && !self.may_be_primed(name, field, &offset, span) {
            return None;
        }
        self.scope.reads.push(Read {
            field,
            offset: offset.clone(),
            span,
            call: self.calls.first().cloned(),
        });
        self.cell(field, span, |field| ExprKind::Read {
            field,
            offset: offset.clone(),
            current: primed,
        })
    }

    /// Whether a primed read has a value of this sweep: its field is updated by the function, its
    /// point comes earlier in row-major order, and no boundary rule leads to another cell.
    fn may_be_primed(&mut self, name: &Name, field: FieldId, offset: &[i64], span: Span) -> bool {
        if self.scope.updates.contains(&field) {
            let read = Primed { name: name.node.clone(), offset: offset.to_vec(), span };
            self.scope.primed.push(read);
        }
        let error = if !self.scope.updates.contains(&field) {
            let message = format!(
                "`{}'` is primed, but `{}` does not update it",
                name.node, self.scope.function
            );
            let error = Diagnostic::error(message, span, "");
            error.help(format!("read its old value: `{}[...]`", name.node))
        } else if !is_before(offset) {
            // `sweep_order` tells of it, once all primed reads of the function are known.
            return false;
        } else if !self.rule_keeps_order(&name.node) {
            let message = format!(
                "the boundary rule of `{}` may lead a primed read to a cell of this sweep that is \
                 not computed yet",
                name.node
            );
            Diagnostic::error(message, span, "").help(
                "give the value outside by an expression without `nearest`, or shrink the box and \
                 leave the rule out",
            )
        } else {
            return true;
        };
        self.report(error);
        false
    }

    /// Whether a field has no boundary rule, or one that reads no cell.
    fn rule_keeps_order(&self, name: &str) -> bool {
        self.bounded.get(name).is_none_or(|_| {
            let fields = self.program.fields.values();
            let mut rules = fields.filter(|field| field.declared_name() == name);
            rules.all(|field| match &field.boundary {
                None => true,
                Some(Boundary::Value(value)) => !value.reads_nearest(),
                Some(_) => false,
            })
        })
    }

    /// `name(argument, ...)`
    pub(super) fn call(
        &mut self,
        name: &Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Tree> {
        if let Some(element) = Element::from_name(name) {
            return self.cast(element, name, arguments, span).map(Tree::One);
        }
        if name.node == "bool" {
            return self.truth(name, arguments, span).map(Tree::One);
        }
        if let Some((_, function, count)) = MATH.iter().find(|(known, ..)| *known == name.node) {
            return self.math(*function, *count, name, arguments, span).map(Tree::One);
        }
        if let Some(function) = Complex::named(name) {
            return self.complex(function, name, arguments, span);
        }
        match self.resolve(name, name.span)? {
            Symbol::Let(place) => return self.written_out(place, name, arguments, span),
            Symbol::Field(_) if self.reads_in_rule(name, span) => {}
            Symbol::Field(id) => return self.absolute(id, name, arguments, span),
            Symbol::Function => {
                let message = match self.scope.function == name.node {
                    true => format!("`{}` calls itself", name.node),
                    false => format!("`{}` cannot be called in an expression", name.node),
                };
                let error = Diagnostic::error(message, span, "");
                self.report(
                    error.help(
                        "functions run once a step, in order; read the field that it updates",
                    ),
                );
            }
            other => {
                let message =
                    format!("`{}` is {} and cannot be called", name.node, other.describe());
                let help = match other {
                    Symbol::Struct(_) => "write a value of it as `Name { member: value }`",
                    _ => "write its name alone",
                };
                self.report(Diagnostic::error(message, name.span, "").help(help));
            }
        }
        None
    }

    pub(super) fn arity(&mut self, wanted: usize, name: &Name, found: usize, span: Span) -> bool {
        if wanted == found {
            return true;
        }
        let plural = if wanted == 1 { "" } else { "s" };
        let message = format!("`{}` takes {wanted} argument{plural}, not {found}", name.node);
        let error = Diagnostic::error(message, span, "");
        self.report(match name.node.as_str() {
            "min" | "max" => error.help(format!("nest them: `{0}(a, {0}(b, c))`", name.node)),
            "atan2" => error.help("it takes y and x"),
            "pow" => error.help("it takes a number and its exponent"),
            _ => error,
        });
        false
    }

    fn cast(
        &mut self,
        to: Element,
        name: &Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Value> {
        if !self.arity(1, name, arguments.len(), span) {
            return None;
        }
        let value = self.expression(arguments.first()?)?;
        let ty = Type::Element(to);
        let expr = match value.literal {
            // A literal becomes one of the type; a float for an integer is cut off by the cast.
            Some(Literal::Int) => self.adopt(value, ty)?,
            Some(Literal::Float) if to.is_float() => self.adopt(value, ty)?,
            _ => self.settle(value)?,
        };
        if expr.ty == Type::Bool {
            return Some(Value { expr: as_number(expr, to), literal: None });
        }
        if expr.ty == ty {
            return Some(Value { expr: Expr { span, ..expr }, literal: None });
        }
        Some(Value::typed(ExprKind::Cast(Box::new(expr)), ty, span))
    }

    /// `bool(a)`: whether a number is not 0.
    fn truth(&mut self, name: &Name, arguments: &[ast::Expr], span: Span) -> Option<Value> {
        if !self.arity(1, name, arguments.len(), span) {
            return None;
        }
        let value = self.expression(arguments.first()?)?;
        let expr = self.settle(value)?;
        Some(Value { expr: Expr { span, ..not_zero(expr) }, literal: None })
    }

    fn math(
        &mut self,
        function: MathFunction,
        count: usize,
        name: &Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Value> {
        let values: Vec<_> = arguments.iter().map(|argument| self.expression(argument)).collect();
        if !self.arity(count, name, arguments.len(), span) {
            return None;
        }
        let values: Vec<Value> = values.into_iter().collect::<Option<_>>()?;
        let what = format!("the arguments of `{}`", name.node);
        // The first argument with a type gives it to the literals.
        let lead = values.iter().position(|value| value.literal.is_none());
        let (exprs, literal) = match lead.and_then(|lead| values.get(lead).cloned()) {
            Some(lead) => {
                let mut exprs = Vec::new();
                for value in values {
                    exprs.push(self.unify(lead.clone(), value, &what)?.1);
                }
                (exprs, None)
            }
            None => {
                let literal = values.iter().filter_map(|value| value.literal).max();
                let widest = match literal {
                    Some(Literal::Int) => Type::Element(Element::I64),
                    _ => Type::Element(Element::F64),
                };
                let exprs = values.into_iter().map(|value| Expr { ty: widest, ..value.expr });
                (exprs.collect::<Vec<_>>(), literal)
            }
        };
        let ty = exprs.first()?.ty;
        let Type::Element(element) = ty else {
            let message = format!("`{}` takes numbers, not conditions", name.node);
            let error = Diagnostic::error(message, span, "");
            self.report(error.help("convert them, as in `f32(c)`, which is 1 or 0"));
            return None;
        };
        if literal.is_none() && !self.takes(function, element, span) {
            return None;
        }
        let expr = Expr { kind: ExprKind::Call(function, exprs), ty, span };
        Some(Value { expr, literal })
    }

    /// Whether a math function works on a type.
    pub(super) fn takes(&mut self, function: MathFunction, element: Element, span: Span) -> bool {
        use MathFunction::{Abs, Max, Min, Sign};
        let any = matches!(function, Min | Max | Abs | Sign);
        if any || element.is_float() {
            return true;
        }
        let name =
            MATH.iter().find(|(_, known, _)| *known == function).map_or("", |(name, ..)| name);
        let message = format!("`{name}` takes floats, not {}", element.name());
        let error = Diagnostic::error(message, span, "");
        let float = self.scope.wanted.filter(|wanted| wanted.is_float()).unwrap_or(Element::F64);
        self.report(error.help(format!("convert the argument: `{name}({float}(...))`")));
        false
    }

    /// `K(e, e)`
    fn absolute(
        &mut self,
        field: FieldId,
        name: &Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Tree> {
        let places: Vec<_> = arguments.iter().map(|argument| self.place(name, argument)).collect();
        let declared = self.program.fields.get(field)?;
        let dimensions = self.program.grids.get(declared.grid)?.region.lower.len();
        if arguments.len() != dimensions {
            let message = format!(
                "`{}` has {}, but {} given",
                name.node,
                super::regions::count(dimensions),
                match arguments.len() {
                    1 => "1 coordinate is".to_owned(),
                    many => format!("{many} coordinates are"),
                }
            );
            let error = Diagnostic::error(message, span, "");
            self.report(error.help("give one coordinate a dimension, the slowest first"));
            return None;
        }
        let mut at: Vec<Expr> = places.into_iter().collect::<Option<_>>()?;
        if self.leaf_fields(field).len() > 1 {
            at = at.into_iter().map(|place| self.hoist(place)).collect();
        }
        self.gather_inside(field, &at, span);
        self.cell(field, span, |field| ExprKind::Gather { field, at: at.clone() })
    }

    /// A coordinate of an absolute read, as i64.
    fn place(&mut self, name: &Name, argument: &ast::Expr) -> Option<Expr> {
        let value = self.expression(argument)?;
        let wide = Type::Element(Element::I64);
        let float = match value.expr.ty {
            Type::Element(element) => element.is_float() && value.literal != Some(Literal::Int),
            Type::Bool => {
                let message = format!("a coordinate of `{}` is a condition", name.node);
                let error = Diagnostic::error(message, argument.span, "a condition");
                self.report(error.help("choose two integers: `if condition then 1 else 0`"));
                return None;
            }
        };
        if float {
            let message = format!("a coordinate of `{}` is a float", name.node);
            let error = Diagnostic::error(message, argument.span, "not an integer");
            self.report(
                error
                    .help(format!("cut it off: `{}`", self.cast_text(Element::I64, argument.span))),
            );
            return None;
        }
        let mut expr = if value.literal.is_some() { self.adopt(value, wide)? } else { value.expr };
        if expr.ty == Type::Element(Element::U64) {
            expr = self.within_i64(name, expr);
        }
        Some(match expr.ty {
            ty if ty == wide => expr,
            _ => Expr { span: expr.span, ty: wide, kind: ExprKind::Cast(Box::new(expr)) },
        })
    }

    /// A coordinate of u64, where those that no i64 holds count as its largest: beyond every grid.
    fn within_i64(&mut self, name: &Name, expr: Expr) -> Expr {
        if !self.bounded.contains_key(&name.node) && !self.range(&expr).upper.is_empty() {
            return expr; // The bounds keep it inside the grid.
        }
        let (ty, span) = (expr.ty, expr.span);
        let most = Expr { kind: ExprKind::Int(i64::MAX.into()), ty, span };
        Expr { kind: ExprKind::Call(MathFunction::Min, vec![expr, most]), ty, span }
    }
}
