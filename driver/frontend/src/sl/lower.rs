//! The statements of a block to one expression.
//!
//! Variables are values here: each assignment makes a new `let`. Loops are written out, because
//! their bounds are constants. After an `if` a variable has one of two values; where a branch
//! returns, the statements behind the `if` become part of both branches.

use super::tree::{Block, Expr as Tree, Statement, StatementKind, broken, first_return, returns};
use super::types::convert;
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{Expr, ExprKind, FieldId, LocalId, ParamId, ScalarId};
use crate::source::Span;
use cranelift_entity::EntityRef;
use std::collections::BTreeMap;
use stencil_runtime::array::Element;

/// What a block sees.
pub struct Context {
    /// The name of the function.
    pub function: String,
    /// Type of a cell.
    pub element: Element,
    /// How far `get` reaches, x first; one number a dimension.
    pub stencil_size: Vec<u64>,
    /// The matrix.
    pub data: FieldId,
    /// The array of `SetData`.
    pub read: FieldId,
    /// The sizes, x first.
    pub sizes: Vec<ParamId>,
    /// The scalar variables.
    pub scalars: BTreeMap<String, (ScalarId, Element, Span)>,
    /// Whether the block is `EdgeValue`.
    pub edge: bool,
    /// What `value` is in a block; none in `CellValue`.
    pub value: Option<Expr>,
    /// The type of what a block returns.
    pub returned: Element,
    /// The number of the first `let`.
    pub first_local: usize,
}

/// What a block became.
pub struct Lowered {
    /// The `let`s around the value.
    pub lets: Vec<(LocalId, Expr)>,
    /// The value.
    pub value: Expr,
    /// Values of further fields.
    pub more: Vec<Expr>,
    /// All `let`s, also those inside of others, in the order in which they are computed.
    pub all: Vec<(LocalId, Expr)>,
    /// The first read of a cell beside the own one.
    pub beside: Option<Span>,
}

/// Names with a meaning of their own in a block.
pub const OWN_NAMES: [&str; 8] = ["x", "y", "z", "iteration", "input_size", "value", "get", "read"];

pub(super) struct Lower<'a> {
    pub(super) context: &'a Context,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) variables: Vec<Variable>,
    /// `let`s of the statements that are being lowered.
    lets: Vec<(LocalId, Expr)>,
    all: Vec<(LocalId, Expr)>,
    pub(super) beside: Option<Span>,
    /// Operations so far.
    operations: usize,
    iterations: usize,
    /// Statements and expressions around the present one.
    pub(super) level: usize,
    /// Whether a limit was passed.
    pub(super) exhausted: bool,
    /// Whether a statement that could not be read may declare what is not known.
    pub(super) names_lost: bool,
}

/// A local variable or array.
#[derive(Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) element: Element,
    pub(super) constant: bool,
    pub(super) array: bool,
    pub(super) cells: Vec<Cell>,
}

/// The value of a variable or of an element.
#[derive(Clone, PartialEq)]
pub(super) enum Cell {
    /// None yet.
    Unset,
    /// None on one way through an `if`.
    Maybe,
    /// A value.
    Value(Expr),
    /// A faulty one; already reported.
    Broken,
}

/// Statements to do, and how many of the variables they still see.
#[derive(Clone, Copy)]
struct Part<'t> {
    statements: &'t [Statement],
    scope: usize,
}

impl<'t> Part<'t> {
    fn new(statements: &'t [Statement]) -> Self {
        Self { statements, scope: usize::MAX }
    }
}

/// Where statements lead.
enum Flow {
    /// To those that follow.
    On,
    /// To a value; none where something was wrong.
    Value(Option<Expr>),
    /// To the end of the block, without a value.
    End,
}

/// Levels of statements and expressions within each other while a block is lowered.
const MOST_LEVELS: usize = 700;

/// Lowers a block; none where something is wrong with it.
pub fn block(context: &Context, block: &Block) -> (Option<Lowered>, Vec<Diagnostic>) {
    let mut lower = Lower {
        context,
        errors: Vec::new(),
        variables: Vec::new(),
        lets: Vec::new(),
        all: Vec::new(),
        beside: None,
        operations: 0,
        iterations: 0,
        level: 0,
        exhausted: false,
        names_lost: broken(&block.statements),
    };
    let flow = lower.statements(&[Part::new(&block.statements)]);
    let ends = !matches!(flow, Flow::Value(_));
    if ends && lower.errors.is_empty() && !broken(&block.statements) {
        let error = Diagnostic::error("this block may end without a value", block.end, "ends here");
        let error = error.see(block.key, "the block of this key");
        lower.report(error.help("end each way through it by `return ...;`"));
    }
    let Lower { lets, all, beside, errors, .. } = lower;
    let sound = errors.is_empty();
    let value = match flow {
        Flow::Value(value) if sound => value,
        _ => None,
    };
    (value.map(|value| Lowered { lets, value, more: Vec::new(), all, beside }), errors)
}

