//! The compiler, as lists of passes from level to level.

use crate::schedule::choose_schedule;
use stencil_dialects::tiled::Choice;

/// What the pipelines are made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// What is asked of the schedule; the rest is chosen.
    pub choice: Choice,
    /// Whether temp fields are kept, however cheap they are to compute again.
    pub no_fuse: bool,
    /// Whether all tiles run the code with checks, those too that need none.
    pub no_split_interior: bool,
}

/// A stencil program as it was imported, checked and simplified.
///
/// `fuse-functions` comes last: it compares what it makes as code that is as good as it gets.
pub fn stencil(config: &Config, arch: &str) -> String {
    let fuse = if config.no_fuse {
        String::new()
    } else {
        format!(",fuse-functions{{{}}}", schedule_options(config, arch))
    };
    format!(
        "stencil-verify,func.func(canonicalize,cse),relax-arithmetic,func.func(canonicalize,cse){fuse}"
    )
}

/// What is not to be chosen of the schedule.
fn schedule_options(config: &Config, arch: &str) -> String {
    let options =
        choose_schedule::options_of(&config.choice).into_iter().chain([("arch", arch.to_owned())]);
    options.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// From the stencil level to the tiled level, for an architecture such as `sm_90`.
pub fn tiled(config: &Config, arch: &str) -> String {
    let options = schedule_options(config, arch);
    let split = if config.no_split_interior { "" } else { ",split-interior" };
    format!("choose-schedule{{{options}}},tile-overlapped,rotate-buffers,split-sums{split}")
}

/// From the tiled level to the gpu level. Each lowering takes the kernels of its strategy.
///
/// Kernels are simplified from the bottom up: with branches in branches, as streams have them, that
/// takes a tenth of the time.
pub fn gpu() -> String {
    "lower-naive,lower-block,lower-stream,lower-warp,gpu.module(canonicalize{top-down=false},cse)"
        .to_owned()
}

/// From the gpu level to NVVM in the LLVM dialect; `index_width` is 32 or 64 bits.
///
/// `expand-strided-metadata` leaves affine maps behind, so `lower-affine` follows it;
/// `convert-gpu-to-nvvm` must come before the vector and memref conversions, whose casts it
/// would not see through. `load-constants` comes last: it counts what is left.
pub fn nvvm(index_width: u32) -> String {
    format!(
        "gpu.module(expand-strided-metadata,lower-affine,canonicalize,cse,convert-scf-to-cf,\
         convert-gpu-to-nvvm{{index-bitwidth={index_width} use-bare-ptr-memref-call-conv=1}}),\
         convert-vector-to-llvm,finalize-memref-to-llvm{{index-bitwidth={index_width}}},convert-prefetch-to-nvvm,\
         gpu.module(canonicalize,cse,reconcile-unrealized-casts),load-constants"
    )
}
