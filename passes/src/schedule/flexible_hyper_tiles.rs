//! `flexible-hyper-tiles`: gives wavefront kernels the tile width that is best by the model.
//!
//! Narrow tiles let the tile rows below begin early, wide ones need fewer handovers. The model
//! (`model/wavefront.rs` of the runtime crate) weighs both, as equation 4 of the source does. Its
//! tiles are as high as a block has threads; here the height stays that of the kernel, unless it is
//! to be searched too.
//!
//! The model's times come from numbers of the device, or from a training run: the attribute
//! `tiled.pace` of the module, which `stencilc --train` measures.
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), sections 3.3 and 4.
//!
//! Needs: tile kernels behind `hyperplane-skew` and `peer-sync`, because the model describes skewed
//! tiles whose blocks wait by flags. A `width` needs neither. Guarantees: the same kernels; those
//! of strategies that sweep have the tile whose predicted time is least, among widths of 2^k and
//! 3 * 2^k times that the strategy takes. Without the pass they have the strategy's usual width.
//! Run-time sizes count as large ones.
//!
//! ```text
//! func.func @sw_0() attributes {tiled.strategy = "wavefront", tiled.tile = array<i64: 256, 64>, ...} {
//! ```
//! becomes
//! ```text
//! func.func @sw_0() attributes {tiled.strategy = "wavefront", tiled.tile = array<i64: 256, 128>, ...} {
//! ```
//! Declines: a width that the strategy of a kernel does not take.

use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::waves;
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Kernel, MOST_CELLS, Waiting, Wave};

/// The option for [`FlexibleHyperTiles::width`].
const WIDTH: (&str, &str) = ("width", "times of a tile (default: the best by the model)");
/// The option for [`FlexibleHyperTiles::heights`].
const HEIGHTS: (&str, &str) =
    ("heights", "whether tiles in two dimensions may get another height: on or off (default)");

/// The option for [`FlexibleHyperTiles::measured`].
const MEASURED: (&str, &str) =
    ("measured", "whether only modules with a measured pace are changed: on or off (default)");

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "flexible-hyper-tiles",
    summary: "set the width of wavefront tiles by the model, or to a number",
    options: &[WIDTH, HEIGHTS, MEASURED],
    read: |options: &Options| {
        Ok(Box::new(FlexibleHyperTiles {
            width: options.integer(WIDTH.0, 1..=MOST_CELLS)?,
            heights: options.flag(HEIGHTS.0)?.unwrap_or(false),
            measured: options.flag(MEASURED.0)?.unwrap_or(false),
        }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlexibleHyperTiles {
    /// Times of a tile; none for the best by the model.
    pub width: Option<i64>,
    /// Whether the height is searched too.
    pub heights: bool,
    /// Whether modules without a measured pace (`tiled.pace`) stay as they are.
    pub measured: bool,
}

impl Pass for FlexibleHyperTiles {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = Vec::new();
        options.extend(self.width.map(|width| (WIDTH.0, width.to_string())));
        if self.heights {
            options.push((HEIGHTS.0, "on".to_owned()));
        }
        if self.measured {
            options.push((MEASURED.0, "on".to_owned()));
        }
        options
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        // A tile that is asked for stays.
        let open = || Ok(tiled::pace(module)?.is_some() && tiled::choice(module)?.tile.is_none());
        if self.measured { open() } else { Ok(true) }
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        if !self.has_work(module)? {
            return Ok(());
        }
        let program = Program::read(module)?;
        let subject = Subject::of(module, &program)?;
        for kernel in &tiled::kernels(module)? {
            let at = |error: Error| error.at(mlir::place(kernel.op.location()));
            if let Some(tile) = self.tile(context, &subject, kernel).map_err(at)? {
                let builder = Builder::new(context, kernel.op.location(), mlir::body(module));
                tiled::set_tile(&builder, kernel.op, &tile);
            }
        }
        Ok(())
    }
}

/// The widest tile that is tried.
const WIDEST: i64 = 2048;

impl FlexibleHyperTiles {
    /// The tile of a kernel; none of a kernel that keeps its own.
    fn tile<'c>(
        &self,
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
    ) -> Result<Option<Vec<i64>>, Error> {
        let Some((own, heights)) = kernel.schedule.tile.split_last() else { return Ok(None) };
        let higher: Vec<Vec<i64>> = match heights {
            [own] if self.heights => {
                std::iter::once(*own).chain(steps(MOST_CELLS)).map(|height| vec![height]).collect()
            }
            _ => vec![heights.to_vec()],
        };
        let widths: Vec<i64> = match self.width {
            Some(width) => vec![width],
            None => std::iter::once(*own).chain(steps(WIDEST)).collect(),
        };
        let mut best: Option<(f64, Vec<i64>)> = None;
        let mut declined = None;
        for heights in &higher {
            for width in &widths {
                let tile = [heights.as_slice(), &[*width]].concat();
                let sweep = match waves::of_kernel(context, subject, kernel, &tile) {
                    Ok(sweep) => sweep,
                    Err(error) if error.is_decline() => {
                        declined = declined.or(Some(error));
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let Some(sweep) = sweep else { return Ok(None) };
                let Wave { skew, waiting, .. } = &kernel.wave;
                if self.width.is_none() && (skew.is_none() || *waiting != Some(Waiting::Peer)) {
                    return Err(Error::user(
                        "the model describes skewed tiles whose blocks wait by flags; run \
                         hyperplane-skew and peer-sync before flexible-hyper-tiles, or give it a \
                         width",
                    ));
                }
                // What can't be predicted keeps its place in the order: the kernel's own is first.
                let seconds = sweep.seconds().unwrap_or(f64::INFINITY);
                if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                    best = Some((seconds, tile));
                }
            }
        }
        match (best, declined) {
            (Some((_, tile)), _) => Ok(Some(tile)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }
}

/// The numbers 2^k and 3 * 2^k from 2 to a largest one.
fn steps(most: i64) -> impl Iterator<Item = i64> {
    let powers = (0..62).map(|power| 1_i64 << power).take_while(move |power| *power <= most);
    powers.flat_map(|power| [2 * power, 3 * power]).filter(move |step| *step <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_at_most_half_as_large_again() {
        let found: Vec<i64> = steps(50).collect();
        assert_eq!(found, [2, 3, 4, 6, 8, 12, 16, 24, 32, 48]);
        assert!(steps(MOST_CELLS).all(|step| step <= MOST_CELLS));
    }
}
