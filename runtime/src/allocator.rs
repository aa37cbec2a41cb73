//! The allocator of the tools: a small piece that the system does not give ends the process with a
//! message and exit code 1, in place of a signal. A large one that is not given is told to the
//! caller, who knows what it was for.
#![allow(unsafe_code, reason = "the interface of allocators is unsafe")]

use crate::whole_file;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// Bytes from which callers ask whether there is memory ([`crate::array`]).
const LARGE: usize = 1 << 20;

/// The allocator.
#[derive(Debug)]
pub struct Told;

// SAFETY: all calls are passed on as they are, and all results passed back.
unsafe impl GlobalAlloc for Told {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(old, layout) }
    }
}

/// What the system gave for so many bytes.
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() && bytes < LARGE {
        end();
    }
    memory
}

/// Ends the process. Nothing here takes memory.
#[cold]
fn end() {
    let text = b"error: the system gives no more memory; use smaller sizes or fewer threads, or \
                 raise the limit\n";
    whole_file::try_to_remove_unfinished();
    let _ = std::io::stderr().write_all(text);
    // SAFETY: it does nothing but end the process.
    unsafe { libc::_exit(1) }
}
