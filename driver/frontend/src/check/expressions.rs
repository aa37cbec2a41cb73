//! Types of expressions: names, operators, `if`, blocks.

use super::aggregates::Tree;
use super::names::Symbol;
use super::{Binding, Checker, LocalName};
use crate::ast::{self, BinaryOp, Name, Spanned, UnaryOp};
use crate::diagnostics::Diagnostic;
use crate::program::{Expr, ExprKind, LocalId, Type};
use crate::source::Span;
use stencil_runtime::array::Element;

/// A checked expression that may still be free to take a type.
#[derive(Clone, Debug)]
pub struct Value {
    /// The expression; its type is provisional where it is made of literals alone.
    pub expr: Expr,
    /// What it is made of, where that is literals alone.
    pub literal: Option<Literal>,
}

/// Literals without a type yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Literal {
    /// Integers only: they fit any number type.
    Int,
    /// At least one float.
    Float,
}

impl Value {
    /// A value that has its type.
    pub fn typed(kind: ExprKind, ty: Type, span: Span) -> Self {
        Self { expr: Expr { kind, ty, span }, literal: None }
    }
}

const I64: Type = Type::Element(Element::I64);

impl Checker<'_> {
    /// Checks an expression; `None` after an error.
    pub(super) fn tree(&mut self, expr: &ast::Expr) -> Option<Tree> {
        let span = expr.span;
        match &expr.node {
            ast::ExprKind::Int(value) => Some(Tree::One(self.int_literal(*value, span))),
            ast::ExprKind::Float(text) => self.float_literal(text, span).map(Tree::One),
            ast::ExprKind::Name(name) => self.variable(name, span),
            ast::ExprKind::Access { field, primed, offsets } => {
                self.access(field, *primed, offsets, span)
            }
            ast::ExprKind::Call { name, arguments } if name.node == "vec" => {
                self.vec_literal(arguments, span)
            }
            ast::ExprKind::Call { name, arguments } => self.call(name, arguments, span),
            ast::ExprKind::Struct { name, members } => self.struct_literal(name, members, span),
            ast::ExprKind::Member(inner, name) => self.member(inner, name, span),
            ast::ExprKind::Lane(inner, lane) => self.lane(inner, lane, span),
            ast::ExprKind::Unary(op, value) => self.unary(*op, value, span),
            ast::ExprKind::Binary(..) => self.chain(expr),
            ast::ExprKind::If(condition, yes, no) => self.conditional(condition, yes, no, span),
            ast::ExprKind::Block(lets, body) => self.block(lets, body, span),
            ast::ExprKind::Fold(fold) => self.fold(fold, span),
            ast::ExprKind::Broken => {
                self.sound = false;
                None
            }
        }
    }

    /// A name that stands alone.
    fn variable(&mut self, name: &str, span: Span) -> Option<Tree> {
        if let Some(number) = self.number_of_range(name) {
            return Some(Tree::One(super::folds::literal(number, span)));
        }
        if let Some(local) = self.scope.locals.iter().rev().find(|local| local.name == name) {
            return match local.binding.clone() {
                Binding::Value(tree) => Some(tree.named_at(span)),
                Binding::Poisoned => None,
            };
        }
        let named = |known: &Option<Name>| known.as_ref().is_some_and(|known| known.node == name);
        if let Some(dimension) = self.scope.coordinates.iter().position(named) {
            return Some(Tree::One(Value::typed(ExprKind::Coordinate(dimension), I64, span)));
        }
        if let Some(field) = self.scope.rule.filter(|_| name == "nearest") {
            return self.cell(field, span, ExprKind::Nearest);
        }
        if let Ok(known) = name.parse::<bool>() {
            return Some(Tree::One(Value::typed(ExprKind::Bool(known), Type::Bool, span)));
        }
        if name == "t" {
            return Some(Tree::One(Value::typed(ExprKind::Step, I64, span)));
        }
        let what = match self.resolve(name, span)? {
            Symbol::Param(id) => {
                let kind = match self.program.params.get(id)?.value {
                    Some(value) => ExprKind::Int(value.into()),
                    None => ExprKind::Param(id),
                };
                return Some(Tree::One(Value::typed(kind, I64, span)));
            }
            Symbol::Scalar(id) => return self.scalar_value(id, span).map(Tree::One),
            Symbol::Reduction(id) => return self.reduction_value(id, name, span).map(Tree::One),
            Symbol::Field(id) => {
                let grid = self.program.fields.get(id).map(|field| field.grid);
                let grid = grid.and_then(|grid| self.program.grids.get(grid));
                let zeros = vec!["0"; grid.map_or(1, |grid| grid.region.lower.len())].join(", ");
                let error =
                    Diagnostic::error(format!("`{name}` is a field, not a value"), span, "");
                self.report(
                    error.help(format!("its value at the present point is `{name}[{zeros}]`")),
                );
                return None;
            }
            other => other.describe(),
        };
        self.report(Diagnostic::error(format!("`{name}` is {what}, not a value"), span, ""));
        None
    }

    fn unary(&mut self, op: UnaryOp, inner: &ast::Expr, span: Span) -> Option<Tree> {
        let value = match self.tree(inner)? {
            Tree::One(value) => value,
            Tree::Vec(lanes) if op != UnaryOp::Inverse => return self.turned(op, lanes, span),
            _ => {
                let message = "an operator that takes no structs, and no vecs but `-` and `!`";
                self.report(
                    Diagnostic::error(message, span, "").help("take the parts: `.name`, `.0`"),
                );
                return None;
            }
        };
        let ty = value.expr.ty;
        match (op, ty) {
            (UnaryOp::Neg, Type::Element(_)) | (UnaryOp::Not, Type::Bool) => {}
            (UnaryOp::Inverse, Type::Element(element)) => {
                if value.literal.is_none() && !self.has_bits("~", element, span) {
                    return None;
                }
            }
            (UnaryOp::Neg | UnaryOp::Inverse, Type::Bool) => {
                let what = if op == UnaryOp::Neg { "negative" } else { "bits" };
                let error = Diagnostic::error(format!("a condition has no {what}"), span, "");
                self.report(error.help("the opposite of a condition is `!`"));
                return None;
            }
            (UnaryOp::Not, Type::Element(_)) => {
                let message = "`!` takes a condition, not a number";
                let error = Diagnostic::error(message, inner.span, "a number");
                let help = "compare it, as in `x == 0`; the bits of an integer are turned by `~`";
                self.report(error.help(help));
                return None;
            }
        }
        let expr = Expr { kind: ExprKind::Unary(op, Box::new(value.expr)), ty, span };
        Some(Tree::One(Value { expr, literal: value.literal }))
    }

    /// Infix operators, down the left side in a loop: sums may be long.
    fn chain(&mut self, whole: &ast::Expr) -> Option<Tree> {
        let mut steps = Vec::new();
        let mut first = whole;
        while let ast::ExprKind::Binary(op, left, right) = &first.node {
            steps.push((op, right, first.span));
            first = left;
        }
        let mut left = self.tree(first);
        for (op, right, span) in steps.into_iter().rev() {
            // Both sides are looked at before giving up: they may both be wrong.
            let right = self.tree(right);
            left = match (left, right) {
                (Some(left), Some(right)) => self.combine(op, left, right, span),
                _ => None,
            };
        }
        left
    }

    pub(super) fn binary(
        &mut self,
        op: &Spanned<BinaryOp>,
        left: Value,
        right: Value,
        span: Span,
    ) -> Option<Value> {
        let logical = matches!(op.node, BinaryOp::And | BinaryOp::Or);
        let compares = ast::precedence(op.node) == ast::COMPARISON;
        let both = left.expr.ty == Type::Bool && right.expr.ty == Type::Bool;
        if both && matches!(op.node, BinaryOp::Eq | BinaryOp::Ne) {
            return Some(self.same(op.node == BinaryOp::Eq, left.expr, right, span));
        }
        for side in [&left, &right] {
            let fits = (side.expr.ty == Type::Bool) == logical;
            if !fits {
                let symbol = ast::symbol(op.node);
                let (needs, found, help) = match logical {
                    true => ("conditions", "a number", "compare it, as in `x != 0`"),
                    false if both || !matches!(op.node, BinaryOp::Eq | BinaryOp::Ne) => {
                        ("numbers", "a condition", "join conditions with `&&`, `||` and `!`")
                    }
                    false => {
                        let help =
                            "compare it with `true` or `false`, or convert it, as in `i32(c)`";
                        ("two numbers or two conditions", "a condition", help)
                    }
                };
                let message = format!("`{symbol}` takes {needs}");
                let error = Diagnostic::error(message, side.expr.span, found).see(op.span, "");
                self.report(error.help(help));
                return None;
            }
        }
        if logical {
            let kind = ExprKind::Binary(op.node, Box::new(left.expr), Box::new(right.expr));
            return Some(Value::typed(kind, Type::Bool, span));
        }
        let what = format!("the operands of `{}`", ast::symbol(op.node));
        // A param that is fixed as 0 divides as it would at run time.
        let written = right.literal.is_some();
        let (mut left, mut right, mut literal) = self.unify(left, right, &what)?;
        if compares && literal.is_some() {
            // A comparison has no context that could give its operands a type.
            left = self.settle(Value { expr: left, literal })?;
            right = self.settle(Value { expr: right, literal })?;
        }
        let integers = matches!(left.ty, Type::Element(element) if !element.is_float());
        if matches!(op.node, BinaryOp::Div | BinaryOp::Rem)
            && written
            && right.kind == ExprKind::Int(0)
            && (integers || literal == Some(Literal::Int))
        {
            let error = Diagnostic::error("division by zero", right.span, "always zero");
            self.report(error.see(op.span, "").help("divide by something else"));
            return None;
        }
        if literal.is_none() && !self.bits_fit(op.node, &right, written, span) {
            return None;
        }
        let ty = if compares { Type::Bool } else { left.ty };
        if compares {
            literal = None;
        }
        let kind = ExprKind::Binary(op.node, Box::new(left), Box::new(right));
        Some(Value { expr: Expr { kind, ty, span }, literal })
    }

    /// Whether two conditions are the same, or not the same.
    fn same(&mut self, same: bool, left: Expr, right: Value, span: Span) -> Value {
        let right = self.shared(right).expr;
        let not = ExprKind::Unary(UnaryOp::Not, Box::new(right.clone()));
        let not = Expr { kind: not, ty: Type::Bool, span: right.span };
        let (yes, no) = if same { (right, not) } else { (not, right) };
        let kind = ExprKind::If(Box::new(left), Box::new(yes), Box::new(no));
        Value::typed(kind, Type::Bool, span)
    }

    /// Brings two values to one type; `what` names them in the error. Two values of literals
    /// stay open, at the wider kind.
    pub(super) fn unify(
        &mut self,
        left: Value,
        right: Value,
        what: &str,
    ) -> Option<(Expr, Expr, Option<Literal>)> {
        match (left.literal, right.literal) {
            (Some(a), Some(b)) => {
                let (mut left, mut right) = (left.expr, right.expr);
                let wider = if left.ty == Type::Element(Element::F64) { left.ty } else { right.ty };
                (left.ty, right.ty) = (wider, wider);
                Some((left, right, Some(a.max(b))))
            }
            (Some(_), None) => {
                let ty = self.number(&right.expr, what)?;
                Some((self.adopt(left, ty)?, right.expr, None))
            }
            (None, Some(_)) => {
                let ty = self.number(&left.expr, what)?;
                Some((left.expr, self.adopt(right, ty)?, None))
            }
            (None, None) if left.expr.ty == right.expr.ty => Some((left.expr, right.expr, None)),
            (None, None) => {
                self.mismatch(&left.expr, &right.expr, what);
                None
            }
        }
    }

    /// The type of a value beside a literal, which must be a number.
    fn number(&mut self, expr: &Expr, what: &str) -> Option<Type> {
        if expr.ty == Type::Bool {
            let message = format!("{what} are a condition and a number");
            let error = Diagnostic::error(message, expr.span, "a condition");
            self.report(error.help("choose two numbers: `if condition then 1 else 0`"));
            return None;
        }
        Some(expr.ty)
    }

    /// Two types where one is needed, with the conversion that is most likely meant: an integer
    /// becomes a float, and a float the type that the value is computed in.
    fn mismatch(&mut self, left: &Expr, right: &Expr, what: &str) {
        let (Type::Element(a), Type::Element(b)) = (left.ty, right.ty) else {
            let _ = self.number(if left.ty == Type::Bool { left } else { right }, what);
            return;
        };
        // Integers before floats, short ones before long ones, signed ones before unsigned ones.
        let rank = |element: Element| match element {
            other if Some(other) == self.scope.wanted => 100,
            other => {
                50 * usize::from(other.is_float())
                    + 2 * other.size()
                    + usize::from(other.is_unsigned() || other == Element::Bf16)
            }
        };
        let (convert, keep, target) =
            if rank(a) < rank(b) { (left, right, b) } else { (right, left, a) };
        let name = |expr: &Expr| match expr.ty {
            Type::Element(element) => element.name(),
            Type::Bool => "a condition",
        };
        let message = format!("{what} have different types: {} and {}", a.name(), b.name());
        let error = Diagnostic::error(message, convert.span, name(convert))
            .see(keep.span, name(keep))
            .help(format!("convert one: `{}`", self.cast_text(target, convert.span)));
        self.report(error);
    }

    /// The text of a conversion, for a remedy.
    pub(super) fn cast_text(&self, to: Element, span: Span) -> String {
        let text = self.source.slice(span);
        let inner = match text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(inner) if !inner.contains(['(', ')']) => inner,
            _ => text,
        };
        let inner = if inner.len() > 40 || inner.contains('\n') { "..." } else { inner };
        format!("{}({inner})", to.name())
    }

    /// A condition of `if`.
    fn condition(&mut self, condition: &ast::Expr) -> Option<Expr> {
        let value = self.expression(condition)?;
        if value.expr.ty != Type::Bool {
            let error = Diagnostic::error(
                "`if` takes a condition, not a number",
                condition.span,
                "a number",
            );
            self.report(error.help("compare it, as in `x != 0`"));
            return None;
        }
        Some(value.expr)
    }

    fn conditional(
        &mut self,
        condition: &ast::Expr,
        yes: &ast::Expr,
        no: &ast::Expr,
        span: Span,
    ) -> Option<Tree> {
        let parts = (self.condition(condition), self.tree(yes), self.tree(no));
        let (Some(mut condition), Some(yes), Some(no)) = parts else {
            return None;
        };
        if !matches!((&yes, &no), (Tree::One(_), Tree::One(_))) {
            condition = self.hoist(condition);
        }
        self.choose(&condition, yes, no, span)
    }

    /// `{ let x = value; body }`. What is bound stands around a body that is one value, and else in
    /// what is around the block: all components share it.
    fn block(&mut self, lets: &[(Name, ast::Expr)], body: &ast::Expr, span: Span) -> Option<Tree> {
        let outer = self.scope.locals.len();
        self.scope.frames.push(Vec::new());
        self.bind_all(lets);
        let body = self.tree(body);
        self.scope.locals.truncate(outer);
        let bound = self.scope.frames.pop().unwrap_or_default();
        self.with_bound(body?, bound, span)
    }

    /// `let x = value;` for each, in the innermost block that is open, or in the piece.
    pub(super) fn bind_all(&mut self, lets: &[(Name, ast::Expr)]) {
        for (name, value) in lets {
            let tree = self.tree(value).and_then(|tree| self.bound(tree));
            self.bind(name, tree.into());
        }
    }

    /// A body with what is bound around it.
    pub(super) fn with_bound(
        &mut self,
        body: Tree,
        bound: Vec<(LocalId, Expr)>,
        span: Span,
    ) -> Option<Tree> {
        match body {
            Tree::One(Value { mut expr, literal }) => {
                for (id, value) in bound.into_iter().rev() {
                    let ty = expr.ty;
                    expr =
                        Expr { kind: ExprKind::Let(id, Box::new(value), Box::new(expr)), ty, span };
                }
                Some(Tree::One(Value { expr, literal }))
            }
            tree => {
                match self.scope.frames.last_mut() {
                    Some(frame) => frame.extend(bound),
                    None => self.scope.frames.push(bound),
                }
                Some(tree)
            }
        }
    }

    /// Several literals together take the type that the piece computes in, where they fit it.
    pub(super) fn let_value(&mut self, value: Value) -> Option<Expr> {
        match (value.literal, self.scope.wanted) {
            (Some(_), Some(wanted)) => self.adopt(value, Type::Element(wanted)),
            _ => self.settle(value),
        }
    }

    fn bind(&mut self, name: &Name, binding: Binding) {
        let local = self.scope.locals.iter().find(|local| local.name == name.node);
        let coordinate =
            self.scope.coordinates.iter().flatten().find(|known| known.node == name.node);
        let earlier = local.map(|local| local.span).or(coordinate.map(|known| known.span));
        if let Some(earlier) = earlier {
            let message = format!("`{}` has a meaning here already", name.node);
            let error = Diagnostic::error(message, name.span, "again here");
            self.report(error.see(earlier, "first here").help("choose another name"));
        }
        let free = earlier.is_none() && self.is_free(name);
        let binding = if free { binding } else { Binding::Poisoned };
        self.scope.locals.push(LocalName { name: name.node.clone(), span: name.span, binding });
    }
}

/// A single literal, with or without a sign.
pub(super) fn is_literal(value: &Value) -> bool {
    let kind = match &value.expr.kind {
        ExprKind::Unary(UnaryOp::Neg, inner) => &inner.kind,
        other => other,
    };
    value.literal.is_some() && matches!(kind, ExprKind::Int(_) | ExprKind::Float(_))
}
