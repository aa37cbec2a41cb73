//! Why the driver did not do what was asked; every failed call names itself and the device.
#![allow(unsafe_code)] // The driver's interface is C.

use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_char};
use std::ptr::null;
use thiserror::Error;

/// Why the driver did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CudaError {
    /// There is no driver library.
    #[error("no CUDA driver found (libcuda.so): install NVIDIA's driver, or run on another target")]
    NoDriver,
    /// The driver is too old.
    #[error(
        "the CUDA driver knows CUDA {found}, {wanted} or later is needed: update NVIDIA's driver"
    )]
    OldDriver {
        /// The newest CUDA version that the driver knows.
        found: String,
        /// The version that is needed.
        wanted: String,
    },
    /// There is no device of this number.
    #[error("no CUDA device {ordinal}: the driver sees {count}{}", if *count == 0 { " (is \
        CUDA_VISIBLE_DEVICES empty, or the device not passed into the container?)" } else { "" })]
    NoDevice {
        /// The number asked for, from 0.
        ordinal: i32,
        /// How many devices there are.
        count: i32,
    },
    /// A call failed.
    #[error("{call} failed on {device}: {reason}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The device.
        device: String,
        /// The driver's name and text for the error.
        reason: String,
    },
    /// The device has too little memory.
    #[error(
        "out of memory on {device}: {wanted} bytes are wanted, {free} of {total} are free; use \
         smaller sizes"
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// Bytes needed in all.
        wanted: u64,
        /// Bytes free.
        free: u64,
        /// Bytes of the device.
        total: u64,
    },
    /// The host has too little memory that copies can use by themselves.
    #[error(
        "the driver gives no {wanted} bytes of pinned memory on the host; use smaller sizes, or \
         raise the limit of locked memory (ulimit -l)"
    )]
    OutOfHostMemory {
        /// Bytes needed.
        wanted: u64,
    },
    /// Memory that is lent is none of the device's.
    #[error(
        "the driver knows no memory of {device} that holds {memory}: bind an address of cuMemAlloc \
         or cudaMalloc, of memory that is large enough"
    )]
    Lent {
        /// The device.
        device: String,
        /// The memory.
        memory: String,
    },
    /// Memory of several devices on one that is none of them.
    #[error("memory was to lie on other devices than the {count} that have it together")]
    Peers {
        /// How many devices there are.
        count: usize,
    },
    /// The PTX or cubin can't be loaded.
    #[error(
        "{device} rejects the code of {program} (made for {target}): {reason}{}",
        log_text(log)
    )]
    Code {
        /// The device.
        device: String,
        /// The program.
        program: String,
        /// The architecture that the plan names.
        target: String,
        /// The driver's name and text for the error.
        reason: String,
        /// The log of the driver's assembler.
        log: String,
    },
    /// The code and the plan don't fit together.
    #[error("the code of {program} does not fit its plan: {message}; compile the program again")]
    Mismatch {
        /// The program.
        program: String,
        /// The mismatch.
        message: String,
    },
    /// A block needs more shared memory than the device has.
    #[error(
        "kernel `{kernel}` wants {wanted} bytes of shared memory a block, {device} gives at most \
         {most}; compile with a smaller tile or pyramid height"
    )]
    Shared {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Bytes needed.
        wanted: u64,
        /// Bytes there are.
        most: u64,
    },
    /// A launch of some blocks of a kernel that does not take the number of the first one.
    #[error(
        "kernel `{kernel}` can't be shared out between GPUs in this way; share the grid along its \
         slowest dimension alone, as with --devices 2, or take another strategy"
    )]
    Part {
        /// The kernel.
        kernel: String,
    },
    /// Blocks that wait for each other do not run at once.
    #[error(
        "the {blocks} blocks of kernel `{kernel}` wait for each other, {device} runs at most \
         {most} at once; use smaller sizes, or compile the program for this device"
    )]
    Together {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Blocks of the launch.
        blocks: u64,
        /// Blocks that run at once.
        most: u64,
    },
    /// A kernel could not be launched.
    #[error(
        "kernel `{kernel}` can't be launched on {device} with {grid:?} blocks of {block:?} \
         threads: {reason} [{call}]"
    )]
    Launch {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// Threads of a block in x, y, z.
        block: [u32; 3],
        /// The driver's function that refused it.
        call: &'static str,
        /// The driver's name and text for the error.
        reason: String,
    },
    /// A kernel failed while it ran.
    #[error("{kernels} failed on {device}: {reason} [{call}]; compute-sanitizer finds the place")]
    Run {
        /// The kernel, or those of which it is one.
        kernels: String,
        /// The device.
        device: String,
        /// The driver's function that reported it.
        call: &'static str,
        /// The driver's name and text for the error.
        reason: String,
    },
}

/// The outcome of a call; an error names the call and the device.
pub(super) fn ok(device: &str, call: &'static str, result: CUresult) -> Result<(), CudaError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(CudaError::Call { call, device: device.to_string(), reason: reason(result) })
}

/// The driver's name and text for an error: `CUDA_ERROR_INVALID_VALUE (invalid argument)`.
pub(super) fn reason(result: CUresult) -> String {
    let text = |call: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = null();
        // SAFETY: both functions write one pointer; it is null or a C string of the library, which
        // stays loaded until the process ends.
        unsafe {
            match call(result, &mut text) {
                CUresult::CUDA_SUCCESS if !text.is_null() => {
                    Some(CStr::from_ptr(text).to_string_lossy().into_owned())
                }
                _ => None,
            }
        }
    };
    let name = text(sys::cuGetErrorName).unwrap_or_else(|| format!("error {}", result as u32));
    match text(sys::cuGetErrorString) {
        Some(text) => format!("{name} ({text})"),
        None => name,
    }
}

fn log_text(log: &str) -> String {
    if log.trim().is_empty() { String::new() } else { format!("\n{}", log.trim_end()) }
}
