//! What the warps of a block access in its shared buffers, from the lanes' addresses.
//!
//! The analysis follows a kernel's body for each warp. Every value that it can compute is an
//! integer per lane. A nest of loops runs up to `ITERATIONS` iterations, which stand for all
//! iterations of a longer nest. Values that the code does not determine are sampled: block numbers,
//! sizes, and counters without known bounds. They have other numbers in each of `SAMPLES` passes.
//! Both sides of a branch on a sampled value count.

use super::bank_conflicts::{Reference, WORD};
use super::lane_values::{self, LANES, Lanes};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{DimSize, MemRefType};
use melior::ir::{AffineMap, ShapedTypeLike, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Blk, Op, Val};

/// Passes over a kernel.
const SAMPLES: i64 = 4;
/// Iterations of a nest of loops that are followed.
const ITERATIONS: i64 = 64;
/// How often a warp runs what stands in no loop; a multiple leaves room for parts.
const ONCE: u64 = 1 << 16;
/// A number for a run-time size: larger than any tile, so that only rims are cut off.
const SIZE: i64 = 1 << 20;
/// The block of the first sample, away from the rim.
const BLOCK: i64 = 2;
/// Rows and columns beyond this lie in no shared memory.
pub const FARTHEST: i64 = 1 << 24;
/// Elements of an access beyond this are no vector.
const MOST_ELEMENTS: i64 = 1 << 12;
/// Elements or rows that fill all banks a whole number of times, whatever their size.
const TURN: i64 = 128;

/// What is accessed in a buffer. Where an address can't be told, it counts for no pad: each costs
/// the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// References, each with a measure of how often warps make it.
    pub references: BTreeMap<Reference, u64>,
    /// Bytes, more than an element's, that an access promises its address to be a multiple of.
    pub alignment: i64,
    /// Whether there are accesses whose addresses can't be told.
    pub untold: bool,
    /// An operation that uses the buffer in another way than by an element's indices.
    pub whole: Option<String>,
}

/// An access to a buffer.
struct Site<'c> {
    indices: Vec<Val<'c>>,
    map: Option<AffineMap<'c>>,
    elements: i64,
    /// Bytes of one.
    element: i64,
    alignment: i64,
}

/// The uses of some buffers in a kernel whose blocks have this many threads in x, y and z.
pub fn of<'c>(kernel: Op<'c>, block: [i64; 3], buffers: &[Val<'c>]) -> Vec<Uses> {
    let places: BTreeMap<usize, usize> =
        buffers.iter().enumerate().map(|(place, buffer)| (mlir::key(*buffer), place)).collect();
    let mut found = vec![Uses::default(); buffers.len()];
    for op in mlir::walk(kernel) {
        for (operand, value) in mlir::operands(op).into_iter().enumerate() {
            let Some(uses) = places.get(&mlir::key(value)).and_then(|place| found.get_mut(*place))
            else {
                continue;
            };
            match site(op, operand) {
                Some(site) if site.alignment > site.element => {
                    uses.alignment = uses.alignment.max(site.alignment);
                }
                Some(_) => {}
                None => uses.whole = Some(mlir::name(op).to_owned()),
            }
        }
    }
    let Some(entry) = mlir::entry(kernel) else { return found };
    let threads = block.iter().product::<i64>().max(1);
    for sample in 0..SAMPLES {
        for first in (0..threads).step_by(LANES) {
            let mut warp = Warp::new(sample, first, block, &places, found);
            for argument in mlir::arguments(entry) {
                warp.values.insert(mlir::key(argument), Lanes::uniform(SIZE, false));
            }
            let active = u32::MAX >> (LANES as i64 - (threads - first).min(LANES as i64));
            for block in mlir::blocks(kernel, 0) {
                warp.block(block, active, ONCE);
            }
            found = warp.found;
        }
    }
    found
}

