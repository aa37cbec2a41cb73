//! Syntax tree to checked program: names, types, bounds, and what cannot be decided before a run.
//!
//! Needs a tree of the parser. Guarantees of the result are those of `program.rs`: every name is
//! resolved, operands agree in type, every piece lies inside the grid, so does every read of a
//! field without a boundary rule, and pieces are disjoint for all sizes that pass
//! `Program::checks`. Parts of the language that are parsed but not supported yet are refused by
//! name. Items are checked in order; a faulty declaration poisons its name, so that its uses are
//! not reported again.
//!
//! | file | what |
//! |---|---|
//! | `declarations.rs` | params, scalars, fields, steps |
//! | `boundary.rs` | boundary rules |
//! | `names.rs` | scopes, built-in names, "did you mean" |
//! | `integer.rs` | integer expressions to affine forms |
//! | `prove.rs` | what follows from linear inequalities over sizes |
//! | `regions.rs` | grids, pieces, reads: inside, disjoint |
//! | `expressions.rs` | the forms of an expression, names in it |
//! | `aggregates.rs` | structs and vecs, taken apart |
//! | `calls.rs` | accesses, calls, casts |
//! | `gathers.rs` | absolute reads: inside |
//! | `literals.rs` | literals take the type of their context |

mod aggregates;
mod boundary;
mod calls;
mod declarations;
mod expressions;
mod gathers;
mod integer;
mod literals;
mod names;
mod prove;
mod regions;

use crate::ast::{self, ExprKind, ItemKind, Name};
use crate::diagnostics::{self, Diagnostic};
use crate::program::*;
use crate::source::{Source, Span};
use aggregates::{StructType, Tree, Ty};
use cranelift_entity::EntityRef;
use expressions::Value;
use gathers::Range;
use names::Symbol;
use prove::Facts;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use stencil_runtime::array::Element;

/// How the offsets of an access are called in messages.
const OFFSET: &str = "an offset";

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
    /// Features that were refused in this item already.
    refused: BTreeSet<String>,
    steps_at: Option<Span>,
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
    /// Fields updated by the function.
    updates: Vec<FieldId>,
    /// The function's name.
    function: String,
    /// Dimensions of the grids that it updates, where they are known.
    rank: Option<usize>,
    /// Names of the coordinates, where they have one.
    coordinates: Vec<Option<Name>>,
    /// `let`-bound names, innermost last.
    locals: Vec<LocalName>,
    /// How many `let`s the piece has so far.
    count: usize,
    /// Reads of the present piece.
    reads: Vec<Read>,
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
}

