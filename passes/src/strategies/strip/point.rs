//! The code of a point of a strip: what it reads, and which piece covers it.

use super::code::{Points, Strips, Tile};
use super::coverage::Coverage;
use super::sequences;
use super::windows::Kept;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::function;
use crate::kernel::lanes::WARP;
use crate::kernel::pieces::{self, PieceCase};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Piece};

impl<'c> Strips<'c, '_> {
    /// Computes the point of a lane's row at a time.
    pub fn point(
        &self,
        builder: &Builder<'c>,
        (tile, time): (Tile<'c>, Val<'c>),
        row: i64,
        kept: &[Kept<'c>],
        points: Points<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let geometry = &self.geometry;
        let [first, second] = self.place(builder, tile, (self.lane, builder.index(row)?))?;
        let point = self.point_at(builder, [first, builder.add(second, time)?])?;

        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            self.old_value(builder, (tile, time), row, (field, constant(distances)?))
        };
        let current = |_: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            let window = self.windows.iter().position(|window| window.field == field);
            let kept = window.and_then(|window| kept.get(window));
            let kept = kept.ok_or_else(|| Error::internal("a field that no lane keeps"))?;
            kept.at(geometry.source(row, constant(distances)?))
        };
        let at = |point: &[Val<'c>], builder: &Builder<'c>, code: &PointCode<'c, '_>| {
            let at = At {
                point,
                step: self.apply.step,
                rules: Rules::Unneeded,
                fetch: &fetch,
                current: Some(&current),
                partial: None,
            };
            code(builder, &at)
        };
        match (points, &self.apply.main) {
            (Points::Main | Points::Last, Some(main)) => at(&point, builder, &|builder, at| {
                self.evaluate(builder, main, at, (tile, time, row), kept)
            }),
            (Points::Nearest(coverage), _) => {
                let old = self.old_points(builder, &fetch)?;
                let cases = self.cases(builder, (row, &point), coverage)?;
                pieces::values(builder, &cases, &old, &|builder, piece| {
                    let place = self.nearest(builder, &point, (piece.lower, piece.upper))?;
                    at(&place, builder, &|builder, at| {
                        self.evaluate(builder, piece, at, (tile, time, row), kept)
                    })
                })
            }
            _ => at(&point, builder, &|builder, at| {
                self.scope.new_values(builder, self.apply, &self.apply.pieces, at)
            }),
        }
    }

    /// Evaluates a point function. Its reads of sequences become loads from shared memory.
    fn evaluate(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        at: &At<'c, '_>,
        (tile, time, row): (Tile<'c>, Val<'c>, i64),
        kept: &[Kept<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let before = mlir::operations(builder.block).len();
        let mut values = self.scope.evaluate(builder, piece, at)?;
        let reads = sequences::reads(stencil::function(self.scope.module, piece.function)?)?;
        let mut copies = Vec::new();
        for op in mlir::operations(builder.block).into_iter().skip(before) {
            copies.extend(stencil::gathers(op)?);
        }
        for (copy, (_, read)) in copies.into_iter().zip(reads) {
            let Some((field, dimension, distance)) = read else { continue };
            let found = self
                .sequences
                .iter()
                .find(|(sequence, _)| (sequence.field, sequence.dimension) == (field, dimension));
            let (sequence, buffer) = found
                .ok_or_else(|| Error::internal(format!("no sequence of @{field} is loaded")))?;
            let [factor, own] = sequence.place(&self.geometry, row, distance);
            let read = mlir::results(copy.op).first().map(|value| mlir::key(*value));
            let loaded = function::replace_gather(builder, &copy, |builder| {
                let place = if dimension == 1 {
                    let last = builder.index(WARP - 1)?;
                    let behind = builder.binary("arith.subi", last, self.lane)?;
                    builder.add(builder.multiply_constant(behind, factor)?, time)?
                } else {
                    builder.multiply_constant(self.lane, factor)?
                };
                let place = builder.add_constant(place, own)?;
                builder.load(*buffer, &[tile.half, tile.strip, place])
            })?;
            // A function may return what it reads.
            for value in values.iter_mut().filter(|value| read == Some(mlir::key(**value))) {
                *value = loaded;
            }
        }
        self.keep_apart(builder, before, (kept, &values))?;
        Ok(values)
    }

    /// The pieces that may cover a point of a lane's row.
    fn cases(
        &self,
        builder: &Builder<'c>,
        (row, point): (i64, &[Val<'c>]),
        coverage: &Coverage<'c>,
    ) -> Result<Vec<PieceCase<'c, '_>>, Error> {
        let scope = &self.scope;
        let column = point.last().copied();
        let column = column.ok_or_else(|| Error::internal("a point of no dimensions"))?;
        let mut cases = Vec::new();
        for (number, piece) in self.apply.pieces.iter().enumerate() {
            let covered = coverage.of_point(builder, number, (row, column))?;
            let total = pieces::is_total_where_covered(scope.module, scope.program, piece)?;
            cases.push(PieceCase { piece, covered, total });
        }
        Ok(cases)
    }

    /// The old values of a point.
    fn old_points(
        &self,
        builder: &Builder<'c>,
        fetch: &crate::kernel::evaluate::Fetch<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let here = [Distance::Constant(0); 2];
        let old = self.apply.outputs.iter().map(|(field, _)| {
            if self.apply.kept(field).is_none() {
                return builder.zero(self.scope.program.field(field)?.element);
            }
            fetch(builder, field, &here)
        });
        old.collect()
    }

    /// An old value, from shared memory.
    fn old_value(
        &self,
        builder: &Builder<'c>,
        (tile, time): (Tile<'c>, Val<'c>),
        row: i64,
        (field, offset): (&str, [i64; 2]),
    ) -> Result<Val<'c>, Error> {
        let found = self.old.iter().find(|(old, _)| old.field == field);
        let (old, buffer) =
            found.ok_or_else(|| Error::internal(format!("no old values of @{field}")))?;
        let [lanes, row, column] = old.place(&self.geometry, row, offset);
        let place = [
            tile.half,
            tile.strip,
            builder.index(row)?,
            builder.add_constant(self.lane, lanes)?,
            builder.add_constant(time, column)?,
        ];
        builder.load(*buffer, &place)
    }
}

/// Code for a point.
type PointCode<'c, 'r> = dyn Fn(&Builder<'c>, &At<'c, '_>) -> Result<Vec<Val<'c>>, Error> + 'r;

/// Distances that are known.
fn constant(distances: &[Distance]) -> Result<[i64; 2], Error> {
    match distances {
        [Distance::Constant(rows), Distance::Constant(columns)] => Ok([*rows, *columns]),
        _ => Err(Error::internal("a read by a boundary rule in a strip")),
    }
}
