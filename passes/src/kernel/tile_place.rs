//! Where a block's or a warp's tile lies in the grid: how many tiles there are, which of them has a
//! number, and where it begins. The order of tiles is decided here and nowhere else.

use super::field_buffers::extents;
use super::lanes::WARP;
use super::launch::FrameSpec;
use crate::analysis::hull::Hull;
use crate::analysis::index_width::constant_extents;
use melior::Context;
use melior::ir::{AffineExpr, Attribute};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Grid;
use stencil_dialects::tiled::Order;

/// How many tiles and blocks a launch has, as expressions in the run-time sizes.
pub struct Tiles<'c> {
    /// Tiles per dimension.
    pub counts: Vec<AffineExpr<'c>>,
    /// All tiles.
    all: AffineExpr<'c>,
    /// Blocks of a launch.
    pub blocks: AffineExpr<'c>,
    /// Whether tiles of the first and the last column are halved.
    halves: bool,
}

impl<'c> Tiles<'c> {
    /// The tiles of a kernel over a hull.
    pub fn of(
        context: &'c Context,
        hull: &Hull<'c>,
        spec: &FrameSpec<'c, '_>,
        margin: &[[i64; 2]],
    ) -> Result<Self, Error> {
        let constant = |value| AffineExpr::constant(context, value);
        let counts: Vec<_> = extents(context, hull.lower, hull.upper)?
            .into_iter()
            .zip(spec.kernel.schedule.tile.iter().zip(margin))
            .map(|(extent, (tile, [before, after]))| {
                AffineExpr::ceil_div(extent + constant(-before - after), constant(*tile))
            })
            .collect();
        let all = counts.iter().copied().reduce(|product, count| product * count);
        let all = all.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let halves = halves(hull, spec);
        let blocks = match (spec.warps, counts.as_slice()) {
            (Some(warps), _) => AffineExpr::ceil_div(all, constant(warps)),
            (None, [rows, columns]) if halves => *rows * (*columns + constant(HALVES)),
            _ => all,
        };
        Ok(Self { counts, all, blocks, halves })
    }

    /// How blocks are numbered.
    pub fn order(&self, spec: &FrameSpec<'c, '_>) -> Order {
        match (spec.rim_first, self.counts.len()) {
            (true, 2 | 3) => Order::RimFirst { halves: self.halves },
            _ => Order::RowMajor,
        }
    }
}

/// The margin, where the grid is known to be larger; none elsewhere, and none where a field has
/// cells beyond the grid, which the tiles at its ends want too.
pub fn margin(hull: &Hull, held: &[&Grid], wanted: &[[i64; 2]]) -> Vec<[i64; 2]> {
    let extents = constant_extents(hull.lower, hull.upper).unwrap_or_default();
    let wide = |(dimension, [before, after]): (usize, &[i64; 2])| {
        extents.get(dimension).is_some_and(|extent| *extent > (before + after).max(0))
    };
    let fits = wanted.iter().enumerate().all(wide) && held.iter().all(|grid| hull.holds(grid));
    if wanted.len() == hull.rank() && fits { wanted.to_vec() } else { vec![[0, 0]; hull.rank()] }
}

/// A thread's tile, and its position there.
pub struct ThreadTile<'c> {
    /// First coordinate of the tile per dimension, as `index`.
    pub origin: Vec<Val<'c>>,
    /// Planes of the tile, where it may have fewer than the schedule says.
    pub planes: Option<Val<'c>>,
    /// The thread's position per dimension: see [`Frame::thread`](super::frame::Frame).
    pub thread: Vec<Val<'c>>,
    /// Whether the tile exists; none if it always does.
    pub exists: Option<Val<'c>>,
}

