//! `tile-overlapped`: cuts the grid into tiles that recompute each other's rim, so that several
//! steps run without any exchange between blocks.
//!
//! Source: Holewinski, Pouchet, Sadayappan, "High-Performance Code Generation for Stencil
//! Computations on GPU Architectures", section 4.2, algorithm 2: regions are found backwards over
//! functions and steps, a rectangular hull where a field is reached twice. Unlike the paper's fixed
//! region, each apply gets the region that is needed at its step.
//!
//! Needs: a verified stencil program. Guarantees: tile kernels of heights `T`, and of the powers
//! of two below it for the steps that are left over; a host schedule of `tiled.repeat`; no
//! `stencil.apply` any more. The strategy `naive` gets one kernel an apply and one step a launch.
//!
//! ```text
//! "stencil.apply"() {updates = [@A], pieces = [...]}
//! ```
//! becomes, for `pyramid-height=2`,
//! ```text
//! func.func @heat_2() attributes {tiled.strategy = "block", tiled.tile = array<i64: 32, 64>, ...} {
//!   %0 = "tiled.load"() {field = @A, lower = array<i64: -2, -2>, upper = array<i64: 2, 2>}
//!   %1 = "tiled.apply"(%0) {step = 0, lower = array<i64: -1, -1>, upper = array<i64: 1, 1>, ...}
//!   %2 = "tiled.apply"(%1) {step = 1, lower = array<i64: 0, 0>, upper = array<i64: 0, 0>, ...}
//!   "tiled.store"(%2) {field = @A}
//! }
//! "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps floordiv 2)>, kernels = [@heat_2]}
//! "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps mod 2)>, kernels = [@heat_1]}
//! ```

use crate::analysis::{footprint, index_width};
use crate::options::Options;
use crate::pass::Pass;
use crate::stencil::{stream_schedule, warp_schedule};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Location, Module};
use std::collections::BTreeMap;
use std::fmt::Display;
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Apply, Program};
use stencil_dialects::tiled::{self, Halo, MOST_CELLS, MOST_STEPS, Schedule};

/// The pass.
pub const PASS: Pass = Pass {
    name: "tile-overlapped",
    summary: "cut the grid into overlapping tiles that run several steps without exchange",
    options: &[
        ("strategy", "how tiles are lowered: naive, block, stream or warp (default block)"),
        ("tile", "cells of a tile per dimension, slowest first"),
        ("pyramid-height", "steps a launch (default by rank: 8, 4, 2; of stream by registers, of warp by halo)"),
        ("multiprocessors", "of the device that the strategy stream fits its tiles to (default 132)"),
        ("per-thread", "cells a thread per dimension, or in the slowest dimension alone"),
    ],
    run,
};

fn run<'c>(context: &'c Context, module: &mut Module<'c>, options: &Options) -> Result<(), Error> {
    let program = Program::read(module)?;
    let Some(first) = program.applies.first() else {
        return Err(Error::user(
            "there is no stencil.apply to tile; the program has no functions, or is tiled already",
        ));
    };
    let place = mlir::place(first.op.location());
    // The verifier takes programs of one grid.
    let rank = program.grids.first().map_or(0, stencil::Grid::rank);
    let strategy = options.text("strategy").unwrap_or("block");
    let defaults = Defaults::of(strategy, rank).map_err(|error| Error { place: place.clone(), ..error })?;
    let tile = dimensions(options.integers("tile", 1..=MOST_CELLS)?, "tile", rank, |_| None)?;
    let schedule = Schedule {
        strategy: defaults.strategy.to_owned(),
        tile: tile.clone().unwrap_or(defaults.tile),
        per_thread: dimensions(options.integers("per-thread", 1..=MOST_CELLS)?, "per-thread", rank, |cells| {
            let fastest = strategy == "stream";
            let widened = if fastest { rank.saturating_sub(1) } else { 0 };
            Some((0..rank).map(|dimension| if dimension == widened { cells } else { 1 }).collect())
        })?
        .map_or_else(
            || {
                if strategy == "warp" {
                    Ok(vec![warp_schedule::width(module, &program)?])
                } else {
                    Ok(defaults.per_thread)
                }
            },
            Ok,
        )?,
        steps: 0,
    };
    let width = schedule.per_thread.last().copied().unwrap_or(1);
    let height = match options.integer("pyramid-height", 1..=MOST_STEPS)? {
        Some(height) => height,
        None if strategy == "stream" => stream_schedule::height(module, &program, width)?,
        None if strategy == "warp" => warp_schedule::height(width, |steps| reach(module, &program, steps))?,
        None => defaults.height,
    };
    let multiprocessors =
        options.integer("multiprocessors", 1..=MOST_CELLS)?.unwrap_or(stream_schedule::MULTIPROCESSORS);
    let fitted = (matches!(strategy, "stream" | "warp") && tile.is_none()).then_some(multiprocessors);
    let builder = Builder::new(context, first.op.location(), mlir::body(module));
    if schedule.strategy == "naive" {
        if height != 1 {
            return Err(Error::user(
                "the strategy naive runs one step a launch; leave pyramid-height out or choose another strategy",
            ));
        }
        naive_kernels(&builder, module, &program, &schedule)?;
    } else {
        overlapped_kernels(&builder, module, &program, &schedule, height, fitted)?;
    }
    tiled::set_index_width(&builder, module, index_width::of(&program));
    for apply in &program.applies {
        mlir::erase(apply.op);
    }
    Ok(())
}

