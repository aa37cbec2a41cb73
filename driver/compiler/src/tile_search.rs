//! The search for the fastest tile of a function of affine loops: its limits, and what they leave
//! to be measured.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 7. The limits stand in the paper's order. The paper leaves
//! `p` open; its example keeps tiles that move at most twice the least.

use crate::control::{Control, Progress};
use crate::failure::Failure;
use crate::level::Level;
use crate::session::{Compiled, Session};
use crate::stages;
use crate::toolchain;
use std::path::Path;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::NestTile;
use stencil_frontend::source::Source;
use stencil_passes::affine::tile_search::{self, Shape};
use stencil_passes::target::Target;
use stencil_runtime::device::Device;
use stencil_runtime::model::{Work, residency, resident_warps};
use stencil_runtime::plan::{CopySettings, Plan};

/// A tile may load and store this many percent more than the least: the paper's `p`.
pub const MORE_MOVED: f64 = 100.0;

/// The least part of a multiprocessor's threads that a tile keeps.
pub const LEAST_THREADS: f64 = 0.25;

/// A tile that the limits leave.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTile {
    /// The tile.
    pub tile: NestTile,
    /// Whether it is one that the compiler takes without a search. The limits leave it.
    pub own: bool,
    /// Elements that are loaded from global memory and stored to it for each iteration of the
    /// loops in time.
    pub moved: f64,
    /// The most registers of a thread in a kernel; unknown without ptxas.
    pub registers: Option<u32>,
    /// The most bytes of registers that a thread of a kernel spills to memory, stores and loads
    /// together; unknown without ptxas.
    pub spilled: Option<u32>,
    /// Threads on a multiprocessor at a time, of the most, in the kernel with fewest; unknown
    /// without ptxas.
    pub occupancy: Option<f64>,
    /// The code and the plan.
    pub compiled: Compiled,
}

/// A search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileSearch {
    /// Each limit with the number of tiles that are left.
    pub limits: Vec<(String, usize)>,
    /// The tiles to be measured: that of a compile without a search, then those whose code keeps
    /// all values in registers, then the others. Of each, those that move least come first, and of
    /// them those with most threads on a multiprocessor.
    pub tiles: Vec<FoundTile>,
}

impl Session {
    /// Whether a source is a function of affine loops.
    ///
    /// # Errors
    /// A source that can't be compiled.
    pub fn is_nest(&self, source: &Source) -> Result<bool, Failure> {
        let context = stages::context(source)?;
        Ok(self.begin(&context, source, Control::default())?.is_nest())
    }

    /// The tiles of a function of affine loops that are worth measuring, compiled to `levels`.
    ///
    /// # Errors
    /// A source that can't be compiled, a function without a loop to tile, and a ptxas that fails.
    pub fn search_tiles(
        &self,
        source: &Source,
        levels: &[Level],
        mut control: Control<'_>,
    ) -> Result<TileSearch, Failure> {
        if self.options.config.no_nest_tiles {
            return Err(Failure::user(
                "a search for tiles and the option no-nest-tiles exclude each other; leave one out",
            ));
        }
        let in_source = |error: Error| Failure::in_source(&error, source);
        let context = stages::context(source)?;
        let mut compilation = self.begin(&context, source, control.reborrow())?;
        compilation.order_nest()?;
        let module = compilation.module;
        let device = Target::of(&module).map_err(in_source)?.device;
        if !device.has_ptx() {
            return Err(Failure::user(format!(
                "{}: tiles are searched for NVIDIA's GPUs alone; leave --candidates out",
                source.name
            )));
        }
        let ptxas = toolchain::ptxas();
        let threads = self.threads(source, ptxas.as_deref(), device, control.reborrow())?;
        let mut shapes = tile_search::shapes(&module, &threads).map_err(in_source)?;
        if shapes.is_empty() {
            return Err(Failure::user(format!(
                "{}: no loop of this function can be tiled, or each states its tile, so there are \
                 no candidates; leave --candidates out",
                source.name
            )));
        }
        let shown = threads.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let mut limits = vec![(format!("blocks of {shown} threads that fit"), shapes.len())];
        let least = shapes.iter().map(|shape| shape.moved).fold(f64::INFINITY, f64::min);
        shapes.retain(|shape| shape.own || shape.moved <= least * (1.0 + MORE_MOVED / 100.0));
        limits.push((
            format!("at most {MORE_MOVED} % more loads and stores than the least"),
            shapes.len(),
        ));
        let mut tiles = Vec::new();
        let of = u64::try_from(shapes.len()).unwrap_or(u64::MAX);
        for (done, shape) in (1..).zip(shapes) {
            tiles.push(self.found(
                source,
                levels,
                shape,
                (ptxas.as_deref(), device),
                control.reborrow(),
            )?);
            control.report(Progress::Candidates { done, of });
        }
        let enough =
            |tile: &FoundTile| tile.own || tile.occupancy.is_none_or(|part| part >= LEAST_THREADS);
        tiles.retain(enough);
        let percent = LEAST_THREADS * 100.0;
        let most = device.threads_per_multiprocessor;
        let mut limit = format!("at least {percent} % of {most} threads on a multiprocessor");
        if ptxas.is_none() {
            limit += " (not looked at: ptxas was not found; set STENCILC_PTXAS)";
        }
        limits.push((limit, tiles.len()));
        if tiles.is_empty() {
            return Err(Failure::user(format!(
                "{}: no tile leaves room for {percent} % of {most} threads on a multiprocessor, so \
                 there are no candidates; leave --candidates out",
                source.name
            )));
        }
        let spills = |tile: &FoundTile| tile.spilled.is_some_and(|bytes| bytes > 0);
        let occupancy = |tile: &FoundTile| tile.occupancy.unwrap_or(0.0);
        tiles.sort_by(|a, b| {
            let kind = (b.own, spills(a)).cmp(&(a.own, spills(b)));
            let moved = a.moved.total_cmp(&b.moved);
            kind.then(moved).then(occupancy(b).total_cmp(&occupancy(a)))
        });
        Ok(TileSearch { limits, tiles })
    }

