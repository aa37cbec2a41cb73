//! Memory of several devices under one range of addresses: each part lies on a device, and all of
//! them read and write all of it.
#![allow(unsafe_code)] // The driver's interface is C.

use super::device::Device;
use super::error::CudaError;
use crate::execute::Joined;
use cudarc::driver::sys::{self, CUresult};
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Arc;

/// Devices that reach each other's memory, in the order of a run.
#[derive(Clone, Debug)]
pub struct Peers(pub(super) Arc<[Arc<Device>]>);

impl Peers {
    /// The same devices in the order of parts, each of which runs on one of them.
    pub fn in_parts(&self, wholes: &[usize]) -> Self {
        let devices = wholes.iter().filter_map(|whole| self.0.get(*whole));
        Self(devices.cloned().collect())
    }
}

/// A range of addresses whose pages lie on several devices. They are freed with the last who holds
/// it, when no work uses them.
#[derive(Debug)]
pub(super) struct Joint {
    address: sys::CUdeviceptr,
    /// The bytes asked for.
    bytes: usize,
    /// The range in whole pages, and how much of it has pages.
    reserved: usize,
    mapped: usize,
    /// They stay open as long as the memory.
    devices: Arc<[Arc<Device>]>,
}

impl Joint {
    /// Memory whose parts lie on devices, by their place among the peers ([`Joined::parts`]). A
    /// page lies on one device. Pages begin with any values. The context of the first device must
    /// be current.
    pub fn new(peers: &Peers, Joined { bytes, parts, .. }: &Joined) -> Result<Self, CudaError> {
        let bytes = *bytes;
        let devices = Arc::clone(&peers.0);
        let unknown = || CudaError::Peers { count: devices.len() };
        let first = devices.first().ok_or_else(unknown)?;
        let mut page = 0;
        let least = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the driver reads the properties and writes one number.
        first.ok("cuMemGetAllocationGranularity", unsafe {
            sys::cuMemGetAllocationGranularity(&mut page, &properties(first), least)
        })?;
        let reserved = bytes.max(1).next_multiple_of(page.max(1));
        let mut address = 0;
        // SAFETY: the driver writes one address, of a range that `drop` gives back.
        first.ok("cuMemAddressReserve", unsafe {
            sys::cuMemAddressReserve(&mut address, reserved, 0, 0, 0)
        })?;
        let mut joint = Self { address, bytes, reserved, mapped: 0, devices: Arc::clone(&devices) };
        for (end, device) in pages(page.max(1), reserved, parts) {
            joint.extend(end, devices.get(device).ok_or_else(unknown)?)?;
        }
        // Parts of a device are several peers.
        let each: BTreeMap<_, _> = devices.iter().map(|one| (one.ordinal(), one)).collect();
        let access = each.values().map(|device| sys::CUmemAccessDesc {
            location: properties(device).location,
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        });
        let access: Vec<_> = access.collect();
        // SAFETY: the whole range has pages, and the list is as long as said.
        first.ok("cuMemSetAccess", unsafe {
            sys::cuMemSetAccess(address, reserved, access.as_ptr(), access.len())
        })?;
        Ok(joint)
    }

    /// Gives the range pages on a device, up to an end.
    fn extend(&mut self, end: usize, device: &Device) -> Result<(), CudaError> {
        let (at, bytes) = (self.address + self.mapped as u64, end - self.mapped);
        let mut handle = 0;
        // SAFETY: the driver reads the properties and writes one handle.
        match unsafe { sys::cuMemCreate(&mut handle, bytes, &properties(device), 0) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = device.memory()?;
                let name = device.label().to_owned();
                let wanted = bytes as u64;
                return Err(CudaError::OutOfMemory { device: name, wanted, free, total });
            }
            result => device.ok("cuMemCreate", result)?,
        }
        // SAFETY: this part of the range is reserved and has no pages yet. The handle is given back
        // at once; the pages stay until they are unmapped.
        let (mapped, released) =
            unsafe { (sys::cuMemMap(at, bytes, 0, handle, 0), sys::cuMemRelease(handle)) };
        device.ok("cuMemMap", mapped)?;
        self.mapped = end;
        device.ok("cuMemRelease", released)
    }

    /// Where it begins, on all devices.
    pub fn address(&self) -> sys::CUdeviceptr {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Joint {
    fn drop(&mut self) {
        let _ = self.devices.first().map(|device| device.enter());
        // SAFETY: all programs that used the memory have waited for their work. Nothing can be done
        // about a failure.
        unsafe {
            if self.mapped > 0 {
                let _ = sys::cuMemUnmap(self.address, self.mapped);
            }
            let _ = sys::cuMemAddressFree(self.address, self.reserved);
        }
    }
}

/// Pages of a device that only this process sees.
fn properties(device: &Device) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: device.ordinal(),
        },
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        win32HandleMetaData: null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// Runs of pages on one device each: their ends, and the device. Pages behind the last part lie
/// where the part does.
fn pages(page: usize, bytes: usize, parts: &[(Range<usize>, usize)]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for first in (0..bytes).step_by(page) {
        let part = parts.iter().find(|(part, _)| part.end > first).or(parts.last());
        let device = part.map_or(0, |(_, device)| *device);
        match runs.last_mut() {
            Some((end, last)) if *last == device => *end = first + page,
            _ => runs.push((first + page, device)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::pages;

    #[test]
    fn a_page_lies_where_it_begins() {
        let parts = [(0..5, 0), (5..11, 1), (11..12, 2), (12..19, 0)];
        assert_eq!(pages(4, 20, &parts), [(8, 0), (12, 1), (20, 0)]);
        assert_eq!(pages(4, 4, &[]), [(4, 0)]);
    }
}