struct Defaults {
    strategy: &'static str,
    tile: Vec<i64>,
    per_thread: Vec<i64>,
    height: i64,
}

impl Defaults {
    fn of(strategy: &str, rank: usize) -> Result<Self, Error> {
        let (strategy, tile, per_thread, height): (_, &[i64], &[i64], _) = match (strategy, rank) {
            ("naive", 1) => ("naive", &[256], &[1], 1),
            ("naive", 2) => ("naive", &[4, 64], &[1, 1], 1),
            ("naive", _) => ("naive", &[1, 4, 64], &[1, 1, 1], 1),
            ("block", 1) => ("block", &[2048], &[4], 8),
            ("block", 2) => ("block", &[32, 64], &[4, 1], 4),
            ("block", _) => ("block", &[8, 8, 64], &[4, 2, 1], 2),
            ("stream", 2) => ("stream", &[stream_schedule::ROWS, 1], &[1, stream_schedule::WIDTH], 1),
            ("stream", _) => {
                return Err(Error::user(format!(
                    "the strategy stream is for grids of two dimensions, and this one has {rank}; choose naive or block"
                )));
            }
            ("warp", 1) => ("warp", &[1], &[1], 1),
            ("warp", _) => {
                return Err(Error::user(format!(
                    "the strategy warp is for grids of one dimension, and this one has {rank}; choose naive, block or stream"
                )));
            }
            (other, _) => {
                return Err(Error::user(format!(
                    "there is no strategy '{other}'; there are naive, block, stream and warp"
                )));
            }
        };
        Ok(Self { strategy, tile: tile.to_vec(), per_thread: per_thread.to_vec(), height })
    }
}

/// Checks that an option has one number a dimension; `single` may widen one number alone.
fn dimensions(
    values: Option<Vec<i64>>,
    name: &str,
    rank: usize,
    single: impl Fn(i64) -> Option<Vec<i64>>,
) -> Result<Option<Vec<i64>>, Error> {
    match values {
        Some(values) if values.len() == rank => Ok(Some(values)),
        Some(values) => match values.as_slice() {
            [only] => single(*only).map(Some),
            _ => None,
        }
        .ok_or_else(|| {
            Error::user(format!(
                "{name} has {} numbers, and the grid has {rank} dimensions; give one a dimension",
                values.len()
            ))
        }),
        None => Ok(None),
    }
}

fn naive_kernels<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    program: &Program<'c>,
    schedule: &Schedule,
) -> Result<(), Error> {
    let mut names = Vec::new();
    for (index, apply) in program.applies.iter().enumerate() {
        let name = kernel_name(program, index);
        let steps = i64::from(index + 1 == program.applies.len());
        let schedule = Schedule { steps, ..schedule.clone() };
        kernel(builder, module, program, &name, &[(0, apply)], &schedule)?;
        names.push(name);
    }
    let steps = AffineExpr::symbol(builder.context, program.params.len());
    tiled::repeat(builder, symbolic(builder.context, program.params.len() + 1, &[steps]), &names)?;
    Ok(())
}

fn overlapped_kernels<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    program: &Program<'c>,
    schedule: &Schedule,
    height: i64,
    fitted: Option<i64>,
) -> Result<(), Error> {
    let context = builder.context;
    let symbols = program.params.len() + 1;
    let steps = AffineExpr::symbol(context, program.params.len());
    let constant = |value| AffineExpr::constant(context, value);
    let left = AffineExpr::modulo(steps, constant(height));
    let mut launches = vec![(height, AffineExpr::floor_div(steps, constant(height)))];
    // The steps left over are fewer than `height`: each binary digit of their number is one launch.
    let mut digit = (height as u64).next_power_of_two() as i64 / 2;
    while digit >= 1 {
        if digit < height {
            launches.push((digit, AffineExpr::modulo(AffineExpr::floor_div(left, constant(digit)), constant(2))));
        }
        digit /= 2;
    }
    for (steps, count) in launches {
        let name = kernel_name(program, steps);
        let applies = applies(program, steps);
        let mut schedule = Schedule { steps, ..schedule.clone() };
        if let Some(multiprocessors) = fitted {
            let loads = regions(module, &applies, schedule.tile.len())?.loads;
            schedule.tile = stream_schedule::tile(
                module,
                program,
                &schedule,
                &loads.values().collect::<Vec<_>>(),
                multiprocessors,
            )?;
        }
        kernel(builder, module, program, &name, &applies, &schedule)?;
        tiled::repeat(builder, symbolic(context, symbols, &[count]), &[name])?;
    }
    Ok(())
}

