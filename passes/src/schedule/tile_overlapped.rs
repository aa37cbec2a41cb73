//! `tile-overlapped`: cuts the grid into tiles that recompute each other's rim, so that several
//! steps run without any exchange between blocks.
//!
//! Source: Holewinski, Pouchet, Sadayappan, "High-Performance Code Generation for Stencil
//! Computations on GPU Architectures", section 4.2, algorithm 2: regions are found backwards over
//! functions and steps, a rectangular hull where a field is reached twice. By default each apply
//! gets the region that is needed at its step, which shrinks from step to step; with `region=fixed`
//! all of a launch get the largest, as in the paper, so that each thread does the same in each
//! step. Then cells at a tile's outer rim come from cells that no tile holds; the verifier proves
//! that no cell which is stored does.
//!
//! Needs: a verified stencil program. The schedule comes from options, else from `choose-schedule`,
//! else from defaults. Guarantees: tile kernels of heights `T`, and of the powers of two below it
//! for the steps that are left over; a host schedule of `tiled.repeat`; no `stencil.apply` any
//! more. The strategy `naive` gets one kernel an apply and one step a launch. What nobody needs is
//! neither loaded nor stored (`analysis/transfers.rs`): a field that is overwritten before it is
//! read, and a temp field that is overwritten so in every launch.
//!
//! Which applies share a kernel, and which fields it has to load and to store, is for
//! `launch_groups.rs`.
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
use crate::schedule::choose_schedule;
use crate::schedule::launch_groups::{self, Group};
use crate::strategies::{stream, warp};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use std::collections::BTreeMap;
use std::fmt::Display;
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Apply, Program};
use stencil_dialects::tiled::{self, Choice, Halo, MOST_CELLS, MOST_STEPS, Region, Schedule};

/// The pass.
pub const PASS: Pass = Pass {
    name: "tile-overlapped",
    summary: "cut the grid into overlapping tiles that run several steps without exchange",
    options: &[
        (
            "strategy",
            "how tiles are lowered: naive, block, stream or warp (default: as chosen, else block)",
        ),
        ("tile", "cells of a tile per dimension, slowest first"),
        (
            "pyramid-height",
            "steps a launch (default by rank: 8, 4, 2; of stream by registers, of warp by halo)",
        ),
        (
            "multiprocessors",
            "of the device that the strategy stream fits its tiles to (default 132)",
        ),
        (
            "per-thread",
            "cells a thread per dimension, or one number for the slowest, in streams for the \
             fastest",
        ),
        ("region", "what each apply computes: shrinking or fixed (default: shrinking)"),
    ],
    run,
};

/// What tiles can be lowered by. Where no schedule is chosen the first is taken.
pub const STRATEGIES: [&str; 4] = ["block", "stream", "warp", "naive"];

fn run<'c>(context: &'c Context, module: &mut Module<'c>, options: &Options) -> Result<(), Error> {
    let program = Program::read(module)?;
    let Some(first) = program.applies.first() else {
        return Err(Error::user(
            "there is no stencil.apply to tile; the program has no functions, or is tiled already",
        ));
    };
    refuse_far_reads(module, &program)?;
    let options = &completed(options, &tiled::choice(module));
    let naive = options.text("strategy") == Some("naive");
    let tiling = Tiling { module, program: &program, options };
    let groups = launch_groups::of(context, module, &program, naive)?;
    let builder = Builder::new(context, first.op.location(), mlir::body(module));
    tiling.all(&builder, &groups)?;
    let width =
        if naive { index_width::of_naive(module, &program)? } else { index_width::of(&program) };
    tiled::set_index_width(&builder, module, width);
    for apply in &program.applies {
        mlir::erase(apply.op);
    }
    Ok(())
}

/// The options, and what they leave open from a choice of schedule.
pub fn completed(options: &Options, choice: &Choice) -> Options {
    let mut all = options.clone();
    for (name, value) in choose_schedule::options_of(choice) {
        if options.text(name).is_none() {
            all.set(name, value);
        }
    }
    all
}

struct Tiling<'c, 'p> {
    module: &'p Module<'c>,
    program: &'p Program<'c>,
    options: &'p Options,
}

