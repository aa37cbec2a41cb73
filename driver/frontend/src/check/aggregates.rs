//! Structs and vecs: taken apart into numbers, component by component.
//!
//! A field of such a type becomes one field of numbers for each of its leaves, and an expression
//! one expression for each. What several components share is bound once, as a `let` of the piece.

use super::expressions::{Literal, Value};
use super::names::Symbol;
use super::{Binding, Checker};
use crate::ast::{self, BinaryOp, Name, Spanned, TypeKind, UnaryOp};
use crate::diagnostics::Diagnostic;
use crate::program::{Expr, ExprKind, FieldId, Type};
use crate::source::Span;
use cranelift_entity::EntityRef;
use stencil_runtime::array::Element;

/// The type of a cell, a member or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    /// A number.
    Number(Element),
    /// `vec<LANES, TYPE>`
    Vec(usize, Element),
    /// A struct, by its place among the declared ones.
    Struct(usize),
}

/// A declared struct.
#[derive(Clone, Debug)]
pub struct StructType {
    name: String,
    members: Vec<(String, Ty)>,
}

/// A value, taken apart.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A number or a condition.
    One(Value),
    /// The lanes of a vec; all have one type, or all are literals.
    Vec(Vec<Value>),
    /// The members of a struct in order of declaration; each has its type.
    Struct(usize, Vec<Tree>),
}

/// Lanes that a vec may have.
const MOST_LANES: i64 = 16;

