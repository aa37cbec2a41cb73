//! A device of the driver with its primary context.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::{CudaError, ok};
use super::handle::Handle;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use serde::Serialize;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

/// The oldest driver interface with all the functions used here: CUDA 12.8.
const OLDEST_DRIVER: i32 = 12_080;

/// The name in errors of calls before a device is open.
const DRIVER: &str = "the CUDA driver";

/// Facts of a device, for reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceFacts {
    /// The driver's name of it.
    pub name: String,
    /// Its identity, in the form of `nvidia-smi`.
    pub uuid: String,
    /// Its architecture: `sm_90`.
    pub architecture: String,
    /// Streaming multiprocessors.
    pub multiprocessors: i32,
    /// Highest clock of the multiprocessors in MHz.
    pub max_clock_mhz: f64,
    /// Highest clock of the memory in MHz.
    pub max_memory_clock_mhz: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of the level 2 cache.
    pub l2: i32,
    /// Most bytes of shared memory of a block.
    pub shared_per_block: u64,
    /// The newest CUDA version that the driver knows: `13.0`.
    pub cuda: String,
}

/// An open device. It closes when the last object on it is dropped.
#[derive(Debug)]
pub(super) struct Device {
    handle: sys::CUdevice,
    ordinal: i32,
    context: Handle<sys::CUctx_st>,
    facts: DeviceFacts,
    label: String,
}

impl Device {
    /// Opens device number `ordinal`, from 0.
    pub fn open(ordinal: i32) -> Result<Self, CudaError> {
        let version = start_driver(ordinal)?;
        let mut count = 0;
        // SAFETY: the driver is initialized; it writes one number.
        ok(DRIVER, "cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
        if !(0..count).contains(&ordinal) {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let mut handle = 0;
        // SAFETY: the number is that of a device; the driver writes one handle.
        ok(DRIVER, "cuDeviceGet", unsafe { sys::cuDeviceGet(&mut handle, ordinal) })?;
        let facts = facts(handle, version)?;
        let label = format!("{} (device {ordinal})", facts.name);
        let mut context = null_mut();
        // SAFETY: the handle is a device; the driver writes one handle, which `drop` releases.
        ok(&label, "cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut context, handle)
        })?;
        let device = Self { handle, ordinal, context: Handle(context), facts, label };
        device.enter()?;
        Ok(device)
    }

    /// Facts of the device.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// Its number, from 0.
    pub fn ordinal(&self) -> i32 {
        self.ordinal
    }

    /// Its name and number, for errors.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Makes this device's context the current one of the thread. Every call on the device comes
    /// after it: other devices, and other code of the process, do the same.
    pub fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: the context is retained until `drop`.
        self.ok("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context.0) })
    }

    /// Lets the device reach another one's memory, and says whether they are connected. Copies from
    /// devices that are not go over the host.
    pub fn connect(&self, other: &Device) -> Result<bool, CudaError> {
        if self.handle == other.handle {
            return Ok(true);
        }
        let mut reaches = 0;
        // SAFETY: both are devices; the driver writes one number.
        self.ok("cuDeviceCanAccessPeer", unsafe {
            sys::cuDeviceCanAccessPeer(&mut reaches, self.handle, other.handle)
        })?;
        if reaches == 0 {
            return Ok(false);
        }
        self.enter()?;
        // SAFETY: both contexts are retained until `drop`.
        match unsafe { sys::cuCtxEnablePeerAccess(other.context.0, 0) } {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            result => self.ok("cuCtxEnablePeerAccess", result).map(|()| true),
        }
    }

    /// Whether memory can be put under chosen addresses.
    pub fn maps_memory(&self) -> Result<bool, CudaError> {
        let attribute = Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        Ok(self.attribute(attribute)? != 0)
    }

    /// Bytes that may lie between the starts of two stretches of a copy in two dimensions.
    pub fn most_pitch(&self) -> Result<usize, CudaError> {
        let pitch = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH)?;
        Ok(usize::try_from(pitch).unwrap_or(0))
    }

