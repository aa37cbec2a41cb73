//! The values of scalars in a run.

use super::OracleError;
use crate::program::{Program, Scalar};
use std::collections::BTreeMap;
use stencil_runtime::number::{Number, Numeral};

/// The value of each scalar, in order: the one given, or its default.
///
/// # Errors
/// A scalar that is unknown, has no value, or a value that its type can't hold.
pub fn values(
    program: &Program,
    given: &BTreeMap<String, Numeral>,
) -> Result<Vec<Number>, OracleError> {
    let unknown =
        given.keys().find(|name| program.scalars.values().all(|scalar| scalar.name != **name));
    if let Some(name) = unknown {
        return Err(OracleError::UnknownScalar { name: name.clone() });
    }
    let value = |scalar: &Scalar| {
        let value = given.get(&scalar.name).or(scalar.default.as_ref());
        let value =
            value.ok_or_else(|| OracleError::MissingScalar { name: scalar.name.clone() })?;
        value.number(scalar.element).ok_or_else(|| OracleError::Scalar {
            name: scalar.name.clone(),
            element: scalar.element,
            value: value.clone(),
        })
    };
    program.scalars.values().map(value).collect()
}
