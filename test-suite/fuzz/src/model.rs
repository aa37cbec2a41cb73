//! A program as the generator makes it, with a schedule, sizes and data: enough structure to
//! shrink it and to transpose it. `print.rs` writes the text that the compiler gets.

pub use crate::combination::Combination;
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
    /// Whether the program with functions by `let` is run too, by the oracle.
    pub outline: bool,
    /// Whether the program is compiled to PTX too.
    pub ptx: bool,
    /// Whether the program runs out of core too.
    pub windows: bool,
}

/// A program of the language.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Sizes, named `P0`, `P1`, ...
    pub params: Vec<Param>,
    /// Scalars, named `s0`, `s1`, ...
    pub scalars: Vec<Scalar>,
    /// Structs, named `S0`, `S1`, ...: the types of their members `m0`, `m1`, ...
    pub structs: Vec<Vec<Type>>,
    /// Grids, named `G0`, `G1`, ...
    pub grids: Vec<Region>,
    /// Fields, named `A`, `B`, ...
    pub fields: Vec<Field>,
    /// Functions by `let`, named `g0`, `g1`, ...: the number of parameters, and the body.
    pub lets: Vec<(usize, Expr)>,
    /// Functions, named `f0`, `f1`, ...
    pub functions: Vec<Function>,
    /// Functions that each step repeats: the first, how many, and how often; outer ones first.
    pub repeats: Vec<(usize, usize, i64)>,
    /// Reductions, named `r0`, `r1`, ..., in their order.
    pub reductions: Vec<Reduction>,
    /// Steps.
    pub steps: i64,
    /// A condition that ends the run, and the steps between two looks at it.
    pub until: Option<(Expr, i64)>,
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

/// A number as it is written.
pub fn number_text(element: Element, value: f64) -> String {
    if element.is_float() { format!("{value:?}") } else { format!("{value}") }
}

/// The use of a field by the caller.
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
    /// Its use by the caller.
    pub role: Role,
    /// The type of a cell.
    pub ty: Type,
    /// The grid by its place.
    pub grid: usize,
    /// The values of reads outside the grid; none where there are no such reads.
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

/// A reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// The type of its value.
    pub ty: Type,
    /// `sum` and the like.
    pub operation: &'static str,
    /// The box, with one value.
    pub piece: Piece,
    /// How many functions stand before it.
    pub place: usize,
    /// Whether it stands in a repetition that ends there.
    pub within: bool,
    /// Its value before the first step.
    pub initial: Option<f64>,
}

/// A piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The points that it covers.
    pub region: Region,
    /// Locals that the values share, by their numbers.
    pub lets: Vec<(usize, Expr)>,
    /// A value an updated field.
    pub values: Vec<Expr>,
}

/// Type of an expression or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number.
    Number(Element),
    /// A condition.
    Bool,
    /// `vec<LANES, TYPE>`.
    Vec(usize, Element),
    /// A struct by its place.
    Struct(usize),
    /// A vec of so many structs.
    Structs(usize, usize),
}

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its type.
    pub ty: Type,
    /// Its operation.
    pub kind: Kind,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number, written with its type around it, or bare where the context gives the type.
    Number(f64, bool),
    /// A cell at an offset from the point.
    Read(usize, Vec<i64>),
    /// The value that a cell at an offset got in the same sweep.
    Current(usize, Vec<i64>),
    /// A cell at coordinates.
    Gather(usize, Vec<Expr>),
    /// A scalar.
    Scalar(usize),
    /// A reduction.
    Reduction(usize),
    /// A size.
    Param(usize),
    /// A coordinate.
    Coordinate(usize),
    /// The step.
    Step,
    /// In a boundary rule: the nearest cell inside.
    Nearest,
    /// A vec of its lanes, or a struct of its members.
    Whole(Vec<Expr>),
    /// A lane of a vec, or a member of a struct, by its place.
    Part(Box<Expr>, usize),
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
    /// A function by `let`, by its place.
    Called(usize, Vec<Expr>),
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
    /// Switches of the compiler.
    pub flags: Vec<Flag>,
    /// A list of passes in place of the compiler's own, for wavefronts.
    pub combination: Option<Combination>,
}

