//! The passes of upstream that a pipeline may name; and what a tool says where code of others ends
//! the process.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use stencil_dialects::error::Error;

/// The passes that a pipeline may name. Each works on modules of this compiler, ends, and touches
/// no file. Others move shuffles into branches, run loops at negative indices, end the process or
/// replace files; `mlir-opt` runs them between two calls.
pub const PASSES: [&str; 23] = [
    "affine-expand-index-ops",
    "canonicalize",
    "convert-arith-to-llvm",
    "convert-cf-to-llvm",
    "convert-func-to-llvm",
    "convert-gpu-to-nvvm",
    "convert-gpu-to-rocdl",
    "convert-math-to-llvm",
    "convert-scf-to-cf",
    "convert-vector-to-llvm",
    "cse",
    "expand-strided-metadata",
    "finalize-memref-to-llvm",
    "flatten-memref",
    "inline",
    "loop-invariant-code-motion",
    "loop-invariant-subset-hoisting",
    "lower-affine",
    "math-extend-to-supported-types",
    "reconcile-unrealized-casts",
    "sccp",
    "strip-debuginfo",
    "symbol-dce",
];

/// Refuses a pass that is not known to do no harm.
pub fn pass(name: &str) -> Result<(), Error> {
    if PASSES.contains(&name) {
        return Ok(());
    }
    Err(Error::user(format!(
        "{name} is no pass of stencilc, and none of upstream's that can stand here; stencil-opt \
         --help lists both, and mlir-opt runs others between two calls"
    )))
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
