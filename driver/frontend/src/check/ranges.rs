//! Where integer values lie: bounds that are affine in the sizes, or in the steps of a run.
//!
//! Coordinates lie in the piece's box, and `t` is below the steps of the run. `min`, `max`, `%` and
//! `/` bound their results; a value that comes from a field has the bounds of its type. The upper
//! bounds of `a` and those of `b` are all upper bounds of `min(a, b)`. A bound may consist of
//! several values: `min(a, b)` is not below the smaller one of a lower bound of `a` and one of `b`.
//!
//! Integers wrap. A sum or a product has bounds only where it can't wrap: in 64 bits its parts have
//! bounds on both sides with small coefficients, and sizes above 2^40 are refused before a run
//! where that matters; in other types the result lies within the type's limits.

mod bits;

use super::Checker;
use super::regions::bounds_of;
use crate::limits;
use crate::program::{Affine, BinaryOp, Expr, ExprKind, MathFunction, ParamId, Type, UnaryOp};
use std::collections::BTreeSet;
use stencil_runtime::array::Element;

/// Where an integer lies wherever the piece holds a point. Every bound holds.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Not below these.
    pub lower: Vec<Bound>,
    /// Not above these.
    pub upper: Vec<Bound>,
}

/// A bound that holds where none of `needs` is negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// A lower bound is the smallest of these, an upper bound the largest.
    pub values: Vec<Affine>,
    /// What must not be negative.
    pub needs: Vec<Affine>,
}

/// Bounds of one side, and values of one bound, that are kept.
const MOST_BOUNDS: usize = 6;
/// Coefficients and constants of bounds are no larger, and sizes neither where it matters: a
/// constant and four products, one of them with the steps, stay below 2^62, so that the sum of two
/// bounds stays within 64 bits. A grid may end at the largest constant.
const LARGEST_COEFFICIENT: u64 = 1 << 16;
const LARGEST_CONSTANT: u64 = limits::GRID_END.unsigned_abs();
const LARGEST_SIZE: i64 = 1 << 40;

impl Bound {
    fn one(value: Affine) -> Self {
        Self { values: vec![value], needs: Vec::new() }
    }

    /// The bound of a value that is bounded by this or by the other one.
    fn or(&self, other: &Self) -> Self {
        let values = joined(&self.values, &other.values);
        Self { values, needs: joined(&self.needs, &other.needs) }
    }

    fn needing(&self, needs: &[Affine]) -> Self {
        Self { values: self.values.clone(), needs: joined(&self.needs, needs) }
    }

    /// The same with other values; none where one of them leaves 64 bits.
    fn map(&self, value: impl Fn(&Affine) -> Option<Affine>) -> Option<Self> {
        let values = self.values.iter().map(value).collect::<Option<_>>()?;
        Some(Self { values, needs: self.needs.clone() })
    }

    /// Whether it is small enough to compute with.
    fn is_small(&self) -> bool {
        let small = |value: &Affine| {
            value.constant.unsigned_abs() <= LARGEST_CONSTANT
                && value.terms.len() <= 4
                && value
                    .terms
                    .iter()
                    .all(|(_, factor)| factor.unsigned_abs() <= LARGEST_COEFFICIENT)
        };
        self.values.len() <= MOST_BOUNDS && self.values.iter().all(small)
    }

    /// The number, where it is one.
    fn number(&self) -> Option<i64> {
        match self.values.as_slice() {
            [only] => only.as_number(),
            _ => None,
        }
    }
}

/// The number of the last step.
fn before_the_last() -> Affine {
    Affine { constant: -1, terms: vec![(ParamId::STEPS, 1)] }
}

/// Not negative where a size is small enough for sums not to wrap.
fn room(size: ParamId) -> Option<Affine> {
    Affine::number(LARGEST_SIZE).minus(&Affine::param(size))
}

/// Whether a condition is a limit on one size.
pub fn is_room(value: &Affine) -> bool {
    matches!(value.terms.as_slice(), [(size, _)] if room(*size).as_ref() == Some(value))
}

/// Both lists, each value once.
fn joined(first: &[Affine], second: &[Affine]) -> Vec<Affine> {
    let new = second.iter().filter(|value| !first.contains(value));
    first.iter().chain(new).cloned().collect()
}

/// The bounds of a value that is one of two.
fn either(first: &[Bound], second: &[Bound]) -> Vec<Bound> {
    first.iter().flat_map(|a| second.iter().map(|b| a.or(b))).collect()
}

