//! Memory of the host that a device copies from and to by itself.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::CudaError;
use super::handle::Handle;
use super::stream::Stream;
use crate::array::{Array, Backing, Element};
use crate::execute::TargetError;
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

/// The bytes of an array on the host.
#[derive(Debug)]
pub(super) enum Memory {
    Pinned(Pinned),
    /// In a file. The driver copies such bytes by pinned memory of its own: a call returns when it
    /// has read them, or when the device's have come.
    File(Array),
}

impl Memory {
    /// So many zeros.
    pub fn zeros(
        stream: &Arc<Stream>,
        bytes: usize,
        backing: &Backing,
    ) -> Result<Self, TargetError> {
        Ok(match backing {
            Backing::Memory => Self::Pinned(Pinned::zeros(stream, bytes)?),
            Backing::Files(_) => Self::File(Array::zeros_on(Element::U8, &[bytes], backing)?),
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Pinned(memory) => memory.len(),
            Self::File(array) => array.len(),
        }
    }

    /// The bytes. No copy is under way.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pinned(memory) => memory.bytes_mut(),
            Self::File(array) => array.bytes_mut(),
        }
    }

    /// Where a byte lies that it has.
    pub fn at(&mut self, byte: usize) -> *mut u8 {
        match self {
            Self::Pinned(memory) => memory.at(byte),
            Self::File(array) => array.bytes_mut().as_mut_ptr().wrapping_add(byte),
        }
    }
}
