//! Copies of a program's buffers on its device.

use super::buffer::Buffer;
use super::error::CudaError;
use super::program::Program;
use crate::bind::BufferId;

impl Program {
    /// Keeps a copy of all buffers on the device, for [`Program::restore`].
    ///
    /// # Errors
    /// When the device has no room for it, or the copy fails.
    pub fn save(&mut self) -> Result<(), CudaError> {
        self.saved.clear();
        for buffer in &self.buffers {
            let saved = Buffer::new(&self.stream, buffer.bytes())?;
            saved.copy_from(buffer)?;
            self.saved.push(saved);
        }
        self.stream.enter()?;
        self.stream.synchronize()
    }

    /// Gives all buffers what they held when they were saved.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn restore(&mut self) -> Result<(), CudaError> {
        self.stream.enter()?;
        let pairs = self.buffers.iter().zip(&self.saved);
        pairs.into_iter().try_for_each(|(buffer, saved)| buffer.copy_from(saved))?;
        self.stream.synchronize()
    }

    /// Does copies between buffers as if all were done at once, and waits for them.
    ///
    /// # Errors
    /// When the device has no room for what is on the way, or a copy fails.
    pub fn copy_all(&self, copies: &[(BufferId, BufferId)]) -> Result<(), CudaError> {
        self.stream.enter()?;
        let crossed = copies.iter().any(|(_, to)| copies.iter().any(|(from, _)| from == to));
        let mut between = Vec::new();
        for (from, to) in copies {
            let (from, to) = (self.buffer(*from)?, self.buffer(*to)?);
            if crossed {
                let image = Buffer::new(&self.stream, from.bytes())?;
                image.copy_from(from)?;
                between.push((image, to));
            } else {
                to.copy_from(from)?;
            }
        }
        between.iter().try_for_each(|(image, to)| to.copy_from(image))?;
        self.stream.synchronize()
    }
}