impl Range {
    /// From one value to another.
    pub fn between(lower: Affine, upper: Affine) -> Self {
        Self::new(vec![Bound::one(lower)], vec![Bound::one(upper)])
    }

    fn numbers(lower: i64, upper: i64) -> Self {
        Self::between(Affine::number(lower), Affine::number(upper))
    }

    /// All values of a type, as far as they are bounds to compute with.
    fn of_type(element: Element) -> Self {
        match element {
            short if let Some((least, most)) = ends(short) => Self::numbers(least, most),
            Element::U64 => Self::new(vec![Bound::one(Affine::number(0))], Vec::new()),
            _ => Self::default(),
        }
    }

    /// The simplest few of the bounds that can be computed with.
    fn new(lower: Vec<Bound>, upper: Vec<Bound>) -> Self {
        let few = |mut bounds: Vec<Bound>| {
            bounds.sort_by_key(|bound| bound.values.len() + bound.needs.len());
            let mut kept: Vec<Bound> = Vec::new();
            for bound in bounds.into_iter().filter(Bound::is_small) {
                if kept.len() < MOST_BOUNDS && kept.iter().all(|other| other.values != bound.values)
                {
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
    pub fn number(&self) -> Option<i64> {
        let lower = self.lower.iter().find_map(Bound::number)?;
        self.upper.iter().any(|upper| upper.number() == Some(lower)).then_some(lower)
    }

    /// The narrowest bounds that are numbers.
    fn limits(&self) -> Option<(i64, i64)> {
        let free = |bound: &&Bound| bound.needs.is_empty();
        let lower = self.lower.iter().filter(free).filter_map(Bound::number).max()?;
        Some((lower, self.upper.iter().filter(free).filter_map(Bound::number).min()?))
    }

    /// Bounds of both sides by a function that grows or, where they are exchanged, falls.
    fn map(&self, falls: bool, value: impl Fn(&Affine) -> Option<Affine>) -> Self {
        let all = |bounds: &[Bound]| bounds.iter().filter_map(|bound| bound.map(&value)).collect();
        let (lower, upper) = (all(&self.lower), all(&self.upper));
        if falls { Self::new(upper, lower) } else { Self::new(lower, upper) }
    }

    fn times(&self, factor: i64) -> Self {
        self.map(factor < 0, |value| value.times(factor))
    }

    fn plus(&self, other: &Self) -> Self {
        let sum = |a: &Bound, b: &Bound| {
            let pairs = a.values.iter().flat_map(|x| b.values.iter().map(move |y| x.plus(y)));
            Some(Bound { values: pairs.collect::<Option<_>>()?, needs: joined(&a.needs, &b.needs) })
        };
        let sums = |first: &[Bound], second: &[Bound]| {
            first.iter().flat_map(|a| second.iter().filter_map(move |b| sum(a, b))).collect()
        };
        Self::new(sums(&self.lower, &other.lower), sums(&self.upper, &other.upper))
    }

    fn product(&self, other: &Self) -> Self {
        match (self.number(), other.number(), self.limits(), other.limits()) {
            (_, Some(factor), ..) => self.times(factor),
            (Some(factor), ..) => other.times(factor),
            (_, _, Some((a, b)), Some((c, d))) => {
                let corners =
                    [a.checked_mul(c), a.checked_mul(d), b.checked_mul(c), b.checked_mul(d)];
                let corners: Option<Vec<i64>> = corners.into_iter().collect();
                let ends = corners.and_then(|all| Some((*all.iter().min()?, *all.iter().max()?)));
                ends.map_or_else(Self::default, |(lower, upper)| Self::numbers(lower, upper))
            }
            _ => Self::default(),
        }
    }

    /// The same with more conditions on all bounds.
    fn needing(&self, needs: &[Affine]) -> Self {
        let all = |bounds: &[Bound]| bounds.iter().map(|bound| bound.needing(needs)).collect();
        Self { lower: all(&self.lower), upper: all(&self.upper) }
    }
}

/// The least and the largest number of a type of less than 64 bits.
fn ends(element: Element) -> Option<(i64, i64)> {
    let bits = 8 * element.size();
    let short = !element.is_float() && bits < 64;
    short.then(|| match element.is_unsigned() {
        true => (0, (1 << bits) - 1),
        false => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    })
}

fn element_of(expr: &Expr) -> Option<Element> {
    match expr.ty {
        Type::Element(element) => Some(element),
        Type::Bool => None,
    }
}

impl Checker<'_> {
    /// The bounds of an integer expression; none of any other.
    pub(super) fn range(&mut self, expr: &Expr) -> Range {
        let Some(element) = element_of(expr).filter(|element| !element.is_float()) else {
            return Range::default();
        };
        let all = || Range::of_type(element);
        match &expr.kind {
            ExprKind::Int(value) => {
                i64::try_from(*value).map_or_else(|_| all(), |value| Range::numbers(value, value))
            }
            ExprKind::Param(id) => Range::between(Affine::param(*id), Affine::param(*id)),
            ExprKind::Step => Range::new(
                vec![Bound::one(Affine::number(0))],
                vec![Bound::one(Affine::number(limits::STEPS)), Bound::one(before_the_last())],
            ),
            ExprKind::Coordinate(dimension) => {
                let region = self.scope.region.as_ref().map(|(region, _)| region);
                let bounds = region.and_then(|region| bounds_of(region, *dimension));
                bounds
                    .map_or_else(all, |(lower, upper)| Range::between(lower.clone(), upper.clone()))
            }
            ExprKind::Local(id) => self.scope.ranges.get(id).cloned().unwrap_or_else(all),
            ExprKind::Let(_, _, body) => self.range(body),
            ExprKind::If(_, yes, no) => {
                let (yes, no) = (self.cut(yes), self.cut(no));
                Range::new(either(&yes.lower, &no.lower), either(&yes.upper, &no.upper))
            }
            ExprKind::Cast(inner) => self.converted(inner, element),
            ExprKind::Call(function, operands) => self.range_of_call(*function, operands, element),
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let negative = self.range(inner).times(-1);
                self.unwrapped(negative, element)
            }
            ExprKind::Binary(op, left, right) => match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                    self.ring(*op, left, right, element)
                }
                BinaryOp::Rem => self.remainder(left, right, element),
                BinaryOp::Div => self.quotient_range(left, right, element),
                BinaryOp::BitAnd => self.masked(left, right, element),
                BinaryOp::Shr => self.shifted_down(left, element),
                _ => all(),
            },
            _ => all(),
        }
    }

