//! One case on several devices, which share its launches: their results are those of one.

use crate::check::{Fault, Stop};
use crate::model::Case;
use crate::random::Random;
use crate::run::{self, Arrays};
use melior::ir::Module;
use stencil_runtime::execute::{Control, ExecuteError, Target};
use stencil_runtime::plan::Plan;
use stencil_runtime::ranks::{self, Devices, RankError};
use stencil_simulator::{Settings, Simulator};

/// The devices of a case: two to four along one or two dimensions.
pub fn of_case(case: &Case) -> Devices {
    let texts = ["2", "3", "4", "2x2", "1x3", "3x1", "2x3"];
    let mut random = Random::of_case(case.data.seed, 4);
    random.pick(&texts).parse().unwrap_or_else(|_| Devices::along(2))
}

/// Runs the gpu level of a case on several simulated devices. None where a launch can't be shared
/// out.
///
/// # Errors
/// [`Stop::Refused`] where the plan refuses the sizes, and a fault where the simulator finds one.
pub fn simulate(
    case: &Case,
    module: &Module,
    plan: &Plan,
    inputs: &Arrays,
) -> Result<Option<Arrays>, Stop> {
    let devices = of_case(case);
    let options = stencil_simulator::Options {
        settings: Settings { seed: case.order, workers: 1, ..Settings::default() },
        ..stencil_simulator::Options::default()
    };
    let fault = |error: String| Stop::Failed(Fault::Simulator, error);
    let targets = (0..devices.count()).map(|_| Simulator::new(module, options.clone()));
    let mut targets =
        targets.collect::<Result<Vec<_>, _>>().map_err(|error| fault(error.to_string()))?;
    share(case, plan, inputs, devices, &mut targets)
}

/// Runs a case on targets that share it.
///
/// # Errors
/// As [`simulate`].
pub fn share<T: Target + Send>(
    case: &Case,
    plan: &Plan,
    inputs: &Arrays,
    devices: Devices,
    targets: &mut [T],
) -> Result<Option<Arrays>, Stop> {
    let bound = run::bound(case, plan, inputs)?;
    let mut links = ranks::channels(devices.count(), ranks::PATIENCE);
    let mut targets: Vec<_> =
        targets.iter_mut().map(|target| target as &mut (dyn Target + Send)).collect();
    let control = &mut Control::default();
    let run = (plan, &bound, inputs);
    match ranks::on_threads(run, devices, &mut targets, &mut links, (None, control)) {
        Ok(outcome) => Ok(Some(outcome.outputs)),
        Err(error) if is_refusal(&error) => Ok(None),
        Err(error) => Err(Stop::Failed(Fault::Simulator, format!("on {devices} devices: {error}"))),
    }
}

/// Whether a launch can't be shared out.
fn is_refusal(error: &ExecuteError) -> bool {
    let ExecuteError::Target(error) = error else { return false };
    matches!(error.downcast_ref(), Some(RankError::Shared { .. }))
}
