//! How long a tile of a wavefront takes, from what a point of it moves and from the device.
//!
//! Source: PeerWave (see `model/wavefront.rs`), table 1 and equation 1. The paper measures both
//! numbers in a run on a part of the data; here they follow from numbers of the device.

use super::{SHARPNESS, norm};
use crate::device::{Device, WARP};

/// What a tile's time is made of, in seconds: the paper's `d` and `tau_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Of one diagonal: the points of a tile with the same time.
    pub diagonal: f64,
    /// Of the wait before a tile and the signal behind it.
    pub handover: f64,
}

/// What a point of a sweep moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Values of the same sweep that it reads.
    pub current: u32,
    /// Values that it reads in fields as large as its own: of the sweep before, or constant.
    pub old: u32,
    /// Values that it stores.
    pub stored: u32,
}

impl Pace {
    /// Of blocks that keep values in memory: a thread has a row, and so many threads are on a
    /// multiprocessor. A diagonal takes the time of its loads one behind the other, or that of all
    /// its accesses, whose lanes lie in different rows.
    pub fn in_memory(swept: Swept, threads: u64, device: &Device) -> Self {
        let wait = if swept.old > 0 { device.fetch_clocks } else { 0.0 };
        let accesses = f64::from(swept.current + swept.old + swept.stored);
        let warps = threads.div_ceil(WARP.into()) as f64;
        let terms = [device.diagonal_clocks + wait, accesses * warps * device.scattered_clocks];
        Self {
            diagonal: norm(&terms, SHARPNESS) / device.clock,
            // A block does nothing else while it waits or signals.
            handover: 2.0 * device.handover_clocks / device.clock,
        }
    }

    /// Of blocks that keep values in registers: a lane has some rows.
    pub fn in_registers(swept: Swept, rows: u32, device: &Device) -> Self {
        let more = f64::from((swept.old + swept.stored).saturating_sub(1));
        let row = device.lane_clocks + more * device.value_clocks;
        Self {
            diagonal: f64::from(rows) * row / device.clock,
            // One warp waits while another signals.
            handover: device.handover_clocks / device.clock,
        }
    }

    /// Seconds of a tile of so many diagonals, with its handover: `w_t d + tau_s`, equation 1 and
    /// the sum in equation 3.
    pub fn tile(&self, width: u64) -> f64 {
        width as f64 * self.diagonal + self.handover
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::H200;

    fn near(seconds: f64, clocks: f64) {
        let found = seconds * H200.clock;
        assert!((found / clocks - 1.0).abs() < 0.01, "{found} {clocks}");
    }

    /// Eight warps of four accesses need 736 clocks beside 700 of latency, and 32 need 2,944.
    #[test]
    fn a_diagonal_in_memory_waits_or_is_full() {
        let swept = Swept { current: 3, old: 0, stored: 1 };
        near(Pace::in_memory(swept, 1024, &H200).diagonal, 2957.0);
        near(Pace::in_memory(swept, 256, &H200).diagonal, 905.0);
        near(Pace::in_memory(swept, 1, &H200).diagonal, 701.0);
        let older = Swept { old: 1, ..swept };
        near(Pace::in_memory(older, 1, &H200).diagonal, 1150.0);
        near(Pace::in_memory(older, 1, &H200).handover, 1600.0);
    }

    #[test]
    fn a_diagonal_in_registers_has_the_rows_of_a_lane() {
        let swept = Swept { current: 3, old: 0, stored: 1 };
        let pace = Pace::in_registers(swept, 2, &H200);
        near(pace.diagonal, 120.0);
        near(pace.tile(32), 800.0 + 32.0 * 120.0);
        near(Pace::in_registers(Swept { old: 2, ..swept }, 1, &H200).diagonal, 130.0);
    }
}
