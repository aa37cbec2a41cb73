//! Every pass of this project, by level. A pipeline names them; all other names are upstream's.

use crate::pass::Pass;
use crate::{llvm, schedule, stencil, strategies, tiled};

/// All passes, in the order in which a program meets them.
pub const PASSES: &[Pass] = &[
    stencil::verify::PASS,
    stencil::relax_arithmetic::PASS,
    stencil::fuse_functions::PASS,
    schedule::choose_schedule::PASS,
    schedule::tile_overlapped::PASS,
    tiled::rotate_buffers::PASS,
    tiled::split_sums::PASS,
    tiled::split_interior::PASS,
    strategies::naive::lower_naive::PASS,
    strategies::block::lower_block::PASS,
    strategies::stream::lower_stream::PASS,
    strategies::warp::lower_warp::PASS,
    llvm::convert_prefetch_to_nvvm::PASS,
    llvm::load_constants::PASS,
];

/// The pass of a name.
pub fn find(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|pass| pass.name == name)
}

/// The passes that follow one of them.
pub fn after(name: &str) -> impl Iterator<Item = &'static Pass> {
    PASSES.iter().skip_while(move |pass| pass.name != name).skip(1)
}
