//! The shape of the tiles of a launch: whether one that is stated fits, and the default.
//!
//! A default is chosen by rules, not by a model. Most follow from what a copy serves. Two are those
//! of the fastest tiles on an H200 (decision 027): windows of 4 x 2 cells, and two rows of a thread
//! where no copy depends on the row.
//!
//! A thread has several cells, 8 x 8 at most, where an element of each copy can serve several and
//! loads outweigh arithmetic. Blocks then have 16 x 16 threads, otherwise 8 x 32, and 128 along one
//! axis. Threads of 8 x 32 have two rows where no copy depends on the row, and 4 x 2 cells where a
//! window slides along x. Where one axis is all there is and each thread reads elements of its own,
//! as in a product of a matrix and a vector, the threads are too few to keep memory busy: a block
//! then has 32 that compute, and eight times as many that copy. A tile is no larger than the loops
//! with constant bounds that it covers.

use super::launches::{Function, Launch};
use super::nest::Nest;
use super::shared_tiles::{Copy, Home, Tileable, TimeLoop, constant_count, factors};
use crate::kernel::shared_memory::shared_bytes;
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::tiled::NestTile;
use stencil_runtime::device::Device;

/// Bytes of shared memory that a default takes at most, so that several blocks fit.
fn default_shared(device: &Device) -> i64 {
    i64::try_from(device.static_shared_per_block / 2).unwrap_or(i64::MAX)
}

/// A default holds elements in a quarter of a thread's registers at most.
const DEFAULT_PART: i64 = 4;

/// Other tiles hold them in half of the registers.
const MOST_PART: i64 = 2;

/// Operations of an iteration, times cells, of a default with several cells.
const DEFAULT_OPERATIONS: i64 = 1024;

/// Operations of the iterations of a tile, times cells, at most.
const MOST_OPERATIONS: i64 = 1 << 15;

/// Iterations of a loop in time that share a copy at most.
pub const MOST_TIME: i64 = 1024;

/// A tile with what follows from it.
#[derive(Clone, Debug)]
pub struct Fitted<'c> {
    /// Threads of a block along each axis, x first.
    pub threads: Vec<i64>,
    /// Threads that share the copies of each of them, itself included.
    pub copiers: i64,
    /// Cells of a thread along each axis, x first.
    pub per_thread: Vec<i64>,
    /// Whether the cells of a thread lie side by side.
    pub blocked: bool,
    /// For each loop in time, how many values each counter has in a tile.
    pub values: Vec<BTreeMap<usize, i64>>,
    /// For each loop in time, its copies.
    pub copies: Vec<Vec<Buffer<'c>>>,
}

/// A copy of a part of an array.
#[derive(Clone, Debug)]
pub struct Buffer<'c> {
    /// Cells along each dimension of the array.
    pub extents: Vec<i64>,
    /// The array's dimensions in the order of the buffer. A dimension along which a thread has
    /// several cells comes last, so that accesses to neighbouring cells can be joined.
    pub order: Vec<usize>,
    /// The element.
    pub element: Type<'c>,
}

impl Buffer<'_> {
    /// Values for each dimension of the array, in the order of the buffer.
    pub fn ordered<V: Clone>(order: &[usize], of: &[V]) -> Vec<V> {
        order.iter().filter_map(|dimension| of.get(*dimension).cloned()).collect()
    }
}

