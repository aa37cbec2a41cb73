//! Structs and vecs: taken apart into numbers, component by component.
//!
//! A field of such a type becomes one field of numbers for each of its leaves, and an expression
//! one expression for each. What several components share is bound once, as a `let` of the piece.

use super::expressions::Value;
use super::names::Symbol;
use super::types::Ty;
use super::{Binding, Checker};
use crate::ast::{self, BinaryOp, Name, Spanned};
use crate::diagnostics::Diagnostic;
use crate::program::{Expr, ExprKind, Type};
use crate::source::Span;

/// A value, taken apart.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A number or a condition.
    One(Value),
    /// The lanes of a vec; all have one type, or all are literals.
    Vec(Vec<Tree>),
    /// The members of a struct in order of declaration; each has its type.
    Struct(usize, Vec<Tree>),
}

impl Checker<'_> {
    /// What a value is, for messages.
    pub(super) fn describe(&self, tree: &Tree) -> String {
        match tree {
            Tree::One(Value { literal: Some(_), .. }) => "a number".into(),
            Tree::One(Value { expr: Expr { ty: Type::Element(element), .. }, .. }) => {
                element.to_string()
            }
            Tree::One(_) => "a condition".into(),
            Tree::Vec(lanes) => match lanes.first().map(|lane| self.describe(lane)).as_deref() {
                Some("a condition") => format!("vec<{}, bool>", lanes.len()),
                Some(lane) if !lane.starts_with("a ") => format!("vec<{}, {lane}>", lanes.len()),
                _ => format!("a vec of {}", lanes.len()),
            },
            Tree::Struct(id, _) => self.ty_name(&Ty::Struct(*id)),
        }
    }

    /// A number or a condition; an error where the value is a vec or a struct.
    pub(super) fn expression(&mut self, expr: &ast::Expr) -> Option<Value> {
        match self.tree(expr)? {
            Tree::One(value) => Some(value),
            other => {
                let message = format!("a number is needed here, not {}", self.describe(&other));
                let help = match &other {
                    Tree::Struct(id, _) => {
                        let first = self.structs.get(*id).and_then(|found| found.members.first());
                        format!("take a member, as in `.{}`", first.map_or("", |(name, _)| name))
                    }
                    _ => "take a lane, as in `.0`".into(),
                };
                self.report(Diagnostic::error(message, expr.span, "").help(help));
                None
            }
        }
    }

    /// Binds a value once, in the innermost block that is open, or in the piece.
    pub(super) fn hoist(&mut self, expr: Expr) -> Expr {
        let (id, ty, span) = (self.next_local(), expr.ty, expr.span);
        let range = self.range(&expr);
        self.scope.ranges.insert(id, range);
        match self.scope.frames.last_mut() {
            Some(frame) => frame.push((id, expr)),
            None => self.scope.frames.push(vec![(id, expr)]),
        }
        Expr { kind: ExprKind::Local(id), ty, span }
    }

    /// A value that several components use: bound once, unless it is a name or a literal.
    pub(super) fn shared(&mut self, value: Value) -> Value {
        use ExprKind::{Bool, Coordinate, Float, Int, Local, Param, Read, Scalar, Step};
        let leaf = |kind: &ExprKind| {
            matches!(
                kind,
                Float(_)
                    | Int(_)
                    | Bool(_)
                    | Read { .. }
                    | Scalar(_)
                    | Param(_)
                    | Coordinate(_)
                    | Step
                    | Local(_)
            )
        };
        if value.literal.is_some() || leaf(&value.expr.kind) {
            return value;
        }
        Value { expr: self.hoist(value.expr), literal: None }
    }

    /// `S { a: e, ... }`
    pub(super) fn struct_literal(
        &mut self,
        name: &Name,
        given: &[(Name, ast::Expr)],
        span: Span,
    ) -> Option<Tree> {
        let id = match self.symbols.get(&name.node) {
            Some((Symbol::Struct(id), _)) => *id,
            Some((Symbol::Poisoned, _)) => return None,
            _ => {
                self.unknown_type(name, name.span);
                return None;
            }
        };
        let members = self.structs.get(id)?.members.clone();
        let mut sound = true;
        let mut values: Vec<Option<Tree>> = vec![None; members.len()];
        let mut seen: Vec<&Name> = Vec::new();
        for (member, value) in given {
            let place = members.iter().position(|(known, _)| *known == member.node);
            if let Some(earlier) = seen.iter().find(|earlier| earlier.node == member.node) {
                let error = Diagnostic::error(
                    format!("`{}` is given twice", member.node),
                    member.span,
                    "again here",
                );
                self.report(error.see(earlier.span, "first here").help("leave one of them out"));
                sound = false;
            }
            seen.push(member);
            let Some((place, (_, ty))) = place.and_then(|place| Some((place, members.get(place)?)))
            else {
                let message = format!("`{}` has no member `{}`", name.node, member.node);
                let all: Vec<_> = members.iter().map(|(known, _)| known.as_str()).collect();
                let error = Diagnostic::error(message, member.span, "");
                self.report(error.help(format!("its members are {}", all.join(", "))));
                sound = false;
                continue;
            };
            let wanted = self.scope.wanted;
            self.scope.wanted = self.wanted(ty);
            let value_tree = self.tree(value);
            let exprs = value_tree.and_then(|tree| self.coerce(tree, ty, &member.node, value.span));
            self.scope.wanted = wanted;
            let Some(exprs) = exprs else {
                sound = false;
                continue;
            };
            let mut exprs = exprs.into_iter();
            let mut next = |ty| match exprs.next() {
                Some(expr) => Value { expr, literal: None },
                None => Value::typed(ExprKind::Int(0), ty, span),
            };
            let tree = self.assemble(ty, &mut next);
            if let Some(slot) = values.get_mut(place) {
                *slot = Some(tree);
            }
        }
        if !sound {
            return None;
        }
        let missing: Vec<_> = members
            .iter()
            .zip(&values)
            .filter(|(_, value)| value.is_none())
            .map(|((name, _), _)| name.as_str())
            .collect();
        if !missing.is_empty() {
            let message = format!("`{}` lacks {}", name.node, missing.join(", "));
            self.report(
                Diagnostic::error(message, span, "")
                    .help("a struct is written with all of its members"),
            );
            return None;
        }
        Some(Tree::Struct(id, values.into_iter().flatten().collect()))
    }

    /// `e.name`
    pub(super) fn member(&mut self, inner: &ast::Expr, name: &Name, span: Span) -> Option<Tree> {
        let tree = self.tree(inner)?;
        let Tree::Struct(id, parts) = tree else {
            let message = format!("`.{}` needs a struct, not {}", name.node, self.describe(&tree));
            let error = Diagnostic::error(message, span, "");
            self.report(match &tree {
                Tree::Vec(lanes) if lanes.len() > 1 => {
                    error.help(format!("its lanes are `.0` to `.{}`", lanes.len() - 1))
                }
                Tree::Vec(_) => error.help("its lane is `.0`"),
                _ => error.help("leave it out"),
            });
            return None;
        };
        let members = self.structs.get(id).map(|found| found.members.clone()).unwrap_or_default();
        let place = members.iter().position(|(known, _)| *known == name.node);
        if place.is_none() {
            let all: Vec<_> = members.iter().map(|(known, _)| known.as_str()).collect();
            let message =
                format!("`{}` has no member `{}`", self.ty_name(&Ty::Struct(id)), name.node);
            let error = Diagnostic::error(message, name.span, "");
            self.report(error.help(format!("its members are {}", all.join(", "))));
        }
        parts.into_iter().nth(place?)
    }

    /// An infix operator: of numbers and conditions, lane by lane of two vecs, or of a vec with a
    /// number.
    pub(super) fn combine(
        &mut self,
        op: &Spanned<BinaryOp>,
        left: Tree,
        right: Tree,
        span: Span,
    ) -> Option<Tree> {
        let lanewise =
            matches!(op.node, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div);
        let logical = matches!(op.node, BinaryOp::And | BinaryOp::Or);
        let pairs: Vec<(Tree, Tree)> = match (left, right) {
            (Tree::One(left), Tree::One(right)) => {
                return self.binary(op, left, right, span).map(Tree::One);
            }
            (Tree::Vec(left), Tree::Vec(right))
                if (lanewise || logical)
                    && left.len() == right.len()
                    && left.iter().zip(&right).all(|(a, b)| a.is_one() == b.is_one()) =>
            {
                left.into_iter().zip(right).collect()
            }
            (Tree::Vec(left), Tree::One(right)) if lanewise && right.expr.ty != Type::Bool => {
                let right = Tree::One(self.shared(right));
                left.into_iter().map(|lane| (lane, right.clone())).collect()
            }
            (Tree::One(left), Tree::Vec(right)) if lanewise && left.expr.ty != Type::Bool => {
                let left = Tree::One(self.shared(left));
                right.into_iter().map(|lane| (left.clone(), lane)).collect()
            }
            (left, right) => {
                let symbol = ast::symbol(op.node);
                let message = format!(
                    "`{symbol}` does not take {} and {}",
                    self.describe(&left),
                    self.describe(&right)
                );
                let error = Diagnostic::error(message, span, "").see(op.span, "");
                self.report(error.help(
                    "`+ - * /` work on two vecs of one type, and on a vec and a number, `&& ||` on \
                     two vecs of bool; else take the parts",
                ));
                return None;
            }
        };
        let lanes = pairs.into_iter().map(|(left, right)| self.combine(op, left, right, span));
        lanes.collect::<Option<_>>().map(Tree::Vec)
    }

    /// `if` of vecs or structs: one `if` for each component, of the same condition.
    pub(super) fn choose(
        &mut self,
        condition: &Expr,
        yes: Tree,
        no: Tree,
        span: Span,
    ) -> Option<Tree> {
        match (yes, no) {
            (Tree::One(yes), Tree::One(no)) => {
                let (yes, no, literal) = self.unify(yes, no, "the two values of `if`")?;
                let ty = yes.ty;
                let kind = ExprKind::If(Box::new(condition.clone()), Box::new(yes), Box::new(no));
                Some(Tree::One(Value { expr: Expr { kind, ty, span }, literal }))
            }
            (Tree::Vec(yes), Tree::Vec(no)) if yes.len() == no.len() => {
                let mut lanes = Vec::new();
                for (yes, no) in yes.into_iter().zip(no) {
                    lanes.push(self.choose(condition, yes, no, span)?);
                }
                Some(Tree::Vec(lanes))
            }
            (Tree::Struct(id, yes), Tree::Struct(other, no)) if id == other => {
                let parts =
                    yes.into_iter().zip(no).map(|(yes, no)| self.choose(condition, yes, no, span));
                Some(Tree::Struct(id, parts.collect::<Option<_>>()?))
            }
            (yes, no) => {
                let (yes, no) = (self.describe(&yes), self.describe(&no));
                let message =
                    format!("the two values of `if` have different types: {yes} and {no}");
                self.report(Diagnostic::error(message, span, ""));
                None
            }
        }
    }

    /// Binds the components of a `let`; literals stay free to take a type at each use.
    pub(super) fn bound(&mut self, tree: Tree) -> Option<Tree> {
        Some(match tree {
            Tree::One(value) if super::expressions::is_literal(&value) => Tree::One(value),
            Tree::One(value) => {
                let expr = self.let_value(value)?;
                Tree::One(Value { expr: self.hoist(expr), literal: None })
            }
            Tree::Vec(lanes) => {
                let lanes = lanes.into_iter().map(|lane| self.bound(lane));
                Tree::Vec(lanes.collect::<Option<_>>()?)
            }
            Tree::Struct(id, parts) => {
                let parts = parts.into_iter().map(|part| self.bound(part));
                Tree::Struct(id, parts.collect::<Option<_>>()?)
            }
        })
    }

    /// The expressions of a value that `name` takes, which holds the type.
    pub(super) fn coerce(
        &mut self,
        tree: Tree,
        ty: &Ty,
        name: &str,
        span: Span,
    ) -> Option<Vec<Expr>> {
        match (tree, ty) {
            (Tree::One(found), Ty::Number(element)) => {
                self.coerce_number(found, *element, name, span).map(|e| vec![e])
            }
            (Tree::One(Value { expr, literal: None }), Ty::Bool) if expr.ty == Type::Bool => {
                Some(vec![expr])
            }
            (Tree::Vec(lanes), Ty::Vec(count, of)) if lanes.len() == *count => {
                let lanes = lanes.into_iter().map(|lane| self.coerce(lane, of, name, span));
                Some(lanes.collect::<Option<Vec<_>>>()?.concat())
            }
            (Tree::Vec(lanes), Ty::Complex(element)) if lanes.len() == 2 => {
                let ty = Ty::Number(*element);
                let lanes = lanes.into_iter().map(|lane| self.coerce(lane, &ty, name, span));
                Some(lanes.collect::<Option<Vec<_>>>()?.concat())
            }
            (Tree::Struct(id, parts), Ty::Struct(wanted)) if id == *wanted => {
                let tree = Tree::Struct(id, parts);
                Some(tree.leaves().into_iter().map(|value| value.expr.clone()).collect())
            }
            (found, ty) => {
                let (holds, found) = (self.ty_name(ty), self.describe(&found));
                let message = format!("`{name}` holds {holds}, but the value is {found}");
                let error = Diagnostic::error(message, span, "");
                self.report(match ty {
                    Ty::Number(_) => error.help("take one of its parts"),
                    Ty::Bool => {
                        error.help("compare it, as in `x != 0`, or write `true` or `false`")
                    }
                    Ty::Vec(lanes, _) => error
                        .help(format!("write it out: `vec({})`", vec!["..."; *lanes].join(", "))),
                    Ty::Complex(_) => error.help("write it out: `vec(real, imaginary)`"),
                    Ty::Struct(_) => error.help(format!("write it out: `{holds} {{ ... }}`")),
                });
                None
            }
        }
    }
}

