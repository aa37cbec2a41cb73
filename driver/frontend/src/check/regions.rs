//! Boxes of points: grids, and pieces inside their grids.
//!
//! Every condition is one affine value that must not be negative. All sizes are at least 0, and the
//! piece holds a point. From that the condition is proved, or refuted by an error, or left to a
//! [`Check`] before the run.

use super::Checker;
use super::names::Symbol;
use super::prove::Facts;
use crate::ast::{self, Name};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{Affine, Check, Grid, ParamId, Region};
use crate::source::Span;

impl Checker<'_> {
    /// `grid NAME = BOX`
    pub(super) fn grid(&mut self, name: &Name, region: &ast::Region) {
        let checked = self.grid_region(&name.node, region);
        let Some(checked) = checked else {
            self.sound = false;
            self.declare(name, Symbol::Poisoned);
            return;
        };
        let id = self.program.grids.next_key();
        if self.declare(name, Symbol::Grid(id)) {
            let grid = Grid { name: name.node.clone(), region: checked, span: name.span };
            self.program.grids.push(grid);
        }
    }

    fn grid_region(&mut self, name: &str, region: &ast::Region) -> Option<Region> {
        for range in &region.node {
            if let Some(name) = &range.name {
                let error = Diagnostic::error("a grid's ranges have no names", name.span, "");
                self.report(error.help("coordinates are named in the boxes of functions"));
            }
        }
        if !(1..=3).contains(&region.node.len()) {
            let message = format!("a grid has 1 to 3 dimensions, not {}", region.node.len());
            let error = Diagnostic::error(message, region.span, "");
            self.report(error.help("as in `[0..N-1, 0..M-1]`, one range a dimension"));
            return None;
        }
        let checked = self.bounds(region)?;
        let mut cells = 1i128;
        let mut sound = true;
        for (dimension, range) in region.node.iter().enumerate() {
            let (lower, upper) = bounds_of(&checked, dimension)?;
            let extent = upper.minus(lower).and_then(|difference| difference.shifted(1));
            let Some(extent) = extent else {
                self.overflow("the extent of this range", range.span);
                sound = false;
                continue;
            };
            if Facts::default().refute(&extent) {
                let params = &self.program.params;
                let message = format!(
                    "the range {}..{} ends before it starts",
                    lower.show(params),
                    upper.show(params)
                );
                let error = Diagnostic::error(message, range.span, "");
                self.report(error.help("both ends are inclusive, the lower one comes first"));
                sound = false;
            } else if !Facts::default().prove(&extent) {
                let needed = extent.show_condition(&self.program.params);
                self.program.checks.push(Check {
                    value: extent.clone(),
                    unless_empty: None,
                    message: format!(
                        "the range `{}` must not end before it starts: {needed} is needed",
                        crate::lexer::shorten(self.source.slice(range.span))
                    ),
                    span: range.span,
                });
            }
            self.ends_near(&format!("the grid `{name}`"), &extent, (lower, upper), range.span);
            // Run-time sizes count as 1 here; the whole is checked again when they are known.
            cells = cells.saturating_mul(i128::from(extent.as_number().unwrap_or(1).max(1)));
        }
        if cells > i128::from(i64::MAX) {
            self.overflow("the number of cells", region.span);
            sound = false;
        }
        sound.then_some(checked)
    }

    /// A grid's ends lie so near to 0 that coordinates beyond it stay within 64 bits. Fields of
    /// more than 2^59 cells fit no memory, which bounds most ends already.
    pub(super) fn ends_near(
        &mut self,
        what: &str,
        extent: &Affine,
        (lower, upper): (&Affine, &Affine),
        span: Span,
    ) {
        let mut facts = Facts::default();
        facts.add_order(extent, &Affine::number(limits::MOST_CELLS));
        let most = Affine::number(limits::GRID_END);
        for margin in [lower.plus(&most), most.minus(upper)].into_iter().flatten() {
            if facts.prove(&margin) {
                continue;
            }
            let needed = margin.show_condition(&self.program.params);
            let message = format!(
                "{what} must lie between -{0} and {0}: {needed} is needed",
                limits::GRID_END
            );
            self.program.checks.push(Check { value: margin, unless_empty: None, message, span });
        }
    }

    /// A piece's bounds lie so near to 0 that sums and differences of them stay within 64 bits. The
    /// bounds of an empty piece lie in no grid, but kernels compute them too. The verifier repeats
    /// this with its own prover, in `dialects/src/verify/bounds.rs`.
    fn piece_near(&mut self, region: &Region, grids: &[Grid], piece: &ast::Piece) {
        let (cells, end) = (Affine::number(limits::MOST_CELLS), Affine::number(limits::GRID_END));
        let mut facts = Facts::default();
        for grid in grids {
            for (first, last) in grid.region.lower.iter().zip(&grid.region.upper) {
                // Fields of more cells fit no memory.
                facts.add_values(&last.minus(first).map_or(Vec::new(), |length| {
                    cells.minus(&length).into_iter().chain(length.shifted(1)).collect()
                }));
                facts.add_order(last, &end);
                facts.add_values(&first.plus(&end).into_iter().collect::<Vec<_>>());
            }
        }
        let most = Affine::number(limits::PIECE_END);
        let ranges = region.lower.iter().zip(&region.upper).zip(&piece.region.node);
        for ((lower, upper), range) in ranges {
            let bounds: &[&Affine] = if lower == upper { &[lower] } else { &[lower, upper] };
            for bound in bounds.iter().filter(|bound| bound.as_number().is_none()) {
                let margins = [bound.plus(&most), most.minus(bound)].into_iter().flatten();
                for value in margins {
                    if facts.prove(&value) || self.is_guarded(&facts, &value) {
                        continue;
                    }
                    let needed = value.show_condition(&self.program.params);
                    let text = crate::lexer::shorten(self.source.slice(range.span));
                    let message = format!(
                        "the range `{text}` of `{}` must lie between -{most} and {most}: {needed} \
                         is needed",
                        self.scope.function,
                        most = limits::PIECE_END
                    );
                    let check = Check { value, unless_empty: None, message, span: range.span };
                    self.program.checks.push(check);
                }
            }
        }
    }

    /// Whether a value is not negative by the facts and one check, where the check is void too. All
    /// checks together may be too many for a proof.
    fn is_guarded(&self, facts: &Facts, value: &Affine) -> bool {
        let by = |fact: &Affine| {
            let mut facts = facts.clone();
            facts.add_values(std::slice::from_ref(fact));
            facts.prove(value)
        };
        let void = |region: &Region| {
            let mut pairs = region.lower.iter().zip(&region.upper);
            pairs.all(|(lower, upper)| {
                let gap = lower.minus(upper).and_then(|gap| gap.shifted(-1));
                gap.is_some_and(|gap| by(&gap))
            })
        };
        let counts = |check: &Check| check.value.terms.iter().any(|(id, _)| *id == ParamId::STEPS);
        self.program
            .checks
            .iter()
            .filter(|check| !counts(check))
            .any(|check| by(&check.value) && check.unless_empty.as_ref().is_none_or(void))
    }

    /// Whether a bound is small enough for the sums and proofs that are made of it; an error where
    /// not.
    fn is_small(&mut self, bound: &Affine, span: Span) -> bool {
        let factors = bound.terms.iter().map(|(_, factor)| factor);
        let most = limits::GRID_END.unsigned_abs();
        let near = factors.chain([&bound.constant]).all(|number| number.unsigned_abs() <= most);
        if !near {
            let shown = bound.show(&self.program.params);
            let error = Diagnostic::error(format!("the bound {shown} is too large"), span, "");
            self.report(error.help(format!("bounds lie between -{most} and {most}")));
            return false;
        }
        let few = bound.terms.len() <= limits::BOUND_PARAMS;
        if !few {
            let message = format!("a bound has at most {} params", limits::BOUND_PARAMS);
            let label = format!("this one has {}", bound.terms.len());
            let error = Diagnostic::error(message, span, label);
            self.report(error.help("declare a param for the sum, and give its value to the run"));
        }
        few
    }

    pub(super) fn overflow(&mut self, what: &str, span: Span) {
        let message = format!("size overflow: {what} does not fit 64 bits");
        self.report(Diagnostic::error(message, span, "").help("make the grid smaller"));
    }

    /// Both ends of every range; `None` after an error in any.
    pub(super) fn bounds(&mut self, region: &ast::Region) -> Option<Region> {
        let mut result = Region { lower: Vec::new(), upper: Vec::new() };
        let mut sound = true;
        for range in &region.node {
            let lower = self.affine(&range.lower, "a bound");
            let upper = match &range.upper {
                Some(upper) => self.affine(upper, "a bound"),
                None => lower.clone(),
            };
            match (lower, upper) {
                (Some(lower), Some(upper))
                    if self.is_small(&lower, range.span) && self.is_small(&upper, range.span) =>
                {
                    result.lower.push(lower);
                    result.upper.push(upper);
                }
                _ => sound = false,
            }
        }
        sound.then_some(result)
    }

    /// Brings the names of the coordinates into scope.
    pub(super) fn name_coordinates(&mut self, region: &ast::Region) {
        for range in &region.node {
            let mut name = range.name.clone();
            if let Some(new) = &name {
                let twin = self.scope.coordinates.iter().flatten().find(|old| old.node == new.node);
                if let Some(twin) = twin.map(|twin| twin.span) {
                    let message = format!("`{}` names two coordinates", new.node);
                    let error = Diagnostic::error(message, new.span, "again here");
                    self.report(error.see(twin, "first here").help("give one another name"));
                    name = None;
                } else if !self.is_free(new) {
                    name = None;
                }
            }
            self.scope.coordinates.push(name);
        }
    }

    /// The box of a piece, inside the grids of all updated fields.
    pub(super) fn piece_region(&mut self, piece: &ast::Piece, grids: &[Grid]) -> Option<Region> {
        let region = self.bounds(&piece.region);
        let grid = grids.first()?;
        let dimensions = grid.region.lower.len();
        if piece.region.node.len() != dimensions {
            let message = format!(
                "the grid `{}` has {}, but this box has {}",
                grid.name,
                count(dimensions),
                count(piece.region.node.len())
            );
            let error = Diagnostic::error(message, piece.region.span, "");
            self.report(error.see(grid.span, "the grid").help("give one range a dimension"));
            return None;
        }
        let region = region?;
        let mut facts = Facts::default();
        facts.add_points(&region);
        let mut sound = true;
        for (dimension, range) in piece.region.node.iter().enumerate() {
            let (lower, upper) = bounds_of(&region, dimension)?;
            if self.no_empty_literals((lower, upper), range).is_none() {
                sound = false;
                continue;
            }
            for grid in grids {
                let Some((first, last)) = bounds_of(&grid.region, dimension) else { continue };
                let inside = self.side(
                    &facts,
                    &region,
                    range,
                    (first, lower),
                    grid,
                    dimension,
                    "starts before",
                ) & self.side(
                    &facts,
                    &region,
                    range,
                    (upper, last),
                    grid,
                    dimension,
                    "ends behind",
                );
                sound &= inside;
                if !inside {
                    break; // The fields' grids are much alike; one message is enough.
                }
            }
        }
        self.piece_near(&region, grids, piece);
        sound.then_some(region)
    }

    /// Refuses two literals in the wrong order.
    pub(super) fn no_empty_literals(
        &mut self,
        (lower, upper): (&Affine, &Affine),
        range: &ast::Range,
    ) -> Option<()> {
        let (Some(first), Some(last)) = (lower.as_number(), upper.as_number()) else {
            return Some(());
        };
        if first <= last || !self.literal_range(range) {
            return Some(());
        }
        let message = format!("the range {first}..{last} holds no point");
        let error = Diagnostic::error(message, range.span, "");
        self.report(error.help("both ends are inclusive, the lower one comes first"));
        None
    }

    /// Whether no param occurs in a range.
    fn literal_range(&self, range: &ast::Range) -> bool {
        !self.source.slice(range.span).contains(|c: char| c.is_ascii_alphabetic())
    }

    /// `pair.0 <= pair.1`, else a piece leaves the grid on that side.
    #[allow(clippy::too_many_arguments, reason = "one call site, for two sides")]
    fn side(
        &mut self,
        facts: &Facts,
        region: &Region,
        range: &ast::Range,
        pair: (&Affine, &Affine),
        grid: &Grid,
        dimension: usize,
        how: &str,
    ) -> bool {
        let Some(value) = pair.1.minus(pair.0) else {
            self.overflow("a bound of this box", range.span);
            return false;
        };
        if facts.prove(&value) {
            return true;
        }
        let text = crate::lexer::shorten(self.source.slice(range.span));
        let whole = self.show_range(&grid.region, dimension);
        let what =
            format!("the range `{text}` of `{}` {how} the grid's {whole}", self.scope.function);
        if facts.refute(&value) {
            let error = Diagnostic::error(what, range.span, "outside the grid");
            self.report(
                error
                    .see(grid.span, format!("`{}` is {whole} here", grid.name))
                    .help(format!("dimension {dimension} of a piece must lie in {whole}")),
            );
            return false;
        }
        let needed = value.show_condition(&self.program.params);
        self.program.checks.push(Check {
            value,
            unless_empty: may_be_empty(region),
            message: format!("{what} unless {needed}"),
            span: range.span,
        });
        true
    }

    pub(super) fn show_range(&self, region: &Region, dimension: usize) -> String {
        let show =
            |bound: Option<&Affine>| bound.map_or(String::new(), |b| b.show(&self.program.params));
        format!("{}..{}", show(region.lower.get(dimension)), show(region.upper.get(dimension)))
    }
}

/// The region, unless it holds a point for all sizes.
pub(super) fn may_be_empty(region: &Region) -> Option<Region> {
    let facts = Facts::default();
    let full = region.lower.iter().zip(&region.upper).all(|(lower, upper)| {
        upper.minus(lower).is_some_and(|difference| facts.prove(&difference))
    });
    (!full).then(|| region.clone())
}

pub(super) fn bounds_of(region: &Region, dimension: usize) -> Option<(&Affine, &Affine)> {
    Some((region.lower.get(dimension)?, region.upper.get(dimension)?))
}

/// `2 dimensions`
pub(super) fn count(dimensions: usize) -> String {
    format!("{dimensions} dimension{}", if dimensions == 1 { "" } else { "s" })
}
