//! The temporary files of outputs, so that a process that ends can remove them.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Removes all temporary files. For the thread that ends the process after a signal: files that are
/// being renamed are finished first, and none is begun or renamed afterwards.
pub fn remove_unfinished() {
    let mut names = unfinished();
    for name in names.drain(..) {
        // It may be gone already; nothing else can be done about a failure.
        let _ = std::fs::remove_file(name);
    }
    // Whoever waits for the lock waits until the process has ended.
    std::mem::forget(names);
}

#[cfg(all(target_os = "linux", feature = "signals"))]
/// The same for a thread that ends the process because there is no memory. Where files are being
/// made or renamed just then, perhaps by itself, they stay.
pub(crate) fn try_to_remove_unfinished() {
    let names = UNFINISHED.try_lock();
    for name in names.iter().flat_map(|names| names.iter()) {
        let _ = std::fs::remove_file(name);
    }
    std::mem::forget(names);
}

/// The temporary files there are. The lock is held while one is made and while some are renamed.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

pub(super) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
