//! Parts of upstream that do harm to modules of this compiler, and are refused; and what a tool
//! says where another one ends the process.

use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// The text of the step of upstream's that runs, as far as there is room, ended by a zero: it can
/// be read in the handler of a signal.
static RUNNING: [AtomicU8; 128] = [const { AtomicU8::new(0) }; 128];

/// Runs a step of upstream's under its text.
pub(crate) fn run<T>(step: &str, work: impl FnOnce() -> T) -> T {
    let set = |text: &str| {
        let bytes = text.bytes().take(RUNNING.len() - 1).chain(std::iter::repeat(0));
        RUNNING.iter().zip(bytes).for_each(|(slot, byte)| slot.store(byte, Ordering::Release));
    };
    set(step);
    let result = work();
    set("");
    result
}

/// What to say of a crash in the step that runs; the number of bytes is none where none runs.
pub fn crash_message<const MOST: usize>(message: &mut [u8; MOST]) -> usize {
    const BEFORE: &[u8] = b"error: upstream's pass ";
    const AFTER: &[u8] = b" ends the process on this module; leave it out\n";
    let step = || RUNNING.iter().map(|slot| slot.load(Ordering::Acquire));
    let step = || step().take_while(|byte| *byte != 0);
    if step().next().is_none() {
        return 0;
    }
    let text = BEFORE.iter().copied().chain(step()).chain(AFTER.iter().copied());
    message.iter_mut().zip(text).map(|(slot, byte)| *slot = byte).count()
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
