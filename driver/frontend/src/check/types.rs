//! Types of cells, members and values: numbers, bools, vecs, declared structs.

use super::Checker;
use super::aggregates::Tree;
use super::expressions::Value;
use super::names::Symbol;
use crate::ast::{self, Name, TypeKind};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{BinaryOp, Expr, ExprKind, FieldId, Type};
use crate::source::Span;
use cranelift_entity::EntityRef;
use stencil_runtime::array::Element;
use stencil_runtime::npy;
use stencil_runtime::record::Layout;

/// The type of a cell, a member or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    /// A number.
    Number(Element),
    /// `bool`
    Bool,
    /// `vec<LANES, TYPE>`
    Vec(usize, Box<Ty>),
    /// `complex64` or `complex128`: as a value a vec of two lanes.
    Complex(Element),
    /// A struct, by its place among the declared ones.
    Struct(usize),
}

/// A declared struct.
#[derive(Clone, Debug)]
pub struct StructType {
    /// Its name.
    pub name: String,
    /// Names and types of its members, in order.
    pub members: Vec<(String, Ty)>,
}

/// Lanes that a vec may have.
pub const MOST_LANES: i64 = 16;

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
        sound &= self.struct_within_limits(name, &known);
        let id = self.structs.len();
        if self.declare(name, if sound { Symbol::Struct(id) } else { Symbol::Poisoned }) && sound {
            self.structs.push(StructType { name: name.node.clone(), members: known });
        }
    }

    /// Whether cells of a struct are few numbers, and a file of them can be read again.
    fn struct_within_limits(&mut self, name: &Name, members: &[(String, Ty)]) -> bool {
        let numbers: usize = members.iter().map(|(_, ty)| self.leaves(ty).len()).sum();
        let members = members.iter().map(|(member, ty)| (member.clone(), self.layout(ty)));
        let layout = Layout::Struct(members.collect());
        let (structs, characters) = (layout.structs(), npy::description(&layout));
        let (message, remark, help) = if numbers > limits::CELL {
            (
                format!("a cell has at most {} numbers", limits::CELL),
                format!("a struct of {numbers} numbers"),
                "spread them over several fields",
            )
        } else if structs > limits::STRUCTS {
            (
                format!("structs are at most {} deep inside each other", limits::STRUCTS),
                format!("with this one {structs}"),
                "write the members of an inner struct in the outer one",
            )
        } else if characters > limits::DESCRIPTION {
            let most = limits::DESCRIPTION;
            (
                format!("a struct has at most {most} characters in the header of an .npy file"),
                format!("this one has {characters}"),
                "shorten the names of its members, or spread them over several fields",
            )
        } else {
            return true;
        };
        self.report(Diagnostic::error(message, name.span, remark).help(help));
        false
    }

    /// A type as files have it.
    fn layout(&self, ty: &Ty) -> Layout {
        let named = |(name, ty): &(String, Ty)| (name.clone(), self.layout(ty));
        match ty {
            Ty::Number(element) => Layout::Number(*element),
            Ty::Bool => Layout::Bool,
            Ty::Vec(lanes, of) => Layout::Vec(*lanes, Box::new(self.layout(of))),
            Ty::Complex(element) => {
                let part = |name: &str| (name.to_owned(), Layout::Number(*element));
                Layout::Struct(vec![part("re"), part("im")])
            }
            Ty::Struct(id) => {
                let members = self.structs.get(*id).map(|found| found.members.as_slice());
                Layout::Struct(members.unwrap_or_default().iter().map(named).collect())
            }
        }
    }

    /// A type as it is written.
    pub(super) fn ty(&mut self, ty: &ast::Type) -> Option<Ty> {
        match &ty.node {
            TypeKind::Named(name) if name == "complex64" => Some(Ty::Complex(Element::F32)),
            TypeKind::Named(name) if name == "complex128" => Some(Ty::Complex(Element::F64)),
            TypeKind::Named(name) if name == "bool" => Some(Ty::Bool),
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
                            .help(format!("write a number from 1 to {MOST_LANES}")),
                    );
                    return None;
                }
                let ty = Ty::Vec(usize::try_from(count).ok()?, Box::new(of_ty?));
                let numbers = self.leaves(&ty).len();
                if numbers > limits::CELL {
                    let message = format!("a cell has at most {} numbers", limits::CELL);
                    let error = Diagnostic::error(
                        message,
                        lanes.span,
                        format!("a vec of {numbers} numbers"),
                    );
                    self.report(error.help("spread them over several fields"));
                    return None;
                }
                Some(ty)
            }
        }
    }

    pub(super) fn ty_name(&self, ty: &Ty) -> String {
        match ty {
            Ty::Number(element) => element.to_string(),
            Ty::Bool => "bool".to_owned(),
            Ty::Vec(lanes, of) => format!("vec<{lanes}, {}>", self.ty_name(of)),
            Ty::Complex(element) => format!("complex{}", 16 * element.size()),
            Ty::Struct(id) => {
                self.structs.get(*id).map_or(String::new(), |found| found.name.clone())
            }
        }
    }

    /// The numbers that a value of a type consists of, in order: what follows the dots of each, and
    /// its type.
    pub(super) fn leaves(&self, ty: &Ty) -> Vec<(String, Type)> {
        match ty {
            Ty::Number(element) => vec![(String::new(), Type::Element(*element))],
            Ty::Bool => vec![(String::new(), Type::Bool)],
            Ty::Vec(lanes, of) => {
                let inner = self.leaves(of);
                let lane = |lane| {
                    let inner = inner.iter();
                    inner.map(move |(path, ty)| (format!(".{lane}{path}"), *ty))
                };
                (0..*lanes).flat_map(lane).collect()
            }
            // By these names files know the two as one complex number.
            Ty::Complex(element) => {
                let part = Type::Element(*element);
                vec![(".re".to_owned(), part), (".im".to_owned(), part)]
            }
            Ty::Struct(id) => {
                let members =
                    self.structs.get(*id).map(|found| found.members.as_slice()).unwrap_or_default();
                let mut leaves = Vec::new();
                for (name, ty) in members {
                    let inner = self.leaves(ty).into_iter();
                    leaves.extend(inner.map(|(path, ty)| (format!(".{name}{path}"), ty)));
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
    pub(super) fn assemble(&self, ty: &Ty, leaf: &mut dyn FnMut(Type) -> Value) -> Tree {
        match ty {
            Ty::Number(element) => Tree::One(leaf(Type::Element(*element))),
            Ty::Bool => Tree::One(leaf(Type::Bool)),
            Ty::Vec(lanes, of) => Tree::Vec((0..*lanes).map(|_| self.assemble(of, leaf)).collect()),
            Ty::Complex(element) => {
                let mut part = || Tree::One(leaf(Type::Element(*element)));
                Tree::Vec(vec![part(), part()])
            }
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
        let mut leaf = |ty| {
            let cell =
                Expr { kind: read(FieldId::new(next)), ty: Type::Element(kept_as(ty)), span };
            next += 1;
            let expr = if ty == Type::Bool { not_zero(cell) } else { cell };
            Value { expr, literal: None }
        };
        Some(self.assemble(&self.field_type(field)?, &mut leaf))
    }

    /// The type that the literals of a `let` take: that of all numbers of a cell.
    pub(super) fn wanted(&self, ty: &Ty) -> Option<Element> {
        match ty {
            Ty::Number(element) | Ty::Complex(element) => Some(*element),
            Ty::Bool => None,
            Ty::Vec(_, of) => self.wanted(of),
            Ty::Struct(_) => {
                let leaves = self.leaves(ty);
                let mut numbers = leaves.iter().filter_map(|(_, ty)| match ty {
                    Type::Element(element) => Some(*element),
                    Type::Bool => None,
                });
                let first = numbers.next()?;
                numbers.all(|element| element == first).then_some(first)
            }
        }
    }
}

/// The type in which a leaf is kept.
pub fn kept_as(ty: Type) -> Element {
    match ty {
        Type::Element(element) => element,
        Type::Bool => Element::U8,
    }
}

/// A value as the cell of a field keeps it.
pub fn kept(expr: Expr) -> Expr {
    if expr.ty == Type::Bool { as_number(expr, kept_as(Type::Bool)) } else { expr }
}

/// A condition as a number: 1 if it holds, else 0.
pub fn as_number(expr: Expr, element: Element) -> Expr {
    let (ty, span) = (Type::Element(element), expr.span);
    let number = |value: u8| {
        let kind = match element.is_float() {
            true => ExprKind::Float(value.into()),
            false => ExprKind::Int(value.into()),
        };
        Box::new(Expr { kind, ty, span })
    };
    Expr { kind: ExprKind::If(Box::new(expr), number(1), number(0)), ty, span }
}

/// Whether a number is not 0; a condition as it is.
pub fn not_zero(expr: Expr) -> Expr {
    let Type::Element(element) = expr.ty else { return expr };
    let span = expr.span;
    let kind = if element.is_float() { ExprKind::Float(0.0) } else { ExprKind::Int(0) };
    let zero = Expr { kind, ty: expr.ty, span };
    let kind = ExprKind::Binary(BinaryOp::Ne, Box::new(expr), Box::new(zero));
    Expr { kind, ty: Type::Bool, span }
}
