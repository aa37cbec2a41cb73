//! The syntax tree: what the text says, before anything is known about its names and types.
//!
//! Every node has its place. Two trees are equal when they say the same; places do not count.

use crate::source::Span;
use std::ops::Deref;

/// A node and its place.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The node.
    pub node: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// A node at a place.
    pub fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.node
    }
}

/// One source file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Its items, in the order of the text.
    pub items: Vec<Item>,
}

impl File {
    /// Its items, each `repeat` followed by those in it.
    pub fn all_items(&self) -> impl Iterator<Item = &Item> {
        let (mut open, mut all) = (vec![self.items.iter()], Vec::new());
        while let Some(items) = open.last_mut() {
            let Some(item) = items.next() else {
                open.pop();
                continue;
            };
            all.push(item);
            if let ItemKind::Repeat { items, .. } = &item.node {
                open.push(items.iter());
            }
        }
        all.into_iter()
    }
}

/// A name where it is declared or used.
pub type Name = Spanned<String>;

/// A declaration.
pub type Item = Spanned<ItemKind>;

/// The forms of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `param NAME [= value]`
    Param {
        /// The size's name.
        name: Name,
        /// Its value, if it has one.
        value: Option<Expr>,
    },
    /// `scalar NAME : TYPE [= default]`
    Scalar {
        /// The scalar's name.
        name: Name,
        /// Its type.
        ty: Type,
        /// Its default.
        default: Option<Expr>,
    },
    /// `struct NAME { MEMBER : TYPE, ... }`
    Struct {
        /// The type's name.
        name: Name,
        /// Names and types of the members.
        members: Vec<(Name, Type)>,
    },
    /// `grid NAME = [RANGE, ...]`
    Grid {
        /// The grid's name.
        name: Name,
        /// Its points.
        region: Region,
    },
    /// `[const | temp] field NAME : TYPE on GRID`
    Field {
        /// What it is to the outside.
        role: FieldRole,
        /// The field's name.
        name: Name,
        /// Type of a cell.
        ty: Type,
        /// Name of its grid.
        grid: Name,
    },
    /// `boundary FIELD = RULE`
    Boundary {
        /// Name of the field.
        field: Name,
        /// The value outside: an expression, or one of the names `nearest`, `periodic`, `reflect`.
        rule: Expr,
    },
    /// `let NAME(PARAMETER, ...) = VALUE`
    Let {
        /// The function's name.
        name: Name,
        /// Names that stand for the arguments of a call.
        parameters: Vec<Name>,
        /// Its value.
        value: Expr,
    },
    /// `fn NAME -> FIELDS PIECES`
    Function {
        /// The function's name.
        name: Name,
        /// Names of the updated fields.
        updates: Vec<Name>,
        /// Its pieces.
        pieces: Vec<Piece>,
    },
    /// `repeat COUNT { ITEM ... }`
    Repeat {
        /// How often in each step.
        count: Expr,
        /// Functions, reductions and repetitions, in order.
        items: Vec<Item>,
    },
    /// `reduce NAME : TYPE = OPERATION(VALUE) on REGION [initially VALUE]`
    Reduce {
        /// The reduction's name.
        name: Name,
        /// The type of its value.
        ty: Type,
        /// `sum` and the like.
        operation: Name,
        /// The combined expressions; a sound text has one.
        arguments: Vec<Expr>,
        /// The points.
        region: Region,
        /// Its value before the first step.
        initial: Option<Expr>,
    },
    /// `steps COUNT [until CONDITION [every COUNT]]`
    Steps {
        /// How many.
        count: Expr,
        /// When the run ends earlier.
        until: Option<Until>,
    },
    /// What could not be read; already reported. It may have meant to declare these names.
    Broken {
        /// Names that are not to be reported as unknown.
        names: Vec<Name>,
    },
}

/// `until CONDITION [every COUNT]`
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// The run ends where it holds.
    pub condition: Expr,
    /// It is looked at each time after so many steps; 1 where it is left out.
    pub every: Option<Expr>,
}

/// What a field is to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRole {
    /// `field`
    State,
    /// `const field`
    Const,
    /// `temp field`
    Temp,
}

/// The type of a cell, a scalar or a member.
pub type Type = Spanned<TypeKind>;

/// The forms of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `f32` and the like, or a struct.
    Named(String),
    /// `vec<LANES, TYPE>`
    Vec(Box<Expr>, Box<Type>),
}

/// `[RANGE, ...]`, slowest dimension first.
pub type Region = Spanned<Vec<Range>>;

