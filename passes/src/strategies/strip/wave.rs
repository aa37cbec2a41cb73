//! The wave of a kernel of strips, for the model: its tile rows, their tiles and lags, its pace.

use super::NAME;
use super::block::{AHEAD, BEHIND};
use super::in_flight::InFlight;
use super::lower_strip::plan;
use super::plan::{Plan, REGISTERS};
use crate::analysis::swept;
use crate::analysis::wavefront::{ceil_div, count};
use crate::subject::Subject;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::tiled::Kernel;
use stencil_runtime::device::Device;
use stencil_runtime::model::Pace;
use stencil_runtime::model::wavefront::{Wait, Wave};

/// The wave of a kernel with tiles of some cells on a grid of so many points, and its pace. A tile
/// time is that between two barriers of a block.
pub fn of(
    subject: &Subject,
    kernel: &Kernel,
    tile: &[i64],
    points: &[i64],
) -> Result<(Wave, Pace), Error> {
    let applies: Vec<_> = kernel.applies().collect();
    let ([apply], &[rows, columns]) = (applies.as_slice(), points) else {
        let message = format!("a tile kernel of strategy {NAME} has one apply of two dimensions");
        return Err(Error::declined(Decline::Applies, message));
    };
    let per_thread = &kernel.schedule.per_thread;
    let sweeps = kernel.wave.all_sweeps();
    let plan = plan(subject, (kernel, apply), (tile, per_thread, sweeps))?;
    let device = subject.device;
    let threads = u32::try_from(plan.threads()).unwrap_or(u32::MAX);
    let shared = u64::try_from(plan.shared()).unwrap_or(u64::MAX);
    if shared > device.shared_per_block || threads > device.threads_per_block {
        let message = "a multiprocessor has no room for the block of strips; make the tile smaller";
        return Err(Error::declined(Decline::SharedMemory, message));
    }
    let behind = match sweeps {
        1 => Vec::new(),
        _ => InFlight::of(subject.program, apply, &plan, sweeps)?.behind(),
    };
    let wave = Wave { sweeps: count(sweeps), behind, ..of_plan(&plan, device, [rows, columns]) };
    let geometry = &plan.geometry;
    let swept = swept::of(subject.program, &apply.pieces, (apply.outputs.len(), 2))?;
    let rows = u32::try_from(geometry.rows).unwrap_or(u32::MAX);
    let pace = Pace::in_registers(swept, rows, device);
    // Threads with fewer registers than they should have take longer, about as many times.
    let wanted = plan.threads().saturating_mul(REGISTERS) as f64;
    let scarce = (wanted / f64::from(device.registers)).max(1.0);
    Ok((wave, Pace { diagonal: scarce * pace.diagonal, ..pace }))
}

/// The wave of one sweep on a grid of so many rows and columns.
pub fn of_plan(plan: &Plan, device: &Device, [rows, columns]: [i64; 2]) -> Wave {
    let geometry = &plan.geometry;
    let own = count(ceil_div(columns, geometry.width));
    let others = count(geometry.early_tiles() + geometry.late_tiles());
    // The strips of a block are some tiles behind each other.
    let last = geometry.last_strip();
    let lag = count(last + geometry.behind() + AHEAD + BEHIND - 1);
    let waits = vec![Wait { before: vec![true], lag }];
    Wave {
        counts: vec![count(ceil_div(rows, geometry.block()))],
        tiles: if own == 0 { 0 } else { own + others },
        width: count(geometry.width),
        drain: count(last + AHEAD + BEHIND),
        waits: if geometry.above > 0 { waits } else { Vec::new() },
        resident: count(plan.resident(device) * i64::from(device.multiprocessors)),
        sweeps: 1,
        behind: Vec::new(),
    }
}
