//! The devices of a run: which options go together with several of them.

use crate::devices::within_process;
use stencil_compiler::{DeviceList, Devices, Failure, Link};

/// What the command line asks for beside devices.
pub struct Asked<'a> {
    /// The devices, if they are named.
    pub devices: Option<&'a DeviceList>,
    /// Whether the simulator's counters are asked for.
    pub counts: bool,
    /// Whether a timeline is.
    pub timeline: bool,
    /// Whether the run pauses for snapshots or checkpoints.
    pub pauses: bool,
    /// Whether it runs out of core.
    pub out_of_core: bool,
}

/// Refuses counters and times of runs that have none.
pub fn check_counts(asked: &Asked<'_>, several: bool) -> Result<(), Failure> {
    let refused = |text| Err(Failure::user(text));
    match () {
        () if several && asked.counts => {
            refused("--report and --report-json count one device; leave them or --devices out")
        }
        () if asked.timeline && !several && !asked.out_of_core => refused(
            "--timeline shows several devices, or a run out of core; add --devices or \
             --device-memory, or leave it out",
        ),
        () if asked.pauses && asked.counts => refused(
            "--report and --report-json count a run without pauses; leave them out, or \
             --checkpoint-every and --snapshot-every",
        ),
        () if asked.pauses && asked.timeline => refused(
            "--timeline shows a run without pauses; leave it out, or --checkpoint-every and \
             --snapshot-every",
        ),
        () => Ok(()),
    }
}

/// The devices of a run, and the connection to them where each has a process of its own.
pub fn shared<'l>(
    asked: &Asked<'_>,
    process: Option<(Devices, &'l mut dyn Link)>,
) -> Result<(Option<DeviceList>, Option<&'l mut dyn Link>), Failure> {
    let Some((processes, link)) = process else {
        asked.devices.map_or(Ok(()), within_process)?;
        return Ok((asked.devices.cloned(), None));
    };
    let list = asked.devices.cloned().unwrap_or_else(|| processes.into());
    let devices = list.devices;
    if asked.out_of_core {
        return Err(Failure::user(
            "--device-memory is for runs of one process; leave it out, or start one process",
        ));
    }
    if !list.gpus.is_empty() {
        return Err(Failure::user(format!(
            "--devices {list}: each process has a GPU of its own; give how many there are, and \
             name the GPU of each by CUDA_VISIBLE_DEVICES"
        )));
    }
    if devices.count() != processes.count() {
        return Err(Failure::user(format!(
            "--devices {devices} are {}, and {} processes were started; start as many, or leave \
             --devices out",
            devices.count(),
            processes.count()
        )));
    }
    if asked.timeline {
        return Err(Failure::user(
            "--timeline shows devices of one process; leave it out, or start one process",
        ));
    }
    Ok((Some(list), Some(link)))
}
