//! Functions: the fields that they update, and the boxes and values of their pieces.

use super::expressions::Value;
use super::names::Symbol;
use super::prove::Facts;
use super::types::kept;
use super::{Checker, Scope, regions};
use crate::ast::{self, ExprKind, Name};
use crate::diagnostics::{Diagnostic, MOST_SHOWN};
use crate::limits;
use crate::program::*;
use crate::source::Span;
use std::collections::BTreeSet;
use stencil_runtime::array::Element;

impl Checker<'_> {
    pub(super) fn function(
        &mut self,
        name: &Name,
        updates: &[Name],
        pieces: &[ast::Piece],
        span: Span,
    ) {
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
        self.within_limits(name, &known, pieces);
        let (mut checked, mut primed) = (Vec::new(), Vec::new());
        for piece in pieces.iter().take(limits::PIECES) {
            if self.errors.len() > MOST_SHOWN || !self.one_more_piece(piece.region.span) {
                break; // No more is shown.
            }
            self.scope =
                Scope { updates: known.clone(), function: name.node.clone(), ..Scope::default() };
            checked.extend(self.piece(piece, &fields));
            primed.append(&mut self.scope.primed);
        }
        self.scope = Scope::default();
        self.sweep_order(&name.node, &primed);
        if !sound {
            return;
        }
        self.disjoint(&checked, &self.grids_of(&known), &name.node);
        let checked = held(checked);
        let (name, repeats) = (name.node.clone(), self.repeats.clone());
        let function = Function { name, updates: known, pieces: checked, repeats, span };
        self.reads_before_its_sweep(&function);
        self.program.functions.push(function);
    }

    /// A function that reads values of its own sweep reads old ones of the fields that it updates
    /// at offsets alone: they are gone elsewhere.
    fn reads_before_its_sweep(&mut self, function: &Function) {
        if function.dependences().is_empty() {
            return;
        }
        let mut told = BTreeSet::new();
        for (field, span) in function.gathers() {
            if !function.updates.contains(&field) || !told.insert((span.start, span.end)) {
                continue;
            }
            let name = self.field_name(field).to_owned();
            let message = format!(
                "`{name}` is read at a computed place by `{}`, which updates it and has primed \
                 reads",
                function.name
            );
            let error = Diagnostic::error(message, span, "its old value may be gone");
            self.report(error.help(format!(
                "copy `{name}` to a temp field by a function before, and read that field"
            )));
        }
    }

    /// `repeat COUNT { ITEM ... }`
    pub(super) fn repeat(&mut self, count: &ast::Expr, items: &[ast::Item], span: Span) {
        let found = self.constant(count, "the number of repetitions");
        self.sound &= found.is_some();
        let (most, found) = (limits::REPETITIONS, found.unwrap_or(1));
        let around: i64 = self.repeats.iter().map(|one| one.count).product();
        let all = found.saturating_mul(around);
        if !(1..=most).contains(&found) || all > most {
            let error = Diagnostic::error(
                format!("functions are repeated {all} times in a step"),
                count.span,
                if around > 1 { format!("{found} times {around}") } else { String::new() },
            );
            self.report(error.help(match most / around {
                most if around > 1 => format!("write a number from 1 to {most} here"),
                most => format!("write a number from 1 to {most}"),
            }));
        }
        if items.is_empty() {
            let error = Diagnostic::error("a `repeat` without functions", span, "");
            self.report(error.help("as in `repeat 20 { fn f -> A [1..N-2] = A[-1] }`"));
        }
        let count = found.clamp(1, most / around.max(1));
        self.repeats.push(Repetition { number: self.repeats_begun, count });
        self.repeats_begun += 1;
        items.iter().for_each(|item| self.item(item));
        self.repeats.pop();
    }

    /// The limits of a function.
    fn within_limits(&mut self, name: &Name, updated: &[FieldId], pieces: &[ast::Piece]) {
        self.functions += 1;
        self.at_most(self.functions, limits::FUNCTIONS, "functions and reductions", name.span);
        if updated.len() > limits::CELL {
            let message = format!("a function updates at most {} numbers at a point", limits::CELL);
            let remark = format!("updates {}", updated.len());
            let error = Diagnostic::error(message, name.span, remark);
            self.report(error.help("write a function for each part"));
        }
        if let Some(piece) = pieces.get(limits::PIECES) {
            let message = format!("a function has at most {} pieces", limits::PIECES);
            let remark = format!("number {} of {}", limits::PIECES + 1, pieces.len());
            let error = Diagnostic::error(message, piece.region.span, remark);
            self.report(error.help("use `if` on a coordinate, or write several functions"));
        }
    }

    /// Counts a piece of the program; says so where it is one too many.
    pub(super) fn one_more_piece(&mut self, span: Span) -> bool {
        self.pieces += 1;
        if self.pieces == limits::ALL_PIECES + 1 {
            let message = format!("a program has at most {} pieces", limits::ALL_PIECES);
            let error = Diagnostic::error(message, span, "too many with this piece");
            self.report(error.help("use `if` on a coordinate, or write two programs"));
        }
        self.pieces <= limits::ALL_PIECES
    }

    /// The grids of some fields, each once.
    pub(super) fn grids_of(&self, fields: &[FieldId]) -> Vec<Grid> {
        let ids: BTreeSet<GridId> =
            fields.iter().filter_map(|id| Some(self.program.fields.get(*id)?.grid)).collect();
        ids.into_iter().filter_map(|id| self.program.grids.get(id).cloned()).collect()
    }

    /// Whether all fields that a function updates have as many dimensions as each other.
    pub(super) fn one_rank(&mut self, fields: &[FieldId], names: &[Name]) -> bool {
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

    pub(super) fn updated_field(&mut self, name: &Name) -> Option<FieldId> {
        let id = match self.resolve_field(name)? {
            Symbol::Field(id) => id,
            other => {
                let message = format!(
                    "a function updates fields, but `{}` is {}",
                    name.node,
                    other.describe()
                );
                let error = Diagnostic::error(message, name.span, "not a field");
                self.report(match other {
                    Symbol::Reduction(_) => error.help("its item alone gives it a value"),
                    _ => error.help("name a field that is declared without `const`"),
                });
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
    pub(super) fn piece(
        &mut self,
        piece: &ast::Piece,
        fields: &[Option<FieldId>],
    ) -> Option<Piece> {
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
            // No point is computed in a run of no steps.
            self.scope.facts.add_order(&Affine::number(1), &Affine::param(ParamId::STEPS));
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
                _ => {
                    "write one value per field, in order: `= (a, b)`, or \
                      `= { let s = ...; (a, b) }`"
                }
            }));
        }
        self.scope.wanted = self.common_element(fields);
        self.bind_all(&piece.lets);
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

    /// The type of which all updated fields are, if they are of one.
    fn common_element(&self, fields: &[Option<FieldId>]) -> Option<Element> {
        let element = |field: &Option<FieldId>| self.wanted(&self.field_type((*field)?)?);
        let mut elements = fields.iter().map(element);
        let first = elements.next().flatten()?;
        elements.all(|other| other == Some(first)).then_some(first)
    }

    /// The values for the fields that an updated one consists of.
    pub(super) fn piece_value(
        &mut self,
        value: &ast::Expr,
        field: Option<FieldId>,
    ) -> Option<Vec<Expr>> {
        let ty = field.and_then(|id| self.field_type(id));
        self.scope.wanted = ty.as_ref().and_then(|ty| self.wanted(ty));
        let found = self.tree(value)?;
        let name = self.field_name(field?).to_string();
        let values = self.coerce(found, &ty?, &name, value.span)?;
        Some(values.into_iter().map(kept).collect())
    }

    /// A field's name in the program.
    pub(super) fn field_name(&self, field: FieldId) -> &str {
        self.program.fields.get(field).map_or("", Field::declared_name)
    }

    pub(super) fn coerce_number(
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
                .help(format!("convert it: `{}`", self.cast_text(element, expr.span))),
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
}

/// The pieces without those that no size lets hold a point; one piece stays.
fn held(pieces: Vec<Piece>) -> Vec<Piece> {
    let never = |piece: &Piece| {
        let mut facts = Facts::default();
        facts.add_points(&piece.region);
        facts.contradictory()
    };
    let (mut empty, mut held): (Vec<Piece>, Vec<Piece>) = pieces.into_iter().partition(never);
    if held.is_empty() {
        held.extend(empty.pop());
    }
    held
}
