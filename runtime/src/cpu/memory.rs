//! Memory in lines of a cache, for buffers of a plan and for the threads that compute tiles.

use bytemuck::allocation::try_zeroed_vec;
use bytemuck::{Pod, Zeroable};
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
    lines: Vec<Line>,
    bytes: usize,
}

impl Memory {
    /// So many bytes, all 0. The system gives a page where something is first written.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn zeros(bytes: usize) -> Result<Self, NoMemory> {
        let count = bytes.div_ceil(size_of::<Line>()).max(1);
        let lines = try_zeroed_vec(count).map_err(|()| NoMemory(bytes))?;
        Ok(Self { lines, bytes })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines).get(..self.bytes).unwrap_or_default()
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.lines).get_mut(..self.bytes).unwrap_or_default()
    }

    /// Where they begin.
    pub fn start(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
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
}
