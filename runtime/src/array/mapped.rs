//! Bytes in a file without a name, which a process reads and writes as its memory. The system keeps
//! as much of them in memory as there is room for. The file goes when the process does.
#![allow(unsafe_code, reason = "a mapping is sound only where nobody shortens its file")]

use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes in a file.
#[derive(Debug)]
pub struct Mapped {
    map: MmapMut,
    bytes: usize,
}

impl Mapped {
    /// So many zeros, in a file in a folder. The disk has room for all of them from now on.
    ///
    /// # Errors
    /// When the folder can't have such a file.
    pub fn zeros(folder: &Path, bytes: usize) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        let length = bytes.max(1);
        reserve(&file, length)?;
        // SAFETY: the file has no name, so that no other process opens it, and nobody has the
        // descriptor after this call. It keeps its length.
        let map = unsafe { MmapOptions::new().len(length).map_mut(&file) }?;
        Ok(Self { map, bytes })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.get(..self.bytes).unwrap_or_default()
    }

    /// The bytes, to be overwritten.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.map.get_mut(..self.bytes).unwrap_or_default()
    }
}

/// Makes a new file as long as this, with room on the disk: a mapping can tell of a full disk by a
/// signal alone.
fn reserve(file: &File, bytes: usize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(file, FallocateFlags::empty(), 0, bytes as u64) {
            // Some file systems can't.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            done => return Ok(done?),
        }
    }
    let zeros = vec![0; bytes.min(1 << 20)];
    let (mut file, mut left) = (file, bytes);
    while left > 0 {
        let part = zeros.get(..left.min(zeros.len())).unwrap_or_default();
        file.write_all(part)?;
        left -= part.len();
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_a_file_are_zero_and_leave_no_name() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [0, 1, 5000] {
            let mut mapped = Mapped::zeros(folder.path(), bytes).unwrap();
            assert_eq!(mapped.bytes(), vec![0; bytes]);
            mapped.bytes_mut().fill(7);
            assert!(mapped.bytes().iter().all(|byte| *byte == 7));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        assert!(Mapped::zeros(&folder.path().join("none"), 1).is_err());
        // More than any disk has: an error, and not a signal later.
        assert!(Mapped::zeros(folder.path(), 1 << 60).is_err());
    }
}
