//! `choose-schedule`: the strategy, tile, pyramid height and cells a thread that are predicted to
//! be fastest.
//!
//! Each candidate is tiled and lowered on a copy of the module. What a lowering declines is no
//! candidate; what it makes is counted (`analysis/tile_traffic`, `analysis/kernel_work`), and the
//! model of the runtime crate turns the counts into seconds a step. So a new strategy is a new list
//! of candidates here, and nothing else.
//!
//! Needs: a verified stencil program. Guarantees: the module says the schedule for
//! `tile-overlapped`, in the attributes that a tile kernel says it in; what options give is taken
//! as it is. A tile is left out where `tile-overlapped` fits it to each kernel.
//!
//! ```text
//! module @heat attributes {tiled.strategy = "stream", tiled.steps = 7 : i64, ...}
//! ```
//! Sizes that are known at run time only are taken for large ones: [`LARGE`].

use crate::analysis::{kernel_work, tile_traffic};
use crate::kernel::emit::WARP;
use crate::options::Options;
use crate::pass::Pass;
use crate::registry;
use crate::schedule::tile_overlapped::{self, STRATEGIES};
use crate::strategies::stream;
use crate::tiled::rotate_buffers;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::Operation;
use stencil_dialects::error::{Error, Fault};
use stencil_dialects::stencil::{Grid, Program};
use stencil_dialects::tiled::{self, Choice, MOST_CELLS, MOST_STEPS};
use stencil_dialects::{affine, mlir};
use stencil_runtime::device::{self, Device};
use stencil_runtime::expr::{Expr, Sizes};
use stencil_runtime::model::{self, Prediction, Work};

/// The pass.
pub const PASS: Pass = Pass {
    name: "choose-schedule",
    summary: "choose strategy, tile and steps a launch by a model of the device",
    options: OPTIONS,
    run,
};

/// What is not to be chosen, and for which device the rest is.
pub const OPTIONS: &[(&str, &str)] = &[
    ("strategy", "the strategy, if it is not to be chosen"),
    ("tile", "cells of a tile per dimension, likewise"),
    ("pyramid-height", "steps a launch, likewise"),
    ("per-thread", "cells a thread per dimension, or one number as for tile-overlapped, likewise"),
    ("region", "what each apply computes, as for tile-overlapped"),
    ("arch", "the architecture of the device (default sm_90)"),
];

/// Points of a dimension of a run-time size, by the number of dimensions.
pub const LARGE: [i64; 3] = [1 << 28, 1 << 14, 1 << 9];

/// A schedule with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The schedule; no tile where `tile-overlapped` fits it to each kernel.
    pub config: Choice,
    /// Cells of the main kernel's tile.
    pub tile: Vec<i64>,
    /// Cells a thread.
    pub per_thread: Vec<i64>,
    /// What the main kernels do, one a launch.
    pub kernels: Vec<Work>,
    /// What that takes.
    pub prediction: Prediction,
    /// Points of the grid.
    pub points: f64,
}

impl Candidate {
    /// Whether another is the same schedule, one with its tile named and one with it fitted
    /// perhaps.
    fn is_like(&self, other: &Self) -> bool {
        let named = |candidate: &Self| Choice {
            tile: Some(candidate.tile.clone()),
            ..candidate.config.clone()
        };
        named(self) == named(other)
    }

    /// Points times steps a second, in 10^9.
    pub fn gcells(&self) -> f64 {
        self.points / self.prediction.seconds * 1e-9
    }
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>, options: &Options) -> Result<(), Error> {
    let forced = forced(options)?;
    let device = device_of(options.text("arch"));
    let program = Program::read(module)?;
    let open = openings(module, &program, &forced)?;
    let config = match open.as_slice() {
        // Nothing to choose: `tile-overlapped` and the lowering say what is wrong with it.
        [only] => only.clone(),
        // The model says nothing of a grid without points, so any schedule will do.
        _ => match evaluate(context, module, &open, device)?.into_iter().next() {
            Some(best) => best.config,
            None => open.into_iter().next().unwrap_or(forced),
        },
    };
    tiled::set_choice(context, module, &config);
    Ok(())
}

/// What [`OPTIONS`] say of the schedule.
pub fn forced(options: &Options) -> Result<Choice, Error> {
    Ok(Choice {
        strategy: options.text("strategy").map(str::to_owned),
        tile: options.integers("tile", 1..=MOST_CELLS)?,
        pyramid_height: options.integer("pyramid-height", 1..=MOST_STEPS)?,
        per_thread: options.integers("per-thread", 1..=MOST_CELLS)?,
        region: options.text("region").map(str::to_owned),
    })
}

