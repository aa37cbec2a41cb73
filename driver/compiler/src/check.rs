//! The comparison of a result with the reference's.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use stencil_passes::target::Arithmetic;
use stencil_runtime::array::{Array, Element};
use stencil_runtime::compare::Comparison;

/// A field that agrees with the reference's.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The field.
    pub name: String,
    /// How its cells compare.
    pub comparison: Comparison,
}

impl Display for Checked {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        let Self { name, comparison } = self;
        let error = comparison.error();
        write!(formatter, "check {name}: {comparison}; error {error:.2e} of the largest value")
    }
}

/// Compares a result with the reference's: bit for bit, or where the arithmetic allows another
/// rounding within a tolerance relative to the largest value, which `tolerance` replaces.
///
/// # Errors
/// The first field that differs by more, or is missing.
pub fn compare(
    reference: &BTreeMap<String, Array>,
    found: &BTreeMap<String, Array>,
    arithmetic: Arithmetic,
    tolerance: Option<f64>,
) -> Result<Vec<Checked>, Failure> {
    let mut all = Vec::new();
    for (name, expected) in reference {
        let Some(found) = found.get(name) else {
            return Err(Failure::user(format!("there is no output `{name}`")));
        };
        let comparison =
            stencil_runtime::compare::compare(found, expected).map_err(Failure::user)?;
        let rounded = match expected.element() {
            Element::Bf16 => 5e-2,
            Element::F16 => 1e-2,
            Element::F32 => 1e-4,
            Element::F64 => 1e-10,
            _ => 0.0,
        };
        let is_exact = !arithmetic.contract && !arithmetic.fast_math;
        let limit = tolerance.unwrap_or(if is_exact { 0.0 } else { rounded });
        // The error of a NaN must not pass.
        if comparison.error() <= limit {
            all.push(Checked { name: name.clone(), comparison });
        } else {
            return Err(Failure::user(format!(
                "{name} differs from the reference by more than {limit:e}: {comparison}"
            )));
        }
    }
    Ok(all)
}
