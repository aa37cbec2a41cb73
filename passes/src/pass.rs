//! What a pass is: a name, what its options are, and a function on the module.

use crate::options::Options;
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;

/// A pass of this project. It runs on the whole module, like upstream's module passes.
#[derive(Clone, Copy)]
pub struct Pass {
    /// The name in pipelines, which is that of the file and of the test.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Names of its options, with what each means.
    pub options: &'static [(&'static str, &'static str)],
    /// Changes the module. The runner verifies before and after.
    pub run: for<'c> fn(&'c Context, &mut Module<'c>, &Options) -> Result<(), Error>,
}
