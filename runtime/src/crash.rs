//! The end of a tool whose work crashes in code of others: a message and exit code 1, in place of
//! a signal.
#![allow(unsafe_code, reason = "handlers of these signals may do little, which no type says")]

use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, c_int, sigaction};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The signals of a crash, with what was done at each before.
static BEFORE: [(c_int, OnceLock<sigaction>); 5] = [
    (SIGABRT, OnceLock::new()),
    (SIGBUS, OnceLock::new()),
    (SIGFPE, OnceLock::new()),
    (SIGILL, OnceLock::new()),
    (SIGSEGV, OnceLock::new()),
];

/// The sentence for a crash, ended by a zero.
static RUNNING: OnceLock<&'static [AtomicU8]> = OnceLock::new();

/// From now on, a crash while `running` holds a text is told with it, and ends the process with
/// code 1. Where it is empty, the crash does what it did before.
///
/// # Errors
/// When the system refuses the handler.
pub fn tell(running: &'static [AtomicU8]) -> io::Result<()> {
    if RUNNING.set(running).is_err() {
        return Ok(());
    }
    for (signal, before) in &BEFORE {
        let mut old = MaybeUninit::uninit();
        // SAFETY: all zeros are an action without flags and blocked signals. The handler has the
        // type of one without information, and runs on the stack that Rust's own handler has, so
        // that the overflow of another one is told too. The system writes the old action.
        let result = unsafe {
            let mut action: sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = crashed as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            sigaction(*signal, &action, old.as_mut_ptr())
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, and so it has written the action.
        let _ = before.set(unsafe { old.assume_init() });
    }
    Ok(())
}

/// The handler. It takes no memory and waits for nothing.
extern "C" fn crashed(signal: c_int) {
    let running = RUNNING.get().copied().unwrap_or_default();
    let text = running.iter().map(|byte| byte.load(Ordering::Acquire));
    let mut text = text.take_while(|byte| *byte != 0).peekable();
    if text.peek().is_some() {
        let mut message = [0; 512];
        let before = b"error: ".iter().copied();
        let parts = message.iter_mut().zip(before.chain(text).chain([b'\n']));
        let length = parts.map(|(slot, byte)| *slot = byte).count();
        // SAFETY: both may be called in a handler, and the message has so many bytes.
        unsafe {
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), length);
            libc::_exit(1);
        }
    }
    let before = BEFORE.iter().find(|(one, _)| *one == signal);
    if let Some(before) = before.and_then(|(_, before)| before.get()) {
        // SAFETY: the action is one that the system gave; the fault then happens again.
        unsafe { sigaction(signal, before, null_mut()) };
    }
}