/// The tile's first coordinate and the thread's position, per dimension. Tiles are numbered in
/// row-major order unless those at rims come first, and blocks along x alone, because only x may
/// count more than 65,535 of them. `row` is the launch's first tile row.
pub fn place_of_tile<'c>(
    builder: &Builder<'c>,
    hull: &Hull<'c>,
    tiles: &Tiles<'c>,
    margin: &[[i64; 2]],
    (params, row): (&[Val<'c>], Option<Val<'c>>),
    spec: &FrameSpec<'c, '_>,
) -> Result<ThreadTile<'c>, Error> {
    let mut rest = number(builder, "gpu.block_id", "x")?;
    let (mut thread, mut exists) = (Vec::new(), None);
    if let Some(warps) = spec.warps {
        let mut lane = number(builder, "gpu.thread_id", "x")?;
        if warps > 1 {
            let warp = builder.binary("arith.divui", lane, builder.index(WARP)?)?;
            lane = builder.binary("arith.remui", lane, builder.index(WARP)?)?;
            rest = builder.add(builder.binary("arith.muli", rest, builder.index(warps)?)?, warp)?;
            let all = builder.affine(tiles.all, &[], params)?;
            exists = Some(builder.compare(Compare::Lt, rest, all)?);
        }
        thread.push(lane);
    } else {
        for axis in ["x", "y", "z"].iter().take(hull.rank()).rev() {
            thread.push(number(builder, "gpu.thread_id", axis)?);
        }
    }
    let counts: Vec<_> = tiles
        .counts
        .iter()
        .map(|count| builder.affine(*count, &[], params))
        .collect::<Result<_, _>>()?;
    let mut half: Option<Half<'c>> = None;
    let mut numbers = match (spec.rim_first, counts.as_slice()) {
        (true, [rows, columns]) => {
            let across =
                if tiles.halves { builder.add_constant(*columns, HALVES)? } else { *columns };
            // Of a band those at its own ends come first.
            let rows = match row {
                Some(_) => {
                    builder.binary("arith.divui", number(builder, "gpu.grid_dim", "x")?, across)?
                }
                None => *rows,
            };
            let leading = if tiles.halves { 2 * HALVES } else { RIMS };
            let [row, place] = rim_first(builder, rest, rows, (across, leading))?;
            let mut column = place;
            if tiles.halves {
                let (of_half, which) = column_of(builder, place, *columns)?;
                (column, half) = (of_half, Some(which));
            }
            vec![row, column]
        }
        (true, [_, rows, columns]) => {
            let plane = builder.binary("arith.muli", *rows, *columns)?;
            let within = builder.binary("arith.remui", rest, plane)?;
            let [row, column] = rim_first(builder, within, *rows, (*columns, RIMS))?;
            vec![builder.binary("arith.divui", rest, plane)?, row, column]
        }
        _ => row_major(builder, rest, &counts)?,
    };
    if let (Some(row), Some(first)) = (row, numbers.first_mut()) {
        *first = builder.add(*first, row)?;
    }
    let tile = &spec.kernel.schedule.tile;
    let mut origin = origin(builder, hull, &numbers, tile, (margin, params))?;
    let mut planes = None;
    if let (Some((halved, second)), Some(first), Some(all)) =
        (half, origin.first_mut(), tile.first())
    {
        let later = builder.select(second, builder.index(all / 2)?, builder.index(0)?)?;
        *first = builder.add(*first, later)?;
        let of_half =
            builder.select(second, builder.index(all - all / 2)?, builder.index(all / 2)?)?;
        let all = builder.index(*all)?;
        // No more than all of them, as the count of a kernel's work reads it.
        planes = Some(builder.binary("arith.minsi", all, builder.select(halved, of_half, all)?)?);
    }
    Ok(ThreadTile { origin, planes, thread, exists })
}

/// A thread's or block's number, or the number of blocks, along an axis.
pub fn number<'c>(builder: &Builder<'c>, kind: &str, axis: &str) -> Result<Val<'c>, Error> {
    let dimension = Attribute::parse(builder.context, &format!("#gpu<dim {axis}>"))
        .ok_or_else(|| Error::internal("the gpu dialect is not loaded"))?;
    builder.value(kind, &[], builder.index_type(), &[("dimension", dimension)])
}

/// Parts of a halved tile: so many places has each end of a row, and the row has so many more.
const HALVES: i64 = 2;

/// Places of a row that are tiles at rims, the last two and the first.
const RIMS: i64 = 3;

/// Whether tiles of the first and the last column are halved: they run code with checks for all of
/// their rows, which takes twice as long, and a launch would wait for them. Only where both are
/// there.
fn halves(hull: &Hull, spec: &FrameSpec) -> bool {
    let columns =
        constant_extents(hull.lower, hull.upper).and_then(|extents| extents.last().copied());
    match (columns, spec.kernel.schedule.tile.as_slice()) {
        (Some(cells), [_, columns]) => {
            spec.halves && spec.rim_first && spec.kernel.split && cells > *columns
        }
        _ => false,
    }
}

/// Whether a tile is one half of its tile, and which: whether the second.
type Half<'c> = (Val<'c>, Val<'c>);

