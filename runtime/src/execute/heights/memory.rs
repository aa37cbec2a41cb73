//! The pyramid heights that runs have chosen, by device, program and sizes.

use super::NAME;
use crate::bind::Bound;
use crate::bounded_read;
use crate::plan::Plan;
use crate::tune::fingerprint;
use crate::whole_file::write_whole;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The environment variable that names the file.
const FILE: &str = "STENCIL_HEIGHTS";
/// Bytes of a file, and heights that are kept.
const MOST_BYTES: u64 = 1 << 20;
const MOST_KNOWN: usize = 4096;

/// Heights by what they were measured for; in a file too, if there is one. A file that can't be
/// read or written costs no more than another measurement.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    known: BTreeMap<String, String>,
    file: Option<PathBuf>,
}

impl Memory {
    /// With the file that the environment names.
    pub fn from_environment() -> Self {
        std::env::var_os(FILE).map_or_else(Self::default, |file| Self::of(file.into()))
    }

    /// With a file, which need not exist yet.
    pub fn of(file: PathBuf) -> Self {
        let text = bounded_read::read(&file, MOST_BYTES).unwrap_or_default();
        let known = serde_json::from_slice(&text).unwrap_or_default();
        Self { known, file: Some(file) }
    }

    /// The choice for a run, if it is known and the plan still has it.
    pub fn find(&self, plan: &Plan, bound: &Bound, device: &str) -> Option<String> {
        let choose = super::open(plan, bound)?;
        let known = self.known.get(&key(plan, bound, device))?;
        choose.among.iter().any(|one| one.name == *known).then(|| known.clone())
    }

    /// Keeps the choice of a run.
    pub fn remember(&mut self, plan: &Plan, bound: &Bound, device: &str, height: &str) {
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(key(plan, bound, device), height.to_owned());
        let text = serde_json::to_string_pretty(&self.known).unwrap_or_default();
        if let Some(file) = &self.file {
            let _ = write_whole(file, |out| writeln!(out, "{text}"));
        }
    }
}

/// A device, a program and sizes. The number of steps is none of them.
fn key(plan: &Plan, bound: &Bound, device: &str) -> String {
    let program = fingerprint(NAME, &plan.to_json().unwrap_or_default());
    let sizes = bound.sizes.iter().filter(|(name, _)| *name != "steps");
    let sizes: Vec<_> = sizes.map(|(name, size)| format!("{name}={size}")).collect();
    format!("{device}; {} {program}; {}", plan.program, sizes.join(" "))
}