/// The access of an operation by one of its operands; none where it is no access to elements.
fn site<'c>(op: Op<'c>, operand: usize) -> Option<Site<'c>> {
    let operands = mlir::operands(op);
    let memref = MemRefType::try_from(operands.get(operand)?.r#type()).ok()?;
    let element = i64::from(mlir::bit_width(memref.element())?.div_ceil(8));
    let number = |name| mlir::attribute(op, name).and_then(attribute::as_integer);
    let name = mlir::name(op);
    let (place, value) = match name {
        "memref.load" | "vector.load" | "affine.load" => (0, mlir::results(op).first().copied()),
        "memref.store" | "vector.store" | "affine.store" => (1, operands.first().copied()),
        "memref.prefetch" => (0, None),
        "nvgpu.device_async_copy" => {
            let elements =
                number("dstElements").filter(|count| (1..=MOST_ELEMENTS).contains(count))?;
            let indices = operands.get(1..1 + memref.rank())?.to_vec();
            let alignment = element.saturating_mul(elements);
            let site = Site { indices, map: None, elements, element, alignment };
            return (operand == 0).then_some(site);
        }
        _ => return None,
    };
    let elements = match value.map(|value| value.r#type()) {
        // Prefetches move nothing.
        None => 0,
        Some(ty) if ty == memref.element() => 1,
        Some(ty) => {
            Some(mlir::vector_cells(ty)).filter(|cells| (2..=MOST_ELEMENTS).contains(cells))?
        }
    };
    let map = mlir::attribute(op, "map").and_then(attribute::as_map);
    let map = map.filter(|_| name.starts_with("affine."));
    let indices = operands.get(place + 1..)?.to_vec();
    let alignment = number("alignment").unwrap_or(0).max(element);
    (operand == place).then_some(Site { indices, map, elements, element, alignment })
}

/// A warp on its way through a kernel.
struct Warp<'p> {
    sample: i64,
    /// Iterations that loops may still take.
    iterations: i64,
    first: i64,
    threads: [i64; 3],
    values: BTreeMap<usize, Lanes>,
    places: &'p BTreeMap<usize, usize>,
    found: Vec<Uses>,
}

impl<'p> Warp<'p> {
    fn new(
        sample: i64,
        first: i64,
        threads: [i64; 3],
        places: &'p BTreeMap<usize, usize>,
        found: Vec<Uses>,
    ) -> Self {
        let (iterations, values) = (ITERATIONS, BTreeMap::new());
        Self { sample, iterations, first, threads, values, places, found }
    }

    fn get(&self, value: Val) -> Option<Lanes> {
        self.values.get(&mlir::key(value)).copied()
    }

    fn set(&mut self, value: Val, lanes: Option<Lanes>) {
        match lanes {
            Some(lanes) => self.values.insert(mlir::key(value), lanes),
            None => self.values.remove(&mlir::key(value)),
        };
    }

    fn all(&self, values: &[Val]) -> Vec<Option<Lanes>> {
        values.iter().map(|value| self.get(*value)).collect()
    }

    fn block(&mut self, block: Blk, mask: u32, times: u64) {
        for op in mlir::operations(block) {
            self.operation(op, mask, times);
        }
    }

    fn operation(&mut self, op: Op, mask: u32, times: u64) {
        let operands = mlir::operands(op);
        for (place, operand) in operands.iter().enumerate() {
            if let Some(buffer) = self.places.get(&mlir::key(*operand)).copied() {
                self.access(op, place, buffer, mask, times);
            }
        }
        match mlir::name(op) {
            "scf.if" => self.branch(op, mask, times),
            "scf.for" => {
                let bounds = match operands.as_slice() {
                    [lower, upper, step, ..] => {
                        [*lower, *upper, *step].map(|value| self.get(value))
                    }
                    _ => [None; 3],
                };
                self.repeat(op, bounds, operands.get(3..).unwrap_or_default(), mask, times);
            }
            "affine.for" => {
                let map = |name| mlir::attribute(op, name).and_then(attribute::as_map);
                let step = mlir::attribute(op, "step").and_then(attribute::as_integer);
                let step = step.map(|step| Lanes::uniform(step, true));
                let count = |map: Option<AffineMap>| map.map_or(0, |map| map.input_count());
                let (lower, upper) = (map("lowerBoundMap"), map("upperBoundMap"));
                let (own, rest) = operands.split_at(count(lower).min(operands.len()));
                let (above, inits) = rest.split_at(count(upper).min(rest.len()));
                let lower = lower.and_then(|map| lane_values::greatest(map, &self.all(own)));
                let upper = upper.and_then(|map| lane_values::least(map, &self.all(above)));
                self.repeat(op, [lower, upper, step], inits, mask, times);
            }
            _ => {
                let known = self.number(op).or_else(|| {
                    lane_values::operation(op, &self.all(&operands))
                        .filter(|_| op.result_count() == 1)
                });
                for result in mlir::results(op) {
                    self.set(result, known);
                }
                let inits = self.all(&operands);
                for region in 0..op.region_count() {
                    for block in mlir::blocks(op, region) {
                        self.carry(&mlir::arguments(block), &inits);
                        self.block(block, mask, times);
                    }
                }
            }
        }
    }

