//! `fuse-reductions`: the launch before a reduction computes the values at its points.
//!
//! Needs: tile kernels, and a host schedule that names the fields of reductions among them.
//! Guarantees: where a reduction stands behind a launch of a tile kernel and fits into it, the
//! kernel computes the values at the points as a temp field, `NAME.points`, and stores it. The
//! reduction leaves that place of the schedule. `combine-stores` turns the stores into
//! combinations.
//!
//! A reduction fits where
//! - its operation gives the same result in any order: `min`, `max`, and sums of integers;
//! - its function reads fields at the point itself, and nothing at computed places;
//! - the kernel stores one of these fields, and the others are stored or left alone;
//! - warps of the kernel have enough cells, and the lowering takes the longer kernel.
//!
//! Other reductions keep kernels of their own. A kernel that other launches use too is copied, so
//! that these do no more work.
//!
//! ```text
//! func.func @heat_4() { ...; "tiled.store"(%5) {field = @A} }
//! "tiled.repeat"() {count = affine_map<()[s0] -> (1)>, kernels = [@heat_4, @worst]}
//! ```
//! becomes
//! ```text
//! func.func @heat_4_worst() { ...; "tiled.store"(%5) {field = @A}
//!   %6 = "tiled.apply"() {updates = [@worst.points], pieces = [{function = @worst.neutral, ...}]}
//!   %7 = "tiled.apply"(%5, %6) {updates = [@worst.points], pieces = [{function = @f, ...}], ...}
//!   "tiled.store"(%7) {field = @worst.points}
//! }
//! "tiled.repeat"() {count = affine_map<()[s0] -> (1)>, kernels = [@heat_4_worst]}
//! ```
//!
//! The first apply gives points outside the box the value that changes no other. It is left out
//! where the box is the whole grid.

use super::block::Operator;
use super::lower_reduce::kernel_name;
use crate::kernel::lanes::WARP;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choose_schedule::SPLIT_INTERIOR;
use crate::schedule::lowering::{self, Settings};
use crate::schedule::trial;
use crate::strategies;
use crate::subject::Subject;
use crate::target::Target;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument, Grid, Piece, Program, Reduce, Role};
use stencil_dialects::tiled::{self, Halo, Kernel, Part, TileOp};

/// Cells of a warp's part of a tile at least: fewer make more partial results than it takes to read
/// the field once more.
const CELLS_OF_A_WARP: i64 = 256;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "fuse-reductions",
    summary: "compute the points of reductions in the launch before them",
    options: &[SPLIT_INTERIOR],
    read: |options: &Options| {
        let split = options.flag(SPLIT_INTERIOR.0)?.unwrap_or(true);
        Ok(Box::new(FuseReductions(Settings { no_split_interior: !split, ..Settings::default() })))
    },
};

/// The pass, with what comes behind it.
pub struct FuseReductions(pub Settings);

impl Pass for FuseReductions {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let off = (SPLIT_INTERIOR.0, "off".to_owned());
        if self.0.no_split_interior { vec![off] } else { Vec::new() }
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        // A processor's kernels leave no points of a reduction in registers.
        let processor = Target::of(module)?.processor.is_some();
        Ok(!processor && !Program::read(module)?.reduces.is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        let mut lists = lists(module)?;
        let mut copied = BTreeSet::new();
        let kernels = tiled::kernels(module)?;
        let mut tiles = kernels.iter().map(|kernel| kernel.name.to_owned()).collect();
        for reduce in &program.reduces {
            let mut fused = Fused::new();
            for number in 0..lists.len() {
                let mut from = 0;
                while let Some(place) = place_of(&lists, (number, from), reduce.field) {
                    let (at, known) = ((number, place), (&mut fused, &mut tiles));
                    self.fuse(context, module, (&program, reduce), (&mut lists, at), known)?;
                    from = place + 1;
                }
            }
            let others = fused.into_iter().filter(|(name, new)| new.as_ref() != Some(name));
            copied.extend(others.filter_map(|(name, new)| new.map(|_| name)));
        }
        let used: BTreeSet<String> =
            lists.iter().flat_map(|list| list.kernels.iter().cloned()).collect();
        for kernel in tiled::kernels(module)? {
            if copied.contains(kernel.name) && !used.contains(kernel.name) {
                mlir::erase(kernel.op);
            }
        }
        let builder = Builder::new(context, mlir::module_op(module).location(), mlir::body(module));
        for mut list in lists {
            list.kernels.retain(|name| !name.is_empty());
            match list.kernels.is_empty() {
                true => mlir::erase(list.op),
                false => tiled::set_kernels(&builder, list.op, &list.kernels),
            }
        }
        Ok(())
    }
}

