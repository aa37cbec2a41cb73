//! The devices that are described, each with the sources of its figures.
//!
//! Limits per SM and block are those of the CUDA C++ Programming Guide, "Compute Capabilities",
//! technical specifications, and of the architecture traits of NVIDIA's CUDA Core Compute Libraries
//! (`cuda/__device/arch_traits.h`), which agree. Lanes of an SM make up the TFLOPS that data sheets
//! state.
//!
//! | compute capability | KB of an SM, of a block | threads of an SM | blocks | f32, f64 lanes |
//! |---|---|---|---|---|
//! | 7.5 | 64, 64 | 1024 | 16 | 64, 2 |
//! | 8.0 | 164, 163 | 2048 | 32 | 64, 32 |
//! | 8.6 | 100, 99 | 1536 | 16 | 128, 2 |
//! | 8.7 | 164, 163 | 1536 | 16 | |
//! | 8.9 | 100, 99 | 1536 | 24 | 128, 2 |
//! | 9.0 | 228, 227 | 2048 | 32 | 128, 64 |
//! | 10.0 | 228, 227 | 2048 | 32 | 128, 64 |
//! | 11.0 | 228, 227 | 1536 | 24 | |
//! | 12.0 | 100, 99 | 1536 | 24 | 128, 2 |
//!
//! All of them have 65,536 registers an SM, 255 a thread, given out to warps in units of 256 (8 a
//! thread). They have 1,024 threads a block, 48 KB of static shared memory, 64 KB of constant
//! memory, four schedulers, and shared memory of 32 banks of 4 bytes. 1 KB of shared memory is
//! reserved for each block from 8.0 on.
//!
//! Clocks of blocks, barriers, fetches, rounds, instructions and wavefronts, and the time of a
//! launch, were measured on an H200 alone; the others have them from it, unmeasured.
//!
//! Between the host and a device lie 16 lanes of PCI Express in one direction: 16 GB/s of its third
//! generation (7.5), 32 of the fourth (8.0 to 8.9), 64 of the fifth (9.0 and later, MI300X), as
//! data sheets state. Runs stay below it, above all from memory that is not pinned.
//!
//! Clocks of banks are one word of each bank per clock, and none to start a request. On an H200,
//! 32 warps took 1.00 clock a word and none to start (`test-suite/bench/micro.py`). A pad changes
//! the words that a request fetches, but not the number of requests. Therefore no choice depends on
//! `bank_start_clocks`.

use super::Device;

/// Threads of a warp, on every CUDA device (CUDA C++ Programming Guide, "SIMT Architecture").
pub const WARP: u32 = 32;

/// Bytes of a thread's widest access to memory, on every CUDA device (CUDA C++ Programming Guide,
/// "Device Memory Accesses": words of 1, 2, 4, 8 or 16 bytes).
pub const WIDEST_ACCESS: u32 = 16;

/// Bytes of device memory that are accessed at once, on every CUDA device (CUDA C++ Best Practices
/// Guide, "Coalesced Access to Global Memory": transactions of 32 bytes).
pub const SECTOR: u32 = 32;

/// Every device that is described. The first of an architecture stands for it.
pub const DEVICES: &[Device] = &[H200, A100, A40, L40S, H100, B200, RTX_5090, MI300X];

/// NVIDIA H200.
pub const H200: Device = Device {
    name: "NVIDIA H200",
    short: "H200",
    target: "sm_90",
    warp: WARP,
    multiprocessors: 132,
    clock: 1.98e9,
    memory: 141_000_000_000,
    l2: 60_000_000,
    copy_bandwidth: 4.25e12,
    host_bandwidth: 64e9,
    peer_bandwidth: 450e9,
    fma_f32: 33.4e12,
    fma_f64: 16.7e12,
    shared_bandwidth: 128,
    shared_banks: 32,
    bank_start_clocks: 0.0,
    bank_request_clocks: 1.0,
    shuffle_lanes: 32,
    schedulers: 4,
    block_clocks: 1500.0,
    barrier_clocks: 40.0,
    exchange_clocks: 290.0,
    fetch_clocks: 450.0,
    load_clocks: 600.0,
    round_clocks: 60.0,
    issue_clocks: 2.15,
    serial_clocks: 4.5,
    diagonal_clocks: 700.0,
    scattered_clocks: 23.0,
    lane_clocks: 60.0,
    value_clocks: 35.0,
    handover_clocks: 800.0,
    launch_seconds: 2.2e-6,
    threads_per_block: 1024,
    threads_along_z: 64,
    threads_per_multiprocessor: 2048,
    blocks_per_multiprocessor: 32,
    registers: 65_536,
    registers_per_thread: 255,
    register_unit: 8,
    shared_per_multiprocessor: 228 * 1024,
    shared_per_block: 227 * 1024,
    static_shared_per_block: 48 * 1024,
    constant_memory: 64 * 1024,
    // Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018; later
    // devices are taken to have as much. Decision 038 has rates of an H200 on both sides of it.
    constant_cache: 2 * 1024,
    shared_reserved: 1024,
    source: "clocks of barriers, fetches and rounds fitted to kernels with one thread a point \
             and with tiles in shared memory, those of blocks and loads to the schedules of \
             decision 046, those of a warp's instructions to those of decision 015; clocks of \
             wavefronts fitted to the records 2026-11-22-h200-wavefronts.tsv and \
             2026-11-23-h200-strips.tsv, those of a handover from decision 022; copy and FMA \
             rates, SMs and clock measured on one H200, November 2026; memory from NVIDIA's \
             data sheet; limits per SM and block from the CUDA C++ Programming Guide, \
             technical specifications of compute capability 9.0",
};

