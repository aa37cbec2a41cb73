//! How many blocks run at a time, and what the end of a launch costs: an uneven last wave, or the
//! wait for its slowest blocks where launches overlap.

use super::{Work, norm};
use crate::device::{Device, WARP};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// Warps of so many registers a thread that a multiprocessor has registers for. Each scheduler has
/// its part of them: on an H200 8 warps of 190 registers ran at a time, not 10.
pub fn resident_warps(registers: u32, device: &Device) -> u32 {
    let of_warp = registers.max(1).next_multiple_of(device.register_unit) * WARP;
    device.registers / device.schedulers / of_warp * device.schedulers
}

/// The most registers a thread with which a block of so many threads has room on a multiprocessor;
/// 0 for none.
pub fn most_registers(threads: u32, device: &Device) -> u32 {
    let warps = threads.div_ceil(WARP).max(1).div_ceil(device.schedulers);
    let each = device.registers / device.schedulers / (warps * WARP);
    (each / device.register_unit * device.register_unit).min(device.registers_per_thread)
}

/// What a multiprocessor has too little of for one more block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Threads.
    Threads,
    /// Blocks.
    Blocks,
}

impl Display for Limit {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        out.write_str(match self {
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
            Self::Threads => "threads",
            Self::Blocks => "blocks",
        })
    }
}

/// Blocks of a kernel that a multiprocessor holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Residency {
    /// So many.
    pub blocks: u32,
    /// What one more block would lack.
    pub limit: Limit,
    /// Their warps over the most that a multiprocessor holds.
    pub occupancy: f64,
}

/// Blocks of a kernel that a multiprocessor holds at a time: by registers, shared memory and
/// threads. 0 where a block has no room at all.
pub fn resident_blocks(work: &Work, device: &Device) -> u32 {
    residency(work, device).map_or(0, |residency| residency.blocks)
}

/// The same with what limits it; none where a block has no room at all. Of equal limits the one
/// that a kernel can do most about is named.
pub fn residency(work: &Work, device: &Device) -> Option<Residency> {
    let warps = work.threads.div_ceil(WARP).max(1);
    let by_registers = resident_warps(work.registers, device) / warps;
    let shared = work.shared + device.shared_reserved;
    // Kernels without shared memory take none of devices that reserve none.
    let by_shared = device.shared_per_multiprocessor.checked_div(shared).unwrap_or(u64::MAX);
    let by_shared = u32::try_from(by_shared).unwrap_or(u32::MAX);
    let fits = work.shared <= device.shared_per_block && work.threads <= device.threads_per_block;
    let limits = [
        (by_registers, Limit::Registers),
        (by_shared, Limit::SharedMemory),
        (device.threads_per_multiprocessor / (warps * WARP), Limit::Threads),
        (device.blocks_per_multiprocessor, Limit::Blocks),
    ];
    let (blocks, limit) = limits.into_iter().min_by_key(|(blocks, _)| *blocks)?;
    let most = f64::from(device.threads_per_multiprocessor / WARP);
    let occupancy = f64::from(blocks * warps) / most;
    (fits && blocks > 0).then_some(Residency { blocks, limit, occupancy })
}

/// The time of blocks that run `slots` at a time over the time that full waves would take, and not
/// less than that. A last wave that fills the fraction `r` of the device takes 0.55 + 0.5 r of a
/// whole wave's time, and never more than one: on an H200, waves of 0.39 and 0.79 took 0.73 and
/// 0.96. A few blocks more find room beside others, because not all take the same time: a wave of
/// 0.07 took only 0.14.
pub fn waves(blocks: f64, slots: f64) -> f64 {
    let rest = (blocks / slots).fract();
    with_last(blocks / slots, (0.55 + 0.5 * rest).min(1.0).min(2.0 * rest))
}

/// The same of blocks that all take the same time, so that a few more find no room beside others.
pub fn even_waves(blocks: f64, slots: f64) -> f64 {
    let rest = (blocks / slots).fract();
    with_last(blocks / slots, if rest > 0.0 { (0.55 + 0.5 * rest).min(1.0) } else { 0.0 })
}

/// The time of so many waves, whose last takes a part of a whole one's time.
fn with_last(waves: f64, last: f64) -> f64 {
    if waves > 0.0 { (waves.floor() + last) / waves } else { 1.0 }
}

/// The fewest bands with which launches overlap. Of fewer, each waits for all: for itself and two
/// neighbours.
pub const BANDS: f64 = 3.0;

/// How sharply the longer of work and wait decides where launches overlap: the exponent of their
/// norm. On an H200 launches of 2.0, 1.5 and 1.1 waves whose slowest blocks took 2 others' time
/// took 1.2, 1.4 and 1.6 of their work's time.
const OVERLAP: f64 = 3.0;