impl<'c> Tiling<'c, '_> {
    /// The kernels and the host schedule.
    fn all(&self, builder: &Builder<'c>, groups: &[Group<'c, '_>]) -> Result<(), Error> {
        let naive = self.options.text("strategy") == Some("naive");
        let height = self.options.integer("pyramid-height", 1..=MOST_STEPS)?;
        match groups {
            [group]
                if !naive
                    && launch_groups::repeats_alike(
                        builder.context,
                        self.module,
                        self.program,
                        &group.applies,
                    )? =>
            {
                let schedule = self.schedule(group, groups)?;
                let height = height.map_or_else(|| self.height(group, &schedule), Ok)?;
                return self.pyramids(builder, group, &schedule, height);
            }
            _ if height.is_none_or(|height| height == 1) => {}
            _ if naive => {
                return Err(Error::user(
                    "the strategy naive runs one step a launch; leave pyramid-height out or choose \
                     another strategy",
                ));
            }
            _ => {
                return Err(Error::user(
                    "the functions update fields on grids that no tile covers or repeats together, \
                     so a launch takes at most one step; leave pyramid-height out",
                ));
            }
        }
        let mut names = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let name = kernel_name(self.module, self.program, index);
            let schedule = Schedule {
                steps: i64::from(index + 1 == groups.len()),
                ..self.schedule(group, groups)?
            };
            self.kernel(builder, &name, group, 1, schedule)?;
            names.push(name);
        }
        let symbols = self.program.params.len();
        let steps = AffineExpr::symbol(builder.context, symbols);
        tiled::repeat(builder, symbolic(builder.context, symbols + 1, &[steps]), &names)?;
        Ok(())
    }

    /// The strategy, tile and cells a thread for a group, as they are asked for or by default.
    fn schedule(&self, group: &Group, groups: &[Group]) -> Result<Schedule, Error> {
        let rank = group.hull.rank();
        let strategy = self.options.text("strategy").unwrap_or("block");
        let place =
            group.applies.first().map(|apply| mlir::place(apply.op.location())).unwrap_or_default();
        let elsewhere =
            || groups.iter().any(|other| Defaults::of(strategy, other.hull.rank()).is_ok());
        let defaults = match Defaults::of(strategy, rank) {
            Ok(defaults) => defaults,
            Err(_) if elsewhere() => Defaults::of("block", rank)?,
            Err(error) => return Err(Error { place, ..error }),
        };
        // Numbers for the dimensions of another group are not for this one.
        let ours = |values: Option<Vec<i64>>| {
            let others = |values: &Vec<i64>| {
                values.len() != rank && groups.iter().any(|other| other.hull.rank() == values.len())
            };
            values.filter(|values| !others(values))
        };
        let tile = ours(self.options.integers("tile", 1..=MOST_CELLS)?);
        let per_thread = ours(self.options.integers("per-thread", 1..=MOST_CELLS)?);
        let widened = if defaults.strategy == "stream" { rank.saturating_sub(1) } else { 0 };
        let per_thread = dimensions(per_thread, "per-thread", rank, |cells| {
            Some((0..rank).map(|dimension| if dimension == widened { cells } else { 1 }).collect())
        })?;
        let per_thread = match per_thread {
            Some(per_thread) => per_thread,
            None if defaults.strategy == "warp" => {
                vec![warp::schedule::width(self.module, self.program, &group.applies)?]
            }
            None if defaults.strategy == "stream" => {
                stream::schedule::per_thread(self.program, rank)
            }
            None => defaults.per_thread,
        };
        let region =
            self.options.text("region").map(Region::parse).transpose()?.unwrap_or_default();
        if region == Region::Fixed && !matches!(defaults.strategy, "block" | "naive") {
            return Err(Error::user(format!(
                "a fixed region is for the strategies block and naive, and {} computes whole lanes \
                 in each step anyway; \
                 leave region out or choose another strategy",
                defaults.strategy
            )));
        }
        Ok(Schedule {
            strategy: defaults.strategy.to_owned(),
            tile: dimensions(tile, "tile", rank, |_| None)?.unwrap_or(defaults.tile),
            per_thread,
            steps: 0,
            region,
        })
    }

    /// Steps a launch, where none are asked for.
    fn height(&self, group: &Group<'c, '_>, schedule: &Schedule) -> Result<i64, Error> {
        let width = schedule.per_thread.last().copied().unwrap_or(1);
        match schedule.strategy.as_str() {
            "stream" => stream::schedule::height(
                self.module,
                self.program,
                &group.applies,
                &schedule.per_thread,
            ),
            "warp" => warp::schedule::height(width, |steps| {
                reach(self.module, self.program, group, steps)
            }),
            other => Ok(Defaults::of(other, group.hull.rank())?.height),
        }
    }

    /// Fits the tile of a strategy that holds it in registers to the cells beside it.
    fn fit(
        &self,
        group: &Group<'c, '_>,
        schedule: &mut Schedule,
        halos: &[&Halo],
    ) -> Result<(), Error> {
        match (schedule.strategy.as_str(), schedule.per_thread.as_slice()) {
            ("warp", [width]) => schedule.tile = vec![warp::schedule::tile(*width, halos)],
            ("stream", _) => {
                let all = self.options.integer("multiprocessors", 1..=MOST_CELLS)?;
                let all = all.unwrap_or(stream::schedule::MULTIPROCESSORS);
                let group = (group.applies.as_slice(), &group.hull);
                schedule.tile =
                    stream::schedule::tile(self.module, self.program, group, schedule, halos, all)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Kernels of several steps, and of the powers of two below for the steps left over.
    fn pyramids(
        &self,
        builder: &Builder<'c>,
        group: &Group<'c, '_>,
        schedule: &Schedule,
        height: i64,
    ) -> Result<(), Error> {
        let context = builder.context;
        let symbols = self.program.params.len() + 1;
        let steps = AffineExpr::symbol(context, self.program.params.len());
        let constant = |value| AffineExpr::constant(context, value);
        let left = AffineExpr::modulo(steps, constant(height));
        let mut launches = vec![(height, AffineExpr::floor_div(steps, constant(height)))];
        // The steps left over are fewer than `height`: each binary digit of their number is one
        // launch.
        let mut digit = (height as u64).next_power_of_two() as i64 / 2;
        while digit >= 1 {
            if digit < height {
                launches.push((
                    digit,
                    AffineExpr::modulo(AffineExpr::floor_div(left, constant(digit)), constant(2)),
                ));
            }
            digit /= 2;
        }
        for (steps, count) in launches {
            let name = kernel_name(self.module, self.program, steps);
            self.kernel(builder, &name, group, steps, Schedule { steps, ..schedule.clone() })?;
            tiled::repeat(builder, symbolic(context, symbols, &[count]), &[name])?;
        }
        Ok(())
    }
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
            ("stream", 1) => {
                return Err(Error::user(
                    "the strategy stream is for grids of two or three dimensions, and this one has \
                     1; choose naive, block or warp",
                ));
            }
            ("stream", 2) => ("stream", &[stream::schedule::PLANES, 1], &[1, 1], 1),
            ("stream", _) => ("stream", &[stream::schedule::PLANES, 1, 1], &[1, 1, 1], 1),
            ("warp", 1) => ("warp", &[1], &[1], 1),
            ("warp", _) => {
                return Err(Error::user(format!(
                    "the strategy warp is for grids of one dimension, and this one has {rank}; \
                     choose naive, block or stream"
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
                "{name} has {} number{}, and the grid has {rank} dimension{}; give one a dimension",
                values.len(),
                plural(values.len()),
                plural(rank)
            ))
        }),
        None => Ok(None),
    }
}

/// The ending of a word for so many.
fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// The program's name in letters that PTX has, with a number; another number follows where a
/// declaration has that name.
fn kernel_name(module: &Module, program: &Program, number: impl Display) -> String {
    let letters = program
        .name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let prefix = if program.name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        ""
    } else {
        "k_"
    };
    stencil::unused_name(module, &format!("{prefix}{}_{number}", letters.collect::<String>()))
}

