//! The end of a tool at a signal such as SIGINT: temporary files go first.

use crate::whole_file::remove_unfinished;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A second SIGINT within this time counts as the first. Nobody presses Ctrl-C twice as fast.
const REPEAT_WINDOW: Duration = Duration::from_millis(100);

/// From now on a signal that asks the process to end removes what is unfinished
/// ([`remove_unfinished`]), and then ends the process as it would have without this. At SIGINT
/// (Ctrl-C) `ends_by_itself` is asked first: if it returns true, the tool goes on and ends in
/// order. A second SIGINT within 100 ms counts as the first: `timeout` and some shells send it to
/// the process and to its group.
///
/// A file that reaches the limit on its size (SIGXFSZ, `ulimit -f`) does not end the process: the
/// write fails, as on a full disk.
///
/// # Errors
/// When the system refuses the handler.
pub fn end_in_order(mut ends_by_itself: impl FnMut() -> bool + Send + 'static) -> io::Result<()> {
    // The flag is not read. With a handler the write fails, and the process goes on.
    flag::register(SIGXFSZ, Arc::default())?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut asked: Option<Instant> = None;
        for signal in signals.forever() {
            if signal == SIGINT {
                if asked.is_some_and(|asked| asked.elapsed() < REPEAT_WINDOW) {
                    continue;
                }
                asked = Some(Instant::now());
                if ends_by_itself() {
                    continue;
                }
            }
            remove_unfinished();
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(())
}
