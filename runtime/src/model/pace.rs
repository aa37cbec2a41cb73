//! How long a tile of a wavefront takes, from what a point of it moves and from the device.
//!
//! Source: PeerWave (see `model/wavefront.rs`), table 1 and equation 1. The paper measures both
//! numbers in a run on a part of the data (section 5); so does [`Pace::of_runs`]. Without such a
//! run they follow from numbers of the device.

use super::norm;
use super::wavefront::Wave;
use crate::device::{Device, WARP};

/// How sharply the longer of waits and accesses decides: the exponent of their norm.
const SHARPNESS: f64 = 3.0;

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

    /// From measured sweeps of one kernel with tiles of several widths, with their seconds: the
    /// least squares of the relative errors of equation 3, which is linear in both numbers. None
    /// where all tiles are as wide, or some number is not positive. A handover is never negative.
    pub fn of_runs(runs: &[(Wave, f64)]) -> Option<Self> {
        let (mut squares, mut mixed, mut ones, mut sums) = (0.0, 0.0, 0.0, (0.0, 0.0));
        for (wave, seconds) in runs {
            let tiles = wave.critical_path()? as f64 / wave.sweeps.max(1) as f64 / seconds;
            let diagonals = tiles * wave.width as f64;
            squares += diagonals * diagonals;
            mixed += diagonals * tiles;
            ones += tiles * tiles;
            sums = (sums.0 + diagonals, sums.1 + tiles);
        }
        let determinant = squares * ones - mixed * mixed;
        let positive = |number: f64| number.is_finite() && number > 0.0;
        if !positive(squares) || determinant <= 1e-9 * squares * ones {
            return None;
        }
        let diagonal = (sums.0 * ones - sums.1 * mixed) / determinant;
        let handover = (sums.1 * squares - sums.0 * mixed) / determinant;
        let alone = Self { diagonal: sums.0 / squares, handover: 0.0 };
        let found = if handover < 0.0 { alone } else { Self { diagonal, handover } };
        positive(found.diagonal).then_some(found)
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

    /// Sweeps of three widths by hand: 10 tiles of 8 times and 6 of 16 with 2 us a time and 4 us a
    /// tile take 200 and 216 us. The pace is found again; a third run that takes 10 % longer moves
    /// it by less.
    #[test]
    fn a_pace_of_measured_sweeps() {
        let run = |tiles, width, seconds| {
            let wave = Wave { counts: vec![1], tiles, width, resident: 1, ..Wave::default() };
            (wave, seconds)
        };
        let exact = [run(10, 8, 200e-6), run(6, 16, 216e-6)];
        let pace = Pace::of_runs(&exact).unwrap();
        assert!((pace.diagonal - 2e-6).abs() < 1e-12 && (pace.handover - 4e-6).abs() < 1e-12);
        let more = [exact.as_slice(), &[run(4, 32, 1.1 * 272e-6)]].concat();
        let near = Pace::of_runs(&more).unwrap();
        assert!((near.diagonal / 2e-6 - 1.0).abs() < 0.2 && near.handover >= 0.0, "{near:?}");
        assert_eq!(Pace::of_runs(&exact[..1]), None);
        assert_eq!(Pace::of_runs(&[run(10, 8, 0.0), run(6, 16, 1.0)]), None);
        // Wide tiles that take less for their times than narrow ones have no negative handover.
        let odd = Pace::of_runs(&[run(10, 8, 160e-6), run(5, 16, 200e-6)]).unwrap();
        assert_eq!(odd.handover, 0.0);
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