/// The regions of algorithm 2: what each apply computes, and what is loaded.
#[derive(Debug, PartialEq)]
struct Regions<'c> {
    applies: Vec<Halo>,
    loads: BTreeMap<&'c str, Halo>,
}

impl Regions<'_> {
    /// Every box. Some applies load nothing and may reach farther than all loads.
    fn all(&self) -> impl Iterator<Item = &Halo> {
        self.applies.iter().chain(self.loads.values())
    }
}

fn regions<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    group: &Group<'c, '_>,
    steps: i64,
) -> Result<Regions<'c>, Error> {
    let tile = Halo::none(group.hull.rank());
    let applies = group.steps(steps);
    let mut needed: BTreeMap<&str, Halo> = BTreeMap::new();
    let mut computed = Vec::new();
    for (_, apply) in applies.iter().rev() {
        // What later applies read of the updated fields, and the tile itself, which may be stored.
        let mut region = tile.clone();
        for field in &apply.updates {
            if let Some(later) = needed.remove(field) {
                region = region.hull(&later);
            }
        }
        let mut need = |field, halo: Halo| {
            needed.entry(field).and_modify(|known| *known = known.hull(&halo)).or_insert(halo);
        };
        for field in apply.updates.iter().filter(|field| group.keeps(apply, field)) {
            need(*field, region.clone());
        }
        for read in footprint::of_pieces(module, program, &apply.pieces)? {
            need(read.field, region.reaching(&read.reach));
        }
        computed.push(region);
    }
    computed.reverse();
    let far = computed.iter().chain(needed.values()).any(|halo| !halo.is_near());
    if let (Some((_, apply)), true) = (applies.first(), far) {
        return Err(too_far(apply));
    }
    Ok(Regions { applies: computed, loads: needed })
}