    /// The arguments of a loop or block keep their initial numbers as samples. A counter changes by
    /// the same number in all lanes, so the distances between lanes' addresses are right.
    fn carry(&mut self, arguments: &[Val], inits: &[Option<Lanes>]) {
        for (place, argument) in arguments.iter().enumerate() {
            let init = inits.get(place).copied().flatten();
            self.set(*argument, init.map(|lanes| Lanes { exact: false, ..lanes }));
        }
    }

    fn branch(&mut self, op: Op, mask: u32, times: u64) {
        let condition = mlir::operands(op).first().and_then(|value| self.get(*value));
        let exact = condition.filter(|condition| condition.exact).map(|known| known.mask());
        let sides = [exact.unwrap_or(u32::MAX), !exact.unwrap_or(0)];
        let mut yields = [Vec::new(), Vec::new()];
        for ((region, side), values) in sides.iter().enumerate().zip(&mut yields) {
            for block in mlir::blocks(op, region) {
                if mask & side != 0 {
                    self.block(block, mask & side, times);
                    let last = mlir::operations(block).last().map(|last| mlir::operands(*last));
                    *values = self.all(&last.unwrap_or_default());
                }
            }
        }
        let [yes, no] = yields;
        for (place, result) in mlir::results(op).into_iter().enumerate() {
            let side = |values: &[Option<Lanes>]| values.get(place).copied().flatten();
            let joined = match (side(&yes), side(&no), exact) {
                (Some(yes), Some(no), Some(chosen)) => {
                    let mut at = no.at;
                    for (lane, (slot, yes)) in at.iter_mut().zip(&yes.at).enumerate() {
                        if chosen >> lane & 1 == 1 {
                            *slot = *yes;
                        }
                    }
                    Some(Lanes { at, exact: yes.exact && no.exact })
                }
                (one, other, _) => one.or(other).map(|lanes| Lanes { exact: false, ..lanes }),
            };
            self.set(result, joined);
        }
    }

    /// The iterations of a loop, or some that stand for all.
    fn repeat(
        &mut self,
        op: Op,
        [lower, upper, step]: [Option<Lanes>; 3],
        inits: &[Val],
        mask: u32,
        times: u64,
    ) {
        let inits = self.all(inits);
        let Some(body) = mlir::entry(op) else { return };
        let arguments = mlir::arguments(body);
        let Some((counter, carried)) = arguments.split_first() else { return };
        let exact = |lanes: Option<Lanes>| lanes.filter(|lanes| lanes.exact);
        let trips =
            exact(lower).zip(exact(upper)).zip(exact(step)).map(|((lower, upper), step)| {
                let trips = |lane: usize| {
                    let step = step.at[lane].max(1);
                    upper.at[lane].saturating_sub(lower.at[lane]).saturating_add(step - 1) / step
                };
                let active = (0..LANES).filter(|lane| mask >> lane & 1 == 1);
                active.map(trips).max().unwrap_or(0).max(0)
            });
        let all = trips.unwrap_or(1);
        let followed = all.min(self.iterations);
        for iteration in 0..followed {
            let turn = match trips {
                Some(_) => iteration.saturating_mul(all) / followed,
                None => self.sample,
            };
            let at =
                lower.zip(step.or(Some(Lanes::uniform(1, false)))).and_then(|(lower, step)| {
                    lower.join(&step, |lower, step| lower.checked_add(step.checked_mul(turn)?))
                });
            let at = at.map(|at| Lanes { exact: trips.is_some() && at.exact, ..at });
            let inside = at.zip(upper).filter(|_| trips.is_some());
            let inside =
                inside.and_then(|(at, upper)| at.join(&upper, |at, end| Some((at < end).into())));
            let inside = mask & inside.map_or(u32::MAX, |inside| inside.mask());
            if inside != 0 {
                self.set(*counter, at);
                self.carry(carried, &inits);
                let each = times.saturating_mul(all.unsigned_abs()) / followed.unsigned_abs();
                let left = self.iterations;
                self.iterations = (left / followed).max(1);
                self.block(body, inside, each);
                self.iterations = left;
            }
        }
        self.carry(&mlir::results(op), &inits);
    }