    /// Threads of a block to look at: as many warps as the registers of the code without tiles let
    /// a block have, half and a quarter of them.
    fn threads(
        &self,
        source: &Source,
        ptxas: Option<&Path>,
        device: &Device,
        control: Control<'_>,
    ) -> Result<Vec<i64>, Failure> {
        let mut plain = self.clone();
        plain.options.config.no_nest_tiles = true;
        let compiled = plain.compile(source, &[Level::Plan, Level::Ptx], control)?;
        let registers = kernels(&compiled, ptxas)?
            .map_or(1, |all| all.iter().map(|(one, _)| one.registers).max().unwrap_or(1).max(1));
        let warps = resident_warps(registers, device).min(device.threads_per_block / device.warp);
        let counts = [warps, warps / 2, warps / 4].map(|warps| warps.max(1) * device.warp);
        let mut counts: Vec<_> = counts.into_iter().map(i64::from).collect();
        counts.dedup();
        Ok(counts)
    }

    /// A tile with its code, and what the code takes of a multiprocessor.
    fn found(
        &self,
        source: &Source,
        levels: &[Level],
        shape: Shape,
        (ptxas, device): (Option<&Path>, &Device),
        control: Control<'_>,
    ) -> Result<FoundTile, Failure> {
        let needed = [levels, &[Level::Plan, Level::Ptx]].concat();
        let session = self.with_nest_tile(shape.tile.clone());
        let compiled = session.compile(source, &needed, control)?;
        let kernels = kernels(&compiled, ptxas)?;
        let part = |kernel: &Work| residency(kernel, device).map_or(0.0, |found| found.occupancy);
        Ok(FoundTile {
            registers: kernels.iter().flatten().map(|(kernel, _)| kernel.registers).max(),
            spilled: kernels.iter().flatten().map(|(_, spilled)| *spilled).max(),
            occupancy: kernels.iter().flatten().map(|(one, _)| part(one)).min_by(f64::total_cmp),
            tile: shape.tile,
            own: shape.own,
            moved: shape.moved,
            compiled,
        })
    }
}

impl FoundTile {
    /// The plan, whose settings are the tile.
    pub fn plan(&self) -> Option<Plan> {
        let mut plan = self.compiled.plan()?.clone();
        let NestTile { threads, copiers, per_thread, time, .. } = &self.tile;
        let cells = threads.iter().zip(per_thread).map(|(threads, cells)| threads * cells);
        plan.settings.tile = cells.collect();
        plan.settings.per_thread.clone_from(per_thread);
        plan.settings.copies = Some(CopySettings { copiers: *copiers, time: *time });
        Some(plan)
    }
}

/// The work of each kernel, with its registers, and the bytes that it spills. Without ptxas there
/// is no result.
fn kernels(compiled: &Compiled, ptxas: Option<&Path>) -> Result<Option<Vec<(Work, u32)>>, Failure> {
    let (Some(ptxas), Some(plan), Some(ptx)) = (ptxas, compiled.plan(), compiled.ptx()) else {
        return Ok(None);
    };
    let assembled = toolchain::assemble(ptxas, ptx, &plan.target.arch)?;
    let work = |kernel: &stencil_runtime::plan::Kernel| {
        let found = assembled.iter().find(|found| found.name == kernel.name);
        let work = Work {
            threads: kernel.block.iter().copied().fold(1, u32::saturating_mul),
            shared: kernel.static_shared.saturating_add(kernel.dynamic_shared),
            registers: found.map_or(0, |found| found.registers),
            ..Work::default()
        };
        (work, found.map_or(0, |found| found.spills))
    };
    Ok(Some(plan.kernels.iter().map(work).collect()))
}