/// A tile of a launch, if the device can run it.
///
/// # Errors
/// A decline: another number of axes, and threads, registers, code or copies beyond the limits.
pub fn fit<'c>(
    function: &Function<'c, '_>,
    launch: &Launch<'c>,
    tileable: &Tileable<'c>,
    tile: &NestTile,
    device: &Device,
) -> Result<Fitted<'c>, Error> {
    let axes = launch.axis_count();
    let positive = |all: &[i64]| all.len() == axes && all.iter().all(|at| (1..=1024).contains(at));
    if !positive(&tile.threads)
        || !positive(&tile.per_thread)
        || !(1..=MOST_TIME).contains(&tile.time)
    {
        let text = format!(
            "a tile of this loop has {axes} numbers of threads and of cells per thread, and a \
             time, each from 1 to {MOST_TIME}"
        );
        return Err(Error::declined(Decline::TileShape, text));
    }
    if tile.copiers != 1 && (tile.copiers < 1 || axes > 2) {
        let text = "copiers are at least 1, and 1 where a block has three axes of threads";
        return Err(Error::declined(Decline::TileShape, text));
    }
    let threads = tile.threads.iter().fold(tile.copiers, |all, at| all.saturating_mul(*at));
    let most = i64::from(device.threads_per_block);
    if threads > most {
        let text = format!("a block would have {threads} threads, and the device allows {most}");
        return Err(Error::declined(Decline::Threads, text));
    }
    let cells: i64 = tile.per_thread.iter().product();
    for of in &tileable.loops {
        let bytes = cells.saturating_mul(register_bytes(function, of));
        let limit = device.register_bytes() / MOST_PART;
        if bytes > limit {
            let text = format!(
                "a thread would hold {bytes} bytes of elements in registers, and {limit} are the \
                 limit; take fewer cells per thread"
            );
            return Err(Error::declined(Decline::Registers, text));
        }
        let operations = cells.saturating_mul(operations(of)).saturating_mul(tile.time);
        if cells > 1 && operations > MOST_OPERATIONS {
            let text = format!(
                "a tile would have {operations} operations, and {MOST_OPERATIONS} are the limit; \
                 take fewer cells per thread or less time"
            );
            return Err(Error::declined(Decline::CodeSize, text));
        }
    }
    let fitted = sized(function, launch, tileable, tile)?;
    let (bytes, limit) = (bytes(&fitted), device.static_shared_per_block);
    if i64::try_from(limit).is_ok_and(|limit| bytes > limit) {
        let text = format!(
            "the copies of a tile would have {bytes} bytes, and a block can declare {limit} of \
             shared memory; take smaller tiles"
        );
        return Err(Error::declined(Decline::SharedMemory, text));
    }
    Ok(fitted)
}

/// A tile with the extents of its copies.
fn sized<'c>(
    function: &Function<'c, '_>,
    launch: &Launch<'c>,
    tileable: &Tileable<'c>,
    tile: &NestTile,
) -> Result<Fitted<'c>, Error> {
    let far = || Error::declined(Decline::SharedMemory, "a copy of a tile has no size in 64 bits");
    let x_first = |all: &[i64]| all.iter().rev().copied().collect::<Vec<_>>();
    let (threads, per_thread) = (x_first(&tile.threads), x_first(&tile.per_thread));
    let (mut values, mut copies) = (Vec::new(), Vec::new());
    for of in &tileable.loops {
        let mut all = BTreeMap::from([(of.at, tile.time)]);
        for (at, range) in &of.within {
            if let Some((first, last)) = range {
                let count = last.checked_sub(*first).and_then(|more| more.checked_add(1));
                all.insert(*at, count.ok_or_else(far)?.max(1));
            }
        }
        for (at, axis) in &launch.axes {
            let cells = threads.get(*axis).zip(per_thread.get(*axis));
            all.insert(*at, cells.map_or(1, |(threads, cells)| threads * cells));
        }
        let extents = |copy: &Copy| {
            let extents =
                copy.extents(function.nest, |at| Some(all.get(&at).copied().unwrap_or(1)));
            let array = function.text.arrays.get(copy.array)?;
            let element = MemRefType::try_from(array.r#type()).ok()?.element();
            let extents = extents
                .filter(|all| all.iter().try_fold(1_i64, |v, e| v.checked_mul(*e)).is_some())?;
            let several = |at: &usize| {
                launch.axes.get(at).and_then(|axis| per_thread.get(*axis)).is_some_and(|n| *n > 1)
            };
            let has = |index: &Linear| factors(function.nest, index).any(|(at, _)| several(&at));
            let (mut order, last): (Vec<usize>, Vec<usize>) = (0..extents.len())
                .partition(|dimension| !copy.indices.get(*dimension).is_some_and(has));
            order.extend(last);
            Some(Buffer { extents, order, element })
        };
        copies.push(of.copies.iter().map(extents).collect::<Option<Vec<_>>>().ok_or_else(far)?);
        values.push(all);
    }
    Ok(Fitted { threads, copiers: tile.copiers, per_thread, blocked: tile.blocked, values, copies })
}

fn bytes(fitted: &Fitted) -> i64 {
    let all = fitted.copies.iter().flatten();
    let types: Vec<_> =
        all.map(|copy| MemRefType::new(copy.element, &copy.extents, None, None)).collect();
    shared_bytes(&types)
}

