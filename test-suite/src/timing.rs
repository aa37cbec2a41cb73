//! Times that hold on other machines: processor time, relative to a fixed piece of work.

use crate::{Scratch, tool};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

/// Seconds of the fixed piece of work on the machine of the documented times: two cores of an AMD
/// EPYC 7001 that does nothing else.
const DOCUMENTED: f64 = 0.30;

/// The most that limits grow: no test is made for slower machines.
const MOST: f64 = 4.0;

impl Scratch {
    /// Seconds of processor time that a tool takes in the folder; waiting for other processes does
    /// not count.
    ///
    /// # Panics
    /// When the tool fails.
    pub fn processor_time(&self, name: &str, arguments: &[&str]) -> f64 {
        // `times` prints the shell's own times in its first line, those of what it ran in its
        // second.
        let script = "\"$0\" \"$@\" && times";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(tool(name)).args(arguments).current_dir(self.path());
        let output = shell.output().unwrap_or_else(|error| panic!("a shell: {error}"));
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let seconds = |word: &str| {
            let (minutes, rest) = word.split_once('m')?;
            let rest = rest.trim_end_matches('s').parse::<f64>().ok()?;
            Some(minutes.parse::<f64>().ok()? * 60.0 + rest)
        };
        let children = output.status.success().then(|| text.lines().last()).flatten();
        let time = children.and_then(|line| line.split_whitespace().map(seconds).sum());
        time.unwrap_or_else(|| panic!("{name} {arguments:?}: {errors}{text}"))
    }
}

/// How many times longer a fixed piece of work takes here than on the machine of the documented
/// times: 1 to 4. It has no code of the compiler, so that a compiler that got slower is seen.
pub fn slower() -> f64 {
    static SLOWER: OnceLock<f64> = OnceLock::new();
    *SLOWER.get_or_init(|| {
        let mut times = [(); 3].map(|()| {
            let (begin, before) = (Instant::now(), on_processor());
            work();
            match (before, on_processor()) {
                (Some(before), Some(after)) => after - before,
                _ => begin.elapsed().as_secs_f64(),
            }
        });
        times.sort_by(f64::total_cmp);
        let slower = times[1] / DOCUMENTED;
        println!("a fixed piece of work takes {:.2} s, {slower:.2} of the documented", times[1]);
        slower.clamp(1.0, MOST)
    })
}

/// Seconds that this thread had a processor, where the system tells.
fn on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? * 1e-9)
}

/// Like a compiler's work: many small allocations, names, and maps that do not fit in a cache.
fn work() {
    let mut uses = BTreeMap::new();
    let mut number = 1_u64;
    for _ in 0..150_000 {
        // Constants of Knuth's generator MMIX.
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let users: &mut Vec<String> = uses.entry(format!("value{}", number >> 47)).or_default();
        users.push(format!("user{}", number >> 40));
    }
    let mut names: Vec<_> = uses.values().flatten().collect();
    names.sort();
    assert_eq!(std::hint::black_box(names).len(), 150_000);
}
