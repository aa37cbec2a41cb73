//! Copies of stretches of bytes between two memories of a device.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::CudaError;
use super::stream::Stream;
use crate::execute::Strips;
use cudarc::driver::sys;
use std::ptr::{null, null_mut};

/// Copies stretches between two buffers, given the addresses where these would begin. Stretches
/// with more than `most_pitch` bytes from one to the next are copied one by one.
///
/// # Errors
/// When a copy is refused.
///
/// # Safety
/// Both buffers have memory for all stretches, until the copy ended.
pub unsafe fn copy(
    stream: &Stream,
    [from, to]: [u64; 2],
    strips: &Strips,
    most_pitch: usize,
) -> Result<(), CudaError> {
    let at = |address: u64, byte: usize| address.wrapping_add(byte as u64);
    let flat = |first: usize, bytes: usize| {
        // SAFETY: both buffers have these bytes, as the caller says.
        stream.ok("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(at(to, first), at(from, first), bytes, stream.raw())
        })
    };
    let Strips { first, width, pitch, count } = *strips;
    if count == 1 || width == pitch {
        return flat(first, count * width);
    }
    if pitch > most_pitch {
        return strips.runs().try_for_each(|run| flat(run.start, run.len()));
    }
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: null(),
        srcDevice: at(from, first),
        srcArray: null_mut(),
        srcPitch: pitch,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: at(to, first),
        dstArray: null_mut(),
        dstPitch: pitch,
        WidthInBytes: width,
        Height: count,
    };
    // SAFETY: both buffers have all stretches, as the caller says.
    stream.ok("cuMemcpy2DAsync", unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream.raw()) })
}
