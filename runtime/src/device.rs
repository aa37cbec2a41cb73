//! Devices as data: the numbers of a GPU that cost models and limit checks need.
//!
//! Rates count for the whole device. Nothing in the compiler asks which device it is; it asks for
//! these numbers. `device/catalog.rs` has those of the devices that are described.

mod catalog;

pub use catalog::{
    A40, A100, B200, COMPUTE_7, COMPUTE_8, COMPUTE_11, DEVICES, H100, H200, L40S, LEAST, MI300X,
    RTX_5090, SECTOR, WARP, WIDEST_ACCESS,
};
use serde::Serialize;
use thiserror::Error;

/// A GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    /// The vendor's name.
    pub name: &'static str,
    /// The name that options take beside the vendor's.
    pub short: &'static str,
    /// The architecture for which PTX is made.
    pub target: &'static str,
    /// Lanes that execute an instruction together: a warp, or a wave.
    pub warp: u32,
    /// Streaming multiprocessors (SMs).
    pub multiprocessors: u32,
    /// Highest clock of the SMs in Hz.
    pub clock: f64,
    /// Device memory in bytes.
    pub memory: u64,
    /// Level 2 cache in bytes.
    pub l2: u64,
    /// Bytes per second of a copy within device memory, reads and writes counted together.
    pub copy_bandwidth: f64,
    /// Bytes per second from the host's memory to the device's, or back.
    pub host_bandwidth: f64,
    /// Bytes per second from one device's memory to another one's that is connected to it.
    pub peer_bandwidth: f64,
    /// Fused multiply-adds per second in f32.
    pub fma_f32: f64,
    /// Fused multiply-adds per second in f64.
    pub fma_f64: f64,
    /// Bytes of shared memory that one SM moves per clock.
    pub shared_bandwidth: u32,
    /// Banks of an SM's shared memory, each a word of 4 bytes wide.
    pub shared_banks: u32,
    /// Clocks to begin a request to shared memory, whatever its conflicts: `t_start` of `C(n) =
    /// t_start + t_request * n`.
    pub bank_start_clocks: f64,
    /// Clocks for each word that a request has to fetch from its busiest bank: `t_request`.
    pub bank_request_clocks: f64,
    /// Lanes that one SM shuffles per clock.
    pub shuffle_lanes: u32,
    /// Warp instructions that one SM issues per clock.
    pub schedulers: u32,
    /// Clocks from the start of a block that loads, computes a little and stores, to the start of
    /// the block that takes its place.
    pub block_clocks: f64,
    /// Clocks that a barrier keeps a block waiting.
    pub barrier_clocks: f64,
    /// Clocks beside the barrier for which a block waits where all of its threads exchange rows
    /// through shared memory between two steps, and have nothing else to do.
    pub exchange_clocks: f64,
    /// Clocks of an iteration that loads a cell of device memory and stores it in shared memory.
    pub fetch_clocks: f64,
    /// Clocks from a load of device memory to its value.
    pub load_clocks: f64,
    /// Clocks of an iteration that computes a cell from shared memory.
    pub round_clocks: f64,
    /// Clocks from an instruction of a warp to its next, on average, whatever other warps do: some
    /// wait for the one before.
    pub issue_clocks: f64,
    /// Clocks from an instruction to one that needs its result, in divisions and roots.
    pub serial_clocks: f64,
    /// Clocks of a time of a wavefront whose values lie in memory: a block loads those of the time
    /// before, stores and meets at a barrier. [`Self::fetch_clocks`] come on top where it loads
    /// values of the sweep before.
    pub diagonal_clocks: f64,
    /// Clocks of an SM for an access of a warp whose lanes lie in different rows of memory.
    pub scattered_clocks: f64,
    /// Clocks of a time of a wavefront in registers, for each row of a lane.
    pub lane_clocks: f64,
    /// Clocks of such a row for each further value that it stores or loads from the sweep before.
    pub value_clocks: f64,
    /// Clocks of a block to see another one's flag, or to raise its own.
    pub handover_clocks: f64,
    /// Seconds from a launch to the next in a stream that has nothing to wait for.
    pub launch_seconds: f64,
    /// Most threads of a block.
    pub threads_per_block: u32,
    /// Most threads of a block along z.
    pub threads_along_z: u32,
    /// Most threads on an SM.
    pub threads_per_multiprocessor: u32,
    /// Most blocks on an SM.
    pub blocks_per_multiprocessor: u32,
    /// 32-bit registers of an SM.
    pub registers: u32,
    /// Most registers of a thread.
    pub registers_per_thread: u32,
    /// Registers of a thread are given out in units of this many.
    pub register_unit: u32,
    /// Shared memory of an SM in bytes.
    pub shared_per_multiprocessor: u64,
    /// Most shared memory of a block in bytes, static and dynamic together.
    pub shared_per_block: u64,
    /// Most static shared memory of a block in bytes.
    pub static_shared_per_block: u64,
    /// Bytes of shared memory that the system takes from each block.
    pub shared_reserved: u64,
    /// Bytes of constant memory that code may declare.
    pub constant_memory: u64,
    /// Bytes of the first level of the cache of constant memory.
    pub constant_cache: u64,
    /// Where the figures come from.
    pub source: &'static str,
}

