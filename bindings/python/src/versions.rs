//! A program compiled for some sizes, and the compiled programs that are kept on the disk.
//!
//! A file of the cache holds all that it was made from: the version of the compiler, its options
//! with the device, and the text. A file that was made from anything else is not used, and one that
//! can't be written is left out. Files are written whole or not at all, so that processes may share
//! a folder.

use crate::errors;
use crate::watch::Watch;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stencil_compiler::{
    Class, Compiled, Control, Failure, Level, Plan, Progress, Session, Source, TEXT_HASH, Target,
};
use stencil_runtime::bounded_read::{MOST_CODE, read_text};
use stencil_runtime::host::{Code, Program};
use stencil_runtime::whole_file::write_whole;

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
        let key = self.key(session);
        if let Some(texts) = key.as_ref().and_then(|(file, key)| cached(file, key)) {
            return Ok(texts);
        }
        let levels = [Level::Plan, Level::Ptx];
        let compiled = self.compile(py, session, &levels)?;
        let text = |level| compiled.text(level).unwrap_or_default().to_owned();
        let texts = Texts { plan: text(Level::Plan), ptx: text(Level::Ptx) };
        if let Some((file, key)) = key {
            keep(&file, &key, &texts);
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
        let program = match self.target {
            Target::Cuda(_) => {
                let texts = self.texts(py, sizes)?;
                let plan = Plan::from_json(&texts.plan, &self.source.name);
                let plan = plan.map_err(|error| errors::argument(py, error.to_string()))?;
                Program::new(plan, Code::Cuda(texts.ptx.into_bytes()))
            }
            target => {
                let session = self.sized(sizes);
                let mut watch = Watch::new(None);
                let made = py.detach(|| {
                    let cancel = Arc::clone(&watch.cancel);
                    let mut tick = |_: Progress<'_>| watch.tick();
                    let control =
                        Control { progress: Some(&mut tick), cancel, ..Control::default() };
                    session.executable(&self.source, target, control)
                });
                let executable =
                    made.map_err(|failure| watch.error(py, |py| errors::compile(py, &failure)))?;
                Program::new(executable.plan().clone(), Code::Engine(Box::new(executable)))
            }
        };
        Ok(Version { sizes: sizes.clone(), program })
    }

    /// The file of a compile, and all that it is made from.
    fn key(&self, session: &Session) -> Option<(PathBuf, String)> {
        let folder = self.cache.as_ref()?;
        let Source { name, text, .. } = &self.source;
        let version = env!("CARGO_PKG_VERSION");
        let key = format!("stencilc {version} {TEXT_HASH}\n{session:?}\n{name}\n{text}");
        // A stable function: files are found by other processes.
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        hash.write(key.as_bytes());
        Some((folder.join(format!("{:016x}.kernel", hash.finish())), key))
    }
}

/// The hash of Fowler, Noll and Vo (FNV-1a, 64 bits).
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A file is the lengths of its parts in a line, then key, plan and PTX.
fn cached(file: &Path, key: &str) -> Option<Texts> {
    let text = read_text(file, MOST_CODE).ok()?;
    let (head, rest) = text.split_once('\n')?;
    let lengths: Vec<usize> =
        head.split(' ').map(|length| length.parse().ok()).collect::<Option<_>>()?;
    let [of_key, of_plan, of_ptx] = lengths.as_slice() else { return None };
    let rest = rest.strip_prefix(key).filter(|_| key.len() == *of_key)?;
    let (plan, ptx) = rest.split_at_checked(*of_plan)?;
    (ptx.len() == *of_ptx).then(|| Texts { plan: plan.to_owned(), ptx: ptx.to_owned() })
}

/// A cache that can't be written is no reason to fail.
fn keep(file: &Path, key: &str, texts: &Texts) {
    let Texts { plan, ptx } = texts;
    if let Some(folder) = file.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    let _ = write_whole(file, |out| {
        writeln!(out, "{} {} {}", key.len(), plan.len(), ptx.len())?;
        [key, plan, ptx].iter().try_for_each(|part| out.write_all(part.as_bytes()))
    });
}