impl FuseReductions {
    /// Fuses a reduction that stands at a place of the launches, if it fits there. Its name at that
    /// place is then empty.
    fn fuse<'c>(
        &self,
        context: &'c Context,
        module: &Module<'c>,
        (program, reduce): (&Program<'c>, &Reduce<'c>),
        (lists, (number, place)): (&mut [List<'c>], (usize, usize)),
        (fused, tiles): (&mut Fused, &mut BTreeSet<String>),
    ) -> Result<(), Error> {
        let Some(launch) = launch_before(program, tiles, lists, (number, place))? else {
            return Ok(());
        };
        if !fused.contains_key(&launch.name) {
            let all = lists.iter().flat_map(|list| &list.kernels);
            let uses = all.filter(|name| **name == launch.name).count();
            let new = self.fused(context, module, (program, reduce), (&launch.name, uses))?;
            tiles.extend(new.clone());
            // A second value behind the same launch is the same.
            fused.extend(new.clone().map(|new| (new.clone(), Some(new))));
            fused.insert(launch.name.clone(), new);
        }
        let Some(Some(name)) = fused.get(&launch.name) else { return Ok(()) };
        let before = lists.get_mut(launch.list).and_then(|list| list.kernels.get_mut(launch.place));
        before.ok_or_else(|| Error::internal("a launch without a place"))?.clone_from(name);
        if let Some(gone) = lists.get_mut(number).and_then(|list| list.kernels.get_mut(place)) {
            gone.clear();
        }
        Ok(())
    }

    /// The kernel that computes a reduction too, as a copy where there are other uses; none where
    /// it does not fit.
    fn fused<'c>(
        &self,
        context: &'c Context,
        module: &Module<'c>,
        (program, reduce): (&Program<'c>, &Reduce<'c>),
        (name, uses): (&str, usize),
    ) -> Result<Option<String>, Error> {
        let kernels = tiled::kernels(module)?;
        let Some(kernel) = kernels.iter().find(|kernel| kernel.name == name) else {
            return Ok(None);
        };
        let Some(taken) = Taken::of(program, reduce, kernel)? else { return Ok(None) };
        if !self.is_lowered(context, module, reduce, name)? {
            return Ok(None);
        }
        let builder = Builder::new(context, reduce.op.location(), mlir::body(module));
        if uses == 1 {
            extend(&builder, module, (program, reduce), (kernel, &taken))?;
            return Ok(Some(name.to_owned()));
        }
        let new = stencil::unused_name(module, &format!("{name}_{}", kernel_name(reduce.field)));
        tiled::copy(&builder, kernel.op, &new)?;
        let kernels = tiled::kernels(module)?;
        let kernel = kernels.iter().find(|kernel| *kernel.name == new);
        let kernel = kernel.ok_or_else(|| Error::internal("no copy of a tile kernel"))?;
        let taken = Taken::of(program, reduce, kernel)?;
        let taken = taken.ok_or_else(|| Error::internal("a copy of another tile kernel"))?;
        extend(&builder, module, (program, reduce), (kernel, &taken))?;
        Ok(Some(new))
    }