impl Tree {
    /// The numbers and conditions of a value in order.
    pub fn leaves(&self) -> Vec<&Value> {
        match self {
            Self::One(value) => vec![value],
            Self::Vec(parts) | Self::Struct(_, parts) => {
                parts.iter().flat_map(Self::leaves).collect()
            }
        }
    }

    /// Whether it is a number or a condition.
    fn is_one(&self) -> bool {
        matches!(self, Self::One(_))
    }

    /// Whether no part of it is free to take a type.
    pub fn is_typed(&self) -> bool {
        self.leaves().iter().all(|value| value.literal.is_none())
    }

    /// The value with all its numbers and conditions replaced.
    pub fn map(self, replace: &dyn Fn(Value) -> Value) -> Self {
        let all = |parts: Vec<Self>| parts.into_iter().map(|part| part.map(replace)).collect();
        match self {
            Self::One(value) => Self::One(replace(value)),
            Self::Vec(lanes) => Self::Vec(all(lanes)),
            Self::Struct(id, parts) => Self::Struct(id, all(parts)),
        }
    }

    /// What a name stands for, where it is used.
    pub fn named_at(self, span: Span) -> Self {
        self.map(&|mut value| {
            if matches!(value.expr.kind, ExprKind::Local(_)) {
                value.expr.span = span;
            }
            value
        })
    }
}

impl From<Option<Tree>> for Binding {
    fn from(tree: Option<Tree>) -> Self {
        tree.map_or(Self::Poisoned, Self::Value)
    }
}