/// Stands for the strategies of a processor in [`Schedule::strategy`].
pub const PROCESSOR: &str = "processor";

impl Schedule {
    /// Whether code is made for the processor of this machine, and run there.
    pub fn is_for_processor(&self) -> bool {
        self.strategy == PROCESSOR
    }
}

/// A switch of the compiler that must not change a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// All tiles run the code with checks.
    NoSplitInterior,
    /// Temp fields are not folded into the functions that read them.
    NoFuse,
    /// All functions of a launch compute the same region.
    FixedRegion,
}

impl Flag {
    /// All of them, with their option and how many schedules of a hundred have it.
    pub const ALL: [(Self, &'static str, usize); 3] = [
        (Self::NoSplitInterior, "--no-split-interior", 10),
        (Self::NoFuse, "--no-fuse", 30),
        (Self::FixedRegion, "--region=fixed", 15),
    ];
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
        self.constant
            + self.term.map_or(0, |(param, coefficient)| coefficient * params[param].value)
    }
}

impl Type {
    /// The type of coordinates, sizes and the number of the step.
    pub const INDEX: Self = Self::Number(Element::I64);

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Number(element) if element.is_float())
    }

    /// Whether it is a vec or a struct.
    pub fn is_aggregate(self) -> bool {
        matches!(self, Self::Vec(..) | Self::Struct(_) | Self::Structs(..))
    }

    /// The type in which a number or a condition is kept.
    pub fn kept(self) -> Element {
        if let Self::Number(element) = self { element } else { Element::U8 }
    }
}

impl Program {
    /// Dimensions of the first grid.
    pub fn rank(&self) -> usize {
        self.grids[0].rank()
    }

    /// The grid of a field.
    pub fn grid_of(&self, field: usize) -> &Region {
        &self.grids[self.fields[field].grid]
    }

    /// The types of a type's lanes or members; none of a number.
    pub fn parts(&self, ty: Type) -> Vec<Type> {
        match ty {
            Type::Vec(lanes, element) => vec![Type::Number(element); lanes],
            Type::Struct(place) => self.structs[place].clone(),
            Type::Structs(lanes, place) => vec![Type::Struct(place); lanes],
            Type::Number(_) | Type::Bool => Vec::new(),
        }
    }

    /// The numbers that a value of a type consists of: what follows its name, and the number's
    /// type.
    pub fn leaves(&self, ty: Type) -> Vec<(String, Type)> {
        if !ty.is_aggregate() {
            return vec![(String::new(), ty)];
        }
        let parts = self.parts(ty).into_iter().enumerate();
        parts
            .flat_map(|(place, part)| {
                let name = crate::print::part_name(ty, place);
                self.leaves(part)
                    .into_iter()
                    .map(move |(rest, leaf)| (format!(".{name}{rest}"), leaf))
            })
            .collect()
    }

    /// The expressions of all pieces and reductions.
    pub fn values(&self) -> impl Iterator<Item = &Expr> {
        let pieces = self.functions.iter().flat_map(|function| &function.pieces);
        let reduced = self.reductions.iter().map(|reduction| &reduction.piece);
        pieces.chain(reduced).flat_map(Piece::exprs)
    }

    /// The expressions of all pieces, reductions and rules, with the number of their coordinates.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (usize, &mut Expr)> {
        let grids = &self.grids;
        let rules = self.fields.iter_mut().filter_map(|field| match &mut field.rule {
            Some(Rule::Value(value)) => Some((grids[field.grid].rank(), value)),
            _ => None,
        });
        let pieces = self.functions.iter_mut().flat_map(|function| &mut function.pieces);
        let reduced = self.reductions.iter_mut().map(|reduction| &mut reduction.piece);
        let until = self.until.iter_mut().map(|(condition, _)| (1, condition));
        rules.chain(until).chain(pieces.chain(reduced).flat_map(|piece| {
            let rank = piece.region.rank();
            piece.exprs_mut().map(move |value| (rank, value))
        }))
    }
}