    /// Whether the lowering takes a kernel with a reduction, and its warps have enough cells.
    fn is_lowered<'c>(
        &self,
        context: &'c Context,
        module: &Module<'c>,
        reduce: &Reduce<'c>,
        name: &str,
    ) -> Result<bool, Error> {
        let program = Program::read(module)?;
        let mut copy = trial::copied(&Subject::of(module, &program)?)?;
        let program = Program::read(&copy)?;
        for kernel in tiled::kernels(&copy)? {
            if kernel.name != name {
                mlir::erase(kernel.op);
                continue;
            }
            let builder = Builder::new(context, kernel.op.location(), mlir::body(&copy));
            let same = program.reduces.iter().find(|one| one.field == reduce.field);
            let same = same.ok_or_else(|| Error::internal("a copy without a reduction"))?;
            if let Some(taken) = Taken::of(&program, same, &kernel)? {
                extend(&builder, &copy, (&program, same), (&kernel, &taken))?;
            }
        }
        for reduce in &program.reduces {
            mlir::erase(reduce.op);
        }
        let steps = lowering::split(self.0).into_iter().chain(lowering::lower());
        for step in steps {
            match step.run(context, &mut copy) {
                Err(error) if error.is_decline() => return Ok(false),
                other => other?,
            }
        }
        let launches = tiled::launches(&copy)?;
        let Some(launch) = launches.iter().find(|launch| launch.name == name) else {
            return Err(Error::internal(format!("no pass lowered @{name}")));
        };
        let threads: i64 = launch.block.iter().product();
        let strategy = strategies::named(&launch.schedule.strategy)?;
        let tiles = strategy.tiles_per_block(u32::try_from(threads).unwrap_or(u32::MAX));
        let cells = launch.schedule.tile.iter().product::<i64>() as f64 * tiles;
        let plain = !launch.axes && launch.turns.is_none() && launch.flags.is_none();
        Ok(plain
            && threads % WARP == 0
            && cells * WARP as f64 >= (threads * CELLS_OF_A_WARP) as f64)
    }
}

/// For one reduction: the kernels that compute it too, by the names of those without it.
type Fused = BTreeMap<String, Option<String>>;

/// The first place of a reduction in a list of launches from one on.
fn place_of(lists: &[List], (number, from): (usize, usize), field: &str) -> Option<usize> {
    let kernels = lists.get(number)?.kernels.get(from..)?;
    Some(from + kernels.iter().position(|name| name == field)?)
}

/// Launches that are done one after the other.
struct List<'c> {
    op: Op<'c>,
    part: Option<Part>,
    /// Whether it is done once.
    once: bool,
    kernels: Vec<String>,
}

fn lists<'c>(module: &Module<'c>) -> Result<Vec<List<'c>>, Error> {
    let list = |repeat: tiled::Repeat<'c>| {
        let count = repeat.count.result(0).map_err(|error| Error::internal(error.to_string()))?;
        Ok(List {
            op: repeat.op,
            part: repeat.part,
            once: count.is_constant() && count.constant_value() == 1,
            kernels: repeat.kernels.iter().map(|name| (*name).to_owned()).collect(),
        })
    };
    tiled::repeats(module)?.into_iter().map(list).collect()
}

/// A launch of a tile kernel.
struct Launched {
    name: String,
    list: usize,
    place: usize,
}