impl Checker<'_> {
    /// `struct NAME { MEMBER : TYPE, ... }`
    pub(super) fn struct_type(&mut self, name: &Name, members: &[(Name, ast::Type)]) {
        let mut known: Vec<(String, Ty)> = Vec::new();
        let mut sound = !members.is_empty();
        if members.is_empty() {
            let error = Diagnostic::error(
                format!("the struct `{}` has no members", name.node),
                name.span,
                "",
            );
            self.report(error.help("as in `struct S { u : f32, v : f32 }`"));
        }
        for (member, ty) in members {
            if known.iter().any(|(other, _)| *other == member.node) {
                let message = format!("`{}` has two members `{}`", name.node, member.node);
                self.report(
                    Diagnostic::error(message, member.span, "")
                        .help("give one of them another name"),
                );
            }
            match self.ty(ty) {
                Some(ty) => known.push((member.node.clone(), ty)),
                None => sound = false,
            }
        }
        let id = self.structs.len();
        if self.declare(name, if sound { Symbol::Struct(id) } else { Symbol::Poisoned }) && sound {
            self.structs.push(StructType { name: name.node.clone(), members: known });
        }
    }

    /// A type as it is written.
    pub(super) fn ty(&mut self, ty: &ast::Type) -> Option<Ty> {
        match &ty.node {
            TypeKind::Named(name) => match (Element::from_name(name), self.symbols.get(name)) {
                (Some(element), _) => Some(Ty::Number(element)),
                (None, Some((Symbol::Struct(id), _))) => Some(Ty::Struct(*id)),
                (None, Some((Symbol::Poisoned, _))) => None,
                _ => {
                    self.unknown_type(name, ty.span);
                    None
                }
            },
            TypeKind::Vec(lanes, of) => {
                let (count, of_ty) = (self.constant(lanes, "the number of lanes"), self.ty(of));
                let count = count?;
                if !(1..=MOST_LANES).contains(&count) {
                    let message = format!("a vec has 1 to {MOST_LANES} lanes, not {count}");
                    self.report(
                        Diagnostic::error(message, lanes.span, "")
                            .help("use several fields for more"),
                    );
                    return None;
                }
                let Ty::Number(element) = of_ty? else {
                    let error = Diagnostic::error(
                        "a lane of a vec is a number",
                        of.span,
                        "not a number type",
                    );
                    self.report(
                        error.help("put vecs into a struct, as in `struct S { a : vec<2, f32> }`"),
                    );
                    return None;
                };
                Some(Ty::Vec(usize::try_from(count).ok()?, element))
            }
        }
    }

    pub(super) fn ty_name(&self, ty: &Ty) -> String {
        match ty {
            Ty::Number(element) => element.to_string(),
            Ty::Vec(lanes, element) => format!("vec<{lanes}, {element}>"),
            Ty::Struct(id) => {
                self.structs.get(*id).map_or(String::new(), |found| found.name.clone())
            }
        }
    }

    /// The numbers that a value of a type consists of, in order: what follows the dots of each, and
    /// its type.
    pub(super) fn leaves(&self, ty: &Ty) -> Vec<(String, Element)> {
        match ty {
            Ty::Number(element) => vec![(String::new(), *element)],
            Ty::Vec(lanes, element) => {
                (0..*lanes).map(|lane| (format!(".{lane}"), *element)).collect()
            }
            Ty::Struct(id) => {
                let members =
                    self.structs.get(*id).map(|found| found.members.as_slice()).unwrap_or_default();
                let mut leaves = Vec::new();
                for (name, ty) in members {
                    let inner = self.leaves(ty).into_iter();
                    leaves.extend(inner.map(|(path, element)| (format!(".{name}{path}"), element)));
                }
                leaves
            }
        }
    }

    /// The type of a field's cells; its leaves are fields that follow each other.
    pub(super) fn field_type(&self, field: FieldId) -> Option<Ty> {
        let element = self.program.fields.get(field)?.element;
        Some(self.shapes.get(&field).cloned().unwrap_or(Ty::Number(element)))
    }

    /// All fields that a declared one consists of.
    pub(super) fn leaf_fields(&self, field: FieldId) -> Vec<FieldId> {
        let count = self.field_type(field).map_or(0, |ty| self.leaves(&ty).len());
        (0..count).map(|leaf| FieldId::new(field.index() + leaf)).collect()
    }

    /// A value of a type out of its leaves in order.
    fn assemble(&self, ty: &Ty, leaf: &mut dyn FnMut(Element) -> Value) -> Tree {
        match ty {
            Ty::Number(element) => Tree::One(leaf(*element)),
            Ty::Vec(lanes, element) => Tree::Vec((0..*lanes).map(|_| leaf(*element)).collect()),
            Ty::Struct(id) => {
                let members =
                    self.structs.get(*id).map(|found| found.members.as_slice()).unwrap_or_default();
                Tree::Struct(*id, members.iter().map(|(_, ty)| self.assemble(ty, leaf)).collect())
            }
        }
    }

    /// A cell of a field; `read` reads the cell of one leaf.
    pub(super) fn cell(
        &self,
        field: FieldId,
        span: Span,
        read: impl Fn(FieldId) -> ExprKind,
    ) -> Option<Tree> {
        let mut next = field.index();
        let mut leaf = |element| {
            let kind = read(FieldId::new(next));
            next += 1;
            Value::typed(kind, Type::Element(element), span)
        };
        Some(self.assemble(&self.field_type(field)?, &mut leaf))
    }

    /// What a value is, for messages.
    fn describe(&self, tree: &Tree) -> String {
        match tree {
            Tree::One(Value { literal: Some(_), .. }) => "a number".into(),
            Tree::One(Value { expr: Expr { ty: Type::Element(element), .. }, .. }) => {
                element.to_string()
            }
            Tree::One(_) => "a condition".into(),
            Tree::Vec(lanes) => match lanes.first() {
                Some(Value { literal: None, expr: Expr { ty: Type::Element(element), .. } }) => {
                    self.ty_name(&Ty::Vec(lanes.len(), *element))
                }
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
    fn shared(&mut self, value: Value) -> Value {
        use ExprKind::{Coordinate, Float, Int, Local, Param, Read, Scalar, Step};
        let leaf = |kind: &ExprKind| {
            matches!(
                kind,
                Float(_)
                    | Int(_)
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

    /// `vec(a, b, ...)`
    pub(super) fn vec_literal(&mut self, arguments: &[ast::Expr], span: Span) -> Option<Tree> {
        let lanes: Vec<_> = arguments.iter().map(|argument| self.expression(argument)).collect();
        let lanes: Vec<Value> = lanes.into_iter().collect::<Option<_>>()?;
        if lanes.is_empty() || lanes.len() as i64 > MOST_LANES {
            let message = format!("a vec has 1 to {MOST_LANES} lanes, not {}", lanes.len());
            self.report(Diagnostic::error(message, span, ""));
            return None;
        }
        if let Some(condition) = lanes.iter().find(|lane| lane.expr.ty == Type::Bool) {
            let error = Diagnostic::error(
                "a lane of a vec is a number",
                condition.expr.span,
                "a condition",
            );
            self.report(error.help("choose two numbers: `if condition then 1 else 0`"));
            return None;
        }
        // The first lane with a type gives it to the others.
        if let Some(lead) = lanes.iter().find(|lane| lane.literal.is_none()).cloned() {
            let mut typed = Vec::new();
            for lane in lanes {
                let (_, expr, literal) = self.unify(lead.clone(), lane, "the lanes of a vec")?;
                typed.push(Value { expr, literal });
            }
            return Some(Tree::Vec(typed));
        }
        let widest: Option<Literal> = lanes.iter().filter_map(|lane| lane.literal).max();
        Some(Tree::Vec(lanes.into_iter().map(|lane| Value { literal: widest, ..lane }).collect()))
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
            let mut next = |element| match exprs.next() {
                Some(expr) => Value { expr, literal: None },
                None => Value::typed(ExprKind::Int(0), Type::Element(element), span),
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

    /// The type that literals in a value for a type most likely mean.
    pub(super) fn wanted(&self, ty: &Ty) -> Option<Element> {
        match ty {
            Ty::Number(element) | Ty::Vec(_, element) => Some(*element),
            Ty::Struct(_) => None,
        }
    }

    /// `e.name`
    pub(super) fn member(&mut self, inner: &ast::Expr, name: &Name, span: Span) -> Option<Tree> {
        let tree = self.tree(inner)?;
        let Tree::Struct(id, parts) = tree else {
            let message = format!("`.{}` needs a struct, not {}", name.node, self.describe(&tree));
            self.report(Diagnostic::error(message, span, ""));
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

    /// `e.0`
    pub(super) fn lane(
        &mut self,
        inner: &ast::Expr,
        lane: &Spanned<u64>,
        span: Span,
    ) -> Option<Tree> {
        let tree = self.tree(inner)?;
        let Tree::Vec(lanes) = tree else {
            let message = format!("`.{}` needs a vec, not {}", lane.node, self.describe(&tree));
            self.report(Diagnostic::error(message, span, ""));
            return None;
        };
        let count = lanes.len();
        let found = usize::try_from(lane.node).ok().and_then(|lane| lanes.into_iter().nth(lane));
        if found.is_none() {
            let message = format!("there is no lane {} in a vec of {count}", lane.node);
            self.report(
                Diagnostic::error(message, lane.span, "")
                    .help(format!("lanes are 0 to {}", count - 1)),
            );
        }
        found.map(Tree::One)
    }

    /// `-a` of a vec.
    pub(super) fn negative(&self, lanes: Vec<Value>, span: Span) -> Tree {
        let negate = |lane: Value| {
            let ty = lane.expr.ty;
            let kind = ExprKind::Unary(UnaryOp::Neg, Box::new(lane.expr));
            Value { expr: Expr { kind, ty, span }, literal: lane.literal }
        };
        Tree::Vec(lanes.into_iter().map(negate).collect())
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
        let pairs: Vec<(Value, Value)> = match (left, right) {
            (Tree::One(left), Tree::One(right)) => {
                return self.binary(op, left, right, span).map(Tree::One);
            }
            (Tree::Vec(left), Tree::Vec(right)) if lanewise && left.len() == right.len() => {
                left.into_iter().zip(right).collect()
            }
            (Tree::Vec(left), Tree::One(right)) if lanewise && right.expr.ty != Type::Bool => {
                let right = self.shared(right);
                left.into_iter().map(|lane| (lane, right.clone())).collect()
            }
            (Tree::One(left), Tree::Vec(right)) if lanewise && left.expr.ty != Type::Bool => {
                let left = self.shared(left);
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
                    "`+ - * /` work on two vecs of one type, and on a vec and a number; \
                            else take the parts",
                ));
                return None;
            }
        };
        let lanes = pairs.into_iter().map(|(left, right)| self.binary(op, left, right, span));
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
                    let Tree::One(lane) =
                        self.choose(condition, Tree::One(yes), Tree::One(no), span)?
                    else {
                        return None;
                    };
                    lanes.push(lane);
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
                let mut bound = Vec::new();
                for lane in lanes {
                    let Tree::One(lane) = self.bound(Tree::One(lane))? else { return None };
                    bound.push(lane);
                }
                Tree::Vec(bound)
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
            (Tree::Vec(lanes), Ty::Vec(count, element)) if lanes.len() == *count => lanes
                .into_iter()
                .map(|lane| self.coerce_number(lane, *element, name, span))
                .collect(),
            (Tree::Struct(id, parts), Ty::Struct(wanted)) if id == *wanted => {
                Some(parts.into_iter().flat_map(leaf_values).map(|value| value.expr).collect())
            }
            (found, ty) => {
                let (holds, found) = (self.ty_name(ty), self.describe(&found));
                let message = format!("`{name}` holds {holds}, but the value is {found}");
                let error = Diagnostic::error(message, span, "");
                self.report(match ty {
                    Ty::Number(_) => error.help("take one of its parts"),
                    Ty::Vec(lanes, _) => error
                        .help(format!("write it out: `vec({})`", vec!["..."; *lanes].join(", "))),
                    Ty::Struct(_) => error.help(format!("write it out: `{holds} {{ ... }}`")),
                });
                None
            }
        }
    }
}

/// The numbers of a value in order.
fn leaf_values(tree: Tree) -> Vec<Value> {
    match tree {
        Tree::One(value) => vec![value],
        Tree::Vec(lanes) => lanes,
        Tree::Struct(_, parts) => parts.into_iter().flat_map(leaf_values).collect(),
    }
}

impl Tree {
    /// What a name stands for, where it is used.
    pub fn named_at(self, span: Span) -> Self {
        let at = |mut value: Value| {
            if matches!(value.expr.kind, ExprKind::Local(_)) {
                value.expr.span = span;
            }
            value
        };
        match self {
            Self::One(value) => Self::One(at(value)),
            Self::Vec(lanes) => Self::Vec(lanes.into_iter().map(at).collect()),
            Self::Struct(id, parts) => {
                Self::Struct(id, parts.into_iter().map(|part| part.named_at(span)).collect())
            }
        }
    }
}

impl From<Option<Tree>> for Binding {
    fn from(tree: Option<Tree>) -> Self {
        tree.map_or(Self::Poisoned, Self::Value)
    }
}