/// A choice as options: what [`forced`] reads.
pub fn options_of(choice: &Choice) -> Vec<(&'static str, String)> {
    let list = |values: &Vec<i64>| values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let options = [
        ("strategy", choice.strategy.clone()),
        ("tile", choice.tile.as_ref().map(list)),
        ("pyramid-height", choice.pyramid_height.map(|height| height.to_string())),
        ("per-thread", choice.per_thread.as_ref().map(list)),
        ("region", choice.region.clone()),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The device of an architecture; the one that is described best for those that are not.
pub fn device_of(arch: Option<&str>) -> &'static Device {
    arch.and_then(device::device_of).unwrap_or(&device::H200)
}

/// All candidates within what is forced, the fastest first. An error where no lowering takes any of
/// them: that of the first in the order of the lists below.
pub fn candidates<'c>(
    context: &'c Context,
    module: &Module<'c>,
    forced: &Choice,
    device: &Device,
) -> Result<Vec<Candidate>, Error> {
    evaluate(context, module, &openings(module, &Program::read(module)?, forced)?, device)
}

fn evaluate<'c>(
    context: &'c Context,
    module: &Module<'c>,
    open: &[Choice],
    device: &Device,
) -> Result<Vec<Candidate>, Error> {
    let mut found = Vec::new();
    let mut declined = None;
    for config in open {
        match candidate(context, module, config, device) {
            Ok(candidate) => found.extend(candidate),
            Err(error) if error.fault == Fault::Internal => return Err(error),
            Err(error) => declined = declined.or(Some(error)),
        }
    }
    found.sort_by(|a: &Candidate, b| a.prediction.seconds.total_cmp(&b.prediction.seconds));
    let mut different: Vec<Candidate> = Vec::new();
    for candidate in found {
        // A default may be one of the others, which say their tile.
        match different.iter_mut().find(|other| other.is_like(&candidate)) {
            None => different.push(candidate),
            Some(other) if other.config.tile.is_none() => *other = candidate,
            Some(_) => {}
        }
    }
    match declined {
        Some(error) if different.is_empty() => Err(error),
        _ => Ok(different),
    }
}

/// Tiles, lowers, counts and predicts one schedule; none where its blocks fit on no multiprocessor.
fn candidate<'c>(
    context: &'c Context,
    module: &Module<'c>,
    config: &Choice,
    device: &Device,
) -> Result<Option<Candidate>, Error> {
    let mut copy = Module::from_operation(Operation::clone(&module.as_operation()))
        .ok_or_else(|| Error::internal("a module's copy is no module"))?;
    let mut options = tile_overlapped::completed(&Options::default(), config);
    options.set("multiprocessors", device.multiprocessors);
    (tile_overlapped::PASS.run)(context, &mut copy, &options)?;
    (rotate_buffers::PASS.run)(context, &mut copy, &Options::default())?;
    let program = Program::read(&copy)?;
    let main = tile_traffic::main_kernels(&copy)?;
    let traffic = main
        .iter()
        .map(|kernel| tile_traffic::of(&program, kernel))
        .collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = main.iter().map(|kernel| kernel.name.to_owned()).collect();
    for kernel in
        tiled::kernels(&copy)?.iter().filter(|kernel| !names.iter().any(|name| name == kernel.name))
    {
        mlir::erase(kernel.op);
    }
    for pass in registry::after(rotate_buffers::PASS.name) {
        (pass.run)(context, &mut copy, &Options::default())?;
    }
    let launches = tiled::launches(&copy)?;
    let sizes = Large::of(&program);
    let mut kernels = Vec::new();
    for (name, traffic) in names.iter().zip(traffic) {
        let launch = launches.iter().find(|launch| launch.name == name).ok_or_else(|| {
            Error::user(format!(
                "there is no lowering for the strategy '{}'",
                config.strategy.as_deref().unwrap_or_default()
            ))
        })?;
        let work = kernel_work::of(launch)?;
        let count =
            |map| Ok::<_, Error>(sizes.evaluate(map)?.first().copied().unwrap_or(0).max(0) as f64);
        let blocks = count(launch.grid)?;
        let bands = launch.bands.map_or(Ok(0.0), |bands| {
            Ok::<_, Error>(count(bands.rows)? / bands.reach.max(1) as f64)
        })?;
        // Each warp of the strategy warp has a tile of its own.
        let tiles = if launch.schedule.strategy == "warp" {
            f64::from(work.threads) / WARP as f64
        } else {
            1.0
        };
        let (own, halo) = (tiles * traffic.own, tiles * traffic.halo);
        kernels.push(Work { blocks, bands, own, halo, redundancy: traffic.redundancy, ..work });
    }
    let Some(schedule) =
        launches.iter().map(|launch| &launch.schedule).max_by_key(|schedule| schedule.steps)
    else {
        return Ok(None);
    };
    let steps = u32::try_from(schedule.steps).unwrap_or(1);
    let points =
        program.grids.iter().map(|grid| sizes.points(grid)).collect::<Result<Vec<_>, _>>()?;
    let (tile, per_thread) = (schedule.tile.clone(), schedule.per_thread.clone());
    Ok(model::predict(&kernels, steps, device).map(|prediction| Candidate {
        config: Choice {
            pyramid_height: Some(schedule.steps),
            per_thread: Some(per_thread.clone()),
            ..config.clone()
        },
        tile,
        per_thread,
        kernels,
        prediction,
        points: points.into_iter().fold(0.0, f64::max),
    }))
}