/// Bytes per second of a copy where the data sheet states this bandwidth: the part of it that an
/// H200 reached, 4.25 of 4.8 TB/s.
const fn copied(stated: f64) -> f64 {
    stated * (4.25 / 4.8)
}

/// Operations per second of a device with this many lanes per SM.
const fn lanes(multiprocessors: u32, clock: f64, lanes: u32) -> f64 {
    multiprocessors as f64 * clock * lanes as f64
}

/// NVIDIA A100, 80 GB, SXM.
pub const A100: Device = Device {
    name: "NVIDIA A100-SXM4-80GB",
    short: "A100",
    target: "sm_80",
    multiprocessors: 108,
    clock: 1.41e9,
    memory: 80_000_000_000,
    l2: 40 << 20,
    copy_bandwidth: copied(2.039e12),
    host_bandwidth: 32e9,
    peer_bandwidth: 300e9,
    fma_f32: lanes(108, 1.41e9, 64),
    fma_f64: lanes(108, 1.41e9, 32),
    shared_per_multiprocessor: 164 * 1024,
    shared_per_block: 163 * 1024,
    source: "SMs, clock and L2: NVIDIA A100 Tensor Core GPU Architecture (whitepaper); memory and \
             its bandwidth: A100 data sheet; copy rate: that bandwidth by the ratio of an H200",
    ..H200
};

/// NVIDIA A40.
pub const A40: Device = Device {
    name: "NVIDIA A40",
    short: "A40",
    target: "sm_86",
    multiprocessors: 84,
    clock: 1.74e9,
    memory: 48_000_000_000,
    l2: 6 << 20,
    copy_bandwidth: copied(0.696e12),
    host_bandwidth: 32e9,
    peer_bandwidth: 56e9,
    fma_f32: lanes(84, 1.74e9, 128),
    fma_f64: lanes(84, 1.74e9, 2),
    threads_per_multiprocessor: 1536,
    blocks_per_multiprocessor: 16,
    shared_per_multiprocessor: 100 * 1024,
    shared_per_block: 99 * 1024,
    source: "SMs, memory and its bandwidth: A40 data sheet, as is the clock (37.4 TFLOPS of 10,752 \
             cores); L2: NVIDIA Ampere GA102 GPU Architecture (whitepaper); copy rate: that \
             bandwidth by the ratio of an H200",
    ..H200
};

/// NVIDIA L40S.
pub const L40S: Device = Device {
    name: "NVIDIA L40S",
    short: "L40S",
    target: "sm_89",
    multiprocessors: 142,
    clock: 2.52e9,
    memory: 48_000_000_000,
    l2: 48 << 20,
    copy_bandwidth: copied(0.864e12),
    host_bandwidth: 32e9,
    peer_bandwidth: 32e9,
    fma_f32: lanes(142, 2.52e9, 128),
    fma_f64: lanes(142, 2.52e9, 2),
    threads_per_multiprocessor: 1536,
    blocks_per_multiprocessor: 24,
    shared_per_multiprocessor: 100 * 1024,
    shared_per_block: 99 * 1024,
    source: "SMs, memory and its bandwidth: L40S data sheet, as is the clock (91.6 TFLOPS of \
             18,176 cores); L2: half of the 96 MB of a whole AD102 (Ada GPU Architecture \
             whitepaper), as figures for this product differ; copy rate: that bandwidth by the \
             ratio of an H200",
    ..H200
};

/// NVIDIA H100, SXM.
pub const H100: Device = Device {
    name: "NVIDIA H100 80GB HBM3",
    short: "H100",
    memory: 80_000_000_000,
    l2: 50_000_000,
    copy_bandwidth: copied(3.35e12),
    fma_f32: lanes(132, 1.98e9, 128),
    fma_f64: lanes(132, 1.98e9, 64),
    source: "SMs and L2: NVIDIA H100 Tensor Core GPU Architecture (whitepaper); memory, its \
             bandwidth and the clock (67 TFLOPS of 16,896 cores): H100 data sheet; copy rate: \
             that bandwidth by the ratio of an H200",
    ..H200
};

