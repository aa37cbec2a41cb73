//! How many devices a process has.

use stencil_compiler::{DeviceList, Devices, Failure};

/// Refuses more devices than a process has threads for.
pub fn within_process(list: &DeviceList) -> Result<(), Failure> {
    let most = Devices::MOST_OF_PROCESS;
    if list.devices.count() <= most {
        return Ok(());
    }
    Err(Failure::user(format!(
        "--devices {list}: a process has {most} devices at most; take fewer, or start processes \
         with stencilc-mpi"
    )))
}
