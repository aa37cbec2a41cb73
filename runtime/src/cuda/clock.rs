//! Points in the order of the device's work, and the time between two of them.

use super::{Cuda, CudaError};
use cudarc::driver::sys;
use std::ffi::c_uint;
use std::ptr::null_mut;
use std::time::Duration;

/// A point in the order of the device's work.
#[derive(Debug)]
pub struct Event<'c> {
    cuda: &'c Cuda,
    handle: sys::CUevent,
}

impl<'c> Event<'c> {
    /// A point that is nowhere yet.
    pub fn new(cuda: &'c Cuda) -> Result<Event<'c>, CudaError> {
        let mut event = Event { cuda, handle: null_mut() };
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint;
        cuda.ok("cuEventCreate", unsafe { sys::cuEventCreate(&mut event.handle, flags) })?;
        Ok(event)
    }

    /// Puts the point after all work so far.
    pub fn record(&self) -> Result<(), CudaError> {
        self.cuda.ok("cuEventRecord", unsafe { sys::cuEventRecord(self.handle, self.cuda.stream) })
    }

    /// Waits until the point is reached; not at all if it was never put anywhere.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.cuda.ok("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.handle) })
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        let _ = self.cuda.enter();
        if !self.handle.is_null() {
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle) };
        }
    }
}

/// Measures time on the device.
#[derive(Debug)]
pub struct Clock<'c> {
    cuda: &'c Cuda,
    from: Event<'c>,
    to: Event<'c>,
}

impl<'c> Clock<'c> {
    /// Not started.
    pub fn new(cuda: &'c Cuda) -> Result<Clock<'c>, CudaError> {
        Ok(Clock { cuda, from: Event::new(cuda)?, to: Event::new(cuda)? })
    }

    /// Begins to measure.
    pub fn start(&self) -> Result<(), CudaError> {
        self.from.record()
    }

    /// Waits for all work since the start and says how long it took.
    pub fn stop(&self) -> Result<Duration, CudaError> {
        self.to.record()?;
        self.cuda.synchronize()?;
        let mut milliseconds = 0f32;
        self.cuda.ok("cuEventElapsedTime", unsafe {
            sys::cuEventElapsedTime_v2(&mut milliseconds, self.from.handle, self.to.handle)
        })?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) * 1e-3).unwrap_or_default())
    }
}
