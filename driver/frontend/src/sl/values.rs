//! Expressions of C to typed ones, with C's conversions. Integers that are known are computed here,
//! so that counters of loops can stand in offsets and indices.

use super::lower::{Cell, Lower};
use super::tree::{Expr as Tree, ExprKind as TreeKind};
use super::types::{self, common, convert, integer};
use crate::ast::{Name, Spanned};
use crate::diagnostics::Diagnostic;
use crate::program::{BinaryOp, Expr, ExprKind, Type, UnaryOp};
use crate::source::Span;
use stencil_runtime::array::Element;

impl Lower<'_> {
    /// The value of an expression, a number or a condition; none where something is wrong.
    fn value(&mut self, tree: &Tree) -> Option<Expr> {
        let span = tree.span;
        let deep = self.enter(span) && self.spend(1, span);
        let value = if deep { self.value_of(tree, span) } else { None };
        self.level -= 1;
        value
    }

    fn value_of(&mut self, tree: &Tree, span: Span) -> Option<Expr> {
        match &tree.node {
            TreeKind::Int { value, element } => Some(integer((*value).into(), *element, span)),
            TreeKind::Float { text, element } => {
                let value = match element {
                    Element::F32 => f64::from(text.parse::<f32>().ok()?),
                    _ => text.parse().ok()?,
                };
                Some(Expr { kind: ExprKind::Float(value), ty: Type::Element(*element), span })
            }
            TreeKind::Name(name) => self.named(&Name::new(name.clone(), span)),
            TreeKind::Member(base, member) => self.member(base, member, span),
            TreeKind::Index(name, index) => {
                let index = (self.number(index), index.span);
                let place = self.array(name)?;
                let element = self.element_of(place, name, Some(index))?;
                self.cell(place, element, &Name::new(name.node.clone(), span))
            }
            TreeKind::Call(name, arguments) => self.call(name, arguments, span),
            TreeKind::Cast(element, value) => {
                self.number(value).map(|value| Expr { span, ..convert(value, *element) })
            }
            TreeKind::Plus(value) => {
                let value = self.number(value)?;
                let element = types::element(&value);
                Some(convert(value, element))
            }
            TreeKind::Unary(op, value) => self.unary(*op, value, span),
            TreeKind::Binary(op, left, right) => match op.node {
                BinaryOp::And | BinaryOp::Or => {
                    let (left, right) = (self.condition(left), self.condition(right));
                    Some(logical(op.node, left?, right?, span))
                }
                _ => {
                    let (left, right) = (self.value(left), self.value(right));
                    self.arithmetic(op, left?, right?, span)
                }
            },
            TreeKind::If(condition, yes, no) => {
                let condition = self.condition(condition);
                let (yes, no) = (self.number(yes), self.number(no));
                let (condition, yes, no) = (condition?, yes?, no?);
                let element = common(types::element(&yes), types::element(&no));
                let (yes, no) = (convert(yes, element), convert(no, element));
                Some(match condition.kind {
                    ExprKind::Bool(true) => yes,
                    ExprKind::Bool(false) => no,
                    _ => Expr { span, ..self.choose(condition, yes, no) },
                })
            }
        }
    }

    /// A number; a condition stays one until it is converted.
    pub(super) fn number(&mut self, tree: &Tree) -> Option<Expr> {
        let value = self.value(tree)?;
        let element = types::element(&value);
        Some(convert(value, element))
    }

    /// A condition.
    pub(super) fn condition(&mut self, tree: &Tree) -> Option<Expr> {
        self.value(tree).map(types::condition)
    }

    /// A variable, a scalar, or a name with a meaning of its own.
    fn named(&mut self, name: &Name) -> Option<Expr> {
        let found = self.variables.iter().rposition(|variable| variable.name == name.node);
        if let Some(place) = found {
            if self.variables.get(place).is_some_and(|variable| variable.array) {
                let message = format!("`{}` is an array", name.node);
                let error = Diagnostic::error(message, name.span, "no index");
                self.report(error.help(format!("choose an element, as in `{}[0]`", name.node)));
                return None;
            }
            return self.cell(place, 0, name);
        }
        if let Some((id, element, _)) = self.context.scalars.get(&name.node) {
            let kind = ExprKind::Scalar(*id);
            return Some(Expr { kind, ty: Type::Element(*element), span: name.span });
        }
        self.own_name(name)
    }

    /// The place of an array.
    fn array(&mut self, name: &Name) -> Option<usize> {
        let found = self.variables.iter().rposition(|variable| variable.name == name.node);
        if found.is_none() {
            let error = if self.context.scalars.contains_key(&name.node) {
                Diagnostic::error(format!("`{}` is no array", name.node), name.span, "")
            } else {
                self.unknown(name)
            };
            if !self.names_lost {
                self.report(error);
            }
        }
        found
    }

    /// The place of an element in its variable.
    pub(super) fn element_of(
        &mut self,
        place: usize,
        name: &Name,
        index: Option<(Option<Expr>, Span)>,
    ) -> Option<usize> {
        let variable = self.variables.get(place)?;
        let (array, count, declared) = (variable.array, variable.cells.len(), variable.span);
        let Some((index, span)) = index else {
            if array {
                let message = format!("`{}` is an array", name.node);
                let error = Diagnostic::error(message, name.span, "no index");
                self.report(error.see(declared, "declared here"));
            }
            return (!array).then_some(0);
        };
        if !array {
            let error = Diagnostic::error(format!("`{}` is no array", name.node), name.span, "");
            self.report(error.see(declared, "declared here"));
            return None;
        }
        let ExprKind::Int(number) = index?.kind else {
            let error = Diagnostic::error("the index of a local array is a constant", span, "");
            self.report(error.help("use numbers, counters of loops and operators on them"));
            return None;
        };
        let found = usize::try_from(number).ok().filter(|number| *number < count);
        if found.is_none() {
            let message = format!("`{}` has the elements 0 to {}", name.node, count - 1);
            let error = Diagnostic::error(message, span, format!("element {number}"));
            self.report(error.see(declared, "declared here"));
        }
        found
    }

    /// The value of a variable or an element.
    pub(super) fn cell(&mut self, place: usize, index: usize, name: &Name) -> Option<Expr> {
        let variable = self.variables.get(place)?;
        let declared = variable.span;
        let error = match variable.cells.get(index)? {
            Cell::Value(value) => return Some(Expr { span: name.span, ..value.clone() }),
            Cell::Broken => return None,
            Cell::Unset => {
                Diagnostic::error(format!("`{}` has no value yet", name.node), name.span, "")
            }
            Cell::Maybe => {
                let message = format!("`{}` may have no value here", name.node);
                Diagnostic::error(message, name.span, "assigned on one way through an `if` alone")
            }
        };
        self.report(error.see(declared, "declared here").help("give it one where it is declared"));
        None
    }

    fn unary(&mut self, op: UnaryOp, value: &Tree, span: Span) -> Option<Expr> {
        if op == UnaryOp::Not {
            let value = self.condition(value)?;
            let kind = match value.kind {
                ExprKind::Bool(value) => ExprKind::Bool(!value),
                _ => ExprKind::Unary(UnaryOp::Not, Box::new(value)),
            };
            return Some(Expr { kind, ty: Type::Bool, span });
        }
        let value = self.number(value)?;
        let element = types::element(&value);
        if op == UnaryOp::Inverse && element.is_float() {
            let message = format!("`~` works on integers, and this is a {}", types::name(element));
            self.report(Diagnostic::error(message, span, ""));
            return None;
        }
        Some(match (op, &value.kind) {
            (UnaryOp::Neg, ExprKind::Int(value)) => integer(-value, element, span),
            (UnaryOp::Inverse, ExprKind::Int(value)) => integer(!value, element, span),
            (UnaryOp::Neg, ExprKind::Float(number)) => {
                Expr { kind: ExprKind::Float(-number), ty: value.ty, span }
            }
            _ => {
                let ty = value.ty;
                Expr { kind: ExprKind::Unary(op, Box::new(value)), ty, span }
            }
        })
    }

    /// An operator on two numbers, after C's conversions.
    pub(super) fn arithmetic(
        &mut self,
        op: &Spanned<BinaryOp>,
        left: Expr,
        right: Expr,
        span: Span,
    ) -> Option<Expr> {
        let (a, b) = (types::element(&left), types::element(&right));
        // A shift has the type of what is shifted.
        let element = if op.node.is_shift() { a } else { common(a, b) };
        if element.is_float() && op.node.is_bitwise() || op.node.is_shift() && b.is_float() {
            let sign = crate::ast::symbol(op.node);
            let float = types::name(if a.is_float() { a } else { b });
            let message = format!("`{sign}` works on integers, and one side is a {float}");
            self.report(Diagnostic::error(message, op.span, "").help("convert it: `(int) a`"));
            return None;
        }
        if element.is_float() && op.node == BinaryOp::Rem {
            let error = Diagnostic::error("`%` works on integers in C", op.span, "");
            self.report(error.help("write `fmod(a, b)`"));
            return None;
        }
        let bits = if element.size() == 4 { 32 } else { 64 };
        if let (true, ExprKind::Int(count)) = (op.node.is_shift(), &right.kind)
            && !(0..bits).contains(count)
        {
            let message = format!("a shift by {count} of a type of {bits} bits");
            let error = Diagnostic::error(message, right.span, format!("not 0 to {}", bits - 1));
            let wider = if bits == 32 { ", or convert to a wider type: `(int64) a`" } else { "" };
            self.report(error.help(format!("shift by less{wider}")));
            return None;
        }
        let (left, right) = (convert(left, element), convert(right, element));
        let zero = right.kind == ExprKind::Int(0);
        if zero && matches!(op.node, BinaryOp::Div | BinaryOp::Rem) {
            self.report(Diagnostic::error("division by zero", op.span, "the right side is 0"));
            return None;
        }
        if let (ExprKind::Int(a), ExprKind::Int(b)) = (&left.kind, &right.kind)
            && let Some(value) = known(op.node, *a, *b, (element, span))
        {
            return Some(value);
        }
        let comparison = matches!(
            op.node,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        );
        let ty = if comparison { Type::Bool } else { Type::Element(element) };
        let kind = ExprKind::Binary(op.node, Box::new(left), Box::new(right));
        Some(Expr { kind, ty, span })
    }

    /// A member of `input_size`.
    fn member(&mut self, base: &Tree, member: &Name, span: Span) -> Option<Expr> {
        let TreeKind::Name(name) = &base.node else { return None };
        if name != "input_size" {
            let error = Diagnostic::error(format!("`{name}` has no members"), base.span, "");
            self.report(error.help("the only structure is `input_size`"));
            return None;
        }
        let axis = ["x", "y", "z"].iter().position(|axis| *axis == member.node);
        let Some(id) = axis.and_then(|axis| self.context.sizes.get(axis)) else {
            let count = self.context.sizes.len();
            let message = format!("`input_size` has no member `{}`", member.node);
            let error = Diagnostic::error(message, member.span, "");
            let axes = ["x", "y", "z"].get(..count).unwrap_or_default().join(", ");
            self.report(error.note(format!("with {count} dimensions its members are {axes}")));
            return None;
        };
        let index = Expr { kind: ExprKind::Param(*id), ty: Type::Element(Element::I64), span };
        Some(convert(index, Element::I32))
    }
}