/// Refuses offsets that no tile can hold, whatever the schedule is, before any is looked at.
pub fn refuse_far_reads(module: &Module, program: &Program) -> Result<(), Error> {
    for apply in &program.applies {
        if footprint::of_pieces(module, program, &apply.pieces)?
            .iter()
            .any(|read| !read.reach.is_near())
        {
            return Err(too_far(apply));
        }
    }
    Ok(())
}

fn too_far(apply: &Apply) -> Error {
    Error::new(
        mlir::place(apply.op.location()),
        format!(
            "a launch reads more than {MOST_CELLS} cells away from its tile; make the offsets or the pyramid height smaller"
        ),
    )
}

/// How far some applies reach beyond a tile of one dimension, before and after it.
fn reach<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    group: &Group<'c, '_>,
    steps: i64,
) -> Result<[i64; 2], Error> {
    let regions = regions(module, program, group, steps)?;
    let whole = regions.all().fold(Halo::none(1), |whole, halo| whole.hull(halo));
    Ok([-whole.lower.iter().sum::<i64>(), whole.upper.iter().sum::<i64>()])
}

impl<'c> Tiling<'c, '_> {
    /// One tile kernel: some steps of a group.
    fn kernel(
        &self,
        builder: &Builder<'c>,
        name: &str,
        group: &Group<'c, '_>,
        steps: i64,
        mut schedule: Schedule,
    ) -> Result<(), Error> {
        let mut regions = regions(self.module, self.program, group, steps)?;
        if schedule.region == Region::Fixed {
            let largest = regions
                .applies
                .iter()
                .fold(Halo::none(group.hull.rank()), |all, region| all.hull(region));
            regions.applies.fill(largest);
        }
        if self.options.text("tile").is_none() {
            self.fit(group, &mut schedule, &regions.all().collect::<Vec<_>>())?;
        }
        let (_, entry) =
            builder.function(name, &[], &[], &tiled::schedule_attributes(builder, &schedule))?;
        let body = builder.at(entry);
        let mut tiles = BTreeMap::new();
        // Loads stand in the order of the declarations, so that kernels read alike.
        for field in &self.program.fields {
            if let Some(halo) = regions.loads.get(field.name) {
                tiles.insert(field.name, tiled::load(&body, field.name, halo)?);
            }
        }
        for ((step, apply), region) in group.steps(steps).iter().zip(&regions.applies) {
            let at = Builder { location: apply.op.location(), ..body };
            let mut names: Vec<&str> =
                footprint::of_pieces(self.module, self.program, &apply.pieces)?
                    .into_iter()
                    .map(|read| read.field)
                    .collect();
            names.extend(apply.updates.iter().filter(|field| group.keeps(apply, field)));
            names.sort_by_key(|name| {
                self.program.fields.iter().position(|field| field.name == *name)
            });
            names.dedup();
            let mut inputs = Vec::new();
            for name in names {
                let tile = tiles.get(name).ok_or_else(|| {
                    Error::internal(format!("no tile of @{name} reaches an apply"))
                })?;
                inputs.push((name, *tile));
            }
            let pieces = stencil::pieces_attribute(&at, &apply.pieces);
            let outputs = tiled::apply(&at, &inputs, &apply.updates, region, pieces, *step)?;
            tiles.extend(apply.updates.iter().copied().zip(outputs));
        }
        for field in &self.program.fields {
            let stored = group.transfers.stored.contains(field.name);
            if let (true, Some(tile)) = (stored, tiles.get(field.name)) {
                tiled::store(&body, field.name, *tile)?;
            }
        }
        body.op("func.return", &[], &[], &[])?;
        Ok(())
    }
}
