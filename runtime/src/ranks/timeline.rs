//! When each device of a run computes, and when it waits for cells of others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Launches of a device that are noted; a run may have many more.
pub const MOST_LAUNCHES: usize = 1000;

/// Collects the times of all devices of a run in this process.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The origin of times by the host's clock.
    pub(super) origin: Instant,
    tracks: Arc<Mutex<Vec<Track>>>,
}

/// The times of a device. Those of devices whose clocks differ begin at the start of the run, where
/// all of them wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// Its number in the run.
    pub device: usize,
    /// The launches that it took part in, in order.
    pub spans: Vec<Span>,
    /// Launches behind them that were not noted.
    pub left_out: u64,
}

/// A launch of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the work before it had ended.
    pub free: Duration,
    /// When it began: before it, the device received cells or waited for other devices.
    pub begin: Duration,
    /// When it ended.
    pub end: Duration,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { origin: Instant::now(), tracks: Arc::default() }
    }
}

impl Timeline {
    /// Adds a line.
    pub(crate) fn add(&self, track: Track) {
        self.tracks.lock().unwrap_or_else(PoisonError::into_inner).push(track);
    }

    /// The times of all devices, by their numbers.
    pub fn tracks(&self) -> Vec<Track> {
        let mut tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tracks.sort_by_key(|track| track.device);
        tracks
    }
}
