//! `lower-rows`: threads of a processor compute bands of rows of a sweep, as a pipeline.
//!
//! Needs: tile kernels of strategy `rows`, each with one apply. Guarantees: a `func.func` for each
//! in the module of functions for a processor. A tile is a band of rows, in three dimensions of
//! planes; a grid of one dimension is one tile. A tile waits for the tile before by flags, so a
//! launch hands tiles out in ascending order.
//!
//! ```text
//! for %turn = 0 to turns {                                   // see bands.rs
//!   if %tile > 0 { peer.wait flags[%tile - 1], min(%turn + 1 + lead, turns) }
//!   for each row of the band {
//!     for each column of the turn, behind the row above by the shift {
//!       %new = scf.if (in piece) { f(load A[...], load A_next[earlier points]) }
//!              else { load A[...] }
//!       store %new, A_next[...]
//!     }
//!   }
//!   peer.signal flags[%tile], %turn + 1
//! }
//! ```
//! Source: Belviranli, Deng, Gupta, Zhu, Bhuyan, "PeerWave: Exploiting Wavefront Parallelism on
//! GPUs with Peer-SM Synchronization", whose flags these are.
//!
//! Declines: kernels of more than one apply; dependences that are too long; in three dimensions
//! tiles that cut rows.

use super::NAME;
use super::bands::Bands;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::field_buffers::extents;
use crate::kernel::host_function::{self, HostFunction};
use crate::kernel::peers::Peers;
use crate::kernel::scope::Scope;
use crate::kernel::signature::Signature;
use crate::kernel::tile_kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use std::collections::BTreeMap;
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{self, Apply, Binding, Kernel, MOST_CELLS};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-rows",
    summary: "lower tile kernels of strategy rows: threads compute bands of rows of a sweep",
    options: &[],
    read: |_: &Options| Ok(Box::new(LowerRows)),
};

/// The pass.
pub struct LowerRows;

impl Pass for LowerRows {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| lower(context, subject, kernel))
    }
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
) -> Result<(), Error> {
    let program = subject.program;
    let applies: Vec<_> = kernel.applies().collect();
    let [apply] = applies.as_slice() else {
        let message = format!("a tile kernel of strategy {NAME} has one tiled.apply");
        let place = mlir::place(kernel.op.location());
        return Err(Error::declined(Decline::Applies, message).at(place));
    };
    tile_kernels::check_stored(program, kernel)?;
    let bands = bands(subject, kernel, apply)?;
    let hull = tile_kernels::hull(context, program, kernel)?;
    let outer = host_function::container(context, subject.module, kernel.op.location())?;
    let more: &[Binding] = if bands.is_some() { &[Binding::Flags, Binding::Epoch] } else { &[] };
    let signature = Signature::of(&outer, subject.module, program, kernel, false, more)?;
    let constant = |value| AffineExpr::constant(context, value);
    let all = extents(context, hull.lower, hull.upper)?;
    let tiles = match (&bands, all.first()) {
        (Some(bands), Some(rows)) => AffineExpr::ceil_div(*rows, constant(bands.height)),
        _ => constant(1),
    };
    let map = |count| symbolic(context, program.params.len(), &[count]);
    let mut attributes =
        tiled::launch_attributes(&outer, (map(tiles), None), [1; 3], &kernel.schedule);
    attributes.extend(tiled::rotations_attribute(kernel.op));
    if bands.is_some() {
        attributes.push(tiled::flags_attribute(map(tiles)));
    }
    let others = host_function::tile_arguments(&outer);
    let made =
        host_function::build(&outer, subject, kernel.name, (&signature, &others), &attributes)?;
    let scope = made.scope(subject, hull);
    let builder = Builder { location: apply.op.location(), ..made.builder };
    let lower = scope.bounds(&builder, hull.lower)?;
    let upper = scope.bounds(&builder, hull.upper)?;
    let ends = lower.into_iter().zip(upper);
    let ends = ends.map(|(first, last)| Ok((first, builder.add_constant(last, 1)?)));
    let ends = ends.collect::<Result<Vec<_>, Error>>()?;
    let sweep = Sweep { made: &made, scope: &scope, apply };
    match bands {
        Some(bands) => {
            let tiles = builder.affine(tiles, &[], &scope.params)?;
            sweep.band(&builder, bands, tiles, &ends)?;
        }
        None => sweep.points(&builder, &ends, &mut Vec::new())?,
    }
    made.finish(&scope)
}

/// The bands of a kernel; none in one dimension.
fn bands<'c>(
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    apply: &Apply<'c>,
) -> Result<Option<Bands>, Error> {
    let declined = |reason, message: &str| {
        Error::declined(reason, message).at(mlir::place(kernel.op.location()))
    };
    let (height, width) = match *kernel.schedule.tile.as_slice() {
        [height, width] | [height, width, 1] => (height, width),
        [_, _, _] => {
            let message = "a tile of a sweep has whole rows; its last number is 1";
            return Err(declined(Decline::TileShape, message));
        }
        _ => return Ok(None),
    };
    let bands = Bands::of(&subject.program.dependences(&apply.pieces)?, (height, width));
    let far = format!(
        "the function reads values of its own sweep more than {MOST_CELLS} cells away; read nearer \
         ones"
    );
    bands.map(Some).ok_or_else(|| declined(Decline::FarRead, &far))
}