    /// The numbers of threads and blocks.
    fn number(&self, op: Op) -> Option<Lanes> {
        let [x, y, _] = self.threads.map(|threads| threads.max(1));
        let thread = |of: &dyn Fn(i64) -> i64| {
            let mut lanes = Lanes::uniform(0, true);
            for (number, slot) in (self.first..).zip(&mut lanes.at) {
                *slot = of(number);
            }
            lanes
        };
        let axis = || lane_values::axis(op);
        Some(match mlir::name(op) {
            "gpu.thread_id" => match axis()? {
                0 => thread(&|number| number % x),
                1 => thread(&|number| number / x % y),
                _ => thread(&|number| number / x / y),
            },
            "gpu.lane_id" => thread(&|number| number % LANES as i64),
            "gpu.subgroup_id" => thread(&|number| number / LANES as i64),
            "gpu.subgroup_size" => Lanes::uniform(LANES as i64, true),
            "gpu.block_dim" => Lanes::uniform(*self.threads.get(axis()?)?, true),
            "gpu.block_id" => Lanes::uniform(BLOCK + self.sample, false),
            "gpu.grid_dim" => Lanes::uniform(SIZE, false),
            "gpu.global_id" => {
                let threads = *self.threads.get(axis()?)?;
                let base = (BLOCK + self.sample) * threads;
                let own = match axis()? {
                    0 => thread(&|number| base + number % x),
                    1 => thread(&|number| base + number / x % y),
                    _ => thread(&|number| base + number / x / y),
                };
                Lanes { exact: false, ..own }
            }
            _ => return None,
        })
    }

    fn access(&mut self, op: Op, operand: usize, buffer: usize, mask: u32, times: u64) {
        let Some(site) = site(op, operand).filter(|site| site.elements > 0) else { return };
        let reference = self.reference(op, operand, site, mask);
        let Some(uses) = self.found.get_mut(buffer) else { return };
        match reference {
            Some(reference) => {
                let count = uses.references.entry(reference).or_default();
                *count = count.saturating_add(times);
            }
            None => uses.untold = true,
        }
    }

    /// What the lanes of a mask access; none where that can't be told.
    fn reference(&self, op: Op, operand: usize, site: Site, mask: u32) -> Option<Reference> {
        let indices = self.all(&site.indices);
        let indices = match site.map {
            Some(map) => lane_values::results(map, &indices),
            None => indices.into_iter().collect(),
        };
        let indices = indices?;
        let (columns, rows) = indices.split_last()?;
        let shape = mlir::operands(op).get(operand).map(|buffer| extents(*buffer));
        let shape = shape.unwrap_or_default();
        let cell = |lane: usize| {
            let mut row = 0_i64;
            for (index, extent) in rows.iter().zip(&shape) {
                row = row.checked_mul(*extent)?.checked_add(*index.at.get(lane)?)?;
            }
            let cell = (row, *columns.at.get(lane)?);
            let near = |at: i64| (-FARTHEST..=FARTHEST).contains(&at);
            Some(cell).filter(|(row, column)| near(*row) && near(*column))
        };
        let reached = |lane: usize| match mask >> lane & 1 {
            1 => cell(lane).map(Some),
            _ => Some(None),
        };
        let cells = (0..LANES).map(reached).collect::<Option<Vec<_>>>()?;
        let Site { elements, element, alignment, .. } = site;
        Some(Reference { cells: near_zero(cells, element), elements, alignment })
    }
}

/// The extents of a buffer, from the slowest dimension; `i64::MIN` for one that is not static.
pub fn extents(buffer: Val) -> Vec<i64> {
    let Ok(memref) = MemRefType::try_from(buffer.r#type()) else { return Vec::new() };
    let extent = |place| match memref.dim_size(place) {
        Ok(DimSize::Static(size)) => i64::try_from(size).unwrap_or(i64::MIN),
        _ => i64::MIN,
    };
    (0..memref.rank()).map(extent).collect()
}

/// Whether the rows of a buffer lie behind each other, as those of a type without a layout do.
pub fn is_plain(buffer: Val) -> bool {
    MemRefType::try_from(buffer.r#type()).is_ok_and(|ty| {
        let plain = MemRefType::new(ty.element(), &extents(buffer), None, ty.memory_space());
        Type::from(plain) == ty.into()
    })
}

/// Moves what a warp accesses so that references that differ by a constant offset are one: by
/// whole words, or by whole turns through the banks where elements are smaller.
fn near_zero(cells: Vec<Option<(i64, i64)>>, element: i64) -> Vec<Option<(i64, i64)>> {
    let Some((row, column)) = cells.iter().flatten().next().copied() else { return cells };
    let by = |start: i64| if element % WORD == 0 { start } else { start.div_euclid(TURN) * TURN };
    cells.iter().map(|cell| cell.map(|(r, c)| (r - by(row), c - by(column)))).collect()
}
