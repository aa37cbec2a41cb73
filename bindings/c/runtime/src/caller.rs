//! Memory of the caller: the one file that follows pointers from C.
//!
//! Each function here checks what can be checked: null, alignment, lengths. The rest is the
//! contract of the interface: a pointer leads to as many values as the call says, and nobody else
//! writes them during the call. For fields the call is `stencil_run_execute`. No Rust code but the
//! functions that C calls hands pointers to this file.

use crate::fault::Fault;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::copy_nonoverlapping;
use std::slice;
use stencil_runtime::cpu::Code;
use stencil_runtime::cuda::LentStream;
use stencil_runtime::host::{Given, device_memory, host_memory};

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

/// Code for processors that is linked into the process, with the symbol of its table.
#[derive(Debug)]
pub struct Linked {
    symbol: String,
    table: usize,
}

/// The code of a table with a symbol.
///
/// # Errors
/// When the pointer is null or not aligned.
pub fn linked(symbol: String, table: *const c_void) -> Result<Linked, Fault> {
    checked(table.cast::<usize>(), "the code")?;
    Ok(Linked { symbol, table: table.expose_provenance() })
}

// SAFETY: by the contract of `stencil_load_linked` the table is what the compiler made under this
// symbol, and it is linked into the process, where it stays.
unsafe impl Code for Linked {
    fn symbol(&self, name: &str) -> Result<usize, String> {
        let Self { symbol, table } = self;
        // The files of `--emit=c` have the name of the output behind that of the plan.
        let end = symbol.strip_prefix(name);
        match end.is_some_and(|end| end.is_empty() || end.starts_with('_')) {
            true => Ok(*table),
            false => Err(format!("it is {symbol}, not {name}")),
        }
    }
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

/// Memory of the host, from its cell of index 0 in each dimension.
pub fn host(address: usize, strides: Option<Vec<i64>>, writable: bool) -> Given {
    // SAFETY: the contract of the interface.
    unsafe { host_memory(address, strides, writable) }
}

/// Memory of the run's device, from its cell of index 0 in each dimension.
pub fn device(address: u64, strides: Option<Vec<i64>>) -> Given {
    // SAFETY: by the contract the caller keeps the memory during the run, and leaves it alone.
    unsafe { device_memory(address, strides) }
}

/// A stream; none where it is null.
pub fn stream(handle: *mut c_void) -> Option<LentStream> {
    // SAFETY: by the contract it is a stream of the run's device, and lives during the run.
    (!handle.is_null()).then(|| unsafe { LentStream::new(handle) })
}
