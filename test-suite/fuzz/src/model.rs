//! A program as the generator makes it, with a schedule, sizes and data: enough structure to
//! shrink it and to transpose it, and the text that the compiler gets.

use std::fmt::Write;
use stencil_runtime::array::Element;

/// A program with everything that a run needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// How it is compiled; a second schedule must give the same bits.
    pub schedules: Vec<Schedule>,
    /// Where the inputs come from.
    pub data: Data,
    /// The seed that permutes the order of blocks.
    pub order: Option<u64>,
    /// Whether the number of steps is given at the start and not in the program.
    pub steps_given: bool,
    /// Whether the levels are printed, read again and taken on from there.
    pub round_trip: bool,
    /// Whether the transposed program is run too.
    pub transpose: bool,
    /// How far the grid of another run is shifted, one number a dimension.
    pub shift: Option<Vec<i64>>,
    /// Whether the program is compiled to PTX too.
    pub ptx: bool,
}

/// A program of the language.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Sizes, named `P0`, `P1`, ...
    pub params: Vec<Param>,
    /// Scalars, named `s0`, `s1`, ...
    pub scalars: Vec<Scalar>,
    /// The grid.
    pub grid: Region,
    /// Fields, named `A`, `B`, ...
    pub fields: Vec<Field>,
    /// Functions, named `f0`, `f1`, ...
    pub functions: Vec<Function>,
    /// Steps.
    pub steps: i64,
}

/// A size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its value in this case.
    pub value: i64,
    /// How the compiler or the run learns of it.
    pub known: Known,
}

/// Where the value of a size comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// `param P0 = 12`.
    File,
    /// `-D P0=12`.
    Define,
    /// `--size P0=12`.
    Run,
}

/// A scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalar {
    /// Its type.
    pub element: Element,
    /// Its value in this case.
    pub value: f64,
    /// Whether the run gives it (`--set`), or the program.
    pub given: bool,
}

impl Scalar {
    /// Its value as it is written.
    pub fn text(&self) -> String {
        number_text(self.element, self.value)
    }
}

fn number_text(element: Element, value: f64) -> String {
    if element.is_float() { format!("{value:?}") } else { format!("{value}") }
}

/// What a field is to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Input and output.
    State,
    /// Input.
    Const,
    /// Neither.
    Temp,
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// What it is to the outside.
    pub role: Role,
    /// The type of a cell.
    pub element: Element,
    /// What reads outside the grid give; none where there are none.
    pub rule: Option<Rule>,
}

/// A boundary rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// `nearest`.
    Nearest,
    /// `periodic`.
    Periodic,
    /// `reflect`.
    Reflect,
    /// An expression of the nearest cell, the coordinates, the step, sizes and scalars.
    Value(Expr),
}

/// `constant + coefficient * param`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The constant.
    pub constant: i64,
    /// A param by its place, and its coefficient.
    pub term: Option<(usize, i64)>,
}

/// A box of points, both ends inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First points, slowest dimension first.
    pub lower: Vec<Affine>,
    /// Last points.
    pub upper: Vec<Affine>,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Updated fields by their place.
    pub updates: Vec<usize>,
    /// Its pieces.
    pub pieces: Vec<Piece>,
}

/// A piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The points that it covers.
    pub region: Region,
    /// A value an updated field.
    pub values: Vec<Expr>,
}

/// Type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number.
    Number(Element),
    /// A condition.
    Bool,
}

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its type.
    pub ty: Type,
    /// What it computes.
    pub kind: Kind,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number, written with its type around it, or bare where the context gives the type.
    Number(f64, bool),
    /// A cell.
    Read(usize, Vec<i64>),
    /// A scalar.
    Scalar(usize),
    /// A size.
    Param(usize),
    /// A coordinate.
    Coordinate(usize),
    /// The step.
    Step,
    /// In a boundary rule: the nearest cell inside.
    Nearest,
    /// A local by its number.
    Local(usize),
    /// `-` or `!` before an operand.
    Unary(&'static str, Box<Expr>),
    /// An operator between operands.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `if a then b else c`.
    If(Box<[Expr; 3]>),
    /// `{ let x = a; b }`.
    Let(usize, Box<Expr>, Box<Expr>),
    /// A math function.
    Call(&'static str, Vec<Expr>),
    /// A conversion to the type of this expression.
    Cast(Box<Expr>),
}

/// How a program is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Name of a strategy.
    pub strategy: &'static str,
    /// Cells of a tile; none for the compiler's choice.
    pub tile: Option<Vec<i64>>,
    /// Steps a launch.
    pub height: Option<i64>,
    /// Cells a thread.
    pub per_thread: Option<Vec<i64>>,
    /// Whether all tiles run the code with checks.
    pub no_split: bool,
}

