//! Devices as data: what the cost models and the limit checks need to know of a GPU.
//!
//! Rates count for the whole device. Nothing in the compiler asks which device it is; it asks for
//! these numbers.

use serde::Serialize;
use thiserror::Error;

/// A GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    /// The vendor's name.
    pub name: &'static str,
    /// The architecture for which PTX is made.
    pub target: &'static str,
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
    /// Fused multiply-adds per second in f32.
    pub fma_f32: f64,
    /// Fused multiply-adds per second in f64.
    pub fma_f64: f64,
    /// Bytes of shared memory that one SM moves per clock.
    pub shared_bandwidth: u32,
    /// Lanes that one SM shuffles per clock.
    pub shuffle_lanes: u32,
    /// Warp instructions that one SM issues per clock.
    pub schedulers: u32,
    /// Clocks from the start of a block that loads, computes a little and stores, to the start of
    /// the block that takes its place.
    pub block_clocks: f64,
    /// Clocks that a barrier keeps a block waiting.
    pub barrier_clocks: f64,
    /// Clocks of an iteration that loads a cell of device memory and stores it in shared memory.
    pub fetch_clocks: f64,
    /// Clocks of an iteration that computes a cell from shared memory.
    pub round_clocks: f64,
    /// Clocks from an instruction of a warp to its next, on average, whatever other warps do: some
    /// wait for the one before.
    pub issue_clocks: f64,
    /// Clocks from an instruction to one that needs its result, in divisions and roots.
    pub serial_clocks: f64,
    /// Seconds from a launch to the next in a stream that has nothing to wait for.
    pub launch_seconds: f64,
    /// Threads of a warp.
    pub warp: u32,
    /// Most threads of a block.
    pub threads_per_block: u32,
    /// Most threads on an SM.
    pub threads_per_multiprocessor: u32,
    /// Most blocks on an SM.
    pub blocks_per_multiprocessor: u32,
    /// 32-bit registers of an SM.
    pub registers: u32,
    /// Most registers of a thread.
    pub registers_per_thread: u32,
    /// Shared memory of an SM in bytes.
    pub shared_per_multiprocessor: u64,
    /// Most shared memory of a block in bytes, static and dynamic together.
    pub shared_per_block: u64,
    /// Most static shared memory of a block in bytes.
    pub static_shared_per_block: u64,
    /// Bytes of shared memory that the system takes from each block.
    pub shared_reserved: u64,
    /// Where the figures come from.
    pub source: &'static str,
}

/// NVIDIA H200.
pub const H200: Device = Device {
    name: "NVIDIA H200",
    target: "sm_90",
    multiprocessors: 132,
    clock: 1.98e9,
    memory: 141_000_000_000,
    l2: 60_000_000,
    copy_bandwidth: 4.25e12,
    fma_f32: 33.4e12,
    fma_f64: 16.7e12,
    shared_bandwidth: 128,
    shuffle_lanes: 32,
    schedulers: 4,
    block_clocks: 1800.0,
    barrier_clocks: 40.0,
    fetch_clocks: 450.0,
    round_clocks: 60.0,
    issue_clocks: 2.15,
    serial_clocks: 4.5,
    launch_seconds: 2.2e-6,
    warp: 32,
    threads_per_block: 1024,
    threads_per_multiprocessor: 2048,
    blocks_per_multiprocessor: 32,
    registers: 65_536,
    registers_per_thread: 255,
    shared_per_multiprocessor: 228 * 1024,
    shared_per_block: 227 * 1024,
    static_shared_per_block: 48 * 1024,
    shared_reserved: 1024,
    source: "clocks of blocks, barriers, fetches and rounds fitted to kernels of the strategies \
        naive and block, those \
             of a warp's instructions to the schedules of decision 015; copy and FMA rates, SMs \
             and clock measured on one H200, November 2026; memory from NVIDIA's data sheet; \
             limits per SM and block from the CUDA C++ Programming Guide, technical specifications \
             of compute capability 9.0",
};

