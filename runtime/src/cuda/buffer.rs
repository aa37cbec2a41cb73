//! Memory of a device.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::CudaError;
use super::joint::Joint;
use super::module::Variable;
use super::stream::Stream;
use crate::launch::Copy;
use cudarc::driver::sys::{self, CUresult};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Memory of a device that somebody else owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Lent {
    /// So many bytes from an address of a device.
    ///
    /// # Safety
    /// The memory stays allocated, and nobody else uses it, while a program has it.
    pub unsafe fn new(address: u64, bytes: usize) -> Self {
        Self { address, bytes }
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How large it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Display for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from {:#x} on", self.bytes, self.address)
    }
}

/// Where a buffer of another device of this process lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    address: sys::CUdeviceptr,
    bytes: usize,
}

/// A block of device memory, used in the order of a stream and freed when dropped, unless it is
/// lent.
#[derive(Debug)]
pub(super) struct Buffer {
    address: sys::CUdeviceptr,
    bytes: usize,
    home: Home,
    stream: Arc<Stream>,
}

/// Who has the memory of a buffer.
#[derive(Debug)]
enum Home {
    /// The buffer.
    Own,
    /// Somebody else.
    Lent,
    /// Several devices.
    Joint { _memory: Arc<Joint> },
}

impl Buffer {
    /// Memory whose bytes have no value yet.
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
        Ok(Self { address, bytes, home: Home::Own, stream: Arc::clone(stream) })
    }

    /// Memory of a variable, whose module outlives it.
    pub fn variable(stream: &Arc<Stream>, variable: &Variable) -> Self {
        let Variable { address, bytes } = *variable;
        Self { address, bytes, home: Home::Lent, stream: Arc::clone(stream) }
    }

    /// Memory that devices have together.
    pub fn joint(stream: &Arc<Stream>, joint: &Arc<Joint>) -> Self {
        let (address, bytes) = (joint.address(), joint.bytes());
        Self {
            address,
            bytes,
            home: Home::Joint { _memory: Arc::clone(joint) },
            stream: Arc::clone(stream),
        }
    }

    /// A buffer of which only a part lies in memory, at the place that it has from this address on.
    pub fn placed(stream: &Arc<Stream>, address: sys::CUdeviceptr, bytes: usize) -> Self {
        Self { address, bytes, home: Home::Lent, stream: Arc::clone(stream) }
    }

    /// Memory that is lent; none where the driver knows no block that holds all of it.
    pub fn lent(stream: &Arc<Stream>, lent: Lent) -> Result<Option<Self>, CudaError> {
        stream.enter()?;
        let Lent { address, bytes } = lent;
        let (mut base, mut size) = (0, 0);
        // SAFETY: the context is current; the driver writes two numbers, and knows its own blocks.
        let result = unsafe { sys::cuMemGetAddressRange_v2(&mut base, &mut size, address.max(1)) };
        if matches!(result, CUresult::CUDA_ERROR_NOT_FOUND | CUresult::CUDA_ERROR_INVALID_VALUE) {
            return Ok(None);
        }
        stream.ok("cuMemGetAddressRange", result)?;
        let end = address.checked_add(bytes as u64);
        let inside = base <= address && end.is_some_and(|end| end - base <= size as u64);
        let stream = Arc::clone(stream);
        Ok(inside.then_some(Self { address, bytes, home: Home::Lent, stream }))
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

    /// The buffer as other devices of this process see it.
    pub fn view(&self) -> View {
        View { address: self.address, bytes: self.bytes }
    }

    /// Starts a copy of some bytes of a buffer of another device to the same place here; false
    /// where they reach beyond one of the two. The context must be current, and the other buffer
    /// stays until the copy ended.
    pub fn fetch(&self, other: View, bytes: &Range<usize>) -> Result<bool, CudaError> {
        if bytes.start > bytes.end || bytes.end > self.bytes.min(other.bytes) {
            return Ok(false);
        }
        let (to, from) = (self.address + bytes.start as u64, other.address + bytes.start as u64);
        // SAFETY: both have so many bytes from there on. The devices of a process share its
        // addresses, so that the driver knows where each lies.
        let result = unsafe { sys::cuMemcpyAsync(to, from, bytes.len(), self.stream.raw()) };
        self.stream.ok("cuMemcpyAsync", result).map(|()| true)
    }

    /// Fills bytes from the `first` on from the host, and waits for that; none beyond its end. The
    /// context must be current.
    pub fn upload(&self, first: usize, bytes: &[u8]) -> Result<(), CudaError> {
        let first = first.min(self.bytes);
        let count = bytes.len().min(self.bytes - first);
        // SAFETY: both sides have so many bytes, and the host's are borrowed until the copy ended.
        self.stream.ok("cuMemcpyHtoDAsync", unsafe {
            let (to, from) = (self.address + first as u64, bytes.as_ptr().cast());
            sys::cuMemcpyHtoDAsync_v2(to, from, count, self.stream.raw())
        })?;
        self.stream.synchronize()
    }

    /// Reads bytes from the `first` on to the host, and waits for that; those beyond its end stay.
    /// The context must be current.
    pub fn download(&self, first: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        let first = first.min(self.bytes);
        let count = bytes.len().min(self.bytes - first);
        // SAFETY: both sides have so many bytes, and the host's are borrowed until the copy ended.
        self.stream.ok("cuMemcpyDtoHAsync", unsafe {
            let to = bytes.as_mut_ptr().cast();
            sys::cuMemcpyDtoHAsync_v2(to, self.address + first as u64, count, self.stream.raw())
        })?;
        self.stream.synchronize()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !matches!(self.home, Home::Own) {
            return;
        }
        let _ = self.stream.enter();
        // SAFETY: the memory is freed once; the driver waits for the work that uses it.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}
