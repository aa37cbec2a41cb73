//! How long a schedule takes: plain arithmetic on counted work and a device.
//!
//! An analysis counts what a block of each kernel does ([`Work`]); [`predict`] turns that into
//! seconds a step, resource by resource. A kernel is bound by the resource that takes longest, and
//! loses some time to the others: resources overlap, but not fully. A norm of the terms stands for
//! that, between their sum (nothing overlaps) and their maximum (everything does). Its exponents
//! were fitted to the measured rates in `test-suite/bench/results` (decision 046).
//!
//! Sources: the roofline model (Williams, Waterman, Patterson, "Roofline: An Insightful Visual
//! Performance Model for Multicore Architectures", 2009) for the terms; Holewinski, Pouchet,
//! Sadayappan, "High-Performance Code Generation for Stencil Computations on GPU Architectures",
//! section 5, for recomputed halos as work like any other; Little's law for
//! [`Prediction::latency`].

mod pace;
pub mod pyramid;
pub mod relayout;
mod residency;
mod roofline;
mod spread;
pub mod wavefront;

pub use pace::{Pace, Swept};

pub use residency::{
    BANDS, Limit, Residency, most_registers, overlapped, residency, resident_blocks,
    resident_warps, stretch, waves,
};
pub use roofline::Roofline;
pub use spread::expected;

use crate::device::{Device, WARP};
use serde::Serialize;

/// Handovers that a round takes whose blocks exchange rims (decision 048).
const MEETING: f64 = 3.0;

/// How sharply the slowest resource of a multiprocessor decides: the exponent of the norm.
const ON_CHIP: f64 = 2.5;

/// The same of device memory against all else.
const OVERLAP: f64 = 4.0;

/// The part of the halo that comes from device memory: neighbouring tiles run at about the same
/// time, so one finds in the level 2 cache what the other has loaded. Fitted, like the exponents.
const HALO_MISSES: f64 = 0.05;

/// The work of one kernel in a launch. Counts are per block and include the halo, unless stated
/// otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// Blocks of a launch.
    pub blocks: f64,
    /// Bands into which a launch may be cut, so that it overlaps with the next of the same kernel;
    /// 0 for none.
    pub bands: f64,
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread, estimated.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared: u64,
    /// Bytes of its tile's own cells that come from and go to device memory.
    pub own: f64,
    /// Bytes of cells beside the tile that are loaded too.
    pub halo: f64,
    /// Floating-point instructions of a lane on `f32`; a fused multiply-add counts one.
    pub single: f64,
    /// The same on `f64`.
    pub double: f64,
    /// The time of a lane's operations on integers that are no index, in instructions on `f32`.
    pub integers: f64,
    /// Instructions of a warp, whatever they do.
    pub instructions: f64,
    /// Those of its warp with most, where warps differ; else 0.
    pub longest: f64,
    /// Shuffles of a warp.
    pub shuffles: f64,
    /// Bytes that lanes read from and write to shared memory.
    pub exchanged: f64,
    /// Bytes that lanes load from and store to device memory, whatever cache has them.
    pub cached: f64,
    /// Barriers that a thread waits at.
    pub barriers: f64,
    /// Barriers at which all threads of a block wait for rows of others, with nothing else to do.
    pub exchanges: f64,
    /// Rounds after which a block waits for the flags of others.
    pub meetings: f64,
    /// Iterations of loops that wait for device memory.
    pub fetches: f64,
    /// Iterations of other loops.
    pub rounds: f64,
    /// Loads from device memory that iterations of those wait for, one after the other.
    pub waits: f64,
    /// Instructions of a thread that wait for each other: those of divisions, roots and the like.
    pub serial: f64,
    /// Registers that a thread lacks, estimated: it keeps so many values in local memory.
    pub lacking: f64,
    /// Points computed for each point of the result: 1 without a halo.
    pub redundancy: f64,
}

