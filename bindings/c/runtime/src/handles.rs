//! The live objects. A handle is a number that no other object ever gets, so that one that is
//! freed, made up or of another kind is found to be wrong, and no memory is touched by it.

use crate::fault::{Fault, Status};
use crate::run::Run;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stencil_runtime::host::Program;

/// An object that C has a handle of.
#[derive(Clone)]
pub enum Object {
    /// A program.
    Program(Arc<Program>),
    /// A run of one.
    Run(Arc<Run>),
}

struct Objects {
    live: BTreeMap<u64, Object>,
    last: u64,
}

static OBJECTS: Mutex<Objects> = Mutex::new(Objects { live: BTreeMap::new(), last: 0 });

fn objects() -> MutexGuard<'static, Objects> {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    if objects.last == 0 {
        // Handles of another copy of the library are unlikely to be some of this one.
        objects.last = RandomState::new().hash_one("handles") >> 2 | 1;
    }
    objects
}

/// Makes an object live, and returns its handle.
pub fn add(object: Object) -> u64 {
    let mut objects = objects();
    objects.last += 1;
    let handle = objects.last;
    objects.live.insert(handle, object);
    handle
}

fn wrong(handle: u64, kind: &str) -> Fault {
    let message = match handle {
        0 => format!("the handle of the {kind} is 0; it was never made"),
        _ => format!("handle {handle:#x} is no live {kind}: it was freed, or is of another kind"),
    };
    Fault::new(Status::Handle, message)
}

/// A live program.
///
/// # Errors
/// When the handle is none of a live program.
pub fn program(handle: u64) -> Result<Arc<Program>, Fault> {
    match objects().live.get(&handle) {
        Some(Object::Program(program)) => Ok(Arc::clone(program)),
        _ => Err(wrong(handle, "program")),
    }
}

/// A live run.
///
/// # Errors
/// When the handle is none of a live run.
pub fn run(handle: u64) -> Result<Arc<Run>, Fault> {
    match objects().live.get(&handle) {
        Some(Object::Run(run)) => Ok(Arc::clone(run)),
        _ => Err(wrong(handle, "run")),
    }
}

/// Takes an object out of the live ones. Whoever is using it keeps it to the end of the call.
///
/// # Errors
/// When the handle is none of a live object of this kind.
pub fn remove(handle: u64, is: fn(&Object) -> bool, kind: &str) -> Result<(), Fault> {
    let mut objects = objects();
    if !objects.live.get(&handle).is_some_and(is) {
        return Err(wrong(handle, kind));
    }
    let object = objects.live.remove(&handle);
    // What it holds may take long to go, and may call the driver.
    drop(objects);
    drop(object);
    Ok(())
}
