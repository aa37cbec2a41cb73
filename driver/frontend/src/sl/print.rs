//! A file of SL as text, by its syntax tree: one key and one statement a line. An expression has no
//! more parentheses than it needs, so that its text nests no deeper than its source.

use super::tree::{Block, Declarator, Expr, ExprKind, File, Statement, StatementKind};
use super::types;
use crate::program::{BinaryOp, UnaryOp};
use std::fmt::Write;
use stencil_runtime::array::Element;

/// The whole file, its keys in the order of the documents. It has no fault.
pub fn print(file: &File) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    if let Some(dimensions) = &file.dimensions {
        let _ = writeln!(out, "NumDimensions {}", dimensions.node);
    }
    if let Some(sizes) = &file.stencil_size {
        let sizes: Vec<_> = sizes.iter().map(|size| size.node.to_string()).collect();
        let _ = writeln!(out, "StencilSize ({})", sizes.join(", "));
    }
    if let Some(element) = &file.data_type {
        let _ = writeln!(out, "DataType {}", types::name(element.node));
    }
    if let Some(name) = &file.function_name {
        let _ = writeln!(out, "FunctionName {}", name.node);
    }
    if !file.scalars.is_empty() {
        let scalars = file.scalars.iter();
        let scalars = scalars.map(|(ty, name)| format!("{} {}", types::name(ty.node), name.node));
        let _ = writeln!(out, "ScalarVariables ({})", scalars.collect::<Vec<_>>().join(", "));
    }
    let blocks: [(&str, &Option<Block>); 3] = [
        ("CellValue", &file.cell_value),
        ("EdgeValue", &file.edge_value),
        ("Converged", &file.converged),
    ];
    for (key, block) in blocks {
        if let Some(block) = block {
            let _ = writeln!(out, "{key} {{");
            statements(&mut out, &block.statements, 1);
            out.push_str("}\n");
        }
    }
    if let Some(every) = &file.every {
        let _ = writeln!(out, "ConvergedEvery {}", every.node);
    }
    out
}

fn statements(out: &mut String, all: &[Statement], level: usize) {
    let indent = "  ".repeat(level);
    for statement in all {
        match &statement.node {
            StatementKind::If { .. } => {
                out.push_str(&indent);
                conditional(out, &statement.node, level);
            }
            StatementKind::For { start, condition, advance, body } => {
                let part = |part: &Option<Box<Statement>>| {
                    part.as_ref().map_or_else(String::new, |part| simple(&part.node))
                };
                let (start, advance) = (part(start), part(advance));
                let _ = writeln!(out, "{indent}for ({start}; {}; {advance}) {{", expr(condition));
                statements(out, body, level + 1);
                let _ = writeln!(out, "{indent}}}");
            }
            StatementKind::Block(inner) => {
                let _ = writeln!(out, "{indent}{{");
                statements(out, inner, level + 1);
                let _ = writeln!(out, "{indent}}}");
            }
            kind => {
                let _ = writeln!(out, "{indent}{};", simple(kind));
            }
        }
    }
}

/// An `if` behind its indent, with all that hangs on its `else`.
fn conditional(out: &mut String, first: &StatementKind, level: usize) {
    let indent = "  ".repeat(level);
    let mut kind = first;
    while let StatementKind::If { condition, yes, no } = kind {
        let _ = writeln!(out, "if ({}) {{", expr(condition));
        statements(out, yes, level + 1);
        match no.as_slice() {
            [] => break,
            [next] if matches!(next.node, StatementKind::If { .. }) => {
                let _ = write!(out, "{indent}}} else ");
                kind = &next.node;
            }
            no => {
                let _ = writeln!(out, "{indent}}} else {{");
                statements(out, no, level + 1);
                break;
            }
        }
    }
    let _ = writeln!(out, "{indent}}}");
}

