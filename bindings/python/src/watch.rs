//! How Python follows work that goes on without its lock: progress, and Ctrl-C.

use crate::errors;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often Python is asked whether there is a signal, and told of progress.
const INTERVAL: Duration = Duration::from_millis(50);

/// Follows one piece of work.
pub struct Watch {
    pub cancel: Arc<AtomicBool>,
    progress: Option<Py<PyAny>>,
    last: Instant,
    /// What a signal or the callback raised.
    raised: Option<PyErr>,
}

impl Watch {
    /// Calls `progress(done, total)` from time to time.
    pub fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { cancel: Arc::default(), progress, last: Instant::now(), raised: None }
    }

    /// Work of unknown length goes on.
    pub fn tick(&mut self) {
        self.look(None);
    }

    /// So many steps of so many are done.
    pub fn steps(&mut self, done: i64, of: i64) {
        self.look(Some((done, of)));
    }

    fn look(&mut self, steps: Option<(i64, i64)>) {
        let last = steps.is_some_and(|(done, of)| done >= of) && self.progress.is_some();
        if self.raised.is_some() || (self.last.elapsed() < INTERVAL && !last) {
            return;
        }
        self.last = Instant::now();
        let raised = Python::attach(|py| {
            py.check_signals()?;
            if let (Some(progress), Some(steps)) = (&self.progress, steps) {
                progress.call1(py, steps)?;
            }
            PyResult::Ok(())
        });
        if let Err(error) = raised {
            self.raised = Some(error);
            self.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// The exception of some work: what was raised on the way, if anything, else what it failed
    /// with.
    pub fn error(self, py: Python<'_>, error: impl FnOnce(Python<'_>) -> PyErr) -> PyErr {
        self.raised.unwrap_or_else(|| error(py))
    }

    /// The result of a run.
    pub fn ended<T>(
        self,
        py: Python<'_>,
        result: Result<T, stencil_runtime::host::HostError>,
    ) -> PyResult<T> {
        match (result, self.raised) {
            (_, Some(raised)) => Err(raised),
            (Ok(value), None) => Ok(value),
            (Err(error), None) => Err(errors::run(py, error)),
        }
    }
}
