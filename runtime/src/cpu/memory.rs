//! Memory in lines of a cache, for buffers of a plan and for the threads that compute tiles.

use bytemuck::allocation::try_zeroed_vec;
use bytemuck::{Pod, Zeroable};
use memmap2::{MmapMut, MmapOptions};
use thiserror::Error;

/// The system gives no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system gives no memory of {0} bytes; use smaller sizes or fewer threads")]
pub struct NoMemory(usize);

/// A line of a cache. Vectors of the widest kind are aligned in it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes that begin a line.
#[derive(Debug, Default)]
pub struct Memory {
    lines: Lines,
    bytes: usize,
}

/// Where bytes lie.
#[derive(Debug)]
enum Lines {
    /// In memory that is there for all of them.
    Held(Vec<Line>),
    /// In addresses, each page of which gets memory when it is first written.
    Mapped(MmapMut),
}

impl Default for Lines {
    fn default() -> Self {
        Self::Held(Vec::new())
    }
}

impl Memory {
    /// So many bytes, all 0. The system gives a page where something is first written.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn zeros(bytes: usize) -> Result<Self, NoMemory> {
        let count = bytes.div_ceil(size_of::<Line>()).max(1);
        let lines = try_zeroed_vec(count).map_err(|()| NoMemory(bytes))?;
        Ok(Self { lines: Lines::Held(lines), bytes })
    }

    /// So many bytes, all 0, of which only pages that are written take memory: there may be more
    /// of them than the machine has memory.
    ///
    /// # Errors
    /// When there are not as many addresses.
    pub fn unreserved(bytes: usize) -> Result<Self, NoMemory> {
        let map = MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon();
        Ok(Self { lines: Lines::Mapped(map.map_err(|_| NoMemory(bytes))?), bytes })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.lines {
            Lines::Held(lines) => bytemuck::cast_slice(lines),
            Lines::Mapped(map) => map,
        };
        all.get(..self.bytes).unwrap_or_default()
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let all: &mut [u8] = match &mut self.lines {
            Lines::Held(lines) => bytemuck::cast_slice_mut(lines),
            Lines::Mapped(map) => map,
        };
        all.get_mut(..self.bytes).unwrap_or_default()
    }

    /// Where they begin.
    pub fn start(&mut self) -> *mut u8 {
        match &mut self.lines {
            Lines::Held(lines) => lines.as_mut_ptr().cast(),
            Lines::Mapped(map) => map.as_mut_ptr(),
        }
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
    fn memory_begins_a_line_and_is_zero() {
        for bytes in [0, 1, 64, 1000] {
            let mut memory = Memory::zeros(bytes).unwrap();
            assert_eq!(memory.start() as usize % 64, 0);
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