impl<'t> Lower<'_> {
    /// Loops repeat their faults; each place is reported once.
    pub(super) fn report(&mut self, error: Diagnostic) {
        if self.errors.iter().all(|other| other.place() != error.place()) {
            self.errors.push(error);
        }
    }

    /// A place with so many operations more; false beyond the limit.
    pub(super) fn spend(&mut self, operations: usize, span: Span) -> bool {
        self.operations += operations;
        if self.operations <= limits::OPERATIONS {
            return !self.exhausted;
        }
        if !self.exhausted {
            self.exhausted = true;
            let most = limits::OPERATIONS;
            let message =
                format!("a block has at most {most} operations with its loops written out");
            let error = Diagnostic::error(message, span, "too many with this one");
            let help = "shorten the loops; what follows an `if` with a `return` counts twice";
            self.report(error.help(help));
        }
        false
    }

    /// Goes a level deeper; false beyond the limit.
    pub(super) fn enter(&mut self, span: Span) -> bool {
        self.level += 1;
        if self.level > MOST_LEVELS && !self.exhausted {
            self.exhausted = true;
            let message = format!("more than {MOST_LEVELS} operations within each other");
            let error = Diagnostic::error(message, span, "");
            self.report(error.help("name parts of it by variables, or use `else if`"));
        }
        !self.exhausted
    }

    /// A name for a value, unless it needs none.
    pub(super) fn keep(&mut self, value: Expr) -> Expr {
        if matches!(
            value.kind,
            ExprKind::Int(_)
                | ExprKind::Float(_)
                | ExprKind::Local(_)
                | ExprKind::Scalar(_)
                | ExprKind::Nearest(_)
                | ExprKind::Read { .. }
        ) {
            return value;
        }
        let id = LocalId::new(self.context.first_local + self.all.len());
        let local = Expr { kind: ExprKind::Local(id), ty: value.ty, span: value.span };
        self.all.push((id, value.clone()));
        self.lets.push((id, value));
        local
    }

    /// Does lists of statements one after the other.
    fn statements(&mut self, parts: &[Part<'t>]) -> Flow {
        for (number, part) in parts.iter().enumerate() {
            self.variables.truncate(part.scope);
            for (place, statement) in part.statements.iter().enumerate() {
                if self.exhausted {
                    return Flow::Value(None);
                }
                let mut after =
                    vec![Part::new(part.statements.get(place + 1..).unwrap_or_default())];
                after.extend(parts.get(number + 1..).unwrap_or_default());
                let flow = match self.enter(statement.span) {
                    true => self.statement(statement, &after),
                    false => Flow::Value(None),
                };
                self.level -= 1;
                match flow {
                    Flow::On => {}
                    done => return done,
                }
            }
        }
        Flow::On
    }

    /// Does a statement, and those after it where it has a `return`.
    fn statement(&mut self, statement: &'t Statement, after: &[Part<'t>]) -> Flow {
        match &statement.node {
            StatementKind::Declare { element, constant, variables } => {
                for variable in variables {
                    self.declare(*element, *constant, variable);
                }
                Flow::On
            }
            StatementKind::Assign { name, index, op, value } => {
                self.assign(name, index.as_ref(), op.as_ref(), value);
                Flow::On
            }
            StatementKind::Block(statements) => self.scoped(statements, after),
            StatementKind::Return(value) => {
                let value = self.number(value);
                Flow::Value(value.map(|value| convert(value, self.context.returned)))
            }
            StatementKind::If { condition, yes, no } => {
                let Some(condition) = self.condition(condition) else {
                    // Both are searched for faults.
                    self.branch(yes);
                    self.branch(no);
                    return if returns(yes) || returns(no) { Flow::Value(None) } else { Flow::On };
                };
                match condition.kind {
                    ExprKind::Bool(true) => self.scoped(yes, after),
                    ExprKind::Bool(false) => self.scoped(no, after),
                    _ if returns(yes) || returns(no) => {
                        Flow::Value(self.two_ways(condition, yes, no, after))
                    }
                    _ => {
                        self.merged(condition, yes, no);
                        Flow::On
                    }
                }
            }
            StatementKind::For { start, condition, advance, body } => {
                let known = self.variables.len();
                let head = (start.as_deref(), condition, advance.as_deref());
                self.repeat(head, body, statement.span);
                self.variables.truncate(known);
                Flow::On
            }
            StatementKind::Broken => Flow::On,
        }
    }