/// The time of a launch that overlaps with the next: of all its work, were the device full, and of
/// the life of its slowest block.
pub fn overlapped(work: f64, life: f64) -> f64 {
    norm(&[work, life], OVERLAP)
}

/// How much longer a launch takes than its blocks would in full waves, at least 1.
pub fn stretch(work: &Work, slots: f64) -> f64 {
    if work.bands >= BANDS && work.blocks > slots {
        overlapped(1.0, slots / work.blocks)
    } else {
        waves(work.blocks, slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::H200;

    #[test]
    fn each_limit_binds() {
        let work = Work { threads: 32, registers: 128, ..Work::default() };
        let resident = |work: Work| resident_blocks(&work, &H200);
        assert_eq!(resident(work.clone()), 16);
        assert_eq!(resident(Work { registers: 129, ..work.clone() }), 12);
        assert_eq!(resident(Work { registers: 190, ..work.clone() }), 8);
        assert_eq!(resident(Work { registers: 16, ..work.clone() }), 32);
        assert_eq!(resident(Work { threads: 512, registers: 32, ..work.clone() }), 4);
        assert_eq!(resident(Work { shared: 56 * 1024, ..work.clone() }), 4);
        assert_eq!(resident(Work { threads: 1025, registers: 16, ..work.clone() }), 0);
        assert_eq!(resident(Work { threads: 1024, registers: 128, ..work.clone() }), 0);
        let named = |work: Work| {
            let found = residency(&work, &H200).unwrap();
            (found.limit, (found.occupancy * 64.0).round())
        };
        assert_eq!(named(Work { registers: 129, ..work.clone() }), (Limit::Registers, 12.0));
        let shared = Work { shared: 56 * 1024, ..work.clone() };
        assert_eq!(named(shared), (Limit::SharedMemory, 4.0));
        let threads = Work { threads: 1024, registers: 32, ..work.clone() };
        assert_eq!(named(threads), (Limit::Registers, 64.0));
        let threads = Work { threads: 1024, registers: 16, ..work.clone() };
        assert_eq!(named(threads), (Limit::Threads, 64.0));
        assert_eq!(named(Work { registers: 16, ..work.clone() }), (Limit::Blocks, 32.0));
        // A device may reserve no shared memory, and a kernel use none.
        let unreserved = Device { shared_reserved: 0, ..H200.clone() };
        assert_eq!(resident_blocks(&work, &unreserved), 16);
    }

    #[test]
    fn a_block_has_as_many_registers_as_its_warps_find_room_for() {
        assert_eq!(
            [32, 256, 288, 384, 768, 1024].map(|threads| most_registers(threads, &H200)),
            [255, 255, 168, 168, 80, 64]
        );
        for threads in (32..=1024).step_by(32) {
            let (most, warps) = (most_registers(threads, &H200), threads / 32);
            assert!(resident_warps(most, &H200) >= warps);
            assert!(most == H200.registers_per_thread || resident_warps(most + 1, &H200) < warps);
        }
    }

    #[test]
    fn the_last_wave_takes_more_than_half_of_a_whole_ones_time() {
        // 2,112 blocks of a warp fill an H200 with 16 warps a multiprocessor once.
        assert_eq!(waves(2112.0, 2112.0), 1.0);
        assert!((waves(2112.0 + 1056.0, 2112.0) - 1.8 / 1.5).abs() < 1e-12);
        assert!((waves(4200.0, 2112.0) - 2.0 / (4200.0 / 2112.0)).abs() < 1e-12);
        assert!((waves(2112.0 + 211.2, 2112.0) - 1.2 / 1.1).abs() < 1e-12);
        assert_eq!(waves(0.0, 2112.0), 1.0);
    }

    #[test]
    fn blocks_that_take_the_same_time_fill_whole_waves() {
        // 11 blocks behind two on each of 132 multiprocessors: 0.57 of a wave more.
        assert!((even_waves(275.0, 264.0) * 275.0 / 264.0 - 1.571).abs() < 0.001);
        assert!((waves(275.0, 264.0) * 275.0 / 264.0 - 1.083).abs() < 0.001);
        assert_eq!([132.0, 264.0].map(|blocks| even_waves(blocks, 132.0)), [1.0, 1.0]);
        // A launch takes a whole wave's time at least, but for the part without a block.
        assert!((even_waves(66.0, 132.0) - 0.8 / 0.5).abs() < 1e-12);
    }

    #[test]
    fn launches_that_overlap_wait_for_their_blocks() {
        let work = |bands| Work { blocks: 360.0, bands, ..Work::default() };
        assert!((stretch(&work(4.0), 132.0) - 1.016).abs() < 0.001);
        assert_eq!(stretch(&work(2.0), 132.0), waves(360.0, 132.0));
        assert_eq!(stretch(&work(4.0), 360.0), 1.0);
    }
}
