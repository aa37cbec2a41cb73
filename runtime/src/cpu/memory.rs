//! Memory in pages, for buffers of a plan and for the threads that compute tiles.

use memmap2::{MmapMut, MmapOptions};
use thiserror::Error;

/// Bytes from which on the system is asked for large pages: one of those of x86-64 and AArch64.
/// Small pages of a grid are more than a TLB holds.
const LARGE_PAGE: usize = 2 << 20;

/// The system gives no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system gives no memory of {0} bytes; use smaller sizes or fewer threads")]
pub struct NoMemory(usize);

/// Bytes that begin a page. Vectors of the widest kind are aligned in them.
#[derive(Debug, Default)]
pub struct Memory {
    pages: Option<MmapMut>,
    bytes: usize,
}

impl Memory {
    /// So many bytes, all 0. The system gives a page where something is first written.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn zeros(bytes: usize) -> Result<Self, NoMemory> {
        let pages = MmapOptions::new().len(bytes.max(1)).map_anon();
        let pages = pages.map_err(|_| NoMemory(bytes))?;
        #[cfg(target_os = "linux")]
        if bytes >= LARGE_PAGE {
            // A refusal costs time alone.
            let _ = pages.advise(memmap2::Advice::HugePage);
        }
        Ok(Self { pages: Some(pages), bytes })
    }

    /// So many bytes, all 0, of which only pages that are written take memory: there may be more
    /// of them than the machine has memory.
    ///
    /// # Errors
    /// When there are not as many addresses.
    pub fn unreserved(bytes: usize) -> Result<Self, NoMemory> {
        let pages = MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon();
        Ok(Self { pages: Some(pages.map_err(|_| NoMemory(bytes))?), bytes })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.pages.as_deref().and_then(|all| all.get(..self.bytes)).unwrap_or_default()
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.pages.as_deref_mut().and_then(|all| all.get_mut(..self.bytes)).unwrap_or_default()
    }

    /// Where they begin.
    pub fn start(&mut self) -> *mut u8 {
        self.bytes_mut().as_mut_ptr()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_a_page_and_is_zero() {
        for bytes in [0, 1, 64, 1000, LARGE_PAGE + 1] {
            let mut memory = Memory::zeros(bytes).unwrap();
            assert_eq!(memory.start() as usize % 4096, 0);
            assert_eq!((memory.len(), memory.bytes()), (bytes, vec![0; bytes].as_slice()));
            memory.bytes_mut().fill(7);
            assert!(memory.bytes().iter().all(|byte| *byte == 7));
        }
        assert!(Memory::zeros(usize::MAX / 2).is_err());
    }

    /// More than any machine has.
    #[test]
    fn pages_that_nobody_writes_take_no_memory() {
        let bytes = 1 << 44;
        let mut memory = Memory::unreserved(bytes).unwrap();
        assert_eq!((memory.start() as usize % 64, memory.len()), (0, bytes));
        memory.bytes_mut()[bytes - 1] = 7;
        assert_eq!((memory.bytes()[0], memory.bytes()[bytes - 1]), (0, 7));
        assert!(Memory::unreserved(usize::MAX / 2).is_err());
        assert!(Memory::unreserved(0).unwrap().bytes().is_empty());
    }
}
