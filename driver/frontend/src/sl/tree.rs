//! The syntax tree of an SL file. Every node has its place.

use crate::ast::{Name, Spanned};
use crate::program::{BinaryOp, UnaryOp};
use crate::source::Span;
use stencil_runtime::array::Element;

/// The key-value pairs of a file. What is missing or faulty is none.
#[derive(Debug, Default)]
pub struct File {
    /// `NumDimensions 2`
    pub dimensions: Option<Spanned<u64>>,
    /// `StencilSize (1, 1)`, x first.
    pub stencil_size: Option<Spanned<Vec<Spanned<u64>>>>,
    /// `DataType float`
    pub data_type: Option<Spanned<Element>>,
    /// `FunctionName runHotspot`
    pub function_name: Option<Name>,
    /// `ScalarVariables (float Rx, float Ry)`
    pub scalars: Vec<(Spanned<Element>, Name)>,
    /// `CellValue { ... }`
    pub cell_value: Option<Block>,
    /// `EdgeValue { ... }`
    pub edge_value: Option<Block>,
    /// `Converged { ... }`
    pub converged: Option<Block>,
    /// `ConvergedEvery 10`
    pub every: Option<Spanned<u64>>,
    /// Whether a key is unknown; it may stand for one that is missing.
    pub unknown: bool,
    /// Keys of the file, also of pairs that could not be read.
    pub keys: Vec<Name>,
}

/// A block of C, and the place of its key.
#[derive(Debug)]
pub struct Block {
    /// The key.
    pub key: Span,
    /// The closing brace.
    pub end: Span,
    /// Its statements.
    pub statements: Vec<Statement>,
}

/// A statement.
pub type Statement = Spanned<StatementKind>;

/// The forms of a statement.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `float a, b = 2, w[3] = {1, 2, 1};`
    Declare {
        /// The type of the variables, or of an array's elements.
        element: Element,
        /// Whether they can't be assigned to.
        constant: bool,
        /// What is declared.
        variables: Vec<Declarator>,
    },
    /// `a = e;`, `w[0] += e;`, `k++;`
    Assign {
        /// The variable.
        name: Name,
        /// The element, of an array.
        index: Option<Expr>,
        /// The operation of `+=` and the like.
        op: Option<Spanned<BinaryOp>>,
        /// The value.
        value: Expr,
    },
    /// `if (c) ... else ...`
    If {
        /// The condition.
        condition: Expr,
        /// Where it holds.
        yes: Vec<Statement>,
        /// Where it does not.
        no: Vec<Statement>,
    },
    /// `for (int k = -1; k <= 1; k++) ...`
    For {
        /// Before the first iteration.
        start: Option<Box<Statement>>,
        /// The loop goes on while it holds.
        condition: Expr,
        /// After each iteration.
        advance: Option<Box<Statement>>,
        /// What is repeated.
        body: Vec<Statement>,
    },
    /// `{ ... }`
    Block(Vec<Statement>),
    /// `return e;`
    Return(Expr),
    /// What could not be read; already reported.
    Broken,
}

/// `a`, `a = e`, `w[3]` or `w[3] = {a, b, c}`.
#[derive(Clone, Debug)]
pub struct Declarator {
    /// The variable's name.
    pub name: Name,
    /// Elements of an array.
    pub length: Option<Expr>,
    /// Its first value, or those of its elements.
    pub values: Option<Vec<Expr>>,
}

/// An expression.
pub type Expr = Spanned<ExprKind>;

/// The forms of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `12`, `12u`, `12LL`
    Int {
        /// Its value.
        value: u64,
        /// Its type.
        element: Element,
    },
    /// `0.5`, `0.5f`: the number without its suffix
    Float {
        /// Without the suffix.
        text: String,
        /// `float` with a suffix, else `double`.
        element: Element,
    },
    /// `a`
    Name(String),
    /// `input_size.x`
    Member(Box<Expr>, Name),
    /// `w[k]`
    Index(Name, Box<Expr>),
    /// `f(a, b)`
    Call(Name, Vec<Expr>),
    /// `(float) a`
    Cast(Element, Box<Expr>),
    /// `+a`
    Plus(Box<Expr>),
    /// `-a`, `!a`, `~a`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(Spanned<BinaryOp>, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// Whether one of some statements, or of those in them, is a `return`.
pub fn returns(statements: &[Statement]) -> bool {
    first_return(statements).is_some()
}

/// The place of the first `return`.
pub fn first_return(statements: &[Statement]) -> Option<Span> {
    statements.iter().find_map(|statement| match &statement.node {
        StatementKind::Return(_) => Some(statement.span),
        StatementKind::If { yes, no, .. } => first_return(yes).or_else(|| first_return(no)),
        StatementKind::For { body: inner, .. } | StatementKind::Block(inner) => first_return(inner),
        _ => None,
    })
}

/// Whether something in some statements could not be read.
pub fn broken(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.node {
        StatementKind::Broken => true,
        StatementKind::If { yes, no, .. } => broken(yes) || broken(no),
        StatementKind::For { body: inner, .. } | StatementKind::Block(inner) => broken(inner),
        _ => false,
    })
}
