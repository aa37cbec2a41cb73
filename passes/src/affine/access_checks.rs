//! Conditions on the sizes under which no access of a nest leaves its array.
//!
//! An index leaves its dimension where the loops around it run and the index is at most -1, or at
//! least the extent. Fourier-Motzkin elimination of the counters leaves the conditions on the sizes
//! under which that happens. Where no sizes fulfil them, the access is proved; else a run has to
//! find one of them false. Conditions are exact over the rationals; they may
//! refuse sizes for which only a fractional counter leaves the array.

use super::arguments::{Declared, Extent, Kind};
use super::nest::{Access, Nest};
use melior::ir::operation::OperationLike;
use std::collections::BTreeSet;
use stencil_dialects::affine::Linear;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::inequalities::{infeasible, projected};
use stencil_dialects::mlir;

/// The largest magnitude of a nest's sizes, steps, and constants and factors of bounds.
pub const FARTHEST: i64 = 1 << 48;

/// A condition on the sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The form that must be at least 0.
    pub value: Linear,
    /// The check is void if one of these is negative.
    pub unless_negative: Vec<Linear>,
    /// The text of the error.
    pub message: String,
}

/// The conditions of all accesses, each once. `sizes` are those of the nest over the params.
///
/// # Errors
/// An access that leaves its array for all sizes, and one with too many bounds around it.
pub fn of(
    nest: &Nest,
    accesses: &[Access],
    declared: &Declared,
    sizes: &[Linear],
) -> Result<Vec<Check>, Error> {
    let form = Form { nest, declared, sizes };
    let mut checks: Vec<Check> = extents(declared).map(|param| form.not_negative(param)).collect();
    for param in 0..declared.params.len() {
        checks.extend([1, -1].into_iter().filter_map(|sign| form.near(param, sign)));
    }
    for access in accesses {
        for (dimension, index) in access.reference.indices.iter().enumerate() {
            for check in form.of_index(access, dimension, index)?.into_iter().flatten() {
                let same = |other: &Check| {
                    (&other.value, &other.unless_negative) == (&check.value, &check.unless_negative)
                };
                if !checks.iter().any(same) {
                    checks.push(check);
                }
            }
        }
    }
    Ok(checks)
}

/// The sizes that are extents of arrays, by their places.
fn extents(declared: &Declared) -> impl Iterator<Item = usize> {
    let arrays = declared.arguments.iter().filter_map(|argument| match &argument.kind {
        Kind::Array { extents, .. } => Some(extents),
        _ => None,
    });
    let params = arrays.flatten().filter_map(|extent| match extent {
        Extent::Param(place) => Some(*place),
        Extent::Static(_) | Extent::Form(_) => None,
    });
    params.collect::<BTreeSet<_>>().into_iter()
}

/// Linear forms over the params and then the counters.
pub(super) struct Form<'n> {
    pub nest: &'n Nest,
    pub declared: &'n Declared<'n>,
    pub sizes: &'n [Linear],
}

