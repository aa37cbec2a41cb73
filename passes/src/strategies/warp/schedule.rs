//! Cells a lane, tiles and pyramid heights of the strategy `warp`, where none are asked for.

use crate::analysis::footprint;
use crate::kernel::lanes::{self, WARP};
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Apply, Program};
use stencil_dialects::tiled::Halo;

/// Registers for the cells of a lane. What a step has under way comes on top, and four warps are to
/// fit on each quarter of a multiprocessor.
const REGISTERS: i64 = 48;

/// Cells a lane that are tried, all but the last a multiple of the widest access. On an H200, 48
/// cells of `f32` gave 10,000 GCells/s, 32 gave 9,200 and 16 gave 8,800.
const WIDTHS: [i64; 8] = [48, 32, 24, 16, 12, 8, 4, 2];

/// The largest pyramid height; more steps gain nothing.
const HIGHEST: i64 = 48;

/// The part of a warp's cells that may be lost to the halo, as a fraction.
const LOST: (i64, i64) = (1, 8);

/// Cells a lane: as many as its registers hold of all fields.
pub fn width(program: &Program, applies: &[&Apply]) -> Result<i64, Error> {
    let mut fields = BTreeSet::new();
    for apply in applies {
        fields.extend(apply.updates.iter().copied());
        fields.extend(
            footprint::of_pieces(program, &apply.pieces)?.into_iter().map(|read| read.field),
        );
    }
    let words = fields.into_iter().map(|field| Ok(lanes::words(program.field(field)?.element)));
    let words = words.sum::<Result<i64, Error>>()?.max(1);
    let fits = |width: &i64| width * words <= REGISTERS;
    Ok(WIDTHS.into_iter().find(fits).unwrap_or(2))
}

/// The most steps per launch that lose little to the halo; at least 1. `extent` gives the cells
/// beyond a tile that a number of steps touches, on both sides.
pub fn pyramid_height(
    width: i64,
    extent: impl Fn(i64) -> Result<[i64; 2], Error>,
) -> Result<i64, Error> {
    let mut best = 1;
    for steps in 2..=HIGHEST {
        let lost: i64 = extent(steps)?.iter().map(|cells| lanes::whole(*cells, width)).sum();
        if lost * LOST.1 <= WARP * width * LOST.0 {
            best = steps;
        }
    }
    Ok(best)
}

/// The cells of a warp that are left for a tile beside the halo; at least a lane's.
pub fn tile(width: i64, halos: &[&Halo]) -> i64 {
    let halo = halos.iter().fold(Halo::none(1), |all, halo| all.hull(halo));
    let before: i64 = halo.lower.iter().map(|lower| lanes::whole(-lower, width)).sum();
    let after: i64 = halo.upper.iter().map(|upper| lanes::whole(*upper, width)).sum();
    (WARP * width - before - after).max(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_halo_takes_whole_lanes() {
        let halo = |before: i64, after| Halo { lower: vec![-before], upper: vec![after] };
        assert_eq!(tile(4, &[&halo(0, 0)]), 128);
        assert_eq!(tile(4, &[&halo(1, 0), &halo(0, 5)]), 128 - 4 - 8);
        assert_eq!(tile(4, &[&halo(4, 4)]), 128 - 4 - 4);
        assert_eq!(tile(4, &[&halo(100, 100)]), 4);
    }
}
