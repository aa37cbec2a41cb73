//! Memory of the caller: its functions make a promise when they describe memory, and this file
//! follows the pointers.
#![allow(unsafe_code)] // The memory is that of another program.

use super::binding::{Binding, Given, Memory, Place};
use crate::cuda::Lent;
use std::ptr::{copy_nonoverlapping, with_exposed_provenance, with_exposed_provenance_mut};
use std::slice;

/// Memory of the host. `address` is that of the cell of index 0 in each dimension, with an exposed
/// provenance; strides are in bytes, the slowest dimension first, and may be negative. Without them
/// the cells lie row-major without padding.
///
/// # Safety
/// While a run uses the memory, it has a cell at each index of the shape that it is bound with,
/// nobody else writes it, and nobody else reads it where it is `writable`.
pub unsafe fn host_memory(address: usize, strides: Option<Vec<i64>>, writable: bool) -> Given {
    Given(Place::Host { address, strides, writable })
}

/// Memory of the run's device. `address` is that of the cell of index 0 in each dimension; strides
/// are in bytes, the slowest dimension first. Without them the cells lie row-major without padding.
///
/// # Safety
/// While a run uses the memory, it has a cell at each index of the shape that it is bound with, it
/// stays allocated, and other streams leave it alone.
pub unsafe fn device_memory(address: u64, strides: Option<Vec<i64>>) -> Given {
    Given(Place::Device { address, strides })
}

/// The cells of a field that lie as an array does; none where they do not.
pub(super) fn dense(binding: &Binding) -> Option<&[u8]> {
    let Memory::Host { address, .. } = &binding.memory else { return None };
    match (binding.bytes(), binding.is_dense()) {
        (0, _) => Some(&[]),
        (bytes, true) => {
            let cells = with_exposed_provenance::<u8>(*address);
            // SAFETY: the binding's constructor has checked that the address is not null, and by
            // the promise of `host_memory` so many bytes lie there during the run.
            Some(unsafe { slice::from_raw_parts(cells, bytes) })
        }
        (_, false) => None,
    }
}

/// As [`dense`], to be written.
pub(super) fn dense_mut(binding: &mut Binding) -> Option<&mut [u8]> {
    let Memory::Host { address, writable: true, .. } = &binding.memory else { return None };
    match (binding.bytes(), binding.is_dense()) {
        (0, _) => Some(&mut []),
        (bytes, true) => {
            let cells = with_exposed_provenance_mut::<u8>(*address);
            // SAFETY: as for `dense`; no other slice of this memory is in use.
            Some(unsafe { slice::from_raw_parts_mut(cells, bytes) })
        }
        (_, false) => None,
    }
}

/// Copies the cells of a field to an array's memory of as many bytes.
pub(super) fn gather(binding: &Binding, to: &mut [u8]) {
    let Memory::Host { address, .. } = &binding.memory else { return };
    let from = with_exposed_provenance::<u8>(*address);
    binding.for_each_run(|offset, place, bytes| {
        if let Some(to) = to.get_mut(place..place + bytes) {
            // SAFETY: by the promise of `host_memory` there is a cell at each of the offsets, all
            // of which the constructor of the binding found to be addresses.
            unsafe { copy_nonoverlapping(from.wrapping_offset(offset), to.as_mut_ptr(), bytes) };
        }
    });
}

/// The inverse of [`gather`].
pub(super) fn scatter(binding: &Binding, from: &[u8]) {
    let Memory::Host { address, writable: true, .. } = &binding.memory else { return };
    let to = with_exposed_provenance_mut::<u8>(*address);
    binding.for_each_run(|offset, place, bytes| {
        if let Some(from) = from.get(place..place + bytes) {
            // SAFETY: as for `gather`.
            unsafe { copy_nonoverlapping(from.as_ptr(), to.wrapping_offset(offset), bytes) };
        }
    });
}

/// Memory of a device, as the driver's adapter takes it.
pub(super) fn lent(address: u64, bytes: usize) -> Lent {
    // SAFETY: addresses of devices come from `device_memory` alone.
    unsafe { Lent::new(address, bytes) }
}
