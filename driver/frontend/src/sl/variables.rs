//! Local variables and arrays: declarations and assignments.

use super::lower::{Cell, Lower, OWN_NAMES, Variable};
use super::tree::{Declarator, Expr as Tree};
use super::types::{self, convert};
use crate::ast::{Name, Spanned};
use crate::diagnostics::Diagnostic;
use crate::lexer::shorten;
use crate::limits;
use crate::program::{BinaryOp, ExprKind};
use crate::suggest;
use stencil_runtime::array::Element;

impl Lower<'_> {
    /// Reports a name that is not free for a variable.
    fn is_free(&mut self, name: &Name) {
        let own = OWN_NAMES.contains(&name.node.as_str());
        if !own || name.node == "value" && self.context.value.is_none() {
            return;
        }
        let message = format!("`{}` has a meaning of its own in a block", name.node);
        let error = Diagnostic::error(message, name.span, "declared here");
        self.report(error.help("choose another name"));
    }

    pub(super) fn declare(&mut self, element: Element, constant: bool, variable: &Declarator) {
        let Declarator { name, length, values } = variable;
        self.is_free(name);
        let array = length.is_some();
        let length = length.as_ref().map_or(Some(1), |length| self.length(length));
        let mut cells = vec![Cell::Unset; length.unwrap_or(1)];
        match values {
            Some(values) => {
                if values.len() > cells.len() && length.is_some() {
                    let span = values.get(cells.len()).map_or(name.span, |value| value.span);
                    let message = format!("`{}` has {} elements", name.node, cells.len());
                    self.report(Diagnostic::error(message, span, "one value too many"));
                }
                let mut found: Vec<Cell> =
                    values.iter().map(|value| self.converted(value, element)).collect();
                if array {
                    // As in C, elements without a value are 0.
                    let zero = convert(types::integer(0, Element::I32, name.span), element);
                    found.resize(cells.len(), Cell::Value(zero));
                }
                cells = found;
            }
            None if constant => {
                let message = format!("the constant `{}` has no value", name.node);
                let error = Diagnostic::error(message, name.span, "");
                self.report(error.help("give it one where it is declared"));
            }
            None => {}
        }
        if length.is_none() {
            cells = vec![Cell::Broken];
        }
        let (name, span) = (name.node.clone(), name.span);
        self.variables.push(Variable { name, span, element, constant, array, cells });
    }

    fn converted(&mut self, value: &Tree, element: Element) -> Cell {
        let value = self.number(value);
        value.map_or(Cell::Broken, |value| Cell::Value(self.keep(convert(value, element))))
    }

    /// The number of elements of an array.
    fn length(&mut self, length: &Tree) -> Option<usize> {
        let value = self.number(length)?;
        let ExprKind::Int(count) = value.kind else {
            let error = Diagnostic::error("an array's length is a constant", length.span, "");
            self.report(error.help("write a number"));
            return None;
        };
        if !(1..=i128::from(limits::SL_ARRAY)).contains(&count) {
            let message = format!("an array has 1 to {} elements", limits::SL_ARRAY);
            self.report(Diagnostic::error(message, length.span, format!("{count} elements")));
            return None;
        }
        usize::try_from(count).ok()
    }

    pub(super) fn assign(
        &mut self,
        name: &Name,
        index: Option<&Tree>,
        op: Option<&Spanned<BinaryOp>>,
        value: &Tree,
    ) {
        let index = index.map(|index| (self.number(index), index.span));
        let value_span = value.span;
        let value = self.number(value);
        let Some(place) = self.variable(name) else { return };
        let Some(variable) = self.variables.get(place) else { return };
        let (element, declared) = (variable.element, variable.span);
        if variable.constant {
            let message = format!("`{}` is a constant", name.node);
            let error = Diagnostic::error(message, name.span, "assigned to");
            return self.report(error.see(declared, "declared here"));
        }
        let Some(index) = self.element_of(place, name, index) else { return };
        let value = match op {
            None => value,
            Some(op) => {
                let old = self.cell(place, index, name);
                old.zip(value).and_then(|(old, value)| {
                    self.arithmetic(op, old, value, name.span.to(value_span))
                })
            }
        };
        let cell = match value {
            Some(value) => Cell::Value(self.keep(convert(value, element))),
            None => Cell::Broken,
        };
        let variable = self.variables.get_mut(place);
        if let Some(slot) = variable.and_then(|variable| variable.cells.get_mut(index)) {
            *slot = cell;
        }
    }

    /// The place of a variable that can be assigned to.
    fn variable(&mut self, name: &Name) -> Option<usize> {
        let found = self.variables.iter().rposition(|variable| variable.name == name.node);
        if found.is_some() {
            return found;
        }
        let is_scalar = self.context.scalars.contains_key(&name.node);
        let is_known = is_scalar || OWN_NAMES.contains(&name.node.as_str());
        let error = if is_known {
            let message = format!("`{}` can only be read", name.node);
            let error = Diagnostic::error(message, name.span, "assigned to");
            error.help("declare a variable of your own for the new value")
        } else {
            self.unknown(name)
        };
        if is_known || !self.names_lost {
            self.report(error);
        }
        None
    }

    /// A name that is not declared.
    pub(super) fn unknown(&self, name: &Name) -> Diagnostic {
        let message = format!("unknown name `{}`", shorten(&name.node));
        let error = Diagnostic::error(message, name.span, "not declared");
        let variables = self.variables.iter().map(|variable| variable.name.as_str());
        let scalars = self.context.scalars.keys().map(String::as_str);
        match suggest::nearest(&name.node, variables.chain(scalars).chain(OWN_NAMES)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("declare it, as in `float a;`, or add it to `ScalarVariables`"),
        }
    }
}
