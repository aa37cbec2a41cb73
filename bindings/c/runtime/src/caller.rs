//! Memory of the caller: the one file that follows pointers from C.
//!
//! Each function here checks what can be checked: null, alignment, lengths. The rest is the
//! contract of the interface: a pointer leads to as many values as the call says, and nobody else
//! writes them during the call. For fields the call is `stencil_run_execute`. No Rust code but the
//! functions that C calls hands pointers to this file.

use crate::binding::{Binding, Memory};
use crate::fault::Fault;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{copy_nonoverlapping, with_exposed_provenance, with_exposed_provenance_mut};
use std::slice;
use stencil_runtime::cuda::{Lent, LentStream};

fn checked<T>(pointer: *const T, what: &str) -> Result<(), Fault> {
    if pointer.is_null() {
        return Err(Fault::argument(format!("{what} is null")));
    }
    if !pointer.is_aligned() {
        return Err(Fault::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    Ok(())
}

/// A C string.
///
/// # Errors
/// When it is null or no UTF-8.
pub fn text(pointer: *const c_char, what: &str) -> Result<String, Fault> {
    checked(pointer, what)?;
    // SAFETY: not null, and by the contract it ends with a zero.
    let text = unsafe { CStr::from_ptr(pointer) };
    let text = text.to_str().map_err(|_| Fault::argument(format!("{what} is not UTF-8")))?;
    Ok(text.to_owned())
}

/// A copy of some values.
///
/// # Errors
/// When the pointer is null or not aligned, though there are values.
pub fn values<T: Copy>(pointer: *const T, count: usize, what: &str) -> Result<Vec<T>, Fault> {
    if count == 0 {
        return Ok(Vec::new());
    }
    checked(pointer, what)?;
    if count.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Fault::argument(format!("{what} can't have {count} values")));
    }
    // SAFETY: aligned, not null, and by the contract it leads to so many values.
    Ok(unsafe { slice::from_raw_parts(pointer, count) }.to_vec())
}

/// A value.
///
/// # Errors
/// When the pointer is null or not aligned.
pub fn get<T: Copy>(pointer: *const T, what: &str) -> Result<T, Fault> {
    checked(pointer, what)?;
    // SAFETY: aligned, not null, and by the contract it leads to a value.
    Ok(unsafe { pointer.read() })
}

/// Checks that a result can be written.
///
/// # Errors
/// When the pointer is null or not aligned.
pub fn place<T>(pointer: *mut T, what: &str) -> Result<Place<T>, Fault> {
    checked(pointer.cast_const(), what)?;
    Ok(Place(pointer))
}

/// Where a result goes.
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Writes the result.
    pub fn put(self, value: T) {
        // SAFETY: `place` has checked the pointer; by the contract there is room for a value.
        unsafe { self.0.write(value) };
    }
}

/// The bytes of a number.
///
/// # Errors
/// When the pointer is null.
pub fn number_bytes(pointer: *const c_void, bytes: usize, what: &str) -> Result<Vec<u8>, Fault> {
    values(pointer.cast::<u8>(), bytes, what)
}

/// Writes bytes.
///
/// # Errors
/// When the pointer is null.
pub fn put_bytes(pointer: *mut c_void, bytes: &[u8], what: &str) -> Result<(), Fault> {
    checked(pointer.cast_const().cast::<u8>(), what)?;
    // SAFETY: not null; by the contract there is room, and it is no memory of this library.
    unsafe { copy_nonoverlapping(bytes.as_ptr(), pointer.cast(), bytes.len()) };
    Ok(())
}

/// Writes as much of a text as there is room for, cut between letters, and a zero. Returns the
/// bytes of the whole text.
pub fn put_text(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    let Some(most) = capacity.checked_sub(1).filter(|_| !buffer.is_null()) else {
        return text.len();
    };
    let bytes = text.floor_char_boundary(most.min(text.len()));
    // SAFETY: not null, and by the contract there is room for `capacity` bytes.
    unsafe {
        copy_nonoverlapping(text.as_ptr(), buffer.cast(), bytes);
        buffer.add(bytes).write(0);
    }
    text.len()
}

/// Calls `take` with the cells of a field that lie as an array does; none where they do not.
pub fn dense(binding: &Binding) -> Option<&[u8]> {
    let Memory::Host { address, .. } = &binding.memory else { return None };
    match (binding.bytes(), binding.is_dense()) {
        (0, _) => Some(&[]),
        (bytes, true) => {
            let cells = with_exposed_provenance::<u8>(*address);
            // SAFETY: the binding's constructor has checked that the address is not null, and by
            // the contract so many bytes lie there during the run.
            Some(unsafe { slice::from_raw_parts(cells, bytes) })
        }
        (_, false) => None,
    }
}

/// As [`dense`], to be written.
pub fn dense_mut(binding: &mut Binding) -> Option<&mut [u8]> {
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
pub fn gather(binding: &Binding, to: &mut [u8]) {
    let Memory::Host { address, .. } = &binding.memory else { return };
    let from = with_exposed_provenance::<u8>(*address);
    binding.for_each_run(|offset, place, bytes| {
        if let Some(to) = to.get_mut(place..place + bytes) {
            // SAFETY: by the contract the caller has a cell at each of the offsets, all of which
            // the constructor of the binding found to be addresses.
            unsafe { copy_nonoverlapping(from.wrapping_offset(offset), to.as_mut_ptr(), bytes) };
        }
    });
}

/// The inverse of [`gather`].
pub fn scatter(binding: &Binding, from: &[u8]) {
    let Memory::Host { address, writable: true, .. } = &binding.memory else { return };
    let to = with_exposed_provenance_mut::<u8>(*address);
    binding.for_each_run(|offset, place, bytes| {
        if let Some(from) = from.get(place..place + bytes) {
            // SAFETY: as for `gather`.
            unsafe { copy_nonoverlapping(from.as_ptr(), to.wrapping_offset(offset), bytes) };
        }
    });
}

/// Memory of a device.
pub fn lent(address: u64, bytes: usize) -> Lent {
    // SAFETY: by the contract the caller keeps the memory during the run, and leaves it alone.
    unsafe { Lent::new(address, bytes) }
}

/// A stream, by the address of its handle.
pub fn lent_stream(handle: usize) -> LentStream {
    // SAFETY: by the contract it is a stream of the run's device, and lives during the run.
    unsafe { LentStream::new(with_exposed_provenance_mut(handle)) }
}
