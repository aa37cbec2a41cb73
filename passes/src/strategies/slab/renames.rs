//! Values that an apply takes over from another field, as `P' = U` does: they need no memory of
//! their own, because the other value still lies there.
//!
//! A value is renamed where each piece of its apply returns what it reads of one field at the
//! point itself, where no launch stores it, and where all that read it do so at the point itself
//! and in the same pieces. Cells beside the pieces keep the value that the field had before the
//! launch, which its own memory has.

use crate::analysis::footprint;
use crate::analysis::returned_reads::returned_read;
use crate::subject::Subject;
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::{Apply, Keeps, Kernel, TileOp};

/// The renamed values of a kernel, by their keys, and what they were before.
#[derive(Default)]
pub struct Renames<'c> {
    before: BTreeMap<usize, (&'c str, Val<'c>)>,
}

impl<'c> Renames<'c> {
    /// Those of a kernel.
    pub fn of(subject: &Subject<'c, '_>, kernel: &Kernel<'c>) -> Result<Self, Error> {
        let mut found = Self::default();
        for apply in kernel.applies() {
            for (result, (field, tile)) in apply.outputs.iter().enumerate() {
                let Some(source) = taken_over(subject, &apply.pieces, result)? else { continue };
                let Some(old) = apply.input(source) else { continue };
                let kept = apply.keeps == Keeps::Old && apply.partial.is_none();
                let rim = apply.input(field).is_some_and(|rim| found.is_as_loaded(kernel, rim));
                if kept && rim && is_read_at_points(subject, kernel, apply, (field, *tile))? {
                    found.before.insert(mlir::key(*tile), found.resolve(source, old));
                }
            }
        }
        Ok(found)
    }

    /// The field and the value in whose memory a value lies.
    pub fn resolve(&self, field: &'c str, tile: Val<'c>) -> (&'c str, Val<'c>) {
        self.before.get(&mlir::key(tile)).copied().unwrap_or((field, tile))
    }

    /// Whether a value is renamed.
    pub fn has(&self, tile: Val) -> bool {
        self.before.contains_key(&mlir::key(tile))
    }

    /// Whether a value has what was loaded in all cells that no piece covers.
    fn is_as_loaded(&self, kernel: &Kernel<'c>, tile: Val<'c>) -> bool {
        let loaded = |op: &TileOp<'c>| matches!(op, TileOp::Load { tile: one, .. } if *one == tile);
        self.has(tile) || kernel.body.iter().any(loaded)
    }
}

/// The field whose value at the point itself is a result of all pieces.
pub fn taken_over<'c>(
    subject: &Subject<'c, '_>,
    pieces: &[Piece<'c>],
    result: usize,
) -> Result<Option<&'c str>, Error> {
    let mut found = None;
    for piece in pieces {
        let field = returned_read(subject.module, piece, result)?;
        if field.is_none() || found.is_some_and(|other| Some(other) != field) {
            return Ok(None);
        }
        found = field;
    }
    Ok(found)
}

/// Whether a value of an apply goes to no memory, and is read at points of the same pieces alone.
fn is_read_at_points<'c>(
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    apply: &Apply<'c>,
    (field, tile): (&str, Val<'c>),
) -> Result<bool, Error> {
    let pieces = |apply: &Apply<'c>| mlir::attribute(apply.op, "pieces");
    for op in &kernel.body {
        match op {
            TileOp::Store { tile: stored, .. } if *stored == tile => return Ok(false),
            TileOp::Apply(reader) if reader.inputs.iter().any(|(_, input)| *input == tile) => {
                let reads = footprint::of_pieces(subject.program, &reader.pieces)?;
                let mut own = reads.iter().filter(|read| read.field == field);
                let at_point = own.all(|read| {
                    read.reach.lower.iter().chain(&read.reach.upper).all(|cells| *cells == 0)
                });
                if !at_point || pieces(reader) != pieces(apply) || reader.partial.is_some() {
                    return Ok(false);
                }
            }
            _ => {}
        }
    }
    Ok(true)
}
