//! `annotate-loops`: hands the annotations of loops on to LLVM.
//!
//! Needs: the LLVM dialect, with branches that carry `llvm.loop_annotation` from an `scf.for`.
//! Guarantees: the same branches with the property `loop_annotation`. The translation to LLVM IR
//! makes metadata of the property, and drops other attributes.
//!
//! ```text
//! llvm.br ^bb1 {llvm.loop_annotation = #a}
//! ```
//! becomes
//! ```text
//! llvm.br ^bb1 {loop_annotation = #a}
//! ```

use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "annotate-loops",
    summary: "hand the annotations of loops on to LLVM",
    options: &[],
    read: |_: &Options| Ok(Box::new(AnnotateLoops)),
};

/// The pass.
pub struct AnnotateLoops;

/// The attribute that `scf.for` hands to its branches.
const ATTRIBUTE: &str = "llvm.loop_annotation";

impl Pass for AnnotateLoops {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn run<'c>(&self, _: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let all = mlir::operations(mlir::body(module)).into_iter().flat_map(mlir::walk);
        for branch in all.filter(|op| mlir::name(*op) == "llvm.br") {
            if let Ok(annotation) = branch.attribute(ATTRIBUTE) {
                mlir::set_attribute(branch, "loop_annotation", annotation);
                mlir::remove_attribute(branch, ATTRIBUTE);
            }
        }
        Ok(())
    }
}