/// Bytes of the elements that a cell keeps in registers and stores to.
fn register_bytes(function: &Function, of: &TimeLoop) -> i64 {
    let stored = of.registers.iter().filter(|register| register.stored);
    let bytes = stored.map(|register| {
        let access = function.text.accesses.get(register.access);
        let array = access.and_then(|access| function.text.arrays.get(access.reference.array));
        let element = array.and_then(|array| MemRefType::try_from(array.r#type()).ok());
        let bits = element.and_then(|array| mlir::bit_width(array.element())).unwrap_or(64);
        i64::from(bits.div_ceil(8)).max(4)
    });
    bytes.sum()
}

/// Operations of an iteration.
fn operations(of: &TimeLoop) -> i64 {
    let within: i64 = of.within.values().flatten().fold(1, |all, (first, last)| {
        all.saturating_mul(last.saturating_sub(*first).saturating_add(1).max(1))
    });
    let all = i64::try_from(mlir::walk(of.op).len()).unwrap_or(i64::MAX);
    all.saturating_mul(within)
}

/// The default tile of a launch.
///
/// # Errors
/// Why there is none, as a clause.
pub fn default<'c>(
    function: &Function<'c, '_>,
    launch: &Launch<'c>,
    tileable: &Tileable<'c>,
    device: &Device,
) -> Result<NestTile, String> {
    let axes = launch.axis_count();
    let slides = tileable.loops.iter().any(|of| slides(function, launch, of));
    let mut per_thread = cells(function, tileable, (axes, slides), device);
    let several = per_thread.iter().any(|cells| *cells > 1);
    let streams = axes == 1 && tileable.loops.iter().any(|of| streams(function, tileable, of));
    let threads: &[i64] = match (axes, several) {
        (1, _) if streams => &[32],
        (1, _) => &[128],
        (2, true) if !slides => &[16, 16],
        (2, _) => &[32, 8],
        (_, false) => &[32, 4, 2],
        (_, true) => &[16, 16, 1],
    };
    let slowest_first = |all: &[i64]| all.iter().rev().copied().collect::<Vec<_>>();
    if let ([_, rows], false) = (per_thread.as_mut_slice(), several)
        && tileable.loops.iter().all(|of| serves_rows(function, launch, of))
    {
        *rows = 2;
    }
    let mut threads = threads.to_vec();
    // A warp of a streaming block copies, though it computes few cells.
    if !streams {
        within_extents(&points(function.nest, launch), device, &mut threads, &mut per_thread);
    }
    let several = several && per_thread.iter().any(|cells| *cells > 1);
    let mut tile = NestTile {
        threads: slowest_first(&threads),
        copiers: if streams { 8 } else { 1 },
        per_thread: slowest_first(&per_thread),
        blocked: false,
        time: match (several, streams) {
            _ if slides => 128,
            (false, true) if !tileable.loops.iter().any(|of| in_rows(function, launch, of)) => 64,
            (false, _) => 128,
            (true, _) => 8,
        },
    };
    let trips = tileable.loops.iter().filter_map(|of| of.trips(function.nest)).max();
    let all_known = tileable.loops.iter().all(|of| of.trips(function.nest).is_some());
    if let (Some(trips), true) = (trips, all_known) {
        tile.time = tile.time.min(trips.max(1));
    }
    let size = |tile: &NestTile| sized(function, launch, tileable, tile).map(|all| bytes(&all));
    while tile.time > 1 && size(&tile).is_ok_and(|bytes| bytes > default_shared(device)) {
        tile.time /= 2;
    }
    match fit(function, launch, tileable, &tile, device) {
        Ok(_) => Ok(tile),
        Err(error) => Err(error.to_string()),
    }
}

/// Points along each axis, x first, where they are constant: the most of the axis's loops.
fn points(nest: &Nest, launch: &Launch) -> Vec<Option<i64>> {
    let of = |axis: usize| {
        let own = launch.axes.iter().filter(|(_, at)| **at == axis);
        let all = own.map(|(at, _)| constant_count(nest, *at));
        all.collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    (0..launch.axis_count()).map(of).collect()
}

/// Makes a tile no larger than the next power of two of its points. First a thread has fewer cells,
/// then there are fewer threads; the threads that are left over go to other axes.
fn within_extents(
    points: &[Option<i64>],
    device: &Device,
    threads: &mut [i64],
    per_thread: &mut [i64],
) {
    let before: i64 = threads.iter().product();
    let room = |axis: usize| {
        let points = points.get(axis).copied().flatten().and_then(|all| u64::try_from(all).ok());
        points.map_or(i64::MAX, |all| all.max(1).next_power_of_two().try_into().unwrap_or(i64::MAX))
    };
    for (axis, (threads, cells)) in threads.iter_mut().zip(per_thread.iter_mut()).enumerate() {
        while *threads * *cells > room(axis) && *cells > 1 {
            *cells /= 2;
        }
        *threads = (*threads).min(room(axis));
    }
    for axis in 0..threads.len() {
        let most = if axis == 2 { device.threads_along_z.into() } else { before };
        while threads.iter().product::<i64>() < before {
            let Some((own, cells)) = threads.get_mut(axis).zip(per_thread.get(axis)) else { break };
            if *own * 2 > most || *own * *cells * 2 > room(axis) {
                break;
            }
            *own *= 2;
        }
    }
}

/// Whether a copy of a loop holds elements that one thread alone reads: each dimension belongs to
/// one loop.
fn streams(function: &Function, tileable: &Tileable, of: &TimeLoop) -> bool {
    let own = |copy: &Copy| {
        let alone = |index: &Linear| factors(function.nest, index).count() <= 1;
        let depends = |at: &usize| copy.depends_on(function.nest, *at);
        tileable.space.iter().all(depends) && copy.indices.iter().all(alone)
    };
    of.copies.iter().any(own)
}

/// Whether a window slides along x in a loop, as in a convolution: neighbouring threads read what
/// the iterations of one read.
fn slides(function: &Function, launch: &Launch, of: &TimeLoop) -> bool {
    let in_time = |at: usize| at == of.at || of.within.contains_key(&at);
    let window = |index: &Linear| {
        let mut all = factors(function.nest, index);
        let along_x = |at: usize| launch.axes.get(&at) == Some(&0);
        factors(function.nest, index).any(|(at, _)| along_x(at)) && all.any(|(at, _)| in_time(at))
    };
    of.copies.iter().flat_map(|copy| &copy.indices).any(window)
}

/// Whether neighbouring threads read neighbouring elements of a copy of their own. A tile then is
/// copied by vectors, and more of it at once keeps memory busy.
fn in_rows(function: &Function, launch: &Launch, of: &TimeLoop) -> bool {
    let x = |index: &Linear| {
        factors(function.nest, index).any(|(at, _)| launch.axes.get(&at) == Some(&0))
    };
    of.copies.iter().any(|copy| copy.indices.len() > 1 && copy.indices.last().is_some_and(x))
}

/// Whether each element of a loop's copies serves all rows of a block.
fn serves_rows(function: &Function, launch: &Launch, of: &TimeLoop) -> bool {
    let mut rows = launch.axes.iter().filter(|(_, axis)| **axis == 1);
    let own = |copy: &Copy| rows.clone().any(|(at, _)| copy.depends_on(function.nest, *at));
    let shared = of.copies.iter().all(|copy| !own(copy));
    of.uniform && shared && rows.next().is_some()
}

/// Cells of a thread along each axis, x first: as many as registers and code allow, rather in rows
/// than along x.
fn cells(
    function: &Function,
    tileable: &Tileable,
    (axes, slides): (usize, bool),
    device: &Device,
) -> Vec<i64> {
    let most = device.register_bytes() / DEFAULT_PART;
    let shares = |of: &TimeLoop| {
        let loads = of.homes.values().filter(|home| matches!(home, Home::Copied(..))).count();
        let loads = i64::try_from(loads).unwrap_or(i64::MAX);
        of.uniform && !streams(function, tileable, of) && loads.saturating_mul(4) >= arithmetic(of)
    };
    let fits = |along: &Vec<i64>| {
        let cells: i64 = along.iter().product();
        tileable.loops.iter().all(|of| {
            cells.saturating_mul(register_bytes(function, of)) <= most
                && cells.saturating_mul(operations(of)) <= DEFAULT_OPERATIONS
        })
    };
    let several: &[&[i64]] = match axes {
        1 => &[&[4], &[2]],
        // Lanes with groups of four along a window would meet in banks.
        2 if slides => &[&[2, 4], &[1, 4], &[1, 2]],
        _ if slides => &[],
        _ => &[&[8, 8], &[4, 8], &[4, 4], &[2, 4], &[2, 2]],
    };
    let padded = |along: &&[i64]| (0..axes).map(|axis| *along.get(axis).unwrap_or(&1)).collect();
    let found = several.iter().map(padded).find(fits);
    found.filter(|_| tileable.loops.iter().all(shares)).unwrap_or_else(|| vec![1; axes])
}

/// A rough number of instructions for the arithmetic of an iteration.
fn arithmetic(of: &TimeLoop) -> i64 {
    let instructions = |name: &str| match name {
        "arith.divf" | "arith.remf" | "math.sqrt" | "math.rsqrt" => 8,
        "arith.constant" | "arith.index_cast" => 0,
        name if name.starts_with("math.") => 16,
        name if name.starts_with("arith.") => 1,
        _ => 0,
    };
    mlir::walk(of.op).into_iter().map(|op| instructions(mlir::name(op))).sum()
}