/// The device that PTX of this target is tuned for; `None` for a target that is not described.
/// Variants of an architecture (`sm_90a`) count as the architecture.
pub fn device_of(target: &str) -> Option<&'static Device> {
    DEVICES.iter().find(|device| device.runs(target))
}

/// An architecture without the letter of a variant.
fn plain(arch: &str) -> &str {
    arch.trim_end_matches(|c: char| c.is_ascii_lowercase())
}

/// The device that is described best: its rates are measured.
pub const BEST_DESCRIBED: &Device = &H200;

/// A device of this architecture: one that is described, or one with the lowest limits of its
/// family (`sm_87`), or of all (`sm_130`). Code within its limits runs on every such device.
pub fn for_arch(arch: &str) -> &'static Device {
    let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
    let number = digits.parse::<u32>().unwrap_or(0);
    device_of(arch).unwrap_or(match number / 10 {
        7 => &COMPUTE_7,
        8 => &COMPUTE_8,
        10 => &B200,
        11 => &COMPUTE_11,
        12 => &RTX_5090,
        _ => &LEAST,
    })
}

/// The described device of a name: the driver's spelling, or the short one in any case of letters.
///
/// # Errors
/// A name that no described device has, with the names that there are.
pub fn described(name: &str) -> Result<&'static Device, UnknownDevice> {
    let is = |device: &&Device| device.name == name || device.short.eq_ignore_ascii_case(name);
    DEVICES.iter().find(is).ok_or_else(|| UnknownDevice(name.to_owned()))
}

/// No device of this name is described.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no device '{0}' is described; there are {names}", names = short_names().join(", "))]
pub struct UnknownDevice(String);

/// The short names of the described devices.
pub fn short_names() -> Vec<&'static str> {
    DEVICES.iter().map(|device| device.short).collect()
}

/// The device of this name, as the driver spells it; `None` for one that is not described.
pub fn device_named(name: &str) -> Option<&'static Device> {
    DEVICES.iter().find(|device| device.name == name)
}

impl Device {
    /// Whether its code is PTX, as that of NVIDIA's devices is.
    pub fn has_ptx(&self) -> bool {
        !self.target.starts_with("gfx")
    }

    /// Whether an instruction adds and takes a maximum or minimum of integers, as those of compute
    /// capability 9.0 and later do.
    pub fn adds_and_compares(&self) -> bool {
        let capability = plain(self.target).strip_prefix("sm_");
        capability.and_then(|number| number.parse().ok()).is_some_and(|number: u32| number >= 90)
    }

    /// Bytes of a thread's registers, with one that may be reserved.
    pub fn register_bytes(&self) -> i64 {
        4 * i64::from(self.registers_per_thread.next_power_of_two())
    }

    /// Whether code for an architecture, or for a variant of it (`sm_90a`), is for this device.
    pub fn runs(&self, arch: &str) -> bool {
        self.target == plain(arch)
    }

    /// Work of all SMs per second, from that of one SM per clock.
    pub fn per_second(&self, per_clock: u32) -> f64 {
        f64::from(self.multiprocessors) * self.clock * f64::from(per_clock)
    }

