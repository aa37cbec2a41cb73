//! Checkpoints: the state of a run in a file, from which another run goes on with the same bits.
//!
//! A file has a line that names the format, the length of the header in 8 bytes, the header as
//! JSON, the cells of the fields in the header's order as they lie in memory, and a hash of all
//! that in 8 bytes. A file is written whole or not at all, and the hash finds a damaged one.

use crate::array::{Array, Element, shape_text};
pub use crate::hash::Hash;
use crate::whole_file::write_whole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first line of a file.
const MAGIC: &[u8] = b"stencilc checkpoint 1\n";
/// Bytes of a header at most.
const MOST_HEADER: u64 = 1 << 24;

/// The state of a run after some steps.
#[derive(Debug, PartialEq)]
pub struct Checkpoint {
    /// What the run was.
    pub run: Run,
    /// Steps taken, with those before [`Run::first_step`].
    pub step: i64,
    /// State and temp fields and reductions.
    pub values: BTreeMap<String, Array>,
}

/// What must be the same for a run to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The program's name.
    pub program: String,
    /// A hash of its text.
    pub text: u64,
    /// Its sizes, without the number of steps.
    pub sizes: BTreeMap<String, i64>,
    /// The values of its scalars.
    pub scalars: BTreeMap<String, String>,
    /// Type, shape and hash of each const field.
    pub constants: BTreeMap<String, (String, u64)>,
    /// The number of the first step.
    pub first_step: i64,
}

/// A field in the header.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    name: String,
    element: Element,
    shape: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    run: Run,
    step: i64,
    fields: Vec<Stored>,
}

/// Why a run can't go on from a checkpoint.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The file can't be read.
    #[error("can't read the checkpoint {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file can't be written.
    #[error("can't write the checkpoint {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is none, or damaged.
    #[error("{} is no checkpoint: {message}; name a file of --checkpoint", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The file that would be replaced is not a checkpoint.
    #[error("{} is no checkpoint, and would be replaced; name another file", path.display())]
    Replaces {
        /// The file.
        path: PathBuf,
    },
    /// The file is of another run.
    #[error("the checkpoint {} is of another run: {message}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The first difference and its remedy.
        message: String,
    },
}

/// Writes and hashes.
struct Hashed<'w> {
    out: &'w mut dyn Write,
    hash: Hash,
}

impl Hashed<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.add(bytes);
        self.out.write_all(bytes)
    }
}

/// Checks that a checkpoint may stand at a place: there is no file, an empty one or a checkpoint.
///
/// # Errors
/// Another file, which nobody may have meant to lose, and one that can't be read.
pub fn check_place(path: &Path) -> Result<(), CheckpointError> {
    if !path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() > 0) {
        return Ok(());
    }
    let mut first = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut first))
        .map_err(|source| CheckpointError::Read { path: path.to_path_buf(), source })?;
    match first == MAGIC {
        true => Ok(()),
        false => Err(CheckpointError::Replaces { path: path.to_path_buf() }),
    }
}

/// Writes a checkpoint: whole or not at all, in place of an older one.
///
/// # Errors
/// The system's error; the older checkpoint is then as it was.
pub fn write(
    path: &Path,
    run: &Run,
    step: i64,
    values: &BTreeMap<String, Array>,
) -> Result<(), CheckpointError> {
    check_place(path)?;
    let fields = values.iter().map(|(name, array)| Stored {
        name: name.clone(),
        element: array.element(),
        shape: array.shape().to_vec(),
    });
    let header = Header { run: run.clone(), step, fields: fields.collect() };
    let body = |file: &mut dyn Write| {
        let header = serde_json::to_vec(&header)?;
        let mut out = Hashed { out: file, hash: Hash::default() };
        out.put(MAGIC)?;
        out.put(&(header.len() as u64).to_le_bytes())?;
        out.put(&header)?;
        for array in values.values() {
            out.put(array.bytes())?;
        }
        let hash = out.hash.value().to_le_bytes();
        out.put(&hash)
    };
    write_whole(path, body)
        .map_err(|source| CheckpointError::Write { path: path.to_path_buf(), source })
}

