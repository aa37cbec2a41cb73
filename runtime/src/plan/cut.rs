//! How the blocks of a launch may be shared out between devices: which cells a block reads and
//! writes.

use super::{Argument, Launch, Plan};
use crate::expr::Expr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The blocks of a launch, and the cells that they use. A launch without a cut can't be shared out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// What each block computes.
    pub parts: Parts,
    /// How blocks are numbered; in the row-major order of their tiles unless it is there.
    #[serde(default, skip_serializing_if = "Order::is_row_major")]
    pub order: Order,
    /// The cells of buffers among the arguments. Of others a block uses those of its part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, Use>,
}

/// What each block computes, in the coordinates of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Parts {
    /// A tile, or half of one. The tiles per dimension, slowest first; dimensions that are not
    /// there have one tile with all cells.
    Tiles(Vec<Tiles>),
    /// Points of a box.
    Points(Points),
}

/// The numbers of the blocks of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Those of their tiles, in row-major order.
    #[default]
    RowMajor,
    /// Tiles at a rim of the two fastest dimensions come first.
    RimFirst,
    /// The same, and a tile of the first and of the last column is two blocks.
    RimFirstInHalves,
}

impl Order {
    /// Whether tiles are numbered row after row.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub fn is_row_major(&self) -> bool {
        *self == Self::RowMajor
    }
}

/// The tiles along a dimension. Tile `t` begins at `first + t * cells + before` and ends where the
/// next one begins; but the first tile begins at `first`, and the last one ends at `last`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tiles {
    /// How many.
    pub count: Expr,
    /// The first cell of the first tile.
    pub first: Expr,
    /// The last cell of the last tile.
    pub last: Expr,
    /// Cells of a tile.
    pub cells: u32,
    /// Cells by which all tiles but the first begin later than whole tiles would.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: i64,
}

/// Points of a row-major box. Block `b` has those from `b * points` on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Points {
    /// The first cell of the box along the slowest dimension.
    pub first: Expr,
    /// Points of the box that lie in one row, a cell along the slowest dimension.
    pub row: Expr,
    /// Points of a block.
    pub points: u32,
}

/// The cells of a buffer that blocks use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Use {
    /// Any.
    Whole,
    /// So many cells a block, one block after the other.
    Blocks(u32),
    /// Those of its part, and around it.
    Near(Near),
}

/// Cells of a buffer at the part of a block and around it. Lists have a number for each dimension
/// of the parts, and points have one for the slowest; an empty list has zeros.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Near {
    /// The coordinates of the buffer's first cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<Expr>,
    /// How far before the first cell of a part others are read; a negative number where they begin
    /// behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<i64>,
    /// How far behind the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<i64>,
    /// How many cells before these are loaded beside, whose values do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spare_below: Vec<i64>,
    /// How many behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spare_above: Vec<i64>,
    /// Whether cells beyond the buffer are those at its other end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wraps: bool,
    /// Whether cells beyond the buffer are mirrored about its first and its last cell. Without a
    /// rule of these two they are the nearest cell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirrors: bool,
}

impl Near {
    /// Its lists of cells.
    fn lists(&self) -> [&[i64]; 4] {
        [&self.below, &self.above, &self.spare_below, &self.spare_above]
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Plan {
    /// Checks that a launch's cut fits its arguments.
    pub(super) fn cut_is_possible(&self, launch: &Launch) -> Result<(), String> {
        let numbered = launch.arguments.contains(&Argument::FirstBlock);
        let whole = launch.cooperative || launch.bands.is_some() || launch.turns.is_some();
        if numbered && (launch.cut.is_none() || launch.cluster.is_some() || whole) {
            return Err("an argument `first_block` is for launches with `cut` that are neither \
                        cooperative, of clusters, in bands nor in turns"
                .to_string());
        }
        let Some(cut) = &launch.cut else { return Ok(()) };
        let mut sizes: Vec<&Expr> = Vec::new();
        let rank = match &cut.parts {
            Parts::Tiles(tiles) => {
                sizes.extend(tiles.iter().flat_map(|one| [&one.count, &one.first, &one.last]));
                tiles.len()
            }
            Parts::Points(points) => {
                sizes.extend([&points.first, &points.row]);
                1
            }
        };
        if rank == 0 {
            return Err("a cut has tiles along a dimension".into());
        }
        for (name, used) in &cut.uses {
            if !launch.arguments.iter().any(|argument| argument.buffer() == Some(name)) {
                return Err(format!("a cut uses {name:?}, which is no argument"));
            }
            let Use::Near(near) = used else { continue };
            let lengths = near.lists().map(<[i64]>::len).into_iter().chain([near.origin.len()]);
            if lengths.into_iter().any(|length| length != 0 && length != rank) {
                return Err(format!("a cut has {rank} numbers in a list of {name:?}, or none"));
            }
            sizes.extend(&near.origin);
        }
        sizes.into_iter().try_for_each(|size| self.known_sizes(size, "the cut", true))?;
        if launch.cooperative || launch.cluster.is_some() || launch.turns.is_some() {
            return Err("a launch that is cut is not cooperative, and has no clusters and no \
                        `turns`"
                .into());
        }
        Ok(())
    }
}
