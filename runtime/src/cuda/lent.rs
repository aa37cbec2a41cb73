//! Memory of the caller in the place of a program's buffers, and its streams.

use super::buffer::{Buffer, Lent};
use super::clock::Event;
use super::error::CudaError;
use super::program::Program;
use super::stream::{LentStream, Stream};
use crate::bind::BufferId;

impl Program {
    /// From the next allocation on these buffers are the caller's memory. Buffers from before are
    /// freed.
    pub fn lend(&mut self, lent: Vec<(BufferId, Lent)>) {
        self.saved.clear();
        self.buffers.clear();
        self.lent = lent;
    }

    /// The work of the next run comes behind all that a stream of the caller has by now.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn come_behind(&self, stream: LentStream) -> Result<(), CudaError> {
        let before = Event::untimed(&Stream::lent(self.stream.device(), stream))?;
        before.record()?;
        before.hold(&self.stream)
    }

    /// Reads memory of the caller to the host.
    ///
    /// # Errors
    /// When the driver does not know the memory, or the copy fails.
    pub fn read_lent(&self, lent: Lent, bytes: &mut [u8]) -> Result<(), CudaError> {
        self.lent_buffer(lent)?.download(0, bytes)
    }

    /// Fills memory of the caller from the host.
    ///
    /// # Errors
    /// As [`Program::read_lent`].
    pub fn write_lent(&self, lent: Lent, bytes: &[u8]) -> Result<(), CudaError> {
        self.lent_buffer(lent)?.upload(0, bytes)
    }

    pub(super) fn lent_buffer(&self, lent: Lent) -> Result<Buffer, CudaError> {
        let unknown = || CudaError::Lent {
            device: self.stream.device().label().to_owned(),
            memory: lent.to_string(),
        };
        Buffer::lent(&self.stream, lent)?.ok_or_else(unknown)
    }
}
