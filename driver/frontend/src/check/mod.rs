//! Syntax tree to checked program: names, types, bounds, and what cannot be decided before a run.
//!
//! Needs a tree of the parser. Guarantees of the result are those of `program.rs`: every name is
//! resolved, operands agree in type, every piece lies inside the grid, so does every read of a
//! field without a boundary rule, and pieces are disjoint for all sizes that pass
//! `Program::checks`. Items are checked in order; a faulty declaration poisons its name, so that
//! its uses are not reported again.
//!
//! | file | what |
//! |---|---|
//! | `declarations.rs` | params, scalars, fields, steps |
//! | `boundary.rs`, `rule_reductions.rs` | boundary rules, and reductions in them |
//! | `functions.rs` | functions, their pieces and values |
//! | `places.rs` | `argmin` and `argmax` |
//! | `reductions.rs` | reductions, the condition of `until` |
//! | `size.rs` | the size of the whole program |
//! | `names.rs` | scopes, built-in names, "did you mean" |
//! | `integer.rs` | integer expressions to affine forms |
//! | `prove.rs` | what follows from linear inequalities over sizes |
//! | `regions.rs` | grids, pieces: inside |
//! | `reads.rs` | reads at offsets: inside |
//! | `sweep_order.rs` | primed reads: computed before |
//! | `disjoint.rs` | pieces: disjoint |
//! | `expressions.rs` | the forms of an expression, names in it |
//! | `types.rs` | types of cells, members and values |
//! | `aggregates.rs` | structs and vecs, taken apart |
//! | `vecs.rs` | vecs written out, their lanes |
//! | `calls.rs` | accesses, calls, casts |
//! | `gathers.rs`, `absolute.rs` | absolute reads: inside |
//! | `ranges.rs` | bounds of integer expressions |
//! | `lets.rs` | functions in expressions, written out at each call |
//! | `folds.rs` | sums and the like over constant ranges |
//! | `literals.rs` | literals take the type of their context |

mod absolute;
mod aggregates;
mod bits;
mod boundary;
mod calls;
mod complex;
mod declarations;
mod disjoint;
mod expressions;
mod folds;
mod functions;
mod gathers;
mod integer;
mod lets;
mod literals;
mod names;
mod places;
mod prove;
mod ranges;
mod reads;
mod reductions;
mod regions;
mod rule_reductions;
mod size;
mod sweep_order;
mod types;
mod vecs;

pub use self::absolute::{Space, absolute_reads};
pub use self::names::is_reserved;
use self::rule_reductions::RuleUse;
use crate::ast::{self, ItemKind, Name};
use crate::diagnostics::{self, Diagnostic};
use crate::program::*;
use crate::source::{Source, Span};
use aggregates::Tree;
use cranelift_entity::EntityRef;
use lets::{Call, Inlined};
use names::Symbol;
use prove::Facts;
use ranges::Range;
use reductions::Ahead;
use std::collections::{BTreeMap, HashMap};
use stencil_runtime::array::Element;
use types::{StructType, Ty};

/// How the offsets of an access are called in messages.
const OFFSET: &str = "an offset";
/// What a param's value is called in messages.
const PARAM: &str = "the value of a param";

/// Checks a syntax tree. `defines` are values for params that override those of the file
/// (`-D NAME=VALUE`).
///
/// # Errors
/// All findings, sorted by place. The list is empty only where the tree has broken nodes, which
/// the parser has reported, and nothing else is wrong.
pub fn check(
    file: &ast::File,
    source: &Source,
    defines: &[(String, i64)],
) -> Result<Program, Vec<Diagnostic>> {
    let mut checker = Checker::new(file, source, defines);
    for item in &file.items {
        checker.item(item);
    }
    checker.whole(file, defines);
    let Checker { program, mut errors, sound, .. } = checker;
    diagnostics::sort(&mut errors);
    if errors.is_empty() && sound { Ok(program) } else { Err(errors) }
}

struct Checker<'a> {
    source: &'a Source,
    defines: BTreeMap<&'a str, i64>,
    program: Program,
    errors: Vec<Diagnostic>,
    /// Whether nothing was found wrong, here or by the parser.
    sound: bool,
    symbols: HashMap<String, (Symbol, Span)>,
    /// Where every name of the file is declared, for uses that come too early.
    declared_at: HashMap<String, Span>,
    /// Whether an unreadable item may have declared names that are not known.
    names_lost: bool,
    /// Fields that have a boundary rule somewhere in the file, faulty or not, and the place of
    /// their name in the first.
    bounded: BTreeMap<String, Span>,
    /// Reductions of the file by name: earlier items may read some of them.
    reductions: BTreeMap<String, Ahead>,
    /// Reductions that boundary rules read.
    rule_uses: Vec<RuleUse>,
    /// Functions in expressions, in order of declaration.
    lets: Vec<Inlined>,
    /// Calls of such functions that are being written out, the outermost first.
    calls: Vec<Call>,
    /// Operations of all bodies that were written out.
    written_out: usize,
    steps_at: Option<Span>,
    /// Functions and reductions so far, faulty or not.
    functions: usize,
    /// Pieces and boxes of reductions so far.
    pieces: usize,
    /// The `repeat`s that the present item stands in, the outer one first.
    repeats: Vec<Repetition>,
    /// How many `repeat`s of the file have begun.
    repeats_begun: usize,
    scope: Scope,
    /// Declared structs.
    structs: Vec<StructType>,
    /// Types of fields that are no numbers, by the first of the fields that they consist of.
    shapes: BTreeMap<FieldId, Ty>,
    /// Float literals rounded to f32 straight from their text, by place.
    singles: HashMap<Span, f32>,
}

