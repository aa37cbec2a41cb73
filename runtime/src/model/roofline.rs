//! Where a schedule lies under the roofline of a device, and what its mix of instructions lets it
//! reach.
//!
//! Sources: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
//! Multicore Architectures", 2009; Ryoo et al., "Optimization Principles and Application
//! Performance Evaluation of a Multithreaded GPU Using CUDA", section 4: the potential throughput
//! is the rate at which instructions are issued times the share of them that are floating-point,
//! and what it needs of memory is that rate over the arithmetic intensity.
//!
//! Rates are in floating-point instructions of a lane a second. A fused multiply-add counts one.

use super::{HALO_MISSES, Prediction, Work};
use crate::device::{Device, WARP};
use serde::Serialize;

/// A schedule under the roofline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Roofline {
    /// Floating-point instructions for each byte of device memory.
    pub intensity: f64,
    /// The rate of the floating-point units, for the schedule's mix of types.
    pub peak: f64,
    /// Bytes a second of device memory, at the copy rate.
    pub bandwidth: f64,
    /// Floating-point instructions over all instructions.
    pub share: f64,
    /// The rate that the instruction schedulers and the share allow, at most the peak.
    pub potential: f64,
    /// The predicted rate.
    pub reached: f64,
}

impl Roofline {
    /// The place of kernels of which a launch takes `steps` steps; none where they have no
    /// floating-point arithmetic or no traffic.
    pub fn of(
        kernels: &[Work],
        steps: u32,
        prediction: &Prediction,
        device: &Device,
    ) -> Option<Self> {
        let all = |each: fn(&Work) -> f64| -> f64 {
            kernels.iter().map(|work| work.blocks * each(work)).sum()
        };
        let (single, double) = (all(|work| work.single), all(|work| work.double));
        let arithmetic = single + double;
        let bytes = all(|work| work.own + HALO_MISSES * work.halo);
        let lanes = all(|work| work.instructions) * f64::from(WARP);
        if [arithmetic, bytes, lanes, prediction.seconds].iter().any(|value| *value <= 0.0) {
            return None;
        }
        let peak = arithmetic / (single / device.fma_f32 + double / device.fma_f64);
        let share = (arithmetic / lanes).min(1.0);
        let issued = device.per_second(device.schedulers) * f64::from(WARP);
        Some(Self {
            intensity: arithmetic / bytes,
            peak,
            bandwidth: device.copy_bandwidth,
            share,
            potential: (share * issued).min(peak),
            reached: arithmetic / f64::from(steps.max(1)) / prediction.seconds,
        })
    }

    /// The intensity from which on arithmetic is the bound.
    pub fn ridge(&self) -> f64 {
        self.peak / self.bandwidth
    }

    /// The roof above the schedule.
    pub fn roof(&self) -> f64 {
        self.peak.min(self.intensity * self.bandwidth)
    }

    /// Bytes a second that the potential rate needs.
    pub fn demand(&self) -> f64 {
        self.potential / self.intensity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::H200;

    #[test]
    fn the_roof_is_memory_before_the_ridge_and_arithmetic_behind_it() {
        let work = |own: f64| Work {
            blocks: 10.0,
            own,
            single: 3200.0,
            instructions: 200.0,
            ..Work::default()
        };
        let seconds = Prediction { seconds: 1e-6, ..Prediction::default() };
        let at = |own: f64| Roofline::of(&[work(own)], 2, &seconds, &H200).unwrap();
        let low = at(3200.0);
        assert_eq!((low.intensity, low.share, low.peak), (1.0, 0.5, H200.fma_f32));
        assert_eq!(low.roof(), H200.copy_bandwidth);
        assert!((low.reached / 1.6e10 - 1.0).abs() < 1e-12);
        // Half of the instructions are arithmetic, so half of the peak is the potential.
        assert!((low.potential / H200.fma_f32 - 0.5).abs() < 0.01);
        assert_eq!(low.demand(), low.potential);
        assert_eq!(at(32.0).roof(), H200.fma_f32);
        assert!(at(32.0).ridge() < 100.0);
        assert_eq!(Roofline::of(&[Work::default()], 1, &seconds, &H200), None);
    }
}
