//! The end of a tool whose work crashes in code of others: a message and exit code 1, in place of a
//! signal.
#![allow(unsafe_code, reason = "handlers of these signals may do little, which no type says")]

use rustix::stdio::stderr;
use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
use signal_hook::low_level::{emulate_default_handler, exit};
use std::io;

/// Bytes of a message at most.
pub const MOST: usize = 256;

/// From now on, a crash is told by the message that `message` gives; its result is the number of
/// bytes that it filled. Where there are none, the crash ends the process as it would have.
/// `message` runs in a handler: it may neither take memory nor wait.
///
/// # Errors
/// When the system refuses the handler.
pub fn tell(message: fn(&mut [u8; MOST]) -> usize) -> io::Result<()> {
    for signal in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV] {
        let crashed = move || {
            let mut text = [0; MOST];
            let length = message(&mut text);
            if let Some(text) = text.get(..length).filter(|text| !text.is_empty()) {
                let _ = rustix::io::write(stderr(), text);
                exit(1);
            }
            let _ = emulate_default_handler(signal);
        };
        // SAFETY: the handler calls `message`, which keeps to what its contract says, `write`,
        // `_exit`, and what signal-hook says may be called; it does not return to the fault.
        unsafe { signal_hook_registry::register_signal_unchecked(signal, crashed)? };
    }
    Ok(())
}