/// What is known inside a piece, or a boundary rule.
#[derive(Default)]
struct Scope {
    /// The field whose boundary rule this is.
    rule: Option<FieldId>,
    /// Whether this is the condition of `until`.
    ends_run: bool,
    /// Whether this is the body of a function by `let`, where it is declared.
    body: bool,
    /// Fields updated by the function.
    updates: Vec<FieldId>,
    /// The function's name.
    function: String,
    /// Dimensions of the grids that it updates, where they are known.
    rank: Option<usize>,
    /// Names of the coordinates, where they have one.
    coordinates: Vec<Option<Name>>,
    /// Names of ranges, each with its present number.
    numbers: Vec<(String, i64)>,
    /// `let`-bound names, innermost last.
    locals: Vec<LocalName>,
    /// How many `let`s the piece has so far.
    count: usize,
    /// Reads of the present piece.
    reads: Vec<Read>,
    /// Primed reads of fields that the function updates.
    primed: Vec<sweep_order::Primed>,
    /// The piece's box, where it is sound, and its place.
    region: Option<(Region, Span)>,
    /// What holds of the sizes where the piece has a point.
    facts: Facts,
    /// Between which bounds the integers bound by `let` lie.
    ranges: HashMap<LocalId, Range>,
    /// The type of the value that is being computed.
    wanted: Option<Element>,
    /// What the open blocks have bound, innermost last; the first is the piece's own.
    frames: Vec<Vec<(LocalId, Expr)>>,
}

struct LocalName {
    name: String,
    span: Span,
    binding: Binding,
}

#[derive(Clone)]
enum Binding {
    /// A value: bound ones, and literals, which take the type of each context.
    Value(Tree),
    /// Faulty.
    Poisoned,
}

/// A read at a constant offset.
struct Read {
    field: FieldId,
    offset: Vec<i64>,
    span: Span,
    /// Where the function is called whose body it stands in.
    call: Option<Call>,
}

impl<'a> Checker<'a> {
    fn new(file: &ast::File, source: &'a Source, defines: &'a [(String, i64)]) -> Self {
        let mut declared_at = HashMap::new();
        let mut bounded = BTreeMap::new();
        let mut names_lost = false;
        let mut poisoned = Vec::new();
        for item in file.all_items() {
            match &item.node {
                ItemKind::Boundary { field, .. } => {
                    bounded.entry(field.node.clone()).or_insert(field.span);
                }
                ItemKind::Broken { names } => {
                    names_lost |= names.is_empty();
                    poisoned.extend(names);
                }
                other => {
                    if let Some(name) = declared_name(other) {
                        declared_at.entry(name.node.clone()).or_insert(name.span);
                    }
                }
            }
        }
        let symbols =
            poisoned.into_iter().map(|name| (name.node.clone(), (Symbol::Poisoned, name.span)));
        let mut checker = Self {
            source,
            defines: defines.iter().map(|(name, value)| (name.as_str(), *value)).collect(),
            program: Program {
                name: source.stem().to_string(),
                params: Default::default(),
                scalars: Default::default(),
                grids: Default::default(),
                fields: Default::default(),
                functions: Vec::new(),
                reductions: Vec::new(),
                steps: Affine::default(),
                until: None,
                checks: Vec::new(),
            },
            errors: Vec::new(),
            sound: true,
            symbols: symbols.collect(),
            declared_at,
            names_lost,
            bounded,
            reductions: BTreeMap::new(),
            rule_uses: Vec::new(),
            lets: Vec::new(),
            calls: Vec::new(),
            written_out: 0,
            steps_at: None,
            functions: 0,
            pieces: 0,
            repeats: Vec::new(),
            repeats_begun: 0,
            scope: Scope::default(),
            structs: Vec::new(),
            shapes: BTreeMap::new(),
            singles: HashMap::new(),
        };
        checker.look_ahead(file);
        checker
    }

    fn report(&mut self, mut error: Diagnostic) {
        self.sound = false;
        if !self.calls.is_empty() {
            // Each call would tell the same of the function's body.
            let same = |other: &Diagnostic| {
                (other.place(), &other.message) == (error.place(), &error.message)
            };
            if self.errors.iter().any(same) {
                return;
            }
        }
        for call in &self.calls {
            error = error.see(call.span, format!("in this call of `{}`", call.name));
        }
        self.errors.push(error);
    }

