//! Which name stands for what.

use super::Checker;
use super::boundary::COORDINATES;
use crate::ast::Name;
use crate::diagnostics::Diagnostic;
use crate::program::{FieldId, GridId, MathFunction, ParamId, ScalarId};
use crate::source::Span;
use crate::suggest;
use stencil_runtime::array::Element;

/// What a declared name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A size.
    Param(ParamId),
    /// A run-time scalar.
    Scalar(ScalarId),
    /// A grid.
    Grid(GridId),
    /// A field.
    Field(FieldId),
    /// A struct, by its place among the declared ones.
    Struct(usize),
    /// A function.
    Function,
    /// A function in expressions, by its place.
    Let(usize),
    /// A reduction, by the field that holds its value.
    Reduction(FieldId),
    /// Its declaration is faulty or not supported, and that has been said.
    Poisoned,
}

impl Symbol {
    /// What to call it, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Param(_) => "a param",
            Self::Scalar(_) => "a scalar",
            Self::Grid(_) => "a grid",
            Self::Field(_) => "a field",
            Self::Struct(_) => "a struct",
            Self::Function => "a function",
            Self::Let(_) => "a function",
            Self::Reduction(_) => "a reduction",
            Self::Poisoned => "a faulty declaration",
        }
    }
}

/// Math functions with their number of arguments.
pub const MATH: [(&str, MathFunction, usize); 21] = [
    ("min", MathFunction::Min, 2),
    ("max", MathFunction::Max, 2),
    ("abs", MathFunction::Abs, 1),
    ("sqrt", MathFunction::Sqrt, 1),
    ("rsqrt", MathFunction::Rsqrt, 1),
    ("cbrt", MathFunction::Cbrt, 1),
    ("sign", MathFunction::Sign, 1),
    ("exp", MathFunction::Exp, 1),
    ("exp2", MathFunction::Exp2, 1),
    ("log", MathFunction::Log, 1),
    ("log2", MathFunction::Log2, 1),
    ("sin", MathFunction::Sin, 1),
    ("cos", MathFunction::Cos, 1),
    ("tan", MathFunction::Tan, 1),
    ("atan2", MathFunction::Atan2, 2),
    ("tanh", MathFunction::Tanh, 1),
    ("erf", MathFunction::Erf, 1),
    ("pow", MathFunction::Pow, 2),
    ("floor", MathFunction::Floor, 1),
    ("ceil", MathFunction::Ceil, 1),
    ("fma", MathFunction::Fma, 3),
];

/// Names of the language that are neither types nor math functions.
const OTHERS: [&str; 13] = [
    "t",
    "vec",
    "nearest",
    "periodic",
    "reflect",
    "bool",
    "true",
    "false",
    "complex64",
    "complex128",
    "cmul",
    "conj",
    "cabs",
];

/// Whether the language itself uses the name, which is none of its keywords.
pub fn is_reserved(name: &str) -> bool {
    OTHERS.contains(&name)
        || Element::from_name(name).is_some()
        || MATH.iter().any(|(known, ..)| *known == name)
}

