//! `lower-naive`: one thread a point, straight from and to global memory. The baseline that every
//! other strategy is measured against.
//!
//! Needs: tile kernels of strategy `naive`, each with one apply. Guarantees: a `gpu.func` for each.
//! A kernel that reads its updated fields at the point alone works in place; else it writes the
//! other buffer, and points that no piece covers are copied.
//!
//! ```text
//! %i, %j = origin + thread
//! scf.if (%i, %j in grid) {
//!   %new = scf.if (%i, %j in piece) { heat(load A[%i - 1, %j], ...) } else { load A[%i, %j] }
//!   store %new, A_next[%i, %j]
//! }
//! ```
//! A read outside the grid is sent to another cell by the field's boundary rule (`evaluate.rs`).
//!
//! Declines: tiles that need more threads than a block can have; kernels with several applies.

use super::NAME;
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_THREADS};
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::frame::Frame;
use crate::kernel::launch::FrameSpec;
use crate::kernel::tile_kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{self, Apply, Halo, Kernel};

use crate::analysis::footprint;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-naive",
    summary: "lower tile kernels of strategy naive: one thread per point",
    options: &[MAX_THREADS],
    read: |options: &Options| Ok(Box::new(LowerNaive { limits: BlockLimits::read(options)? })),
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerNaive {
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerNaive {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.limits.options()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            lower(context, subject, kernel, &self.limits)
        })
    }
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    limits: &BlockLimits,
) -> Result<(), Error> {
    let applies: Vec<_> = kernel.applies().collect();
    let [apply] = applies.as_slice() else {
        return Err(Error::declined(
            Decline::Applies,
            format!(
                "a tile kernel of strategy naive has one tiled.apply, and @{} has {}",
                kernel.name,
                applies.len()
            ),
        )
        .at(mlir::place(kernel.op.location())));
    };
    let reads = footprint::of_pieces(subject.program, &apply.pieces)?;
    let updated = |field: &str| apply.outputs.iter().any(|(name, _)| *name == field);
    let here = Halo::none(kernel.schedule.tile.len());
    let reads_here = reads.iter().all(|read| !updated(read.field) || read.reach == here)
        && !footprint::gathers_own(subject.module, kernel)?;
    // A buffer that is handed on has to stay as it is.
    let in_place = reads_here && tiled::rotations(kernel.op)?.is_empty();
    let threads = &kernel.schedule.tile;
    let demand = Demand { threads, shared: 0, fewer_threads: "make the tile smaller" };
    limits.admit(subject.device, kernel, &demand)?;
    let spec = FrameSpec { in_place, ..FrameSpec::plain(kernel, threads) };
    let frame = Frame::new(context, subject, &spec)?;
    let builder = Builder { location: apply.op.location(), ..frame.builder };
    let scope = &frame.scope;
    let point = frame.origin.iter().zip(&frame.thread);
    let point: Vec<_> =
        point.map(|(origin, thread)| builder.add(*origin, *thread)).collect::<Result<_, _>>()?;
    let in_hull = scope.inside(&builder, &point, scope.hull.lower, scope.hull.upper)?;
    builder.when(in_hull, |builder| {
        let mut cells = BTreeMap::new();
        let outputs = apply.outputs.iter().map(|(field, _)| *field);
        for field in reads.iter().map(|read| read.field).chain(outputs) {
            cells.insert(field, scope.cell(builder, field, &point)?);
        }
        let code = PointCode { frame: &frame, kernel, apply, cells };
        code.update(builder, &point, in_place)
    })?;
    frame.finish()
}

/// The code of one point.
struct PointCode<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    kernel: &'p Kernel<'c>,
    apply: &'p Apply<'c>,
    /// The point's place in the buffer of each field.
    cells: BTreeMap<&'c str, Vec<Val<'c>>>,
}

impl<'c> PointCode<'c, '_> {
    fn cell(&self, field: &str) -> Result<&[Val<'c>], Error> {
        let cell = self.cells.get(field).map(Vec::as_slice);
        cell.ok_or_else(|| Error::internal(format!("no cell of @{field}")))
    }

    /// Stores the point's new values.
    fn update(&self, builder: &Builder<'c>, point: &[Val<'c>], here: bool) -> Result<(), Error> {
        let (frame, scope, apply) = (self.frame, &self.frame.scope, self.apply);
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            let cells = self.cell(field)?.iter().zip(distances);
            let at = cells.map(|(index, distance)| distance.from(builder, *index));
            builder.load(frame.source(field)?, &at.collect::<Result<Vec<_>, _>>()?)
        };
        let at = At {
            point,
            step: apply.step,
            rules: Rules::All,
            fetch: &fetch,
            current: None,
            partial: None,
        };
        if here {
            for piece in &apply.pieces {
                let covered = scope.inside(builder, point, piece.lower, piece.upper)?;
                builder.when(covered, |builder| {
                    let values = scope.evaluate(builder, piece, &at)?;
                    self.stored(values)
                        .try_for_each(|(field, value)| self.store(builder, field, value))
                })?;
            }
            return Ok(());
        }
        let values = scope.new_values(builder, apply, &apply.pieces, &at)?;
        for (field, value) in self.stored(values) {
            scope.where_it_lies(builder, field, point, &[], |builder| {
                self.store(builder, field, value).map(|()| Vec::new())
            })?;
        }
        Ok(())
    }

    /// The new values that the launch leaves behind, by field.
    fn stored(&self, values: Vec<Val<'c>>) -> impl Iterator<Item = (&'c str, Val<'c>)> {
        let fields = self.apply.outputs.iter().map(|(field, _)| *field);
        fields.zip(values).filter(|(field, _)| self.kernel.stores(field))
    }

    fn store(&self, builder: &Builder<'c>, field: &str, value: Val<'c>) -> Result<(), Error> {
        builder.store(value, self.frame.target(field)?, self.cell(field)?)
    }
}