impl Form<'_> {
    fn not_negative(&self, param: usize) -> Check {
        let name = self.declared.params.get(param).map_or("", String::as_str);
        Check {
            value: self.declared.param(param),
            unless_negative: Vec::new(),
            message: format!("the size `{name}` must not be negative"),
        }
    }

    /// That a size, or its negative, is at most [`FARTHEST`]: counters then stay within 64 bits.
    fn near(&self, param: usize, sign: i64) -> Option<Check> {
        let name = self.declared.params.get(param).map_or("", String::as_str);
        let mut value = self.declared.param(param).times(-sign)?;
        value.constant = FARTHEST;
        let message = format!("the size `{name}` must lie within 2^48 of 0");
        Some(Check { value, unless_negative: Vec::new(), message })
    }

    /// A form of the nest's unknowns over params and counters.
    pub(super) fn of(&self, nested: &Linear) -> Option<Linear> {
        let counters = nested.coefficients.get(self.nest.sizes..).unwrap_or_default();
        let params = over_params(nested, self.declared, self.sizes)?;
        let coefficients = [params.coefficients.as_slice(), counters].concat();
        Some(Linear { constant: params.constant, coefficients })
    }

    /// The same params, and no counters.
    fn without_counters(&self, params: Linear) -> Linear {
        let mut coefficients = params.coefficients;
        coefficients.resize(coefficients.len() + self.nest.loops.len(), 0);
        Linear { constant: params.constant, coefficients }
    }

    fn of_index(
        &self,
        access: &Access,
        dimension: usize,
        index: &Linear,
    ) -> Result<[Option<Check>; 2], Error> {
        let place = mlir::place(access.op.location());
        let array = mlir::operands(access.op).into_iter().find_map(|v| self.declared.array(v));
        let Some((name, extents)) = array else {
            return Err(Error::new(
                place,
                "the memref is neither an argument of the function nor allocated outside of all \
                 loops; make it one of these",
            ));
        };
        let limits = || {
            let cells = self.declared.cells(extents.get(dimension)?);
            let cells = self.without_counters(cells);
            let index = self.of(index)?;
            let minus_one = self.without_counters(self.declared.number(-1));
            // At most -1, or at least the extent.
            let sides = [minus_one.minus(&index)?, index.minus(&cells)?];
            let mut known: Vec<Linear> = self.extents_at_least_zero();
            for at in access.loops.iter().filter_map(|at| self.nest.loops.get(*at)) {
                for bound in &at.bounds {
                    known.push(self.of(bound)?);
                }
            }
            Some((known, sides))
        };
        let far = || {
            let message = "the bounds of this access leave 64 bits; use smaller constants";
            Error::declined(Decline::Nest, message).at(place.clone())
        };
        let (known, sides) = limits().ok_or_else(far)?;
        let always = || {
            let message = format!("`{name}` is accessed outside of its dimension {dimension}");
            Error::new(place.clone(), format!("{message}; change the index or the bounds"))
        };
        let message = format!(
            "an access leaves dimension {dimension} of `{name}` ({place}); choose other sizes"
        );
        let [below, above] = sides;
        Ok([
            self.never((&known, below), message.clone(), &far, &always)?,
            self.never((&known, above), message, &far, &always)?,
        ])
    }

    /// The condition under which no counters fulfil what is known together with `side >= 0`; none
    /// where no sizes let them. The errors are of forms beyond 64 bits, and of counters that always
    /// do.
    pub(super) fn never(
        &self,
        (known, side): (&[Linear], Linear),
        message: String,
        far: &dyn Fn() -> Error,
        always: &dyn Fn() -> Error,
    ) -> Result<Option<Check>, Error> {
        let rows: Vec<Linear> = known.iter().cloned().chain([side]).collect();
        if infeasible(&rows) {
            return Ok(None);
        }
        let rows = projected(&rows, self.declared.params.len()).ok_or_else(far)?;
        // Another order of elimination may find the contradiction that `infeasible` missed.
        if rows.iter().any(|row| row.is_constant() && row.constant < 0) {
            return Ok(None);
        }
        let own = self.extents_at_least_zero();
        let own = |row: &Linear| {
            own.iter().any(|known| {
                known.coefficients.get(..row.coefficients.len())
                    == Some(row.coefficients.as_slice())
                    && row.constant >= known.constant
            })
        };
        let mut rows: Vec<Linear> =
            rows.into_iter().filter(|row| !row.is_constant() && !own(row)).collect();
        let row = rows.pop().ok_or_else(always)?;
        // One of the conditions has to be false.
        let value = row.times(-1).and_then(|row| row.minus(&self.declared.number(1)));
        let value = value.ok_or_else(far)?;
        Ok(Some(Check { value, unless_negative: rows, message }))
    }

    pub(super) fn extents_at_least_zero(&self) -> Vec<Linear> {
        extents(self.declared)
            .map(|param| self.without_counters(self.declared.param(param)))
            .collect()
    }
}

/// The part of a form of a nest's unknowns that has no counters, over the params.
pub fn over_params(nested: &Linear, declared: &Declared, sizes: &[Linear]) -> Option<Linear> {
    let start = declared.number(nested.constant);
    sizes
        .iter()
        .zip(&nested.coefficients)
        .try_fold(start, |sum, (size, coefficient)| sum.plus(&size.times(*coefficient)?))
}
