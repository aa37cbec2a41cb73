//! Memory of a device.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::CudaError;
use super::stream::Stream;
use crate::launch::Copy;
use cudarc::driver::sys::{self, CUresult};
use std::sync::Arc;

/// A block of device memory, used in the order of a stream and freed when dropped.
#[derive(Debug)]
pub(super) struct Buffer {
    address: sys::CUdeviceptr,
    bytes: usize,
    stream: Arc<Stream>,
}

impl Buffer {
    /// Memory filled with zeros.
    pub fn new(stream: &Arc<Stream>, bytes: usize) -> Result<Self, CudaError> {
        stream.enter()?;
        let mut address = 0;
        // SAFETY: the context is current; the driver writes one address, which `drop` frees. It
        // refuses to allocate nothing.
        match unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1)) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = stream.device().memory()?;
                let device = stream.device().label().to_owned();
                return Err(CudaError::OutOfMemory { device, wanted: bytes as u64, free, total });
            }
            result => stream.ok("cuMemAlloc", result)?,
        }
        let buffer = Self { address, bytes, stream: Arc::clone(stream) };
        buffer.fill_with_zeros()?;
        stream.synchronize()?;
        Ok(buffer)
    }

    /// Where it begins on the device.
    pub fn address(&self) -> sys::CUdeviceptr {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Starts to fill it with zeros. The context must be current.
    pub fn fill_with_zeros(&self) -> Result<(), CudaError> {
        // SAFETY: the address has at least so many bytes, and they stay until `drop`.
        self.stream.ok("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(self.address, 0, self.bytes.max(1), self.stream.raw())
        })
    }

    /// Starts a copy of another buffer into this one: as many bytes as both have. The context must
    /// be current.
    pub fn copy_from(&self, other: &Buffer) -> Result<(), CudaError> {
        let bytes = self.bytes.min(other.bytes);
        // SAFETY: both have so many bytes; freeing one of them waits for the copy.
        self.stream.ok("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(self.address, other.address, bytes, self.stream.raw())
        })
    }

    /// Starts a copy of some bytes of another buffer into this one; false where they reach beyond
    /// one of the two. The context must be current.
    pub fn copy_part(&self, other: &Buffer, copy: &Copy) -> Result<bool, CudaError> {
        let fits = |first: usize, buffer: &Buffer| {
            first.checked_add(copy.bytes).is_some_and(|end| end <= buffer.bytes)
        };
        if !fits(copy.from_byte, other) || !fits(copy.to_byte, self) {
            return Ok(false);
        }
        let (to, from) =
            (self.address + copy.to_byte as u64, other.address + copy.from_byte as u64);
        // SAFETY: both have so many bytes from there on; freeing one of them waits for the copy.
        let result = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, copy.bytes, self.stream.raw()) };
        self.stream.ok("cuMemcpyDtoDAsync", result).map(|()| true)
    }

    /// Fills its first bytes from the host, and waits for that. The context must be current.
    pub fn upload(&self, bytes: &[u8]) -> Result<(), CudaError> {
        let count = bytes.len().min(self.bytes);
        // SAFETY: both sides have so many bytes, and the host's are borrowed until the copy ended.
        self.stream.ok("cuMemcpyHtoDAsync", unsafe {
            let from = bytes.as_ptr().cast();
            sys::cuMemcpyHtoDAsync_v2(self.address, from, count, self.stream.raw())
        })?;
        self.stream.synchronize()
    }

    /// Reads its first bytes to the host, and waits for that. The context must be current.
    pub fn download(&self, bytes: &mut [u8]) -> Result<(), CudaError> {
        let count = bytes.len().min(self.bytes);
        // SAFETY: both sides have so many bytes, and the host's are borrowed until the copy ended.
        self.stream.ok("cuMemcpyDtoHAsync", unsafe {
            let to = bytes.as_mut_ptr().cast();
            sys::cuMemcpyDtoHAsync_v2(to, self.address, count, self.stream.raw())
        })?;
        self.stream.synchronize()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let _ = self.stream.enter();
        // SAFETY: the memory is freed once; the driver waits for the work that uses it.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}