/// The launch whose results a reduction takes: the last one before it, in its list or in that
/// before, if both are done once. None where a reduction between them needs the value of the step
/// before.
fn launch_before(
    program: &Program,
    tiles: &BTreeSet<String>,
    lists: &[List],
    (number, place): (usize, usize),
) -> Result<Option<Launched>, Error> {
    let Some(own) = lists.get(number) else { return Ok(None) };
    let Some(field) = own.kernels.get(place) else { return Ok(None) };
    let earlier = number.checked_sub(1).and_then(|one| Some((one, lists.get(one)?)));
    let earlier = earlier.filter(|(_, list)| own.once && list.once && list.part == own.part);
    let (earlier, length) = earlier.map_or((number, 0), |(one, list)| (one, list.kernels.len()));
    let own_places = (0..place).rev().map(|place| (number, place));
    for (list, place) in own_places.chain((0..length).rev().map(|place| (earlier, place))) {
        let Some(name) = lists.get(list).and_then(|list| list.kernels.get(place)) else { continue };
        if name.is_empty() {
            continue;
        }
        if tiles.contains(name) {
            return Ok(Some(Launched { name: name.clone(), list, place }));
        }
        let between = program.reduces.iter().find(|reduce| reduce.field == name);
        match between {
            Some(between) if !program.gathered(between.function)?.contains(field.as_str()) => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// A reduction that fits into a tile kernel.
struct Taken<'c> {
    /// What its function reads: the tiles of stored fields, and fields that nobody updates.
    reads: Vec<(&'c str, Option<Val<'c>>)>,
    /// The grid of its points.
    grid: Grid<'c>,
    /// The step within the launch.
    step: i64,
}

impl<'c> Taken<'c> {
    /// How a reduction fits into a kernel; none where it does not.
    fn of(
        program: &Program<'c>,
        reduce: &Reduce<'c>,
        kernel: &Kernel<'c>,
    ) -> Result<Option<Self>, Error> {
        let operator = Operator::of(program.field(reduce.field)?, reduce.combine);
        let strategy = strategies::named(&kernel.schedule.strategy)?;
        let gathers = !program.gathered(reduce.function)?.is_empty();
        if !operator.takes_any_order() || strategy.sweeps() || gathers {
            return Ok(None);
        }
        let rotations = tiled::rotations(kernel.op)?;
        let (mut reads, mut grid) = (Vec::new(), None);
        for argument in program.arguments(reduce.function)? {
            let Argument::Read { field, offset } = argument else { continue };
            let (field, declared) = (*field, program.field(field)?);
            let rotates = rotations.iter().flatten().any(|name| *name == field);
            if offset.iter().any(|cells| *cells != 0) || tiled::computed(declared)?.is_some() {
                return Ok(None);
            }
            let stored = kernel.body.iter().find_map(|op| match op {
                TileOp::Store { field: name, tile, .. } if *name == field => Some(*tile),
                _ => None,
            });
            let mut outputs = kernel.applies().flat_map(|apply| &apply.outputs);
            if stored.is_none() && (rotates || outputs.any(|(name, _)| *name == field)) {
                return Ok(None);
            }
            if stored.is_some() && grid.is_none() {
                grid = Some(program.grid_of(field)?.clone());
            }
            if !reads.iter().any(|(name, _)| *name == field) {
                reads.push((field, stored));
            }
        }
        let step = kernel.applies().map(|apply| apply.step).max().unwrap_or(0);
        Ok(grid.map(|grid| Self { reads, grid, step }))
    }
}

/// Adds the points of a reduction to a tile kernel.
fn extend<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    (program, reduce): (&Program<'c>, &Reduce<'c>),
    (kernel, taken): (&Kernel<'c>, &Taken<'c>),
) -> Result<(), Error> {
    let value = program.field(reduce.field)?;
    let field = stencil::unused_name(module, &format!("{}.points", reduce.field));
    let grid = &taken.grid;
    let declared = attribute::read(value.op, "type", attribute::as_type)?;
    let op = stencil::field(builder, &field, grid.name, declared, Role::Temp, None)?;
    stencil::set_combined(builder, op, reduce.field, reduce.combine);
    let body = stencil::function_body(kernel.op)?;
    let end = mlir::operations(body).pop();
    let end = end.ok_or_else(|| Error::internal("a tile kernel without an end"))?;
    let inner = Builder { location: reduce.op.location(), ..builder.at(body) };
    let halo = Halo::none(grid.rank());
    let mut inputs = Vec::new();
    for (field, tile) in &taken.reads {
        let tile = tile.map_or_else(|| tiled::load(&inner, field, &halo), Ok)?;
        inputs.push((*field, tile));
    }
    let name = stencil::unused_name(module, &format!("{}.neutral", reduce.field));
    let piece = program.reduced(reduce)?;
    let (step, updates) = (taken.step, [field.as_str()]);
    if (piece.lower, piece.upper) != (grid.lower, grid.upper) {
        let (_, entry) = stencil::point_function(builder, &name, &[], &[value.element])?;
        let function = builder.at(entry);
        let neutral = Operator::of(value, reduce.combine).neutral(&function)?;
        function.op("func.return", &[neutral], &[], &[])?;
        let whole = Piece { function: &name, lower: grid.lower, upper: grid.upper };
        let pieces = stencil::pieces_attribute(builder, &[whole]);
        let tiles = tiled::apply(&inner, &[], &updates, &halo, pieces, step)?;
        inputs.extend(tiles.into_iter().map(|tile| (field.as_str(), tile)));
    }
    let pieces = stencil::pieces_attribute(builder, &[piece]);
    for tile in tiled::apply(&inner, &inputs, &updates, &halo, pieces, step)? {
        tiled::store(&inner, &field, tile)?;
    }
    // The terminator comes last again.
    let last = inner.op("func.return", &[], &[], &[])?;
    mlir::move_before(end, last);
    mlir::erase(last);
    Ok(())
}
