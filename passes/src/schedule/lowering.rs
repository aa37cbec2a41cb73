//! From the stencil level with its schedule to lowered kernels: the list of passes that a compile
//! runs, and that `choose-schedule` runs on each candidate.

use crate::pass::{Info, Pass, Step};
use crate::schedule::flexible_hyper_tiles::FlexibleHyperTiles;
use crate::schedule::stay_resident::StayResident;
use crate::schedule::strategy::Strategy;
use crate::schedule::sweeps_in_flight::SweepsInFlight;
use crate::schedule::tile_overlapped::TileOverlapped;
use crate::schedule::tile_wavefront::TileWavefront;
use crate::strategies;
use crate::tiled::hyperplane_skew::HyperplaneSkew;
use crate::tiled::rotate_buffers::RotateBuffers;
use crate::tiled::split_interior::SplitInterior;
use crate::tiled::split_sums::SplitSums;
use crate::tiled::sync::PEER_SYNC;
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{self, Choice};
use stencil_runtime::ranks::{Devices, LinkRate};

/// What the way to the gpu level depends on beside the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether all tiles run the code with checks, those too that need none.
    pub no_split_interior: bool,
    /// The devices that share the tiles of a launch; none for one.
    pub devices: Option<Devices>,
    /// How fast they send cells to each other; none for what is usual.
    pub link: Option<LinkRate>,
    /// Whether runs may be out of core: a launch may be done in parts, as several devices do it.
    pub windows: bool,
}

/// From a program to tile kernels, under a choice that may leave the rest to the module.
pub fn tile(choice: &Choice) -> Vec<Step> {
    let mut steps = vec![
        Step::ours(TileWavefront { choice: choice.clone() }),
        Step::ours(HyperplaneSkew),
        Step::ours(PEER_SYNC),
    ];
    if choice.tile.is_none() {
        let tiles = FlexibleHyperTiles { measured: true, ..FlexibleHyperTiles::default() };
        steps.push(Step::ours(tiles));
    }
    steps.extend([
        Step::ours(TileOverlapped { choice: choice.clone() }),
        Step::ours(SweepsInFlight { sweeps: choice.pyramid_height }),
        Step::ours(StayResident::default()),
        Step::ours(RotateBuffers),
    ]);
    steps
}

/// From tile kernels to those that a lowering takes. Buffers rotate before: their fields' cells are
/// neither computed nor moved, and the parts of a sum have one field.
pub fn split(settings: Settings) -> Vec<Step> {
    let mut steps = vec![Step::ours(SplitSums)];
    if !settings.no_split_interior {
        steps.push(Step::ours(SplitInterior));
    }
    steps
}

/// From tile kernels to kernels of the gpu level. Each lowering takes the kernels of its strategy.
pub fn lower() -> Vec<Step> {
    let lowering =
        |strategy: &&dyn Strategy| Lowering { of: strategy.name(), pass: strategy.lowering() };
    strategies::ALL.iter().map(|strategy| Step::ours(lowering(strategy))).collect()
}

/// The lowering of a strategy. Most programs have kernels of one strategy alone.
struct Lowering {
    of: &'static str,
    pass: Box<dyn Pass>,
}

impl Pass for Lowering {
    fn info(&self) -> &'static Info {
        self.pass.info()
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.pass.options()
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(tiled::kernels(module)?.iter().any(|kernel| kernel.schedule.strategy == self.of))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        self.pass.run(context, module)
    }
}
