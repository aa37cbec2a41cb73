//! How a caller follows a compile or a run, and ends it early.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stencil_runtime::array::{Array, Backing};
use stencil_runtime::execute::{Taken, Values};
use stencil_runtime::ranks::{DeviceList, Link};
use stencil_runtime::windows::DeviceMemory;

/// How far a compile or a run is.
#[derive(Clone, Copy)]
pub enum Progress<'a> {
    /// A pass of the compile has run.
    Pass {
        /// Its name with its options.
        name: &'a str,
        /// The module after it, printed at each call.
        ir: &'a dyn Fn() -> String,
    },
    /// Candidates of a search were compiled.
    Candidates {
        /// How many were.
        done: u64,
        /// How many there are.
        of: u64,
    },
    /// Steps of the run were taken or sent to the device.
    Steps {
        /// So many.
        done: u64,
        /// Of so many.
        of: u64,
    },
}

/// Where a run pauses: after each step whose number is a multiple of one of these, and after the
/// last. A run that goes on from there with the same pauses gives the same bits.
pub struct Pauses<'a> {
    /// Numbers of steps.
    pub every: Vec<NonZeroU64>,
    /// Called at each pause. A failure ends the run.
    pub call: &'a mut dyn FnMut(&Pause<'_>) -> Result<(), Failure>,
}

/// The state of a run between two steps.
pub struct Pause<'a> {
    /// Steps taken, with those before the run.
    pub step: i64,
    /// Whether the run ends here.
    pub last: bool,
    /// State fields and reductions, and the temp fields that the program keeps from step to step.
    /// As inputs, with `step` as [`crate::Request::first_step`], they make a run go on.
    pub values: &'a BTreeMap<String, Array>,
}

/// Takes the values of a run. A failure ends it.
pub type Results<'a> = &'a mut dyn FnMut(&mut Values<'_>) -> Result<(), Failure>;

/// Hooks into a compile or a run; the default has none.
#[derive(Default)]
pub struct Control<'a> {
    /// Called after each pass, launch or step.
    pub progress: Option<&'a mut dyn FnMut(Progress<'_>)>,
    /// Set to true from any thread, it ends a compile before the next level, a run before the
    /// next launch or step.
    pub cancel: Arc<AtomicBool>,
    /// Called with each `snapshot` of the plan; the reference has none.
    pub snapshot: Option<&'a mut dyn FnMut(Taken)>,
    /// Called once after the last step of a run without pauses. It reads the values in parts,
    /// without a copy on the host, and the outcome has only the reductions. The reference, whose
    /// values are the host's, does not call it.
    pub results: Option<Results<'a>>,
    /// Whether the reference ends at the first NaN or infinity, with an error that shows its cell
    /// and its expression.
    pub finite: bool,
    /// Whether the simulator's loads and stores are predicted too. Runs with pauses have none.
    pub traffic: bool,
    /// Where a run pauses, and what is done there.
    pub pauses: Option<Pauses<'a>>,
    /// The devices that share the run: GPUs, or parts of the simulator or the processor; none for
    /// one.
    pub devices: Option<DeviceList>,
    /// The memory of the device for a run out of core; none for one in core.
    pub device_memory: Option<DeviceMemory>,
    /// Where the arrays of a run out of core lie on the host.
    pub backing: Backing,
    /// Whether the times of the devices in this process are noted; not of runs with pauses.
    pub timeline: bool,
    /// The connection to the other devices, where each has a process of its own; none where they
    /// are threads. All but the first have an outcome without outputs, and call nothing at pauses.
    pub link: Option<&'a mut dyn Link>,
}

impl Control<'_> {
    /// The same hooks for a part of the work.
    pub fn reborrow(&mut self) -> Control<'_> {
        type Hook<'h> = &'h mut dyn FnMut(Progress<'_>);
        let progress = self.progress.as_mut().map(|hook| &mut **hook as Hook<'_>);
        type Take<'h> = &'h mut dyn FnMut(Taken);
        let snapshot = self.snapshot.as_mut().map(|hook| &mut **hook as Take<'_>);
        let results = self.results.as_mut().map(|hook| &mut **hook as Results<'_>);
        let pauses = self
            .pauses
            .as_mut()
            .map(|pauses| Pauses { every: pauses.every.clone(), call: &mut *pauses.call });
        Control {
            progress,
            cancel: Arc::clone(&self.cancel),
            snapshot,
            results,
            finite: self.finite,
            traffic: self.traffic,
            pauses,
            devices: self.devices.clone(),
            device_memory: self.device_memory,
            backing: self.backing.clone(),
            timeline: self.timeline,
            link: self.link.as_mut().map(|link| &mut **link as &mut dyn Link),
        }
    }

    /// Reports progress to the caller.
    pub(crate) fn report(&mut self, progress: Progress<'_>) {
        if let Some(hook) = &mut self.progress {
            hook(progress);
        }
    }

    /// Whether the caller has asked for the end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Fails where the caller has asked for the end.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_cancelled() { Err(Failure::cancelled("cancelled")) } else { Ok(()) }
    }
}
