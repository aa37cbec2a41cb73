//! Memory of Python's arrays: the one file of the package that makes promises about pointers.
//!
//! The promise is that of the array protocols: an array's memory lives as long as the array, has
//! the cells that its shape and strides say, and nobody else writes it during a call. The caller of
//! [`given`] holds the arrays for the time of the call, and releases Python's lock only meanwhile.
#![allow(unsafe_code)]

use crate::arrays::{Cells, Place};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;
use std::slice;
use stencil_compiler::Object;
use stencil_runtime::cuda::{Lent, LentStream};
use stencil_runtime::host::{Given, device_memory, host_memory};

/// The memory of an array.
pub fn given(cells: &Cells) -> Given {
    match cells.place {
        // SAFETY: the promise of the array protocols.
        Place::Host => unsafe {
            host_memory(cells.address as usize, Some(cells.strides.clone()), cells.writable)
        },
        // SAFETY: as above; the work is put into the stream in which the array is used.
        Place::Cuda(_) => unsafe { device_memory(cells.address, Some(cells.strides.clone())) },
    }
}

/// Device memory of an array, as a run takes it that is sent.
pub fn lent(cells: &Cells) -> Lent {
    // SAFETY: as for `given`.
    unsafe { Lent::new(cells.address, cells.bytes()) }
}

/// Machine code from the cache, whose key names this version of the compiler and this processor.
pub fn kept_object(bytes: Vec<u8>) -> Object {
    // SAFETY: the file of the cache holds its key and a hash of the bytes, and the user's folder is
    // trusted as far as Python's own compiled files.
    unsafe { stencil_compiler::kept_object(bytes) }
}

/// A stream, by its handle as a number.
pub fn stream(handle: usize) -> LentStream {
    // SAFETY: the handle comes from the library that owns the stream, or from the caller, who
    // promises the same as for an array.
    unsafe { LentStream::new(with_exposed_provenance_mut::<c_void>(handle)) }
}

/// The head of what a capsule of DLPack leads to (`DLTensor`, before version 1).
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

/// A tensor of DLPack.
pub struct Dlpack {
    pub address: u64,
    pub device_type: i32,
    pub device: i32,
    /// Its type as DLPack has it: a code, bits, lanes.
    pub element: (u8, u8, u16),
    pub shape: Vec<i64>,
    /// In cells; none where it lies row-major without padding.
    pub strides: Option<Vec<i64>>,
}

/// Reads a capsule, which must be kept as long as the memory is used.
pub fn dlpack(capsule: &Bound<'_, PyCapsule>) -> PyResult<Dlpack> {
    let pointer = capsule.pointer_checked(Some(c"dltensor"))?.cast::<Tensor>();
    // SAFETY: a capsule of this name leads to a `DLManagedTensor`, which begins with a tensor.
    let tensor = unsafe { pointer.as_ref() };
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or(0);
    let numbers = |from: *const i64| {
        if from.is_null() || dimensions == 0 {
            return None;
        }
        // SAFETY: not null, and there is a number for each dimension.
        Some(unsafe { slice::from_raw_parts(from, dimensions) }.to_vec())
    };
    Ok(Dlpack {
        address: (tensor.data.expose_provenance() as u64).wrapping_add(tensor.offset),
        device_type: tensor.device_type,
        device: tensor.device,
        element: (tensor.code, tensor.bits, tensor.lanes),
        shape: numbers(tensor.shape).unwrap_or_default(),
        strides: numbers(tensor.strides),
    })
}
