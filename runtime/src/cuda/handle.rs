//! Names that the driver gives to its objects, and the one promise about threads.
#![allow(unsafe_code)] // The driver's interface is C.

use std::ptr::null_mut;

/// An object of the driver; this crate never looks behind the pointer.
#[derive(Debug)]
pub(super) struct Handle<T>(pub *mut T);

impl<T> Handle<T> {
    /// No object.
    pub const NONE: Self = Self(null_mut());

    /// Whether there is no object.
    pub fn is_none(self) -> bool {
        self.0.is_null()
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

// SAFETY: every function of the driver may be called from any thread in which the object's context
// is current, and each call here is made after `Device::enter`.
unsafe impl<T> Send for Handle<T> {}

// SAFETY: the driver locks its objects itself. Graphs are the exception ("not internally
// synchronized", CUDA Driver API, graph management); they are reached through `&mut` alone.
unsafe impl<T> Sync for Handle<T> {}
