//! Conditions on the sizes under which every number that a kernel of a nest computes fits 64 bits.
//!
//! Most bounds fit for all sizes, because a size lies within 2^48 of 0 and numbers in bounds are
//! small. A bound that may leave 64 bits, such as `s * 1048576`, gets two checks: counters are
//! eliminated, and the rest must lie within 2^61 of 0. An index needs none: in a run it lies in its
//! array ([`access_checks`](super::access_checks)).
//!
//! Declines, with a place: an `affine.apply`, `affine.min` or `affine.max` that may leave 64 bits.

use super::access_checks::{Check, FARTHEST, Form, over_params};
use super::launches::Function;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap};
use std::collections::BTreeMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Op};

/// The largest magnitude of a bound. Sums of two bounds and a step stay within 64 bits.
const FAR: i64 = 1 << 61;

/// The conditions of all bounds.
///
/// # Errors
/// What the head of this file lists, and bounds that leave 64 bits for all sizes.
pub fn of(function: &Function) -> Result<Vec<Check>, Error> {
    let nest = function.nest;
    let mut checks = Vec::new();
    // The largest magnitude of each counter.
    let mut reach: Vec<i128> = Vec::new();
    for (at, nested) in nest.loops.iter().enumerate() {
        let own = nest.sizes + at;
        // A counter lies above all its lower bounds and below all its upper ones.
        let mut sides = [i128::MAX; 2];
        for bound in &nested.bounds {
            let side = usize::from(bound.coefficients.get(own) == Some(&-1));
            let mut bound = bound.clone();
            bound.coefficients.iter_mut().skip(own).take(1).for_each(|own| *own = 0);
            let mut size = magnitude(function, &bound, &reach).ok_or_else(|| far(function, at))?;
            if size > i128::from(FAR) {
                checks.extend(of_bound(function, at, &bound)?);
                size = i128::from(FAR);
            }
            for slot in sides.iter_mut().skip(side).take(1) {
                *slot = size.min(*slot);
            }
        }
        let [lower, upper] = sides;
        reach.push(lower.max(upper).min(i128::from(FAR)));
    }
    values(function, &reach)?;
    Ok(checks)
}

fn far(function: &Function, at: usize) -> Error {
    let message = "a bound of this loop leaves 64 bits; use smaller constants";
    Error::declined(Decline::Nest, message).at(place(function, at))
}

/// Where a loop stands.
fn place(function: &Function, at: usize) -> stencil_dialects::error::Place {
    let counter = function.text.counters.get(at);
    let has_it = |op: &Op| {
        let counters = mlir::entry(*op).map(mlir::arguments).unwrap_or_default();
        counter.is_some_and(|counter| counters.contains(counter))
    };
    let found = mlir::walk(function.op).into_iter().find(has_it).unwrap_or(function.op);
    mlir::place(found.location())
}

/// The largest magnitude of a form, given that of each counter.
fn magnitude(function: &Function, form: &Linear, reach: &[i128]) -> Option<i128> {
    let Function { nest, declared, sizes, .. } = function;
    let params = over_params(form, declared, sizes)?;
    let factor = |factor: &i64| i128::from(factor.unsigned_abs());
    let of_sizes = params.coefficients.iter().map(|of| factor(of) * i128::from(FARTHEST));
    let counters = form.coefficients.iter().skip(nest.sizes).zip(reach);
    let of_counters = counters.map(|(of, reach)| factor(of) * reach);
    Some(factor(&params.constant) + of_sizes.chain(of_counters).sum::<i128>())
}

