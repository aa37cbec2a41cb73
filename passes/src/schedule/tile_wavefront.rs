//! `tile-wavefront`: makes a wavefront kernel of each function that reads values of its own sweep.
//!
//! Source: Belviranli, Deng, Gupta, Zhu, Bhuyan, "PeerWave: Exploiting Wavefront Parallelism on
//! GPUs with Peer-SM Synchronization", sections 2 and 3. A tile row is a block of rows; it is cut
//! into tiles along the fastest dimension. Each block takes tile rows in turn.
//!
//! Needs: a verified stencil program. The tile comes from options, else from the strategy.
//! Guarantees: a tile kernel for each such function, of the first strategy for sweeps that accepts
//! it. Under a strategy that may leave rows, temp fields of which rows are enough are not stored
//! (`leave_rows.rs`). The function's `stencil.apply` names the kernel by `tiled.kernel`.
//! `tile-overlapped` tiles the other functions, makes the host schedule and erases the applies. A
//! program without such functions is left as it is, and so is a function that has its kernel
//! already.
//!
//! ```text
//! "stencil.apply"() {updates = [@H], pieces = [...]}
//! ```
//! becomes
//! ```text
//! func.func @sw_0() attributes {tiled.strategy = "strip", tiled.tile = array<i64: 192, 32>,
//!                               tiled.per_thread = array<i64: 2, 1>, ...} {
//!   %0 = "tiled.load"() {field = @H, ...}
//!   %1 = "tiled.apply"(%0) {step = 0, updates = [@H], pieces = [...], ...}
//!   "tiled.store"(%1) {field = @H}
//! }
//! "stencil.apply"() {updates = [@H], pieces = [...], tiled.kernel = @sw_0}
//! ```

use crate::analysis::sweep_rows::{self, SweepRows};
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choice::{self, PER_THREAD, STRATEGY, TILE};
use crate::schedule::code_size;
use crate::schedule::launch_groups::{self, Group};
use crate::schedule::leave_rows;
use crate::schedule::strategy::{Shape, Strategy};
use crate::schedule::{regions, tile_kernel};
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Program};
use stencil_dialects::tiled::{self, Choice, Region, Schedule};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "tile-wavefront",
    summary: "make wavefront kernels of functions that read values of their own sweep",
    options: &[STRATEGY, TILE, PER_THREAD],
    read: |options: &Options| Ok(Box::new(TileWavefront { choice: choice::read(options)? })),
};

/// The pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileWavefront {
    /// The schedule; the module's own choice completes it, then defaults.
    pub choice: Choice,
}

impl Pass for TileWavefront {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        choice::options(&self.choice)
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let choice = choice::completed(&self.choice, module)?;
        let program = Program::read(module)?;
        if !program.sweeps()? {
            return Ok(());
        }
        let groups = launch_groups::of(context, &program, false)?;
        let subject = Subject::of(module, &program)?;
        let is_tiled =
            |group: &Group| group.applies.iter().any(|apply| tiled::kernel_of(apply.op).is_some());
        let sweeps = groups.iter().enumerate().filter(|(_, group)| group.sweeps);
        for (index, group) in sweeps.filter(|(_, group)| !is_tiled(group)) {
            // The last kernel of a step counts it.
            let steps = i64::from(index + 1 == groups.len());
            kernel(context, &subject, &choice, (&groups, group), (index, steps))?;
        }
        Ok(())
    }
}

