//! How the blocks of a launch may be shared out between several devices: which cells of which
//! fields a block of a lowered kernel reads and stores.

use super::Halo;
use crate::attribute::{self, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::ir::{AffineMap, Attribute};

const CUT: &str = "tiled.cut";
const LOWER: &str = "lower";
const UPPER: &str = "upper";
const COUNTS: &str = "counts";
const TILE: &str = "tile";
const BEFORE: &str = "before";
const ORDER: &str = "order";
const POINTS: &str = "points";
const READS: &str = "reads";
const FIELD: &str = "field";
const BELOW: &str = "below";
const ABOVE: &str = "above";
const WRAPS: &str = "wraps";
const LOADED_BELOW: &str = "loaded_below";
const LOADED_ABOVE: &str = "loaded_above";

/// What the blocks of a launch compute, and what they read for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut<'c> {
    /// The first point of all blocks; one result a dimension, one symbol a run-time size.
    pub lower: AffineMap<'c>,
    /// The last point.
    pub upper: AffineMap<'c>,
    /// How the points are given to blocks.
    pub parts: Parts<'c>,
    /// The fields that blocks read.
    pub reads: Vec<CutRead<'c>>,
}

/// How points are given to blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Parts<'c> {
    /// By tiles.
    Tiles {
        /// Tiles per dimension. A block may have several tiles of the only dimension.
        counts: AffineMap<'c>,
        /// Cells of what a block computes, per dimension.
        tile: Vec<i64>,
        /// Cells by which tiles begin behind the first point, per dimension. The first tile begins
        /// at the first point all the same, and the last one ends at the last.
        before: Vec<i64>,
        /// How blocks are numbered.
        order: Order,
    },
    /// So many points of the row-major box each.
    Points(i64),
}

/// The numbers of tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In row-major order.
    #[default]
    RowMajor,
    /// Those at a rim of the two fastest dimensions come first.
    RimFirst {
        /// Whether a tile of the first and of the last column is two blocks.
        halves: bool,
    },
}

/// A field that blocks read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutRead<'c> {
    /// The field.
    pub field: &'c str,
    /// The cells around a tile or a point; none where any cell of the field may be read.
    pub reach: Option<Halo>,
    /// The cells around a tile that the kernel loads, where these are more than those that matter.
    pub loaded: Option<Halo>,
    /// Whether cells beyond the field's grid are those at its other end.
    pub wraps: bool,
}

impl Order {
    const NAMES: [(&'static str, Self); 3] = [
        ("row_major", Self::RowMajor),
        ("rim_first", Self::RimFirst { halves: false }),
        ("rim_first_in_halves", Self::RimFirst { halves: true }),
    ];

    /// Its name in IR and in plans.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, order)| *order == self);
        found.map_or("row_major", |(name, _)| name)
    }
}

/// The attribute of a lowered kernel.
pub fn cut_attribute<'c>(builder: &Builder<'c>, cut: &Cut<'c>) -> (&'static str, Attribute<'c>) {
    let context = builder.context;
    let mut entries =
        vec![(LOWER, mlir::map_attribute(cut.lower)), (UPPER, mlir::map_attribute(cut.upper))];
    match &cut.parts {
        Parts::Tiles { counts, tile, before, order } => {
            entries.push((COUNTS, mlir::map_attribute(*counts)));
            entries.push((TILE, attribute::integers(context, tile)));
            if before.iter().any(|cells| *cells != 0) {
                entries.push((BEFORE, attribute::integers(context, before)));
            }
            if *order != Order::RowMajor {
                entries.push((ORDER, attribute::string(context, order.name())));
            }
        }
        Parts::Points(points) => entries.push((POINTS, attribute::integer(context, *points))),
    }
    let read = |read: &CutRead<'c>| {
        let mut entries = vec![(FIELD, attribute::symbol(context, read.field))];
        if let Some(reach) = &read.reach {
            entries.push((BELOW, attribute::integers(context, &reach.lower)));
            entries.push((ABOVE, attribute::integers(context, &reach.upper)));
        }
        if let Some(loaded) = &read.loaded {
            entries.push((LOADED_BELOW, attribute::integers(context, &loaded.lower)));
            entries.push((LOADED_ABOVE, attribute::integers(context, &loaded.upper)));
        }
        if read.wraps {
            entries.push((WRAPS, Attribute::unit(context)));
        }
        attribute::dictionary(context, &entries)
    };
    let reads: Vec<_> = cut.reads.iter().map(read).collect();
    entries.push((READS, attribute::array(context, &reads)));
    (CUT, attribute::dictionary(context, &entries))
}

/// Reads what [`cut_attribute`] makes; none where the blocks of a kernel can't be shared out.
pub(super) fn read_cut<'c>(op: Op<'c>) -> Result<Option<Cut<'c>>, Error> {
    read_optional(op, CUT, as_cut)
}

fn as_cut<'c>(cut: Attribute<'c>) -> Option<Cut<'c>> {
    let map = |name| attribute::as_map(attribute::entry(cut, name)?);
    let (lower, upper) = (map(LOWER)?, map(UPPER)?);
    let rank = lower.result_count();
    let of_rank = |cells: Vec<i64>| (cells.len() == rank).then_some(cells);
    let parts = match attribute::entry(cut, POINTS) {
        Some(points) => Parts::Points(attribute::as_integer(points).filter(|points| *points > 0)?),
        None => Parts::Tiles {
            counts: map(COUNTS).filter(|counts| counts.result_count() == rank)?,
            tile: of_rank(attribute::as_integers(attribute::entry(cut, TILE)?)?)
                .filter(|tile| tile.iter().all(|cells| *cells > 0))?,
            before: match attribute::entry(cut, BEFORE) {
                Some(before) => of_rank(attribute::as_integers(before)?)?,
                None => vec![0; rank],
            },
            order: match attribute::entry(cut, ORDER) {
                Some(order) => {
                    let name = attribute::as_string(order)?;
                    Order::NAMES.iter().find(|(one, _)| *one == name).map(|(_, order)| *order)?
                }
                None => Order::RowMajor,
            },
        },
    };
    let read = |read: Attribute<'c>| {
        let cells = |name| attribute::entry(read, name).map(attribute::as_integers);
        let halo = |below, above| match (cells(below), cells(above)) {
            (Some(below), Some(above)) => {
                Some(Some(Halo { lower: of_rank(below?)?, upper: of_rank(above?)? }))
            }
            (None, None) => Some(None),
            _ => None,
        };
        let (reach, loaded) = (halo(BELOW, ABOVE)?, halo(LOADED_BELOW, LOADED_ABOVE)?);
        let field = attribute::as_symbol(attribute::entry(read, FIELD)?)?;
        let wraps = attribute::entry(read, WRAPS).is_some();
        Some(CutRead { field, reach, loaded, wraps })
    };
    let reads = attribute::as_array(attribute::entry(cut, READS)?)?.into_iter().map(read);
    let fits = upper.result_count() == rank;
    Some(Cut { lower, upper, parts, reads: reads.collect::<Option<_>>()? }).filter(|_| fits)
}
