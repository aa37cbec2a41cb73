//! The dialects of stencilc: `stencil` (programs over grids), `tiled` (overlapped tiles and the
//! host schedule) and `peer` (flags between blocks of one launch).
//!
//! Operations are declared in IRDL text (`irdl/*.irdl.mlir`) and loaded at run time; one file of
//! typed views a dialect reads and builds them, so that no pass spells a name as a string.

pub mod affine;
pub mod attribute;
pub mod builder;
pub mod cover;
pub mod decline;
pub mod error;
pub mod fast_math;
pub mod inequalities;
pub mod limits;
pub mod mlir;
pub mod peer;
pub mod stencil;
pub mod tiled;
pub mod verify;

use error::Error;
use melior::Context;

/// An operation as a table of its dialect's typed views lists it; a test compares the tables with
/// IRDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its whole name, such as `stencil.grid`.
    pub name: &'static str,
    /// Names of its operands; one of them may stand for any number of values.
    pub operands: &'static [&'static str],
    /// Names of its results; one of them may stand for any number of values.
    pub results: &'static [&'static str],
    /// Names of its attributes.
    pub attributes: &'static [&'static str],
    /// Names of the attributes that it may have beside these, which IRDL can't declare.
    pub optional: &'static [&'static str],
}

/// A context with all upstream dialects and ours.
pub fn context() -> Result<Context, Error> {
    let context = mlir::new_context();
    load(&context)?;
    Ok(context)
}

/// Loads our dialects into a context that somebody else made; it must have upstream's `irdl`
/// dialect.
pub fn load(context: &Context) -> Result<(), Error> {
    IRDL.into_iter().try_for_each(|(name, text)| mlir::load_irdl(context, name, text))
}

/// File names and texts of the IRDL declarations.
pub const IRDL: [(&str, &str); 3] = [
    ("stencil.irdl.mlir", include_str!("../irdl/stencil.irdl.mlir")),
    ("tiled.irdl.mlir", include_str!("../irdl/tiled.irdl.mlir")),
    ("peer.irdl.mlir", include_str!("../irdl/peer.irdl.mlir")),
];
