//! Standard output of a tool: either all of a text is written, or there is an error.
//!
//! A process may be started without a standard output (`>&-` in a shell). Before `main`, Rust's
//! library opens `/dev/null` in its place, so that every write would succeed and the result would
//! be lost. A constructor of the process therefore looks before the library does, and opens
//! `/dev/full` there. A file name that leads to standard output, such as `/dev/stdout`, then fails
//! too.
//!
//! A pipe whose reader has gone, as `head` does, is an error too, because not everything was
//! written. It is of the kind [`io::ErrorKind::BrokenPipe`], about which the tools say nothing.

use std::io::{self, Stdout, Write};

/// Writes a text to standard output.
///
/// # Errors
/// The system's, with its kind; where standard output is closed, too.
pub fn print(text: &[u8]) -> io::Result<()> {
    write(|out| out.write_all(text))
}

/// Lets `body` write to standard output.
///
/// # Errors
/// As for [`print()`], and those of `body`.
pub fn write(body: impl FnOnce(&mut Stdout) -> io::Result<()>) -> io::Result<()> {
    let written = if at_start::was_closed() {
        Err(io::Error::other("it is closed; leave it open, or name a file to write"))
    } else {
        let mut out = io::stdout();
        body(&mut out).and_then(|()| out.flush())
    };
    written.map_err(|error| io::Error::new(error.kind(), format!("standard output: {error}")))
}

/// A copy of an open descriptor, which shares its position. The number must be that of one.
///
/// # Errors
/// Those of the system.
#[cfg(unix)]
pub(crate) fn copy_of(number: i32) -> io::Result<std::fs::File> {
    // SAFETY: the caller has found the number among the process's open descriptors. The borrow ends
    // with this function, and the copy has an owner of its own.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned().map(std::fs::File::from)
}

#[cfg(target_os = "linux")]
mod at_start {
    use rustix::fs::{Mode, OFlags};
    use std::hint::black_box;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::sync::atomic::{AtomicBool, Ordering};

    static CLOSED: AtomicBool = AtomicBool::new(false);

    // SAFETY: the section holds functions of this type, which the loader calls before `main`. The
    // function needs nothing that is set up later: it makes system calls and sets an atomic.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        if rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_ok() {
            return;
        }
        CLOSED.store(true, Ordering::Relaxed);
        // Without `/dev/full`, the standard library opens `/dev/null` as ever.
        let Ok(full) = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty()) else { return };
        if full.as_raw_fd() == rustix::stdio::raw_stdout() {
            let _ = full.into_raw_fd();
        } else {
            // An error leaves it closed.
            let _ = rustix::stdio::dup2_stdout(&full);
        }
    }

    pub fn was_closed() -> bool {
        // The use keeps the constructor in the program.
        black_box(&LOOK);
        CLOSED.load(Ordering::Relaxed)
    }
}

#[cfg(not(target_os = "linux"))]
mod at_start {
    /// Elsewhere nobody looks.
    pub fn was_closed() -> bool {
        false
    }
}
