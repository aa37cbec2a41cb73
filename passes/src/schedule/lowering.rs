//! From the stencil level with its schedule to lowered kernels: the list of passes that a compile
//! runs, and that `choose-schedule` runs on each candidate.

use crate::pass::Step;
use crate::schedule::tile_overlapped::TileOverlapped;
use crate::schedule::tile_wavefront::TileWavefront;
use crate::strategies;
use crate::tiled::hyperplane_skew::HyperplaneSkew;
use crate::tiled::rotate_buffers::RotateBuffers;
use crate::tiled::split_interior::SplitInterior;
use crate::tiled::split_sums::SplitSums;
use crate::tiled::sync::PEER_SYNC;
use stencil_dialects::tiled::Choice;

/// What the way to the gpu level depends on beside the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether all tiles run the code with checks, those too that need none.
    pub no_split_interior: bool,
}

/// From a program to tile kernels, under a choice that may leave the rest to the module.
pub fn tile(choice: &Choice) -> Vec<Step> {
    vec![
        Step::ours(TileWavefront { choice: choice.clone() }),
        Step::ours(HyperplaneSkew),
        Step::ours(PEER_SYNC),
        Step::ours(TileOverlapped { choice: choice.clone() }),
        Step::ours(RotateBuffers),
    ]
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
    strategies::ALL.iter().map(|strategy| Step::Ours(strategy.lowering())).collect()
}
