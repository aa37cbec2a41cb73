//! The `gpu.func` of a launch of a nest: its arguments, its blocks, and where its threads begin.

use super::access_checks::over_params;
use super::arguments::Kind;
use super::launches::{Function, HostLoop, Launch};
use super::nest_kernel::{Axis, Code, Start};
use super::shared_tiles::{self, Tileable};
use super::tile_shape::{self, Buffer, Fitted};
use super::tiled_cells::Cells;
use super::tiled_kernel::{TiledAxis, TiledCode};
use crate::kernel::function;
use crate::kernel::shared_memory::{resident_blocks, shared_type};
use crate::kernel::signature::{Arguments, Signature};
use crate::subject::Subject;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap, Attribute};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{self, Binding, Region, Schedule};
use stencil_runtime::device::Device;

/// What the schedule of a kernel of a nest is called.
pub const STRATEGY: &str = "affine";

/// Threads on a multiprocessor that the registers of a thread with several cells should allow: two
/// blocks of 16 x 16.
const THREADS: u32 = 512;

/// A launch as it becomes a kernel.
pub struct Frame<'c, 'p> {
    /// The function.
    pub function: &'p Function<'c, 'p>,
    /// What the launch holds.
    pub launch: &'p Launch<'c>,
    /// The kernel's name.
    pub name: String,
    /// The loop that the host runs, with the steps of each phase before it.
    pub host_loop: Option<(&'p HostLoop<'c>, &'p [Linear])>,
    /// Steps that the launch takes: 0 for all but the last of an iteration.
    pub steps: i64,
}

/// A thread's place along an axis.
#[derive(Clone, Copy)]
struct AxisPlace<'c> {
    /// The number of its block's first cell.
    first: Val<'c>,
    /// Its number in its block.
    thread: Val<'c>,
}

/// Threads of a block per axis, x first.
fn threads(axes: usize) -> &'static [i64] {
    match axes {
        0 => &[1],
        1 => &[256],
        2 => &[64, 4],
        _ => &[64, 4, 1],
    }
}

