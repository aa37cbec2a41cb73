//! The end of a tool at a signal such as SIGINT: temporary files go first.

use crate::whole_file::remove_unfinished;
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A second SIGINT within this time counts as the first. Nobody presses Ctrl-C twice
/// within it.
const REPEAT_WINDOW: Duration = Duration::from_millis(100);

/// The signals that people, shells and schedulers end a process with. SIGPIPE is not among them:
/// Rust ignores it, and the write fails.
const ENDS: [i32; 11] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
    SIGABRT,
];

/// From now on, a signal that asks the process to end first removes what is unfinished
/// ([`remove_unfinished`]). Then it ends the process, as it would have without this. At SIGINT
/// (Ctrl-C) `ends_by_itself` is asked first: if it returns true, the tool goes on and ends in
/// order. A second SIGINT within 100 ms counts as the first: `timeout` and some shells send it to
/// the process and to its group.
///
/// A signal that the process was started to ignore stays ignored: SIGHUP under `nohup`, SIGINT and
/// SIGQUIT in the background of a script. One that is caught already stays with who catches it:
/// SIGPROF with a profiler.
///
/// A file that reaches the limit on its size (SIGXFSZ, `ulimit -f`) does not end the process: the
/// write fails, as on a full disk.
///
/// # Errors
/// When the system refuses the handler.
pub fn end_in_order(mut ends_by_itself: impl FnMut() -> bool + Send + 'static) -> io::Result<()> {
    // The flag is not read. With a handler the write fails, and the process goes on.
    flag::register(SIGXFSZ, Arc::default())?;
    let taken = taken_signals();
    let is_heard = |signal: &i32| taken & (1 << (signal - 1)) == 0;
    let mut signals = Signals::new(ENDS.into_iter().filter(is_heard))?;
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

/// The signals that the process ignores or catches: signal `n` is bit `n - 1`. None where the
/// system has no `/proc`.
fn taken_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let masks = [mask("SigIgn:"), mask("SigCgt:")].into_iter().flatten();
    masks.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok()).fold(0, |all, one| all | one)
}