    /// Statements with variables of their own, and what follows them.
    fn with_rest(&self, statements: &'t [Statement], after: &[Part<'t>]) -> Vec<Part<'t>> {
        let mut parts = vec![Part::new(statements)];
        parts.extend(after);
        if let Some(next) = parts.get_mut(1) {
            next.scope = next.scope.min(self.variables.len());
        }
        parts
    }

    /// Statements with variables of their own. Where they may return, what follows is part of them.
    fn scoped(&mut self, statements: &'t [Statement], after: &[Part<'t>]) -> Flow {
        if returns(statements) {
            let parts = self.with_rest(statements, after);
            return match self.statements(&parts) {
                Flow::On => Flow::End,
                done => done,
            };
        }
        let known = self.variables.len();
        let flow = self.statements(&[Part::new(statements)]);
        self.variables.truncate(known);
        flow
    }

    /// A branch by itself; its variables end with it.
    fn branch(&mut self, statements: &'t [Statement]) -> Vec<(LocalId, Expr)> {
        let outer = std::mem::take(&mut self.lets);
        let known = self.variables.len();
        self.statements(&[Part::new(statements)]);
        self.variables.truncate(known);
        std::mem::replace(&mut self.lets, outer)
    }

    /// An `if` of which a branch returns: its value, with all that follows.
    fn two_ways(
        &mut self,
        condition: Expr,
        yes: &'t [Statement],
        no: &'t [Statement],
        after: &[Part<'t>],
    ) -> Option<Expr> {
        let yes = self.way(yes, after, condition.span);
        let no = self.way(no, after, condition.span);
        Some(self.choose(condition, yes?, no?))
    }

    /// The value of one way through an `if`.
    fn way(&mut self, statements: &'t [Statement], after: &[Part<'t>], span: Span) -> Option<Expr> {
        let outer = std::mem::take(&mut self.lets);
        let variables = self.variables.clone();
        let parts = self.with_rest(statements, after);
        let flow = self.statements(&parts);
        self.variables = variables;
        let lets = std::mem::replace(&mut self.lets, outer);
        let Flow::Value(value) = flow else {
            let message = "one way through this `if` ends without a value";
            let error = Diagnostic::error(message, span, "");
            self.report(error.help("end each way through the block by `return ...;`"));
            return None;
        };
        value.map(|value| value.with_lets(lets))
    }

    /// An `if` that assigns: afterwards each variable has one of two values.
    fn merged(&mut self, condition: Expr, yes: &'t [Statement], no: &'t [Statement]) {
        let before = self.variables.clone();
        let yes_lets = self.branch(yes);
        let after_yes = std::mem::replace(&mut self.variables, before);
        let no_lets = self.branch(no);
        let mut differ = Vec::new();
        for (place, (one, other)) in after_yes.iter().zip(&self.variables).enumerate() {
            for (index, (a, b)) in one.cells.iter().zip(&other.cells).enumerate() {
                if a != b {
                    differ.push((place, index, a.clone(), b.clone()));
                }
            }
        }
        let several = differ.len() > 1;
        let condition = if several { self.keep(condition) } else { condition };
        let mut lets = (yes_lets, no_lets);
        if several {
            // Computed both ways, so that nothing is computed twice.
            self.lets.append(&mut lets.0);
            self.lets.append(&mut lets.1);
        }
        for (place, index, a, b) in differ {
            let cell = match (a, b) {
                (Cell::Value(a), Cell::Value(b)) => {
                    let (a, b) = (a.with_lets(lets.0.clone()), b.with_lets(lets.1.clone()));
                    let value = self.choose(condition.clone(), a, b);
                    Cell::Value(self.keep(value))
                }
                (Cell::Broken, _) | (_, Cell::Broken) => Cell::Broken,
                _ => Cell::Maybe,
            };
            let variable = self.variables.get_mut(place);
            if let Some(slot) = variable.and_then(|variable| variable.cells.get_mut(index)) {
                *slot = cell;
            }
        }
    }

    pub(super) fn choose(&mut self, condition: Expr, yes: Expr, no: Expr) -> Expr {
        let (span, ty) = (condition.span, yes.ty);
        self.spend(1, span);
        let kind = ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no));
        Expr { kind, ty, span }
    }

    /// A loop, written out.
    fn repeat(
        &mut self,
        (start, condition, advance): (Option<&'t Statement>, &'t Tree, Option<&'t Statement>),
        body: &'t [Statement],
        span: Span,
    ) {
        if let Some(place) = first_return(body) {
            let error = Diagnostic::error("a loop has no `return`", place, "");
            let error = error.see(span, "in this loop");
            return self.report(error.help("assign a variable, and return it after the loop"));
        }
        if let Some(start) = start {
            self.statement(start, &[]);
        }
        while let Some(holds) = self.condition(condition) {
            let ExprKind::Bool(holds) = holds.kind else {
                let message = "the bounds of a loop are constants";
                let error = Diagnostic::error(message, condition.span, "not known before the run");
                return self.report(error.help("compare the counter with a number, as in `k < 3`"));
            };
            if !holds {
                return;
            }
            self.iterations += 1;
            if self.iterations > limits::SL_ITERATIONS {
                self.exhausted = true;
                let most = limits::SL_ITERATIONS;
                let message = format!("the loops of a block have at most {most} iterations");
                let error = Diagnostic::error(message, span, "too many with this loop");
                return self.report(error.help("does the counter change, towards its bound?"));
            }
            let known = self.variables.len();
            self.statements(&[Part::new(body)]);
            self.variables.truncate(known);
            if let Some(advance) = advance {
                self.statement(advance, &[]);
            }
            if self.exhausted {
                return;
            }
        }
    }
}
