//! Loops over boxes of cells, and over what lies between two boxes.

use crate::kernel::scope::Scope;
use melior::ir::AffineMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// A box of cells: the first coordinate, and the one behind the last, for each dimension.
#[derive(Clone, Debug)]
pub struct Cells<'c>(pub Vec<[Val<'c>; 2]>);

/// Builds the code of some rows, given their coordinates in all dimensions but the last.
pub type PerRows<'b, 'c> = dyn FnMut(&Builder<'c>, &[Val<'c>]) -> Result<(), Error> + 'b;
/// Builds the code of a part of a row, given its coordinates in all dimensions but the last, and
/// its ends along that.
pub type PerPart<'b, 'c> =
    dyn FnMut(&Builder<'c>, &[Val<'c>], [Val<'c>; 2]) -> Result<(), Error> + 'b;
/// Builds the code of a cell, given its coordinates.
pub type PerCell<'b, 'c> = dyn FnMut(&Builder<'c>, &[Val<'c>]) -> Result<(), Error> + 'b;

impl<'c> Cells<'c> {
    /// The points of two maps, both ends inclusive.
    pub fn of(
        builder: &Builder<'c>,
        scope: &Scope<'c, '_>,
        (lower, upper): (AffineMap<'c>, AffineMap<'c>),
    ) -> Result<Self, Error> {
        let ends = scope.bounds(builder, lower)?.into_iter().zip(scope.bounds(builder, upper)?);
        let ends = ends.map(|(first, last)| Ok([first, builder.add_constant(last, 1)?]));
        ends.collect::<Result<_, Error>>().map(Self)
    }

    /// The cells in both boxes.
    pub fn within(&self, builder: &Builder<'c>, other: &Self) -> Result<Self, Error> {
        let ends = self.0.iter().zip(&other.0).map(|([first, end], [other_first, other_end])| {
            Ok([
                builder.binary("arith.maxsi", *first, *other_first)?,
                builder.binary("arith.minsi", *end, *other_end)?,
            ])
        });
        ends.collect::<Result<_, Error>>().map(Self)
    }

    /// The ends along the last dimension.
    pub fn row(&self) -> Result<[Val<'c>; 2], Error> {
        self.0.last().copied().ok_or_else(|| Error::internal("a box of no dimensions"))
    }

    /// Runs code for each row of the box, and for several at once where there are as many: `code`
    /// gets the coordinates of the first, and how many there are.
    pub fn each_rows(
        &self,
        builder: &Builder<'c>,
        together: i64,
        mut code: impl FnMut(&Builder<'c>, &[Val<'c>], i64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let outer = self.0.len().saturating_sub(1);
        if outer == 0 || together == 1 {
            return self.each_row(builder, &mut |builder, row| code(builder, row, 1));
        }
        self.nest(builder, outer - 1, &mut Vec::new(), &mut |builder, planes| {
            let [first, end] = self.0.get(outer - 1).copied().ok_or_else(no_dimension)?;
            let unit = builder.index(together)?;
            let zero = builder.index(0)?;
            let count = builder.binary("arith.subi", end, first)?;
            let count = builder.binary("arith.maxsi", count, zero)?;
            let rest = builder.binary("arith.remui", count, unit)?;
            let middle = builder.binary("arith.subi", end, rest)?;
            builder.repeat((first, middle, unit), |builder, row| {
                code(builder, &[planes, &[row]].concat(), together)
            })?;
            let from = builder.binary("arith.maxsi", middle, first)?;
            builder.repeat((from, end, builder.index(1)?), |builder, row| {
                code(builder, &[planes, &[row]].concat(), 1)
            })
        })
    }

    /// Runs code for each row of the box.
    pub fn each_row(&self, builder: &Builder<'c>, code: &mut PerRows<'_, 'c>) -> Result<(), Error> {
        self.nest(builder, self.0.len().saturating_sub(1), &mut Vec::new(), code)
    }

    /// Runs code for each cell of the box that is not in another.
    pub fn each_outside(
        &self,
        builder: &Builder<'c>,
        inner: &Self,
        code: &mut PerCell<'_, 'c>,
    ) -> Result<(), Error> {
        self.each_part_outside(builder, inner, &mut |builder, row, [from, to]| {
            builder.repeat((from, to, builder.index(1)?), |builder, at| {
                code(builder, &[row, &[at]].concat())
            })
        })
    }

    /// Runs code for the parts of each row that are not in another box; some may have no cells.
    pub fn each_part_outside(
        &self,
        builder: &Builder<'c>,
        inner: &Self,
        code: &mut PerPart<'_, 'c>,
    ) -> Result<(), Error> {
        let inner = inner.within(builder, self)?;
        let ([first, end], [inner_first, inner_end]) = (self.row()?, inner.row()?);
        self.each_row(builder, &mut |builder, row| {
            // A row that leaves the inner box is all outside: its first part ends with the row.
            let mut conditions = vec![builder.compare(Compare::Lt, inner_first, inner_end)?];
            for (at, [first, end]) in row.iter().zip(&inner.0) {
                conditions.push(builder.within(*at, (*first, *end))?);
            }
            let crosses = builder.all(&conditions)?.ok_or_else(no_dimension)?;
            let first_end = builder.select(crosses, inner_first, end)?;
            let second = builder.select(crosses, inner_end, end)?;
            let two = (builder.index(0)?, builder.index(2)?, builder.index(1)?);
            builder.repeat(two, |builder, part| {
                let is_first = builder.compare(Compare::Eq, part, builder.index(0)?)?;
                let from = builder.select(is_first, first, second)?;
                let to = builder.select(is_first, first_end, end)?;
                code(builder, row, [from, to])
            })
        })
    }

    fn nest(
        &self,
        builder: &Builder<'c>,
        outer: usize,
        row: &mut Vec<Val<'c>>,
        code: &mut PerRows<'_, 'c>,
    ) -> Result<(), Error> {
        if row.len() >= outer {
            return code(builder, row);
        }
        let [first, end] = self.0.get(row.len()).copied().ok_or_else(no_dimension)?;
        builder.repeat((first, end, builder.index(1)?), |builder, at| {
            row.push(at);
            let done = self.nest(builder, outer, row, code);
            row.pop();
            done
        })
    }
}

pub fn no_dimension() -> Error {
    Error::internal("a box of too few dimensions")
}
