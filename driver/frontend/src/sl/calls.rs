//! Names with a meaning of their own, `get`, `read`, and the math functions.

use super::lower::Lower;
use super::tree::Expr as Tree;
use super::types::{self, common, convert, integer};
use crate::ast::Name;
use crate::diagnostics::Diagnostic;
use crate::lexer::shorten;
use crate::program::{BinaryOp, Expr, ExprKind, MathFunction, Type};
use crate::source::Span;
use crate::suggest;
use stencil_runtime::array::Element;

/// What a math function computes with.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Floats: `float` where all arguments are, else `double`. With an `f` behind it, `float`.
    Float,
    /// Any numbers, in their common type.
    Any,
}

/// The math functions by their names in C.
const FUNCTIONS: [(&str, Option<MathFunction>, usize, Kind); 24] = [
    ("sqrt", Some(MathFunction::Sqrt), 1, Kind::Float),
    ("rsqrt", Some(MathFunction::Rsqrt), 1, Kind::Float),
    ("cbrt", Some(MathFunction::Cbrt), 1, Kind::Float),
    ("exp", Some(MathFunction::Exp), 1, Kind::Float),
    ("exp2", Some(MathFunction::Exp2), 1, Kind::Float),
    ("log", Some(MathFunction::Log), 1, Kind::Float),
    ("log2", Some(MathFunction::Log2), 1, Kind::Float),
    ("sin", Some(MathFunction::Sin), 1, Kind::Float),
    ("cos", Some(MathFunction::Cos), 1, Kind::Float),
    ("tan", Some(MathFunction::Tan), 1, Kind::Float),
    ("atan2", Some(MathFunction::Atan2), 2, Kind::Float),
    ("erf", Some(MathFunction::Erf), 1, Kind::Float),
    ("tanh", Some(MathFunction::Tanh), 1, Kind::Float),
    ("pow", Some(MathFunction::Pow), 2, Kind::Float),
    ("floor", Some(MathFunction::Floor), 1, Kind::Float),
    ("ceil", Some(MathFunction::Ceil), 1, Kind::Float),
    ("fma", Some(MathFunction::Fma), 3, Kind::Float),
    ("fabs", Some(MathFunction::Abs), 1, Kind::Float),
    ("fmin", Some(MathFunction::Min), 2, Kind::Float),
    ("fmax", Some(MathFunction::Max), 2, Kind::Float),
    ("fmod", None, 2, Kind::Float),
    ("min", Some(MathFunction::Min), 2, Kind::Any),
    ("max", Some(MathFunction::Max), 2, Kind::Any),
    ("abs", Some(MathFunction::Abs), 1, Kind::Any),
];

