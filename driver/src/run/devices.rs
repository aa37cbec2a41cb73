//! The devices of a run: which options go together with several of them.

use crate::cli::{RunArgs, within_process};
use stencil_compiler::{DeviceList, Devices, Failure, Link};

/// Refuses counters and times of runs that have none.
pub fn check_counts(args: &RunArgs, several: bool, pauses: bool) -> Result<(), Failure> {
    let counts = args.report || args.report_json.is_some();
    let refused = |text| Err(Failure::user(text));
    match () {
        () if several && counts => {
            refused("--report and --report-json count one device; leave them or --devices out")
        }
        () if pauses && counts => refused(
            "--report and --report-json count a run without pauses; leave them out, or \
             --checkpoint-every and --snapshot-every",
        ),
        () if pauses && args.timeline.is_some() => refused(
            "--timeline shows a run without pauses; leave it out, or --checkpoint-every and \
             --snapshot-every",
        ),
        () => Ok(()),
    }
}

/// The devices of a run, and the connection to them where each has a process of its own.
pub fn shared<'l>(
    args: &RunArgs,
    process: Option<(Devices, &'l mut dyn Link)>,
    pauses: bool,
) -> Result<(Option<DeviceList>, Option<&'l mut dyn Link>), Failure> {
    let Some((processes, link)) = process else {
        args.common.devices.as_ref().map_or(Ok(()), within_process)?;
        return Ok((args.common.devices.clone(), None));
    };
    let list = args.common.devices.clone().unwrap_or_else(|| processes.into());
    let devices = list.devices;
    if devices.count() != processes.count() {
        return Err(Failure::user(format!(
            "--devices {devices} are {}, and {} processes were started; start as many, or leave \
             --devices out",
            devices.count(),
            processes.count()
        )));
    }
    if pauses || args.resume.is_some() {
        return Err(Failure::user(
            "runs of several processes have no pauses yet; leave --checkpoint-every, \
             --snapshot-every and --resume out, or take --devices in one process",
        ));
    }
    if args.timeline.is_some() {
        return Err(Failure::user(
            "--timeline shows devices of one process; leave it out, or start one process",
        ));
    }
    Ok((Some(list), Some(link)))
}