/// Seconds a step, by resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Device memory at the copy rate, and waits for it.
    pub memory: f64,
    /// Floating-point units.
    pub arithmetic: f64,
    /// Slots of the instruction schedulers.
    pub issue: f64,
    /// Exchange between lanes.
    pub shuffle: f64,
    /// Shared memory and the level 1 cache, which share their rate.
    pub shared: f64,
    /// Lives of blocks one after the other, as many at a time as a multiprocessor holds.
    pub latency: f64,
    /// Lost at the end of a launch, when blocks do not fill the device any more.
    pub tail: f64,
    /// Launches.
    pub launch: f64,
    /// All of it.
    pub seconds: f64,
}

impl Prediction {
    /// The terms with their names, in the order of a report.
    pub fn terms(&self) -> [(&'static str, f64); 8] {
        [
            ("memory", self.memory),
            ("arithmetic", self.arithmetic),
            ("issue", self.issue),
            ("shuffle", self.shuffle),
            ("shared", self.shared),
            ("latency", self.latency),
            ("tail", self.tail),
            ("launch", self.launch),
        ]
    }

    /// Adds another one, so many times.
    pub fn add(&mut self, other: &Self, times: f64) {
        for (sum, term) in [
            (&mut self.memory, other.memory),
            (&mut self.arithmetic, other.arithmetic),
            (&mut self.issue, other.issue),
            (&mut self.shuffle, other.shuffle),
            (&mut self.shared, other.shared),
            (&mut self.latency, other.latency),
            (&mut self.tail, other.tail),
            (&mut self.launch, other.launch),
            (&mut self.seconds, other.seconds),
        ] {
            *sum += term * times;
        }
    }
}

/// The time of a step, where one launch of each kernel takes `steps` steps; `None` where a block of
/// a kernel does not fit on a multiprocessor.
pub fn predict(kernels: &[Work], steps: u32, device: &Device) -> Option<Prediction> {
    let mut total = Prediction::default();
    for work in kernels {
        let resident = resident_blocks(work, device);
        if resident == 0 {
            return None;
        }
        let rate = |per_clock: u32| device.per_second(per_clock);
        let warp = f64::from(WARP);
        let together = together(work, resident, device);
        let in_step = in_step(work, resident, device);
        let slots = f64::from(device.multiprocessors) * f64::from(together);
        // Blocks in step load their halos at once, at about that rate whatever the cache holds.
        let halo = if in_step { 1.0 } else { HALO_MISSES };
        let all = |each: f64| work.blocks * each;
        let life = life(work, in_step.then_some(together), device);
        let part = Prediction {
            memory: all(work.own + halo * work.halo) / device.copy_bandwidth
                + all(work.waits * device.load_clocks) / (slots * device.clock),
            arithmetic: all(work.single + work.integers) / device.fma_f32
                + all(work.double) / device.fma_f64,
            issue: all(work.instructions) / rate(device.schedulers),
            shuffle: all(work.shuffles * warp) / rate(device.shuffle_lanes),
            shared: all(work.exchanged + work.cached + spilled(work, resident, device))
                / rate(device.shared_bandwidth),
            latency: all(life) / (slots * device.clock),
            ..Prediction::default()
        };
        let on_chip = [part.arithmetic, part.issue, part.shuffle, part.shared, part.latency];
        let terms = [part.memory, norm(&on_chip, ON_CHIP)];
        // Blocks that go in step overlap nothing.
        let busy = norm(&terms, if in_step { 1.0 } else { OVERLAP });
        // Launches of several kernels in turn wait for each other.
        let stretch = match kernels.len() {
            _ if work.exchanges > 0.0 => residency::even_waves(work.blocks, slots),
            1 => stretch(work, slots),
            _ => waves(work.blocks, slots),
        };
        // However few blocks there are, one of them lives as long.
        let tail = (busy * stretch).max(life / device.clock) - busy;
        let (launch, seconds) = (device.launch_seconds, busy + tail + device.launch_seconds);
        total.add(&Prediction { tail, launch, seconds, ..part }, 1.0 / f64::from(steps.max(1)));
    }
    Some(total)
}

/// Bytes of a block's values in local memory that pass through the level 1 cache, which shares its
/// memory and its rate with shared memory: a value is stored and loaded once in each iteration.
/// Values beyond that cache come from the level 2 cache, at about a quarter of the rate.
fn spilled(work: &Work, resident: u32, device: &Device) -> f64 {
    let held = 4.0 * work.lacking * f64::from(work.threads);
    let resident = f64::from(resident);
    let cache = device.shared_per_multiprocessor as f64 - resident * work.shared as f64;
    let slower = if held * resident > cache { 4.0 } else { 1.0 };
    2.0 * held * work.barriers.max(work.rounds).max(1.0) * slower
}

/// Blocks that a multiprocessor runs at a time. Where blocks exchange rows between steps, there may
/// be fewer of them than it has room for.
fn together(work: &Work, resident: u32, device: &Device) -> u32 {
    let each = (work.blocks / f64::from(device.multiprocessors)).ceil().max(1.0);
    if work.exchanges > 0.0 && each < f64::from(resident) { each as u32 } else { resident }
}

/// Whether the blocks of a multiprocessor that exchange rows between steps load, compute and store
/// at the same times (decision 042): a lone one, and those that all begin with the launch.
fn in_step(work: &Work, resident: u32, device: &Device) -> bool {
    let room = f64::from(device.multiprocessors) * f64::from(resident);
    work.exchanges > 0.0 && (resident == 1 || work.blocks <= room)
}

/// Clocks that a block lives at least, however few others there are. Where so many go in step, the
/// schedulers issue the instructions of all after each exchange, and nothing meanwhile.
fn life(work: &Work, in_step: Option<u32>, device: &Device) -> f64 {
    let own = work.instructions / f64::from(work.threads.div_ceil(WARP).max(1));
    let own = own.max(work.longest);
    let waits = work.barriers * device.barrier_clocks
        + work.exchanges * device.exchange_clocks
        // A block stores rims, raises its flag, sees those of others, and loads what they stored.
        + MEETING * work.meetings * device.handover_clocks;
    if let Some(blocks) = in_step {
        let issued = f64::from(blocks) * work.instructions / f64::from(device.schedulers);
        return waits + issued.max(own * device.issue_clocks);
    }
    device.block_clocks
        + waits
        + work.fetches * device.fetch_clocks
        + work.rounds * device.round_clocks
        // Long operations are instructions too.
        + (work.serial * device.serial_clocks).max(own * device.issue_clocks)
}

/// The root of the sum of powers.
fn norm(terms: &[f64], exponent: f64) -> f64 {
    let largest = terms.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return 0.0;
    }
    let sum: f64 = terms.iter().map(|term| (term / largest).powf(exponent)).sum();
    largest * sum.powf(exponent.recip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::H200;

    /// A copy of 2^28 cells of `f32` by blocks of 1,024 cells.
    fn copy() -> Work {
        Work {
            blocks: 262_144.0,
            threads: 256,
            registers: 16,
            own: 8192.0,
            redundancy: 1.0,
            ..Work::default()
        }
    }

    #[test]
    fn a_copy_runs_at_the_copy_rate() {
        let found = predict(&[copy()], 1, &H200).unwrap();
        // 2 GiB at 4.25 TB/s; 262,144 blocks on 132 x 8 places leave a last wave of 0.24.
        assert!((found.memory - 2_147_483_648.0 / 4.25e12).abs() < 1e-12);
        // Blocks come and go beside that.
        let busy = found.seconds - found.tail - H200.launch_seconds;
        assert!(busy > found.memory && busy < 1.2 * found.memory, "{found:?}");
        assert!(found.tail < 0.005 * found.memory);
        // Two steps a launch halve everything.
        let halved = predict(&[copy()], 2, &H200).unwrap();
        assert!((2.0 * halved.seconds - found.seconds).abs() < 1e-12);
        // Two kernels a step double it.
        assert!(
            (predict(&[copy(), copy()], 1, &H200).unwrap().seconds - 2.0 * found.seconds).abs()
                < 1e-12
        );
    }

    #[test]
    fn every_term_has_its_unit() {
        let work = Work {
            blocks: 132.0,
            threads: 32,
            registers: 32,
            single: 32.0 * 1000.0,
            instructions: 1000.0,
            shuffles: 1000.0,
            exchanged: 128_000.0,
            barriers: 10.0,
            fetches: 2.0,
            rounds: 5.0,
            serial: 100.0,
            ..Work::default()
        };
        let found = predict(&[work], 1, &H200).unwrap();
        let clock = 1.0 / H200.clock;
        let near = |term: f64, clocks: f64| {
            assert!((term / clock / clocks - 1.0).abs() < 0.01, "{term} {clocks}")
        };
        // A warp's 1,000 instructions are 250 clocks of four schedulers, and 250 of 128 lanes.
        near(found.issue, 250.0);
        near(found.arithmetic, 250.0);
        near(found.shuffle, 1000.0);
        near(found.shared, 1000.0);
        // 32 blocks live at a time, and none shorter than its instructions take one after the
        // other.
        let life = 1500.0 + 10.0 * 40.0 + 2.0 * 450.0 + 5.0 * 60.0 + 1000.0 * 2.15;
        near(found.latency, life / 32.0);
        near(found.seconds - H200.launch_seconds, life);
    }

    #[test]
    fn the_slowest_resource_decides() {
        assert_eq!(norm(&[], ON_CHIP), 0.0);
        assert_eq!(norm(&[3.0, 0.0], ON_CHIP), 3.0);
        let both = norm(&[3.0, 3.0], ON_CHIP);
        assert!(both > 3.0 && both < 4.0);
        assert!((both / 3.0 - 2_f64.powf(ON_CHIP.recip())).abs() < 1e-12);
        assert!(norm(&[3.0, 1.0], ON_CHIP) < 3.08);
    }

    #[test]
    fn waits_for_memory_come_on_top_of_its_rate() {
        let lone = Work { waits: 100.0, rounds: 100.0, registers: 255, ..copy() };
        let clocks = |work: &Work| {
            let memory = predict(std::slice::from_ref(work), 1, &H200).unwrap().memory;
            memory * H200.clock * 132.0 / work.blocks
        };
        // A block at a time: 100 loads of 600 clocks each.
        let without = clocks(&Work { waits: 0.0, ..lone.clone() });
        assert!((clocks(&lone) - without - 60_000.0).abs() < 1.0);
        // Eight share the wait.
        let eight = Work { registers: 32, ..lone };
        assert!((clocks(&eight) - without - 7_500.0).abs() < 1.0);
    }

    #[test]
    fn blocks_in_step_issue_nothing_while_they_exchange_rows() {
        let work = Work {
            threads: 1024,
            registers: 64,
            instructions: 3200.0,
            barriers: 8.0,
            exchanges: 8.0,
            ..Work::default()
        };
        // Four schedulers issue 800 each, and a warp has 100, which take 215 clocks.
        assert_eq!(life(&work, Some(1), &H200), 8.0 * (40.0 + 290.0) + 800.0);
        assert_eq!(life(&work, Some(2), &H200), 8.0 * (40.0 + 290.0) + 1600.0);
        assert_eq!(life(&work, None, &H200), 1500.0 + 8.0 * (40.0 + 290.0) + 215.0);
        // 132 blocks are one on each multiprocessor, and 264 are two.
        let of = |blocks| Work { blocks, ..work.clone() };
        let found = [132.0, 133.0, 264.0, 265.0]
            .map(|blocks| (together(&of(blocks), 2, &H200), in_step(&of(blocks), 2, &H200)));
        assert_eq!(found, [(1, true), (2, true), (2, true), (2, false)]);
        assert!(in_step(&of(999.0), 1, &H200));
    }

    #[test]
    fn what_does_not_fit_has_no_time() {
        assert_eq!(predict(&[Work { shared: 300_000, ..copy() }], 1, &H200), None);
    }
}
