//! The compiled programs that are kept on the disk.
//!
//! A file of the cache holds all that it was made from: the version of the compiler, its options
//! with the device or the processor, and the text. A file that was made from anything else is not
//! used, and one that can't be written is left out. Files are written whole or not at all, so that
//! processes may share a folder.

use std::path::{Path, PathBuf};
use stencil_compiler::{Session, Source, TEXT_HASH, this_processor};
use stencil_runtime::bounded_read::{MOST_CODE, read};
use stencil_runtime::hash::Hash;
use stencil_runtime::processor::Processor;
use stencil_runtime::whole_file::write_whole;

/// The key of a compile that is kept.
pub struct Key {
    file: PathBuf,
    text: String,
}

/// A plan as text and its code: PTX, or machine code.
pub struct Kept {
    pub plan: String,
    pub code: Vec<u8>,
}

impl Key {
    /// The key of PTX in a folder.
    pub fn ptx(folder: &Path, session: &Session, source: &Source) -> Self {
        Self::of(folder, session, source, "ptx")
    }

    /// The key of machine code for this processor.
    pub fn machine_code(folder: &Path, session: &Session, source: &Source) -> Self {
        let processor = format!("{} {}", Processor::host(), this_processor());
        Self::of(folder, session, source, &processor)
    }

    fn of(folder: &Path, session: &Session, source: &Source, code: &str) -> Self {
        let Source { name, text, .. } = source;
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("stencilc {version} {TEXT_HASH}\n{code}\n{session:?}\n{name}\n{text}");
        let file = folder.join(format!("{:016x}.kernel", Hash::of(text.as_bytes())));
        Self { file, text }
    }

    /// Finds the plan and code of the key. The first line of a file has the lengths of its parts
    /// and a hash of plan and code. Key, plan and code follow.
    pub fn find(&self) -> Option<Kept> {
        let bytes = read(&self.file, MOST_CODE).ok()?;
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let (head, rest) = bytes.split_at_checked(line + 1)?;
        let numbers = std::str::from_utf8(head).ok()?.trim_end().split(' ').map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
        let [of_key, of_plan, of_code, hash] = numbers.as_slice() else { return None };
        let (key, rest) = rest.split_at_checked(usize::try_from(*of_key).ok()?)?;
        let found = Hash::of(rest);
        let (plan, code) = rest.split_at_checked(usize::try_from(*of_plan).ok()?)?;
        let own = key == self.text.as_bytes() && code.len() as u64 == *of_code;
        if !own || found != *hash {
            return None;
        }
        Some(Kept { plan: String::from_utf8(plan.to_vec()).ok()?, code: code.to_vec() })
    }

    /// Keeps a compile. A cache that can't be written is no reason to fail.
    pub fn keep(&self, plan: &str, code: &[u8]) {
        let Self { file, text } = self;
        if let Some(folder) = file.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = write_whole(file, |out| {
            let hash = Hash::of(&[plan.as_bytes(), code].concat());
            writeln!(out, "{} {} {} {hash}", text.len(), plan.len(), code.len())?;
            [text.as_bytes(), plan.as_bytes(), code].iter().try_for_each(|part| out.write_all(part))
        });
    }
}
