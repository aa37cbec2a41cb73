//! Functions in expressions: `let NAME(PARAMETER, ...) = VALUE`, written out at each call.
//!
//! A body has no types of its own. At a call its parameters stand for the arguments, each of which
//! is computed once, and the body is checked again. Its names are looked at once, where it is
//! declared: a body sees its parameters, what is declared before it, and `t`; no coordinates and no
//! `let` of its caller. It can call only functions that are declared before, so that none calls
//! itself.

use super::aggregates::Tree;
use super::names::{Symbol, is_reserved};
use super::{Binding, Checker, LocalName};
use crate::ast::{self, ExprKind, Name};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::parser::expr::depth;
use crate::source::Span;

/// A function in expressions.
pub struct Inlined {
    parameters: Vec<Name>,
    value: ast::Expr,
    /// Operations of the body, and how deep it is.
    size: usize,
    depth: usize,
    span: Span,
}

/// A call whose body is being written out.
#[derive(Clone)]
pub struct Call {
    /// The function's name.
    pub name: String,
    /// Where it is called.
    pub span: Span,
    /// How deep its body is.
    depth: usize,
}

impl Checker<'_> {
    /// `let NAME(PARAMETER, ...) = VALUE`
    pub(super) fn inlined(&mut self, name: &Name, parameters: &[Name], value: &ast::Expr) {
        let before = self.errors.len();
        for (place, parameter) in parameters.iter().enumerate() {
            let twin = parameters.iter().take(place).find(|other| other.node == parameter.node);
            if let Some(twin) = twin {
                let message = format!("`{}` names two parameters", parameter.node);
                let error = Diagnostic::error(message, parameter.span, "again here");
                self.report(error.see(twin.span, "first here").help("give one another name"));
            } else {
                self.is_free(parameter);
            }
        }
        self.scope.body = true;
        self.declared_names(name, parameters, value);
        self.scope.body = false;
        let sound = self.errors.len() == before;
        let symbol = if sound { Symbol::Let(self.lets.len()) } else { Symbol::Poisoned };
        self.sound &= sound;
        if self.declare(name, symbol) && sound {
            self.at_most(self.lets.len() + 1, limits::LETS, "functions by `let`", name.span);
            self.lets.push(Inlined {
                parameters: parameters.to_vec(),
                value: value.clone(),
                size: size(value),
                depth: depth(value),
                span: name.span,
            });
        }
    }

    /// Every name of a body is a parameter, bound in it, or declared before.
    fn declared_names(&mut self, function: &Name, parameters: &[Name], value: &ast::Expr) {
        let mut bound: Vec<&str> = parameters.iter().map(|name| name.as_str()).collect();
        let mut open = vec![value];
        while let Some(expr) = open.pop() {
            open.extend(expr.children());
            match &expr.node {
                ExprKind::Block(lets, _) => {
                    bound.extend(lets.iter().map(|(name, _)| name.as_str()))
                }
                ExprKind::Fold(fold) => bound.push(fold.variable.as_str()),
                _ => {}
            }
        }
        let mut open = vec![value];
        while let Some(expr) = open.pop() {
            open.extend(expr.children().into_iter().rev());
            let (name, span) = match &expr.node {
                ExprKind::Name(name) => (name.as_str(), expr.span),
                ExprKind::Access { field, .. } => (field.as_str(), field.span),
                ExprKind::Call { name, .. } | ExprKind::Struct { name, .. } => {
                    (name.as_str(), name.span)
                }
                ExprKind::Broken => {
                    self.sound = false;
                    continue;
                }
                _ => continue,
            };
            if name == function.node {
                let error = Diagnostic::error(format!("`{name}` calls itself"), span, "");
                let error = error.see(function.span, "a function by `let` is written out");
                self.report(error.help("repeat by `sum(k in 1..9)` or by steps of the run"));
                return;
            }
            if !bound.contains(&name) && (name == "nearest" || !is_reserved(name)) {
                self.resolve(name, span);
            }
        }
    }

    /// The body of a function in the place of a call.
    pub(super) fn written_out(
        &mut self,
        place: usize,
        name: &Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Tree> {
        self.scope.frames.push(Vec::new());
        let values: Vec<Binding> = arguments
            .iter()
            .map(|argument| self.tree(argument).and_then(|tree| self.bound(tree)).into())
            .collect();
        let body = self.body(place, name, values, span);
        let bound = self.scope.frames.pop().unwrap_or_default();
        self.with_bound(body?, bound, span)
    }

    fn body(
        &mut self,
        place: usize,
        name: &Name,
        values: Vec<Binding>,
        span: Span,
    ) -> Option<Tree> {
        let Inlined { parameters, value, size, depth, span: declared } = self.lets.get(place)?;
        let (parameters, value) = (parameters.clone(), value.clone());
        let (size, depth, declared) = (*size, *depth, *declared);
        if parameters.len() != values.len() {
            let plural = if parameters.len() == 1 { "" } else { "s" };
            let message = format!(
                "`{}` takes {} argument{plural}, not {}",
                name.node,
                parameters.len(),
                values.len()
            );
            let error = Diagnostic::error(message, span, "");
            self.report(error.see(declared, "declared here"));
            return None;
        }
        let within = self.calls.iter().map(|call| call.depth).sum::<usize>();
        self.written_out = self.written_out.saturating_add(size);
        if self.written_out > limits::OPERATIONS || within + depth > limits::CALL_DEPTH {
            let first = self.written_out - size <= limits::OPERATIONS;
            if first || within + depth > limits::CALL_DEPTH {
                let message = format!(
                    "calls written out have more than {} operations, or more than {} within each \
                     other",
                    limits::OPERATIONS,
                    limits::CALL_DEPTH
                );
                let error = Diagnostic::error(message, span, "too many with this call");
                self.report(error.help("keep a value that several points share in a temp field"));
            }
            self.sound = false;
            return None;
        }
        let named = parameters.into_iter().zip(values);
        let own =
            named.map(|(name, binding)| LocalName { name: name.node, span: name.span, binding });
        let locals = std::mem::replace(&mut self.scope.locals, own.collect());
        let coordinates = std::mem::take(&mut self.scope.coordinates);
        let numbers = std::mem::take(&mut self.scope.numbers);
        self.calls.push(Call { name: name.node.clone(), span, depth });
        let tree = self.tree(&value);
        self.calls.pop();
        self.scope.locals = locals;
        self.scope.coordinates = coordinates;
        self.scope.numbers = numbers;
        tree
    }
}

/// Operations, reads and literals of an expression as it is written.
pub fn size(expr: &ast::Expr) -> usize {
    let (mut count, mut open) = (0, vec![expr]);
    while let Some(expr) = open.pop() {
        count += 1;
        open.extend(expr.children());
    }
    count
}
