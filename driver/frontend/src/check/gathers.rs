//! Absolute reads: that every coordinate lies in the field's grid.
//!
//! A coordinate is any integer expression. What it is made of gives it bounds that are affine in
//! the sizes: coordinates lie in the piece's box, `min`, `max`, `%` and `/` cut, values that come
//! from fields have no bounds of their own. A bound that keeps the read inside is proved, or left
//! to a [`Check`] before the run; where there is none the program is refused. Where the field has a
//! boundary rule any coordinate will do, as long as the grid has a cell.
//!
//! Integers wrap, so bounds say something of a sum or a product only if none can: all its parts
//! have bounds on both sides, with small coefficients, and sizes larger than 2^40 are refused
//! before a run wherever that matters.

use super::Checker;
use super::regions::{bounds_of, may_be_empty};
use crate::diagnostics::Diagnostic;
use crate::program::{
    Affine, BinaryOp, Check, Expr, ExprKind, FieldId, MathFunction, ParamId, Region, Type, UnaryOp,
};
use crate::source::Span;
use std::collections::BTreeSet;
use stencil_runtime::array::Element;

/// The value of an integer: not below any of the lower bounds, not above any of the upper ones,
/// wherever the piece holds a point.
#[derive(Clone, Debug, Default)]
pub struct Range {
    lower: Vec<Bound>,
    upper: Vec<Bound>,
}

/// A bound that holds where none of `needs` is negative.
#[derive(Clone, Debug, PartialEq)]
struct Bound {
    value: Affine,
    needs: Vec<Affine>,
}

/// Bounds of one side that are kept.
const MOST_BOUNDS: usize = 6;
/// Coefficients and constants of bounds are no larger, and sizes neither where it matters: sums of
/// four products stay within 64 bits.
const LARGEST_COEFFICIENT: u64 = 1 << 16;
const LARGEST_CONSTANT: u64 = 1 << 56;
const LARGEST_SIZE: i64 = 1 << 40;
/// No run takes more steps.
const MOST_STEPS: i64 = 1 << 48;

impl Bound {
    fn new(value: Affine) -> Self {
        Self { value, needs: Vec::new() }
    }

    fn with(&self, value: Affine, needs: &[Affine]) -> Self {
        let mut all = self.needs.clone();
        all.extend(needs.iter().filter(|need| !self.needs.contains(need)).cloned());
        Self { value, needs: all }
    }

    /// Whether it is small enough to compute with.
    fn is_small(&self) -> bool {
        self.value.constant.unsigned_abs() <= LARGEST_CONSTANT
            && self.value.terms.len() <= 4
            && self
                .value
                .terms
                .iter()
                .all(|(_, factor)| factor.unsigned_abs() <= LARGEST_COEFFICIENT)
    }
}

impl Range {
    fn between(lower: Affine, upper: Affine) -> Self {
        Self::new(vec![Bound::new(lower)], vec![Bound::new(upper)])
    }

    /// The first few of the bounds that can be computed with.
    fn new(lower: Vec<Bound>, upper: Vec<Bound>) -> Self {
        let few = |bounds: Vec<Bound>| {
            let mut kept: Vec<Bound> = Vec::new();
            for bound in bounds.into_iter().filter(Bound::is_small) {
                if kept.len() < MOST_BOUNDS && kept.iter().all(|other| other.value != bound.value) {
                    kept.push(bound);
                }
            }
            kept
        };
        Self { lower: few(lower), upper: few(upper) }
    }

    fn is_bounded(&self) -> bool {
        !self.lower.is_empty() && !self.upper.is_empty()
    }

    /// The number, where it is always the same.
    fn number(&self) -> Option<i64> {
        let lower = self.lower.iter().find_map(|bound| bound.value.as_number())?;
        self.upper.iter().any(|upper| upper.value.as_number() == Some(lower)).then_some(lower)
    }

    fn negated(self) -> Self {
        self.times(-1)
    }