    /// Sums and products: they wrap, so the bounds of one side alone say nothing.
    fn ring(&mut self, op: BinaryOp, left: &Expr, right: &Expr, element: Element) -> Range {
        let (left, right) = (self.range(left), self.range(right));
        if !left.is_bounded() || !right.is_bounded() {
            return Range::of_type(element);
        }
        let exact = match op {
            BinaryOp::Add => left.plus(&right),
            BinaryOp::Sub => left.plus(&right.times(-1)),
            _ => left.product(&right),
        };
        self.unwrapped(exact, element)
    }

    /// The bounds of a result that would be `exact` if it did not wrap.
    fn unwrapped(&self, exact: Range, element: Element) -> Range {
        match exact.is_bounded() {
            true => self.within(&exact, element).unwrap_or_else(|| Range::of_type(element)),
            false => Range::of_type(element),
        }
    }

    /// The range, where it lies within the limits of a type. Bounds are small enough for 64 bits.
    fn within(&self, range: &Range, element: Element) -> Option<Range> {
        let (least, most) = match element {
            short if let Some(ends) = ends(short) => ends,
            Element::U64 => return Some(range.needing(&self.not_negative(range)?)),
            _ => return range.is_bounded().then(|| range.clone()),
        };
        let (lower, upper) = range.limits()?;
        (least <= lower && upper <= most).then(|| range.clone())
    }

    /// A number in another type: conversions keep what fits.
    fn converted(&mut self, inner: &Expr, element: Element) -> Range {
        let range = self.cut(inner);
        self.within(&range, element).unwrap_or_else(|| Range::of_type(element))
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
        let values = range.lower.iter().chain(&range.upper).flat_map(|bound| &bound.values);
        // No run has so many steps that a small product of them wraps.
        let may_wrap = |(id, factor): &&(ParamId, i64)| {
            *id != ParamId::STEPS
                || factor.unsigned_abs() > LARGEST_CONSTANT / limits::STEPS.unsigned_abs()
        };
        let sizes: BTreeSet<ParamId> = values
            .flat_map(|value| value.terms.iter().filter(may_wrap).map(|(id, _)| *id))
            .collect();
        range.needing(&sizes.into_iter().filter_map(room).collect::<Vec<_>>())
    }

