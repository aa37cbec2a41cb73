//! Memory of the device.

use super::{Cuda, CudaError};
use cudarc::driver::sys::{self, CUresult};

/// A block of device memory, freed when dropped.
#[derive(Debug)]
pub struct Memory<'c> {
    cuda: &'c Cuda,
    /// Where it begins.
    pub address: sys::CUdeviceptr,
    /// Its size.
    pub bytes: usize,
}

impl<'c> Memory<'c> {
    /// Memory filled with zeros.
    pub fn new(cuda: &'c Cuda, bytes: usize) -> Result<Memory<'c>, CudaError> {
        let mut address = 0;
        // The driver refuses to allocate nothing.
        match unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1)) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = cuda.memory()?;
                let device = cuda.facts.name.clone();
                return Err(CudaError::OutOfMemory { device, wanted: bytes as u64, free, total });
            }
            result => cuda.ok("cuMemAlloc", result)?,
        }
        let memory = Memory { cuda, address, bytes };
        cuda.ok("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(address, 0, bytes.max(1), cuda.stream)
        })?;
        cuda.synchronize()?;
        Ok(memory)
    }

    /// Starts a copy of another block of the same size into this one.
    pub fn copy_from(&self, other: &Memory<'_>) -> Result<(), CudaError> {
        self.cuda.ok("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(
                self.address,
                other.address,
                self.bytes.min(other.bytes),
                self.cuda.stream,
            )
        })
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        let _ = self.cuda.enter();
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}