/// The program's name as PTX allows it, with a number.
fn kernel_name(program: &Program, number: impl Display) -> String {
    let letters = program.name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let prefix = if program.name.starts_with(|letter: char| letter.is_ascii_alphabetic()) { "" } else { "k_" };
    format!("{prefix}{}_{number}", letters.collect::<String>())
}

/// The regions of algorithm 2: what each apply computes, and what is loaded.
#[derive(Debug, PartialEq)]
struct Regions<'c> {
    applies: Vec<Halo>,
    loads: BTreeMap<&'c str, Halo>,
}

fn regions<'c>(module: &Module<'c>, applies: &[(i64, &Apply<'c>)], rank: usize) -> Result<Regions<'c>, Error> {
    let tile = Halo::none(rank);
    let mut needed: BTreeMap<&str, Halo> = BTreeMap::new();
    let mut computed = Vec::new();
    for (_, apply) in applies.iter().rev() {
        // What later applies read of the updated fields, and the tile itself, which is stored.
        let mut region = tile.clone();
        for field in &apply.updates {
            if let Some(later) = needed.remove(field) {
                region = region.hull(&later);
            }
        }
        let mut need = |field, halo: Halo| {
            needed.entry(field).and_modify(|known| *known = known.hull(&halo)).or_insert(halo);
        };
        for field in &apply.updates {
            need(*field, region.clone());
        }
        for read in footprint::of_pieces(module, &apply.pieces)? {
            need(read.field, region.shifted(&read.offset));
        }
        computed.push(region);
    }
    computed.reverse();
    Ok(Regions { applies: computed, loads: needed })
}

/// The applies of some steps, each with its step.
fn applies<'c, 'p>(program: &'p Program<'c>, steps: i64) -> Vec<(i64, &'p Apply<'c>)> {
    (0..steps).flat_map(|step| program.applies.iter().map(move |apply| (step, apply))).collect()
}

/// How far some steps reach beyond a tile of one dimension, before and after it.
fn reach(module: &Module, program: &Program, steps: i64) -> Result<[i64; 2], Error> {
    let loads = regions(module, &applies(program, steps), 1)?.loads;
    let whole = loads.values().fold(Halo::none(1), |whole, halo| whole.hull(halo));
    Ok([-whole.lower.iter().sum::<i64>(), whole.upper.iter().sum::<i64>()])
}

fn kernel<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    program: &Program<'c>,
    name: &str,
    applies: &[(i64, &Apply<'c>)],
    schedule: &Schedule,
) -> Result<(), Error> {
    let regions = regions(module, applies, schedule.tile.len())?;
    let (_, entry) = builder.function(name, &[], &[], &tiled::schedule_attributes(builder, schedule))?;
    let body = builder.at(entry);
    let mut tiles = BTreeMap::new();
    // Loads stand in the order of the declarations, so that kernels read alike.
    for field in &program.fields {
        if let Some(halo) = regions.loads.get(field.name) {
            tiles.insert(field.name, tiled::load(&body, field.name, halo)?);
        }
    }
    for ((step, apply), region) in applies.iter().zip(&regions.applies) {
        let at = Builder { location: apply_location(apply), ..body };
        let mut names: Vec<&str> =
            footprint::of_pieces(module, &apply.pieces)?.into_iter().map(|read| read.field).collect();
        names.extend(&apply.updates);
        names.sort_by_key(|name| program.fields.iter().position(|field| field.name == *name));
        names.dedup();
        let mut inputs = Vec::new();
        for name in names {
            let tile =
                tiles.get(name).ok_or_else(|| Error::internal(format!("no tile of @{name} reaches an apply")))?;
            inputs.push((name, *tile));
        }
        let pieces = stencil::pieces_attribute(&at, &apply.pieces);
        let outputs = tiled::apply(&at, &inputs, &apply.updates, region, pieces, *step)?;
        tiles.extend(apply.updates.iter().copied().zip(outputs));
    }
    for field in &program.fields {
        let updated = applies.iter().any(|(_, apply)| apply.updates.contains(&field.name));
        if let (true, Some(tile)) = (updated, tiles.get(field.name)) {
            tiled::store(&body, field.name, *tile)?;
        }
    }
    body.op("func.return", &[], &[], &[])?;
    Ok(())
}

fn apply_location<'c>(apply: &Apply<'c>) -> Location<'c> {
    apply.op.location()
}
