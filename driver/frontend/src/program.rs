//! The checked program: every name resolved, every expression typed, every bound affine.
//!
//! The checker builds it, the oracle interprets it, and the driver writes it as `stencil` IR.
//! Nothing here is an error any more: what a checked program says has a meaning.

mod operator;
mod reduction;

pub use operator::{BinaryOp, MathFunction, UnaryOp};
pub use reduction::{Combine, Reduction, Until};

use crate::source::Span;
use cranelift_entity::{PrimaryMap, entity_impl};
use std::collections::BTreeSet;
use stencil_runtime::array::Element;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::Member;

/// A size named by `param`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(u32);
entity_impl!(ParamId, "param");

impl ParamId {
    /// The steps of a run, in conditions alone: a size that no program declares. Beyond the limit
    /// of params, and no reserved value.
    pub const STEPS: Self = Self(u32::MAX - 1);
}

/// A run-time scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScalarId(u32);
entity_impl!(ScalarId, "scalar");

/// A grid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GridId(u32);
entity_impl!(GridId, "grid");

/// A field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(u32);
entity_impl!(FieldId, "field");

/// A value bound by `let` inside one piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(u32);
entity_impl!(LocalId, "local");

/// A whole program after checking.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The file's stem, or the name given on the command line.
    pub name: String,
    /// Sizes, in order of declaration.
    pub params: PrimaryMap<ParamId, Param>,
    /// Run-time scalars, in order of declaration.
    pub scalars: PrimaryMap<ScalarId, Scalar>,
    /// Grids, in order of declaration.
    pub grids: PrimaryMap<GridId, Grid>,
    /// Fields, in order of declaration.
    pub fields: PrimaryMap<FieldId, Field>,
    /// Functions in the order in which a step runs them.
    pub functions: Vec<Function>,
    /// Reductions in the order of the file.
    pub reductions: Vec<Reduction>,
    /// How many steps a run takes unless told otherwise.
    pub steps: Affine,
    /// When a run ends earlier.
    pub until: Option<Until>,
    /// What could not be decided without the values of the run-time sizes; checked before a run.
    pub checks: Vec<Check>,
}

impl Program {
    /// The first item of a step that reads some fields, by its name and its place: one of the first
    /// functions, else of the first reductions, as many as are given.
    pub fn first_reader(
        &self,
        fields: &[FieldId],
        (functions, reductions): (usize, usize),
    ) -> Option<(&str, Span)> {
        let reads = |piece: &Piece| piece.exprs().any(|value| value.reads_any(fields));
        let mut functions = self.functions.iter().take(functions);
        let function = functions.find(|one| one.pieces.iter().any(reads));
        let mut reductions = self.reductions.iter().take(reductions);
        let reduction = reductions.find(|one| reads(&one.piece));
        let name = |one: &Reduction| self.fields.get(one.field).map_or("", Field::declared_name);
        let function = function.map(|one| (one.name.as_str(), one.span));
        function.or_else(|| reduction.map(|one| (name(one), one.span)))
    }
}

/// `param NAME [= value]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name in the source.
    pub name: String,
    /// The value, where the file or `-D` gives one; `None` is a run-time size.
    pub value: Option<i64>,
    /// Where it is declared.
    pub span: Span,
}

/// `scalar NAME : TYPE [= default]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// Name in the source.
    pub name: String,
    /// Its type.
    pub element: Element,
    /// Whether it is a condition, which does not hold where the number is 0.
    pub boolean: bool,
    /// The value unless `--set` gives another.
    pub default: Option<Numeral>,
    /// Where it is declared.
    pub span: Span,
}

/// `grid NAME = [lower..upper, ...]`, slowest dimension first.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Name in the source.
    pub name: String,
    /// All its points.
    pub region: Region,
    /// Where it is declared.
    pub span: Span,
}

/// A box of grid points, both ends inclusive, one bound a dimension, slowest dimension first.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// First point of each dimension.
    pub lower: Vec<Affine>,
    /// Last point of each dimension.
    pub upper: Vec<Affine>,
}

/// What a field is to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Input and output.
    State,
    /// Input, read only.
    Const,
    /// Neither input nor output.
    Temp,
    /// Output: the value of a reduction, in one cell.
    Reduction,
}

