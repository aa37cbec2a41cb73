//! The points of a box, numbered in row-major order, and what their values are combined to, for
//! several reductions at once.
//!
//! On a GPU a lane takes points at equal distances. It divides once to find its first point. The
//! coordinates of each next one are a sum of digits, with a carry from each dimension to the slower
//! one. On a processor one thread takes the points of all lanes, row by row ([`Points::each`]).

use super::block::{Lanes, Operator, only};
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::scope::Scope;
use melior::ir::Type;
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Piece;

/// Points that a lane takes before it combines their values: their loads are under way at once.
const AT_ONCE: i64 = 4;

/// The points of a box.
pub struct Points<'c, 'p> {
    scope: &'p Scope<'c, 'p>,
    /// The values at the points, one function for each reduction.
    pieces: &'p [Piece<'c>],
    /// The current buffers of fields.
    sources: &'p BTreeMap<&'c str, Val<'c>>,
    lower: Vec<Val<'c>>,
    /// Points along each dimension; none is negative.
    extents: Vec<Val<'c>>,
    /// All points.
    count: Val<'c>,
    /// Points from one point of a lane to the next.
    stride: i64,
    /// The same, as digits of the extents.
    digits: Vec<Val<'c>>,
}

impl<'c, 'p> Points<'c, 'p> {
    pub fn new(
        builder: &Builder<'c>,
        scope: &'p Scope<'c, 'p>,
        pieces: &'p [Piece<'c>],
        sources: &'p BTreeMap<&'c str, Val<'c>>,
        stride: i64,
    ) -> Result<Self, Error> {
        let piece = pieces.first().ok_or_else(|| Error::internal("no reduction over a box"))?;
        let lower = scope.bounds(builder, piece.lower)?;
        let upper = scope.bounds(builder, piece.upper)?;
        let (zero, mut count) = (builder.index(0)?, builder.index(1)?);
        let mut extents = Vec::new();
        for (lower, upper) in lower.iter().zip(upper) {
            let extent = builder.add_constant(builder.binary("arith.subi", upper, *lower)?, 1)?;
            let extent = builder.binary("arith.maxsi", extent, zero)?;
            count = builder.binary("arith.muli", count, extent)?;
            extents.push(extent);
        }
        let digits = digits(builder, builder.index(stride)?, &extents)?;
        Ok(Self { scope, pieces, sources, lower, extents, count, stride, digits })
    }

    /// How many blocks of so many points there are.
    pub fn blocks(&self, builder: &Builder<'c>, points: i64) -> Result<Val<'c>, Error> {
        let filled = builder.add_constant(self.count, points - 1)?;
        builder.binary("arith.divui", filled, builder.index(points)?)
    }

    /// The values of a lane, one for each reduction: it combines `each` of its points of a block
    /// that begins at point `first`. A block that the box fills has no conditions.
    pub fn combined(
        &self,
        builder: &Builder<'c>,
        reductions: &[Lanes<'c>],
        first: Val<'c>,
        each: i64,
    ) -> Result<Vec<Val<'c>>, Error> {
        let Some(lanes) = reductions.first() else { return Ok(Vec::new()) };
        let behind = builder.add_constant(first, each * self.stride)?;
        // Unsigned: a number behind the last point may leave the sign of 32 bits.
        let over = builder.compare(Compare::Below, self.count, behind)?;
        let own = builder.add(first, lanes.thread)?;
        let operators: Vec<Operator> = reductions.iter().map(|lanes| lanes.operator).collect();
        builder.choose(
            over,
            &elements(&operators),
            |builder| self.lane(builder, &operators, own, each, false),
            |builder| self.lane(builder, &operators, own, each, true),
        )
    }

    /// Runs code for each of `points` points from `first` on, `lanes` in a row: both are multiples
    /// of it. The code gets the lane of the point and the values there. Points of a row and of
    /// neighbouring lanes form a loop without conditions, which LLVM turns into vectors.
    pub fn each(
        &self,
        builder: &Builder<'c>,
        (first, points): (Val<'c>, i64),
        lanes: i64,
        mut code: impl FnMut(&Builder<'c>, Val<'c>, &[Val<'c>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (Some((extent, outer)), Some((lower, outer_lower))) =
            (self.extents.split_last(), self.lower.split_last())
        else {
            return Err(Error::internal("a box of no dimensions"));
        };
        let one = builder.index(1)?;
        let extent = builder.binary("arith.maxsi", *extent, one)?;
        let end = builder.add_constant(first, points)?;
        let end = builder.binary("arith.minui", end, self.count)?;
        builder.repeat((first, end, builder.index(lanes)?), |builder, turn| {
            let behind = builder.add_constant(turn, lanes)?;
            let behind = builder.binary("arith.minui", behind, end)?;
            let first_row = builder.binary("arith.divui", turn, extent)?;
            let last = builder.add_constant(behind, -1)?;
            let last_row = builder.binary("arith.divui", last, extent)?;
            let rows = (first_row, builder.add_constant(last_row, 1)?, one);
            builder.repeat(rows, |builder, row| {
                let start = builder.binary("arith.muli", row, extent)?;
                let next = builder.add(start, extent)?;
                let from = builder.binary("arith.maxui", turn, start)?;
                let to = builder.binary("arith.minui", behind, next)?;
                let place = if outer.is_empty() { vec![] } else { digits(builder, row, outer)? };
                let at = outer_lower.iter().zip(place);
                let outer: Vec<Val> = at
                    .map(|(lower, place)| builder.add(*lower, place))
                    .collect::<Result<_, _>>()?;
                builder.repeat((from, to, one), |builder, number| {
                    let along = builder.binary("arith.subi", number, start)?;
                    let point = [outer.as_slice(), &[builder.add(*lower, along)?]].concat();
                    let lane = builder.binary("arith.subi", number, turn)?;
                    code(builder, lane, &self.evaluate(builder, &point)?)
                })
            })
        })
    }

    fn lane(
        &self,
        builder: &Builder<'c>,
        operators: &[Operator<'c>],
        first: Val<'c>,
        each: i64,
        full: bool,
    ) -> Result<Vec<Val<'c>>, Error> {
        let count = operators.len();
        let mut carried = neutrals(builder, operators)?;
        carried.push(first);
        carried.extend(digits(builder, first, &self.extents)?);
        let bounds = (builder.index(0)?, builder.index(each / AT_ONCE)?, builder.index(1)?);
        let last = builder.carry(bounds, &carried, |builder, _, carried| {
            let (values, [number, place @ ..]) = carried.split_at(count) else {
                return Err(Error::internal("a point without a number"));
            };
            let (mut values, mut number, mut place) = (values.to_vec(), *number, place.to_vec());
            let mut found = Vec::new();
            for _ in 0..AT_ONCE {
                found.push(self.values(builder, operators, (number, &place), full)?);
                number = builder.add_constant(number, self.stride)?;
                place = self.next(builder, &place)?;
            }
            for point in found {
                for ((value, operator), one) in values.iter_mut().zip(operators).zip(point) {
                    *value = operator.combine(builder, *value, one)?;
                }
            }
            values.push(number);
            values.extend(place);
            Ok(values)
        })?;
        Ok(last.into_iter().take(count).collect())
    }

    /// The values at a point; behind the last point the neutral ones.
    fn values(
        &self,
        builder: &Builder<'c>,
        operators: &[Operator<'c>],
        (number, place): (Val<'c>, &[Val<'c>]),
        full: bool,
    ) -> Result<Vec<Val<'c>>, Error> {
        let evaluated = |builder: &Builder<'c>| {
            let at = self.lower.iter().zip(place);
            let point: Vec<Val> =
                at.map(|(lower, place)| builder.add(*lower, *place)).collect::<Result<_, _>>()?;
            self.evaluate(builder, &point)
        };
        if full {
            return evaluated(builder);
        }
        let there = builder.compare(Compare::Below, number, self.count)?;
        let nothing = |builder: &Builder<'c>| neutrals(builder, operators);
        builder.choose(there, &elements(operators), evaluated, nothing)
    }

    fn evaluate(&self, builder: &Builder<'c>, point: &[Val<'c>]) -> Result<Vec<Val<'c>>, Error> {
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            let cell = self.scope.cell(builder, field, point)?;
            let at = cell.iter().zip(distances);
            let at = at.map(|(index, distance)| distance.from(builder, *index));
            let at = at.collect::<Result<Vec<_>, _>>()?;
            let source = self.sources.get(field).copied();
            let none = || Error::internal(format!("no buffer of @{field} to read"));
            builder.load(source.ok_or_else(none)?, &at)
        };
        let at =
            At { point, step: 0, rules: Rules::All, fetch: &fetch, current: None, partial: None };
        let values =
            self.pieces.iter().map(|piece| only(&self.scope.evaluate(builder, piece, &at)?));
        values.collect()
    }

    /// The place of a lane's next point.
    fn next(&self, builder: &Builder<'c>, place: &[Val<'c>]) -> Result<Vec<Val<'c>>, Error> {
        let mut carry: Option<Val> = None;
        let mut next = Vec::new();
        let all = place.iter().zip(&self.digits).zip(&self.extents).enumerate();
        for (dimension, ((at, digit), extent)) in all.rev() {
            let mut sum = builder.add(*at, *digit)?;
            if let Some(carry) = carry {
                sum = builder.add(sum, carry)?;
            }
            // The slowest digit has no dimension to carry to: it leaves the box.
            if dimension > 0 {
                let over = builder.compare(Compare::Ge, sum, *extent)?;
                let less = builder.binary("arith.subi", sum, *extent)?;
                sum = builder.select(over, less, sum)?;
                carry = Some(builder.value(
                    "arith.index_castui",
                    &[over],
                    builder.index_type(),
                    &[],
                )?);
            }
            next.push(sum);
        }
        next.reverse();
        Ok(next)
    }
}

/// The types of some reductions' values.
fn elements<'c>(operators: &[Operator<'c>]) -> Vec<Type<'c>> {
    operators.iter().map(|operator| operator.element).collect()
}

/// The values that change no other.
fn neutrals<'c>(builder: &Builder<'c>, operators: &[Operator<'c>]) -> Result<Vec<Val<'c>>, Error> {
    operators.iter().map(|operator| operator.neutral(builder)).collect()
}

/// A number in digits, slowest first; the slowest digit has what is left. An extent of 0 has no
/// points, and counts as 1.
fn digits<'c>(
    builder: &Builder<'c>,
    number: Val<'c>,
    extents: &[Val<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    let (mut rest, mut found) = (number, Vec::new());
    for (dimension, extent) in extents.iter().enumerate().rev() {
        if dimension == 0 {
            found.push(rest);
            break;
        }
        let extent = builder.binary("arith.maxsi", *extent, builder.index(1)?)?;
        found.push(builder.binary("arith.remui", rest, extent)?);
        rest = builder.binary("arith.divui", rest, extent)?;
    }
    found.reverse();
    Ok(found)
}