    fn plus(self, other: Self) -> Self {
        let sums = |a: &[Bound], b: &[Bound]| {
            let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
            pairs.filter_map(|(a, b)| Some(a.with(a.value.plus(&b.value)?, &b.needs))).collect()
        };
        Self::new(sums(&self.lower, &other.lower), sums(&self.upper, &other.upper))
    }

    fn times(self, factor: i64) -> Self {
        let scaled = |bounds: &[Bound]| {
            bounds
                .iter()
                .filter_map(|bound| Some(bound.with(bound.value.times(factor)?, &[])))
                .collect()
        };
        let (lower, upper) = (scaled(&self.lower), scaled(&self.upper));
        if factor < 0 { Self::new(upper, lower) } else { Self::new(lower, upper) }
    }

    fn plus_number(self, number: i64) -> Self {
        let moved = |bounds: &[Bound]| {
            bounds
                .iter()
                .filter_map(|bound| Some(bound.with(bound.value.shifted(number)?, &[])))
                .collect()
        };
        Self::new(moved(&self.lower), moved(&self.upper))
    }

    /// The same with more conditions on all bounds.
    fn needing(self, needs: &[Affine]) -> Self {
        let all = |bounds: &[Bound]| {
            bounds.iter().map(|bound| bound.with(bound.value.clone(), needs)).collect()
        };
        Self { lower: all(&self.lower), upper: all(&self.upper) }
    }
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
            let below = range.lower.iter().map(|bound| (bound.value.minus(first), bound));
            // No grid is as long as a run may be.
            let above = range.upper.iter().filter(|bound| bound.value.constant < MOST_STEPS / 2);
            let above = above.map(|bound| (last.minus(&bound.value), bound));
            for side in [below.collect::<Vec<_>>(), above.collect()] {
                // Of the bounds that do, the one that asks for least.
                let ways =
                    side.into_iter().filter_map(|(value, bound)| self.open(&bound.needs, value?));
                let Some(open) = ways.min_by_key(Vec::len) else {
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
        grid: &crate::program::Grid,
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
        let (piece, function) = (self.source.slice(piece), &self.scope.function);
        let message =
            format!("`{text}` in the piece `{piece}` of `{function}` {what} unless {needed}");
        self.program.checks.push(Check { value, unless_empty, message, span });
    }

    /// Which of some conditions are not proved; none where one can't hold.
    fn open(&self, needs: &[Affine], last: Affine) -> Option<Vec<Affine>> {
        let all = needs.iter().chain([&last]);
        let open: Vec<_> = all.filter(|value| !self.scope.facts.prove(value)).cloned().collect();
        (!open.iter().any(|value| self.scope.facts.refute(value))).then_some(open)
    }

    fn gather_outside(
        &mut self,
        text: &str,
        dimension: usize,
        range: &Range,
        grid: &crate::program::Grid,
        span: Span,
    ) {
        let params = &self.program.params;
        let end = |bounds: &[Bound], how: &str| {
            let told = bounds.iter().find(|bound| bound.value.constant < MOST_STEPS / 2);
            told.map(|bound| format!("{how} {}", bound.value.show(params)))
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

    /// The bounds of an integer expression; none of any other.
    pub(super) fn range(&mut self, expr: &Expr) -> Range {
        if !matches!(expr.ty, Type::Element(Element::I32 | Element::I64)) {
            return Range::default();
        }
        match &expr.kind {
            ExprKind::Int(value) => i64::try_from(*value).map_or_else(
                |_| Range::default(),
                |value| Range::between(Affine::number(value), Affine::number(value)),
            ),
            ExprKind::Param(id) => Range::between(Affine::param(*id), Affine::param(*id)),
            ExprKind::Step => Range::between(Affine::number(0), Affine::number(MOST_STEPS)),
            ExprKind::Coordinate(dimension) => {
                let bounds = self
                    .scope
                    .region
                    .as_ref()
                    .and_then(|(region, _)| bounds_of(region, *dimension));
                bounds.map_or_else(Range::default, |(lower, upper)| {
                    Range::between(lower.clone(), upper.clone())
                })
            }
            ExprKind::Local(id) => self.scope.ranges.get(id).cloned().unwrap_or_default(),
            ExprKind::Let(_, _, body) => self.range(body),
            ExprKind::If(_, yes, no) => {
                let (yes, no) = (self.cut(yes), self.cut(no));
                let lower = self.either(&yes.lower, &no.lower, false);
                Range::new(lower, self.either(&yes.upper, &no.upper, true))
            }
            // Other conversions change the value.
            ExprKind::Cast(inner) if inner.ty == Type::Element(Element::I32) => self.range(inner),
            ExprKind::Cast(inner) if inner.ty == Type::Element(Element::U32) => {
                Range::between(Affine::number(0), Affine::number(i64::from(u32::MAX)))
            }
            ExprKind::Call(function, operands) => self.range_of_call(*function, operands),
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                self.ring(expr, inner, inner, |a, _| a.negated())
            }
            ExprKind::Binary(op, left, right) => match op {
                BinaryOp::Add => self.ring(expr, left, right, Range::plus),
                BinaryOp::Sub => self.ring(expr, left, right, |a, b| a.plus(b.negated())),
                BinaryOp::Mul => {
                    self.ring(expr, left, right, |a, b| match (a.number(), b.number()) {
                        (_, Some(factor)) => a.times(factor),
                        (Some(factor), _) => b.times(factor),
                        _ => Range::default(),
                    })
                }
                BinaryOp::Rem => self.remainder(left, right),
                BinaryOp::Div => self.quotient_range(left, right),
                _ => Range::default(),
            },
            _ => Range::default(),
        }
    }

    /// Sums and products: they wrap, so the bounds of one side alone say nothing.
    fn ring(
        &mut self,
        whole: &Expr,
        left: &Expr,
        right: &Expr,
        join: fn(Range, Range) -> Range,
    ) -> Range {
        let (left, right) = (self.range(left), self.range(right));
        if !left.is_bounded() || !right.is_bounded() || whole.ty != Type::Element(Element::I64) {
            return Range::default();
        }
        let all = join(left, right);
        if all.is_bounded() { all } else { Range::default() }
    }

    /// The bounds of an operand that is compared or divided and so must not have wrapped.
    fn cut(&mut self, operand: &Expr) -> Range {
        let range = self.range(operand);
        if matches!(
            operand.kind,
            ExprKind::Int(_) | ExprKind::Param(_) | ExprKind::Coordinate(_) | ExprKind::Step
        ) {
            return range;
        }
        let bounds = range.lower.iter().chain(&range.upper);
        let sizes: BTreeSet<ParamId> =
            bounds.flat_map(|bound| bound.value.terms.iter().map(|(id, _)| *id)).collect();
        let room = |id| Affine::number(LARGEST_SIZE).minus(&Affine::param(id));
        range.needing(&sizes.into_iter().filter_map(room).collect::<Vec<_>>())
    }

    /// Bounds of a value that is one of two: those of one that are no tighter than some of the
    /// other, for all sizes or where a condition says so.
    fn either(&self, first: &[Bound], second: &[Bound], upper: bool) -> Vec<Bound> {
        let (mut proved, mut open) = (Vec::new(), Vec::new());
        for (own, others) in [(first, second), (second, first)] {
            for (bound, other) in
                own.iter().flat_map(|bound| others.iter().map(move |other| (bound, other)))
            {
                let gap = if upper {
                    bound.value.minus(&other.value)
                } else {
                    other.value.minus(&bound.value)
                };
                let Some(gap) = gap else { continue };
                if self.scope.facts.prove(&gap) {
                    proved.push(bound.with(bound.value.clone(), &other.needs));
                } else if !self.scope.facts.refute(&gap) {
                    open.push(
                        bound.with(bound.value.clone(), &[other.needs.as_slice(), &[gap]].concat()),
                    );
                }
            }
        }
        [proved, open].concat()
    }

    fn range_of_call(&mut self, function: MathFunction, operands: &[Expr]) -> Range {
        match (function, operands) {
            // The larger of two is above the bounds of both, and below what both are below.
            (MathFunction::Max, [a, b]) => {
                let (a, b) = (self.cut(a), self.cut(b));
                let upper = self.either(&a.upper, &b.upper, true);
                Range::new([a.lower, b.lower].concat(), upper)
            }
            (MathFunction::Min, [a, b]) => {
                let (a, b) = (self.cut(a), self.cut(b));
                let lower = self.either(&a.lower, &b.lower, false);
                Range::new(lower, [a.upper, b.upper].concat())
            }
            (MathFunction::Abs, [a]) => {
                let a = self.cut(a);
                // Of the smallest integer there is no absolute value.
                if !a.is_bounded() {
                    return Range::default();
                }
                let upper = self.either(&a.upper, &a.clone().negated().upper, true);
                Range::new([vec![Bound::new(Affine::number(0))], a.lower].concat(), upper)
            }
            _ => Range::default(),
        }
    }

    /// The conditions under which some bound is a number or more.
    fn at_least(&self, bounds: &[Bound], number: i64) -> Option<Vec<Affine>> {
        let ways = bounds.iter().filter_map(|bound| {
            let open = self.open(&bound.needs, bound.value.shifted(-number)?)?;
            // What is not above 0 for some size is usually meant to be either.
            (open.is_empty() || !bound.value.terms.is_empty()).then_some(open)
        });
        ways.min_by_key(Vec::len)
    }

    /// `a % m`: nearer to 0 than `m`, with the sign of `a`, and no farther from 0 than `a`.
    fn remainder(&mut self, left: &Expr, right: &Expr) -> Range {
        let (left, right) = (self.cut(left), self.cut(right));
        let Some(positive) = self.at_least(&right.lower, 1) else { return Range::default() };
        let largest = Range { upper: right.upper, ..Range::default() }.plus_number(-1);
        match self.not_negative(&left) {
            Some(needs) => {
                let zero = vec![Bound::new(Affine::number(0))];
                Range::new(zero, [largest.upper, left.upper].concat())
                    .needing(&[positive, needs].concat())
            }
            None => {
                let lower = largest.clone().negated().lower;
                Range::new(lower, largest.upper).needing(&positive)
            }
        }
    }

    /// `a / c` by a positive number, cut off towards 0.
    fn quotient_range(&mut self, left: &Expr, right: &Expr) -> Range {
        let (left, right) = (self.cut(left), self.cut(right));
        let Some(divisor) = right.number().filter(|divisor| *divisor > 0) else {
            return Range::default();
        };
        let Some(needs) = self.not_negative(&left) else { return Range::default() };
        let quotient = |bound: &Bound| {
            let even = bound.value.terms.iter().all(|(_, factor)| factor % divisor == 0);
            let terms =
                bound.value.terms.iter().map(|(id, factor)| (*id, factor / divisor)).collect();
            even.then(|| {
                bound
                    .with(Affine { constant: bound.value.constant.div_euclid(divisor), terms }, &[])
            })
        };
        let mut lower: Vec<_> = left.lower.iter().filter_map(quotient).collect();
        lower.push(Bound::new(Affine::number(0)));
        // What is not negative does not grow.
        let upper = left
            .upper
            .iter()
            .map(|bound| quotient(bound).unwrap_or_else(|| bound.clone()))
            .collect();
        Range::new(lower, upper).needing(&needs)
    }

    /// The conditions of a bound that is proved not to be negative.
    fn not_negative(&self, range: &Range) -> Option<Vec<Affine>> {
        let proved = range.lower.iter().filter(|bound| self.scope.facts.prove(&bound.value));
        proved.map(|bound| bound.needs.clone()).min_by_key(Vec::len)
    }
}
