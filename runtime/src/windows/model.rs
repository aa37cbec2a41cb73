//! The time that windows take, by a model.
//!
//! A window of `n` rows of tiles takes the longer of two times in a pass. Its launches take, for
//! each cell, the time to move it between chip and device memory once a launch, and the time to
//! compute it once a step. Its copies take their bytes over the rate of the connection, each way.
//! More launches a pass need fewer copies a step, and more rows of halo, which are computed twice.

use super::survey::Survey;
use super::window::{Part, Window};
use crate::device::{device_named, device_of};
use crate::ranks::Region;

/// Multiply-adds a cell and step. By their rates on an H200 kernels of many steps a launch took,
/// beside moving the cells, as long as 4 (star2d1r), 8 (box2d1r) and 14 (star3d1r) of them, and
/// star2d1r in windows as long as 3.5. Few are better than many: a pass that is too short waits for
/// copies, and one that is too long computes some more rows twice.
const WORK: f64 = 3.5;
/// The part of a connection's rate that copies have which go both ways at a time: on an H200 48 of
/// 64 GB/s.
const BOTH_WAYS: f64 = 0.75;
/// Rates of a device that is not described: of its memory, its connection, and multiply-adds.
const USUAL: (f64, f64, f64) = (100e9, 10e9, 100e9);

/// Rates of a device.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    memory: f64,
    host: f64,
    operations: f64,
    launch: f64,
}

impl Rates {
    /// Of the device for which a plan was compiled.
    pub fn of(survey: &Survey<'_>) -> Self {
        let target = &survey.plan.target;
        let wide = survey.bound.buffers.iter().any(|buffer| buffer.element.size() > 4);
        let named = target.device.as_deref().and_then(device_named);
        match named.or_else(|| device_of(&target.arch)) {
            Some(device) => Self {
                memory: device.copy_bandwidth,
                host: device.host_bandwidth * BOTH_WAYS,
                operations: if wide { device.fma_f64 } else { device.fma_f32 },
                launch: device.launch_seconds,
            },
            None => {
                let (memory, host, operations) = USUAL;
                Self { memory, host, operations, launch: 0.0 }
            }
        }
    }
}

/// Seconds of the copies of a window, which go both ways at a time.
pub fn copies(survey: &Survey<'_>, rates: Rates, window: &Window) -> f64 {
    let bytes = |cells: &[Region]| -> f64 {
        let all = cells.iter().zip(&survey.forms);
        all.map(|(cells, form)| (cells.rows().len() * form.columns * form.bytes) as f64).sum()
    };
    bytes(&window.needs).max(bytes(&window.gives)) / rates.host
}

/// Seconds of a launch of a window.
pub fn computes(survey: &Survey<'_>, rates: Rates, part: &Part) -> f64 {
    let Part { place, work, spoils } = part;
    let Ok((launch, _)) = survey.launch(*place) else { return 0.0 };
    let (mut bytes, mut cells) = (0_f64, 0_f64);
    for (place, buffer) in survey.cut(launch) {
        let Some(form) = survey.forms.get(buffer.0) else { continue };
        let row = (form.columns * form.bytes) as f64;
        let of = |cells: Option<&Region>| cells.map_or(0, |cells| cells.rows().len()) as f64;
        let writes = of(spoils.get(place)) * row;
        bytes += writes + of(work.loads.get(place)) * row;
        let size = survey.bound.buffers.get(buffer.0).map_or(4, |one| one.element.size());
        cells = cells.max(writes / size as f64);
    }
    let steps = f64::from(launch.node.steps.max(1));
    bytes / rates.memory + cells * steps * WORK / rates.operations + rates.launch
}
