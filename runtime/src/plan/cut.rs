//! How the blocks of a launch may be shared out between devices: which cells a block reads and
//! writes.

use super::{Launch, Plan};
use crate::expr::Expr;
use serde::{Deserialize, Serialize};

/// The blocks of a launch, and the cells that they use. A launch without a cut can't be shared out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Tiles per dimension, slowest first. A block computes a tile, or half of one.
    pub tiles: Vec<Expr>,
    /// How blocks are numbered; in the row-major order of their tiles unless it is there.
    #[serde(default, skip_serializing_if = "Order::is_row_major")]
    pub order: Order,
    /// The cells of each buffer among the arguments, in the order of the arguments.
    pub uses: Vec<Use>,
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

/// The cells of a buffer that blocks use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Use {
    /// Any.
    Whole,
    /// So many cells a block, one block after the other.
    Blocks(u32),
    /// Those of its tile and around it, per dimension. All of the other dimensions.
    Tiles(Vec<Span>),
    /// Those of points of a box, and around them along the slowest dimension.
    Points(Points),
}

/// The cells of a tile along a dimension. Tile `t` begins at `first + t * cells + before` and ends
/// where the next one begins; but the first tile begins at `first`, and the last one ends at
/// `last`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first cell of the first tile, from 0 in the buffer.
    pub first: Expr,
    /// The last cell of the last tile.
    pub last: Expr,
    /// Cells of a tile.
    pub cells: u32,
    /// Cells by which all tiles but the first begin later than whole tiles would.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: i64,
    /// Cells that are read beside the tile.
    #[serde(default, skip_serializing_if = "Reach::is_none")]
    pub reach: Reach,
}

/// Points of a row-major box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Points {
    /// The first cell of the box along the slowest dimension, from 0 in the buffer.
    pub first: Expr,
    /// Points of the box that lie in one such row.
    pub row: Expr,
    /// Points of a block.
    pub points: u32,
    /// Rows that are read beside those of the points.
    #[serde(default, skip_serializing_if = "Reach::is_none")]
    pub reach: Reach,
}

/// Cells that are read beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// How far before the first one; a negative number where they begin behind it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub below: i64,
    /// How far behind the last one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub above: i64,
    /// How many cells before these are loaded beside, whose values do not matter.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_below: i64,
    /// How many behind them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spare_above: i64,
    /// Whether cells beyond the buffer are those at its other end; else there are none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wraps: bool,
}

impl Reach {
    /// Whether nothing is read beside.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Plan {
    /// Checks that a launch's cut fits its arguments.
    pub(super) fn cut_is_possible(&self, launch: &Launch) -> Result<(), String> {
        let Some(cut) = &launch.cut else { return Ok(()) };
        let mut sizes: Vec<&Expr> = cut.tiles.iter().collect();
        for used in &cut.uses {
            match used {
                Use::Whole | Use::Blocks(_) => {}
                Use::Tiles(spans) if spans.len() > cut.tiles.len() => {
                    return Err("a cut has cells along more dimensions than it has tiles".into());
                }
                Use::Tiles(spans) => {
                    sizes.extend(spans.iter().flat_map(|span| [&span.first, &span.last]));
                }
                Use::Points(points) => sizes.extend([&points.first, &points.row]),
            }
        }
        sizes.into_iter().try_for_each(|size| self.known_sizes(size, "the cut", true))?;
        let buffers = launch.arguments.iter().filter(|argument| argument.buffer().is_some());
        if cut.tiles.is_empty() || cut.uses.len() != buffers.count() {
            return Err("a cut has tiles along a dimension, and a use for each buffer".into());
        }
        if launch.cooperative || launch.cluster.is_some() || launch.turns.is_some() {
            return Err("a launch that is cut is not cooperative, and has no clusters and no \
                        `turns`"
                .into());
        }
        Ok(())
    }
}