/// A statement of one line, without its semicolon.
fn simple(kind: &StatementKind) -> String {
    match kind {
        StatementKind::Declare { element, constant, variables } => {
            let constant = if *constant { "const " } else { "" };
            let variables: Vec<_> = variables.iter().map(declarator).collect();
            format!("{constant}{} {}", types::name(*element), variables.join(", "))
        }
        StatementKind::Assign { name, index, op, value } => {
            let index = index.as_ref().map(|index| format!("[{}]", expr(index)));
            let op = op.as_ref().map_or("", |op| operator(op.node).0);
            format!("{}{} {op}= {}", name.node, index.unwrap_or_default(), expr(value))
        }
        StatementKind::Return(value) => format!("return {}", expr(value)),
        _ => String::new(),
    }
}

fn declarator(variable: &Declarator) -> String {
    let Declarator { name, length, values } = variable;
    let length = length.as_ref().map(|length| format!("[{}]", expr(length)));
    let values = values.as_ref().map(|values| {
        let all = values.iter().map(expr).collect::<Vec<_>>().join(", ");
        if length.is_some() { format!(" = {{{all}}}") } else { format!(" = {all}") }
    });
    format!("{}{}{}", name.node, length.unwrap_or_default(), values.unwrap_or_default())
}

fn expr(value: &Expr) -> String {
    match &value.node {
        ExprKind::Int { value, element } => {
            let suffix = match element {
                Element::U32 => "u",
                Element::I64 => "ll",
                Element::U64 => "ull",
                _ => "",
            };
            format!("{value}{suffix}")
        }
        ExprKind::Float { text, element: Element::F32 } => format!("{text}f"),
        ExprKind::Float { text, .. } => text.clone(),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Member(of, name) => format!("{}.{}", part(of, ATOM), name.node),
        ExprKind::Index(name, index) => format!("{}[{}]", name.node, expr(index)),
        ExprKind::Call(name, arguments) => {
            let arguments: Vec<_> = arguments.iter().map(expr).collect();
            format!("{}({})", name.node, arguments.join(", "))
        }
        ExprKind::Cast(element, of) => format!("({}) {}", types::name(*element), part(of, PREFIX)),
        ExprKind::Plus(of) => prefixed('+', of),
        ExprKind::Unary(UnaryOp::Neg, of) => prefixed('-', of),
        ExprKind::Unary(UnaryOp::Not, of) => prefixed('!', of),
        ExprKind::Unary(UnaryOp::Inverse, of) => prefixed('~', of),
        ExprKind::Binary(op, left, right) => {
            let (sign, binds) = operator(op.node);
            format!("{} {sign} {}", part(left, binds), part(right, binds + 1))
        }
        ExprKind::If(condition, yes, no) => {
            format!("{} ? {} : {}", part(condition, IF + 1), expr(yes), expr(no))
        }
    }
}

/// How tightly `?` binds. Binary operators bind tighter, then prefix operators and casts.
const IF: u8 = 0;
const PREFIX: u8 = u8::MAX - 1;
const ATOM: u8 = u8::MAX;

/// A part of an operation, in parentheses where it binds less tightly than that.
fn part(value: &Expr, least: u8) -> String {
    let binds = match &value.node {
        ExprKind::If(..) => IF,
        ExprKind::Binary(op, ..) => operator(op.node).1,
        ExprKind::Cast(..) | ExprKind::Plus(_) | ExprKind::Unary(..) => PREFIX,
        _ => ATOM,
    };
    if binds < least { format!("({})", expr(value)) } else { expr(value) }
}

/// A prefix operator before its operand. A blank keeps `- -a` apart from `--a`.
fn prefixed(sign: char, of: &Expr) -> String {
    let of = part(of, PREFIX);
    let blank = if of.starts_with(sign) { " " } else { "" };
    format!("{sign}{blank}{of}")
}

/// A binary operator as C writes it, and how tightly it binds.
fn operator(op: BinaryOp) -> (&'static str, u8) {
    let found = super::expressions::OPERATORS.iter().find(|(_, known, _)| *known == op);
    found.map_or(("", 1), |(sign, _, binds)| (sign, *binds))
}
