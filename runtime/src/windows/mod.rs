//! A run out of core: the grid lies in the host's memory and streams through the device in windows.
//!
//! A window is some rows of the grid along its slowest dimension, with a halo of rows around them.
//! A pass takes each window to the device in turn, does many launches on it, and brings its rows
//! back ([`Slots`]). Each launch needs fewer rows of the halo than the one before. The launches of
//! a pass are so many that copies both ways take no longer than computing. Kernels stay as they
//! are: they have the coordinates and addresses of the whole grid.
//!
//! | file | what it holds |
//! |---|---|
//! | `limit.rs` | how much memory of the device a run may use |
//! | `survey.rs` | the launches of a run, and what can't run so |
//! | `live.rs` | the cells that later launches read, and which buffers lie on the host |
//! | `window.rs` | what a window computes, needs and holds |
//! | `choose.rs` | the launches of a pass and the rows of a window: those with the shortest time |
//! | `model.rs` | the time that windows take |
//! | `measure.rs` | the memory of the device that all passes take |
//! | `held.rs` | windows on a target that has the whole range of each buffer |
//! | `windowed.rs` | a run in windows, as a target |
//! | `error.rs` | why a run out of core fails |

#![allow(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

mod choose;
mod error;
mod held;
mod limit;
mod live;
mod measure;
mod model;
mod survey;
#[cfg(test)]
mod tests;
mod window;
mod windowed;

use crate::bind::Bound;
use crate::execute::{self, Control, ExecuteError, Inputs, Outcome, Slots, Target, TargetError};
use crate::plan::Plan;
use crate::ranks::{self, Timeline};
pub use error::WindowError;
pub use held::Held;
pub use limit::DeviceMemory;
use survey::Survey;
use windowed::Windowed;

/// How a run out of core is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Passes over the grid.
    pub passes: usize,
    /// Windows of each.
    pub windows: usize,
}

/// How a run is cut that has so much memory.
///
/// # Errors
/// As [`run`] before its first launch.
pub fn windows_of(plan: &Plan, bound: &Bound, memory: DeviceMemory) -> Result<Shape, WindowError> {
    let fixed = ranks::fixed(plan, bound);
    Ok(choose::cutting(&Survey::new(plan, &fixed)?, memory, false)?.0.shape())
}

/// Runs a plan out of core: at most so much memory of the device holds parts of the grid. The
/// outcome is that of a run in core, bit for bit. A timeline gets three lines: copies to the
/// device, windows, and copies from it.
///
/// # Errors
/// As [`execute::run`]; a plan whose launches need more than a window of the grid, and a limit that
/// is too small for a window.
pub fn run(
    run: (&Plan, &Bound, &Inputs),
    target: &mut dyn Target,
    memory: DeviceMemory,
    to: (Option<&Timeline>, &mut Control<'_>),
) -> Result<(Outcome, Shape), ExecuteError> {
    if target.slots().is_none() {
        return run_on(run, &mut Held::new(target), memory, to);
    }
    let none = || WindowError::Fault("a device lost its slots".to_owned());
    let slots = target.slots().ok_or_else(|| ExecuteError::Target(none().into()))?;
    run_on(run, slots, memory, to)
}

/// Runs a plan out of core on a device with slots.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    (plan, bound, inputs): (&Plan, &Bound, &Inputs),
    slots: &mut dyn Slots,
    memory: DeviceMemory,
    (timeline, control): (Option<&Timeline>, &mut Control<'_>),
) -> Result<(Outcome, Shape), ExecuteError> {
    let failed = |error: WindowError| ExecuteError::Target(TargetError::from(error));
    let fixed = ranks::fixed(plan, bound);
    let survey = Survey::new(plan, &fixed).map_err(failed)?;
    let (cutting, needed) = choose::cutting(&survey, memory, control.temps).map_err(failed)?;
    let shape = cutting.shape();
    let mut windowed = Windowed::new(&survey, cutting, needed, slots);
    windowed.note_times(timeline);
    windowed.lie_on(control.backing.clone());
    let outcome = execute::run(plan, &fixed, inputs, &mut windowed, control)?;
    Ok((outcome, shape))
}