impl<'c> Frame<'c, '_> {
    /// Builds the kernel at the end of the container.
    ///
    /// # Errors
    /// Bounds that leave 64 bits, and internal ones.
    pub fn build(&self, container: &Builder<'c>, subject: &Subject<'c, '_>) -> Result<(), Error> {
        let context = container.context;
        let hulls = self.hulls()?;
        let tiling = self.tiling(subject.device)?;
        let (threads, per_thread, copiers) = match &tiling {
            Some((_, of)) => (of.threads.clone(), of.per_thread.clone(), of.copiers),
            None => {
                let threads = threads(self.launch.axis_count());
                (threads.to_vec(), vec![1; threads.len()], 1)
            }
        };
        let tile: Vec<i64> = threads.iter().zip(&per_thread).map(|(a, b)| a * b).collect();
        let grid = self.grid(container, &hulls, &tile)?;
        let mut block = [1_i32; 3];
        for (slot, threads) in block.iter_mut().zip(threads.iter().chain([&copiers])) {
            *slot = i32::try_from(*threads).unwrap_or(i32::MAX);
        }
        let schedule = Schedule {
            strategy: STRATEGY.to_owned(),
            tile: tile.iter().rev().copied().collect(),
            per_thread: per_thread.iter().rev().copied().collect(),
            steps: self.steps,
            region: Region::default(),
        };
        let mut attributes = tiled::axes_attributes(container, &grid, block, &schedule);
        attributes.push(("sym_name", attribute::string(context, &self.name)));
        attributes.push(("gpu.kernel", Attribute::unit(context)));
        let program = subject.program;
        let signature = Signature::of_bindings(container, program, self.bindings(subject))?;
        let copies = tiling.iter().flat_map(|(_, fitted)| fitted.copies.iter().flatten());
        let shared = copies.map(|copy| {
            let extents = Buffer::ordered(&copy.order, &copy.extents);
            shared_type(container, &extents, copy.element)
        });
        let shared = shared.collect::<Result<Vec<_>, _>>()?;
        if per_thread.iter().any(|cells| *cells > 1) {
            let registers = subject.device.registers / THREADS;
            let blocks = resident_blocks(&threads, &shared, registers.into(), subject.device);
            attributes.push(("nvvm.minctasm", attribute::integer(context, blocks)));
        }
        let made = function::build(container, subject, &signature, attributes, &shared)?;
        let builder = &made.builder;
        let axes = self.axes(builder, &made.arguments.params, &grid, &tile)?;
        let mut starts = BTreeMap::new();
        for (at, (first, _)) in
            hulls.into_iter().filter(|(at, _)| self.launch.axes.contains_key(at))
        {
            let map = Linear::map(context, program.params.len(), std::slice::from_ref(&first));
            let value = of_map(builder, map, 0, &made.arguments.params)?;
            starts.insert(at, Start { value, fixed: self.starts_there(at, &first) });
        }
        let values = self.values(builder, &made.arguments)?;
        match &tiling {
            None => self.plain(builder, &axes, starts, values)?,
            Some(tiling) => self.tiled(builder, tiling, &axes, starts, (values, &made.shared))?,
        }
        builder.op("gpu.return", &[], &[], &[]).map(drop)
    }

    /// The tile that the launch's loop states, if it states one.
    fn tiling(&self, device: &Device) -> Result<Option<(Tileable<'c>, Fitted<'c>)>, Error> {
        let [op] = self.launch.ops[..] else { return Ok(None) };
        let Some(tile) = tiled::nest_tile(op)? else { return Ok(None) };
        let place = mlir::place(op.location());
        let tileable = shared_tiles::of(self.function, self.launch).map_err(|reason| {
            let text = format!("this loop can have no tile: {reason}; remove tiled.nest_tile");
            Error::declined(Decline::Nest, text).at(place.clone())
        })?;
        let fitted = tile_shape::fit(self.function, self.launch, &tileable, &tile, device);
        Ok(Some((tileable, fitted.map_err(|error| error.at(place))?)))
    }

    /// Code in which each thread does its share in the order of the text.
    fn plain(
        &self,
        builder: &Builder<'c>,
        places: &[AxisPlace<'c>],
        starts: BTreeMap<usize, Start<'c>>,
        values: BTreeMap<usize, Val<'c>>,
    ) -> Result<(), Error> {
        let zero = builder.index(0)?;
        let mut axes = Vec::new();
        for place in places {
            let thread = builder.add(place.first, place.thread)?;
            let is_first = builder.compare(Compare::Eq, thread, zero)?;
            axes.push(Axis { thread, is_first });
        }
        let Frame { function, launch, .. } = *self;
        Code { function, launch, axes, starts, values, of_first: BTreeSet::new() }.build(builder)
    }

    /// Code with tiles in shared memory.
    fn tiled(
        &self,
        builder: &Builder<'c>,
        (tileable, fitted): &(Tileable<'c>, Fitted<'c>),
        places: &[AxisPlace<'c>],
        starts: BTreeMap<usize, Start<'c>>,
        (values, shared): (BTreeMap<usize, Val<'c>>, &[Val<'c>]),
    ) -> Result<(), Error> {
        let Frame { function, launch, .. } = *self;
        let (axes, of_first) = (Vec::new(), BTreeSet::new());
        let mut before = Code { function, launch, axes, starts: BTreeMap::new(), values, of_first };
        launch.before.iter().try_for_each(|op| before.compute(builder, *op))?;
        let shares = fitted.threads.iter().zip(&fitted.per_thread);
        let axes = places.iter().zip(shares).map(|(place, (threads, per_thread))| TiledAxis {
            thread: place.thread,
            first: place.first,
            threads: *threads,
            per_thread: *per_thread,
        });
        let copier = match fitted.copiers {
            1 => None,
            _ => Some(place(builder, "gpu.thread_id", fitted.threads.len())?),
        };
        let mut shared = shared.iter().copied();
        let buffers = fitted.copies.iter().map(|all| shared.by_ref().take(all.len()).collect());
        let mut code = TiledCode {
            launch,
            tileable,
            fitted,
            axes: axes.collect(),
            copier,
            starts,
            buffers: buffers.collect(),
            cells: Cells {
                function,
                axes: &launch.axes,
                common: before.values,
                all: Vec::new(),
                depends: BTreeMap::new(),
            },
            runs: Vec::new(),
        };
        code.build(builder)
    }

    /// The arrays that the launch accesses, all sizes and scalars, and the step.
    fn bindings(&self, subject: &Subject<'c, '_>) -> Vec<Binding<'c>> {
        let program = subject.program;
        let inside: Vec<_> = self.launch.ops.iter().flat_map(|op| mlir::walk(*op)).collect();
        let all = inside.iter().chain(&self.launch.before);
        let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
        for op in all {
            let operands = mlir::operands(*op);
            let (set, place) = match mlir::name(*op) {
                "affine.load" | "memref.dim" => (&mut read, 0),
                "affine.store" => (&mut written, 1),
                _ => continue,
            };
            set.extend(operands.get(place).map(|memref| mlir::key(*memref)));
        }
        let mut all = Vec::new();
        for field in &program.fields {
            let arguments = &self.function.declared.arguments;
            let argument = arguments.iter().find(|argument| argument.name == field.name);
            let Some(key) = argument.map(|argument| mlir::key(argument.value)) else { continue };
            if written.contains(&key) {
                all.push(Binding::ReadWrite(field.name));
            } else if read.contains(&key) {
                all.push(Binding::Read(field.name));
            }
        }
        all.extend(program.params.iter().map(|name| Binding::Param(name)));
        all.extend(program.scalars.iter().map(|scalar| Binding::Scalar(scalar.name)));
        all.push(Binding::Step);
        all
    }

    /// The first and the last value of each counter, over the params, by hulls of those around it.
    fn hulls(&self) -> Result<BTreeMap<usize, (Linear, Linear)>, Error> {
        let Function { nest, declared, sizes, .. } = self.function;
        let mut found: BTreeMap<usize, (Linear, Linear)> = BTreeMap::new();
        for (at, nested) in nest.loops.iter().enumerate() {
            let own = nest.sizes + at;
            let side = |sign: i64| {
                let mut bounds = nested.bounds.iter();
                let bound = bounds.find(|bound| bound.coefficients.get(own) == Some(&sign))?;
                let mut sum = over_params(bound, declared, sizes)?;
                let counters = bound.coefficients.iter().skip(nest.sizes).enumerate();
                for (other, factor) in counters.filter(|(other, f)| *other != at && **f != 0) {
                    // The bound is `counter - lower` or `last - counter`; both are to be large.
                    let (first, last) = found.get(&other)?;
                    let value = if *factor > 0 { last } else { first };
                    sum = sum.plus(&value.times(*factor)?)?;
                }
                sum.times(-sign)
            };
            let hull = side(1).zip(side(-1)).ok_or_else(|| self.far())?;
            found.insert(at, hull);
        }
        Ok(found)
    }

    /// Whether the first thread of a loop has its lower bound, whatever the counters around it.
    fn starts_there(&self, at: usize, start: &Linear) -> bool {
        let Function { nest, declared, sizes, .. } = self.function;
        let Some(found) = nest.loops.get(at) else { return false };
        let own = nest.sizes + at;
        let mut lower = found.bounds.iter().filter(|bound| bound.coefficients.get(own) == Some(&1));
        let (Some(bound), None) = (lower.next(), lower.next()) else { return false };
        let mut counters = bound.coefficients.iter().enumerate().skip(nest.sizes);
        counters.all(|(place, factor)| place == own || *factor == 0)
            && over_params(bound, declared, sizes)
                .and_then(|bound| bound.times(-1))
                .is_some_and(|bound| bound == *start)
    }

    /// The blocks along each axis, slowest first: the largest number for any of its loops.
    fn grid(
        &self,
        builder: &Builder<'c>,
        hulls: &BTreeMap<usize, (Linear, Linear)>,
        tile: &[i64],
    ) -> Result<Vec<AffineMap<'c>>, Error> {
        let (context, params) = (builder.context, self.function.declared.params.len());
        let axis = |(axis, cells_of_block): (usize, &i64)| -> Result<AffineMap<'c>, Error> {
            let loops = self.launch.axes.iter().filter(|(_, of)| **of == axis);
            let one = self.function.declared.number(1);
            let (mut least, mut results) = (1, Vec::<AffineExpr>::new());
            for at in loops.map(|(at, _)| *at) {
                let Some((first, last)) = hulls.get(&at) else { continue };
                let cells = last.minus(first).and_then(|all| all.plus(&one));
                let cells = cells.ok_or_else(|| self.far())?;
                let step = self.function.nest.loops.get(at).map_or(1, |found| found.step);
                let step = if self.starts_there(at, first) { step } else { 1 };
                let each = cells_of_block.saturating_mul(step);
                if cells.is_constant() {
                    let all = cells.constant.saturating_add(each - 1).div_euclid(each);
                    least = least.max(all);
                    continue;
                }
                let cells = Linear::map(context, params, &[cells]).result(0);
                let cells = cells.map_err(|error| Error::internal(error.to_string()))?;
                results.push(AffineExpr::ceil_div(cells, AffineExpr::constant(context, each)));
            }
            results.push(AffineExpr::constant(context, least));
            Ok(AffineMap::new(context, 0, params, &results))
        };
        tile.iter().enumerate().rev().map(axis).collect()
    }

    fn far(&self) -> Error {
        let message = "the bounds of the loops leave 64 bits; use smaller constants";
        let place = mlir::place(self.function.op.location());
        Error::declined(Decline::Nest, message).at(place)
    }

    /// The places of block and thread along each axis, x first.
    fn axes(
        &self,
        builder: &Builder<'c>,
        params: &[Val<'c>],
        grid: &[AffineMap<'c>],
        tile: &[i64],
    ) -> Result<Vec<AxisPlace<'c>>, Error> {
        let count = self.launch.axis_count();
        let mut axes = Vec::new();
        if count == 0 {
            return Ok(axes);
        }
        let mut blocks = place(builder, "gpu.block_id", 0)?;
        for (axis, (map, cells)) in grid.iter().rev().zip(tile).enumerate() {
            let block = if axis + 1 == count {
                blocks
            } else {
                let mut most: Option<Val> = None;
                for place in 0..map.result_count() {
                    let value = of_map(builder, *map, place, params)?;
                    most = Some(match most {
                        Some(most) => builder.binary("arith.maxsi", most, value)?,
                        None => value,
                    });
                }
                let most = most.ok_or_else(|| Error::internal("an axis without blocks"))?;
                let block = builder.binary("arith.remui", blocks, most)?;
                blocks = builder.binary("arith.divui", blocks, most)?;
                block
            };
            let first = builder.multiply_constant(block, *cells)?;
            axes.push(AxisPlace { first, thread: place(builder, "gpu.thread_id", axis)? });
        }
        Ok(axes)
    }

    /// What the function's arguments, sizes and the counter of the host's loop are in the kernel.
    fn values(
        &self,
        builder: &Builder<'c>,
        arguments: &Arguments<'c>,
    ) -> Result<BTreeMap<usize, Val<'c>>, Error> {
        let Function { text, declared, sizes, op, .. } = *self.function;
        let mut values = BTreeMap::new();
        for argument in &declared.arguments {
            let name = argument.name.as_str();
            let value = match argument.kind {
                Kind::Size(place) => arguments.params.get(place),
                Kind::Scalar(_) => arguments.scalars.get(name),
                Kind::Array { .. } => arguments.sources.get(name),
            };
            values.extend(value.map(|value| (mlir::key(argument.value), *value)));
        }
        let value_of = |linear: &Linear| {
            let map =
                Linear::map(builder.context, declared.params.len(), std::slice::from_ref(linear));
            of_map(builder, map, 0, &arguments.params)
        };
        for (value, size) in text.sizes.iter().zip(sizes) {
            if declared.size(op, *value).is_some() && !values.contains_key(&mlir::key(*value)) {
                values.insert(mlir::key(*value), value_of(size)?);
            }
        }
        if let Some((host_loop, before)) = &self.host_loop {
            let counter = text.counters.get(host_loop.at).copied();
            let counter = counter.ok_or_else(|| Error::internal("a loop without a counter"))?;
            let step =
                builder.value("arith.index_cast", &[arguments.step], builder.index_type(), &[])?;
            let mut value = builder.add(value_of(&host_loop.first)?, step)?;
            for steps in *before {
                let none = builder.index(0)?;
                let taken = builder.binary("arith.maxsi", value_of(steps)?, none)?;
                value = builder.binary("arith.subi", value, taken)?;
            }
            values.insert(mlir::key(counter), value);
        }
        Ok(values)
    }
}

/// The number of a thread or a block along an axis.
fn place<'c>(builder: &Builder<'c>, name: &str, axis: usize) -> Result<Val<'c>, Error> {
    let word = ["x", "y", "z"].get(axis).copied().unwrap_or("x");
    let dimension = Attribute::parse(builder.context, &format!("#gpu<dim {word}>"));
    let dimension = dimension.ok_or_else(|| Error::internal("gpu is not loaded"))?;
    builder.value(name, &[], builder.index_type(), &[("dimension", dimension)])
}

/// A result of a map of the params.
fn of_map<'c>(
    builder: &Builder<'c>,
    map: AffineMap<'c>,
    place: usize,
    params: &[Val<'c>],
) -> Result<Val<'c>, Error> {
    let expression = map.result(place).map_err(|error| Error::internal(error.to_string()))?;
    builder.affine(expression, &[], params)
}
