//! Absolute reads: that every coordinate lies in the field's grid.
//!
//! A coordinate is any integer expression, and its bounds are those of `ranges.rs`. A bound that
//! keeps the read inside is proved, or left to a [`Check`] before the run; where there is none the
//! program is refused. Where the field has a boundary rule any coordinate will do, as long as the
//! grid has a cell.

use super::Checker;
use super::prove::Facts;
use super::ranges::{Bound, Range, is_room};
use super::regions::{bounds_of, may_be_empty};
use crate::diagnostics::Diagnostic;
use crate::program::{Affine, Check, Expr, FieldId, Grid, Region};
use crate::source::Span;

/// A bound that lies so far from 0 and from the grid's end keeps no read inside by itself: it is
/// that of a type, or of the number of steps.
const FAR: u64 = i32::MAX as u64;

/// Whether a value lies at [`FAR`] or beyond.
fn is_far(values: &[Affine]) -> bool {
    values.iter().any(|value| value.constant.unsigned_abs() >= FAR)
}

impl Checker<'_> {
    /// Reports a read that may lie outside, or asks for what keeps it inside.
    pub(super) fn gather_inside(&mut self, field: FieldId, at: &[Expr], span: Span) {
        let Some((region, piece)) = self.scope.region.clone() else { return };
        let grid =
            self.program.fields.get(field).and_then(|field| self.program.grids.get(field.grid));
        let Some(grid) = grid.cloned() else { return };
        let unless_empty = may_be_empty(&region);
        let text = crate::lexer::shorten(self.source.slice(span));
        let declared = self.program.fields.get(field).map(|field| field.declared_name());
        if declared.is_some_and(|name| self.bounded.contains_key(name)) {
            return self.gather_from_some(&grid, (piece, unless_empty), &text, span);
        }
        for (dimension, place) in at.iter().enumerate() {
            let range = self.range(place);
            let Some((first, last)) = bounds_of(&grid.region, dimension) else { continue };
            let below = |value: &Affine| value.minus(first);
            let above = |value: &Affine| last.minus(value);
            for way in [self.ways(&range.lower, below), self.ways(&range.upper, above)] {
                let Some(open) = self.easiest(way) else {
                    return self.gather_outside(&text, dimension, &range, &grid, place.span);
                };
                let what = format!(
                    "may lie outside the grid's {}",
                    self.show_range(&grid.region, dimension)
                );
                for value in open {
                    self.gather_needs(value, (piece, unless_empty.clone()), (&text, &what), span);
                }
            }
        }
    }

    /// A rule says what lies beside a grid's cells, but of a grid without cells it says nothing.
    fn gather_from_some(
        &mut self,
        grid: &Grid,
        (piece, unless_empty): (Span, Option<Region>),
        text: &str,
        span: Span,
    ) {
        for dimension in 0..grid.region.lower.len() {
            let Some(last) =
                bounds_of(&grid.region, dimension).and_then(|(first, last)| last.minus(first))
            else {
                continue;
            };
            if self.scope.facts.prove(&last) {
                continue;
            }
            if self.scope.facts.refute(&last) {
                let message = format!("`{text}` reads a grid without cells");
                let whole = self.show_range(&grid.region, dimension);
                let error = Diagnostic::error(message, span, "")
                    .see(grid.span, format!("`{}` is {whole} here", grid.name));
                return self
                    .report(error.help("give the grid a cell; a `boundary` rule needs one"));
            }
            self.gather_needs(
                last,
                (piece, unless_empty.clone()),
                (text, "reads a grid without cells"),
                span,
            );
        }
    }

    /// Asks for a condition before a run, once.
    fn gather_needs(
        &mut self,
        value: Affine,
        (piece, unless_empty): (Span, Option<Region>),
        (text, what): (&str, &str),
        span: Span,
    ) {
        let known = |check: &Check| check.value == value && check.unless_empty == unless_empty;
        if self.program.checks.iter().any(known) {
            return;
        }
        let needed = value.show_condition(&self.program.params);
        let piece = crate::lexer::shorten(self.source.slice(piece));
        let function = &self.scope.function;
        let message =
            format!("`{text}` in the piece `{piece}` of `{function}` {what} unless {needed}");
        self.program.checks.push(Check { value, unless_empty, message, span });
    }

    /// The conditions under which each bound keeps a coordinate on its side of the grid's end.
    fn ways(
        &self,
        bounds: &[Bound],
        margin: impl Fn(&Affine) -> Option<Affine>,
    ) -> Vec<Vec<Affine>> {
        let way = |bound: &Bound| {
            let margins = bound.values.iter().map(&margin).collect::<Option<Vec<_>>>()?;
            let far = is_far(&bound.values) && is_far(&margins);
            let open = self.open(&bound.needs, margins)?;
            (open.is_empty() || !far).then_some(open)
        };
        bounds.iter().filter_map(way).collect()
    }

    /// Which of some conditions are not proved; none where one can't hold.
    pub(super) fn open(&self, needs: &[Affine], margins: Vec<Affine>) -> Option<Vec<Affine>> {
        let mut open: Vec<Affine> = Vec::new();
        for value in needs.iter().cloned().chain(margins) {
            if !open.contains(&value) && !self.scope.facts.prove(&value) {
                open.push(value);
            }
        }
        if open.iter().any(|value| self.scope.facts.refute(value)) {
            return None;
        }
        // `M >= 4` makes `M >= 1` needless.
        for index in (0..open.len()).rev() {
            let mut others = open.clone();
            let value = others.remove(index);
            if self.with(&others).prove(&value) {
                open = others;
            }
        }
        Some(open)
    }

    /// Of several lists of conditions the one that lets most sizes pass, as far as that is proved;
    /// else the shortest.
    pub(super) fn easiest(&self, ways: Vec<Vec<Affine>>) -> Option<Vec<Affine>> {
        ways.into_iter().reduce(|best, other| {
            let follows = |from: &[Affine], what: &[Affine]| {
                let facts = self.with(from);
                what.iter().all(|value| facts.prove(value))
            };
            // A limit on a size lets almost all sizes pass.
            let strict = |way: &[Affine]| way.iter().filter(|value| !is_room(value)).count();
            match (follows(&best, &other), follows(&other, &best)) {
                (true, false) => other,
                (false, true) => best,
                _ if strict(&other) < strict(&best) => other,
                _ => best,
            }
        })
    }

    /// What is known in the piece where some values are not negative.
    fn with(&self, values: &[Affine]) -> Facts {
        let mut facts = self.scope.facts.clone();
        facts.add_values(values);
        facts
    }

    fn gather_outside(
        &mut self,
        text: &str,
        dimension: usize,
        range: &Range,
        grid: &Grid,
        span: Span,
    ) {
        let params = &self.program.params;
        let near = |bound: &&Bound| !is_far(&bound.values);
        let end = |bounds: &[Bound], how: &str| {
            let values = &bounds.iter().find(near)?.values;
            let values: Vec<_> = values.iter().map(|value| value.show(params)).collect();
            Some(format!("{how} {}", values.join(" or ")))
        };
        let known: Vec<_> = [end(&range.lower, "not below"), end(&range.upper, "not above")]
            .into_iter()
            .flatten()
            .collect();
        let known = match range.number() {
            Some(number) => format!("is {number}"),
            None if known.is_empty() => "may be anything".to_owned(),
            None => known.join(" and "),
        };
        let whole = self.show_range(&grid.region, dimension);
        let (first, last) = (grid.region.lower.get(dimension), grid.region.upper.get(dimension));
        let show = |bound: Option<&Affine>| bound.map_or(String::new(), |bound| bound.show(params));
        let help = format!(
            "keep it inside, as in `max({}, min(..., {}))`; an `if` does not guard a read",
            show(first),
            show(last)
        );
        let message =
            format!("`{text}` may lie outside the grid's {whole} in dimension {dimension}");
        self.report(
            Diagnostic::error(message, span, known)
                .see(grid.span, format!("`{}`", grid.name))
                .help(help),
        );
    }
}
