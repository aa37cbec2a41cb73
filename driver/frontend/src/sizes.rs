//! What follows from values of the run-time sizes: bounds, shapes, and whether the checks hold.

use crate::affine::size_name;
use crate::program::{Affine, FieldId, Param, ParamId, Program, Region};
use crate::source::Span;
use cranelift_entity::PrimaryMap;
use std::collections::BTreeMap;

/// A value for every run-time size.
pub type Sizes = BTreeMap<ParamId, i64>;

/// Why sizes do not fit a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A size has no value.
    #[error("the size `{name}` is not known; give it with -D {name}=...")]
    Unknown {
        /// The size.
        name: String,
    },
    /// A number does not fit its type.
    #[error("size overflow: {what} does not fit 64 bits")]
    Overflow {
        /// What was computed.
        what: String,
    },
    /// A field would have a shape that can't be.
    #[error("{message}")]
    Shape {
        /// A whole sentence naming the field.
        message: String,
    },
    /// A condition of the program fails.
    #[error("{message}")]
    Check {
        /// The condition's sentence, with the sizes.
        message: String,
        /// Where the source asks for it.
        span: Span,
    },
}

/// The value of an affine expression, in the order of a launch plan: compiled programs refuse the
/// same sizes.
///
/// # Errors
/// A size without a value, and overflow of i64, also of a part.
pub fn evaluate(
    affine: &Affine,
    params: &PrimaryMap<ParamId, Param>,
    sizes: &Sizes,
) -> Result<i64, SizeError> {
    let overflow = || SizeError::Overflow { what: format!("`{}`", affine.show(params)) };
    let mut sum = 0_i64;
    for (id, coefficient) in &affine.terms {
        let value = sizes
            .get(id)
            .ok_or_else(|| SizeError::Unknown { name: size_name(*id, params).to_owned() })?;
        let product = coefficient.checked_mul(*value).ok_or_else(overflow)?;
        sum = sum.checked_add(product).ok_or_else(overflow)?;
    }
    sum.checked_add(affine.constant).ok_or_else(overflow)
}

/// First and last point of a region in every dimension, both inclusive.
///
/// # Errors
/// As [`evaluate`].
pub fn bounds(
    program: &Program,
    region: &Region,
    sizes: &Sizes,
) -> Result<Vec<(i64, i64)>, SizeError> {
    let value = |affine: &Affine| evaluate(affine, &program.params, sizes);
    let pairs = region.lower.iter().zip(&region.upper);
    pairs.map(|(lower, upper)| Ok((value(lower)?, value(upper)?))).collect()
}

/// Cells per dimension of every field, slowest dimension first.
///
/// # Errors
/// As [`evaluate`]; a negative extent; fields of more than 2^63 bytes.
pub fn extents(
    program: &Program,
    sizes: &Sizes,
) -> Result<PrimaryMap<FieldId, Vec<usize>>, SizeError> {
    let mut result = PrimaryMap::new();
    for field in program.fields.values() {
        let overflow =
            || SizeError::Overflow { what: format!("the size of the field `{}`", field.name) };
        let region = program.grids.get(field.grid).map(|grid| &grid.region);
        let mut shape = Vec::new();
        let mut bytes = 8i128;
        for (lower, upper) in
            region.map(|region| bounds(program, region, sizes)).transpose()?.unwrap_or_default()
        {
            let extent = i128::from(upper) - i128::from(lower) + 1;
            bytes = bytes.checked_mul(extent.max(1)).ok_or_else(overflow)?;
            if extent < 0 {
                let message =
                    format!("the field `{}` would have {extent} cells in a dimension", field.name);
                return Err(SizeError::Shape { message });
            }
            shape.push(usize::try_from(extent).map_err(|_| overflow())?);
        }
        if bytes > i128::from(i64::MAX) {
            return Err(overflow());
        }
        result.push(shape);
    }
    Ok(result)
}

/// Whether the sizes and the steps of a run satisfy all of `Program::checks`.
///
/// # Errors
/// The first condition that fails; as [`evaluate`].
pub fn check(program: &Program, sizes: &Sizes, steps: u64) -> Result<(), SizeError> {
    let number = i64::try_from(steps);
    let number = number.map_err(|_| SizeError::Overflow { what: format!("{steps} steps") })?;
    let mut all = sizes.clone();
    all.insert(ParamId::STEPS, number);
    for check in &program.checks {
        let counts = check.value.terms.iter().any(|(id, _)| *id == ParamId::STEPS);
        let sizes = if counts { &all } else { sizes };
        let empty = match &check.unless_empty {
            Some(region) => {
                bounds(program, region, sizes)?.iter().any(|(lower, upper)| lower > upper)
            }
            None => false,
        };
        let void = empty || counts && steps == 0;
        if !void && evaluate(&check.value, &program.params, sizes)? < 0 {
            let message = format!("{}; here {}", check.message, show(program, sizes));
            return Err(SizeError::Check { message, span: check.span });
        }
    }
    Ok(())
}

/// `N = 344, M = 403`
fn show(program: &Program, sizes: &Sizes) -> String {
    let name = |id: &ParamId| size_name(*id, &program.params);
    let pairs: Vec<_> = sizes.iter().map(|(id, value)| format!("{} = {value}", name(id))).collect();
    pairs.join(", ")
}
