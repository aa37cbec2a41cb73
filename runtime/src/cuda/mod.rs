//! The CUDA driver as a [`Target`](crate::execute::Target).
//!
//! The driver library is looked for at run time; without one, or without a device, every entry
//! point returns an error. [`Cuda`] is an open device, [`Program`] a loaded plan with its buffers.
//!
//! Each file has one object. An object owns its handle and holds the object that it lives in, so
//! that they are dropped in order.
//!
//! | file | object | holds |
//! |---|---|---|
//! | `device.rs` | a device with its primary context | |
//! | `stream.rs` | work in order | its device |
//! | `module.rs` | loaded code | its device |
//! | `kernel.rs` | a kernel, its facts | its module |
//! | `call.rs` | a launch as the driver takes it | |
//! | `buffer.rs` | device memory | its stream |
//! | `clock.rs` | events, time between two | their stream |
//! | `code.rs` | the code of a plan | its device |
//! | `chunk.rs` | launches and looks that become a graph | |
//! | `graph.rs` | launches sent together | their stream |
//! | `look.rs` | copies of a condition, memory of the host for them | their stream |
//! | `program.rs` | a plan's kernels and buffers as a target | all of these |
//! | `joint.rs` | memory of several devices | the devices |
//! | `copies.rs` | copies of a program's buffers | |
//! | `lent.rs` | memory of the caller in a program | |
//! | `peer.rs` | buffers as other devices see them | a point of their stream |
//! | `pinned.rs` | memory of the host for copies | its stream |
//! | `room.rs` | whether memory is free | |
//! | `slots.rs` | windows of a grid | streams of their own |
//! | `strips.rs` | copies of stretches of a slot | both slots hold them |
//! | `recording.rs` | a run, to be sent again and again | memory of a program |
//!
//! Safety, once for all of them: handles come from the driver and are private; the context is made
//! current before each group of calls; a program waits for its work before it goes; copies are
//! checked against the size of the buffer, launches against the parameters that a kernel declares.
#![deny(clippy::undocumented_unsafe_blocks)]

mod buffer;
mod call;
mod chunk;
mod clock;
mod code;
mod copies;
mod device;
mod error;
mod graph;
mod handle;
mod joint;
mod kernel;
mod lent;
mod look;
mod module;
mod null;
mod peer;
mod pinned;
mod program;
mod recording;
mod room;
mod slots;
mod stream;
mod strips;

use crate::plan::Plan;
use buffer::Buffer;
pub use buffer::Lent;
use clock::Clock;
pub use code::Code;
use device::Device;
pub use device::DeviceFacts;
pub use error::CudaError;
pub use graph::GraphSettings;
pub use joint::Peers;
pub use kernel::KernelFacts;
pub use program::Program;
pub use recording::Recording;
use std::sync::Arc;
pub use stream::LentStream;
use stream::Stream;

/// A CUDA device, ready for work. Clones are the same device; it closes with the last of them and
/// of its programs.
#[derive(Clone, Debug)]
pub struct Cuda {
    device: Arc<Device>,
}

impl Cuda {
    /// Opens device number `ordinal`, from 0.
    ///
    /// # Errors
    /// Without a driver, with one that is too old, without such a device.
    pub fn open(ordinal: i32) -> Result<Cuda, CudaError> {
        Ok(Cuda { device: Arc::new(Device::open(ordinal)?) })
    }

    /// Facts of the device.
    pub fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }

    /// Lets devices reach each other's memory, where they are connected. Where all are, they can
    /// have memory together.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn connect(all: &[Cuda]) -> Result<Option<Peers>, CudaError> {
        let mut joint = true;
        for one in all {
            joint &= one.device.maps_memory()?;
            for other in all {
                joint &= one.device.connect(&other.device)?;
            }
        }
        let devices = all.iter().map(|one| Arc::clone(&one.device));
        Ok(joint.then(|| Peers(devices.collect())))
    }

    /// Bytes of device memory that are free, and all.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        self.device.memory()
    }

    /// Measures a copy within device memory: bytes per second, reads and writes counted together.
    /// Copies 1 GiB, or an eighth of what is free if that is less, 20 times.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn copy_bandwidth(&self) -> Result<f64, CudaError> {
        const TIMES: u32 = 20;
        let (free, _) = self.memory()?;
        let bytes = (1u64 << 30).min(free / 8).max(1) as usize;
        let stream = Stream::new(&self.device)?;
        let (from, to) = (Buffer::new(&stream, bytes)?, Buffer::new(&stream, bytes)?);
        let clock = Clock::new(&stream)?;
        (0..3).try_for_each(|_| to.copy_from(&from))?;
        clock.start()?;
        (0..TIMES).try_for_each(|_| to.copy_from(&from))?;
        let elapsed = clock.stop()?;
        Ok(2.0 * bytes as f64 * f64::from(TIMES) / elapsed.as_secs_f64())
    }

    /// Loads the code of a plan, PTX text or a cubin, for work in a stream of its own.
    ///
    /// # Errors
    /// When the driver rejects the code, when a kernel is missing or has other parameters than in
    /// the plan, when a block needs more shared memory than there is.
    pub fn load(&self, plan: &Plan, code: &[u8]) -> Result<Program, CudaError> {
        self.code(plan, code)?.program()
    }

    /// Loads the code of a plan, for programs in several streams.
    ///
    /// # Errors
    /// As [`Cuda::load`].
    pub fn code(&self, plan: &Plan, code: &[u8]) -> Result<Code, CudaError> {
        Code::load(&self.device, plan, code)
    }
}
