//! Memory of the host that a device copies from and to by itself.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::CudaError;
use super::handle::Handle;
use super::stream::Stream;
use cudarc::driver::sys::{self, CUresult};
use std::ptr::null_mut;
use std::sync::Arc;

/// Bytes of the host's memory that stay where they are.
#[derive(Debug)]
pub(super) struct Pinned {
    first: Handle<u8>,
    bytes: usize,
    stream: Arc<Stream>,
}

impl Pinned {
    /// So many zeros.
    pub fn zeros(stream: &Arc<Stream>, bytes: usize) -> Result<Self, CudaError> {
        stream.enter()?;
        let mut first = null_mut();
        // SAFETY: the context is current; the driver writes one address, which `drop` frees.
        match unsafe { sys::cuMemAllocHost_v2(&mut first, bytes.max(1)) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                return Err(CudaError::OutOfHostMemory { wanted: bytes as u64 });
            }
            result => stream.ok("cuMemAllocHost", result)?,
        }
        let mut pinned = Self { first: Handle(first.cast()), bytes, stream: Arc::clone(stream) };
        pinned.bytes_mut().fill(0);
        Ok(pinned)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes. No copy is under way.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory has so many bytes until `drop`, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.first.0, self.bytes) }
    }

    /// Where a byte lies that it has.
    pub fn at(&self, byte: usize) -> *mut u8 {
        self.first.0.wrapping_add(byte)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.stream.enter();
        // SAFETY: the memory is freed once, when no copy is under way.
        let _ = unsafe { sys::cuMemFreeHost(self.first.0.cast()) };
    }
}
