//! The steps of a kernel as a chain of applies that the warps of a block share.

use super::NAME;
use super::layout::decline;
use super::registers;
use crate::analysis::footprint;
use crate::strategies::stream::layout::Layout as Stage;
use crate::subject::Subject;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{self, Program};
use stencil_dialects::tiled::{Apply, Kernel, TileOp};

/// Warps of a block where the steps are a multiple of them and registers allow: two blocks share a
/// multiprocessor then.
pub const WARPS: i64 = 4;

/// The most warps of a block: more would leave a lane fewer than 128 registers.
const MOST_WARPS: i64 = 16;

/// A kernel that updates one field and reads no other.
pub struct Chain<'k, 'c> {
    /// The field.
    pub field: &'c str,
    load: &'k TileOp<'c>,
    applies: Vec<&'k Apply<'c>>,
    store: &'k TileOp<'c>,
}

/// The first warp's part of a kernel.
pub struct Part<'c> {
    /// The load, some applies and the store.
    pub kernel: Kernel<'c>,
    /// Its pipeline.
    pub stage: Stage<'c>,
    /// The warps of a block.
    pub warps: i64,
}

/// Whether functions update one field and read no other.
pub fn is_chain(program: &Program, applies: &[&stencil::Apply]) -> Result<bool, Error> {
    let Some(field) = applies.first().and_then(|apply| apply.updates.first()) else {
        return Ok(false);
    };
    for apply in applies {
        let reads = footprint::of_pieces(program, &apply.pieces)?;
        if apply.updates.as_slice() != [*field] || reads.iter().any(|read| read.field != *field) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A kernel's applies as a chain from its load to its store.
pub fn of<'k, 'c>(kernel: &'k Kernel<'c>) -> Result<Chain<'k, 'c>, Error> {
    let other = || {
        let message = format!(
            "the strategy {NAME} takes functions that update one field and read no other; choose \
             another strategy"
        );
        decline(kernel, Decline::Applies, message)
    };
    let (mut loads, mut stores, mut applies) = (Vec::new(), Vec::new(), Vec::new());
    for op in &kernel.body {
        match op {
            TileOp::Load { .. } => loads.push(op),
            TileOp::Apply(apply) => applies.push(apply),
            TileOp::Store { .. } => stores.push(op),
        }
    }
    let ([load], [store]) = (loads.as_slice(), stores.as_slice()) else { return Err(other()) };
    let (TileOp::Load { field, tile, .. }, TileOp::Store { field: stored, tile: last, .. }) =
        (load, store)
    else {
        return Err(Error::internal("a load that is none"));
    };
    let mut current = *tile;
    for apply in &applies {
        let ([(updated, new)], true) = (apply.outputs.as_slice(), apply.partial.is_none()) else {
            return Err(other());
        };
        let reads = |(name, tile): &(&str, Val)| name == field && *tile == current;
        if updated != field || !apply.inputs.iter().all(reads) || apply.inputs.is_empty() {
            return Err(other());
        }
        current = *new;
    }
    if stored != field || *last != current || applies.is_empty() {
        return Err(other());
    }
    Ok(Chain { field, load, applies, store })
}

impl<'c> Chain<'_, 'c> {
    /// Steps of one of so many warps.
    pub fn steps(&self, warps: i64) -> i64 {
        let step = |place: usize| self.applies.get(place).map_or(0, |apply| apply.step);
        match self.each(warps) {
            each if each < self.applies.len() => step(each) - step(0),
            _ => 0,
        }
    }

    /// Applies of one of so many warps.
    fn each(&self, warps: i64) -> usize {
        self.applies.len() / usize::try_from(warps).unwrap_or(1).max(1)
    }

    /// Whether so many warps can run one code: each has as many applies, of the same functions on
    /// the same boxes, some steps after those of the warp before.
    fn is_periodic(&self, warps: i64) -> bool {
        let count = usize::try_from(warps).unwrap_or(0);
        if count == 0 || !self.applies.len().is_multiple_of(count) {
            return false;
        }
        let between = self.steps(warps);
        let alike = |(one, other): (&&Apply, &&Apply)| {
            one.pieces == other.pieces && one.main == other.main && one.step + between == other.step
        };
        self.applies.iter().zip(self.applies.iter().skip(self.each(warps))).all(alike)
    }

    /// Shares the steps among [`WARPS`], or fewer that they are a multiple of; among more where
    /// registers lack, and at most as many as are asked for. A `cell` has the cells of a lane, and
    /// the registers of one.
    ///
    /// # Errors
    /// Declines lanes that hold too many cells.
    pub fn share(
        &self,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
        cell: (i64, i64),
        asked: Option<i64>,
    ) -> Result<Part<'c>, Error> {
        let shared = |warps: &i64| self.is_periodic(*warps);
        if let Some(warps) = asked.and_then(|most| (1..=most).rev().find(shared)) {
            return self.part(subject, kernel, cell.0, warps);
        }
        let (mut tight, mut fewest) = (None, i64::MAX);
        let few = (1..=WARPS).rev().find(shared).unwrap_or(1);
        for warps in (few..=MOST_WARPS).filter(shared) {
            let part = match self.part(subject, kernel, cell.0, warps) {
                // Fewer steps of a warp take fewer registers.
                Err(error) if error.is_decline() && warps < MOST_WARPS => continue,
                part => part?,
            };
            let estimate = registers::estimate(&part.stage.pipeline, cell);
            fewest = fewest.min(estimate);
            if estimate <= registers::budget(cell.1) {
                return Ok(part);
            }
            if estimate <= registers::most(warps, subject.device) && tight.is_none() {
                tight = Some(part);
            }
        }
        tight.ok_or_else(|| {
            let message = format!(
                "the rows in flight of a lane with {} cells take {fewest} registers with the steps \
                 shared among up to {MOST_WARPS} warps, more than there are; give a lane fewer \
                 cells, or make the pyramid height smaller",
                cell.0
            );
            decline(kernel, Decline::Registers, message)
        })
    }

    /// The part of the first of so many warps.
    fn part(
        &self,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
        width: i64,
        warps: i64,
    ) -> Result<Part<'c>, Error> {
        let applies = self.applies.iter().take(self.each(warps));
        let applies: Vec<Apply<'c>> = applies.copied().cloned().collect();
        let last = applies.last().and_then(|apply| apply.outputs.first()).map(|(_, tile)| *tile);
        let tile = last.ok_or_else(|| Error::internal("a warp without steps"))?;
        let store = match self.store {
            TileOp::Store { op, field, .. } => TileOp::Store { op: *op, field, tile },
            other => other.clone(),
        };
        let mut kernel = kernel.clone();
        kernel.body = vec![self.load.clone()];
        kernel.body.extend(applies.into_iter().map(TileOp::Apply));
        kernel.body.push(store);
        let stage = Stage::in_flight(subject, &kernel, (1, width))?;
        Ok(Part { kernel, stage, warps })
    }
}
