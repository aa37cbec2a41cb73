//! A run of a plan on several devices.

use super::devices::Devices;
use super::error::RankError;
use super::link::{Link, LinkError};
use super::shared::Shared;
use super::timeline::Timeline;
use super::values;
use crate::bind::Bound;
use crate::execute::{self, Control, ExecuteError, Inputs, Outcome, Target};
use crate::plan::Plan;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a device waits for another one. A launch may take long.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Runs a plan on several devices, with a thread for each; the first is the caller's. The outcome
/// is that of one device. A timeline gets the times of all of them.
///
/// # Errors
/// As [`execute::run`], and where the plan can't be shared out. The first device that fails ends
/// the others.
pub fn on_threads<L: Link + Send>(
    (plan, bound, inputs): (&Plan, &Bound, &Inputs),
    devices: Devices,
    targets: &mut [&mut (dyn Target + Send)],
    links: &mut [L],
    (timeline, control): (Option<&Timeline>, &mut Control<'_>),
) -> Result<Outcome, ExecuteError> {
    let fixed = fixed(plan, bound);
    let bound = &fixed;
    let (Some((first, targets)), Some((link, links))) =
        (targets.split_first_mut(), links.split_first_mut())
    else {
        let fault = RankError::Fault("a run on no device".to_owned());
        return Err(ExecuteError::Target(fault.into()));
    };
    let cancel = control.cancel;
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        let mut refused = None;
        for (target, other) in targets.iter_mut().zip(links) {
            let target: &mut (dyn Target + Send) = *target;
            let run = move || {
                let mut shared = Shared::new(plan, devices, target, other);
                shared.note_times(timeline);
                follow(plan, bound, inputs, &mut shared, cancel)
            };
            match std::thread::Builder::new().spawn_scoped(scope, run) {
                Ok(other) => others.push(other),
                Err(error) => {
                    let (wanted, error) = (devices.count(), error.to_string());
                    refused = Some(RankError::Threads { wanted, error });
                    break;
                }
            }
        }
        let mut found = match refused {
            Some(error) => {
                // The others wait for this device.
                link.fail(&error.to_string());
                Err(ExecuteError::Target(error.into()))
            }
            None => {
                let mut shared = Shared::new(plan, devices, *first, link);
                shared.note_times(timeline);
                lead(plan, bound, inputs, &mut shared, control)
            }
        };
        for other in others {
            let ended = other.join().unwrap_or_else(|_| {
                let fault = RankError::Fault("a device's thread panicked".to_owned());
                Err(ExecuteError::Target(fault.into()))
            });
            if let Err(error) = ended
                && found.as_ref().err().is_none_or(is_of_another)
            {
                found = Err(error);
            }
        }
        found
    })
}

/// Takes part in a run as one of several devices, each in a process of its own: the outcome for the
/// first device, none for the others. With [`Control::temps`] all devices have the outcome, so that
/// each can go on from it.
///
/// # Errors
/// As [`on_threads`].
pub fn take_part(
    (plan, bound, inputs): (&Plan, &Bound, &Inputs),
    devices: Devices,
    (target, link): (&mut (dyn Target + Send), &mut dyn Link),
    control: &mut Control<'_>,
) -> Result<Option<Outcome>, ExecuteError> {
    let fixed = fixed(plan, bound);
    let device = link.device();
    let mut shared = Shared::new(plan, devices, target, &mut *link);
    let outcome = match device {
        0 => Some(lead(plan, &fixed, inputs, &mut shared, control)?),
        _ => {
            follow(plan, &fixed, inputs, &mut shared, control.cancel)?;
            None
        }
    };
    if !control.temps {
        return Ok(outcome);
    }
    drop(shared);
    values::spread(link, devices.count(), outcome).map(Some)
}

/// The sizes of a run in which all devices take the same pyramid height.
pub fn fixed(plan: &Plan, bound: &Bound) -> Bound {
    let mut fixed = bound.clone();
    if let Some(choose) = execute::heights::open(plan, bound)
        && let Some(usual) = choose.among.first()
    {
        fixed.choices.insert(choose.name.clone(), usual.name.clone());
    }
    fixed
}

/// The run of the first device, which the caller sees.
fn lead(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    shared: &mut Shared<'_>,
    control: &mut Control<'_>,
) -> Result<Outcome, ExecuteError> {
    let ran = execute::run(plan, bound, inputs, shared, control);
    let closed = |shared: &mut Shared<'_>| shared.close().map_err(ExecuteError::Target);
    let ran = ran.and_then(|outcome| closed(shared).map(|()| outcome));
    ran.inspect_err(|error| shared.fail(&error.to_string()))
}

/// The run of any other device.
fn follow(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    shared: &mut Shared<'_>,
    cancel: Option<&AtomicBool>,
) -> Result<(), ExecuteError> {
    let mut control = Control { cancel, ..Control::default() };
    let ran = execute::check_devices(plan, bound, shared)
        .and_then(|()| shared.allocate(bound).map_err(ExecuteError::Target))
        .and_then(|()| execute::upload(plan, bound, inputs, shared))
        .and_then(|()| execute::launch_all(plan, bound, inputs, shared, &mut control))
        .and_then(|_| shared.serve().map_err(ExecuteError::Target));
    ran.inspect_err(|error| shared.fail(&error.to_string()))
}

/// Whether a device ended because another one did.
fn is_of_another(error: &ExecuteError) -> bool {
    let ExecuteError::Target(error) = error else { return false };
    let of_link = error.downcast_ref::<LinkError>();
    let ended = |error: &LinkError| matches!(error, LinkError::Ended { .. });
    of_link.is_some_and(ended)
        || error.downcast_ref::<RankError>().is_some_and(RankError::is_of_another)
}
