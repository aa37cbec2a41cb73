//! Files written whole or not at all, several together or none.
//!
//! A file is written beside its place under a temporary name (`.stencil-XXXXXX`), brought to the
//! disk and renamed. A reader finds the old file or the new one, never half of one. After an error,
//! a full disk included, the old file is there. Otherwise a write does as `cp` would:
//!
//! | the place is | what a write does |
//! |---|---|
//! | nothing yet | makes a file with the usual permissions |
//! | a file | keeps its permissions and its owner; access lists and extended attributes go |
//! | a symbolic link to a file | writes the file that it leads to |
//! | a device or a pipe | writes into it, as it can't be renamed |
//! | an open descriptor (`/dev/stdout`, `/dev/fd/3`) | writes into it where it stands, a file too |
//! | read-only, a link to nothing, a folder, a file of several names (hard links) | refuses |
//! | a file of somebody else | refuses if it can't stay theirs |
//!
//! Temporary names are known to [`remove_unfinished`], for a process that a signal ends. It can't
//! be told of SIGKILL, which leaves them behind.

mod unfinished;

use crate::descriptor;
use std::fmt;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use thiserror::Error;
pub use unfinished::remove_unfinished;
#[cfg(all(target_os = "linux", feature = "signals"))]
pub(crate) use unfinished::try_to_remove_unfinished;
use unfinished::unfinished;

/// Writes the contents of a file.
pub type Body<'b> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'b>;

/// Why files could not be written together.
#[derive(Debug, Error)]
pub enum WriteError {
    /// One of them can't be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system or of the body.
        source: io::Error,
    },
    /// Two of them are one file, or one is an input.
    #[error(transparent)]
    Same(#[from] SameFile),
}

/// Two paths that lead to one file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct SameFile {
    /// The output.
    pub output: PathBuf,
    /// The other path.
    pub other: PathBuf,
    /// Whether the other one is an input.
    pub is_input: bool,
}

impl fmt::Display for SameFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (output, other) = (self.output.display(), self.other.display());
        if self.is_input {
            write!(f, "writing {output} would replace the input {other}; choose another name")
        } else {
            write!(f, "{output} and {other} are one file for two outputs; choose two names")
        }
    }
}

/// Writes one file whole or not at all.
///
/// # Errors
/// The error of the system or of `body`; then the old file is as it was, and nothing else is left.
pub fn write_whole(
    path: &Path,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let draft = draft(path, body)?;
    put(draft.into_iter().collect()).map_err(|(_, error)| error)
}

/// Writes several files: all of them, or none. The bodies run in order.
///
/// # Errors
/// The first file that can't be written, or two that are one; then the old files are as they were.
pub fn write_all_whole(outputs: Vec<(&Path, Body<'_>)>) -> Result<(), WriteError> {
    let paths: Vec<_> = outputs.iter().map(|(path, _)| *path).collect();
    check_distinct(&paths, &[])?;
    let failed = |path: &Path, source| WriteError::Write { path: path.to_path_buf(), source };
    let mut drafts = Vec::new();
    for (path, body) in outputs {
        drafts.extend(draft(path, body).map_err(|error| failed(path, error))?);
    }
    put(drafts).map_err(|(path, error)| failed(&path, error))
}

/// Checks that no two outputs are the same file, and that no output is an input: by device and
/// number of the file, so also through links and `./`. Devices and pipes may be named twice.
///
/// # Errors
/// The first two that are the same.
pub fn check_distinct(outputs: &[&Path], inputs: &[&Path]) -> Result<(), SameFile> {
    for (place, output) in outputs.iter().enumerate() {
        let Some(identity) = Identity::of(output) else { continue };
        let before = outputs.iter().take(place).map(|other| (other, false));
        let mut others = before.chain(inputs.iter().map(|other| (other, true)));
        let same = others.find(|(other, _)| Identity::of(other).as_ref() == Some(&identity));
        if let Some((other, is_input)) = same {
            let (output, other) = (output.to_path_buf(), other.to_path_buf());
            return Err(SameFile { output, other, is_input });
        }
    }
    Ok(())
}

/// Whether a file can be written there, as far as can be told before. It lets a tool refuse a place
/// before a long run.
///
/// # Errors
/// Why it can't.
pub fn check_place(path: &Path) -> io::Result<()> {
    match Place::find(path)? {
        Place::Open(_) | Place::Device => Ok(()),
        Place::File { target, old } => Draft::new(target, old).map(drop),
    }
}

/// A file that is written and not yet in its place.
#[derive(Debug)]
struct Draft {
    temporary: Option<NamedTempFile>,
    target: PathBuf,
    /// The file whose place it takes.
    old: Option<Metadata>,
}

impl Draft {
    fn new(target: PathBuf, old: Option<Metadata>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".stencil-");
        // A new file gets what the umask leaves; one in another's place is private at first.
        let usual = usual_permissions();
        if let (None, Some(usual)) = (&old, usual) {
            builder.permissions(usual);
        }
        let mut names = unfinished();
        let temporary = builder.tempfile_in(folder_of(&target)?)?;
        names.push(temporary.path().to_path_buf());
        Ok(Self { temporary: Some(temporary), target, old })
    }

    /// Writes the contents and brings them to the disk.
    fn write(&self, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let mut file = BufWriter::new(temporary.as_file());
        body(&mut file)?;
        file.flush()?;
        drop(file);
        if let Some(old) = &self.old {
            keep_owner(temporary.as_file(), old)?;
            temporary.as_file().set_permissions(old.permissions())?;
        }
        temporary.as_file().sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let name = temporary.path().to_path_buf();
            drop(temporary);
            unfinished().retain(|other| *other != name);
        }
    }
}

