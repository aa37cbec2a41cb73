//! Which rows of a lane neighbours need after a round, and which it needs of theirs.

use crate::kernel::lanes;
use crate::strategies::patch::layout::of_three;
use crate::strategies::patch::masks::Mask;
use crate::strategies::patch::tile_code::{Checks, TileCode};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::Halo;

/// A condition for each row of a lane, of one field.
pub struct Rims<'c> {
    /// Whether the row is in the tile.
    pub own: Mask<'c>,
    /// Whether it is, and a neighbour needs it; none where no neighbour needs any row.
    pub given: Option<Mask<'c>>,
    /// Whether the row is in the halo, and a neighbour has it.
    pub taken: Option<Mask<'c>>,
    /// Whether it is in either, for the first load. A block that is no neighbour may store to the
    /// rows of others before this one has loaded them.
    pub reached: Vec<Val<'c>>,
    /// Whether the conditions hold in the grid alone.
    pub in_grid: bool,
}

/// A block's place among all, per dimension: the number of its tile, and how many there are.
pub struct Among<'c> {
    /// Numbers from 0.
    pub numbers: Vec<Val<'c>>,
    /// Tiles.
    pub counts: Vec<i64>,
}

impl<'c> Rims<'c> {
    /// The conditions for a field whose tile has some halo, and which an operation stores. They
    /// hold in the grid alone where a lane's rows are whole accesses, which lie inside or outside.
    pub fn of(
        code: &TileCode<'c, '_>,
        builder: &Builder<'c>,
        (field, operation, halo): (&str, usize, &Halo),
        (among, checks): (&Among<'c>, Option<&Checks<'c>>),
    ) -> Result<Self, Error> {
        let places = place(code, halo, among);
        let needed = places.iter().any(|place| place.is_needed());
        let in_grid = checks.is_none() || code.vector(field)? == code.layout.width;
        let (mut own, mut given, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        let mut reached = Vec::new();
        let no = builder.constant(builder.integer_type(1), 0)?;
        for ([plane, row], in_tile) in code.layout.rows().zip(&code.place.in_tile) {
            let point = code.place.cells.of([plane, row, 0])?;
            let mut near = no;
            let mut around = vec![builder.compare(Compare::Eq, *in_tile, no)?];
            for ((place, ends), cell) in places.iter().zip(&code.place.ends).zip(point) {
                near = builder.binary("arith.ori", near, place.is_near(builder, cell, no)?)?;
                let first = builder.add_constant(place.origin, place.lower)?;
                let cells = place.tile - place.lower + place.upper;
                around.push(ends.holds(builder, cell, first, cells)?);
            }
            let (mut here, mut beside) = (vec![*in_tile], around);
            if let Some(checks) = checks.filter(|_| in_grid) {
                let inside = checks.inside(operation, [plane, row, 0])?;
                here.extend(&inside);
                beside.extend(inside);
            }
            let all = |conditions: &[Val<'c>]| {
                let all = builder.all(conditions)?;
                all.ok_or_else(|| Error::internal("a row without conditions"))
            };
            let (here, beside) = (all(&here)?, all(&beside)?);
            own.push(here);
            given.push(builder.both(here, near)?);
            taken.push(beside);
            reached.push(builder.binary("arith.ori", here, beside)?);
        }
        let mask = |conditions: &[Val<'c>]| Mask::of(builder, conditions);
        let exchanged = |conditions: &[Val<'c>]| needed.then(|| mask(conditions)).transpose();
        let (given, taken) = (exchanged(&given)?, exchanged(&taken)?);
        Ok(Self { own: mask(&own)?, given, taken, reached, in_grid })
    }
}

/// A tile along a dimension.
struct Place<'c> {
    /// Its first cell.
    origin: Val<'c>,
    tile: i64,
    /// Cells of the halo before the tile, none or fewer, and behind it; of columns whole lanes.
    lower: i64,
    upper: i64,
    /// Its number, and how many there are.
    number: Val<'c>,
    count: i64,
}

/// The tile along all dimensions.
fn place<'c>(code: &TileCode<'c, '_>, halo: &Halo, among: &Among<'c>) -> Vec<Place<'c>> {
    let (tile, width) = (&code.kernel.schedule.tile, code.layout.width);
    let tiles = code.frame.origin.iter().zip(tile).zip(among.numbers.iter().zip(&among.counts));
    let reach = halo.lower.iter().zip(&halo.upper);
    let last = tile.len().saturating_sub(1);
    let places = tiles.zip(reach).enumerate().map(|(dimension, (tile, (lower, upper)))| {
        let ((origin, tile), (number, count)) = tile;
        let whole = |cells| if dimension == last { lanes::whole(cells, width) } else { cells };
        let (lower, upper) = (-whole(-*lower), whole(*upper));
        Place { origin: *origin, tile: *tile, lower, upper, number: *number, count: *count }
    });
    places.collect()
}

impl<'c> Place<'c> {
    /// Whether a neighbour along the dimension needs cells.
    fn is_needed(&self) -> bool {
        self.count > 1 && (self.lower, self.upper) != (0, 0)
    }

    /// Whether a neighbour before the tile or behind it needs a cell of the tile.
    fn is_near(&self, builder: &Builder<'c>, cell: Val<'c>, no: Val<'c>) -> Result<Val<'c>, Error> {
        if self.count < 2 {
            return Ok(no);
        }
        let before = builder.compare(Compare::Gt, self.number, builder.index(0)?)?;
        let low = builder.add_constant(self.origin, self.upper)?;
        let low = builder.both(before, builder.compare(Compare::Lt, cell, low)?)?;
        let behind = builder.compare(Compare::Lt, self.number, builder.index(self.count - 1)?)?;
        let high = builder.add_constant(self.origin, self.tile + self.lower)?;
        let high = builder.both(behind, builder.compare(Compare::Ge, cell, high)?)?;
        builder.binary("arith.ori", low, high)
    }
}

/// Cells of a tile that a neighbour's halo takes at most, per dimension: planes, rows, columns.
pub fn needed(halo: &Halo, width: i64) -> Result<[i64; 3], Error> {
    let ([front, north, west], [back, south, east]) =
        (of_three(&halo.lower, 0)?, of_three(&halo.upper, 0)?);
    let columns = lanes::whole(-west, width).max(lanes::whole(east, width));
    Ok([back.max(-front), south.max(-north), columns])
}
