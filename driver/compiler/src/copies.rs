//! The arrays that a run of the reference changes.

use crate::failure::Failure;
use std::collections::BTreeMap;
use stencil_runtime::array::{Array, ArrayError};
use stencil_runtime::bind::Bound;
use stencil_runtime::memory;
use stencil_runtime::plan::{Plan, Role};

/// Copies of arrays, or an error where memory runs out.
pub fn copies(of: &BTreeMap<String, Array>) -> Result<BTreeMap<String, Array>, Failure> {
    let copy = |(name, array): (&String, &Array)| Ok((name.clone(), array.copy()?));
    of.iter().map(copy).collect::<Result<_, ArrayError>>().map_err(Failure::memory)
}

/// Checks that there is memory for a copy of each input, for temp fields, and for the next values
/// of both.
pub fn require(plan: &Plan, bound: &Bound) -> Result<(), Failure> {
    let bytes = |role: Role, copies: u64| {
        bound.field_bytes(plan, |field| field.role == role).saturating_mul(copies)
    };
    let all = [bytes(Role::State, 2), bytes(Role::Temp, 2), bytes(Role::Const, 1)];
    memory::require(all.into_iter().fold(0, u64::saturating_add)).map_err(Failure::memory)
}
