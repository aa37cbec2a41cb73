//! Help texts that name strategies and devices, made from the lists of them.

use clap::error::{ContextKind, ContextValue};
use stencil_compiler::{Options, device_names};
use stencil_passes::strategies::names;

/// The help of `--arch`.
pub fn arch() -> String {
    let usual = Options::default().target().map(|target| target.arch).unwrap_or_default();
    format!("The GPU architecture or the processor; with --device its own, else by default {usual}")
}

/// The help of `--device`.
pub fn device() -> String {
    let names = device_names().join(", ");
    format!("The GPU that code is tuned for ({names}); by default the usual one of --arch")
}

/// The help of `--strategy`.
pub fn strategy() -> String {
    format!("How tiles are run: {}", names("or", |_| true))
}

/// The help of `--per-thread`.
pub fn per_thread() -> String {
    let fastest = names("and", |strategy| strategy.widened_dimension(2) == 1);
    format!(
        "Cells per thread: one number per dimension, or one for the slowest dimension (strategy \
         {fastest}: for the fastest)"
    )
}

/// The help of `--layout`.
pub fn layout() -> String {
    "How a run is given fields of structs and vecs: soa, an array for each number; aos, an array \
     of structs, which kernels use as it is (aos-direct), by an array for each number \
     (aos-relaid) or an array of blocks (aos-blocks), or as a model decides (aos); blocks, an \
     array of blocks of 32 cells, in which each number has an array of its own [default: soa]"
        .to_owned()
}

/// The help of `--region`.
pub fn region() -> String {
    let fixed = names("and", |strategy| strategy.has_fixed_regions());
    format!(
        "Cells that each function of a launch computes: shrinking, the cells needed at its step; \
         fixed, the same cells in each step (strategies {fixed})"
    )
}

/// The help of `--block`.
pub fn block() -> String {
    let fixed = names("and", |strategy| strategy.has_fixed_regions());
    format!(
        "Threads of a block per dimension, slowest first, in place of the tile: 8,32. The \
         tile is what the halo leaves of their cells (strategies {fixed})"
    )
}

/// For two files, says that one is expected; clap takes the second one for a command.
pub fn several_programs(error: &mut clap::Error) {
    let second = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
        .into_iter()
        .find_map(|kind| error.get(kind));
    let Some(ContextValue::String(second)) = second else { return };
    let is_program = second.ends_with(".stencil") || second.ends_with(".mlir");
    if is_program && !second.starts_with('-') {
        let tip = format!(
            "one program is expected; compile it by 'stencilc {second}', run it by 'stencilc run \
             {second}'"
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}
