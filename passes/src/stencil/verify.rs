//! `stencil-verify`: what IRDL can't check of a stencil program (names, types, bounds, overlaps),
//! and of tile kernels, peer flags and the target where there are any.
//!
//! Needs: any module. Guarantees: the module is unchanged, and all later passes may rely on it.

use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::target::Target;
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::verify;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "stencil-verify",
    summary: "check names, types and bounds of a stencil program",
    options: &[],
    read: |_: &Options| Ok(Box::new(StencilVerify)),
};

/// The pass.
pub struct StencilVerify;

impl Pass for StencilVerify {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn run<'c>(&self, _: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        check(module)
    }
}

/// Runs all verifiers; the first complaint carries the others as notes.
pub fn check(module: &Module) -> Result<(), Error> {
    verify::all(module).map_err(|errors| {
        let mut errors = errors.into_iter();
        let first = errors
            .next()
            .unwrap_or_else(|| Error::internal("the verifier failed without a message"));
        errors.fold(first, |first, other| first.with_note(other.place, other.message))
    })?;
    Target::of(module).map(|_| ())
}
