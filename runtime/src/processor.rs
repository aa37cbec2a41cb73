//! A processor as data: what the schedule of a program on it depends on.

use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;

/// A processor, or the part of one that a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// Threads that it runs at once.
    pub threads: u32,
    /// Bytes of a core's first cache of data.
    pub l1: u64,
    /// Bytes of a core's second cache.
    pub l2: u64,
    /// Bytes of the third cache for each of the threads that share it; of the second where there is
    /// none.
    pub l3: u64,
    /// Bytes of its widest vectors.
    pub vector: u32,
}

/// The parts of the text, in order.
const PARTS: [&str; 5] = ["threads", "l1", "l2", "l3", "vector"];

/// The first cache where the system does not tell its size: most processors have at least this.
const L1: u64 = 32 << 10;
/// The second cache where the system does not tell its size.
const L2: u64 = 256 << 10;

impl Processor {
    /// The processor that this program runs on. Its caches are read once.
    pub fn host() -> Self {
        static CACHES: LazyLock<[u64; 3]> = LazyLock::new(|| {
            let l2 = cache("2").unwrap_or(L2);
            [cache("1").unwrap_or(L1), l2, cache("3").unwrap_or(l2).max(l2)]
        });
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let ([l1, l2, l3], threads) = (*CACHES, u32::try_from(threads).unwrap_or(u32::MAX));
        Self { threads, l1, l2, l3, vector: vector() }
    }

    /// A typical processor with vectors of so many bytes, for code that runs elsewhere.
    pub const fn named(vector: u32) -> Self {
        Self { threads: 8, l1: L1, l2: 1 << 20, l3: 2 << 20, vector }
    }

    /// Registers for vectors that it has at least: AVX-512 has 32, other vectors 16 or more.
    pub const fn registers(&self) -> usize {
        if self.vector >= 64 { 32 } else { 16 }
    }
}

/// `threads=8 l1=32768 l2=1048576 l3=2097152 vector=64`.
impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, l1, l2, l3, vector } = self;
        write!(f, "threads={threads} l1={l1} l2={l2} l3={l3} vector={vector}")
    }
}

impl FromStr for Processor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let example = Self::named(32);
            format!("'{text}' is no processor; expected one like '{example}'")
        };
        let mut numbers = [0; 5];
        let mut parts = text.split(' ');
        for (number, name) in numbers.iter_mut().zip(PARTS) {
            let part = parts.next().and_then(|part| part.strip_prefix(name)?.strip_prefix('='));
            *number = part.and_then(|part| part.parse::<u32>().ok()).ok_or_else(wrong)?;
        }
        let [threads, l1, l2, l3, vector] = numbers;
        let caches = l1 > 0 && l2 > 0 && l3 > 0;
        let fits = threads > 0 && caches && (8..=256).contains(&vector);
        if parts.next().is_some() || !fits || !vector.is_power_of_two() {
            return Err(wrong());
        }
        Ok(Self { threads, l1: l1.into(), l2: l2.into(), l3: l3.into(), vector })
    }
}

/// The bytes of a core's data cache of a level, from Linux: its share where several cores have one.
fn cache(level: &str) -> Option<u64> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
        let (Some(found), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
        else {
            continue;
        };
        if found.trim() == level && kind.trim() != "Instruction" {
            let cores = read("shared_cpu_list").map_or(1, |list| processors(list.trim()));
            return bytes(size.trim()).map(|bytes| bytes / cores);
        }
    }
    None
}

/// How many processors a list like `0-3,8` has; 1 at least.
fn processors(list: &str) -> u64 {
    let count = |part: &str| -> Option<u64> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
    };
    list.split(',').filter_map(count).fold(0, u64::saturating_add).max(1)
}

/// `32K` as 32,768.
fn bytes(size: &str) -> Option<u64> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("", 0)];
    let (digits, shift) =
        units.iter().find_map(|(unit, shift)| Some((size.strip_suffix(unit)?, *shift)))?;
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (1..=u64::from(u32::MAX)).contains(&bytes).then_some(bytes)
}

#[cfg(target_arch = "x86_64")]
fn vector() -> u32 {
    let wide = std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512vl");
    match (wide, std::arch::is_x86_feature_detected!("avx2")) {
        (true, _) => 64,
        (_, true) => 32,
        _ => 16,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector() -> u32 {
    16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_read_as_it_was_written() {
        for processor in [Processor::host(), Processor::named(64)] {
            assert_eq!(processor.to_string().parse(), Ok(processor));
        }
        for text in [
            "",
            "threads=8 l1=32768 l2=1048576",
            "threads=8 l1=32768 l2=1048576 l3=2097152 vector=24",
            "threads=0 l1=32768 l2=1048576 l3=2097152 vector=32",
            "threads=8 l1=32768 l2=1048576 l3=2097152 vector=32 more",
            "l1=32768 threads=8 l2=1048576 l3=2097152 vector=32",
        ] {
            assert!(text.parse::<Processor>().is_err(), "{text}");
        }
    }

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(processors("0-3,8"), 5);
        assert_eq!(processors("7"), 1);
        assert_eq!(processors("3-0"), 1);
        assert_eq!(processors(""), 1);
    }

    #[test]
    fn sizes_of_caches_have_units() {
        assert_eq!(bytes("32K"), Some(32 << 10));
        assert_eq!(bytes("2M"), Some(2 << 20));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes("K"), None);
        assert_eq!(bytes("0K"), None);
        assert_eq!(bytes("99999999999G"), None);
    }
}
