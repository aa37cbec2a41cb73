//! `tile-overlapped`: cuts the grid into tiles that recompute each other's rim, so that several
//! steps run without any exchange between blocks.
//!
//! Source: Holewinski, Pouchet, Sadayappan, "High-Performance Code Generation for Stencil
//! Computations on GPU Architectures", section 4.2, algorithm 2: regions are found backwards over
//! functions and steps, a rectangular hull where a field is reached twice. By default each apply
//! computes the region needed at its step. With `region=fixed` all applies compute the largest, as
//! in the paper, so that each thread does the same in each step. `block` then gives the threads,
//! and equation 1 the tile: the cells of all threads are those of the largest region. Cells at the
//! outer rim may then be invalid; the verifier proves that none of them is stored.
//!
//! Needs: a verified stencil program, in which `tile-wavefront` has tiled the functions that read
//! values of their own sweep. The schedule comes from options, else from `choose-schedule`, else
//! from defaults. Guarantees: tile kernels of the pyramid height, and of the powers of two below it
//! for the steps that are left over; a host schedule of `tiled.repeat`; no `stencil.apply` any
//! more. With the schedules of `choose-heights`, each pyramid height has a kernel and a host
//! schedule (`pyramids.rs`). A strategy that fuses no steps gets one kernel per apply and one step
//! per launch. Data that nobody needs is neither loaded nor stored (`analysis/transfers.rs`): a
//! field that is overwritten before it is read, and a temp field that is overwritten so in every
//! launch.
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

use crate::analysis::{index_width, reductions};
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choice::{self, BLOCK, PER_THREAD, PYRAMID_HEIGHT, REGION, STRATEGY, TILE};
use crate::schedule::code_size;
use crate::schedule::launch_groups::{self, Group};
use crate::schedule::pyramids::Names;
use crate::schedule::regions;
use crate::schedule::step_launches::{self, Launch};
use crate::schedule::step_schedule::StepSchedule;
use crate::schedule::strategy::Strategy;
use crate::schedule::tile_kernel;
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Choice, MOST_STEPS, Region, Schedule};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "tile-overlapped",
    summary: "cut the grid into overlapping tiles that run several steps without exchange",
    options: &[STRATEGY, TILE, PYRAMID_HEIGHT, PER_THREAD, REGION, BLOCK],
    read: |options: &Options| Ok(Box::new(TileOverlapped { choice: choice::read(options)? })),
};

/// The pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileOverlapped {
    /// The schedule; the module's own choice completes it, then defaults.
    pub choice: Choice,
}

impl Pass for TileOverlapped {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        choice::options(&self.choice)
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let choice = choice::completed(&self.choice, module)?;
        let heights = tiled::heights(module)?;
        let program = Program::read(module)?;
        let Some(first) = program.applies.first() else {
            return Err(Error::user(
                "there is no stencil.apply to tile; add a function, or name the passes that lower \
                 a program that is tiled already",
            ));
        };
        regions::refuse_far_reads(&program)?;
        let builder = Builder::new(context, first.op.location(), mlir::body(module));
        let choices = if heights.is_empty() { vec![choice] } else { heights.clone() };
        let all: Vec<i64> = heights.iter().filter_map(|height| height.pyramid_height).collect();
        let (mut names, code) = (Names::new(), code_size::Total::default());
        for choice in choices {
            let subject = Subject::of(module, &program)?;
            let strategy = match &choice.strategy {
                Some(name) => strategies::named(name)?,
                None => strategies::usual(&subject),
            };
            strategies::check_target(&subject, strategy)?;
            let tiling = Tiling { subject, strategy, choice, code: &code };
            let groups = launch_groups::of(context, &program, !strategy.fuses_steps())?;
            if all.is_empty() {
                tiling.all(&builder, &groups)?;
                continue;
            }
            if names.is_empty() {
                names = tiling.kernel_names(&all);
            }
            tiling.alternative(&builder, &groups, &names)?;
        }
        let mut width = 0;
        for kernel in tiled::kernels(module)? {
            let strategy = strategies::named(&kernel.schedule.strategy)?;
            width = strategy.index_width(&program)?.max(width);
        }
        if width == 0 {
            return Err(Error::user(
                "the kernels are lowered already; run tile-overlapped before the lowerings",
            ));
        }
        // Kernels that are lowered already have the width of the module before.
        if !tiled::launches(module)?.is_empty() {
            width = width.max(tiled::index_width(module));
        }
        if !index_width::records_fit(&program) {
            width = 64;
        }
        tiled::set_index_width(&builder, module, width);
        for apply in &program.applies {
            mlir::erase(apply.op);
        }
        Ok(())
    }
}

