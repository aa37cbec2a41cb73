//! The wave of a kernel, for the model: its tile rows, their tiles and lags, and its pace.

use super::NAME;
use crate::analysis::between_sweeps;
use crate::analysis::swept;
use crate::analysis::wavefront::{Wavefront, ceil_div, count};
use crate::subject::Subject;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::tiled::Kernel;
use stencil_runtime::device::Device;
use stencil_runtime::model::Pace;
use stencil_runtime::model::wavefront::{Behind, Wait, Wave};

/// Threads that should run on a multiprocessor at once, in blocks of fewer: four warps for each of
/// its four schedulers.
const RESIDENT_THREADS: i64 = 512;

/// Blocks of some threads that a multiprocessor runs at once.
pub fn per_multiprocessor(threads: i64, device: &Device) -> i64 {
    (RESIDENT_THREADS / threads.max(1)).clamp(1, i64::from(device.blocks_per_multiprocessor))
}

/// The wave of a kernel with tiles of some cells on a grid of so many points, and its pace.
pub fn of(
    subject: &Subject,
    kernel: &Kernel,
    tile: &[i64],
    points: &[i64],
) -> Result<(Wave, Pace), Error> {
    let decline = |message: &str| Error::declined(Decline::TileShape, message);
    let applies: Vec<_> = kernel.applies().collect();
    let ([apply], Some((width, heights))) = (applies.as_slice(), tile.split_last()) else {
        let message = format!("a tile kernel of strategy {NAME} has one tiled.apply");
        return Err(Error::declined(Decline::Applies, message));
    };
    let threads: i64 = heights.iter().fold(1, |all, height| all.saturating_mul(*height));
    if tile.len() != points.len() || tile.iter().any(|cells| *cells < 1) {
        return Err(decline(
            "the tile has another number of dimensions than the grid, or an empty one; give one \
                        positive number per dimension",
        ));
    }
    if threads > i64::from(subject.device.threads_per_block) {
        return Err(decline("the tile has more rows than a block has threads; make it lower"));
    }
    let dependences = subject.program.dependences(&apply.pieces)?;
    let front = Wavefront::of(&dependences, tile.len());
    let front =
        front.filter(|front| front.rows.iter().zip(heights).all(|(rows, height)| rows <= height));
    let front = front.ok_or_else(|| {
        decline(
            "the function reads from rows farther away than the tile is high; make the tile higher",
        )
    })?;
    let swept = swept::of(subject.program, &apply.pieces, (apply.outputs.len(), tile.len()))?;

    let device = subject.device;
    let resident = per_multiprocessor(threads, device) * i64::from(device.multiprocessors);
    let wave = Wave {
        counts: counts(&front, heights, points),
        tiles: count(ceil_div(times(&front, (heights, *width), points), *width)),
        width: count(*width),
        drain: 0,
        waits: front
            .waits(heights, *width)
            .into_iter()
            .map(|(before, lag)| Wait { before, lag: count(lag) })
            .collect(),
        resident: count(resident),
        sweeps: count(kernel.wave.all_sweeps()),
        behind: behind(subject, kernel, &front, (heights, *width))?,
    };
    let together = wave.blocks().div_ceil(device.multiprocessors.into());
    let pace = Pace::in_memory(swept, together * count(threads), device);
    Ok((wave, pace))
}

/// The tile rows of the sweep before that a tile row waits for.
fn behind(
    subject: &Subject,
    kernel: &Kernel,
    front: &Wavefront,
    (heights, width): (&[i64], i64),
) -> Result<Vec<Behind>, Error> {
    let mut found = Vec::new();
    for apply in kernel.applies().filter(|_| kernel.wave.sweeps.is_some()) {
        let updates: Vec<_> = apply.outputs.iter().map(|(field, _)| *field).collect();
        let distances = between_sweeps::distances(subject.program, &apply.pieces, &updates)?;
        let waits = front.waits_before(&distances, heights, width);
        found.extend(waits.into_iter().map(|(step, lag)| Behind { step, lag }));
    }
    Ok(found)
}

/// Tile rows along each dimension but the fastest. The second of three is sheared.
fn counts(front: &Wavefront, heights: &[i64], points: &[i64]) -> Vec<u64> {
    let sheared = |dimension: usize| match points.first() {
        Some(first) if dimension == 1 => front.skew.shear.saturating_mul((first - 1).max(0)),
        _ => 0,
    };
    let rows = heights.iter().zip(points).enumerate();
    rows.map(|(dimension, (height, points))| {
        count(ceil_div(points.saturating_add(sheared(dimension)), *height))
    })
    .collect()
}

/// Times of a tile row. No row is farther behind than the rows before it have times, where some
/// skew is beyond a tile (`skews.rs`).
fn times(front: &Wavefront, (heights, width): (&[i64], i64), points: &[i64]) -> i64 {
    let far = front.skew.times.iter().any(|skew| *skew > width);
    let mut times = points.last().copied().unwrap_or(0);
    for (skew, height) in front.skew.times.iter().zip(heights).rev() {
        let skew = if far { (*skew).min(times) } else { *skew };
        times = times.saturating_add(skew.saturating_mul(height - 1));
    }
    times
}
