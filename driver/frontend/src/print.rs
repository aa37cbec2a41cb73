//! A syntax tree as text: canonical source that parses to the same tree.

use crate::ast::*;
use std::fmt::{self, Display, Formatter, Write};

/// The whole file in canonical form, one item a line.
pub fn print(file: &File) -> String {
    let mut out = String::new();
    for item in &file.items {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{}", item.node);
    }
    out
}

impl Display for ItemKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param { name, value: None } => write!(f, "param {}", name.node),
            Self::Param { name, value: Some(value) } => {
                write!(f, "param {} = {}", name.node, value.node)
            }
            Self::Scalar { name, ty, default } => {
                write!(f, "scalar {} : {}", name.node, ty.node)?;
                default.iter().try_for_each(|value| write!(f, " = {}", value.node))
            }
            Self::Struct { name, members } => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, ty)| format!("{} : {}", name.node, ty.node))
                    .collect();
                write!(f, "struct {} {{ {} }}", name.node, members.join(", "))
            }
            Self::Grid { name, region } => write!(f, "grid {} = {}", name.node, Points(region)),
            Self::Field { role, name, ty, grid } => {
                let role = match role {
                    FieldRole::State => "",
                    FieldRole::Const => "const ",
                    FieldRole::Temp => "temp ",
                };
                write!(f, "{role}field {} : {} on {}", name.node, ty.node, grid.node)
            }
            Self::Boundary { field, rule } => write!(f, "boundary {} = {}", field.node, rule.node),
            Self::Let { name, parameters, value } => {
                write!(f, "let {}({}) = {}", name.node, list(parameters), value.node)
            }
            Self::Function { name, updates, pieces } => {
                write!(f, "fn {} -> ", name.node)?;
                match updates.as_slice() {
                    [one] => f.write_str(one)?,
                    several => write!(f, "({})", list(several))?,
                }
                match pieces.as_slice() {
                    [piece] => write!(f, " {}", piece.node),
                    pieces => {
                        f.write_str(" {\n")?;
                        pieces.iter().try_for_each(|piece| writeln!(f, "  {}", piece.node))?;
                        f.write_str("}")
                    }
                }
            }
            Self::Repeat { count, items } => {
                writeln!(f, "repeat {} {{", count.node)?;
                items.iter().try_for_each(|item| writeln!(f, "{}", item.node))?;
                f.write_str("}")
            }
            Self::Reduce { name, ty, operation, arguments, region, initial } => {
                let (name, ty, operation) = (&name.node, &ty.node, &operation.node);
                let arguments = list(arguments);
                let points = Points(region);
                write!(f, "reduce {name} : {ty} = {operation}({arguments}) on {points}")?;
                initial.iter().try_for_each(|value| write!(f, " initially {}", value.node))
            }
            Self::Steps { count, until } => {
                write!(f, "steps {}", count.node)?;
                let Some(until) = until else { return Ok(()) };
                write!(f, " until {}", until.condition.node)?;
                until.every.iter().try_for_each(|steps| write!(f, " every {}", steps.node))
            }
            Self::Broken { .. } => f.write_str("# an item that could not be read"),
        }
    }
}

impl Display for PieceKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = ", Points(&self.region))?;
        match (self.lets.as_slice(), self.values.as_slice()) {
            (_, [value]) => write!(f, "{}", value.node),
            ([], values) => write!(f, "({})", list(values)),
            (lets, values) => {
                f.write_str("{ ")?;
                shared(f, lets)?;
                write!(f, "({}) }}", list(values))
            }
        }
    }
}

/// `[0..N-1, 0..M-1]`
struct Points<'a>(&'a Region);

impl Display for Points<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", list(&self.0.node))
    }
}

impl Display for RangeKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{} in ", name.node)?;
        }
        write!(f, "{}", self.lower.node)?;
        self.upper.iter().try_for_each(|upper| write!(f, "..{}", upper.node))
    }
}