/// Reads a checkpoint.
///
/// # Errors
/// When the file can't be read, is no checkpoint or is damaged.
pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
    let fail = |source| CheckpointError::Read { path: path.to_path_buf(), source };
    let damaged = |message: &str| CheckpointError::Damaged {
        path: path.to_path_buf(),
        message: message.to_owned(),
    };
    let file = File::open(path).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    let mut file = Parts { file: BufReader::new(file), hash: Hash::default() };
    let magic = file.take(MAGIC.len() as u64).map_err(fail)?;
    if magic != MAGIC {
        return Err(damaged("it does not begin as one"));
    }
    let short = || damaged("it ends early");
    let size = file.number().map_err(fail)?.ok_or_else(short)?;
    if size > MOST_HEADER {
        return Err(damaged("its header is too long"));
    }
    let header = file.take(size).map_err(fail)?;
    let header: Header =
        serde_json::from_slice(&header).map_err(|error| damaged(&error.to_string()))?;
    // Shapes are believed only where the file has their cells.
    let bytes = header.fields.iter().try_fold(0_u64, |all, field| {
        let mut cells = field.shape.iter().map(|extent| *extent as u64);
        let bytes = cells.try_fold(field.element.size() as u64, |all: u64, n| all.checked_mul(n));
        all.checked_add(bytes?)
    });
    let rest = length.checked_sub(MAGIC.len() as u64 + 16 + size);
    if bytes.is_none() || bytes != rest {
        return Err(damaged("its length is not that of its fields"));
    }
    let mut values = BTreeMap::new();
    for field in header.fields {
        let made = Array::zeros(field.element, &field.shape);
        let mut array = made.map_err(|error| fail(io::Error::other(error)))?;
        file.fill(array.bytes_mut()).map_err(fail)?;
        values.insert(field.name, array);
    }
    let hash = file.hash.value();
    if file.number().map_err(fail)? != Some(hash) {
        return Err(damaged("its cells are not those that were written"));
    }
    Ok(Checkpoint { run: header.run, step: header.step, values })
}

/// Reads and hashes.
struct Parts {
    file: BufReader<File>,
    hash: Hash,
}

impl Parts {
    /// The next bytes; fewer at the end of the file.
    fn take(&mut self, bytes: u64) -> io::Result<Vec<u8>> {
        let mut taken = Vec::new();
        (&mut self.file).take(bytes).read_to_end(&mut taken)?;
        self.hash.add(&taken);
        Ok(taken)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(bytes)?;
        self.hash.add(bytes);
        Ok(())
    }

    fn number(&mut self) -> io::Result<Option<u64>> {
        Ok(self.take(8)?.try_into().ok().map(u64::from_le_bytes))
    }
}

impl Checkpoint {
    /// Checks that a run can go on from here.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, path: &Path, run: &Run) -> Result<(), CheckpointError> {
        let other =
            |message: String| Err(CheckpointError::Other { path: path.to_path_buf(), message });
        let (from, to) = (&self.run, run);
        if from.program != to.program {
            return other(format!("it is of {}, not of {}", from.program, to.program));
        }
        for (name, size) in &to.sizes {
            match from.sizes.get(name) {
                Some(found) if found == size => {}
                Some(found) => {
                    return other(format!("its {name} is {found} where this run has {size}"));
                }
                None => return other(format!("it has no size {name}")),
            }
        }
        for (name, value) in &to.scalars {
            let found = from.scalars.get(name).map_or("unset", String::as_str);
            if found != value {
                return other(format!(
                    "its scalar {name} is {found} where this run has {value}; give --set \
                     {name}={found}"
                ));
            }
        }
        for (name, (kind, cells)) in &to.constants {
            match from.constants.get(name) {
                Some((found, same)) if found == kind && same == cells => {}
                Some((found, _)) if found != kind => {
                    return other(format!("its field {name} is {found} where this run has {kind}"));
                }
                _ => return other(format!("its field {name} had other cells; give the same --in")),
            }
        }
        if from.text != to.text {
            return other(format!("the text of {} has changed since", to.program));
        }
        Ok(())
    }

    /// Checks that a field is there with its type and shape.
    ///
    /// # Errors
    /// The difference.
    pub fn check_field(
        &self,
        path: &Path,
        name: &str,
        element: Element,
        shape: &[usize],
    ) -> Result<(), CheckpointError> {
        let wanted = format!("{element} {}", shape_text(shape));
        let message = match self.values.get(name).map(Array::kind) {
            Some(found) if found == wanted => return Ok(()),
            Some(found) => format!("its field {name} is {found} where this run has {wanted}"),
            None => format!(
                "it has no values of {name}, {wanted}; give the options of schedule and results \
                 that the run of the checkpoint had"
            ),
        };
        Err(CheckpointError::Other { path: path.to_path_buf(), message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Data;

    fn run() -> Run {
        Run {
            program: "heat".to_owned(),
            text: 7,
            sizes: [("N".to_owned(), 3)].into(),
            scalars: BTreeMap::new(),
            constants: BTreeMap::new(),
            first_step: 0,
        }
    }

    #[test]
    fn a_checkpoint_comes_back_and_every_damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let cells = Data::F32(vec![1.0, f32::NAN, -0.0]);
        let values: BTreeMap<_, _> = [("A".to_owned(), Array::new(vec![3], cells).unwrap())].into();
        write(&path, &run(), 5, &values).unwrap();
        let found = read(&path).unwrap();
        assert_eq!((found.step, &found.run), (5, &run()));
        assert_eq!(found.values["A"].bytes(), values["A"].bytes());
        let whole = std::fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 4;
            std::fs::write(&path, &damaged).unwrap();
            assert!(read(&path).is_err(), "byte {place}");
            std::fs::write(&path, &whole[..place]).unwrap();
            assert!(read(&path).is_err(), "{place} bytes");
        }
        // FNV-1a of "a", from its authors' test vectors.
        assert_eq!(Hash::of(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
