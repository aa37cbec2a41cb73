//! `lower-slab`: a thread of a processor computes one tile, a few rows at a time for all steps of
//! the launch, so that what a step reads still lies in the nearest caches.
//!
//! Needs: tile kernels of strategy `slab`. Guarantees: a `func.func` for each in a module of their
//! own, and the functions that it calls. A function computes the tile of a number.
//!
//! ```text
//! func.func @heat_2(%A, %K, %A_next, %N, %alpha, %step, %tile: index, %memory: memref<i8>) {
//!   scf.for %front = first plane to last plane + lag of the last apply, a slab at a time {
//!     planes = %front - lag of the first apply ...  within those that it computes
//!     if there are any { call @box.0(..., planes, columns, place of A, place of %0) }
//!     planes = %front - lag of the second apply ... { call @box.0(..., place of %0, of A_next) }
//!   }
//! }
//! func.func private @box.0(..., box, places) {
//!   points of the box where no piece lies: copy
//!   points of the box and of a piece where a read leaves the grid: cell by cell
//!   the others: rows in vectors
//! }
//! ```
//! Frozen rims, pieces and boundary rules are bounds of loops, so the rows inside have no tests. A
//! loaded value is read from the field's own memory. Tiles that go on beyond a periodic grid copy
//! it first, and so do those that read many planes. `layout.rs` has lags and windows, `renames.rs`
//! the values that need no window, `reads.rs` the choice of loads, `row_vectors.rs` the vectors.
//!
//! Declines: tiles that need more memory than a thread may have.

use super::NAME;
use super::box_function::{self, BoxFunction, BoxFunctions, Subjects};
use super::boxes::{Cells, no_dimension};
use super::layout::{Action, Layout, Work};
use super::place::Place;
use super::reads::MOST_ROWS;
use crate::kernel::cut::{self, Tiling};
use crate::kernel::field_buffers::extents;
use crate::kernel::host_function::{self, HostFunction};
use crate::kernel::scope::Scope;
use crate::kernel::signature::Signature;
use crate::kernel::{tile_kernels, tile_place};
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::{self, Binding, Kernel};

/// Planes that an operation takes at once: in two dimensions the rows that it computes together.
pub fn slab(rank: usize) -> i64 {
    if rank == 2 { MOST_ROWS } else { 1 }
}

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-slab",
    summary: "lower tile kernels of strategy slab: a thread a tile, rows in vectors",
    options: &[],
    read: |_: &Options| Ok(Box::new(LowerSlab)),
};

/// The pass.
pub struct LowerSlab;

impl Pass for LowerSlab {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        let functions = BoxFunctions::default();
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            lower(context, subject, kernel, &functions)
        })
    }
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    functions: &BoxFunctions,
) -> Result<(), Error> {
    let program = subject.program;
    let wraps = tiled::wraps(program, kernel)?;
    let layout = Layout::of(subject, kernel, wraps, slab(kernel.schedule.tile.len()))?;
    let vector = i64::from(subject.vector_bytes());
    let outer = host_function::container(context, subject.module, kernel.op.location())?;
    let signature = Signature::of(&outer, subject.module, program, kernel, false, &[])?;
    let subjects = Subjects { context, subject, kernel, wraps, signature: &signature, vector };
    let made = layout.actions.iter().map(|action| functions.of(subjects, &layout, &action.work));
    let functions = made.collect::<Result<Vec<_>, _>>()?;
    let hull = tile_kernels::hull(context, program, kernel)?;
    let counts = extents(context, hull.lower, hull.upper)?.into_iter().zip(&kernel.schedule.tile);
    let counts: Vec<_> = counts
        .map(|(extent, tile)| AffineExpr::ceil_div(extent, AffineExpr::constant(context, *tile)))
        .collect();
    let tiles = counts.iter().copied().reduce(|product, count| product * count);
    let tiles = tiles.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
    let grid = symbolic(context, program.params.len(), &[tiles]);
    let mut attributes =
        tiled::launch_attributes(&outer, (grid, None), [1, 1, 1], &kernel.schedule);
    attributes.extend(tiled::rotations_attribute(kernel.op));
    let (before, order) = (Vec::new(), tiled::Order::RowMajor);
    let tiling = Tiling { counts: &counts, before, each: 1, order, loads: &[] };
    attributes.extend(cut::of_tiles(context, &outer, subject, kernel, &hull, tiling)?);
    let others = host_function::tile_arguments(&outer);
    let made =
        host_function::build(&outer, subject, kernel.name, (&signature, &others), &attributes)?;
    tiled::set_dynamic_shared(&outer, made.op, layout.bytes);
    let scope = made.scope(subject, hull);
    let [tile, memory] = <[Val; 2]>::try_from(made.others.as_slice())
        .map_err(|_| Error::internal("a kernel without a tile"))?;
    let builder = &made.builder;
    let counts: Vec<_> = counts
        .iter()
        .map(|count| builder.affine(*count, &[], &scope.params))
        .collect::<Result<_, _>>()?;
    let numbers = tile_place::row_major(builder, tile, &counts)?;
    let no_margin = (&[] as &[_], scope.params.as_slice());
    let origin = tile_place::origin(builder, &hull, &numbers, &kernel.schedule.tile, no_margin)?;
    let code = TileCode {
        made: &made,
        signature: &signature,
        scope: &scope,
        kernel,
        layout: &layout,
        functions: &functions,
        origin,
        memory: host_function::memory(builder, memory, layout.bytes)?,
        wraps,
    };
    code.all()?;
    made.finish(&scope)
}