/// NVIDIA B200.
pub const B200: Device = Device {
    name: "NVIDIA B200",
    short: "B200",
    target: "sm_100",
    multiprocessors: 148,
    clock: 1.98e9,
    memory: 180_000_000_000,
    copy_bandwidth: copied(7.7e12),
    fma_f32: lanes(148, 1.98e9, 128),
    fma_f64: lanes(148, 1.98e9, 64),
    source: "SMs: Chips and Cheese, Nvidia's B200 (74 on each of two dies); memory, its bandwidth \
             and the clock (75 TFLOPS): NVIDIA Blackwell data sheet, HGX B200; L2: that of an \
             H200, as NVIDIA states none; copy rate: that bandwidth by the ratio of an H200",
    peer_bandwidth: 900e9,
    ..H200
};

/// NVIDIA GeForce RTX 5090.
pub const RTX_5090: Device = Device {
    name: "NVIDIA GeForce RTX 5090",
    short: "RTX5090",
    target: "sm_120",
    multiprocessors: 170,
    clock: 2.407e9,
    memory: 32_000_000_000,
    l2: 96 << 20,
    copy_bandwidth: copied(1.792e12),
    fma_f32: lanes(170, 2.407e9, 128),
    fma_f64: lanes(170, 2.407e9, 2),
    threads_per_multiprocessor: 1536,
    blocks_per_multiprocessor: 24,
    shared_per_multiprocessor: 100 * 1024,
    shared_per_block: 99 * 1024,
    source: "SMs, clock, memory, its bandwidth and L2: NVIDIA RTX Blackwell GPU Architecture \
             (whitepaper); copy rate: that bandwidth by the ratio of an H200",
    peer_bandwidth: 64e9,
    ..H200
};

/// AMD Instinct MI300X, whose compute units stand for multiprocessors and waves for warps. The
/// models count with warps of 32 lanes.
pub const MI300X: Device = Device {
    name: "AMD Instinct MI300X",
    short: "MI300X",
    target: "gfx942",
    warp: 64,
    multiprocessors: 304,
    clock: 2.1e9,
    memory: 192_000_000_000,
    l2: 32 << 20,
    copy_bandwidth: copied(5.3e12),
    fma_f32: lanes(304, 2.1e9, 128),
    fma_f64: lanes(304, 2.1e9, 64),
    registers: 131_072,
    shared_per_multiprocessor: 64 * 1024,
    shared_per_block: 64 * 1024,
    static_shared_per_block: 64 * 1024,
    // Nothing fills it: no runtime of ours drives such a device.
    constant_memory: 0,
    constant_cache: 0,
    shared_reserved: 0,
    source: "compute units, clock, memory, its bandwidth and rates: MI300X data sheet; registers, \
             shared memory (LDS) and L2 (4 MB of each of eight dies): AMD CDNA 3 Architecture \
             (whitepaper); threads and blocks of a unit: HIP documentation, hardware features; \
             copy rate: that bandwidth by the ratio of an H200; all clocks: those of an H200, \
             unmeasured",
    peer_bandwidth: 64e9,
    ..H200
};

/// A GPU of compute capability 7.x: a Tesla T4.
pub const COMPUTE_7: Device = Device {
    name: "a GPU of compute capability 7.x",
    short: "",
    target: "sm_75",
    multiprocessors: 40,
    clock: 1.59e9,
    memory: 16_000_000_000,
    l2: 4 << 20,
    copy_bandwidth: copied(0.32e12),
    host_bandwidth: 16e9,
    peer_bandwidth: 16e9,
    fma_f32: lanes(40, 1.59e9, 64),
    fma_f64: lanes(40, 1.59e9, 2),
    threads_per_multiprocessor: 1024,
    blocks_per_multiprocessor: 16,
    shared_per_multiprocessor: 64 * 1024,
    shared_per_block: 64 * 1024,
    shared_reserved: 0,
    source: "limits of compute capability 7.5; all else of a Tesla T4: SMs, memory and its \
             bandwidth from its data sheet, clock and L2 as the driver reports them",
    ..H200
};

/// A GPU of compute capability 8.x: the lowest limits of 8.0 to 8.9, which 8.6 has.
pub const COMPUTE_8: Device = Device {
    name: "a GPU of compute capability 8.x",
    short: "",
    source: "the lowest limits of compute capabilities 8.0 to 8.9; all else of an A40",
    ..A40
};

/// A GPU of compute capability 11.x.
pub const COMPUTE_11: Device = Device {
    name: "a GPU of compute capability 11.x",
    short: "",
    target: "sm_110",
    shared_per_multiprocessor: 228 * 1024,
    shared_per_block: 227 * 1024,
    source: "limits of compute capability 11.0; all else of a Tesla T4, as the slowest described",
    threads_per_multiprocessor: 1536,
    blocks_per_multiprocessor: 24,
    shared_reserved: 1024,
    ..COMPUTE_7
};

/// A GPU of which nothing is known: the lowest limits of all that are described.
pub const LEAST: Device = Device {
    name: "a GPU that is not described",
    short: "",
    target: "",
    shared_reserved: 1024,
    shared_per_block: 63 * 1024,
    source: "the lowest limits of compute capabilities 7.5 to 12.0; all else of a Tesla T4",
    ..COMPUTE_7
};