/// The written draft of a file; none of a device or a descriptor, which is written at once.
fn draft(
    path: &Path,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Option<Draft>> {
    let into = |file: File, body: Body| {
        let mut out = BufWriter::new(file);
        body(&mut out)?;
        out.flush().map(|()| None)
    };
    let write = || match Place::find(path)? {
        Place::Open(file) => into(file, Box::new(body)),
        Place::Device => into(File::options().write(true).open(path)?, Box::new(body)),
        Place::File { target, old } => {
            let draft = Draft::new(target, old)?;
            draft.write(body)?;
            Ok(Some(draft))
        }
    };
    write().map_err(with_remedy)
}

/// Renames all drafts, or none: what was renamed before a failure is put back. An error names the
/// file.
fn put(mut drafts: Vec<Draft>) -> Result<(), (PathBuf, io::Error)> {
    let mut names = unfinished();
    let several = drafts.len() > 1;
    let mut kept = Vec::new();
    let mut renamed = Vec::new();
    let mut failure = None;
    for draft in &mut drafts {
        let Some(temporary) = draft.temporary.take() else { continue };
        let name = temporary.path().to_path_buf();
        let old = (several && draft.old.is_some()).then(|| name.with_extension("old"));
        let keep = |old: &PathBuf| {
            std::fs::hard_link(&draft.target, old)
                .or_else(|_| std::fs::copy(&draft.target, old).map(drop))
        };
        let ready = old.iter().try_for_each(keep);
        kept.extend(old.clone());
        let put = ready.and_then(|()| temporary.persist(&draft.target).map_err(io::Error::from));
        names.retain(|other| *other != name);
        match put {
            Ok(_) => renamed.push((draft.target.clone(), old)),
            Err(error) => {
                failure = Some((draft.target.clone(), with_remedy(error)));
                break;
            }
        }
    }
    if let Some((_, error)) = &mut failure {
        let left = put_back(&renamed);
        kept.retain(|old| left.iter().all(|(_, other)| *other != old));
        for (target, old) in left.iter().map(|(target, old)| (target.display(), old.display())) {
            let words = format!("{error}; the old content of {target} is in {old}: move it back");
            *error = io::Error::new(error.kind(), words);
        }
    }
    kept.iter().for_each(|old| drop(std::fs::remove_file(old)));
    drop(names);
    failure.map_or(Ok(()), Err)
}

/// Puts back what was there before files were renamed into place, the last first. Returns the files
/// that could not be put back, each with the copy of its old content.
fn put_back(renamed: &[(PathBuf, Option<PathBuf>)]) -> Vec<(&PathBuf, &PathBuf)> {
    let mut left = Vec::new();
    for (target, old) in renamed.iter().rev() {
        match old {
            Some(old) if std::fs::rename(old, target).is_err() => left.push((target, old)),
            Some(_) => {}
            None => drop(std::fs::remove_file(target)),
        }
    }
    left
}

/// The file or device that a path leads to.
#[derive(Debug)]
enum Place {
    /// A file, or nothing yet.
    File { target: PathBuf, old: Option<Metadata> },
    /// A descriptor of this process. Other processes may write after it, so that a file behind it
    /// is never replaced.
    Open(File),
    /// A device or a pipe.
    Device,
}

impl Place {
    fn find(path: &Path) -> io::Result<Self> {
        let old = match std::fs::metadata(path) {
            Ok(old) => old,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if path.is_symlink() {
                    return refuse("it is a symbolic link to nothing; remove the link");
                }
                folder_of(path)?;
                return Ok(Self::File { target: path.to_path_buf(), old: None });
            }
            Err(error) => return Err(error),
        };
        if let Some(number) = descriptor::number_of(path) {
            return descriptor::open(number).map(Self::Open);
        }
        if old.is_dir() {
            return refuse("a folder of that name is there; choose another name");
        }
        if !old.is_file() {
            return Ok(Self::Device);
        }
        if old.permissions().readonly() {
            return refuse("the file is read-only; allow writing or choose another name");
        }
        // Only opening it tells whether this user may write it.
        File::options().write(true).open(path)?;
        if names_of(&old) > 1 {
            return refuse(
                "the file has several names (hard links), of which one would stay the old file; \
                 remove this name or choose another",
            );
        }
        Ok(Self::File { target: std::fs::canonicalize(path)?, old: Some(old) })
    }
}