/// The code of one tile.
struct TileCode<'c, 'p> {
    made: &'p HostFunction<'c>,
    signature: &'p Signature<'c>,
    scope: &'p Scope<'c, 'p>,
    kernel: &'p Kernel<'c>,
    layout: &'p Layout<'c, 'p>,
    /// The functions of the actions.
    functions: &'p [BoxFunction<'c>],
    origin: Vec<Val<'c>>,
    memory: Val<'c>,
    wraps: bool,
}

impl<'c> TileCode<'c, '_> {
    /// All actions, at each place of the front.
    fn all(&self) -> Result<(), Error> {
        let builder = &self.made.builder;
        let boxes = self.layout.actions.iter().map(|action| self.cells(builder, action));
        let boxes = boxes.collect::<Result<Vec<_>, _>>()?;
        let places = self.layout.actions.iter().map(|action| self.places(builder, action));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let actions =
            || self.layout.actions.iter().zip(self.functions).zip(boxes.iter().zip(&places));
        if self.kernel.schedule.tile.len() == 1 {
            return actions().try_for_each(|((action, function), (cells, places))| {
                self.call(builder, (action, function), cells, places)
            });
        }
        // The front goes from the first plane of any action to the last, each behind its lag.
        let (mut first, mut end): (Option<Val>, Option<Val>) = (None, None);
        for ((action, _), (cells, _)) in actions() {
            let [from, to] = cells.0.first().copied().ok_or_else(no_dimension)?;
            let (from, to) =
                (builder.add_constant(from, action.lag)?, builder.add_constant(to, action.lag)?);
            first =
                Some(first.map_or(Ok(from), |other| builder.binary("arith.minsi", other, from))?);
            end = Some(end.map_or(Ok(to), |other| builder.binary("arith.maxsi", other, to))?);
        }
        let (first, end) = first.zip(end).ok_or_else(|| Error::internal("a tile of no work"))?;
        let slab = builder.index(self.layout.slab)?;
        builder.repeat((first, end, slab), |builder, front| {
            for ((action, function), (cells, places)) in actions() {
                let [from, to] = cells.0.first().copied().ok_or_else(no_dimension)?;
                let plane = builder.add_constant(front, -action.lag)?;
                let last = builder.add(plane, slab)?;
                let plane = builder.binary("arith.maxsi", plane, from)?;
                let last = builder.binary("arith.minsi", last, to)?;
                let mut cells = cells.clone();
                if let Some(planes) = cells.0.first_mut() {
                    *planes = [plane, last];
                }
                let there = builder.compare(Compare::Lt, plane, last)?;
                builder.when(there, |builder| {
                    self.call(builder, (action, function), &cells, places)
                })?;
            }
            Ok(())
        })
    }

    /// The cells that an action takes: those around the tile, and only those of the grid unless
    /// the tile goes on beyond it.
    fn cells(&self, builder: &Builder<'c>, action: &Action<'c, '_>) -> Result<Cells<'c>, Error> {
        let halo = action.halo.lower.iter().zip(&action.halo.upper);
        let ends = self.origin.iter().zip(&self.kernel.schedule.tile).zip(halo.clone());
        let ends = ends.map(|((origin, tile), (lower, upper))| {
            Ok([
                builder.add_constant(*origin, *lower)?,
                builder.add_constant(*origin, tile + upper)?,
            ])
        });
        let all = Cells(ends.collect::<Result<_, Error>>()?);
        let hull = &self.scope.hull;
        // Fields that are not stored may have cells beside the hull of those that are.
        let mut grid = Cells::of(builder, self.scope, (hull.lower, hull.upper))?;
        if let (Work::Load(field, _), false) = (&action.work, self.wraps) {
            let own = self.scope.program.grid_of(field)?;
            grid = Cells::of(builder, self.scope, (own.lower, own.upper))?;
        }
        if let Work::Apply(apply) = &action.work {
            for (field, _) in &apply.outputs {
                let own = self.scope.program.grid_of(field)?;
                let own = Cells::of(builder, self.scope, (own.lower, own.upper))?;
                for ([first, end], [own_first, own_end]) in grid.0.iter_mut().zip(&own.0) {
                    *first = builder.binary("arith.minsi", *first, *own_first)?;
                    *end = builder.binary("arith.maxsi", *end, *own_end)?;
                }
            }
        }
        if self.wraps {
            // Cells beyond the grid are computed where those of the grid need them.
            for ([first, end], (lower, upper)) in grid.0.iter_mut().zip(halo) {
                *first = builder.add_constant(*first, *lower)?;
                *end = builder.add_constant(*end, *upper)?;
            }
        }
        all.within(builder, &grid)
    }

    /// The places of the cells that an action reads and writes, as arguments.
    fn places(
        &self,
        builder: &Builder<'c>,
        action: &Action<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let fields = box_function::fields(self.layout, &action.work);
        let mut values = Vec::new();
        for (number, (field, tile)) in fields.into_iter().enumerate() {
            let (field, tile) = self.layout.renames.resolve(field, tile);
            let window = self.layout.window(tile);
            let place = match (&action.work, window) {
                (Work::Load(..), _) if number == 0 => self.source(builder, field)?,
                (Work::Store(..), _) if number == 1 => self.target(builder, field)?,
                (_, Some(window)) => Place::of_window(builder, window, self.memory, &self.origin)?,
                (_, None) if self.layout.direct(tile).is_some() => self.target(builder, field)?,
                (_, None) => self.source(builder, field)?,
            };
            values.extend(place.values());
        }
        for field in box_function::rims(self.layout, &action.work) {
            values.extend(self.source(builder, field)?.values());
        }
        Ok(values)
    }

    /// The current memory of a field.
    fn source(&self, builder: &Builder<'c>, field: &str) -> Result<Place<'c>, Error> {
        self.of_field(builder, field, |binding| {
            matches!(binding, Binding::Read(name) | Binding::ReadWrite(name) if *name == field)
        })
    }

    /// The memory of a field's next value.
    fn target(&self, builder: &Builder<'c>, field: &str) -> Result<Place<'c>, Error> {
        self.of_field(builder, field, |binding| {
            matches!(binding, Binding::Write(name) | Binding::ReadWrite(name) if *name == field)
        })
    }

    fn of_field(
        &self,
        builder: &Builder<'c>,
        field: &str,
        is: impl Fn(&Binding<'c>) -> bool,
    ) -> Result<Place<'c>, Error> {
        let at = self.signature.bindings.iter().position(is);
        let cells = at.and_then(|at| self.made.bound.get(at)).copied();
        let none = || Error::internal(format!("no memory of @{field}"));
        Place::of_field(builder, self.scope, field, cells.ok_or_else(none)?)
    }

    fn call(
        &self,
        builder: &Builder<'c>,
        (action, function): (&Action<'c, '_>, &BoxFunction<'c>),
        cells: &Cells<'c>,
        places: &[Val<'c>],
    ) -> Result<(), Error> {
        let step = match &action.work {
            Work::Apply(apply) => apply.step,
            _ => 0,
        };
        let own = (self.signature, self.made.bound.as_slice());
        let mut operands = function.operands(builder, own, step)?;
        operands.extend(cells.0.iter().flatten());
        operands.extend(places);
        host_function::call(builder, &function.name, &operands)
    }
}