/// A program on its way to tile kernels of one schedule.
pub(super) struct Tiling<'c, 'p> {
    pub(super) subject: Subject<'c, 'p>,
    pub(super) strategy: &'static dyn Strategy,
    pub(super) choice: Choice,
    /// The code of the kernels so far.
    code: &'p code_size::Total,
}

impl<'c> Tiling<'c, '_> {
    /// The kernels and the host schedule.
    fn all(&self, builder: &Builder<'c>, groups: &[Group<'c, '_>]) -> Result<(), Error> {
        let program = self.subject.program;
        let fuses = self.strategy.fuses_steps();
        let pyramid_height = self.choice.pyramid_height;
        let reductions = reductions::of(program)?;
        // The steps between two looks at the condition of the run.
        let most = program.until.as_ref().map_or(MOST_STEPS, |until| until.every);
        match groups {
            [group]
                if fuses
                    && reductions.each_step.is_empty()
                    && self.takes_several(builder, group)? =>
            {
                let (strategy, schedule) = self.schedule(group, groups)?;
                let usual = || code_size::usual_height(&self.subject, strategy, group, &schedule);
                let pyramid_height = match pyramid_height {
                    Some(asked) if asked > most => return Err(looks(asked, most)),
                    Some(asked) => asked,
                    None => usual()?.min(most),
                };
                return self.pyramids(builder, (group, strategy), &schedule, pyramid_height);
            }
            _ if pyramid_height.is_none_or(|pyramid_height| pyramid_height == 1) => {}
            // Steps that `sweeps-in-flight` joins.
            [group] if group.sweeps => {}
            _ if fuses && groups.iter().any(|group| !group.repeats.is_empty()) => {}
            _ if !fuses => {
                return Err(Error::declined(
                    Decline::Height,
                    format!(
                        "the strategy {} runs one step per launch; leave pyramid-height out or \
                         choose another strategy",
                        self.strategy.name()
                    ),
                ));
            }
            _ => {
                let reason = if !reductions.each_step.is_empty() {
                    "each step computes a reduction that a function reads"
                } else if groups.iter().any(|group| group.gathers_own) {
                    "a function reads a field at computed places that the step updates"
                } else {
                    "the functions update fields on grids that no tile covers or repeats together"
                };
                let message = format!(
                    "{reason}, so a launch takes at most one step; leave pyramid-height out"
                );
                return Err(Error::declined(Decline::Height, message));
            }
        }
        let height = |number| self.repetitions(builder, groups, number);
        let launches = step_launches::of(groups, &reductions.each_step, &height)?;
        let names = self.names(builder, groups, &launches)?;
        let schedule = StepSchedule { program, builder, height: None };
        schedule.all(|steps| vec![(steps, names.clone())])
    }

    /// The kernels of the launches of a step, in order. The last one counts the step, by a kernel
    /// of its own.
    fn names(
        &self,
        builder: &Builder<'c>,
        groups: &[Group<'c, '_>],
        launches: &[Launch],
    ) -> Result<Vec<String>, Error> {
        let last = launches.iter().rposition(|launch| matches!(launch, Launch::Group(..)));
        let (mut made, mut names) = (BTreeMap::new(), Vec::new());
        for (place, launch) in launches.iter().enumerate() {
            let (number, repetitions) = match *launch {
                Launch::Reduce(field) => {
                    names.push(field.to_owned());
                    continue;
                }
                Launch::Group(number, repetitions) => (number, repetitions),
            };
            let Some(group) = groups.get(number) else { continue };
            let steps = i64::from(Some(place) == last);
            let name = match made.entry((number, repetitions, steps)) {
                Entry::Occupied(name) => name.into_mut(),
                Entry::Vacant(open) if group.sweeps => {
                    open.insert(self.sweeping(builder, group, (number, steps))?)
                }
                Entry::Vacant(open) => {
                    let name = tile_kernel::name(&self.subject, number);
                    let (strategy, schedule) = self.schedule(group, groups)?;
                    let schedule = Schedule { steps, ..schedule };
                    self.kernel(builder, &name, (group, strategy), repetitions, schedule)?;
                    open.insert(name)
                }
            };
            names.push(name.clone());
        }
        Ok(names)
    }

    /// The kernel that `tile-wavefront` made of a group, or a copy that counts other steps.
    fn sweeping(
        &self,
        builder: &Builder<'c>,
        group: &Group<'c, '_>,
        (number, steps): (usize, i64),
    ) -> Result<String, Error> {
        let made = sweeping_kernel(group)?;
        let kernels = tiled::kernels(self.subject.module)?;
        match kernels.iter().find(|kernel| kernel.name == made) {
            Some(kernel) if kernel.schedule.steps != steps => {
                let name = tile_kernel::name(&self.subject, number);
                tiled::set_steps(builder, tiled::copy(builder, kernel.op, &name)?, steps);
                Ok(name)
            }
            _ => Ok(made),
        }
    }

    /// The most repetitions of a group that one launch takes.
    fn repetitions(
        &self,
        builder: &Builder<'c>,
        groups: &[Group<'c, '_>],
        number: usize,
    ) -> Result<i64, Error> {
        let Some(group) = groups.get(number) else { return Ok(1) };
        let program = self.subject.program;
        let together = self.strategy.fuses_steps()
            && !group.sweeps
            && !group.gathers_own
            && launch_groups::repeats_alike(builder.context, program, &group.applies)?;
        if !together {
            return Ok(1);
        }
        let (strategy, schedule) = self.schedule(group, groups)?;
        let usual = || code_size::usual_height(&self.subject, strategy, group, &schedule);
        self.choice.pyramid_height.map_or_else(usual, Ok)
    }

    /// A group's strategy with its tile and cells per thread, as they are asked for or by default.
    pub(super) fn schedule(
        &self,
        group: &Group<'c, '_>,
        groups: &[Group<'c, '_>],
    ) -> Result<(&'static dyn Strategy, Schedule), Error> {
        let rank = group.hull.rank();
        let strategy = self.strategy_of(group, groups)?;
        let shape = strategy.shape(&self.subject, group)?;
        // Numbers for the dimensions of another group are not for this one.
        let ours = |values: &Option<Vec<i64>>| {
            let others = |values: &&Vec<i64>| {
                values.len() != rank && groups.iter().any(|other| other.hull.rank() == values.len())
            };
            values.as_ref().filter(|values| !others(values)).cloned()
        };
        let per_thread = dimensions(ours(&self.choice.per_thread), PER_THREAD.0, rank, |cells| {
            Some(strategy.widened(rank, cells))
        })?;
        let per_thread = per_thread.unwrap_or(shape.per_thread);
        let tile = dimensions(ours(&self.choice.tile), TILE.0, rank, |_| None)?;
        // Of a block, the cells that its threads compute, from which `fit` takes the halo away.
        let block = dimensions(ours(&self.choice.block), BLOCK.0, rank, |_| None)?;
        let device = self.subject.device;
        let cells = |threads: Vec<i64>| choice::cells(&threads, &per_thread, device);
        let block = block.map(cells).transpose()?;
        let region = choice::region(&self.choice)?;
        if region == Region::Fixed && !strategy.has_fixed_regions() {
            return Err(Error::declined(
                Decline::Region,
                format!(
                    "the strategy {} has no fixed regions; leave {} out or choose another strategy",
                    strategy.name(),
                    if self.choice.block.is_some() { BLOCK.0 } else { REGION.0 }
                ),
            ));
        }
        let schedule = Schedule {
            strategy: strategy.name().to_owned(),
            tile: tile.or(block).unwrap_or(shape.tile),
            per_thread,
            steps: 0,
            region,
        };
        // The pyramid height follows from lanes, which must not be too many to look at.
        let program = self.subject.program;
        code_size::check(program, strategy, &group.applies, (&schedule.per_thread, 1))?;
        Ok((strategy, schedule))
    }

    /// The strategy of a group; the usual one where that asked for takes other groups alone.
    fn strategy_of(
        &self,
        group: &Group<'c, '_>,
        groups: &[Group<'c, '_>],
    ) -> Result<&'static dyn Strategy, Error> {
        let name = self.strategy.name();
        let takes = |group: &Group| strategies::takes(self.strategy, group);
        match strategies::for_rank(name, group.hull.rank()) {
            _ if !takes(group) && groups.iter().any(takes) => Ok(strategies::usual(&self.subject)),
            Ok(strategy) if strategy.sweeps() => Err(Error::declined(
                Decline::Sweep,
                format!(
                    "the strategy {name} is for functions that read values of their own sweep, as \
                     A'[-1, 0] is one; choose another strategy"
                ),
            )),
            found => found.map_err(|error| {
                let place = group.applies.first().map(|apply| mlir::place(apply.op.location()));
                error.at(place.unwrap_or_default())
            }),
        }
    }

    /// One tile kernel: some steps of a group. A tile that nobody asked for is fitted.
    pub(super) fn kernel(
        &self,
        builder: &Builder<'c>,
        name: &str,
        (group, strategy): (&Group<'c, '_>, &'static dyn Strategy),
        steps: i64,
        mut schedule: Schedule,
    ) -> Result<(), Error> {
        let program = self.subject.program;
        self.code.add(program, strategy, &group.applies, (&schedule.per_thread, steps))?;
        let mut regions = regions::of(program, group, steps)?;
        if schedule.region == Region::Fixed {
            regions.fix();
        }
        if self.choice.tile.is_none() {
            let halos: Vec<_> = regions.all().collect();
            let whole = Schedule { steps, ..schedule.clone() };
            if let Some(tile) = strategy.fit(&self.subject, group, &whole, &halos)? {
                schedule.tile = tile;
            }
        }
        tile_kernel::build(builder, name, &self.subject, group, steps, &schedule, &regions)
    }
}

