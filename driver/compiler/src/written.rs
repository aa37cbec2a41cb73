//! The kind of a source. It decides which passes run, and whose fault a failed run is.

use crate::failure::Failure;
use crate::stages::is_mlir;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::{mlir, tiled};
use stencil_frontend::source::Source;
use stencil_passes::affine::lower_affine_nest;

/// The kind of a source: how much of the code its author has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// A program, whose functions the compiler makes.
    Program,
    /// Point functions in MLIR: a module, or those that take the place of a program's.
    Functions,
    /// A function of affine loops.
    Nest,
    /// Kernels, which no pass has made.
    Kernels,
}

impl Written {
    /// The kind of a source, from the module that it was read as. Functions in MLIR may have
    /// `replaced` its own.
    ///
    /// # Errors
    /// Several functions of affine loops.
    pub(crate) fn of(module: &Module, source: &Source, replaced: bool) -> Result<Self, Error> {
        if lower_affine_nest::function(module)?.is_some() {
            return Ok(Self::Nest);
        }
        if !is_mlir(source) {
            return Ok(if replaced { Self::Functions } else { Self::Program });
        }
        let mut all = mlir::walk(mlir::module_op(module)).into_iter();
        Ok(if all.any(tiled::is_launched) { Self::Kernels } else { Self::Functions })
    }

    /// Refuses to lower kernels, which need no lowering.
    ///
    /// # Errors
    /// When the source holds kernels.
    pub(crate) fn refuse_kernels(self, source: &Source) -> Result<(), Failure> {
        if self != Self::Kernels {
            return Ok(());
        }
        Err(Failure::user(format!(
            "{} holds kernels already; take them as they are with the option \
             passes='builtin.module()', or name passes that change them",
            source.name
        )))
    }
}
