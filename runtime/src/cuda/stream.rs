//! A stream: work that a device does in order. Streams are independent of each other.
#![allow(unsafe_code)] // The driver's interface is C.

use super::device::Device;
use super::error::CudaError;
use super::handle::Handle;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// A stream that somebody else owns: a `CUstream` of the driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LentStream(Handle<sys::CUstream_st>);

impl LentStream {
    /// A stream by its handle; null is the default stream.
    ///
    /// # Safety
    /// The stream is one of the device on which it is used, and lives while a program has it.
    pub unsafe fn new(handle: *mut c_void) -> Self {
        Self(Handle(handle.cast()))
    }
}

/// A stream of a device.
#[derive(Debug)]
pub(super) struct Stream {
    handle: Handle<sys::CUstream_st>,
    lent: bool,
    device: Arc<Device>,
}

impl Stream {
    /// A stream with no work, which waits for no other stream.
    pub fn new(device: &Arc<Device>) -> Result<Arc<Self>, CudaError> {
        device.enter()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        let mut handle = null_mut();
        // SAFETY: the context is current; the driver writes one handle, which `drop` destroys.
        device.ok("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut handle, flags) })?;
        Ok(Arc::new(Self { handle: Handle(handle), lent: false, device: Arc::clone(device) }))
    }

    /// A stream of somebody else; work is put behind the work that it has.
    pub fn lent(device: &Arc<Device>, stream: LentStream) -> Arc<Self> {
        Arc::new(Self { handle: stream.0, lent: true, device: Arc::clone(device) })
    }

    /// Its device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The driver's handle.
    pub fn raw(&self) -> sys::CUstream {
        self.handle.0
    }

    /// Makes the device's context the current one of the thread.
    pub fn enter(&self) -> Result<(), CudaError> {
        self.device.enter()
    }

    /// Waits for all of its work. The context must be current.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the stream lives until `drop`.
        self.ok("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.handle.0) })
    }

    /// The outcome of a call on this stream.
    pub fn ok(&self, call: &'static str, result: CUresult) -> Result<(), CudaError> {
        self.device.ok(call, result)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.lent {
            return;
        }
        // Nothing can be done about a failure here.
        let _ = self.enter();
        // SAFETY: all that works on the stream holds it and is gone; the device is still open.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.handle.0) };
    }
}