/// The decline of launches that go beyond a look at the condition of the run.
fn looks(asked: i64, most: i64) -> Error {
    Error::declined(
        Decline::Height,
        format!(
            "the condition of the run is looked at every {most} steps, so that a launch can't take \
             {asked}; choose a smaller pyramid-height, or look less often"
        ),
    )
}

/// The kernel that `tile-wavefront` made of a group.
fn sweeping_kernel(group: &Group) -> Result<String, Error> {
    let apply = group.applies.first().ok_or_else(|| Error::internal("a group without applies"))?;
    tiled::kernel_of(apply.op).map(str::to_owned).ok_or_else(|| {
        let message = "a function reads values of its own sweep, which no overlapped tiles have; \
                       run tile-wavefront before";
        Error::declined(Decline::Sweep, message).at(mlir::place(apply.op.location()))
    })
}

/// Checks that an option has one number a dimension; `single` may widen one number alone.
fn dimensions(
    values: Option<Vec<i64>>,
    name: &str,
    rank: usize,
    single: impl Fn(i64) -> Option<Vec<i64>>,
) -> Result<Option<Vec<i64>>, Error> {
    let Some(values) = values else { return Ok(None) };
    let widened = match values.as_slice() {
        several if several.len() == rank => Some(several.to_vec()),
        [only] => single(*only),
        _ => None,
    };
    widened.map(Some).ok_or_else(|| {
        Error::user(format!(
            "{name} has {} number{}, and the grid has {rank} dimension{}; give one per dimension",
            values.len(),
            plural(values.len()),
            plural(rank)
        ))
    })
}

/// The ending of a word for so many.
fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}
