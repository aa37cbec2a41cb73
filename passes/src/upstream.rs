//! Parts of upstream that do harm to modules of this compiler, and are refused.

use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;

/// Passes, and what each does.
pub const PASSES: [(&str, &str); 4] = [
    ("control-flow-sink", "it moves shuffles into branches, which not all lanes of a warp run"),
    ("remove-dead-values", "it ends the process on some modules"),
    ("transform-preload-library", "it reads scripts that nobody looks at before they run"),
    ("view-op-graph", "it takes minutes for a kernel"),
];

/// Operations of the transform dialect, and what each does.
const TRANSFORMS: [(&str, &str); 1] =
    [("transform.apply_patterns.gpu.eliminate_barriers", "it ends the process on some kernels")];

/// Refuses a pass that does harm.
pub fn pass(name: &str) -> Result<(), Error> {
    let found = PASSES.iter().find(|(harmful, _)| *harmful == name);
    found.map_or(Ok(()), |(_, harm)| {
        Err(Error::user(format!("the pass {name} can't be used: {harm}; leave it out")))
    })
}

/// Refuses a module with a transform that does harm, before a step that runs transforms.
pub fn transforms(step: &str, module: &Module) -> Result<(), Error> {
    if !step.contains("transform-") {
        return Ok(());
    }
    for op in mlir::walk(mlir::module_op(module)) {
        let name = mlir::name(op);
        if let Some((_, harm)) = TRANSFORMS.iter().find(|(harmful, _)| *harmful == name) {
            let message = format!("the transform {name} can't be used: {harm}; leave it out");
            return Err(Error::new(mlir::place(op.location()), message));
        }
    }
    Ok(())
}