/// The value of an operator on integers that are known.
fn known(op: BinaryOp, a: i128, b: i128, (element, span): (Element, Span)) -> Option<Expr> {
    let compared = |holds: bool| Some(Expr { kind: ExprKind::Bool(holds), ty: Type::Bool, span });
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b)?,
        BinaryOp::Rem => a.checked_rem(b)?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Shl => a.checked_shl(u32::try_from(b).ok()?)?,
        BinaryOp::Shr => a.checked_shr(u32::try_from(b).ok()?)?,
        BinaryOp::Eq => return compared(a == b),
        BinaryOp::Ne => return compared(a != b),
        BinaryOp::Lt => return compared(a < b),
        BinaryOp::Le => return compared(a <= b),
        BinaryOp::Gt => return compared(a > b),
        BinaryOp::Ge => return compared(a >= b),
        BinaryOp::And | BinaryOp::Or => return None,
    };
    Some(integer(value, element, span))
}

/// `a && b` and `a || b` of conditions.
fn logical(op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
    let decides = op == BinaryOp::Or;
    match (&left.kind, &right.kind) {
        (ExprKind::Bool(value), _) if *value == decides => left,
        (_, ExprKind::Bool(value)) if *value == decides => right,
        (ExprKind::Bool(_), _) => right,
        (_, ExprKind::Bool(_)) => left,
        _ => Expr {
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty: Type::Bool,
            span,
        },
    }
}
