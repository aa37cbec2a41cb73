//! What runs kernels.

use super::TargetError;
use super::slots::Slots;
use crate::array::{Array, Element};
use crate::bind::{Bound, BufferId};
use crate::launch::{Copy, Launch};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// What a target shows to others of its kind in the same process: buffers, and a point in the order
/// of its work.
pub type Shown = Arc<dyn Any + Send + Sync>;

/// A buffer that several devices have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Which.
    pub buffer: BufferId,
    /// Its size.
    pub bytes: usize,
    /// Bytes of it, in the order of their first ones, each with the device on which they should
    /// lie. Others lie beside those that follow.
    pub parts: Vec<(Range<usize>, usize)>,
}

/// Runs kernels: a GPU, or a simulator of one.
pub trait Target {
    /// How many devices it has. Buffers and launches of a plan lie on devices from 0.
    fn devices(&self) -> u32 {
        1
    }

    /// Makes room for these buffers in place of any from before. Cells begin without a value.
    ///
    /// # Errors
    /// When there is too little memory: how much is needed and free.
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError>;

    /// The same device with memory for windows of a grid, if it has such.
    fn slots(&mut self) -> Option<&mut dyn Slots> {
        None
    }

    /// Fills a buffer from the host.
    ///
    /// # Errors
    /// When the copy fails.
    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError>;

    /// Fills a buffer of so many bytes with zeros.
    ///
    /// # Errors
    /// When the device fails, or memory of the host is too small for a copy.
    fn clear(&mut self, buffer: BufferId, bytes: usize) -> Result<(), TargetError> {
        // Zeros take no memory while they are only read.
        self.upload(buffer, Array::zeros(Element::U8, &[bytes])?.bytes())
    }

    /// Makes room for these buffers on one of several devices, which needs so many bytes of them;
    /// the others are never touched. `joint` has the buffers that [`Target::join`] made.
    ///
    /// # Errors
    /// As [`Target::allocate`].
    fn allocate_part(
        &mut self,
        bound: &Bound,
        bytes: u64,
        joint: Option<&Shown>,
    ) -> Result<(), TargetError> {
        let _ = (bytes, joint);
        self.allocate(bound)
    }

    /// Whether it can have buffers together with the other targets of this process: all of them
    /// read and write all cells.
    fn joins(&self) -> bool {
        false
    }

    /// Makes buffers that all targets have together.
    ///
    /// # Errors
    /// When there is too little memory, and a target that joins no others.
    fn join(&mut self, buffers: &[Joined]) -> Result<Shown, TargetError> {
        Err(format!("the target can't have {} buffers with others", buffers.len()).into())
    }

    /// Fills bytes of a buffer from the host, in order with launches.
    ///
    /// # Errors
    /// When the copy fails, or the target is never one of several devices.
    fn put(&mut self, buffer: BufferId, first: usize, bytes: &[u8]) -> Result<(), TargetError> {
        let _ = (first, bytes);
        Err(format!("the target runs alone: it fills buffer {} as a whole", buffer.0).into())
    }

    /// Bytes of a buffer may be loaded by the next launch, and their values must not matter. A
    /// target that looks for mistakes puts noise there.
    ///
    /// # Errors
    /// A buffer that is not there.
    fn scramble(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        let _ = (buffer, runs);
        Ok(())
    }

    /// Bytes of a buffer have no value any more. A target that looks for mistakes refuses to read
    /// them.
    ///
    /// # Errors
    /// A buffer that is not there.
    fn forget(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        let _ = (buffer, runs);
        Ok(())
    }

    /// Whether other targets of the same process may fetch from its buffers without the host.
    fn shows(&self) -> bool {
        false
    }

    /// Shows buffers to other targets of this process, with what the work so far gives them.
    ///
    /// # Errors
    /// A buffer that is not there, and a target that shows nothing.
    fn show(&mut self, buffers: &[BufferId]) -> Result<Shown, TargetError> {
        Err(format!("the target shows none of {} buffers", buffers.len()).into())
    }