/// The code of a sweep.
struct Sweep<'c, 'p> {
    made: &'p HostFunction<'c>,
    scope: &'p Scope<'c, 'p>,
    apply: &'p Apply<'c>,
}

impl<'c> Sweep<'c, '_> {
    /// The band of a tile, turn by turn.
    fn band(
        &self,
        builder: &Builder<'c>,
        bands: Bands,
        tiles: Val<'c>,
        ends: &[(Val<'c>, Val<'c>)],
    ) -> Result<(), Error> {
        let wrong = || Error::internal("a band without tile, flags, rows and columns");
        let arguments = &self.made.arguments;
        let (flags, epoch) = arguments.flags.zip(arguments.epoch).ok_or_else(wrong)?;
        let tile = self.made.others.first().copied().ok_or_else(wrong)?;
        let &[(first_row, end_row), (first, end), ref inner @ ..] = ends else {
            return Err(wrong());
        };
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let columns = builder.binary("arith.subi", end, first)?;
        let columns = builder.add_constant(columns, bands.behind() + bands.width - 1)?;
        let turns = builder.binary("arith.divsi", columns, builder.index(bands.width)?)?;
        let peers = Peers::new(builder, [flags, epoch], (tiles, turns))?;
        let above = builder.add_constant(tile, -1)?;
        let is_first = builder.compare(Compare::Eq, tile, zero)?;
        let top = builder.add(first_row, builder.multiply_constant(tile, bands.height)?)?;
        let bottom = builder.add_constant(top, bands.height)?;
        let bottom = builder.binary("arith.minsi", bottom, end_row)?;
        builder.repeat((zero, turns, one), |builder, turn| {
            let needed = builder.add_constant(turn, 1 + bands.lead)?;
            let nothing = |_: &Builder<'c>| Ok(Vec::new());
            let wait =
                |builder: &Builder<'c>| peers.wait(builder, above, needed).map(|()| Vec::new());
            builder.choose(is_first, &[], nothing, wait)?;
            let from = builder.add(first, builder.multiply_constant(turn, bands.width)?)?;
            builder.repeat((top, bottom, one), |builder, row| {
                let below = builder.binary("arith.subi", row, top)?;
                let shift = builder.multiply_constant(below, bands.shift)?;
                let from = builder.binary("arith.subi", from, shift)?;
                let to = builder.add_constant(from, bands.width)?;
                let from = builder.binary("arith.maxsi", from, first)?;
                let to = builder.binary("arith.minsi", to, end)?;
                let ends = [&[(row, builder.add_constant(row, 1)?), (from, to)], inner].concat();
                self.points(builder, &ends, &mut vec![row])
            })?;
            peers.signal(builder, tile, builder.add_constant(turn, 1)?)
        })
    }

    /// All points, the last coordinate the fastest.
    fn points(
        &self,
        builder: &Builder<'c>,
        ends: &[(Val<'c>, Val<'c>)],
        point: &mut Vec<Val<'c>>,
    ) -> Result<(), Error> {
        let Some((first, end)) = ends.get(point.len()).copied() else {
            return self.point(builder, point);
        };
        builder.repeat((first, end, builder.index(1)?), |builder, at| {
            point.push(at);
            let done = self.points(builder, ends, point);
            point.pop();
            done
        })
    }

    fn point(&self, builder: &Builder<'c>, point: &[Val<'c>]) -> Result<(), Error> {
        let load = |builder: &Builder<'c>,
                    memory: &BTreeMap<&'c str, Val<'c>>,
                    field: &str,
                    distances: &[Distance<'c>]| {
            let missing = || Error::internal(format!("no cells of @{field}"));
            let memory = memory.get(field).copied().ok_or_else(missing)?;
            let at = point.iter().zip(distances).map(|(at, by)| by.from(builder, *at));
            let at = at.collect::<Result<Vec<_>, _>>()?;
            builder.load(memory, &self.scope.cell(builder, field, &at)?)
        };
        let arguments = &self.made.arguments;
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &arguments.sources, field, distances)
        };
        let current = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &arguments.targets, field, distances)
        };
        let at = At {
            point,
            step: self.apply.step,
            rules: Rules::All,
            fetch: &fetch,
            current: Some(&current),
            partial: None,
        };
        let values = self.scope.new_values(builder, self.apply, &self.apply.pieces, &at)?;
        for ((field, _), value) in self.apply.outputs.iter().zip(values) {
            // A temp field that nobody reads later is not stored.
            let Some(target) = arguments.targets.get(field).copied() else { continue };
            self.scope.where_it_lies(builder, field, point, &[], |builder| {
                let cell = self.scope.cell(builder, field, point)?;
                builder.store(value, target, &cell).map(|()| Vec::new())
            })?;
        }
        Ok(())
    }
}