/// Every device that is described.
pub const DEVICES: &[Device] = &[H200];

/// The device that PTX of this target is tuned for; `None` for a target that is not described.
/// Variants of an architecture (`sm_90a`) count as the architecture.
pub fn device_of(target: &str) -> Option<&'static Device> {
    let plain = target.trim_end_matches(|c: char| c.is_ascii_lowercase());
    DEVICES.iter().find(|device| device.target == target || device.target == plain)
}

/// The device that is described best: all of its figures are measured.
pub const BEST_DESCRIBED: &Device = &H200;

/// The device to assume for an architecture.
pub fn for_arch(arch: &str) -> &'static Device {
    device_of(arch).unwrap_or(BEST_DESCRIBED)
}

/// The device of this name, as the driver spells it; `None` for one that is not described.
pub fn device_named(name: &str) -> Option<&'static Device> {
    DEVICES.iter().find(|device| device.name == name)
}

/// A block that wants more shared memory than the device has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SharedError {
    /// Static shared memory.
    #[error(
        "a block wants {wanted} bytes of static shared memory, {device} gives at most {most}; use \
         dynamic shared memory or a smaller tile"
    )]
    Static {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes there are.
        most: u64,
        /// The device.
        device: &'static str,
    },
    /// Static and dynamic together.
    #[error(
        "a block wants {wanted} bytes of shared memory, {device} gives at most {most}; use a \
         smaller tile or pyramid height"
    )]
    Total {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes there are.
        most: u64,
        /// The device.
        device: &'static str,
    },
}

impl Device {
    /// Checks that a block can have this much shared memory, in bytes.
    ///
    /// # Errors
    /// Which limit is passed, and by how much.
    pub fn check_shared(&self, fixed: u64, dynamic: u64) -> Result<(), SharedError> {
        let most = self.static_shared_per_block;
        if fixed > most {
            return Err(SharedError::Static { wanted: fixed, most, device: self.name });
        }
        let (wanted, most) = (fixed.saturating_add(dynamic), self.shared_per_block);
        if wanted > most {
            return Err(SharedError::Total { wanted, most, device: self.name });
        }
        Ok(())
    }

    /// What all SMs do per second, if one does this much per clock.
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
    fn rates_follow_from_the_parts() {
        // An SM has 128 f32 and 64 f64 FMA lanes (Hopper whitepaper, table 4).
        let clocks = f64::from(H200.multiprocessors) * H200.clock;
        assert!((H200.fma_f32 / (clocks * 128.0) - 1.0).abs() < 0.01);
        assert!((H200.fma_f64 / (clocks * 64.0) - 1.0).abs() < 0.01);
        assert_eq!(H200.shared_per_block + H200.shared_reserved, H200.shared_per_multiprocessor);
    }

    #[test]
    fn shared_memory_is_limited() {
        assert_eq!(H200.check_shared(48 * 1024, 179 * 1024), Ok(()));
        let text = H200.check_shared(0, 227 * 1024 + 1).unwrap_err().to_string();
        assert_eq!(
            text,
            "a block wants 232449 bytes of shared memory, NVIDIA H200 gives at most 232448; use a \
             smaller tile or pyramid height"
        );
        assert!(matches!(H200.check_shared(48 * 1024 + 1, 0), Err(SharedError::Static { .. })));
        assert!(H200.check_shared(1, u64::MAX).is_err());
    }

    #[test]
    fn targets_are_found() {
        assert_eq!(device_of("sm_90").map(|d| d.name), Some("NVIDIA H200"));
        assert_eq!(device_of("sm_90a").map(|d| d.name), Some("NVIDIA H200"));
        assert_eq!(device_of("sm_80"), None);
        assert_eq!(device_named("NVIDIA H200").map(|d| d.target), Some("sm_90"));
        assert_eq!(device_named("NVIDIA H100 PCIe"), None);
    }
}
