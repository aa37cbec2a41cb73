//! A program and a run of one, as C has handles of them.

use crate::fault::{Fault, Status};
use crate::handles::{self, Object};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use stencil_runtime::host::{self, Done, Hooks, Program};

/// Makes a program live, and returns its handle.
pub fn publish(program: Program) -> u64 {
    handles::add(Object::Program(Arc::new(program)))
}

/// A run of a program.
pub struct Run {
    /// The program.
    pub program: Arc<Program>,
    /// Ends it early.
    pub cancel: Arc<AtomicBool>,
    state: Mutex<State>,
}

/// What a run is to do, and what it did.
#[derive(Default)]
pub struct State {
    /// What it is to do.
    pub run: host::Run,
    /// What it did.
    pub done: Option<Done>,
}

impl Run {
    /// Makes a run live, and returns its handle.
    pub fn publish(program: Arc<Program>) -> u64 {
        let (cancel, state) = (Arc::default(), Mutex::default());
        handles::add(Object::Run(Arc::new(Self { program, cancel, state })))
    }

    /// Its state, which one thread at a time may use.
    ///
    /// # Errors
    /// When another thread is using it.
    pub fn state(&self) -> Result<MutexGuard<'_, State>, Fault> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Fault::new(Status::Busy, "another thread is using this run"))
            }
        }
    }

    /// Does the run.
    ///
    /// # Errors
    /// Why it failed, or that another thread is using it.
    pub fn execute(&self) -> Result<(), Fault> {
        let mut state = self.state()?;
        state.done = None;
        self.cancel.store(false, Ordering::Relaxed);
        let hooks = Hooks { cancel: Arc::clone(&self.cancel), progress: None };
        state.done = Some(state.run.execute(&self.program, hooks)?);
        Ok(())
    }
}