/// One dimension of a region.
pub type Range = Spanned<RangeKind>;

/// `[NAME in] LOWER [.. UPPER]`
#[derive(Clone, Debug, PartialEq)]
pub struct RangeKind {
    /// The coordinate's name.
    pub name: Option<Name>,
    /// First point.
    pub lower: Expr,
    /// Last point; the first one where it is left out.
    pub upper: Option<Expr>,
}

/// A sub-grid of a function.
pub type Piece = Spanned<PieceKind>;

/// `REGION = VALUE`; `REGION = (VALUE, ...)` or `REGION = { let x = e; ... (VALUE, ...) }` where
/// several fields are updated.
#[derive(Clone, Debug, PartialEq)]
pub struct PieceKind {
    /// The points.
    pub region: Region,
    /// What several values share; those of one value are part of it.
    pub lets: Vec<(Name, Expr)>,
    /// One value per updated field.
    pub values: Vec<Expr>,
}

/// An expression.
pub type Expr = Spanned<ExprKind>;

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `12`
    Int(u64),
    /// `0.5`, as written
    Float(String),
    /// `alpha`
    Name(String),
    /// `A[-1, 0]` or `A'[-1, 0]`
    Access {
        /// The field's name.
        field: Name,
        /// Whether the value of this sweep is meant.
        primed: bool,
        /// One offset a dimension.
        offsets: Vec<Expr>,
    },
    /// `f(a, b)`: a math function, a cast, a vector literal, or an absolute read
    Call {
        /// What is called.
        name: Name,
        /// Its arguments.
        arguments: Vec<Expr>,
    },
    /// `S { a: e, ... }`
    Struct {
        /// The type's name.
        name: Name,
        /// Names and values of the members.
        members: Vec<(Name, Expr)>,
    },
    /// `e.name`
    Member(Box<Expr>, Name),
    /// `e.0`
    Lane(Box<Expr>, Spanned<u64>),
    /// `-e`, `!e`, `~e`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(Spanned<BinaryOp>, Box<Expr>, Box<Expr>),
    /// `if c then a else b`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `{ let x = e; ... body }`
    Block(Vec<(Name, Expr)>, Box<Expr>),
    /// `sum(k in -2..2) e`
    Fold(Box<Fold>),
    /// What could not be read; already reported.
    Broken,
}

/// `OPERATION(NAME in LOWER..UPPER) BODY`
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// `sum` and the like.
    pub operation: Name,
    /// The name that stands for each number of the range.
    pub variable: Name,
    /// The first number.
    pub lower: Expr,
    /// The last number.
    pub upper: Expr,
    /// The combined expression.
    pub body: Expr,
}

impl Expr {
    /// The expressions that it consists of.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.node {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Name(_) | ExprKind::Broken => vec![],
            ExprKind::Access { offsets, .. } => offsets.iter().collect(),
            ExprKind::Call { arguments, .. } => arguments.iter().collect(),
            ExprKind::Struct { members, .. } => members.iter().map(|(_, value)| value).collect(),
            ExprKind::Member(value, _) | ExprKind::Lane(value, _) | ExprKind::Unary(_, value) => {
                vec![value]
            }
            ExprKind::Binary(_, left, right) => vec![left, right],
            ExprKind::If(condition, yes, no) => vec![condition, yes, no],
            ExprKind::Block(lets, body) => {
                lets.iter().map(|(_, value)| value).chain([&**body]).collect()
            }
            ExprKind::Fold(fold) => vec![&fold.lower, &fold.upper, &fold.body],
        }
    }
}

pub use crate::program::{BinaryOp, UnaryOp};

/// How tightly an operator binds; higher binds tighter.
pub fn precedence(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            COMPARISON
        }
        BinaryOp::BitOr => 4,
        BinaryOp::BitXor => 5,
        BinaryOp::BitAnd => 6,
        BinaryOp::Shl | BinaryOp::Shr => 7,
        BinaryOp::Add | BinaryOp::Sub => 8,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 9,
    }
}

/// The precedence of comparisons, which cannot be chained.
pub const COMPARISON: u8 = 3;

/// The precedence of prefix operators, above all infix ones.
pub const PREFIX: u8 = 10;

/// How an infix operator is written.
pub fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
    }
}

/// Every infix operator.
pub const BINARY_OPS: [BinaryOp; 18] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::BitAnd,
    BinaryOp::BitOr,
    BinaryOp::BitXor,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
    BinaryOp::And,
    BinaryOp::Or,
];
