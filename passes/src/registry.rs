//! Every pass of this project, by level. A pipeline's text names them; all other names are
//! upstream's.

use crate::pass::Info;
use crate::{affine, gpu, llvm, reduce, schedule, stencil, strategies, tiled};

/// The passes before the lowerings, in the order in which a program meets them.
const BEFORE: &[&Info] = &[
    &affine::transpose_arrays::INFO,
    &affine::sink_time_loops::INFO,
    &affine::tile_affine_nest::INFO,
    &affine::lower_affine_nest::INFO,
    &stencil::verify::INFO,
    &stencil::aos_fields::INFO,
    &stencil::relax_arithmetic::INFO,
    &stencil::late_values_last::INFO,
    &stencil::fuse_functions::INFO,
    &stencil::share_subexpressions::INFO,
    &schedule::choose_schedule::INFO,
    &schedule::choose_heights::INFO,
    &schedule::tile_wavefront::INFO,
    &tiled::hyperplane_skew::INFO,
    &tiled::sync::PEER_INFO,
    &tiled::sync::GRID_INFO,
    &schedule::flexible_hyper_tiles::INFO,
    &schedule::tile_overlapped::INFO,
    &schedule::sweeps_in_flight::INFO,
    &schedule::stay_resident::INFO,
    &tiled::rotate_buffers::INFO,
    &reduce::fuse_reductions::INFO,
    &tiled::split_sums::INFO,
    &tiled::split_interior::INFO,
    &reduce::lower_reduce::INFO,
];

/// The passes behind the lowerings.
const BEHIND: &[&Info] = &[
    &gpu::coalesce_relayout::INFO,
    &gpu::interleave_records::INFO,
    &reduce::combine_stores::INFO,
    &gpu::hoist_guards::INFO,
    &gpu::keep_in_registers::INFO,
    &gpu::bank_pad::INFO,
    &gpu::vectorize_copies::INFO,
    &gpu::eliminate_barriers::INFO,
    &gpu::unroll_by_registers::INFO,
    &gpu::place_constants::INFO,
    &gpu::number_blocks::INFO,
    &gpu::guard_launches::INFO,
    &gpu::exact_division::INFO,
    &gpu::lower_peer::INFO,
    &llvm::convert_prefetch_to_nvvm::INFO,
    &llvm::annotate_loops::INFO,
    &llvm::load_constants::INFO,
    &llvm::convert_math_to_calls::INFO,
    &llvm::host_entries::INFO,
];

/// All passes, in the order in which a program meets them.
pub fn passes() -> impl Iterator<Item = &'static Info> {
    let lowerings = strategies::ALL.iter().map(|strategy| strategy.lowering().info());
    BEFORE.iter().copied().chain(lowerings).chain(BEHIND.iter().copied())
}

/// The pass of a name.
pub fn find(name: &str) -> Option<&'static Info> {
    passes().find(|info| info.name == name)
}
