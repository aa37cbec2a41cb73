//! Verification of whole modules, beyond what IRDL can express; each error has a place.
//!
//! A verifier reports every fault of its level, not only the first.

mod attributes;
mod bounds;
mod launch;
pub mod peer;
pub mod point_function;
mod record;
mod reduce;
mod rows;
mod size;
pub mod stencil;
mod tile_values;
pub mod tiled;
mod wave;

use crate::affine::wrong_divisor;
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::stencil::Target;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Module};

/// Runs every verifier that the module's contents call for.
pub fn all(module: &Module) -> Result<(), Vec<Error>> {
    let mut errors = Vec::new();
    attributes::verify(module, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    errors.extend(Target::get(module).err());
    if crate::stencil::is_program(module) {
        stencil::verify(module, &mut errors);
        if errors.is_empty() {
            tiled::verify(module, &mut errors);
        }
        if errors.is_empty() {
            errors.extend(stencil::computes(module).err());
        }
    }
    errors.extend(stencil::outside_of_programs(module).err());
    peer::verify(module, &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks that no result of an operation's map divides by a constant that is not positive.
fn divides(op: Op, map: AffineMap, name: &str) -> Result<(), Error> {
    let results = (0..map.result_count()).filter_map(|index| map.result(index).ok());
    match results.filter_map(wrong_divisor).next() {
        None => Ok(()),
        Some(divisor) => Err(at(
            op,
            format!("{name} divides by {divisor}; a divisor must be positive, so change it"),
        )),
    }
}

/// An error at an operation's place.
fn at(op: Op, message: impl Into<String>) -> Error {
    Error::new(mlir::place(op.location()), message)
}
