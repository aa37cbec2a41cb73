//! `tile-affine-nest`: loops in time of affine loops get tiles whose data a block copies to shared
//! memory.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, sections 5.2 (which references are copied) and 7 (tiles of blocks,
//! of shared memory and of registers).
//!
//! Needs: what `lower-affine-nest` needs. Guarantees: each outermost loop of a launch that can
//! share copies states its tile, and each other one why it has none; nothing else changes, and a
//! second run changes nothing. A tile that a loop already states is kept. `lower-affine-nest` makes
//! the copies, the barriers and the cells per thread of it; results stay the same, bit for bit.
//!
//! ```text
//! affine.for %i = 0 to %n { affine.for %j = 0 to %m { affine.for %l = 0 to %k { ... } } }
//! ```
//! becomes
//! ```text
//! affine.for %i = 0 to %n { affine.for %j = 0 to %m { affine.for %l = 0 to %k { ... } } }
//!     {tiled.nest_tile = {per_thread = array<i64: 8, 8>, threads = array<i64: 16, 16>, time = 8}}
//! ```
//!
//! Declines, if the options name a shape: a launch with these axes whose tile has too many threads,
//! registers or operations, or copies that shared memory does not hold. Left alone, with a note in
//! `tiled.not_tiled`: launches without a loop in time, whose loops in space are no perfect nest, or
//! whose loop in time has bounds that differ between threads (its barriers would diverge), and
//! those without a reference that is worth a copy.

use super::launches::{Function, Launch};
use super::lower_affine_nest::with_launches;
use super::{constant_arrays, shared_tiles, tile_shape};
use crate::gpu::place_constants;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::target::Target;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::tiled::{self, NestTile};
use stencil_runtime::device::Device;

const THREADS: (&str, &str) =
    ("threads", "threads of a block along each axis, slowest first; for launches with these axes");
const COPIERS: (&str, &str) =
    ("copiers", "threads that share the copies of one thread along the axes, itself included");
const PER_THREAD: (&str, &str) = ("per-thread", "iterations of a thread along each axis");
const BLOCKED: (&str, &str) =
    ("blocked", "on: iterations of a thread side by side; off: cyclic shares");
const CONSTANTS: (&str, &str) =
    ("constants", "on: leave what place-constants can place in global memory (default: off)");
const TIME: (&str, &str) = ("time", "iterations of a loop in time that share a copy");

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "tile-affine-nest",
    summary: "tile loops in time of affine loops, with copies in shared memory",
    options: &[THREADS, COPIERS, PER_THREAD, BLOCKED, TIME, CONSTANTS],
    read: |options: &Options| {
        Ok(Box::new(TileAffineNest {
            threads: options.integers(THREADS.0, 1..=1024)?,
            copiers: options.integer(COPIERS.0, 1..=1024)?,
            per_thread: options.integers(PER_THREAD.0, 1..=1024)?,
            blocked: options.flag(BLOCKED.0)?,
            time: options.integer(TIME.0, 1..=tile_shape::MOST_TIME)?,
            constants: options.flag(CONSTANTS.0)?.unwrap_or(false),
        }))
    },
};

/// The pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileAffineNest {
    /// Threads of a block along each axis, slowest first; none for the default.
    pub threads: Option<Vec<i64>>,
    /// Threads that share the copies of one along the axes; none for the default.
    pub copiers: Option<i64>,
    /// Iterations of a thread along each axis; none for the default.
    pub per_thread: Option<Vec<i64>>,
    /// Whether iterations of a thread lie side by side; none for the default.
    pub blocked: Option<bool>,
    /// Iterations that share a copy; none for the default.
    pub time: Option<i64>,
    /// Whether arrays that go to constant memory are not copied.
    pub constants: bool,
}

impl From<&NestTile> for TileAffineNest {
    /// A tile for every launch with its number of axes.
    fn from(tile: &NestTile) -> Self {
        Self {
            threads: Some(tile.threads.clone()),
            copiers: Some(tile.copiers),
            per_thread: Some(tile.per_thread.clone()),
            blocked: Some(tile.blocked),
            time: Some(tile.time),
            constants: false,
        }
    }
}