    /// Fetches bytes of a buffer that another target shows to the same place, in order with
    /// launches. [`Target::follow`] comes before.
    ///
    /// # Errors
    /// When the copy fails.
    fn fetch(
        &mut self,
        shown: &Shown,
        buffer: BufferId,
        runs: &[Range<usize>],
    ) -> Result<(), TargetError> {
        let _ = (shown, runs);
        Err(format!("the target can't fetch buffer {}", buffer.0).into())
    }

    /// The work from now on comes behind the work that another target had when it showed something.
    ///
    /// # Errors
    /// When it is no such target.
    fn follow(&mut self, shown: &Shown) -> Result<(), TargetError> {
        let _ = shown;
        Err("the target follows no other".into())
    }

    /// Copies a whole buffer into another of the same size.
    ///
    /// # Errors
    /// When the copy fails.
    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError>;

    /// Whether a run on it is waited for. Then a block that waits without end makes a record, which
    /// is read after the run.
    fn watches(&self) -> bool {
        true
    }

    /// Called before the first launch of a run.
    ///
    /// # Errors
    /// When the target can't begin.
    fn begin(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// Launches a kernel; it may run later, but in order.
    ///
    /// # Errors
    /// When the launch is refused.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError>;

    /// Copies rows from one buffer to another; it may run later, but in order with launches.
    ///
    /// # Errors
    /// When the copy is refused.
    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError>;

    /// Waits for all launches and copies since [`Target::begin`]; the run goes on after it, and
    /// buffers may be read before it does.
    ///
    /// # Errors
    /// When a kernel failed.
    fn wait(&mut self) -> Result<(), TargetError>;

    /// Takes a look at the first bytes of a buffer behind the launches so far without a wait;
    /// `values` are the memories that hold values then. Gives the number of the look. None where
    /// the target takes none: then the caller waits and downloads.
    ///
    /// # Errors
    /// When the look is refused.
    fn look_ahead(
        &mut self,
        condition: BufferId,
        bytes: usize,
        values: Vec<BufferId>,
    ) -> Result<Option<u64>, TargetError> {
        let _ = (condition, bytes, values);
        Ok(None)
    }

    /// What a look found, where it is known. All are known behind [`Target::wait`].
    fn found(&mut self, look: u64) -> Option<[u8; 8]> {
        let _ = look;
        None
    }

    /// Drops launches that have not begun and looks, where it can, and waits for the others; the
    /// run goes on behind it.
    ///
    /// # Errors
    /// When a kernel failed.
    fn drop_ahead(&mut self) -> Result<(), TargetError> {
        self.wait()
    }

    /// Waits for all launches since [`Target::begin`]; says how long they took, if the target
    /// measures time.
    ///
    /// # Errors
    /// When a kernel failed.
    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(None)
    }

    /// Notes a point behind the work so far, and says whether it did. A target whose work is done
    /// when a call returns notes none.
    ///
    /// # Errors
    /// When the point can't be noted.
    fn mark(&mut self) -> Result<bool, TargetError> {
        Ok(false)
    }

    /// When the work reached each point of [`Target::mark`] since [`Target::begin`], from the first
    /// one on. All work has ended.
    ///
    /// # Errors
    /// When the times can't be had.
    fn marks(&mut self) -> Result<Vec<Duration>, TargetError> {
        Ok(Vec::new())
    }

    /// Launches a kernel that does nothing so many times; says how long that took together, if the
    /// target can.
    ///
    /// # Errors
    /// When the launches fail.
    fn null(
        &mut self,
        grid: [u32; 3],
        block: [u32; 3],
        times: u32,
    ) -> Result<Option<Duration>, TargetError> {
        let _ = (grid, block, times);
        Ok(None)
    }

    /// Blocks of a kernel, by its place in the plan, that run at once, if the target knows.
    fn resident(&self, kernel: usize) -> Option<u64> {
        let _ = kernel;
        None
    }

    /// Ends a run early: drops launches that have not begun, where it can, and waits for the
    /// others.
    ///
    /// # Errors
    /// When a kernel failed.
    fn abandon(&mut self) -> Result<(), TargetError> {
        self.finish().map(drop)
    }

    /// Reads a buffer to the host, from a byte on.
    ///
    /// # Errors
    /// When the copy fails.
    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError>;
}