/// The conditions under which a bound of a loop lies within [`FAR`] of 0.
fn of_bound(function: &Function, at: usize, bound: &Linear) -> Result<Vec<Check>, Error> {
    let Function { nest, declared, sizes, .. } = *function;
    let form = Form { nest, declared, sizes };
    let far = || far(function, at);
    // The loops whose counters the bound has, and those that their bounds have.
    let mut known = form.extents_at_least_zero();
    let mut needed = bound.coefficients.clone();
    for (outer, nested) in nest.loops.iter().enumerate().take(at).rev() {
        if needed.get(nest.sizes + outer).is_none_or(|factor| *factor == 0) {
            continue;
        }
        for own in &nested.bounds {
            known.push(form.of(own).ok_or_else(far)?);
            needed.iter_mut().zip(&own.coefficients).for_each(|(all, own)| *all |= own);
        }
    }
    let place = place(function, at);
    let message =
        format!("a bound of a loop must lie within 2^61 of 0 ({place}); choose other sizes");
    let mut checks = Vec::new();
    for sign in [1, -1] {
        let side = form.of(bound).and_then(|bound| bound.times(sign));
        let side = side
            .and_then(|side| Some(Linear { constant: side.constant.checked_sub(FAR)?, ..side }));
        let side = side.ok_or_else(far)?;
        checks.extend(form.never((&known, side), message.clone(), &far, &far)?);
    }
    Ok(checks)
}

/// Refuses values that may leave 64 bits.
fn values(function: &Function, reach: &[i128]) -> Result<(), Error> {
    let Function { text, declared, sizes, .. } = *function;
    let mut known: BTreeMap<usize, i128> = BTreeMap::new();
    known
        .extend(text.counters.iter().map(|counter| mlir::key(*counter)).zip(reach.iter().copied()));
    for (value, size) in text.sizes.iter().zip(sizes) {
        let factors = size.coefficients.iter().map(|of| i128::from(of.unsigned_abs()));
        let of_sizes = factors.sum::<i128>() * i128::from(FARTHEST);
        let size = i128::from(size.constant.unsigned_abs()) + of_sizes;
        if declared.size(function.op, *value).is_some() {
            known.insert(mlir::key(*value), size);
        }
    }
    for op in mlir::walk(function.op) {
        let results = mlir::results(op).into_iter().map(mlir::key);
        match mlir::name(op) {
            "affine.apply" | "affine.min" | "affine.max" => {
                let map = attribute::read(op, "map", attribute::as_map)?;
                let operands = mlir::operands(op);
                let inputs: Vec<Option<i128>> =
                    operands.iter().map(|value| known.get(&mlir::key(*value)).copied()).collect();
                let most = of_map(map, &inputs).ok_or_else(|| {
                    let message = "the value may leave 64 bits; use smaller factors and bounds";
                    Error::declined(Decline::Nest, message).at(mlir::place(op.location()))
                })?;
                known.extend(results.map(|result| (result, most)));
            }
            "arith.constant" => {
                let value = mlir::attribute(op, "value").and_then(attribute::as_integer);
                let value = value.map(|value| i128::from(value.unsigned_abs()));
                known.extend(results.zip(value));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The largest magnitude of a map's results; none where it or a part may leave 64 bits.
fn of_map(map: AffineMap, inputs: &[Option<i128>]) -> Option<i128> {
    let dims = map.dim_count();
    let result = |place| of_expression(map.result(place).ok()?, inputs, dims);
    (0..map.result_count()).map(result).try_fold(0, |most: i128, size| Some(most.max(size?)))
}

fn of_expression(of: AffineExpr, inputs: &[Option<i128>], dims: usize) -> Option<i128> {
    // An operand that nothing is known of may be any number.
    let input = |place: usize| inputs.get(place).map(|size| size.unwrap_or(i128::from(i64::MAX)));
    if of.is_constant() {
        return Some(i128::from(of.constant_value().unsigned_abs()));
    }
    if of.is_dim() {
        return input(of.dim_position());
    }
    if of.is_symbol() {
        return input(dims + of.symbol_position());
    }
    let (left, right) =
        (of_expression(of.lhs(), inputs, dims)?, of_expression(of.rhs(), inputs, dims)?);
    let all = match () {
        () if of.is_add() => left.checked_add(right)?,
        () if of.is_mul() => left.checked_mul(right)?,
        // Rounding up computes a sum with the divisor.
        () if of.is_ceil_div() => left.checked_add(right)?,
        () if of.is_floor_div() => left,
        () => right,
    };
    (all <= i128::from(i64::MAX)).then_some(all)
}