impl Checker<'_> {
    /// Declares a name; false, with an error, where it is taken.
    pub fn declare(&mut self, name: &Name, symbol: Symbol) -> bool {
        if !self.is_free(name) {
            return false;
        }
        self.symbols.insert(name.node.clone(), (symbol, name.span));
        true
    }

    /// Says so where a name is taken by the language or an earlier declaration.
    pub fn is_free(&mut self, name: &Name) -> bool {
        if is_reserved(name) {
            let message = format!("`{}` is a name of the language", name.node);
            self.report(Diagnostic::error(message, name.span, "").help("choose another name"));
            return false;
        }
        let Some((_, earlier)) = self.symbols.get(&name.node) else {
            return true;
        };
        let message = format!("`{}` is declared twice", name.node);
        let error = Diagnostic::error(message, name.span, "again here")
            .see(*earlier, "first declared here")
            .help("give one of them another name");
        self.report(error);
        false
    }

    /// What a name stands for; `None`, with an error unless one was given already, where it
    /// stands for nothing usable.
    pub fn resolve(&mut self, name: &str, span: Span) -> Option<Symbol> {
        match self.symbols.get(name) {
            Some((Symbol::Poisoned, _)) => None,
            Some((symbol, _)) => Some(*symbol),
            None if let Some(field) = self.reduction_ahead(name) => Some(Symbol::Reduction(field)),
            None => {
                self.unknown(name, span, false);
                None
            }
        }
    }

    /// The same where only a field makes sense.
    pub fn resolve_field(&mut self, name: &Name) -> Option<Symbol> {
        let known = self.symbols.contains_key(&name.node);
        if known || self.reduction_ahead(name).is_some() {
            return self.resolve(name, name.span);
        }
        self.unknown(name, name.span, true);
        None
    }

    fn unknown(&mut self, name: &str, span: Span, field: bool) {
        if let Some(later) = self.declared_at.get(name) {
            let message = format!("`{name}` is used before it is declared");
            let error = Diagnostic::error(message, span, "used here").see(*later, "declared here");
            self.report(match later.start < span.start {
                true => error.help("its value hangs on itself; name another one"),
                false => error.help("move the declaration up"),
            });
            return;
        }
        if self.names_lost {
            return; // An unreadable item may have declared it.
        }
        if OTHERS.contains(&name) {
            let message = format!("`{name}` stands for nothing in an expression here");
            let error = Diagnostic::error(message, span, "");
            self.report(error.help(match name {
                "nearest" => "it is a value in boundary rules alone: `boundary A = 0.5 * nearest`",
                _ => "it is a boundary rule by itself: `boundary A = periodic`",
            }));
            return;
        }
        let message = format!("unknown name `{}`", crate::lexer::shorten(name));
        let error = Diagnostic::error(message, span, "declared nowhere");
        let locals = self.scope.locals.iter().map(|local| local.name.as_str());
        let coordinates = self.scope.coordinates.iter().flatten().map(|name| name.node.as_str());
        let declared = self.symbols.keys().map(String::as_str);
        let built_in = MATH.iter().map(|(name, ..)| *name);
        let mut known: Vec<&str> =
            locals.chain(coordinates).chain(declared).chain(built_in).collect();
        known.sort_unstable();
        let near = match self.errors.len() {
            0..100 => other_word(name, self.scope.rule.is_some())
                .or_else(|| suggest::nearest(name, known)),
            _ => None, // So many errors have another cause.
        };
        let coordinates =
            COORDINATES.get(..self.scope.coordinates.len()).unwrap_or_default().join(", ");
        let error = match near {
            _ if self.scope.rule.is_some() && COORDINATES.contains(&name) => {
                error.help(format!("the coordinates of this rule's field: {coordinates}"))
            }
            Some(other) => error.help(format!("did you mean `{other}`?")),
            None if field => {
                let grid = self.program.grids.values().next();
                let grid = grid.map_or("G", |grid| grid.name.as_str());
                error.help(format!(
                    "declare it above: `field {name} : f32 on {grid}`, or `const field` for one \
                     that stays"
                ))
            }
            None if self.scope.rule.is_some() => error.help(format!(
                "a rule is nearest, periodic, reflect, or an expression of nearest, {coordinates}, \
                 t, params and scalars"
            )),
            None if ["sum", "prod", "count", "any", "all"].contains(&name) => error.help(format!(
                "over a whole grid it is an item of a step, as in `reduce r : f64 = {name}(...) on \
                 [0..N-1]`; over a constant range `sum(k in -2..2) A[k]`"
            )),
            None if self.scope.ends_run => error.help(format!(
                "declare it above: `reduce {name} : f32 = max(...) on [...]` for a number of the \
                 fields, `scalar {name} : f32` for a constant"
            )),
            None if self.scope.body => {
                error.help("a body sees its parameters; give it coordinates and `let`s by these")
            }
            None if ["i", "j", "k", "x", "y", "z", "x0", "x1", "x2"].contains(&name) => {
                error.help(format!("a coordinate is named in the box, as in `[{name} in 1..N-2]`"))
            }
            None => error.help(format!(
                "declare it above: `param {name}` for a size, `scalar {name} : f32` for a number"
            )),
        };
        self.report(error);
    }
}

/// The language's word for what other languages call so; some only stand in a boundary `rule`.
fn other_word(name: &str, rule: bool) -> Option<&'static str> {
    Some(match name {
        "ln" => "log",
        "fabs" => "abs",
        "sgn" | "copysign" => "sign",
        "arctan2" => "atan2",
        "power" => "pow",
        "fmin" | "minimum" => "min",
        "fmax" | "maximum" => "max",
        "wrap" | "cyclic" | "circular" if rule => "periodic",
        "clamp" | "edge" | "replicate" if rule => "nearest",
        "True" | "TRUE" => "true",
        "False" | "FALSE" => "false",
        _ => return None,
    })
}
