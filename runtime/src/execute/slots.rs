//! Devices that hold windows of a grid.

use super::TargetError;
use crate::array::Backing;
use crate::bind::{Bound, BufferId};
use crate::launch::Launch;
use std::ops::Range;
use std::time::Duration;

/// When work of each kind began and ended, from the start of a run: copies to the device, windows,
/// and copies from it.
pub type Times = [Vec<Range<Duration>>; 3];

/// The memory of a run out of core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of each slot of device memory.
    pub slots: Vec<usize>,
    /// For each buffer whether it lies on the device whole, in no slot.
    pub whole: Vec<bool>,
    /// Bytes of each array on the host.
    pub hosts: Vec<usize>,
    /// Where these lie.
    pub backing: Backing,
}

/// Stretches of bytes of a buffer: so many of equal length, from the first one on at equal
/// distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strips {
    /// The first byte.
    pub first: usize,
    /// Bytes of a stretch.
    pub width: usize,
    /// Bytes from the start of one to the start of the next.
    pub pitch: usize,
    /// How many there are.
    pub count: usize,
}

impl Strips {
    /// The bytes from the first to the last one.
    pub fn span(&self) -> Range<usize> {
        let last = self.first + self.count.saturating_sub(1) * self.pitch;
        self.first..last + self.width
    }

    /// Each stretch.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Self { first, width, pitch, count } = *self;
        (0..count).map(move |place| first + place * pitch).map(move |at| at..at + width)
    }
}

/// A device whose memory holds stretches of buffers in slots. Calls take effect in order, though
/// copies and launches may overlap where none uses what another one writes.
pub trait Slots {
    /// Makes the memory of a run, in place of any from before. Arrays on the host hold zeros.
    ///
    /// # Errors
    /// When there is too little memory.
    fn open(&mut self, bound: &Bound, layout: &Layout) -> Result<(), TargetError>;

    /// Fills a buffer that lies on the device whole.
    ///
    /// # Errors
    /// When the copy fails.
    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError>;

    /// An array on the host, behind all work that uses it.
    ///
    /// # Errors
    /// An array that is not there, and work that failed.
    fn host(&mut self, host: usize) -> Result<&mut [u8], TargetError>;

    /// Begins to measure time.
    ///
    /// # Errors
    /// When the device can't begin.
    fn begin(&mut self) -> Result<(), TargetError>;

    /// From now on a slot holds some bytes of a buffer, of any values.
    ///
    /// # Errors
    /// A slot that is not there or too small.
    fn assign(
        &mut self,
        slot: usize,
        buffer: BufferId,
        bytes: Range<usize>,
    ) -> Result<(), TargetError>;

    /// Copies bytes of the slot's buffer from an array on the host, where they have the same place.
    ///
    /// # Errors
    /// Bytes that one of the two does not hold; a copy that fails.
    fn load(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError>;

    /// Copies bytes from a slot to another one, where they have the same place in the buffer.
    ///
    /// # Errors
    /// As [`Slots::load`].
    fn duplicate(&mut self, from: usize, to: usize, strips: &Strips) -> Result<(), TargetError>;

    /// The launches from now on have these slots as their buffers.
    ///
    /// # Errors
    /// A slot without a buffer.
    fn enter(&mut self, slots: &[usize]) -> Result<(), TargetError>;

    /// Bytes of a buffer may be loaded by the next launch, and their values must not matter. A
    /// device that looks for mistakes puts noise there.
    ///
    /// # Errors
    /// A buffer that is not there.
    fn scramble(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        let _ = (buffer, runs);
        Ok(())
    }

    /// Launches a kernel.
    ///
    /// # Errors
    /// When the launch is refused.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError>;

    /// Ends the launches since [`Slots::enter`].
    ///
    /// # Errors
    /// When a launch is refused.
    fn leave(&mut self) -> Result<(), TargetError>;

    /// Copies bytes of the slot's buffer to an array on the host.
    ///
    /// # Errors
    /// As [`Slots::load`].
    fn store(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError>;

    /// Notes from the next [`Slots::begin`] on when copies and windows go on.
    fn note_times(&mut self);

    /// What was noted. All work has ended.
    ///
    /// # Errors
    /// When the times can't be had.
    fn times(&mut self) -> Result<Times, TargetError>;

    /// Waits for all work, and says how long it took, with all copies since [`Slots::begin`], where
    /// the device measures time.
    ///
    /// # Errors
    /// When a kernel or a copy failed.
    fn finish(&mut self) -> Result<Option<Duration>, TargetError>;
}
