//! Rows before the first strip. No piece covers them, so they keep their values, and the first
//! block reads them as it reads those of a block above. Its strips are then inside the main piece,
//! as all others: code for rims is slower, and the first strip sets the pace of all.

use super::code::Strips;
use super::geometry::{FARTHEST, Geometry};
use crate::analysis::hull::Hull;
use crate::kernel::interior;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{Apply, Keeps, Rows};

/// How many rows lie before the first strip: those above a function's only piece. None where their
/// number is not known, and where they are fewer than strips read.
pub fn rows((apply, rows): (&Apply, &Rows), hull: &Hull, geometry: &Geometry) -> i64 {
    let [piece] = apply.pieces.as_slice() else { return 0 };
    let keeps = apply.keeps == Keeps::Old
        && apply
            .outputs
            .iter()
            .all(|(field, _)| apply.kept(field).is_some() || rows.of(field).is_some());
    let before = |lower| {
        let gap = interior::difference(lower, hull.lower);
        gap.and_then(|gap| gap.first().copied()).unwrap_or(0)
    };
    let frozen = before(piece.lower);
    // A strip computes each row of a reduction's box.
    let beside = rows.values.iter().all(|row| before(row.piece.lower) >= frozen);
    let few = frozen.unsigned_abs() <= FARTHEST;
    let all = keeps && few && beside && geometry.above > 0 && frozen >= geometry.above;
    if all { frozen } else { 0 }
}

impl<'c> Strips<'c, '_> {
    /// Copies the rows before the first strip. All threads of all blocks take part.
    pub fn copy_frozen(
        &self,
        builder: &Builder<'c>,
        (block, blocks): (Val<'c>, i64),
        (thread, threads): (Val<'c>, i64),
    ) -> Result<(), Error> {
        let is_other = |(field, target): &(&&str, &Val<'c>)| {
            self.sources.get(**field).is_none_or(|source| mlir::key(*source) != mlir::key(**target))
        };
        let targets: Vec<_> = self.targets.iter().filter(is_other).collect();
        if targets.is_empty() {
            return Ok(());
        }
        let [rows, columns] = self.extents;
        let first = builder.add(builder.multiply_constant(block, threads)?, thread)?;
        for row in 0..self.frozen {
            let row = builder.index(row)?;
            let there = builder.compare(Compare::Lt, row, rows)?;
            builder.when(there, |builder| {
                let bounds = (first, columns, builder.index(blocks * threads)?);
                builder.repeat(bounds, |builder, column| {
                    let point = self.point_at(builder, [row, column])?;
                    for (field, target) in &targets {
                        let cell = self.scope.cell(builder, field, &point)?;
                        let old = builder.load(self.source(field)?, &cell)?;
                        builder.store(old, **target, &cell)?;
                    }
                    Ok(())
                })
            })?;
        }
        Ok(())
    }
}
