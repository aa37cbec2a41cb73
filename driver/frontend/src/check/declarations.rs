//! Declarations: params, scalars, fields, steps.

use super::Checker;
use super::expressions::Value;
use super::names::Symbol;
use super::prove;
use super::types::{Ty, kept_as};
use crate::ast::{self, BinaryOp, ExprKind, FieldRole, Name, TypeKind, UnaryOp};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{self, Affine, Check, Expr, Field, Param, Role, Scalar, ScalarId, Type};
use crate::source::Span;
use cranelift_entity::EntityRef;
use stencil_runtime::array::Element;
use stencil_runtime::number::{Number, Numeral};
use stencil_runtime::plan::Member;

impl Checker<'_> {
    pub(super) fn param(&mut self, name: &Name, value: Option<&ast::Expr>) {
        let value = match (self.defines.get(name.as_str()), value) {
            (Some(given), _) => Some(*given),
            (None, None) => None,
            (None, Some(expr)) => match self.constant(expr, super::PARAM) {
                Some(value) => Some(value),
                None => {
                    self.sound = false;
                    self.declare(name, Symbol::Poisoned);
                    return;
                }
            },
        };
        let id = self.program.params.next_key();
        if self.declare(name, Symbol::Param(id)) {
            let param = Param { name: name.node.clone(), value, span: name.span };
            self.program.params.push(param);
            self.at_most(self.program.params.len(), limits::PARAMS, "params", name.span);
            if value.is_none() {
                self.program.checks.push(Check {
                    value: Affine::param(id),
                    unless_empty: None,
                    message: format!("the size `{}` must not be negative", name.node),
                    span: name.span,
                });
            }
        }
    }

    pub(super) fn scalar(&mut self, name: &Name, ty: &ast::Type, default: Option<&ast::Expr>) {
        let boolean = matches!(&ty.node, TypeKind::Named(name) if name == "bool");
        let element = if boolean { Some(Element::U8) } else { self.element(ty) };
        let default = default.map(|expr| match (boolean, &expr.node) {
            (true, ExprKind::Name(word)) if word == "true" || word == "false" => {
                Some(Numeral::from(Number::U8(u8::from(word == "true"))))
            }
            (true, _) => {
                let message = "the default of a `bool` is `true` or `false`";
                self.report(Diagnostic::error(message, expr.span, "").help("as in `= true`"));
                None
            }
            (false, _) => self.plain_number(expr, "a scalar's default", element),
        });
        let (Some(element), None | Some(Some(_))) = (element, &default) else {
            self.sound = false;
            self.declare(name, Symbol::Poisoned);
            return;
        };
        let id = self.program.scalars.next_key();
        if self.declare(name, Symbol::Scalar(id)) {
            let scalar = Scalar {
                name: name.node.clone(),
                element,
                boolean,
                default: default.flatten(),
                span: name.span,
            };
            self.program.scalars.push(scalar);
            self.at_most(self.program.scalars.len(), limits::SCALARS, "scalars", name.span);
        }
    }

    /// The value of a scalar, where its name stands.
    pub(super) fn scalar_value(&self, id: ScalarId, span: Span) -> Option<Value> {
        let scalar = self.program.scalars.get(id)?;
        let ty = Type::Element(scalar.element);
        let kind = program::ExprKind::Scalar(id);
        if !scalar.boolean {
            return Some(Value::typed(kind, ty, span));
        }
        let number = |kind| Box::new(Expr { kind, ty, span });
        let none = number(program::ExprKind::Int(0));
        let kind = program::ExprKind::Binary(BinaryOp::Ne, number(kind), none);
        Some(Value::typed(kind, Type::Bool, span))
    }

    /// A number, with or without a sign, rounded to a type.
    pub(super) fn plain_number(
        &mut self,
        expr: &ast::Expr,
        what: &str,
        element: Option<Element>,
    ) -> Option<Numeral> {
        let literal = match &expr.node {
            ExprKind::Unary(UnaryOp::Neg, inner) => &inner.node,
            other => other,
        };
        match literal {
            ExprKind::Broken => return None,
            ExprKind::Int(_) | ExprKind::Float(_) => {}
            _ => {
                let message = format!("{what} is a number");
                let error = Diagnostic::error(message, expr.span, "");
                self.report(error.help("write it out, as in `0.25`"));
                return None;
            }
        }
        let value = self.expression(expr)?;
        let element = element?;
        let typed = self.adopt(value, Type::Element(element))?;
        let number = match typed.kind {
            program::ExprKind::Float(value) => Number::float(element, value),
            program::ExprKind::Int(value) => Number::integer(element, value),
            _ => None,
        };
        number.map(Numeral::from)
    }

    /// Says so where the first item beyond a limit is declared.
    pub(super) fn at_most(&mut self, count: usize, most: usize, what: &str, span: Span) {
        if count == most + 1 {
            let message = format!("a program has at most {most} {what}");
            let error = Diagnostic::error(message, span, "one too many");
            self.report(error.help("leave some out, or write two programs"));
        }
    }

    pub(super) fn field(&mut self, role: FieldRole, name: &Name, ty: &ast::Type, grid: &Name) {
        let cell = self.ty(ty);
        let grid = match self.resolve(grid, grid.span) {
            Some(Symbol::Grid(id)) => Some(id),
            Some(other) => {
                let message =
                    format!("a field lies on a grid, but `{}` is {}", grid.node, other.describe());
                self.report(Diagnostic::error(message, grid.span, "not a grid"));
                None
            }
            None => None,
        };
        let (Some(cell), Some(grid)) = (cell, grid) else {
            self.sound = false;
            self.declare(name, Symbol::Poisoned);
            return;
        };
        let id = self.program.fields.next_key();
        if self.declare(name, Symbol::Field(id)) {
            let role = match role {
                FieldRole::State => Role::State,
                FieldRole::Const => Role::Const,
                FieldRole::Temp => Role::Temp,
            };
            let leaves = self.leaves(&cell);
            let size = leaves.iter().map(|(_, ty)| kept_as(*ty).size()).sum();
            let mut offset = 0;
            for (path, ty) in leaves {
                let element = kept_as(ty);
                let member =
                    (!path.is_empty()).then(|| Member { field: name.node.clone(), offset, size });
                offset += element.size();
                self.program.fields.push(Field {
                    name: format!("{}{path}", name.node),
                    role,
                    element,
                    boolean: ty == Type::Bool,
                    member,
                    grid,
                    boundary: None,
                    span: name.span,
                });
            }
            let (before, all) = (id.index(), self.program.fields.len());
            if before <= limits::FIELDS && all > limits::FIELDS {
                let message =
                    format!("the fields of a program have at most {} numbers", limits::FIELDS);
                let remark = format!("{all} numbers with this field");
                let error = Diagnostic::error(message, name.span, remark);
                self.report(error.help("leave fields out, or write two programs"));
            }
            if !matches!(cell, Ty::Number(_)) {
                self.shapes.insert(id, cell);
            }
        }
    }

    /// The type of a scalar.
    fn element(&mut self, ty: &ast::Type) -> Option<Element> {
        match self.ty(ty)? {
            Ty::Number(element) => Some(element),
            other => {
                let message = format!("a scalar is one number, not {}", self.ty_name(&other));
                let help = match other {
                    Ty::Bool => "declare a `u8`, and write `bool(...)` where it is used",
                    _ => "declare a scalar for each of its parts",
                };
                self.report(Diagnostic::error(message, ty.span, "").help(help));
                None
            }
        }
    }

    pub(super) fn unknown_type(&mut self, name: &str, span: Span) {
        let before = self.declared_at.get(name).is_some_and(|place| place.start < span.start);
        if before && !self.symbols.contains_key(name) {
            let message = format!("the struct `{name}` would hold itself");
            let error = Diagnostic::error(message, span, "");
            self.report(error.help("a struct holds numbers, vecs, and structs declared before"));
            return;
        }
        let meant = match name {
            "float" | "single" | "real" | "float32" => Some("f32"),
            "double" | "float64" => Some("f64"),
            "half" | "float16" => Some("f16"),
            "int" | "int32" => Some("i32"),
            "byte" | "uchar" | "uint8" => Some("u8"),
            "bfloat16" | "bfloat" => Some("bf16"),
            "long" | "int64" => Some("i64"),
            "boolean" | "bit" | "logical" => Some("bool"),
            _ => {
                let known = Element::ALL.map(Element::name).into_iter();
                crate::suggest::nearest(name, known.chain(["bool"]))
            }
        };
        if !self.symbols.contains_key(name) {
            let message = format!("unknown type `{}`", crate::lexer::shorten(name));
            let error = Diagnostic::error(message, span, "");
            self.report(match meant {
                Some(other) => error.help(format!("did you mean `{other}`?")),
                None => {
                    let all = Element::ALL.map(Element::name).join(" ");
                    error.help(format!("the types of cells are {all} bool"))
                }
            });
        } else if let Some(symbol) = self.resolve(name, span) {
            let message = format!("expected a type, but `{name}` is {}", symbol.describe());
            self.report(Diagnostic::error(message, span, ""));
        }
    }

    pub(super) fn steps(&mut self, count: &ast::Expr, until: Option<&ast::Until>, span: Span) {
        if let Some(earlier) = self.steps_at {
            let error = Diagnostic::error("`steps` is given twice", span, "again here");
            self.report(error.see(earlier, "first given here").help("leave one of them out"));
            return;
        }
        self.steps_at = Some(span);
        if let Some(until) = until {
            self.until(until);
        }
        let Some(steps) = self.affine(count, "the number of steps") else {
            return;
        };
        let facts = prove::Facts::default();
        if facts.refute(&steps) {
            let message =
                format!("the number of steps is negative: {}", steps.show(&self.program.params));
            self.report(
                Diagnostic::error(message, count.span, "").help("0 or more steps can be taken"),
            );
        } else if steps.as_number().is_some_and(|steps| steps > limits::STEPS) {
            let message = format!("a run has at most {} steps", limits::STEPS);
            let error = Diagnostic::error(message, count.span, "too many");
            self.report(error.help("write fewer"));
        }
        self.program.steps = steps;
    }
}