impl Pass for TileAffineNest {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let list = |all: &[i64]| all.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        let threads = self.threads.as_ref().map(|all| (THREADS.0, list(all)));
        let cells = self.per_thread.as_ref().map(|all| (PER_THREAD.0, list(all)));
        let time = self.time.map(|time| (TIME.0, time.to_string()));
        let copiers = self.copiers.map(|copiers| (COPIERS.0, copiers.to_string()));
        let blocked = self.blocked.map(|on| (BLOCKED.0, if on { "on" } else { "off" }.to_owned()));
        let constants = self.constants.then(|| (CONSTANTS.0, "on".to_owned()));
        [threads, copiers, cells, blocked, time, constants].into_iter().flatten().collect()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let device = Target::of(module)?.device;
        with_launches(module, |function, phases| {
            let launches = || phases.iter().flat_map(|phase| &phase.launches);
            let room = if self.constants { place_constants::room(device) } else { 0 };
            let constants = constant_arrays::of(function, launches(), room);
            launches().try_for_each(|launch| {
                name_constants(context, function, launch, &constants)?;
                self.tile(context, function, launch, device)
            })
        })
    }
}

impl TileAffineNest {
    fn tile<'c>(
        &self,
        context: &'c Context,
        function: &Function<'c, '_>,
        launch: &Launch<'c>,
        device: &Device,
    ) -> Result<(), Error> {
        let [op] = launch.ops[..] else { return Ok(()) };
        if tiled::nest_tile(op)?.is_some() {
            return Ok(());
        }
        let found = shared_tiles::of(function, launch).and_then(|tileable| {
            let tile = tile_shape::default(function, launch, &tileable, device);
            // A shape that is asked for may fit where the default does not.
            let tile = if self.asks(launch) { tile.or_else(|_| self.stated()) } else { tile };
            tile.map(|tile| (tileable, tile))
        });
        let (tileable, default) = match found {
            Ok(found) => found,
            Err(reason) => {
                tiled::set_not_tiled(context, op, &reason);
                return Ok(());
            }
        };
        let tile = if self.asks(launch) { self.over(&default) } else { default };
        tile_shape::fit(function, launch, &tileable, &tile, device)
            .map_err(|error| error.at(mlir::place(op.location())))?;
        tiled::set_nest_tile(context, op, &tile);
        Ok(())
    }

    /// Whether a shape is asked for that has a launch's number of axes.
    fn asks(&self, launch: &Launch) -> bool {
        let lists = [&self.threads, &self.per_thread];
        let lists = || lists.into_iter().flatten();
        lists().all(|list| list.len() == launch.axis_count())
            && (lists().next().is_some()
                || self.time.or(self.copiers).is_some()
                || self.blocked.is_some())
    }

    fn stated(&self) -> Result<NestTile, String> {
        match (&self.threads, &self.per_thread, self.time) {
            (Some(threads), Some(per_thread), Some(time)) => Ok(NestTile {
                threads: threads.clone(),
                copiers: self.copiers.unwrap_or(1),
                per_thread: per_thread.clone(),
                blocked: self.blocked.unwrap_or(false),
                time,
            }),
            _ => Err("its default tile does not fit".to_owned()),
        }
    }

    fn over(&self, default: &NestTile) -> NestTile {
        NestTile {
            threads: self.threads.clone().unwrap_or_else(|| default.threads.clone()),
            copiers: self.copiers.unwrap_or(if self.threads.is_some() {
                1
            } else {
                default.copiers
            }),
            per_thread: self.per_thread.clone().unwrap_or_else(|| default.per_thread.clone()),
            blocked: self.blocked.unwrap_or(default.blocked),
            time: self.time.unwrap_or(default.time),
        }
    }
}

/// Names the arrays that a launch will read from constant memory at its loop.
fn name_constants<'c>(
    context: &'c Context,
    function: &Function<'c, '_>,
    launch: &Launch<'c>,
    constants: &BTreeSet<usize>,
) -> Result<(), Error> {
    let [op] = launch.ops[..] else { return Ok(()) };
    let own = launch.constant.intersection(constants);
    let arrays = own.filter_map(|array| function.text.arrays.get(*array));
    let names = arrays.filter_map(|memref| function.declared.array(*memref));
    let names: Vec<&str> = names.map(|(name, _)| name).collect();
    if tiled::nest_tile(op)?.is_none() && !names.is_empty() {
        tiled::set_nest_constants(context, op, &names);
    }
    Ok(())
}