/// Where inputs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The first input's seed, the next one's is one larger.
    pub seed: u64,
    /// Whether there are negative numbers, both zeros, infinities, NaNs and subnormal numbers among
    /// the cells, and not only noise from 0 to 1.
    pub rough: bool,
}

impl Affine {
    /// A number.
    pub fn number(constant: i64) -> Self {
        Self { constant, term: None }
    }

    /// The same, a constant further.
    pub fn plus(self, distance: i64) -> Self {
        Self { constant: self.constant + distance, ..self }
    }

    /// Its value.
    pub fn value(&self, params: &[Param]) -> i64 {
        self.constant + self.term.map_or(0, |(param, coefficient)| coefficient * params[param].value)
    }

    fn text(&self) -> String {
        let Some((param, coefficient)) = self.term else { return self.constant.to_string() };
        let product = if coefficient == 1 { format!("P{param}") } else { format!("{coefficient}*P{param}") };
        match self.constant {
            0 => product,
            constant => format!("{product}{constant:+}"),
        }
    }
}

impl Region {
    /// First and last point of each dimension.
    pub fn bounds(&self, params: &[Param]) -> Vec<(i64, i64)> {
        self.lower.iter().zip(&self.upper).map(|(lower, upper)| (lower.value(params), upper.value(params))).collect()
    }
}

impl Type {
    /// What coordinates, sizes and the number of the step are.
    pub const INDEX: Self = Self::Number(Element::I64);

    /// Its name in a program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number(element) => element.name(),
            Self::Bool => "condition",
        }
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Number(element) if element.is_float())
    }
}

/// The name of a field: a letter, though not that of the grid.
pub fn field_name(place: usize) -> String {
    "ABCDEFHJKLM".get(place..=place).map_or_else(|| format!("A{place}"), str::to_owned)
}

/// Names of coordinates in pieces, and in boundary rules.
const COORDINATES: [&str; 3] = ["i", "j", "k"];
const OUTSIDE: [&str; 3] = ["x0", "x1", "x2"];

impl Expr {
    /// The expressions that it consists of.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Unary(_, a) | Kind::Cast(a) => vec![a],
            Kind::Binary(_, a, b) | Kind::Let(_, a, b) => vec![a, b],
            Kind::If(parts) => parts.iter().collect(),
            Kind::Call(_, arguments) => arguments.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The same, to be changed in place.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            Kind::Unary(_, a) | Kind::Cast(a) => vec![a],
            Kind::Binary(_, a, b) | Kind::Let(_, a, b) => vec![a, b],
            Kind::If(parts) => parts.iter_mut().collect(),
            Kind::Call(_, arguments) => arguments.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// Calls a function on every part, the whole first.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        for child in self.children() {
            child.visit(f);
        }
    }

    /// Calls a function on every part, the innermost first.
    pub fn change(&mut self, f: &mut impl FnMut(&mut Expr)) {
        for child in self.children_mut() {
            child.change(f);
        }
        f(self);
    }

    /// Number of parts.
    pub fn size(&self) -> usize {
        let mut count = 0;
        self.visit(&mut |_| count += 1);
        count
    }

    fn text(&self, coordinates: &[&str; 3]) -> String {
        let text = |part: &Expr| part.text(coordinates);
        match &self.kind {
            Kind::Number(value, typed) => {
                let bare = match self.ty {
                    Type::Number(element) => number_text(element, *value),
                    Type::Bool => value.to_string(),
                };
                if *typed { format!("{}({bare})", self.ty.name()) } else { bare }
            }
            Kind::Read(field, offset) => {
                let offset: Vec<_> = offset.iter().map(i64::to_string).collect();
                format!("{}[{}]", field_name(*field), offset.join(", "))
            }
            Kind::Scalar(place) => format!("s{place}"),
            Kind::Param(place) => format!("P{place}"),
            Kind::Coordinate(dimension) => coordinates[*dimension].to_owned(),
            Kind::Step => "t".to_owned(),
            Kind::Nearest => "nearest".to_owned(),
            Kind::Local(number) => format!("v{number}"),
            Kind::Unary(operator, a) => format!("({operator}{})", text(a)),
            Kind::Binary(operator, a, b) => format!("({} {operator} {})", text(a), text(b)),
            Kind::If(parts) => format!("(if {} then {} else {})", text(&parts[0]), text(&parts[1]), text(&parts[2])),
            Kind::Let(number, value, body) => format!("{{ let v{number} = {}; {} }}", text(value), text(body)),
            Kind::Call(function, arguments) => {
                let arguments: Vec<_> = arguments.iter().map(text).collect();
                format!("{function}({})", arguments.join(", "))
            }
            Kind::Cast(a) => format!("{}({})", self.ty.name(), text(a)),
        }
    }
}

