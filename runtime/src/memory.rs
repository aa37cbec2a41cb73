//! Memory of this machine: how much is free, and a refusal before more than that is spent.

use crate::array::Backing;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A run needs more memory than there is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the run needs {} of memory for its fields, and {} are free on this machine; use smaller \
     sizes",
    gibibytes(*needed),
    gibibytes(*free)
)]
pub struct TooLittleMemory {
    /// Bytes needed.
    pub needed: u64,
    /// Bytes free.
    pub free: u64,
}

/// Memory of the host for the arrays of a run out of core.
#[derive(Clone, Debug)]
pub struct HostMemory {
    /// Bytes for the arrays; none for all that are free.
    pub bytes: Option<u64>,
    /// The folder of the files that hold arrays where memory is too small.
    pub folder: PathBuf,
}

impl HostMemory {
    /// Where arrays of so many bytes together lie.
    pub fn backing(&self, needed: u64) -> Backing {
        match self.bytes.or_else(|| available(Path::new("/"))) {
            Some(bytes) if needed > bytes => Backing::Files(self.folder.clone()),
            _ => Backing::Memory,
        }
    }
}

/// Fewer bytes are not worth a look, which reads several files.
const LEAST_BYTES: u64 = 16 << 20;

/// Checks that so many bytes are free, where the system tells. A few megabytes always pass.
///
/// # Errors
/// Both numbers, where they are not.
pub fn require(needed: u64) -> Result<(), TooLittleMemory> {
    require_of(needed, || available(Path::new("/")))
}

/// [`require`] with the amount of free memory, which is looked up for large amounts alone.
fn require_of(needed: u64, free: impl FnOnce() -> Option<u64>) -> Result<(), TooLittleMemory> {
    if needed < LEAST_BYTES {
        return Ok(());
    }
    match free() {
        Some(free) if needed > free => Err(TooLittleMemory { needed, free }),
        _ => Ok(()),
    }
}

/// Bytes that a process can still use: those of the machine, or of its control group if that has
/// fewer. None where `root` does not tell.
fn available(root: &Path) -> Option<u64> {
    let machine = number_of(&root.join("proc/meminfo"), "MemAvailable:").map(|kib| kib << 10);
    let own = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let group = left_of_group(&root.join("sys/fs/cgroup").join(own));
    let all = left_of_group(&root.join("sys/fs/cgroup"));
    [machine, group, all].into_iter().flatten().min()
}

/// What a control group may still use; the cache of files gives way.
fn left_of_group(group: &Path) -> Option<u64> {
    let number = |name: &str| read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (most, used) = (number("memory.max")?, number("memory.current")?);
    let cache = number_of(&group.join("memory.stat"), "inactive_file").unwrap_or(0);
    Some(most.saturating_sub(used.saturating_sub(cache)))
}

/// The number behind a word at the begin of a line.
fn number_of(file: &Path, word: &str) -> Option<u64> {
    let text = read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

fn gibibytes(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{bytes} bytes"),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_machine_and_group_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(available(folder.path()), None);
        write("proc/meminfo", "MemTotal:  24000 kB\nMemAvailable:   1000 kB\n");
        assert_eq!(available(folder.path()), Some(1_024_000));
        write("proc/self/cgroup", "0::/user/one\n");
        write("sys/fs/cgroup/user/one/memory.max", "900000\n");
        write("sys/fs/cgroup/user/one/memory.current", "500000\n");
        write("sys/fs/cgroup/user/one/memory.stat", "anon 7\ninactive_file 100000\n");
        assert_eq!(available(folder.path()), Some(500_000));
        write("sys/fs/cgroup/user/one/memory.max", "max\n");
        assert_eq!(available(folder.path()), Some(1_024_000));
    }

    #[test]
    fn a_refusal_has_both_numbers() {
        let least = LEAST_BYTES;
        assert_eq!(require_of(least - 1, || unreachable!("a look at the system")), Ok(()));
        assert_eq!(require_of(least, || None), Ok(()));
        assert_eq!(require_of(least, || Some(least)), Ok(()));
        let refused = TooLittleMemory { needed: least, free: least - 1 };
        assert_eq!(require_of(least, || Some(least - 1)), Err(refused));
        let refused = TooLittleMemory { needed: 720_000_000_000, free: 900 << 20 };
        let text = "the run needs 670.6 GiB of memory for its fields, and 900.0 MiB are free on \
                    this machine; use smaller sizes";
        assert_eq!(refused.to_string(), text);
    }
}