    fn item(&mut self, item: &ast::Item) {
        match &item.node {
            ItemKind::Param { name, value } => self.param(name, value.as_ref()),
            ItemKind::Scalar { name, ty, default } => self.scalar(name, ty, default.as_ref()),
            ItemKind::Struct { name, members } => self.struct_type(name, members),
            ItemKind::Grid { name, region } => self.grid(name, region),
            ItemKind::Field { role, name, ty, grid } => self.field(*role, name, ty, grid),
            ItemKind::Boundary { field, rule } => self.boundary(field, rule, item.span),
            ItemKind::Let { name, parameters, value } => self.inlined(name, parameters, value),
            ItemKind::Function { name, updates, pieces } => {
                self.function(name, updates, pieces, item.span);
            }
            ItemKind::Repeat { count, items } => self.repeat(count, items, item.span),
            ItemKind::Reduce { .. } => self.reduction(&item.node, item.span),
            ItemKind::Steps { count, until } => self.steps(count, until.as_ref(), item.span),
            ItemKind::Broken { .. } => self.sound = false,
        }
    }

    /// What only the file as a whole can lack.
    fn whole(&mut self, file: &ast::File, defines: &[(String, i64)]) {
        for (name, _) in defines {
            if !matches!(self.symbols.get(name), Some((Symbol::Param(_) | Symbol::Poisoned, _)))
                && !self.names_lost
            {
                self.unknown_define(name);
            }
        }
        let readable = !file.all_items().any(|item| matches!(item.node, ItemKind::Broken { .. }));
        let has = |wanted: fn(&ItemKind) -> bool| file.all_items().any(|item| wanted(&item.node));
        let end = self.source.text.trim_end().len().min(u32::MAX as usize) as u32;
        let mut missing = |present: bool, what: &str, help: &str| {
            if readable && !present {
                let message = format!("the program has no {what}");
                let error = Diagnostic::error(message, Span::new(end, end), "the file ends here");
                self.report(error.help(help));
            }
        };
        let fields = has(|item| matches!(item, ItemKind::Field { .. }));
        missing(fields, "field", "declare a grid and a field on it: `field A : f32 on G`");
        let functions = has(|item| matches!(item, ItemKind::Function { .. }));
        missing(functions || !fields, "function", "add one: `fn f -> A [1..N-2] = A[0]`");
        let steps = has(|item| matches!(item, ItemKind::Steps { .. }));
        missing(steps || !functions, "`steps`", "say how many steps a run takes: `steps 100`");
        self.has_output();
        self.reduced_before_rules();
        self.not_too_large();
    }

    /// A program that updates only temp fields, and reduces nothing, computes nothing that anybody
    /// sees.
    fn has_output(&mut self) {
        let state =
            |id: &FieldId| self.program.fields.get(*id).is_some_and(|f| f.role == Role::State);
        let visible = self.program.functions.iter().flat_map(|f| &f.updates).any(state);
        let first = self.program.functions.first().map(|function| function.span);
        if let Some(span) = first
            && !visible
            && self.reductions.is_empty()
            && self.sound
        {
            let error =
                Diagnostic::error("the program has no output", span, "updates temp fields only");
            self.report(error.help("declare an updated field without `temp`"));
        }
    }

    fn unknown_define(&mut self, name: &str) {
        let message = format!("-D {name}=...: the program has no param `{name}`");
        let error = Diagnostic::error_without_place(message);
        let params: Vec<&str> = self.program.params.values().map(|p| p.name.as_str()).collect();
        let error = match self.symbols.get(name) {
            Some((Symbol::Scalar(_), _)) => {
                error.help(format!("`{name}` is a scalar: use `--set {name}=...`"))
            }
            _ => match crate::suggest::nearest(name, params.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None if params.is_empty() => error.note("the program has no params at all"),
                None => error.note(format!("its params are {}", params.join(", "))),
            },
        };
        self.report(error);
    }

    /// A name for the next `let` of the piece.
    fn next_local(&mut self) -> LocalId {
        let id = LocalId::new(self.scope.count);
        self.scope.count += 1;
        id
    }
}

fn declared_name(item: &ItemKind) -> Option<&Name> {
    match item {
        ItemKind::Param { name, .. }
        | ItemKind::Scalar { name, .. }
        | ItemKind::Struct { name, .. }
        | ItemKind::Grid { name, .. }
        | ItemKind::Field { name, .. }
        | ItemKind::Let { name, .. }
        | ItemKind::Function { name, .. }
        | ItemKind::Reduce { name, .. } => Some(name),
        ItemKind::Boundary { .. }
        | ItemKind::Repeat { .. }
        | ItemKind::Steps { .. }
        | ItemKind::Broken { .. } => None,
    }
}