impl Piece {
    fn text(&self) -> String {
        let mut used = false;
        for value in &self.values {
            value.visit(&mut |part| used |= matches!(part.kind, Kind::Coordinate(_)));
        }
        let ranges: Vec<_> = (0..self.region.lower.len())
            .map(|dimension| {
                let (lower, upper) = (self.region.lower[dimension], self.region.upper[dimension]);
                let name = if used { format!("{} in ", COORDINATES[dimension]) } else { String::new() };
                let range = if lower == upper { lower.text() } else { format!("{}..{}", lower.text(), upper.text()) };
                name + &range
            })
            .collect();
        let values: Vec<_> = self.values.iter().map(|value| value.text(&COORDINATES)).collect();
        let values = if values.len() == 1 { values.concat() } else { format!("({})", values.join(",\n      ")) };
        format!("[{}] = {values}", ranges.join(", "))
    }
}

impl Program {
    /// Dimensions of the grid.
    pub fn rank(&self) -> usize {
        self.grid.lower.len()
    }

    /// The expressions of all pieces and boundary rules.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let rules = self.fields.iter_mut().filter_map(|field| match &mut field.rule {
            Some(Rule::Value(value)) => Some(value),
            _ => None,
        });
        let pieces = self.functions.iter_mut().flat_map(|function| &mut function.pieces);
        rules.chain(pieces.flat_map(|piece| &mut piece.values))
    }

    /// The program's text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (place, param) in self.params.iter().enumerate() {
            let value = if param.known == Known::File { format!(" = {}", param.value) } else { String::new() };
            let _ = writeln!(text, "param P{place}{value}");
        }
        for (place, scalar) in self.scalars.iter().enumerate() {
            let value = if scalar.given { String::new() } else { format!(" = {}", scalar.text()) };
            let _ = writeln!(text, "scalar s{place} : {}{value}", scalar.element.name());
        }
        let bounds = self.grid.lower.iter().zip(&self.grid.upper);
        let ranges: Vec<_> = bounds.map(|(lower, upper)| format!("{}..{}", lower.text(), upper.text())).collect();
        let _ = writeln!(text, "grid G = [{}]", ranges.join(", "));
        for (place, field) in self.fields.iter().enumerate() {
            let role = match field.role {
                Role::State => "",
                Role::Const => "const ",
                Role::Temp => "temp ",
            };
            let _ = writeln!(text, "{role}field {} : {} on G", field_name(place), field.element.name());
            let rule = match &field.rule {
                None => continue,
                Some(Rule::Nearest) => "nearest".to_owned(),
                Some(Rule::Periodic) => "periodic".to_owned(),
                Some(Rule::Reflect) => "reflect".to_owned(),
                Some(Rule::Value(value)) => value.text(&OUTSIDE),
            };
            let _ = writeln!(text, "boundary {} = {rule}", field_name(place));
        }
        for (place, function) in self.functions.iter().enumerate() {
            let updates: Vec<_> = function.updates.iter().map(|field| field_name(*field)).collect();
            let updates = if updates.len() == 1 { updates.concat() } else { format!("({})", updates.join(", ")) };
            match function.pieces.as_slice() {
                [only] => drop(writeln!(text, "fn f{place} -> {updates} {}", only.text())),
                pieces => {
                    let _ = writeln!(text, "fn f{place} -> {updates} {{");
                    for piece in pieces {
                        let _ = writeln!(text, "  {}", piece.text());
                    }
                    text += "}\n";
                }
            }
        }
        let _ = writeln!(text, "steps {}", self.steps);
        text
    }
}