    /// Fused multiply-adds per second for cells of this many bytes: f32 for 4, else f64.
    pub fn fma(&self, cell_bytes: usize) -> f64 {
        if cell_bytes <= 4 { self.fma_f32 } else { self.fma_f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_capability_9_add_and_compare_at_once() {
        let able = |target: &str| device_of(target).map(Device::adds_and_compares);
        assert_eq!(["sm_90a", "sm_100", "sm_120"].map(able), [Some(true); 3]);
        assert_eq!(["sm_80", "sm_89"].map(able), [Some(false); 2]);
        let others = DEVICES.iter().filter(|device| !device.has_ptx());
        assert!(others.map(|device| device.adds_and_compares()).all(|able| !able));
    }

    #[test]
    fn rates_follow_from_the_parts() {
        // An SM has 128 f32 and 64 f64 FMA lanes (Hopper whitepaper, table 4).
        let clocks = f64::from(H200.multiprocessors) * H200.clock;
        assert!((H200.fma_f32 / (clocks * 128.0) - 1.0).abs() < 0.01);
        assert!((H200.fma_f64 / (clocks * 64.0) - 1.0).abs() < 0.01);
        assert_eq!(H200.shared_per_block + H200.shared_reserved, H200.shared_per_multiprocessor);
    }

    #[test]
    fn targets_are_found() {
        for (target, name) in [
            ("sm_80", "NVIDIA A100-SXM4-80GB"),
            ("sm_86", "NVIDIA A40"),
            ("sm_89", "NVIDIA L40S"),
            ("sm_90", "NVIDIA H200"),
            ("sm_90a", "NVIDIA H200"),
            ("sm_100", "NVIDIA B200"),
            ("sm_120", "NVIDIA GeForce RTX 5090"),
            ("gfx942", "AMD Instinct MI300X"),
        ] {
            assert_eq!(device_of(target).map(|device| device.name), Some(name));
            assert_eq!(for_arch(target).name, name);
        }
        assert_eq!(device_of("sm_87"), None);
        assert_eq!(device_named("NVIDIA H100 80GB HBM3").map(|d| d.target), Some("sm_90"));
        assert_eq!(device_named("NVIDIA H100 PCIe"), None);
        for name in ["H100", "h100", "NVIDIA H100 80GB HBM3"] {
            assert_eq!(described(name).map(|device| device.name), Ok(H100.name));
        }
        let message = described("H800").map_err(|error| error.to_string()).unwrap_err();
        assert!(message.ends_with("there are H200, A100, A40, L40S, H100, B200, RTX5090, MI300X"));
    }

    #[test]
    fn an_architecture_that_is_not_described_has_limits_that_hold_for_it() {
        // Shared memory of a block, threads and blocks of an SM, of the programming guide.
        for (arch, shared, threads, blocks) in [
            ("sm_75", 64, 1024, 16),
            ("sm_87", 163, 1536, 16),
            ("sm_88", 99, 1536, 16),
            ("sm_103", 227, 2048, 32),
            ("sm_110", 227, 1536, 24),
            ("sm_121", 99, 1536, 24),
        ] {
            let device = for_arch(arch);
            assert!(device.shared_per_block <= shared * 1024, "{arch}");
            assert!(device.threads_per_multiprocessor <= threads, "{arch}");
            assert!(device.blocks_per_multiprocessor <= blocks, "{arch}");
        }
        for device in DEVICES {
            for least in [for_arch("sm_130"), for_arch("")] {
                assert!(least.shared_per_block <= device.shared_per_block);
                assert!(least.threads_per_multiprocessor <= device.threads_per_multiprocessor);
                assert!(least.blocks_per_multiprocessor <= device.blocks_per_multiprocessor);
            }
        }
    }

    #[test]
    fn rates_are_those_of_the_data_sheets() {
        // TFLOPS of f32 and f64 that NVIDIA states, two for each fused multiply-add.
        for (device, single, double) in [
            (A100, 19.5, Some(9.7)),
            (A40, 37.4, None),
            (L40S, 91.6, None),
            (H100, 67.0, Some(34.0)),
            (B200, 75.0, Some(37.0)),
            (RTX_5090, 104.8, None),
            (MI300X, 163.4, Some(81.7)),
        ] {
            let is = |rate: f64, stated: f64| (2e-12 * rate / stated - 1.0).abs() < 0.02;
            assert!(is(device.fma_f32, single), "{}", device.name);
            assert!(double.is_none_or(|stated| is(device.fma_f64, stated)), "{}", device.name);
        }
    }

    #[test]
    fn limits_fit_together() {
        for device in DEVICES.iter().chain([&COMPUTE_7, &COMPUTE_8, &COMPUTE_11, &LEAST]) {
            let block = device.shared_per_block + device.shared_reserved;
            assert!(block <= device.shared_per_multiprocessor, "{}", device.name);
            assert!(device.static_shared_per_block <= device.shared_per_block, "{}", device.name);
            assert!(device.threads_per_block <= device.threads_per_multiprocessor);
            assert!(!device.source.is_empty(), "{}", device.name);
        }
    }
}
