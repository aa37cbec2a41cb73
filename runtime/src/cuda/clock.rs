//! Points in the order of a stream's work, and the time between two of them.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::CudaError;
use super::handle::Handle;
use super::stream::Stream;
use cudarc::driver::sys;
use std::ffi::c_uint;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

/// A point in the order of a stream's work.
#[derive(Debug)]
pub(super) struct Event {
    handle: Handle<sys::CUevent_st>,
    stream: Arc<Stream>,
}

impl Event {
    /// A point that is nowhere yet.
    pub fn new(stream: &Arc<Stream>) -> Result<Self, CudaError> {
        Self::with(stream, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// As [`Event::new`], for other streams to wait for: its time is not taken, which is faster.
    pub fn untimed(stream: &Arc<Stream>) -> Result<Self, CudaError> {
        Self::with(stream, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn with(stream: &Arc<Stream>, flags: sys::CUevent_flags) -> Result<Self, CudaError> {
        stream.enter()?;
        let mut handle = null_mut();
        // SAFETY: the context is current; the driver writes one handle, which `drop` destroys.
        stream.ok("cuEventCreate", unsafe { sys::cuEventCreate(&mut handle, flags as c_uint) })?;
        Ok(Self { handle: Handle(handle), stream: Arc::clone(stream) })
    }

    /// Puts the point after all work so far. The context must be current.
    pub fn record(&self) -> Result<(), CudaError> {
        // SAFETY: event and stream live, and are of one context.
        let result = unsafe { sys::cuEventRecord(self.handle.0, self.stream.raw()) };
        self.stream.ok("cuEventRecord", result)
    }

    /// The work of a stream of any device from now on comes behind the point. The stream's context
    /// must be current.
    pub fn hold(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: both live; the driver keeps what it needs of the event.
        let result = unsafe { sys::cuStreamWaitEvent(stream.raw(), self.handle.0, 0) };
        stream.ok("cuStreamWaitEvent", result)
    }

    /// The time from this point to a later one of the same device. Both are reached, and were made
    /// by [`Event::new`]. The context must be current.
    pub fn until(&self, later: &Event) -> Result<Duration, CudaError> {
        let mut milliseconds = 0f32;
        // SAFETY: both events live and are of one stream; the driver writes one number.
        self.stream.ok("cuEventElapsedTime", unsafe {
            sys::cuEventElapsedTime_v2(&mut milliseconds, self.handle.0, later.handle.0)
        })?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) * 1e-3).unwrap_or_default())
    }

    /// Waits until the point is reached; not at all if it was never put anywhere. The context must
    /// be current.
    pub fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the event lives until `drop`.
        self.stream.ok("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.handle.0) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = self.stream.enter();
        // SAFETY: the event is destroyed once; the driver allows it while work is under way.
        let _ = unsafe { sys::cuEventDestroy_v2(self.handle.0) };
    }
}

/// Measures time on the device.
#[derive(Debug)]
pub(super) struct Clock {
    from: Event,
    to: Event,
}

impl Clock {
    /// Not started.
    pub fn new(stream: &Arc<Stream>) -> Result<Self, CudaError> {
        Ok(Self { from: Event::new(stream)?, to: Event::new(stream)? })
    }

    /// Begins to measure. The context must be current.
    pub fn start(&self) -> Result<(), CudaError> {
        self.from.record()
    }

    /// Waits for all work since the start and says how long it took. The context must be current.
    pub fn stop(&self) -> Result<Duration, CudaError> {
        self.to.record()?;
        self.to.stream.synchronize()?;
        self.from.until(&self.to)
    }
}
