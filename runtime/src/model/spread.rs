//! How far predictions lie from what is measured, and the time that a schedule is expected to take.
//!
//! Predictions of some kernels are surer than those of others, and the smallest of several
//! predicted times is often one that is too small. Schedules are compared by their expected time:
//! the mean of a log-normal distribution, whose two numbers were measured (decision 049).

use super::Work;
use super::residency;
use crate::device::Device;

/// The logarithm of measured over predicted time, beside that of `naive` for the same program.
struct Spread {
    mean: f64,
    deviation: f64,
}

/// Kernels of one step a launch whose threads lack registers. Only `ptxas` knows how much they
/// spill.
const LACKING: Spread = Spread { mean: 0.14, deviation: 0.53 };

/// Others of one step a launch, with few warps on a multiprocessor.
const FEW_WARPS: Spread = Spread { mean: 0.08, deviation: 0.34 };

/// The part of a multiprocessor's warps up to which a kernel has few: 16 of 64.
const FEW: f64 = 0.25;

/// The expected time over the predicted one of a schedule with these kernels, one launch of which
/// takes so many steps.
pub fn expected(kernels: &[Work], steps: u32, device: &Device) -> f64 {
    let few =
        |work: &Work| residency(work, device).is_none_or(|residency| residency.occupancy <= FEW);
    let Spread { mean, deviation } = if steps > 1 {
        // Kernels of several steps take the predicted time in the mean. So do kernels of one step
        // that have enough warps and registers.
        return 1.0;
    } else if kernels.iter().any(|work| work.lacking > 0.0) {
        LACKING
    } else if kernels.iter().any(few) {
        FEW_WARPS
    } else {
        return 1.0;
    };
    (mean + deviation * deviation / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::H200;

    #[test]
    fn few_warps_and_spills_cost_what_was_measured() {
        let work = Work { threads: 128, registers: 64, ..Work::default() };
        let few = Work { registers: 255, ..work.clone() };
        let lacking = Work { lacking: 1.0, ..work.clone() };
        let of = |work: &Work, steps| expected(std::slice::from_ref(work), steps, &H200);
        // 32 warps and 8.
        assert_eq!((of(&work, 1), of(&few, 2), of(&lacking, 2)), (1.0, 1.0, 1.0));
        assert!((of(&few, 1) - 1.15).abs() < 0.01);
        assert!((of(&lacking, 1) - 1.32).abs() < 0.01);
        // The kernel with least of it decides.
        assert_eq!(expected(&[work, few.clone()], 1, &H200), of(&few, 1));
    }
}
