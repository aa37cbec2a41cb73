//! Where runs go that another program starts.

use crate::control::Control;
use stencil_runtime::ranks::DeviceList;
use stencil_runtime::windows::DeviceMemory;

/// The devices and the memory for each run of an executable; the default is one device, whose
/// memory holds all fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// The devices that share a run; none for one.
    pub devices: Option<DeviceList>,
    /// The memory of the device for a run out of core; none for one in core.
    pub device_memory: Option<DeviceMemory>,
}

impl Placement {
    /// Whether it is the default.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Hooks for a run that goes there.
    pub(crate) fn control<'a>(&self) -> Control<'a> {
        let (devices, device_memory) = (self.devices.clone(), self.device_memory);
        Control { devices, device_memory, ..Control::default() }
    }

    /// Why its arrays lie on the host; none where they may lie on a device.
    pub(crate) fn why_host(&self) -> Option<&'static str> {
        match (&self.devices, self.device_memory) {
            (Some(_), _) => Some("runs that devices share take arrays of the host"),
            (None, Some(_)) => Some("runs out of core take arrays of the host"),
            (None, None) => None,
        }
    }
}
