//! The work of a launch, for the model.

use crate::analysis::kernel_work;
use crate::analysis::steps_alike;
use crate::analysis::tile_traffic::TileTraffic;
use crate::schedule::large::Large;
use crate::strategies;
use crate::subject::Subject;
use std::ops::Range;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Binding, Launch, Parts};
use stencil_runtime::model::Work;
use stencil_runtime::ranks::Devices;

/// The part of a launch that the device with the most tiles computes; none where devices can't
/// share it.
pub fn busiest(
    launch: &Launch<'_>,
    sizes: &Large<'_>,
    devices: Devices,
) -> Result<Option<f64>, Error> {
    if devices.count() == 1 {
        return Ok(Some(1.0));
    }
    let Some(cut) = launch.cut.as_ref() else { return Ok(None) };
    let Parts::Tiles { counts, .. } = &cut.parts else {
        // Blocks of points are shared out one by one.
        return Ok(Some(1.0 / devices.count() as f64));
    };
    let tiles = sizes.evaluate(*counts)?.into_iter();
    let tiles: Vec<u32> = tiles.map(|count| u32::try_from(count.max(0)).unwrap_or(0)).collect();
    let count = |share: Vec<Range<u32>>| share.iter().map(|own| own.len() as f64).product::<f64>();
    let all: f64 = tiles.iter().map(|tiles| f64::from(*tiles)).product();
    let most = (0..devices.count()).map(|device| count(devices.share(&tiles, device)));
    Ok(Some(most.fold(0.0, f64::max) / all.max(1.0)))
}

/// The rows of a launch's tiles, as a part of what as many whole tiles have.
fn whole_rows(launch: &Launch<'_>, sizes: &Large<'_>) -> Result<f64, Error> {
    let Some(cut) = &launch.cut else { return Ok(1.0) };
    let Parts::Tiles { counts, tile, .. } = &cut.parts else { return Ok(1.0) };
    let first = |map| Ok::<_, Error>(sizes.evaluate(map)?.first().copied().unwrap_or(0));
    let rows = first(cut.upper)?.saturating_sub(first(cut.lower)?).saturating_add(1);
    let whole = first(*counts)?.saturating_mul(tile.first().copied().unwrap_or(1));
    Ok((rows.max(0) as f64 / whole.max(1) as f64).min(1.0))
}

/// The work of a launch whose steps compute the same: LLVM keeps one of them.
fn one_step(work: Work, steps: i64) -> Work {
    let one = |count: f64| count / steps.max(1) as f64;
    Work {
        single: one(work.single),
        double: one(work.double),
        integers: one(work.integers),
        instructions: one(work.instructions),
        longest: one(work.longest),
        shuffles: one(work.shuffles),
        exchanged: one(work.exchanged),
        serial: one(work.serial),
        ..work
    }
}

/// The work of a launch of so many blocks, in so many bands.
pub fn of(
    launch: &Launch<'_>,
    traffic: &TileTraffic,
    (blocks, bands): (f64, f64),
    sizes: &Large<'_>,
    subject: &Subject<'_, '_>,
) -> Result<Work, Error> {
    let size = |argument: usize| match launch.bindings.get(argument)? {
        Binding::Param(name) => sizes.of_name(name),
        _ => None,
    };
    let work = kernel_work::of(launch, subject.device, blocks, &size);
    let work = match steps_alike::of(subject.program)? {
        true => one_step(work, launch.schedule.steps),
        false => work,
    };
    let strategy = strategies::named(&launch.schedule.strategy)?;
    let blocks = match strategy.has_short_tiles() {
        true => blocks * whole_rows(launch, sizes)?,
        false => blocks,
    };
    let tiles = strategy.tiles_per_block(work.threads);
    let all = Work {
        blocks,
        bands,
        own: tiles * traffic.own,
        halo: tiles * traffic.halo,
        redundancy: traffic.redundancy,
        exchanges: if strategy.exchanges_rows() { work.barriers } else { 0.0 },
        waits: work.waits / strategy.loads_ahead(),
        ..work
    };
    let Some(rounds) = launch.sweeps.filter(|_| strategy.stays_resident()) else { return Ok(all) };
    // Two barriers are around each wait for flags; rims are stored and loaded.
    let meetings = if blocks > 1.0 { (rounds - 1) as f64 } else { 0.0 };
    Ok(Work {
        halo: all.halo * (1.0 + 2.0 * meetings),
        exchanges: all.exchanges - 2.0 * rounds as f64,
        meetings,
        waits: 0.0,
        ..all
    })
}
