//! Reads whole files up to a limit. A wrong file, or a device without an end, then costs little
//! memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a text at most: a module in MLIR, a plan, measured schedules.
pub const MOST_TEXT: u64 = 1 << 24;

/// Bytes of code at most: PTX, libdevice.
pub const MOST_CODE: u64 = 1 << 26;

/// How many inputs are being read.
static AWAITED: AtomicUsize = AtomicUsize::new(0);

/// While it lives, an input is being read, which may never end: a pipe that nobody writes to, or
/// standard input.
#[must_use]
pub struct Awaited(());

impl Awaited {
    /// A read begins.
    pub fn begin() -> Self {
        AWAITED.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether any input is being read.
    pub fn is_any() -> bool {
        AWAITED.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        AWAITED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The system's error; [`ErrorKind::FileTooLarge`] beyond `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let _awaited = Awaited::begin();
    read_all(File::open(path)?, most)
}

/// Reads a text of at most `most` bytes.
///
/// # Errors
/// As for [`read`], and [`ErrorKind::InvalidData`] where it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, most)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text (UTF-8)"))
}

/// Reads to the end, of at most `most` bytes. At most one byte more is consumed.
///
/// # Errors
/// As for [`read`].
pub fn read_all(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let _awaited = Awaited::begin();
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let words = format!("it has more than {most} bytes, the most that are read; name another");
        return Err(io::Error::new(ErrorKind::FileTooLarge, words));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_a_byte_beyond_the_limit() {
        let mut endless = io::repeat(7).take(1 << 40);
        let error = read_all(&mut endless, 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!((1 << 40) - endless.limit(), 101);
        assert_eq!(read_all([1, 2, 3].as_slice(), 3).unwrap(), [1, 2, 3]);
        assert!(read_all(io::empty(), 0).unwrap().is_empty());
    }

    #[test]
    fn a_device_without_an_end_is_refused() {
        let error = read_text(Path::new("/dev/zero"), MOST_TEXT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
