//! `sum(k in -2..2) EXPR` and the like: the body once for each number of a constant range, combined
//! from the left. The name of the range stands for a literal, in offsets too.

use super::aggregates::Tree;
use super::expressions::{Literal, Value};
use super::names::Symbol;
use super::{Checker, lets};
use crate::ast::{BinaryOp, Fold, Name, Spanned};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{Expr, ExprKind, MathFunction, Type, UnaryOp};
use crate::source::Span;
use stencil_runtime::array::Element;

const OPERATIONS: [(&str, Operation); 4] = [
    ("sum", Operation::Infix(BinaryOp::Add)),
    ("prod", Operation::Infix(BinaryOp::Mul)),
    ("min", Operation::Math(MathFunction::Min)),
    ("max", Operation::Math(MathFunction::Max)),
];

#[derive(Clone, Copy)]
enum Operation {
    Infix(BinaryOp),
    Math(MathFunction),
}

/// A number of a range, as it would be written.
pub fn literal(number: i64, span: Span) -> Value {
    let ty = Type::Element(Element::I64);
    let magnitude = Expr { kind: ExprKind::Int(i128::from(number).abs()), ty, span };
    let expr = match number < 0 {
        true => Expr { kind: ExprKind::Unary(UnaryOp::Neg, Box::new(magnitude)), ty, span },
        false => magnitude,
    };
    Value { expr, literal: Some(Literal::Int) }
}

impl Checker<'_> {
    /// The number that the name of a range stands for now.
    pub(super) fn number_of_range(&self, name: &str) -> Option<i64> {
        let mut known = self.scope.numbers.iter().rev();
        known.find(|(other, _)| other == name).map(|(_, number)| *number)
    }

    /// `OPERATION(NAME in LOWER..UPPER) BODY`
    pub(super) fn fold(&mut self, fold: &Fold, span: Span) -> Option<Tree> {
        let Fold { operation, variable, lower, upper, body } = fold;
        let known = OPERATIONS.iter().find(|(name, _)| *name == operation.node);
        if known.is_none() {
            let message = format!("`{}` does not combine a range", operation.node);
            let error = Diagnostic::error(message, operation.span, "");
            self.report(error.help("these do: sum, prod, min, max"));
        }
        let ends = (
            self.constant(lower, "the end of a range"),
            self.constant(upper, "the end of a range"),
        );
        let free = self.range_name(variable);
        let (Some((_, operation)), (Some(first), Some(last)), true) = (known, ends, free) else {
            return None;
        };
        let count = i128::from(last) - i128::from(first) + 1;
        if !(1..=limits::TERMS as i128).contains(&count) {
            let message = format!("the range {first}..{last} has {} numbers", count.max(0));
            let error = Diagnostic::error(message, lower.span.to(upper.span), "");
            self.report(match first > last {
                true => error.help(format!("write the smaller end first: `{last}..{first}`")),
                false => error.help(format!("a range has 1 to {} numbers", limits::TERMS)),
            });
            return None;
        }
        let size = lets::size(body).saturating_mul(usize::try_from(count).unwrap_or(usize::MAX));
        self.written_out = self.written_out.saturating_add(size);
        if self.written_out > limits::OPERATIONS {
            if self.written_out - size <= limits::OPERATIONS {
                let message =
                    format!("ranges written out have more than {} operations", limits::OPERATIONS);
                let error = Diagnostic::error(message, span, "too many with this range");
                self.report(error.help("make it shorter"));
            }
            self.sound = false;
            return None;
        }
        let mut all: Option<Tree> = None;
        for number in first..=last {
            self.scope.numbers.push((variable.node.clone(), number));
            let value = self.tree(body);
            self.scope.numbers.pop();
            let value = value?;
            all = Some(match all {
                None => value,
                Some(before) => self.combined(*operation, &fold.operation, before, value, span)?,
            });
        }
        all
    }

    /// Whether a range may have such a name.
    fn range_name(&mut self, name: &Name) -> bool {
        let local = self.scope.locals.iter().find(|local| local.name == name.node);
        let coordinate =
            self.scope.coordinates.iter().flatten().find(|known| known.node == name.node);
        let earlier = local.map(|local| local.span).or(coordinate.map(|known| known.span));
        let within = self.number_of_range(name).is_some();
        if earlier.is_some() || within {
            let message = format!("`{}` has a meaning here already", name.node);
            let mut error = Diagnostic::error(message, name.span, "again here");
            if let Some(earlier) = earlier {
                error = error.see(earlier, "first here");
            }
            self.report(error.help("choose another name"));
            return false;
        }
        match self.symbols.get(&name.node) {
            Some((Symbol::Poisoned, _)) => false,
            _ => self.is_free(name),
        }
    }

    fn combined(
        &mut self,
        operation: Operation,
        name: &Name,
        before: Tree,
        value: Tree,
        span: Span,
    ) -> Option<Tree> {
        let function = match operation {
            Operation::Infix(op) => {
                return self.combine(&Spanned::new(op, name.span), before, value, span);
            }
            Operation::Math(function) => function,
        };
        let (Tree::One(before), Tree::One(value)) = (before, value) else {
            let message = format!("`{}` takes numbers", name.node);
            let error = Diagnostic::error(message, span, "a vec or a struct");
            self.report(error.help("take the parts: `.name`, `.0`"));
            return None;
        };
        let what = format!("the values of `{}`", name.node);
        let (before, value, literal) = self.unify(before, value, &what)?;
        let ty = before.ty;
        if ty == Type::Bool {
            let message = format!("`{}` takes numbers, not conditions", name.node);
            self.report(Diagnostic::error(message, span, ""));
            return None;
        }
        let expr = Expr { kind: ExprKind::Call(function, vec![before, value]), ty, span };
        Some(Tree::One(Value { expr, literal }))
    }
}
