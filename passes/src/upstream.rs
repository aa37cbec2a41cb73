//! Parts of upstream that do harm to modules of this compiler, and are refused; and what a tool
//! says where another one ends the process.

use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
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

/// The sentence for the end of the process in code of others that runs now, as far as there is
/// room, ended by a zero: the handler of a signal can read it.
pub static RUNNING: [AtomicU8; 256] = [const { AtomicU8::new(0) }; 256];

/// The sentences of all works that have begun and not ended.
static UNDER_WAY: Mutex<Vec<String>> = Mutex::new(Vec::new());

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

/// Does work of others that may crash. A crash within is told by the sentence; of works on several
/// threads, by that of the newest.
pub(crate) fn under<T>(sentence: &str, work: impl FnOnce() -> T) -> T {
    let change = |change: &dyn Fn(&mut Vec<String>)| {
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut under_way);
        let text = under_way.last().map(String::as_str).unwrap_or_default();
        let bytes = text.bytes().take(RUNNING.len() - 1).chain(std::iter::repeat(0));
        RUNNING.iter().zip(bytes).for_each(|(slot, byte)| slot.store(byte, Ordering::Release));
    };
    change(&|under_way| under_way.push(sentence.to_owned()));
    let result = work();
    change(&|under_way| {
        let ended = under_way.iter().rposition(|other| other == sentence);
        ended.map(|place| under_way.remove(place));
    });
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