/// The column of tiles of a place in a row whose first two and last two places are halves of a
/// tile.
fn column_of<'c>(
    builder: &Builder<'c>,
    place: Val<'c>,
    columns: Val<'c>,
) -> Result<(Val<'c>, Half<'c>), Error> {
    let one = builder.index(1)?;
    let before = builder.compare(Compare::Lt, place, builder.index(HALVES)?)?;
    let after = builder.compare(Compare::Ge, place, columns)?;
    let last = builder.binary("arith.subi", columns, one)?;
    let column = builder.binary("arith.subi", place, one)?;
    let column = builder.select(before, builder.index(0)?, builder.select(after, last, column)?)?;
    let beyond = builder.binary("arith.subi", place, columns)?;
    let second = builder.compare(Compare::Eq, builder.select(before, place, beyond)?, one)?;
    Ok((column, (builder.binary("arith.ori", before, after)?, second)))
}

/// The numbers per dimension of what has a number in row-major order.
pub fn row_major<'c>(
    builder: &Builder<'c>,
    number: Val<'c>,
    counts: &[Val<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    let (mut numbers, mut rest) = (Vec::new(), number);
    for (position, count) in counts.iter().enumerate().rev() {
        if position == 0 {
            numbers.push(rest);
        } else {
            numbers.push(builder.binary("arith.remui", rest, *count)?);
            rest = builder.binary("arith.divui", rest, *count)?;
        }
    }
    numbers.reverse();
    Ok(numbers)
}

/// First coordinates of the tile of some numbers.
pub fn origin<'c>(
    builder: &Builder<'c>,
    hull: &Hull<'c>,
    numbers: &[Val<'c>],
    tile: &[i64],
    (margin, params): (&[[i64; 2]], &[Val<'c>]),
) -> Result<Vec<Val<'c>>, Error> {
    let mut origin = Vec::new();
    for (position, (number, tile)) in numbers.iter().zip(tile).enumerate() {
        let lower =
            hull.lower.result(position).map_err(|error| Error::internal(error.to_string()))?;
        let first = builder.binary("arith.muli", *number, builder.index(*tile)?)?;
        let first =
            builder.add_constant(first, margin.get(position).map_or(0, |[before, _]| *before))?;
        origin.push(builder.add(first, builder.affine(lower, &[], params)?)?);
    }
    Ok(origin)
}

/// Tiles at a rim are slower than others; they come first, so that the last tiles to end are fast
/// ones. Rows and columns of tiles are turned by two, so that the last two lead and then the first,
/// or of columns the first `leading` - 2; then the leading rows are numbered through, then the
/// leading columns of the other rows, then the rest.
fn rim_first<'c>(
    builder: &Builder<'c>,
    number: Val<'c>,
    rows: Val<'c>,
    (columns, leading): (Val<'c>, i64),
) -> Result<[Val<'c>; 2], Error> {
    let (zero, one) = (builder.index(0)?, builder.index(1)?);
    let lead = |count, leading| builder.binary("arith.minui", count, builder.index(leading)?);
    let (lead_rows, lead_columns) = (lead(rows, RIMS)?, lead(columns, leading)?);
    let minus = |a, b| builder.binary("arith.subi", a, b);
    let times = |a, b| builder.binary("arith.muli", a, b);
    // Three rectangles in turn, each with its first number, corner and width.
    let second = times(lead_rows, columns)?;
    let third = builder.add(second, times(minus(rows, lead_rows)?, lead_columns)?)?;
    let in_first = builder.compare(Compare::Below, number, second)?;
    let in_third = builder.compare(Compare::Ge, number, third)?;
    let pick = |first, second, third| {
        builder.select(in_first, first, builder.select(in_third, third, second)?)
    };
    let within = minus(number, pick(zero, second, third)?)?;
    let width = pick(columns, lead_columns, minus(columns, lead_columns)?)?;
    let width = builder.binary("arith.maxui", width, one)?;
    let row = builder
        .add(builder.binary("arith.divui", within, width)?, pick(zero, lead_rows, lead_rows)?)?;
    let column = builder
        .add(builder.binary("arith.remui", within, width)?, pick(zero, zero, lead_columns)?)?;
    let turned = |value, count| {
        let back = minus(count, builder.binary("arith.minui", count, builder.index(2)?)?)?;
        builder.binary("arith.remui", builder.add(value, back)?, count)
    };
    Ok([turned(row, rows)?, turned(column, columns)?])
}
