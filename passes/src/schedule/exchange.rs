//! What devices receive before a launch, by the cut of its kernel, and how long that takes.
//!
//! The device with the most neighbours counts. It receives the cells in reach of its part, of
//! fields that the program updates; others stay where they are from the start on.

use crate::schedule::large::Large;
use crate::schedule::lowering::Settings;
use crate::subject::Subject;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{CutRead, Launch, Order, Parts};
use stencil_runtime::ranks::{Devices, LinkRate};

/// What a device receives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Messages: one from each neighbour.
    pub messages: f64,
    /// Bytes of all of them.
    pub bytes: f64,
    /// Launches beside the first: where columns of tiles are cut, a GPU launches the blocks of each
    /// row of tiles by themselves.
    pub launches: f64,
}

/// What a device receives before a launch.
///
/// # Errors
/// A field that is not there, and sizes that are too large.
pub fn of(
    program: &Program,
    launch: &Launch,
    sizes: &Large,
    devices: Devices,
) -> Result<Exchange, Error> {
    let (Some(cut), true) = (&launch.cut, devices.count() > 1) else {
        return Ok(Exchange::default());
    };
    let devices = match &cut.parts {
        Parts::Tiles { counts, .. } if counts.result_count() > 1 => devices,
        // Tiles of one dimension and points are shared out between all devices.
        _ => Devices::along(devices.count()),
    };
    let updated =
        |read: &&CutRead| program.applies.iter().any(|apply| apply.updates.contains(&read.field));
    let (mut bytes, mut neighbours, mut whole) = (0.0, [0.0f64; 2], false);
    for read in cut.reads.iter().filter(updated) {
        let grid = program.grid_of(read.field)?;
        let cell = mlir::bit_width(program.field(read.field)?.element).unwrap_or(64);
        let cell = f64::from(cell) / 8.0;
        let extents = sizes.extents(grid.lower, grid.upper)?;
        let part: Vec<f64> = devices.part(&extents).iter().map(|cells| *cells as f64).collect();
        let all: f64 = extents.iter().map(|cells| *cells as f64).product();
        let own: f64 = part.iter().product();
        let Some(reach) = &read.reach else {
            (bytes, whole) = (bytes + (all - own) * cell, true);
            continue;
        };
        let mut around = own;
        for (place, (devices, sides)) in devices.shape().iter().zip(&mut neighbours).enumerate() {
            let at = |cells: &[i64]| cells.get(place).copied().unwrap_or(0) as f64;
            let (below, above) = ((-at(&reach.lower)).max(0.0), at(&reach.upper).max(0.0));
            let (Some(part), Some(extent)) = (part.get(place), extents.get(place)) else {
                continue;
            };
            let cells = match *devices {
                1 => 0.0,
                2 if !read.wraps => below.max(above),
                _ => below + above,
            };
            let cells = cells.min(*extent as f64 - part);
            around *= (part + cells) / part.max(1.0);
            // A reach beyond the neighbour goes on to the next device.
            let each = if *devices == 2 && !read.wraps { 1.0 } else { 2.0 };
            let count = (cells / each / part.max(1.0)).ceil() * each;
            *sides = sides.max(count.min(*devices as f64 - 1.0));
        }
        bytes += (around - own) * cell;
    }
    let [rows, columns] = neighbours;
    let messages = match whole {
        true => devices.count() as f64 - 1.0,
        false => (rows + 1.0) * (columns + 1.0) - 1.0,
    };
    let launches = match &cut.parts {
        Parts::Tiles { counts, order, .. } if devices.shape()[1] > 1 => {
            let tiles = sizes.evaluate(*counts)?;
            let part =
                devices.share(&tiles.iter().map(|count| *count as u32).collect::<Vec<_>>(), 0);
            let rows = if *order == Order::RowMajor { part.len().min(1) } else { part.len() };
            let blocks: f64 = part.iter().take(rows).map(|tiles| tiles.len() as f64).product();
            blocks - 1.0
        }
        _ => 0.0,
    };
    Ok(Exchange { messages, bytes, launches: launches.max(0.0) })
}

impl Exchange {
    /// The same for two launches together.
    pub fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            launches: self.launches + other.launches,
        }
    }

    /// The part of a step, of launches of some steps.
    pub fn of_step(self, steps: u32) -> Self {
        let part = |all: f64| all / f64::from(steps.max(1));
        Self {
            messages: part(self.messages),
            bytes: part(self.bytes),
            launches: part(self.launches),
        }
    }

    /// The time of launches that compute for some seconds, with their exchange. GPUs that are
    /// connected read cells where they lie, while they compute. All others exchange first.
    pub fn beside(self, computing: f64, subject: &Subject, settings: Settings) -> f64 {
        let computing = match subject.processor {
            None => computing + self.launches * subject.device.launch_seconds,
            Some(_) => computing,
        };
        match settings.link {
            Some(link) => computing + link.seconds(self.messages, self.bytes),
            None if subject.processor.is_some() => {
                computing + LinkRate::OF_THREADS.seconds(self.messages, self.bytes)
            }
            None => computing.max(self.bytes / subject.device.peer_bandwidth),
        }
    }
}