/// Makes the kernel of a group.
fn kernel<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    choice: &Choice,
    (groups, group): (&[Group<'c, '_>], &Group<'c, '_>),
    (index, steps): (usize, i64),
) -> Result<(), Error> {
    let Some(apply) = group.applies.first() else {
        return Err(Error::internal("a group without applies"));
    };
    let rank = group.hull.rank();
    let at = |error: Error| error.at(mlir::place(apply.op.location()));
    let Shaped { strategy, shape, enough } = shape(subject, choice, (groups, group)).map_err(at)?;
    let group = &group.with_rows(&enough);
    // One function may have several sweeps in flight (`sweeps_in_flight.rs`).
    if groups.len() > 1 && choice.pyramid_height.is_some_and(|height| height != 1) {
        return Err(at(Error::declined(
            Decline::Height,
            "a step of several functions, one of which reads values of its own sweep, takes one \
             step per launch; leave pyramid-height out",
        )));
    }
    // Numbers for the dimensions of another group are not for this one.
    let ours = |asked: &Option<Vec<i64>>, name: &str| -> Result<Option<Vec<i64>>, Error> {
        let other = |list: &Vec<i64>| groups.iter().any(|other| other.hull.rank() == list.len());
        match asked.clone().filter(|list| list.len() == rank || !other(list)) {
            Some(list) if list.len() != rank => Err(at(Error::user(format!(
                "the {name} {list:?} has another number of dimensions than the grid, which has \
                 {rank}; give one number per dimension"
            )))),
            asked => Ok(asked),
        }
    };
    let per_thread = choice.per_thread.clone().map(|list| match list.as_slice() {
        [cells] if groups.iter().all(|group| group.hull.rank() > 1) => {
            strategy.widened(rank, *cells)
        }
        _ => list,
    });
    let (tile, each) = (ours(&choice.tile, TILE.0)?, ours(&per_thread, PER_THREAD.0)?);
    let schedule = Schedule {
        strategy: strategy.name().to_owned(),
        tile: tile.unwrap_or(shape.tile),
        per_thread: each.unwrap_or(shape.per_thread),
        steps,
        region: Region::Shrinking,
    };
    let builder = Builder::new(context, apply.op.location(), mlir::body(subject.module));
    let name = tile_kernel::name(subject, index);
    let regions = regions::of(subject.program, group, 1)?;
    tile_kernel::build(&builder, &name, subject, group, 1, &schedule, &regions)?;
    tiled::set_kernel(&builder, apply.op, &name);
    leave_rows::leave(context, subject, stencil::function(subject.module, &name)?, &enough)
}

/// How a group is tiled.
struct Shaped<'c, 'p> {
    strategy: &'static dyn Strategy,
    shape: Shape,
    /// What is enough of its values.
    enough: SweepRows<'c, 'p>,
}

/// What is enough of a group's values under a strategy. Sweeps in flight find whole fields in
/// memory.
fn enough<'c, 'p>(
    subject: &Subject<'c, 'p>,
    choice: &Choice,
    (strategy, group): (&dyn Strategy, &Group<'c, '_>),
) -> Result<SweepRows<'c, 'p>, Error> {
    let one_sweep = choice.pyramid_height.is_none_or(|height| height == 1);
    match group.applies.as_slice() {
        [apply] if strategy.leaves_rows() && one_sweep => {
            sweep_rows::of(subject.program, (apply, group.place))
        }
        _ => Ok(SweepRows::default()),
    }
}

/// The first strategy that takes a group, with its shape.
fn shape<'c, 'p>(
    subject: &Subject<'c, 'p>,
    choice: &Choice,
    (groups, group): (&[Group<'c, '_>], &Group<'c, '_>),
) -> Result<Shaped<'c, 'p>, Error> {
    let rank = group.hull.rank();
    let mut declined = None;
    for strategy in strategies::sweeping(subject, choice.strategy.as_deref(), groups)? {
        let enough = enough(subject, choice, (strategy, group))?;
        let group = &group.with_rows(&enough);
        let shape = strategies::for_rank(strategy.name(), rank)
            .and_then(|strategy| strategy.shape(subject, group))
            .and_then(|shape| {
                code_size::check(
                    subject.program,
                    strategy,
                    &group.applies,
                    (&shape.per_thread, 1),
                )?;
                Ok(shape)
            });
        match shape {
            Ok(shape) => return Ok(Shaped { strategy, shape, enough }),
            Err(error) if error.is_decline() => declined = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(declined.unwrap_or_else(|| {
        Error::declined(
            Decline::Target,
            "the target has no strategy for functions that read values of their own sweep; compile \
             for NVIDIA's GPUs or for a processor",
        )
    }))
}
