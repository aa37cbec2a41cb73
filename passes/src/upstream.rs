//! Parts of upstream that do harm to modules of this compiler, and are refused; and what a tool
//! says where another one ends the process.

use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use stencil_dialects::error::Error;
use stencil_dialects::mlir;

/// Passes, and what each does.
pub const PASSES: [(&str, &str); 5] = [
    ("control-flow-sink", "it moves shuffles into branches, which not all lanes of a warp run"),
    ("remove-dead-values", "it ends the process on some modules"),
    ("snapshot-op-locations", "it replaces a file of any name, also where a later pass fails"),
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

/// What is said where code of others ends the process now: a sentence, as far as there is room,
/// ended by a zero, which the handler of a signal can read.
pub static RUNNING: [AtomicU8; 256] = [const { AtomicU8::new(0) }; 256];

/// Works under a sentence that have begun and not ended.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether the steps that run are those that the user has asked for.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Does work whose steps the user has asked for.
pub fn asked<T>(work: impl FnOnce() -> T) -> T {
    ASKED.store(true, Ordering::Release);
    let result = work();
    ASKED.store(false, Ordering::Release);
    result
}

/// Runs a step of upstream's. Where the user has asked for it, a crash is told with its text.
pub(crate) fn run<T>(step: &str, work: impl FnOnce() -> T) -> T {
    if !ASKED.load(Ordering::Acquire) {
        return work();
    }
    let told = format!("upstream's pass {step} ends the process on this module; leave it out");
    under(&told, work)
}

/// Does work of others that may crash under the sentence for that end. Works on several threads at
/// a time have the sentence of the first.
pub(crate) fn under<T>(sentence: &str, work: impl FnOnce() -> T) -> T {
    let set = |text: &str| {
        let bytes = text.bytes().take(RUNNING.len() - 1).chain(std::iter::repeat(0));
        RUNNING.iter().zip(bytes).for_each(|(slot, byte)| slot.store(byte, Ordering::Release));
    };
    if UNDER_WAY.fetch_add(1, Ordering::AcqRel) == 0 {
        set(sentence);
    }
    let result = work();
    if UNDER_WAY.fetch_sub(1, Ordering::AcqRel) == 1 {
        set("");
    }
    result
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