impl Display for TypeKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Vec(lanes, ty) => {
                f.write_str("vec<")?;
                operand(f, lanes, COMPARISON + 1)?;
                write!(f, ", {}>", ty.node)
            }
        }
    }
}

impl Display for ExprKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(text) => f.write_str(text),
            Self::Name(name) => f.write_str(name),
            Self::Access { field, primed, offsets } => {
                let prime = if *primed { "'" } else { "" };
                write!(f, "{}{prime}[{}]", field.node, list(offsets))
            }
            Self::Call { name, arguments } => write!(f, "{}({})", name.node, list(arguments)),
            Self::Struct { name, members } => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| format!("{}: {}", name.node, value.node))
                    .collect();
                write!(f, "{} {{ {} }}", name.node, members.join(", "))
            }
            Self::Member(value, name) => {
                operand(f, value, POSTFIX)?;
                write!(f, ".{}", name.node)
            }
            Self::Lane(value, lane) => {
                operand(f, value, POSTFIX)?;
                write!(f, ".{}", lane.node)
            }
            Self::Unary(op, value) => {
                f.write_str(match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                    UnaryOp::Inverse => "~",
                })?;
                operand(f, value, PREFIX)
            }
            Self::Binary(..) => chain(f, self),
            Self::If(condition, yes, no) => {
                write!(f, "if {} then {} else {}", condition.node, yes.node, no.node)
            }
            Self::Block(lets, body) => {
                f.write_str("{ ")?;
                shared(f, lets)?;
                write!(f, "{} }}", body.node)
            }
            Self::Fold(fold) => {
                let Fold { operation, variable, lower, upper, body } = &**fold;
                let (operation, variable) = (&operation.node, &variable.node);
                let (lower, upper, body) = (&lower.node, &upper.node, &body.node);
                write!(f, "{operation}({variable} in {lower}..{upper}) {body}")
            }
            Self::Broken => f.write_str("?"),
        }
    }
}

/// Above prefix operators: what `.name` may follow without parentheses.
const POSTFIX: u8 = PREFIX + 1;

/// Infix operators, walking down the left side in a loop: sums may be long.
fn chain(f: &mut Formatter<'_>, whole: &ExprKind) -> fmt::Result {
    let mut steps = Vec::new();
    let mut node = whole;
    let mut required = 0;
    while let ExprKind::Binary(op, left, right) = node {
        let own = precedence(op.node);
        if own < required {
            break;
        }
        steps.push((op.node, own, right));
        required = if own == COMPARISON { own + 1 } else { own };
        node = &left.node;
    }
    parenthesized(f, node, required)?;
    for (op, own, right) in steps.into_iter().rev() {
        write!(f, " {} ", symbol(op))?;
        operand(f, right, own + 1)?;
    }
    Ok(())
}

fn operand(f: &mut Formatter<'_>, expr: &Expr, required: u8) -> fmt::Result {
    parenthesized(f, &expr.node, required)
}

/// The expression, in parentheses where it binds less tightly than required.
fn parenthesized(f: &mut Formatter<'_>, node: &ExprKind, required: u8) -> fmt::Result {
    let own = match node {
        ExprKind::Binary(op, ..) => precedence(op.node),
        ExprKind::Unary(..) => PREFIX,
        ExprKind::If(..) | ExprKind::Fold(_) => 0,
        ExprKind::Int(_) | ExprKind::Float(_) => PREFIX,
        _ => POSTFIX,
    };
    match own < required {
        true => write!(f, "({node})"),
        false => write!(f, "{node}"),
    }
}

/// `let x = e; ` for each name.
fn shared(f: &mut Formatter<'_>, lets: &[(Name, Expr)]) -> fmt::Result {
    lets.iter().try_for_each(|(name, value)| write!(f, "let {} = {}; ", name.node, value.node))
}

fn list<T: Display>(nodes: &[Spanned<T>]) -> String {
    nodes.iter().map(|node| node.node.to_string()).collect::<Vec<_>>().join(", ")
}