    fn range_of_call(
        &mut self,
        function: MathFunction,
        operands: &[Expr],
        element: Element,
    ) -> Range {
        match (function, operands) {
            (MathFunction::Max, [a, b]) => {
                let (a, b) = (self.cut(a), self.cut(b));
                let upper = either(&a.upper, &b.upper);
                Range::new([a.lower, b.lower].concat(), upper)
            }
            (MathFunction::Min, [a, b]) => {
                let (a, b) = (self.cut(a), self.cut(b));
                let lower = either(&a.lower, &b.lower);
                Range::new(lower, [a.upper, b.upper].concat())
            }
            (MathFunction::Abs, [a]) if element.is_unsigned() => self.range(a),
            (MathFunction::Abs, [a]) => {
                let a = self.cut(a);
                // The smallest integer has no absolute value.
                let least = ends(element).map(|(least, _)| least);
                let smallest = a.limits().is_some_and(|(lower, _)| Some(lower) == least);
                if !a.is_bounded() || smallest {
                    return Range::of_type(element);
                }
                let upper = either(&a.upper, &a.times(-1).upper);
                let zero = vec![Bound::one(Affine::number(0))];
                Range::new([zero, a.lower].concat(), upper)
            }
            _ => Range::of_type(element),
        }
    }

    /// `a % m`: nearer to 0 than `m`, with the sign of `a`, and no farther from 0 than `a`.
    fn remainder(&mut self, left: &Expr, right: &Expr, element: Element) -> Range {
        let (left, right) = (self.cut(left), self.cut(right));
        let Some(positive) = self.at_least(&right.lower, 1) else {
            return Range::of_type(element);
        };
        let largest = Range { lower: Vec::new(), upper: right.upper };
        let largest = largest.map(false, |value| value.shifted(-1));
        match self.not_negative(&left) {
            Some(needs) => {
                let zero = vec![Bound::one(Affine::number(0))];
                Range::new(zero, [largest.upper, left.upper].concat())
                    .needing(&[positive, needs].concat())
            }
            None => Range::new(largest.times(-1).lower, largest.upper).needing(&positive),
        }
    }

    /// `a / c` by a positive number, cut off towards 0: not farther from 0 than `a`.
    fn quotient_range(&mut self, left: &Expr, right: &Expr, element: Element) -> Range {
        let (left, right) = (self.cut(left), self.cut(right));
        let Some(divisor) = right.number().filter(|divisor| *divisor > 0) else {
            return Range::of_type(element);
        };
        let zero = Bound::one(Affine::number(0));
        let even = |value: &Affine| value.terms.iter().all(|(_, factor)| factor % divisor == 0);
        if let Some(needs) = self.not_negative(&left) {
            let quotient = |value: &Affine| {
                let terms = value.terms.iter().map(|(id, factor)| (*id, factor / divisor));
                Some(match even(value) {
                    true => Affine {
                        constant: value.constant.div_euclid(divisor),
                        terms: terms.collect(),
                    },
                    false => value.clone(),
                })
            };
            let exact = |bound: &&Bound| bound.values.iter().all(even);
            let lower = left.lower.iter().filter(exact).filter_map(|bound| bound.map(quotient));
            let upper = left.upper.iter().filter_map(|bound| bound.map(quotient)).collect();
            return Range::new(lower.chain([zero]).collect(), upper).needing(&needs);
        }
        let nearer = |bounds: &[Bound]| {
            let number = |bound: &Bound| bound.number().map(|number| number / divisor);
            let by = |bound: &Bound| match number(bound) {
                Some(number) => Bound { values: vec![Affine::number(number)], ..bound.clone() },
                None => bound.or(&zero),
            };
            bounds.iter().map(by).collect()
        };
        Range::new(nearer(&left.lower), nearer(&left.upper))
    }

    /// The conditions under which some lower bound is a number or more.
    fn at_least(&self, bounds: &[Bound], number: i64) -> Option<Vec<Affine>> {
        let ways = bounds.iter().filter_map(|bound| {
            let margins = bound.values.iter().map(|value| value.shifted(-number));
            self.open(&bound.needs, margins.collect::<Option<_>>()?)
        });
        self.easiest(ways.collect())
    }

    /// The conditions of a lower bound that is proved not to be negative.
    fn not_negative(&self, range: &Range) -> Option<Vec<Affine>> {
        let proved =
            |bound: &&Bound| bound.values.iter().all(|value| self.scope.facts.prove(value));
        range.lower.iter().filter(proved).map(|bound| bound.needs.clone()).min_by_key(Vec::len)
    }
}
