//! Which points of a strip's tile each piece covers. What is the same at all times of a tile is
//! computed before them.

use super::code::{Strips, Tile};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The points of a lane that each piece covers in a tile.
pub struct Coverage<'c> {
    /// By piece.
    pieces: Vec<Covered<'c>>,
}

/// The points of a lane that one piece covers.
struct Covered<'c> {
    /// Whether it covers each row of the lane; if the columns are settled, whether it covers each
    /// row's points.
    rows: Vec<Val<'c>>,
    /// Its first and last column, if the columns are not settled.
    columns: Option<[Val<'c>; 2]>,
}

impl<'c> Coverage<'c> {
    /// Whether a piece covers the point of a lane's row in a column.
    pub fn of_point(
        &self,
        builder: &Builder<'c>,
        piece: usize,
        (row, column): (i64, Val<'c>),
    ) -> Result<Val<'c>, Error> {
        let missing = || Error::internal("a piece or row whose coverage is unknown");
        let covered = self.pieces.get(piece).ok_or_else(missing)?;
        let row = usize::try_from(row).ok().and_then(|row| covered.rows.get(row).copied());
        let row = row.ok_or_else(missing)?;
        match covered.columns {
            None => Ok(row),
            Some([first, last]) => {
                let from = builder.compare(Compare::Ge, column, first)?;
                let to = builder.compare(Compare::Le, column, last)?;
                builder.both(row, builder.both(from, to)?)
            }
        }
    }
}

impl<'c> Strips<'c, '_> {
    /// Whether the columns of a tile are settled: each piece has all of them or none.
    pub fn settled(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<Val<'c>, Error> {
        let [first, last] = self.columns(builder, tile)?;
        let mut settled = Vec::new();
        for piece in &self.apply.pieces {
            let [_, [from, to]] = self.ends(builder, (piece.lower, piece.upper))?;
            let all = builder.both(
                builder.compare(Compare::Ge, first, from)?,
                builder.compare(Compare::Le, last, to)?,
            )?;
            let before = builder.compare(Compare::Lt, last, from)?;
            let behind = builder.compare(Compare::Gt, first, to)?;
            let none = builder.binary("arith.ori", before, behind)?;
            settled.push(builder.binary("arith.ori", all, none)?);
        }
        let all = builder.all(&settled)?;
        all.ok_or_else(|| Error::internal("a function without pieces"))
    }

    /// What each piece covers of a tile, whose columns are settled or not.
    pub fn coverage(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        settled: bool,
    ) -> Result<Coverage<'c>, Error> {
        let [first, last] = self.columns(builder, tile)?;
        let mut pieces = Vec::new();
        for piece in &self.apply.pieces {
            let [[top, bottom], [from, to]] = self.ends(builder, (piece.lower, piece.upper))?;
            let mut rows = Vec::new();
            for row in 0..self.geometry.rows {
                let [place, _] = self.place(builder, tile, (self.lane, builder.index(row)?))?;
                let [lower, _] = self.lower;
                let row = builder.add(place, lower)?;
                let mut conditions = vec![
                    builder.compare(Compare::Ge, row, top)?,
                    builder.compare(Compare::Le, row, bottom)?,
                ];
                if settled {
                    conditions.push(builder.compare(Compare::Ge, first, from)?);
                    conditions.push(builder.compare(Compare::Le, last, to)?);
                }
                rows.extend(builder.all(&conditions)?);
            }
            pieces.push(Covered { rows, columns: (!settled).then_some([from, to]) });
        }
        Ok(Coverage { pieces })
    }

    /// The first and the last column of a tile's points.
    pub fn columns(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<[Val<'c>; 2], Error> {
        let [_, lower] = self.lower;
        let column = builder.add(tile.time, lower)?;
        let first = builder.add_constant(column, -self.geometry.depth())?;
        Ok([first, builder.add_constant(column, self.geometry.width - 1)?])
    }
}