impl Lower<'_> {
    /// `x`, `iteration`, `value` and the like.
    pub(super) fn own_name(&mut self, name: &Name) -> Option<Expr> {
        let span = name.span;
        let dimensions = self.context.sizes.len();
        let index = Type::Element(Element::I64);
        let error = match name.node.as_str() {
            axis @ ("x" | "y" | "z") => {
                let number = ["x", "y", "z"].iter().position(|one| *one == axis).unwrap_or(0);
                if number < dimensions {
                    let kind = ExprKind::Coordinate(dimensions - 1 - number);
                    return Some(convert(Expr { kind, ty: index, span }, Element::I32));
                }
                let message = format!("there is no `{axis}` in {}", count(dimensions));
                Diagnostic::error(message, span, "")
            }
            "iteration" => {
                // Iteration 0 is the input.
                let step = Expr { kind: ExprKind::Step, ty: index, span };
                let one = integer(1, Element::I64, span);
                let kind = ExprKind::Binary(BinaryOp::Add, Box::new(step), Box::new(one));
                return Some(convert(Expr { kind, ty: index, span }, Element::I32));
            }
            "value" if self.context.value.is_some() => {
                return self.context.value.clone().map(|value| Expr { span, ..value });
            }
            "value" => {
                let message = "`CellValue` has no `value`";
                let error = Diagnostic::error(message, span, "");
                error.help("the old value of the cell is `get(0, 0)`, with a 0 for each dimension")
            }
            "input_size" => Diagnostic::error("`input_size` is a structure", span, "no member")
                .help("write `input_size.x`"),
            "get" | "read" => {
                let text = format!("`{}` is a function", name.node);
                let call = if name.node == "get" { "get(0, 0)" } else { "read(0)" };
                Diagnostic::error(text, span, "no arguments").help(format!("write `{call}`"))
            }
            function if function_named(function).is_some() => {
                Diagnostic::error(format!("`{function}` is a function"), span, "no arguments")
            }
            _ if self.names_lost => return None,
            _ => self.unknown(name),
        };
        self.report(error);
        None
    }

    /// A call.
    pub(super) fn call(&mut self, name: &Name, arguments: &[Tree], span: Span) -> Option<Expr> {
        match name.node.as_str() {
            "get" => return self.get(name, arguments, span),
            "read" => return self.read(name, arguments, span),
            _ => {}
        }
        let Some((function, wanted, kind, single)) = function_named(&name.node) else {
            arguments.iter().for_each(|argument| drop(self.number(argument)));
            let message = format!("unknown function `{}`", shorten(&name.node));
            let error = Diagnostic::error(message, name.span, "");
            let names = FUNCTIONS.iter().map(|(name, ..)| *name).chain(["get", "read"]);
            let error = match suggest::nearest(&name.node, names.clone()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error
                    .note(format!("the functions are {}", names.collect::<Vec<_>>().join(", "))),
            };
            self.report(error);
            return None;
        };
        let values: Vec<_> = arguments.iter().map(|argument| self.number(argument)).collect();
        if !self.has_count(name, arguments.len(), wanted, span) {
            return None;
        }
        let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
        let types = values.iter().map(types::element);
        let element = match kind {
            _ if single => Element::F32,
            Kind::Any => types.reduce(common)?,
            // As the functions of C++ are chosen.
            Kind::Float if types.clone().all(|element| element == Element::F32) => Element::F32,
            Kind::Float => Element::F64,
        };
        let mut values: Vec<Expr> =
            values.into_iter().map(|value| convert(value, element)).collect();
        let kind = match function {
            Some(function) => ExprKind::Call(function, values),
            None => {
                let (right, left) = (values.pop()?, values.pop()?);
                ExprKind::Binary(BinaryOp::Rem, Box::new(left), Box::new(right))
            }
        };
        Some(Expr { kind, ty: Type::Element(element), span })
    }

    fn has_count(&mut self, name: &Name, found: usize, wanted: usize, span: Span) -> bool {
        if found == wanted {
            return true;
        }
        let plural = if wanted == 1 { "" } else { "s" };
        let message = format!("`{}` takes {wanted} argument{plural}, not {found}", name.node);
        let error = Diagnostic::error(message, span, "");
        self.report(match name.node.as_str() {
            "get" => error.help("one offset a dimension, x first"),
            "read" => error.help("the number of the element, as in `read(y * input_size.x + x)`"),
            _ => error,
        });
        false
    }

    /// `get(dx, dy)`: a cell of the previous iteration, x first.
    fn get(&mut self, name: &Name, arguments: &[Tree], span: Span) -> Option<Expr> {
        if self.context.edge {
            let error = Diagnostic::error("`EdgeValue` may not use `get`", span, "");
            self.report(error.help("`value` is the value of the nearest cell inside"));
            return None;
        }
        let values: Vec<_> = arguments.iter().map(|argument| self.number(argument)).collect();
        if !self.has_count(name, arguments.len(), self.context.sizes.len(), span) {
            return None;
        }
        let mut offset = Vec::new();
        for (axis, (value, argument)) in values.into_iter().zip(arguments).enumerate() {
            offset.extend(value.and_then(|value| self.offset(axis, &value, argument.span)));
        }
        if offset.len() < self.context.sizes.len() {
            return None;
        }
        if offset.iter().any(|distance| *distance != 0) && self.beside.is_none() {
            self.beside = Some(span);
        }
        offset.reverse();
        let kind = ExprKind::Read { field: self.context.data, offset, current: false };
        Some(Expr { kind, ty: Type::Element(self.context.element), span })
    }

    /// An offset along an axis.
    fn offset(&mut self, axis: usize, value: &Expr, span: Span) -> Option<i64> {
        let ExprKind::Int(distance) = value.kind else {
            let error = Diagnostic::error("the offsets of `get` are constants", span, "");
            self.report(error.help("use numbers, counters of loops and operators on them"));
            return None;
        };
        let reach = self.context.stencil_size.get(axis).copied().unwrap_or(0);
        if distance.unsigned_abs() > u128::from(reach) {
            let letter = ["x", "y", "z"].get(axis).unwrap_or(&"x");
            let message = format!("`get` reaches {reach} in {letter}, and this is {distance}");
            let error = Diagnostic::error(message, span, "");
            self.report(error.help("make `StencilSize` larger"));
            return None;
        }
        i64::try_from(distance).ok()
    }

    /// `read(i)`: an element of the array that `SetData` was given.
    fn read(&mut self, name: &Name, arguments: &[Tree], span: Span) -> Option<Expr> {
        let values: Vec<_> = arguments.iter().map(|argument| self.number(argument)).collect();
        if !self.has_count(name, arguments.len(), 1, span) {
            return None;
        }
        let index = values.into_iter().next().flatten()?;
        if types::element(&index).is_float() {
            let message =
                format!("`read` takes an integer, not a {}", types::name(types::element(&index)));
            let place = arguments.first().map_or(span, |argument| argument.span);
            self.report(Diagnostic::error(message, place, "").help("convert it: `(int) a`"));
            return None;
        }
        let kind = ExprKind::Gather { field: self.context.read, at: vec![index] };
        Some(Expr { kind, ty: Type::Element(self.context.element), span })
    }
}

/// A math function: what it is, its arguments, its types, and whether it is the one of `float`.
fn function_named(name: &str) -> Option<(Option<MathFunction>, usize, Kind, bool)> {
    let find = |name: &str| FUNCTIONS.iter().find(|(known, ..)| *known == name);
    let of = |single: bool| {
        move |(_, function, count, kind): &(_, Option<MathFunction>, usize, Kind)| {
            (*function, *count, *kind, single)
        }
    };
    let single = || name.strip_suffix('f').and_then(find).filter(|(.., kind)| *kind == Kind::Float);
    find(name).map(of(false)).or_else(|| single().map(of(true)))
}

fn count(dimensions: usize) -> String {
    format!("{dimensions} dimension{}", if dimensions == 1 { "" } else { "s" })
}
