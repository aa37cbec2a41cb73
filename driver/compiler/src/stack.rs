//! Stacks that are larger than that of the thread.

use stencil_dialects::error::Error;

/// Does some work on a stack of so many bytes.
///
/// # Errors
/// When there is no memory for the stack.
pub fn grow<T>(bytes: usize, work: impl FnOnce() -> T) -> Result<T, Error> {
    // `stacker` panics where there is no memory for the stack.
    let none = |_| Error::user(format!("out of memory: no {bytes} bytes for a stack"));
    Vec::<u8>::new().try_reserve_exact(bytes.saturating_mul(2)).map_err(none)?;
    Ok(stacker::grow(bytes, work))
}
