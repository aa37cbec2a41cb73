//! Variables that are declared twice in one scope. As in C, a block, a branch, and the head and the
//! body of a loop each have a scope of their own, in which a name of an outer one may come again.

use super::tree::{Block, Statement, StatementKind};
use crate::ast::Name;
use crate::diagnostics::Diagnostic;
use std::collections::HashMap;

/// Reports each declaration of a name that its scope has already.
pub fn check(block: &Block, errors: &mut Vec<Diagnostic>) {
    let mut open = vec![block.statements.iter().collect::<Vec<&Statement>>()];
    while let Some(statements) = open.pop() {
        let mut first: HashMap<&str, &Name> = HashMap::new();
        for statement in statements {
            match &statement.node {
                StatementKind::Declare { variables, .. } => {
                    for variable in variables {
                        let name = &variable.name;
                        match first.get(name.node.as_str()) {
                            Some(earlier) => errors.push(twice(name, earlier)),
                            None => drop(first.insert(&name.node, name)),
                        }
                    }
                }
                StatementKind::If { yes, no, .. } => {
                    open.extend([yes, no].map(|branch| branch.iter().collect()));
                }
                StatementKind::For { start, body, .. } => {
                    open.push(start.iter().map(|start| &**start).collect());
                    open.push(body.iter().collect());
                }
                StatementKind::Block(inner) => open.push(inner.iter().collect()),
                StatementKind::Assign { .. } | StatementKind::Return(_) | StatementKind::Broken => {
                }
            }
        }
    }
}

fn twice(name: &Name, earlier: &Name) -> Diagnostic {
    let message = format!("the variable `{}` is declared twice in one scope", name.node);
    let error = Diagnostic::error(message, name.span, "again here");
    let error = error.see(earlier.span, "first declared here");
    error.help("assign to the first one, or give one of them another name")
}
