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
use crate::kernel::emit::{self, Frame, FrameSpec};
use crate::kernel::evaluate::{At, Distance, Rules};
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
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Halo, Kernel, TileOp};

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
        let program = Program::read(module)?;
        let subject = Subject::of(module, &program)?;
        let kernels = emit::kernels_of(module, NAME)?;
        for kernel in &kernels {
            lower(context, &subject, kernel, &self.limits)?;
        }
        emit::erase_kernels(module, &kernels)
    }
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    limits: &BlockLimits,
) -> Result<(), Error> {
    let (module, program) = (subject.module, subject.program);
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
    let reads = footprint::of_pieces(program, &apply.pieces)?;
    let updated = |field: &str| apply.outputs.iter().any(|(name, _)| *name == field);
    let here = Halo::none(kernel.schedule.tile.len());
    let in_place = reads.iter().all(|read| !updated(read.field) || read.reach == here);
    let threads = &kernel.schedule.tile;
    let demand = Demand { threads, shared: 0, fewer_threads: "make the tile smaller" };
    limits.admit(subject.device, kernel, &demand)?;
    let spec = FrameSpec {
        kernel,
        threads,
        shared: &[],
        in_place,
        warps: None,
        rim_first: false,
        margin: &[],
        registers: None,
        reach: None,
    };
    let frame = Frame::new(context, subject, &spec)?;
    let stored = |field: &str| {
        kernel
            .body
            .iter()
            .any(|op| matches!(op, TileOp::Store { field: name, .. } if *name == field))
    };
    let builder = Builder { location: apply.op.location(), ..frame.builder };
    let point: Vec<_> = frame
        .origin
        .iter()
        .zip(&frame.thread)
        .map(|(origin, thread)| builder.add(*origin, *thread))
        .collect::<Result<_, _>>()?;
    let in_hull = frame.inside(&builder, &point, frame.hull.lower, frame.hull.upper)?;
    builder.when(in_hull, |builder| {
        let mut cells = BTreeMap::new();
        for field in
            reads.iter().map(|read| read.field).chain(apply.outputs.iter().map(|(field, _)| *field))
        {
            cells.insert(field, frame.cell(builder, field, &point)?);
        }
        let cell = |field: &str| {
            cells.get(field).ok_or_else(|| Error::internal(format!("no cell of @{field}")))
        };
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            let at: Vec<_> = cell(field)?
                .iter()
                .zip(distances)
                .map(|(index, distance)| distance.from(builder, *index))
                .collect::<Result<_, _>>()?;
            builder.load(frame.source(field)?, &at)
        };
        let store = |builder: &Builder<'c>, values: Vec<Val<'c>>| {
            for ((field, _), value) in
                apply.outputs.iter().zip(values).filter(|((field, _), _)| stored(field))
            {
                builder.store(value, frame.target(field)?, cell(field)?)?;
            }
            Ok(())
        };
        let at =
            At { point: &point, step: apply.step, rules: Rules::All, fetch: &fetch, partial: None };
        if !in_place {
            let values = frame.new_values(builder, module, apply, &apply.pieces, &at)?;
            for ((field, _), value) in
                apply.outputs.iter().zip(values).filter(|((field, _), _)| stored(field))
            {
                frame.where_it_lies(builder, field, &point, &[], |builder| {
                    builder.store(value, frame.target(field)?, cell(field)?)?;
                    Ok(Vec::new())
                })?;
            }
            return Ok(());
        }
        for piece in &apply.pieces {
            let covered = frame.inside(builder, &point, piece.lower, piece.upper)?;
            builder.when(covered, |builder| {
                store(builder, frame.evaluate(builder, module, piece, &at)?)
            })?;
        }
        Ok(())
    })?;
    frame.finish()
}
