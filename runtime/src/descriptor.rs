//! Paths that name what the process has open: `/dev/stdout`, `/dev/fd/3`, `/proc/self/fd/3`.
//!
//! A write to one goes where the descriptor stands. To open such a path again would start at the
//! beginning of a file, over what others have written.

use std::fs::File;
use std::io;
use std::path::Path;

/// The number of the descriptor that a path names, also through links. The path must exist.
#[cfg(unix)]
pub(crate) fn number_of(path: &Path) -> Option<i32> {
    let own = format!("/proc/{}/", std::process::id());
    let mut path = path.to_path_buf();
    // As many links as Linux follows.
    for _ in 0..40 {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        let name = folder.to_str().unwrap_or_default();
        if name == "/dev/fd" || name.starts_with(&own) && name.ends_with("/fd") {
            return path.file_name()?.to_str()?.parse().ok().filter(|number| *number >= 0);
        }
        path = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// The open file of a descriptor that [`number_of`] has found, with its position.
///
/// # Errors
/// Those of the system.
#[cfg(unix)]
pub(crate) fn open(number: i32) -> io::Result<File> {
    use std::os::fd::AsFd;
    match number {
        0 => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        1 => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        2 => io::stderr().as_fd().try_clone_to_owned().map(File::from),
        #[cfg(feature = "stdio")]
        number => crate::standard_output::copy_of(number),
        #[cfg(not(feature = "stdio"))]
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a descriptor above 2 needs the feature stdio; name a file",
        )),
    }
}

/// Elsewhere, no path names one.
#[cfg(not(unix))]
pub(crate) fn number_of(_: &Path) -> Option<i32> {
    None
}

/// Elsewhere, there is none to open.
#[cfg(not(unix))]
pub(crate) fn open(_: i32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