/// The identity of a file: equal for two paths to it.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    File(FileNumber),
    /// A name in a folder where there is no file of it yet.
    New(FileNumber, std::ffi::OsString),
}

impl Identity {
    /// None of a device, and of a place in no folder.
    fn of(path: &Path) -> Option<Self> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => Some(Self::File(number_of(path, &found)?)),
            Ok(_) => None,
            Err(_) => {
                let folder = folder_of(path).ok()?;
                let number = number_of(folder, &std::fs::metadata(folder).ok()?)?;
                Some(Self::New(number, path.file_name()?.to_owned()))
            }
        }
    }
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(folder);
    }
    let words = format!("there is no folder {}; make it first", folder.display());
    Err(io::Error::new(ErrorKind::NotFound, words))
}

fn refuse<T>(words: &str) -> io::Result<T> {
    Err(io::Error::new(ErrorKind::PermissionDenied, words))
}

/// The same error; for a full disk it names the remedy.
fn with_remedy(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            let words = format!("{error}; make room or write elsewhere");
            io::Error::new(error.kind(), words)
        }
        _ => error,
    }
}

#[cfg(unix)]
use of_unix::{FileNumber, keep_owner, names_of, number_of, usual_permissions};

/// Facts of a file that only Unix has.
#[cfg(unix)]
mod of_unix {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    /// Device and number.
    pub type FileNumber = (u64, u64);

    pub fn number_of(_: &Path, file: &Metadata) -> Option<FileNumber> {
        Some((file.dev(), file.ino()))
    }

    pub fn names_of(file: &Metadata) -> u64 {
        file.nlink()
    }

    pub fn usual_permissions() -> Option<Permissions> {
        Some(Permissions::from_mode(0o666))
    }

    /// Gives a new file the owner and the group of the old one.
    pub fn keep_owner(new: &File, old: &Metadata) -> io::Result<()> {
        let made = new.metadata()?;
        if (made.uid(), made.gid()) == (old.uid(), old.gid()) {
            return Ok(());
        }
        fchown(new, Some(old.uid()), Some(old.gid())).or_else(|_| {
            refuse("the file is somebody else's and would become yours; choose another name")
        })
    }
}

#[cfg(not(unix))]
use elsewhere::{FileNumber, keep_owner, names_of, number_of, usual_permissions};

/// The same on other systems, where a file is known by its full path.
#[cfg(not(unix))]
mod elsewhere {
    use super::*;

    pub type FileNumber = PathBuf;

    pub fn number_of(path: &Path, _: &Metadata) -> Option<FileNumber> {
        std::fs::canonicalize(path).ok()
    }

    pub fn names_of(_: &Metadata) -> u64 {
        1
    }

    pub fn usual_permissions() -> Option<Permissions> {
        None
    }

    pub fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_file_that_cannot_be_put_back_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [("a", "new"), ("a.old", "old"), ("b.old", "old"), ("c", "new")] {
            std::fs::write(at(name), text).unwrap();
        }
        // No file can be renamed to a folder's name.
        std::fs::create_dir(at("b")).unwrap();
        let renamed = [(at("a"), Some(at("a.old"))), (at("b"), Some(at("b.old"))), (at("c"), None)];
        assert_eq!(put_back(&renamed), [(&at("b"), &at("b.old"))]);
        assert_eq!(std::fs::read(at("a")).unwrap(), std::fs::read(at("b.old")).unwrap());
        assert!(!at("c").exists() && !at("a.old").exists());
    }
}
