//! A program compiled for some sizes.

use crate::cache::{Kept, Key};
use crate::errors;
use crate::memory;
use crate::watch::Watch;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use stencil_compiler::{
    Class, Compiled, Control, Executable, Failure, Level, Placement, Plan, Progress, Session,
    Source, Target,
};
use stencil_runtime::host::{Code, Program};

/// Sizes by name.
pub type Sizes = BTreeMap<String, i64>;

/// A plan and its code, as text.
#[derive(Clone)]
pub struct Texts {
    pub plan: String,
    pub ptx: String,
}

/// A program that is ready to run.
pub struct Version {
    pub sizes: Sizes,
    pub program: Program,
}

/// A compile that failed.
pub struct Failed {
    watch: Watch,
    failure: Failure,
}

impl Failed {
    /// The exception: what a signal raised, or the failure.
    pub fn raised(self, py: Python<'_>) -> PyErr {
        let Self { watch, failure } = self;
        watch.error(py, |py| errors::compile(py, &failure))
    }
}

/// What is compiled, and where compiled programs are kept.
pub struct Origin {
    pub source: Source,
    pub session: Session,
    pub target: Target,
    /// The devices and the memory of runs.
    pub placement: Placement,
    /// The folder of the cache.
    pub cache: Option<PathBuf>,
}

impl Origin {
    /// The session that fixes these sizes.
    pub fn sized(&self, sizes: &Sizes) -> Session {
        self.session.clone().with_sizes(&self.source, sizes)
    }

    /// Plan and code for these sizes, from the cache where they are there. What is left of a
    /// program for some sizes may not suit a limit that the whole program suits; then the sizes
    /// stay open.
    pub fn texts(&self, py: Python<'_>, sizes: &Sizes) -> PyResult<Texts> {
        match self.texts_of(py, &self.sized(sizes)) {
            Err(failed) if failed.failure.class == Class::Input && !sizes.is_empty() => {
                self.texts_of(py, &self.session).map_err(|failed| failed.raised(py))
            }
            texts => texts.map_err(|failed| failed.raised(py)),
        }
    }

    fn texts_of(&self, py: Python<'_>, session: &Session) -> Result<Texts, Box<Failed>> {
        let key = self.cache.as_ref().map(|folder| Key::ptx(folder, session, &self.source));
        if let Some(Kept { plan, code }) = key.as_ref().and_then(Key::find)
            && let Ok(ptx) = String::from_utf8(code)
        {
            return Ok(Texts { plan, ptx });
        }
        let levels = [Level::Plan, Level::Ptx];
        let compiled = self.compile(py, session, &levels)?;
        let text = |level| compiled.text(level).unwrap_or_default().to_owned();
        let texts = Texts { plan: text(Level::Plan), ptx: text(Level::Ptx) };
        if let Some(key) = key {
            key.keep(&texts.plan, texts.ptx.as_bytes());
        }
        Ok(texts)
    }

    /// Compiles without Python's lock.
    pub fn compile(
        &self,
        py: Python<'_>,
        session: &Session,
        levels: &[Level],
    ) -> Result<Compiled, Box<Failed>> {
        let mut watch = Watch::new(None);
        let compiled = py.detach(|| {
            let cancel = Arc::clone(&watch.cancel);
            let mut tick = |_: Progress<'_>| watch.tick();
            let control = Control { progress: Some(&mut tick), cancel, ..Control::default() };
            session.compile(&self.source, levels, control)
        });
        compiled.map_err(|failure| Box::new(Failed { watch, failure }))
    }

    /// The program for these sizes on its target.
    pub fn version(&self, py: Python<'_>, sizes: &Sizes) -> PyResult<Version> {
        // Texts of levels may be had without it.
        let checked = self.session.check_target(self.target);
        checked.map_err(|failure| errors::compile(py, &failure))?;
        let executable = match self.target {
            Target::Cuda(device) => {
                let texts = self.texts(py, sizes)?;
                let plan = Plan::from_json(&texts.plan, &self.source.name);
                let plan = plan.map_err(|error| errors::argument(py, error.to_string()))?;
                if self.placement.is_usual() {
                    let program = Program::new(plan, Code::Cuda(texts.ptx.into_bytes()));
                    return Ok(Version { sizes: sizes.clone(), program });
                }
                Executable::kept_ptx(&self.source, plan, texts.ptx, device)
            }
            target => self.executable(py, &self.sized(sizes), target)?,
        };
        let executable = executable.placed(self.placement.clone());
        let program = Program::new(executable.plan().clone(), Code::Engine(Box::new(executable)));
        Ok(Version { sizes: sizes.clone(), program })
    }

    /// Compiles for a target other than CUDA. Code for a processor may come from the cache.
    fn executable(
        &self,
        py: Python<'_>,
        session: &Session,
        target: Target,
    ) -> PyResult<Executable> {
        let (key, threads) = match target {
            Target::Cpu { threads } => {
                let key = |folder: &PathBuf| Key::machine_code(folder, session, &self.source);
                (self.cache.as_ref().map(key), threads)
            }
            _ => (None, None),
        };
        if let Some(Kept { plan, code }) = key.as_ref().and_then(Key::find)
            && let Ok(plan) = Plan::from_json(&plan, &self.source.name)
        {
            let object = memory::kept_object(code);
            return Ok(Executable::kept(&self.source, plan, object, threads));
        }
        let mut watch = Watch::new(None);
        let made = py.detach(|| {
            let cancel = Arc::clone(&watch.cancel);
            let mut tick = |_: Progress<'_>| watch.tick();
            let control = Control { progress: Some(&mut tick), cancel, ..Control::default() };
            session.executable(&self.source, target, control)
        });
        let made = made.map_err(|failure| watch.error(py, |py| errors::compile(py, &failure)))?;
        if let (Some(key), Some(object)) = (key, made.object())
            && let Ok(plan) = made.plan().to_json()
        {
            key.keep(&plan, object.bytes());
        }
        Ok(made)
    }
}
