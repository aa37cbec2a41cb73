//! Reductions, and the condition that ends a run.
//!
//! The value of a reduction lies in the one cell of a field, and each use reads that cell. Fields
//! of all reductions are made before anything else is checked: an item may read a reduction that
//! comes behind it.

use super::aggregates::Tree;
use super::expressions::Value;
use super::names::Symbol;
use super::prove::Facts;
use super::regions::bounds_of;
use super::rule_reductions::RuleUse;
use super::{Checker, Scope};
use crate::ast::{self, ItemKind, Name, TypeKind};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::*;
use crate::source::Span;
use cranelift_entity::EntityRef;
use stencil_runtime::array::Element;

/// A reduction of the file, checked or not yet.
pub struct Ahead {
    /// The field of its value.
    field: FieldId,
    /// Whether its value is a condition.
    condition: bool,
    /// Whether it has a value before the first step.
    initial: bool,
    /// Whether the item was checked.
    done: bool,
    /// The place of its name.
    span: Span,
}

/// The remedy where a reduction is read before it is computed.
pub(super) const FIRST_VALUE: &str = "give it a first value behind its box, as in `on [0..N-1] \
    initially 0`, or move the reduction above what reads it";

/// The type of conditions, in declarations of reductions.
const BOOL: &str = "bool";

/// The type in which a condition is kept: 0 or 1.
const KEPT: Element = Element::U32;

/// The grid of the cells that hold the values; no name of the language has a dot.
const CELL: &str = "reduction.cell";

const OPERATIONS: [(&str, Operation); 8] = [
    ("sum", Operation::Number(Combine::Sum)),
    ("min", Operation::Number(Combine::Min)),
    ("max", Operation::Number(Combine::Max)),
    ("argmin", Operation::Place(Combine::Min)),
    ("argmax", Operation::Place(Combine::Max)),
    ("count", Operation::Count),
    ("any", Operation::Condition(Combine::Max)),
    ("all", Operation::Condition(Combine::All)),
];

/// An operation, by the types of its operand and of its result.
#[derive(Clone, Copy)]
enum Operation {
    /// Numbers, to one of their type.
    Number(Combine),
    /// Numbers, to the number of the first point that has the smallest or largest.
    Place(Combine),
    /// Conditions, to the number of those that hold.
    Count,
    /// Conditions, to one.
    Condition(Combine),
}