/// `[const | temp] field NAME : TYPE on GRID`.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name in the source.
    pub name: String,
    /// Input, output, both or neither.
    pub role: Role,
    /// Type of one cell.
    pub element: Element,
    /// Whether it holds `bool`, as `u8`: 0 is false. Expressions compare what they read with 0.
    pub boolean: bool,
    /// Which part it is of a declared field whose cells are structs or vecs; its name then is
    /// `FIELD.member` or `FIELD.lane`, and such fields follow each other in order.
    pub member: Option<Member>,
    /// The grid that it lies on.
    pub grid: GridId,
    /// What a read outside of the grid gives; none where no read may lie outside.
    pub boundary: Option<Boundary>,
    /// Where it is declared.
    pub span: Span,
}

impl Field {
    /// The name of the declared field.
    pub fn declared_name(&self) -> &str {
        self.member.as_ref().map_or(&self.name, |member| &member.field)
    }
}

/// `boundary FIELD = RULE`. Coordinates are mapped each by itself; here they count from the grid's
/// first point of `n`.
#[derive(Clone, Debug, PartialEq)]
pub enum Boundary {
    /// The nearest cell inside: `-1` gives cell `0`, `n` gives `n - 1`.
    Nearest,
    /// The grid repeats: `-1` gives cell `n - 1`, `n` gives `0`.
    Periodic,
    /// Mirrored about the first and the last cell, which are not repeated: `-1` gives cell `1`, `n`
    /// gives `n - 2`, with as many bounces as it takes; all give cell `0` where `n` is 1.
    Reflect,
    /// An expression of the field's type. It holds no [`ExprKind::Read`]; coordinates in it are
    /// those of the point outside.
    Value(Expr),
}

/// `fn NAME -> FIELDS ...`: all pieces and all updated fields see the same old values. Where it
/// reads values of its own sweep, points are computed in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Name in the source.
    pub name: String,
    /// Updated fields, in the order of the piece's values.
    pub updates: Vec<FieldId>,
    /// Disjoint sub-grids with the values to be written there.
    pub pieces: Vec<Piece>,
    /// The `repeat`s that it stands in, the outer one first.
    pub repeats: Vec<Repetition>,
    /// Where it is declared.
    pub span: Span,
}

impl Function {
    /// The offsets of reads of its own sweep: the dependence vectors, each once.
    pub fn dependences(&self) -> BTreeSet<Vec<i64>> {
        let mut found = BTreeSet::new();
        self.visit(&mut |expr| {
            if let ExprKind::Read { offset, current: true, .. } = &expr.kind {
                found.insert(offset.clone());
            }
        });
        found
    }

    /// The fields of its absolute reads, and where these stand.
    pub fn gathers(&self) -> Vec<(FieldId, Span)> {
        let mut found = Vec::new();
        self.visit(&mut |expr| {
            if let ExprKind::Gather { field, .. } = &expr.kind {
                found.push((*field, expr.span));
            }
        });
        found
    }

    /// Shows all expressions of its pieces.
    fn visit(&self, show: &mut dyn FnMut(&Expr)) {
        fn walk(expr: &Expr, show: &mut dyn FnMut(&Expr)) {
            show(expr);
            expr.children().into_iter().for_each(|child| walk(child, show));
        }
        self.pieces.iter().flat_map(Piece::exprs).for_each(|value| walk(value, show));
    }
}

/// `repeat COUNT { ... }`: consecutive items that each step runs several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Which `repeat` of the file.
    pub number: usize,
    /// How often.
    pub count: i64,
}

/// One sub-grid of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The points it covers.
    pub region: Region,
    /// What several values share: bound in order, before them.
    pub lets: Vec<(LocalId, Expr)>,
    /// One value per updated field, of that field's type.
    pub values: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

impl Piece {
    /// What is evaluated at a point, in order: the shared values, then those of the fields.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.lets.iter().map(|(_, value)| value).chain(&self.values)
    }
}

/// `constant + sum of coefficient * param`, over run-time params only; terms are sorted by param
/// and have no zero coefficients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// The constant term.
    pub constant: i64,
    /// Coefficients of the run-time params.
    pub terms: Vec<(ParamId, i64)>,
}

