//! Schedules that were measured to be fastest, in a file: `stencil-bench --tune` writes it,
//! `stencilc --schedules` reads it.
//!
//! An entry has two keys. One is the fingerprint: the program's IR with its sizes and arithmetic,
//! and the compiler's version and text. The other is the device. When any of these changes, no
//! entry fits any more.

use crate::bounded_read::{MOST_TEXT, read_text};
use crate::plan::Settings;
use crate::whole_file::write_whole;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// One measured schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// See [`fingerprint`].
    pub fingerprint: String,
    /// The device's name, as the driver spells it.
    pub device: String,
    /// The power of two below the number of points that it was measured with.
    pub size_class: u32,
    /// The program's name, for readers.
    pub program: String,
    /// The schedule.
    pub settings: Settings,
    /// Points times steps a second, in 10^9.
    pub gcells: f64,
}

/// All measured schedules of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedules {
    /// In the order in which they were measured.
    pub entries: Vec<Entry>,
}

/// Why the file could not be used.
#[derive(Debug, Error)]
pub enum TuneError {
    /// It is not there to be read.
    #[error("can't use the schedules in {}: {source}; stencil-bench --tune makes such a \
        file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It can't be read or written.
    #[error("can't use the schedules in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} holds no schedules: {message}; name a file that stencil-bench --tune wrote, or a \
        new one", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The fault and its line.
        message: String,
    },
}

impl Schedules {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file can't be read or holds something else.
    pub fn read(path: &Path) -> Result<Self, TuneError> {
        let text = read_text(path, MOST_TEXT).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => TuneError::Missing { path: path.to_path_buf(), source },
            _ => TuneError::Io { path: path.to_path_buf(), source },
        })?;
        serde_json::from_str(&text).map_err(|error| TuneError::Syntax {
            path: path.to_path_buf(),
            message: error.to_string(),
        })
    }

    /// Reads a file; one that is not there yet holds nothing.
    ///
    /// # Errors
    /// When there is a file and it can't be read or holds something else.
    pub fn load(path: &Path) -> Result<Self, TuneError> {
        match Self::read(path) {
            Err(TuneError::Missing { .. }) => Ok(Self::default()),
            read => read,
        }
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn save(&self, path: &Path) -> Result<(), TuneError> {
        let failed = |source| TuneError::Io { path: path.to_path_buf(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        write_whole(path, |file| writeln!(file, "{text}")).map_err(failed)
    }

    /// Adds an entry in place of the one that was measured for the same.
    pub fn remember(&mut self, entry: Entry) {
        self.entries.retain(|known| {
            (&known.fingerprint, &known.device, known.size_class)
                != (&entry.fingerprint, &entry.device, entry.size_class)
        });
        self.entries.push(entry);
    }

    /// The entry for a program. If it was measured on several devices, that of `device`; of several
    /// run-time sizes, that of the largest.
    pub fn find(&self, fingerprint: &str, device: &str) -> Option<&Entry> {
        let of_program = || self.entries.iter().filter(|entry| entry.fingerprint == fingerprint);
        let first = of_program().next()?;
        let is_one = of_program().all(|entry| entry.device == first.device);
        let device = if is_one { &first.device } else { device };
        of_program().filter(|entry| entry.device == device).max_by_key(|entry| entry.size_class)
    }
}

/// The identity of a program for a version of the compiler: a hash of both (64 bits of FNV-1a,
/// Fowler, Noll, Vo).
pub fn fingerprint(version: &str, program: &str) -> String {
    let hash = version
        .bytes()
        .chain([0])
        .chain(program.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(fingerprint: &str, device: &str, size_class: u32, gcells: f64) -> Entry {
        Entry {
            fingerprint: fingerprint.to_owned(),
            device: device.to_owned(),
            size_class,
            program: "heat".to_owned(),
            settings: Settings { strategy: "stream".to_owned(), ..Settings::default() },
            gcells,
        }
    }

    #[test]
    fn an_entry_is_found_for_what_it_was_measured_for_alone() {
        let mut schedules = Schedules::default();
        schedules.remember(entry("a", "H", 28, 1.0));
        schedules.remember(entry("a", "H", 20, 2.0));
        schedules.remember(entry("a", "H", 28, 3.0));
        assert_eq!(schedules.entries.len(), 2);
        assert_eq!(schedules.find("a", "H").map(|entry| entry.gcells), Some(3.0));
        // A compiler knows the architecture and not the device.
        assert_eq!(schedules.find("a", "I").map(|entry| entry.gcells), Some(3.0));
        schedules.remember(entry("a", "J", 28, 4.0));
        assert_eq!(schedules.find("a", "J").map(|entry| entry.gcells), Some(4.0));
        assert_eq!((schedules.find("b", "H"), schedules.find("a", "I")), (None, None));
    }

    #[test]
    fn files_are_read_back_and_others_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("schedules.json");
        assert_eq!(Schedules::load(&path).unwrap(), Schedules::default());
        let schedules = Schedules { entries: vec![entry("a", "H", 28, 1.5)] };
        schedules.save(&path).unwrap();
        assert_eq!(Schedules::load(&path).unwrap(), schedules);
        std::fs::write(&path, "{\"entries\": 1}").unwrap();
        assert!(Schedules::load(&path).unwrap_err().to_string().contains("holds no schedules"));
        // The error of a read names the tool that makes such files; that of a write does not.
        let missing = folder.path().join("missing/schedules.json");
        assert!(Schedules::read(&missing).unwrap_err().to_string().contains("--tune makes"));
        assert!(!schedules.save(&missing).unwrap_err().to_string().contains("--tune makes"));
    }

    #[test]
    fn fingerprints_tell_versions_and_programs_apart() {
        // The offset basis, hashed with the zero between version and program.
        assert_eq!(fingerprint("", ""), "af63bd4c8601b7df");
        assert_ne!(fingerprint("1", "a"), fingerprint("1a", ""));
        assert_ne!(fingerprint("1", "a"), fingerprint("2", "a"));
    }
}
