//! How fast devices send cells to each other, as data of a machine, and a short probe of it.

use super::channels::channels;
use super::link::{Link, LinkError, checked};
use super::run::PATIENCE;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How fast a device sends cells to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRate {
    /// Time of a message whatever its size, in nanoseconds.
    pub nanoseconds: u32,
    /// Bytes that one device sends, in MB a second.
    pub megabytes: u32,
}

/// Messages of a probe: an even number, there and back.
const MESSAGES: u64 = 40;
/// Bytes of a long message.
const LONG: usize = 4 << 20;

impl LinkRate {
    /// Threads of a process: the median of five probes of one machine, in the record
    /// `2026-11-27-cpu-link.tsv`.
    pub const OF_THREADS: Self = Self { nanoseconds: 2_594, megabytes: 29_094 };

    /// The time of some messages, in seconds.
    pub fn seconds(self, messages: f64, bytes: f64) -> f64 {
        messages * f64::from(self.nanoseconds) * 1e-9
            + bytes / f64::from(self.megabytes.max(1)) * 1e-6
    }

    /// Measures how fast threads of this process send cells to each other.
    ///
    /// # Errors
    /// When a thread fails.
    pub fn measure_threads() -> Result<Self, LinkError> {
        let mut links = channels(2, PATIENCE);
        let mut rates: Vec<Result<Self, LinkError>> = Vec::new();
        std::thread::scope(|scope| {
            let threads = links.iter_mut().map(|link| scope.spawn(|| Self::measure(link, 2)));
            let threads: Vec<_> = threads.collect();
            rates.extend(threads.into_iter().filter_map(|thread| thread.join().ok()));
        });
        let gone = || LinkError::Ended { device: 0, reason: "its thread is gone".to_owned() };
        rates.into_iter().next().unwrap_or_else(|| Err(gone()))
    }

    /// Measures the connection between the first two devices. All devices call it, and all get the
    /// same rate. Takes about a second at 1 GB/s.
    ///
    /// # Errors
    /// When a device fails, and with one device alone.
    pub fn measure(link: &mut dyn Link, devices: usize) -> Result<Self, LinkError> {
        let rate = match link.device() {
            0 | 1 => {
                let short = round_trips(link, 8)?;
                let long = round_trips(link, LONG)?;
                let megabytes = LONG as f64 / long.saturating_sub(short).as_secs_f64().max(1e-9);
                Self {
                    nanoseconds: short.as_nanos().try_into().unwrap_or(u32::MAX),
                    megabytes: (megabytes * 1e-6).max(1.0) as u32,
                }
            }
            _ => Self { nanoseconds: 0, megabytes: 0 },
        };
        if link.device() > 0 {
            let found = link.receive(0)?;
            let found = checked(&found, 0, (MESSAGES, 16))?;
            let number = |at: usize| {
                let bytes = found.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, u32::from_le_bytes)
            };
            return Ok(Self { nanoseconds: number(0), megabytes: number(4) });
        }
        for other in 1..devices {
            let numbers = [rate.nanoseconds.to_le_bytes(), rate.megabytes.to_le_bytes()].concat();
            link.send(other, [MESSAGES.to_le_bytes().to_vec(), numbers].concat())?;
        }
        Ok(rate)
    }
}

/// The time of a message of some bytes from memory to memory of another device, the least of
/// several.
fn round_trips(link: &mut dyn Link, bytes: usize) -> Result<Duration, LinkError> {
    let mut memory = vec![0u8; bytes];
    let (own, mut least) = (link.device(), Duration::MAX);
    let other = 1 - own;
    for number in 0..MESSAGES / 2 {
        let begin = Instant::now();
        for sender in [0, 1] {
            if sender == own {
                let mut message = number.to_le_bytes().to_vec();
                message.extend_from_slice(&memory);
                link.send(other, message)?;
            } else {
                let message = link.receive(other)?;
                memory.copy_from_slice(checked(&message, other, (number, bytes + 8))?);
            }
        }
        least = least.min(begin.elapsed() / 2);
    }
    Ok(least)
}

/// `10000:2000`, nanoseconds and MB a second.
impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.nanoseconds, self.megabytes)
    }
}

impl FromStr for LinkRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(':');
        let numbers = numbers.and_then(|(nanoseconds, megabytes)| {
            let megabytes = megabytes.parse().ok().filter(|rate| *rate > 0)?;
            Some(Self { nanoseconds: nanoseconds.parse().ok()?, megabytes })
        });
        numbers.ok_or_else(|| {
            "expected nanoseconds of a message and MB a second, such as 10000:50000".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        let rate: LinkRate = "10000:50000".parse().unwrap();
        assert_eq!(rate.to_string(), "10000:50000");
        for text in ["", "10000", "1:0", "-1:5", "1:2:3", "1.5:2"] {
            assert!(text.parse::<LinkRate>().is_err(), "{text}");
        }
    }

    /// Two messages of 10 us, and 100 MB at 50 GB a second, which take 2 ms.
    #[test]
    fn time_by_hand() {
        let rate = LinkRate { nanoseconds: 10_000, megabytes: 50_000 };
        assert!((rate.seconds(2.0, 1e8) - 2.02e-3).abs() < 1e-9);
    }

    #[test]
    fn all_devices_get_one_rate() {
        let mut links = channels(3, PATIENCE);
        let rates: Vec<LinkRate> = std::thread::scope(|scope| {
            let threads: Vec<_> = links
                .iter_mut()
                .map(|link| scope.spawn(|| LinkRate::measure(link, 3).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(rates.iter().all(|rate| *rate == rates[0] && rate.megabytes > 0), "{rates:?}");
    }
}
