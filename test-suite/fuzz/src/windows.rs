//! One case out of core: its results are those in core.

use crate::check::{Fault, Stop};
use crate::model::Case;
use crate::random::Random;
use crate::run::{self, Arrays};
use crate::summary::reason;
use melior::ir::Module;
use std::fmt;
use stencil_runtime::execute::{Control, Target};
use stencil_runtime::plan::Plan;
use stencil_runtime::windows::{self, DeviceMemory, Shape, WindowError};
use stencil_simulator::{Settings, Simulator};

/// How a case ran out of core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its launches need the whole grid, by a message.
    Refused(String),
    /// It ran in one pass or in several, with one window or with several.
    Ran {
        /// Whether it had several windows.
        windows: bool,
        /// Whether it had several passes.
        passes: bool,
    },
}

impl Fate {
    /// As a line of text.
    pub fn line(&self) -> String {
        match self {
            Self::Refused(why) => format!("refused {why}"),
            Self::Ran { windows, passes } => format!("ran {windows} {passes}"),
        }
    }

    /// By its line; none of any other text.
    pub fn of_line(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "refused" => Some(Self::Refused(rest.to_owned())),
            "ran" => {
                let (windows, passes) = rest.split_once(' ')?;
                Some(Self::Ran { windows: windows.parse().ok()?, passes: passes.parse().ok()? })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |is: &bool| if *is { "several" } else { "one or no" };
        match self {
            Self::Refused(why) => write!(f, "out of core: refused: {}", reason(why)),
            Self::Ran { windows, passes } => {
                write!(f, "out of core: windows {}, passes {}", several(windows), several(passes))
            }
        }
    }
}

/// Results of a case, one for each limit of memory, and how it ran. There are none where it is
/// refused.
pub type Found = (Vec<(DeviceMemory, Arrays)>, Fate);

/// Runs the gpu level of a case out of core on the simulator.
///
/// # Errors
/// [`Stop::Refused`] where the plan refuses the sizes, and a fault where the simulator finds one.
pub fn simulate(case: &Case, module: &Module, plan: &Plan, inputs: &Arrays) -> Result<Found, Stop> {
    let options = stencil_simulator::Options {
        settings: Settings { seed: case.order, workers: 1, ..Settings::default() },
        ..stencil_simulator::Options::default()
    };
    let simulator = Simulator::new(module, options);
    let mut simulator =
        simulator.map_err(|error| Stop::Failed(Fault::Simulator, error.to_string()))?;
    run(case, plan, inputs, &mut simulator)
}

/// Runs a case out of core: with the least memory, and with any more.
///
/// # Errors
/// As [`simulate`].
pub fn run(
    case: &Case,
    plan: &Plan,
    inputs: &Arrays,
    target: &mut (dyn Target + Send),
) -> Result<Found, Stop> {
    let bound = run::bound(case, plan, inputs)?;
    let least = match windows::windows_of(plan, &bound, DeviceMemory(1)) {
        Ok(_) => 1,
        Err(WindowError::Memory { needed, .. }) => needed,
        Err(error @ (WindowError::Kernel { .. } | WindowError::Node { .. })) => {
            return Ok((Vec::new(), Fate::Refused(error.to_string())));
        }
        Err(error) => {
            return Err(Stop::Failed(Fault::Simulator, format!("out of core: {error}")));
        }
    };
    let mut random = Random::of_case(case.data.seed, 5);
    let spare = bound.device_bytes().saturating_sub(least);
    let (mut found, mut several) = (Vec::new(), (false, false));
    for percents in [0..=0, 1..=20, 21..=100] {
        let percent = random.range(*percents.start(), *percents.end());
        let memory = DeviceMemory(least + spare * percent.unsigned_abs() / 100);
        let control = (None, &mut Control::default());
        let ran = windows::run((plan, &bound, inputs), target, memory, control);
        let (outcome, Shape { windows, passes }) = ran.map_err(|error| {
            Stop::Failed(Fault::Simulator, format!("out of core in {memory}: {error}"))
        })?;
        several = (several.0 || windows > 1, several.1 || passes > 1);
        found.push((memory, outcome.outputs));
    }
    Ok((found, Fate::Ran { windows: several.0, passes: several.1 }))
}