    fn attribute(&self, attribute: Attribute) -> Result<c_int, CudaError> {
        let mut value = 0;
        // SAFETY: the handle is a device; the driver writes one number.
        self.ok("cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(&mut value, attribute, self.handle)
        })?;
        Ok(value)
    }

    /// Bytes of device memory that are free, and all.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes two numbers.
        self.ok("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// The outcome of a call on this device.
    pub fn ok(&self, call: &'static str, result: CUresult) -> Result<(), CudaError> {
        ok(&self.label, call, result)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the context was retained once by `open`, and whatever lives in it holds the
        // device. Nothing can be done about a failure.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.handle) };
    }
}

/// Looks for the driver and initializes it; returns the CUDA version that it knows.
fn start_driver(ordinal: i32) -> Result<i32, CudaError> {
    // The checks come first: the bindings panic where the library or a function is missing.
    // SAFETY: loading the library runs the driver's own start code, as any use of CUDA does.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    // SAFETY: as above. The function is looked for by its name and not called.
    let is_driver =
        unsafe { sys::culib().get::<unsafe extern "C" fn()>(b"cuDriverGetVersion").is_ok() };
    if !is_driver {
        return Err(CudaError::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the function is there and writes one number; it needs no initialization.
    ok(DRIVER, "cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
    if version < OLDEST_DRIVER {
        return Err(CudaError::OldDriver {
            found: version_text(version),
            wanted: version_text(OLDEST_DRIVER),
        });
    }
    // SAFETY: 0 is the only value that the driver accepts here; repeated calls do nothing.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_ERROR_NO_DEVICE => Err(CudaError::NoDevice { ordinal, count: 0 }),
        result => ok(DRIVER, "cuInit", result).map(|()| version),
    }
}

fn facts(device: sys::CUdevice, version: i32) -> Result<DeviceFacts, CudaError> {
    let name = name(device)?;
    let attribute = |attribute| -> Result<c_int, CudaError> {
        let mut value = 0;
        // SAFETY: the device is one of the driver's; it writes one number.
        ok(&name, "cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(&mut value, attribute, device)
        })?;
        Ok(value)
    };
    let mut memory = 0;
    // SAFETY: the device is one of the driver's; it writes one number.
    ok(&name, "cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut memory, device) })?;
    let mut uuid = sys::CUuuid_st { bytes: [0; 16] };
    // SAFETY: the device is one of the driver's; it writes 16 bytes.
    ok(&name, "cuDeviceGetUuid", unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) })?;
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let clock = attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
    let memory_clock = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    Ok(DeviceFacts {
        uuid: uuid_text(&uuid.bytes.map(|c| c as u8)),
        architecture: format!("sm_{major}{minor}"),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        max_clock_mhz: f64::from(clock) / 1000.0,
        max_memory_clock_mhz: f64::from(memory_clock) / 1000.0,
        memory: memory as u64,
        l2: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        shared_per_block: u64::try_from(shared).unwrap_or(0),
        cuda: version_text(version),
        name,
    })
}

fn name(device: sys::CUdevice) -> Result<String, CudaError> {
    let mut text = [0 as c_char; 256];
    let length = c_int::try_from(text.len() - 1).unwrap_or(0);
    // SAFETY: the driver writes at most `length` bytes into an array of one more.
    ok(DRIVER, "cuDeviceGetName", unsafe {
        sys::cuDeviceGetName(text.as_mut_ptr(), length, device)
    })?;
    let name: Vec<u8> = text.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// `GPU-` and the bytes in groups of 4, 2, 2, 2 and 6.
fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = "GPU".to_string();
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_a_device_that_is_not_there_is_an_error() {
        // Without a driver or with any number of devices: never a panic.
        match Device::open(i32::MAX) {
            Err(
                CudaError::NoDriver
                | CudaError::NoDevice { .. }
                | CudaError::OldDriver { .. }
                | CudaError::Call { .. },
            ) => {}
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn versions_and_identities() {
        assert_eq!(version_text(13_000), "13.0");
        assert_eq!(version_text(12_080), "12.8");
        let bytes = std::array::from_fn(|i| i as u8);
        assert_eq!(uuid_text(&bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