impl<'a> Checker<'a> {
    fn new(file: &ast::File, source: &'a Source, defines: &'a [(String, i64)]) -> Self {
        let mut declared_at = HashMap::new();
        let mut bounded = BTreeMap::new();
        let mut names_lost = false;
        let mut poisoned = Vec::new();
        for item in &file.items {
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
        Self {
            source,
            defines: defines.iter().map(|(name, value)| (name.as_str(), *value)).collect(),
            program: Program {
                name: source.stem().to_string(),
                params: Default::default(),
                scalars: Default::default(),
                grids: Default::default(),
                fields: Default::default(),
                functions: Vec::new(),
                steps: Affine::default(),
                checks: Vec::new(),
            },
            errors: Vec::new(),
            sound: true,
            symbols: symbols.collect(),
            declared_at,
            names_lost,
            bounded,
            refused: BTreeSet::new(),
            steps_at: None,
            scope: Scope::default(),
            structs: Vec::new(),
            shapes: BTreeMap::new(),
            singles: HashMap::new(),
        }
    }

    fn report(&mut self, error: Diagnostic) {
        self.sound = false;
        self.errors.push(error);
    }

    fn item(&mut self, item: &ast::Item) {
        self.refused.clear();
        match &item.node {
            ItemKind::Param { name, value } => self.param(name, value.as_ref()),
            ItemKind::Scalar { name, ty, default } => self.scalar(name, ty, default.as_ref()),
            ItemKind::Struct { name, members } => self.struct_type(name, members),
            ItemKind::Grid { name, region } => self.grid(name, region),
            ItemKind::Field { role, name, ty, grid } => self.field(*role, name, ty, grid),
            ItemKind::Boundary { field, rule } => self.boundary(field, rule, item.span),
            ItemKind::Function { name, updates, pieces } => {
                self.function(name, updates, pieces, item.span);
            }
            ItemKind::Steps { count } => self.steps(count, item.span),
            ItemKind::Broken { .. } => self.sound = false,
        }
    }

    fn function(&mut self, name: &Name, updates: &[Name], pieces: &[ast::Piece], span: Span) {
        self.declare(name, Symbol::Function);
        let fields: Vec<Option<FieldId>> =
            updates.iter().map(|update| self.updated_field(update)).collect();
        for (index, update) in updates.iter().enumerate() {
            let earlier = updates.iter().take(index).find(|other| other.node == update.node);
            if let Some(earlier) = earlier {
                let message = format!("`{}` is updated twice by one function", update.node);
                let error = Diagnostic::error(message, update.span, "again here");
                self.report(error.see(earlier.span, "first here").help("name each field once"));
            }
        }
        if updates.is_empty() || pieces.is_empty() {
            let what = if updates.is_empty() { "updates no field" } else { "has no piece" };
            let message = format!("the function `{}` {what}", name.node);
            let error = Diagnostic::error(message, name.span, "");
            self.report(error.help("as in `fn f -> A [1..N-2] = A[0]`"));
        }
        let declared: Vec<FieldId> = fields.iter().flatten().copied().collect();
        let sound = self.one_rank(&declared, updates);
        let known: Vec<FieldId> =
            declared.iter().flat_map(|field| self.leaf_fields(*field)).collect();
        let mut checked = Vec::new();
        for piece in pieces {
            self.scope =
                Scope { updates: known.clone(), function: name.node.clone(), ..Scope::default() };
            checked.extend(self.piece(piece, &fields));
        }
        self.scope = Scope::default();
        if !sound {
            return;
        }
        self.disjoint(&checked, &self.grids_of(&known), &name.node);
        let function = Function { name: name.node.clone(), updates: known, pieces: checked, span };
        self.program.functions.push(function);
    }

    /// The grids of some fields, each once.
    fn grids_of(&self, fields: &[FieldId]) -> Vec<Grid> {
        let ids: BTreeSet<GridId> =
            fields.iter().filter_map(|id| Some(self.program.fields.get(*id)?.grid)).collect();
        ids.into_iter().filter_map(|id| self.program.grids.get(id).cloned()).collect()
    }

    /// Whether all fields that a function updates have as many dimensions as each other.
    fn one_rank(&mut self, fields: &[FieldId], names: &[Name]) -> bool {
        let rank = |id: &FieldId| {
            let grid = self.program.grids.get(self.program.fields.get(*id)?.grid)?;
            Some((grid.region.lower.len(), grid.name.clone()))
        };
        let ranks: Vec<_> = fields.iter().map(rank).collect();
        let all = names.iter().zip(ranks).filter_map(|(name, rank)| Some((name, rank?)));
        let mut all = all.collect::<Vec<_>>().into_iter();
        let Some((first, (dimensions, grid))) = all.next() else { return true };
        let Some((other, (others, other_grid))) = all.find(|(_, (rank, _))| *rank != dimensions)
        else {
            return true;
        };
        let message = format!(
            "a function updates fields of as many dimensions as each other, but `{}` has {} and \
             `{}` {others}",
            first.node,
            regions::count(dimensions),
            other.node,
        );
        let error = Diagnostic::error(message, other.span, format!("lies on `{other_grid}`"))
            .see(first.span, format!("lies on `{grid}`"))
            .help("write a function for each");
        self.report(error);
        false
    }

    fn updated_field(&mut self, name: &Name) -> Option<FieldId> {
        let id = match self.resolve(name, name.span)? {
            Symbol::Field(id) => id,
            other => {
                let message = format!(
                    "a function updates fields, but `{}` is {}",
                    name.node,
                    other.describe()
                );
                self.report(Diagnostic::error(message, name.span, "not a field"));
                return None;
            }
        };
        let field = self.program.fields.get(id)?;
        if field.role == Role::Const {
            let error = Diagnostic::error(
                format!("`{}` is const and cannot be updated", name.node),
                name.span,
                "updated here",
            )
            .see(field.span, "declared const here")
            .help("leave out `const`, or update another field");
            self.report(error);
        }
        Some(id)
    }

    /// A piece with its box and values; `None` where its box is faulty.
    fn piece(&mut self, piece: &ast::Piece, fields: &[Option<FieldId>]) -> Option<Piece> {
        if piece.region.node.is_empty()
            && matches!(piece.values.as_slice(), [value] if value.node == ExprKind::Broken)
        {
            self.sound = false;
            return None;
        }
        self.scope.frames.push(Vec::new());
        let grids = self.grids_of(&self.scope.updates);
        self.scope.rank = grids.first().map(|grid| grid.region.lower.len());
        self.name_coordinates(&piece.region);
        let region = self.piece_region(piece, &grids);
        if let Some(region) = &region {
            self.scope.facts = Facts::of_piece(region, &grids);
            self.scope.region = Some((region.clone(), piece.region.span));
        }
        let broken = matches!(piece.values.first(), Some(value) if value.node == ExprKind::Broken);
        if piece.values.len() != fields.len() && !broken && !fields.is_empty() {
            let count =
                |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
            let message = format!(
                "{} for {}",
                count(piece.values.len(), "value"),
                count(fields.len(), "updated field")
            );
            let span =
                piece.values.iter().fold(piece.values.first()?.span, |all, v| all.to(v.span));
            let error = Diagnostic::error(message, span, "");
            self.report(error.help(match fields.len() {
                1 => "write one value, or update several fields: `fn f -> (A, B) ...`",
                _ => "write one value per field, in order: `= (a, b)`",
            }));
        }
        let mut values = Vec::new();
        for (index, value) in piece.values.iter().enumerate() {
            let field = fields.get(index).copied().flatten();
            values.extend(self.piece_value(value, field).into_iter().flatten());
        }
        let lets = std::mem::take(&mut self.scope.frames).into_iter().flatten().collect();
        let reads = std::mem::take(&mut self.scope.reads);
        let region = region?;
        self.reads_inside(&region, &grids, &reads, piece.region.span);
        Some(Piece { region, lets, values, span: piece.region.span })
    }

    /// The values for the fields that an updated one consists of.
    fn piece_value(&mut self, value: &ast::Expr, field: Option<FieldId>) -> Option<Vec<Expr>> {
        let ty = field.and_then(|id| self.field_type(id));
        self.scope.wanted = ty.as_ref().and_then(|ty| self.wanted(ty));
        let found = self.tree(value)?;
        let name = self.field_name(field?).to_string();
        self.coerce(found, &ty?, &name, value.span)
    }

    /// A field's name in the program.
    fn field_name(&self, field: FieldId) -> &str {
        self.program.fields.get(field).map_or("", Field::declared_name)
    }

    fn coerce_number(
        &mut self,
        found: Value,
        element: Element,
        name: &str,
        span: Span,
    ) -> Option<Expr> {
        let expr = &found.expr;
        if found.literal.is_none() && expr.ty != Type::Element(element) {
            let error = match expr.ty {
                Type::Bool => Diagnostic::error(
                    format!("`{name}` holds {element}, but the value is a condition"),
                    span,
                    "",
                )
                .help("choose two numbers: `if condition then 1 else 0`"),
                Type::Element(found) => Diagnostic::error(
                    format!("`{name}` holds {element}, but the value is {found}"),
                    span,
                    "",
                )
                .help(format!("convert it: `{}`", self.cast_text(element, expr.span))),
            };
            self.report(error);
            return None;
        }
        self.adopt(found, Type::Element(element))
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
        let readable = !file.items.iter().any(|item| matches!(item.node, ItemKind::Broken { .. }));
        let has = |wanted: fn(&ItemKind) -> bool| file.items.iter().any(|item| wanted(&item.node));
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
    }

    /// A program that updates only temp fields computes nothing that anybody sees.
    fn has_output(&mut self) {
        let state =
            |id: &FieldId| self.program.fields.get(*id).is_some_and(|f| f.role == Role::State);
        let visible = self.program.functions.iter().flat_map(|f| &f.updates).any(state);
        let first = self.program.functions.first().map(|function| function.span);
        if let Some(span) = first
            && !visible
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
        | ItemKind::Function { name, .. } => Some(name),
        ItemKind::Boundary { .. } | ItemKind::Steps { .. } | ItemKind::Broken { .. } => None,
    }
}