impl Checker<'_> {
    /// Makes the fields of all reductions.
    pub(super) fn look_ahead(&mut self, file: &ast::File) {
        for item in file.all_items() {
            let ItemKind::Reduce { name, ty, initial, .. } = &item.node else { continue };
            let TypeKind::Named(ty) = &ty.node else { continue };
            let condition = ty == BOOL;
            let element = if condition { Some(KEPT) } else { Element::from_name(ty) };
            let (Some(element), false) = (element, self.reductions.contains_key(&name.node)) else {
                continue;
            };
            if self.program.grids.is_empty() {
                let zero =
                    Region { lower: vec![Affine::number(0)], upper: vec![Affine::number(0)] };
                let grid = Grid { name: CELL.to_owned(), region: zero, span: name.span };
                self.program.grids.push(grid);
            }
            let field = self.program.fields.push(Field {
                name: name.node.clone(),
                role: Role::Reduction,
                element,
                boolean: false,
                member: None,
                grid: GridId::new(0),
                boundary: None,
                span: name.span,
            });
            let initial = initial.is_some();
            let ahead = Ahead { field, condition, initial, done: false, span: name.span };
            self.reductions.insert(name.node.clone(), ahead);
        }
    }

    /// The field of a reduction that the file declares somewhere.
    pub(super) fn reduction_ahead(&self, name: &str) -> Option<FieldId> {
        self.reductions.get(name).map(|ahead| ahead.field)
    }

    /// The value of a reduction, where its name stands.
    pub(super) fn reduction_value(
        &mut self,
        field: FieldId,
        name: &str,
        span: Span,
    ) -> Option<Value> {
        let ahead = self.reductions.get(name)?;
        if let Some(of) = self.scope.rule {
            self.rule_uses.push(RuleUse { of, reduction: field, span });
        } else if !ahead.done && !ahead.initial && !self.scope.ends_run {
            let message = format!("`{name}` has no value here in the first step");
            let error =
                Diagnostic::error(message, span, "read here").see(ahead.span, "computed here");
            self.report(error.help(FIRST_VALUE));
            return None;
        }
        let condition = ahead.condition;
        let ty = Type::Element(self.program.fields.get(field)?.element);
        let number = |kind, ty| Expr { kind, ty, span };
        let zero = number(ExprKind::Int(0), Type::Element(Element::I64));
        let cell = number(ExprKind::Gather { field, at: vec![zero] }, ty);
        if !condition {
            return Some(Value { expr: cell, literal: None });
        }
        let none = number(ExprKind::Int(0), ty);
        let kind = ExprKind::Binary(BinaryOp::Ne, Box::new(cell), Box::new(none));
        Some(Value::typed(kind, Type::Bool, span))
    }

    /// `reduce NAME : TYPE = OPERATION(VALUE) on BOX`
    pub(super) fn reduction(&mut self, item: &ItemKind, span: Span) {
        let ItemKind::Reduce { name, ty, operation, arguments, region, initial } = item else {
            return;
        };
        self.functions += 1;
        self.at_most(self.functions, limits::FUNCTIONS, "functions and reductions", name.span);
        self.one_more_piece(region.span);
        let place = self.program.functions.len();
        let element = self.reduction_type(ty, operation);
        let known = self.operation(operation);
        let initial = initial
            .as_ref()
            .map(|value| self.plain_number(value, "the value before the first step", element));
        self.scope = Scope {
            function: name.node.clone(),
            rank: Some(region.node.len()),
            wanted: element,
            ..Scope::default()
        };
        let piece = self.reduced(name, known.zip(element), arguments, region);
        self.scope = Scope::default();
        let field = self.reduction_ahead(name).filter(|_| element.is_some() && known.is_some());
        let symbol = field.map_or(Symbol::Poisoned, Symbol::Reduction);
        self.sound &= field.is_some();
        let declared = self.declare(name, symbol);
        if let Some(ahead) = self.reductions.get_mut(&name.node) {
            ahead.done = true;
        }
        let (Some(field), Some((combine, piece)), true) = (field, piece, declared) else {
            self.sound = false;
            return;
        };
        let initial = initial.flatten();
        let (combine, piece) = match known {
            Some(Operation::Place(_)) => match self.placed((combine, piece), name, place, span) {
                Some(placed) => (Combine::Min, placed),
                None => return,
            },
            _ => (combine, piece),
        };
        let repeats = self.repeats.clone();
        let reduction = Reduction { field, combine, piece, initial, place, repeats, span };
        self.program.reductions.push(reduction);
    }

    /// The type of a reduction's value, as it is kept.
    fn reduction_type(&mut self, ty: &ast::Type, operation: &Name) -> Option<Element> {
        let conditions = ["any", "all"].contains(&operation.as_str());
        let places = ["argmin", "argmax"].contains(&operation.as_str());
        let named = match &ty.node {
            TypeKind::Named(name) => name.as_str(),
            TypeKind::Vec(..) => "",
        };
        let element = Element::from_name(named);
        let (message, help) = match element {
            None if named == BOOL && conditions => return Some(KEPT),
            Some(Element::I64) if places => return Some(Element::I64),
            Some(_) if places => {
                let message = format!("`{}` gives the number of a point", operation.node);
                (message, "declare it as `i64`")
            }
            Some(element) if operation.node == "count" && element.is_float() => {
                ("`count` gives an integer".to_owned(), "declare it as `i64`")
            }
            Some(element) if !conditions => return Some(element),
            Some(_) => {
                let message = format!("`{}` gives a condition, not a number", operation.node);
                (message, "declare it as `bool`")
            }
            None if named == BOOL => {
                let message = format!("`{}` gives a number, not a condition", operation.node);
                let help = match places {
                    true => "declare it as `i64`",
                    false => "declare it as `f32` or the like; `any` and `all` give conditions",
                };
                (message, help)
            }
            None => {
                let found = self.ty(ty)?;
                let message = format!("a reduction is one number, not {}", self.ty_name(&found));
                (message, "write a reduction for each of its parts")
            }
        };
        self.report(Diagnostic::error(message, ty.span, "").help(help));
        None
    }

    fn operation(&mut self, name: &Name) -> Option<Operation> {
        let found = OPERATIONS.iter().find(|(known, _)| *known == name.node);
        if found.is_none() {
            let message = format!("unknown reduction `{}`", crate::lexer::shorten(name));
            let error = Diagnostic::error(message, name.span, "");
            let known = OPERATIONS.map(|(known, _)| known);
            if ["mean", "average", "avg"].contains(&name.as_str()) {
                self.report(error.help("divide a `sum` by the number of points where it is used"));
                return None;
            }
            self.report(match crate::suggest::nearest(name, known) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("the reductions are {}", known.join(", "))),
            });
        }
        found.map(|(_, operation)| *operation)
    }

    /// The box with the value at its points, and how values are combined.
    fn reduced(
        &mut self,
        name: &Name,
        known: Option<(Operation, Element)>,
        arguments: &[ast::Expr],
        region: &ast::Region,
    ) -> Option<(Combine, Piece)> {
        self.scope.frames.push(Vec::new());
        self.name_coordinates(region);
        let points = self.box_region(name, region);
        if let Some(points) = &points {
            self.scope.facts = Facts::of_piece(points, &[]);
            self.scope.facts.add_order(&Affine::number(1), &Affine::param(ParamId::STEPS));
            self.scope.region = Some((points.clone(), region.span));
        }
        let [argument] = arguments else {
            let message = format!("a reduction has one value, not {}", arguments.len());
            let error = Diagnostic::error(message, name.span, "");
            self.report(error.help("as in `reduce total : f64 = sum(f64(A[0])) on [0..N-1]`"));
            return None;
        };
        let value = self.tree(argument)?;
        let (operation, element) = known?;
        let (combine, value) = self.operand(name, operation, element, value, argument)?;
        let lets = std::mem::take(&mut self.scope.frames).into_iter().flatten().collect();
        let reads = std::mem::take(&mut self.scope.reads);
        let points = points?;
        self.reads_inside(&points, &[], &reads, region.span);
        Some((combine, Piece { region: points, lets, values: vec![value], span: region.span }))
    }

    /// The combined value, in the type in which it is kept.
    fn operand(
        &mut self,
        name: &Name,
        operation: Operation,
        element: Element,
        value: Tree,
        at: &ast::Expr,
    ) -> Option<(Combine, Expr)> {
        let combine = match operation {
            Operation::Number(combine) => {
                let ty = super::types::Ty::Number(element);
                let values = self.coerce(value, &ty, name, at.span)?;
                return values.into_iter().next().map(|value| (combine, value));
            }
            Operation::Place(combine) => {
                let number = match value {
                    Tree::One(value) if value.expr.ty != Type::Bool => self.settle(value),
                    _ => {
                        let message = "the place is that of a number, which each point needs";
                        self.report(Diagnostic::error(message, at.span, "not a number"));
                        None
                    }
                };
                return number.map(|number| (combine, self.hoist(number)));
            }
            Operation::Count => Combine::Sum,
            Operation::Condition(combine) => combine,
        };
        let condition = match value {
            Tree::One(Value { expr, literal: None }) if expr.ty == Type::Bool => expr,
            _ => {
                let message = format!("`{}` needs a condition at each point", name.node);
                let error = Diagnostic::error(message, at.span, "not a condition");
                self.report(error.help("compare it, as in `A[0] > 0`"));
                return None;
            }
        };
        let (ty, span) = (Type::Element(element), condition.span);
        let number = |value| Box::new(Expr { kind: ExprKind::Int(value), ty, span });
        let kind = ExprKind::If(Box::new(condition), number(1), number(0));
        Some((combine, Expr { kind, ty, span }))
    }

    /// A box that belongs to no grid.
    fn box_region(&mut self, name: &Name, region: &ast::Region) -> Option<Region> {
        let dimensions = region.node.len();
        if !(1..=3).contains(&dimensions) {
            let message = format!("a box has 1 to 3 dimensions, not {dimensions}");
            self.report(Diagnostic::error(message, region.span, "").help("as in `on [0..N-1]`"));
            return None;
        }
        let points = self.bounds(region)?;
        for (dimension, range) in region.node.iter().enumerate() {
            let (lower, upper) = bounds_of(&points, dimension)?;
            self.no_empty_literals((lower, upper), range)?;
            let Some(extent) = upper.minus(lower).and_then(|difference| difference.shifted(1))
            else {
                self.overflow("the extent of this range", range.span);
                return None;
            };
            let what = format!("the box of `{}`", name.node);
            self.ends_near(&what, &extent, (lower, upper), range.span);
        }
        Some(points)
    }

    /// `until CONDITION every COUNT`
    pub(super) fn until(&mut self, until: &ast::Until) {
        let every = match &until.every {
            None => Some(1),
            Some(count) => self.constant(count, "the number of steps between two looks"),
        };
        if let Some(count) = every.filter(|count| !(1..=limits::EVERY).contains(count)) {
            let span = until.every.as_ref().map_or(until.condition.span, |count| count.span);
            let message = format!("the condition is looked at every {count} steps");
            let error = Diagnostic::error(message, span, "");
            self.report(error.help(format!("write a number from 1 to {}", limits::EVERY)));
            return;
        }
        self.scope = Scope { ends_run: true, ..Scope::default() };
        let condition = self.expression(&until.condition);
        let lets = std::mem::take(&mut self.scope.frames).into_iter().flatten().collect();
        self.scope = Scope::default();
        let (Some(every), Some(condition)) = (every, condition) else {
            self.sound = false;
            return;
        };
        let span = until.condition.span;
        if condition.expr.ty != Type::Bool {
            let error =
                Diagnostic::error("`until` takes a condition, not a number", span, "a number");
            self.report(error.help("compare it, as in `until worst < 1e-6`"));
            return;
        }
        let text = self.source.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
        self.program.until =
            Some(Until { condition: condition.expr.with_lets(lets), every, text, span });
    }
}