/// Values for the run-time sizes.
struct Large<'c> {
    names: Vec<&'c str>,
    sizes: Sizes,
}

impl<'c> Large<'c> {
    fn of(program: &Program<'c>) -> Self {
        let rank = program.grids.iter().map(Grid::rank).max().unwrap_or(1);
        let size = LARGE.get(rank.saturating_sub(1)).copied().unwrap_or(1);
        let sizes = program.params.iter().map(|name| ((*name).to_owned(), size)).collect();
        Self { names: program.params.clone(), sizes }
    }

    fn evaluate(&self, map: melior::ir::AffineMap) -> Result<Vec<i64>, Error> {
        let internal = |error: &dyn std::fmt::Display| Error::internal(error.to_string());
        (0..map.result_count())
            .map(|index| {
                let result = map.result(index).map_err(|error| internal(&error))?;
                let text = affine::text(result, &self.names);
                let expression = text.parse::<Expr>().map_err(|error| internal(&error))?;
                expression.evaluate(&self.sizes).map_err(|error| Error::user(error.to_string()))
            })
            .collect()
    }

    fn points(&self, grid: &Grid) -> Result<f64, Error> {
        let (lower, upper) = (self.evaluate(grid.lower)?, self.evaluate(grid.upper)?);
        Ok(lower
            .iter()
            .zip(&upper)
            .map(|(lower, upper)| (upper - lower + 1).max(0) as f64)
            .product())
    }
}

/// The schedules to look at, within what is forced.
fn openings(module: &Module, program: &Program, forced: &Choice) -> Result<Vec<Choice>, Error> {
    tile_overlapped::refuse_far_reads(module, program)?;
    let rank = program.grids.first().map_or(0, Grid::rank);
    let strategies = match &forced.strategy {
        Some(strategy) => vec![strategy.as_str()],
        None => STRATEGIES.to_vec(),
    };
    let mut found: Vec<Choice> = Vec::new();
    for strategy in strategies {
        for (tile, per_thread, heights) in shapes(module, program, strategy, rank, forced) {
            let heights = forced.pyramid_height.map_or(heights, |height| vec![Some(height)]);
            for pyramid_height in heights {
                let config = Choice {
                    strategy: Some(strategy.to_owned()),
                    tile: forced.tile.clone().or_else(|| tile.clone()),
                    pyramid_height,
                    per_thread: forced.per_thread.clone().or_else(|| per_thread.clone()),
                    region: forced.region.clone(),
                };
                if !found.contains(&config) {
                    found.push(config);
                }
            }
        }
    }
    Ok(found)
}

/// Cells of a tile, cells a thread, and steps a launch that go with them.
type Shape = (Option<Vec<i64>>, Option<Vec<i64>>, Vec<Option<i64>>);

/// The shapes of a strategy to look at beside its own defaults. A tile of none is fitted.
fn shapes(
    module: &Module,
    program: &Program,
    strategy: &str,
    rank: usize,
    forced: &Choice,
) -> Vec<Shape> {
    let some = |heights: &[i64]| heights.iter().copied().map(Some).collect::<Vec<_>>();
    let blocks = |shapes: &[(&[i64], &[i64])], heights: &[i64]| -> Vec<Shape> {
        let shape = |(tile, cells): &(&[i64], &[i64])| {
            (Some(tile.to_vec()), Some(cells.to_vec()), some(heights))
        };
        shapes.iter().map(shape).collect()
    };
    let others = match (strategy, rank) {
        ("block", 1) => blocks(&[(&[2048], &[4]), (&[4096], &[4])], &[1, 8, 32]),
        ("block", 2) => blocks(&[(&[32, 64], &[4, 1]), (&[64, 64], &[8, 1])], &[2, 4, 8]),
        ("block", 3) => blocks(&[(&[8, 8, 64], &[4, 2, 1])], &[1, 2]),
        // Registers and halo bound the height; below it every second step is near enough to the
        // best.
        ("stream", 2 | 3) => {
            let applies: Vec<_> = program.applies.iter().collect();
            let shape = |cells: Vec<i64>| {
                let highest =
                    stream::schedule::height(module, program, &applies, &cells).unwrap_or(1);
                let heights = (1..=highest)
                    .rev()
                    .filter(|height| highest - height < 2 || (highest - height) % 2 == 0);
                (None, Some(cells), heights.map(Some).collect())
            };
            let asked = forced.per_thread.clone().filter(|cells| cells.len() == rank);
            let cells =
                asked.map_or_else(|| stream::schedule::shapes(program, rank), |cells| vec![cells]);
            cells.into_iter().map(shape).collect()
        }
        ("warp", 1) => vec![(None, None, some(&[8, 16, 32]))],
        _ => Vec::new(),
    };
    [vec![(None, None, vec![None])], others].concat()
}