/// A condition on the run-time sizes and, as [`ParamId::STEPS`], the steps of a run: `value >= 0`,
/// unless `unless_empty` holds no point. One on the steps is void for a run of none.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Must not be negative.
    pub value: Affine,
    /// The piece whose emptiness makes the condition void.
    pub unless_empty: Option<Region>,
    /// What to say when it fails: a whole sentence naming the access and the range.
    pub message: String,
    /// Where the source asks for it.
    pub span: Span,
}

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A number.
    Element(Element),
    /// A comparison's result.
    Bool,
}

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: Type,
    /// Where it stands.
    pub span: Span,
}

impl Expr {
    /// The value with `let`s around it, the first one outermost.
    pub fn with_lets(self, lets: Vec<(LocalId, Expr)>) -> Self {
        lets.into_iter().rev().fold(self, |body, (id, value)| {
            let (ty, span) = (body.ty, body.span);
            Self { kind: ExprKind::Let(id, Box::new(value), Box::new(body)), ty, span }
        })
    }

    /// Whether a boundary rule's expression takes the nearest cell's value.
    pub fn reads_nearest(&self) -> bool {
        matches!(self.kind, ExprKind::Nearest(_))
            || self.children().into_iter().any(Self::reads_nearest)
    }

    /// Whether it reads a cell of one of some fields.
    pub fn reads_any(&self, fields: &[FieldId]) -> bool {
        let own = match &self.kind {
            ExprKind::Read { field, .. }
            | ExprKind::Gather { field, .. }
            | ExprKind::Nearest(field) => fields.contains(field),
            _ => false,
        };
        own || self.children().into_iter().any(|child| child.reads_any(fields))
    }

    /// The expressions that it consists of, in the order in which they are evaluated.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Unary(_, a) | ExprKind::Cast(a) => vec![a],
            ExprKind::Binary(_, a, b) | ExprKind::Let(_, a, b) => vec![a, b],
            ExprKind::If(condition, yes, no) => vec![condition, yes, no],
            ExprKind::Call(_, parts) | ExprKind::Gather { at: parts, .. } => parts.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The same, to be changed in place.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Unary(_, a) | ExprKind::Cast(a) => vec![a],
            ExprKind::Binary(_, a, b) | ExprKind::Let(_, a, b) => vec![a, b],
            ExprKind::If(condition, yes, no) => vec![condition, yes, no],
            ExprKind::Call(_, parts) | ExprKind::Gather { at: parts, .. } => {
                parts.iter_mut().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The forms of an expression. Operands of arithmetic and comparisons have one type;
/// conversions are explicit.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A floating-point literal, rounded to the expression's type when it is used.
    Float(f64),
    /// An integer literal, or a param with a value; in the range of the expression's type.
    Int(i128),
    /// `true` or `false`, as constant folding leaves it.
    Bool(bool),
    /// A cell at a constant offset.
    Read {
        /// Which field.
        field: FieldId,
        /// One offset a dimension.
        offset: Vec<i64>,
        /// Whether it is the value of the function's own sweep, in place of the old one.
        current: bool,
    },
    /// The old value of a cell at a place that is computed, inside the field's grid or where its
    /// boundary rule says what there is; or the one cell of a reduction.
    Gather {
        /// Which field.
        field: FieldId,
        /// The coordinate along each dimension, as i64.
        at: Vec<Expr>,
    },
    /// A run-time scalar.
    Scalar(ScalarId),
    /// A run-time size, as i64.
    Param(ParamId),
    /// The point's coordinate along a dimension, as i64.
    Coordinate(usize),
    /// The number of the step, from 0, as i64.
    Step,
    /// In a boundary rule: the old value of the cell that is nearest to the point outside, of the
    /// field itself or of another that is part of the same declared one.
    Nearest(FieldId),
    /// A `let`-bound value.
    Local(LocalId),
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands of one type.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `if c then a else b`; only the chosen side is evaluated.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `{ let x = value; body }`.
    Let(LocalId, Box<Expr>, Box<Expr>),
    /// A math function; its operands have the expression's type.
    Call(MathFunction, Vec<Expr>),
    /// A conversion to the expression's type.
    Cast(Box<Expr>),
}
