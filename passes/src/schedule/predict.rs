//! Predicts how long the schedules of a program take.
//!
//! Each candidate is tiled and lowered on a copy of the module (`trial.rs`). The counts of what it
//! makes (`analysis/tile_traffic`, `analysis/kernel_work`) and the device go into the model of the
//! runtime crate, which gives seconds per step. A candidate that a strategy declines is left out;
//! any other error is reported.

use crate::schedule::choice;
use crate::schedule::code_size;
use crate::schedule::exchange::{self, Exchange};
use crate::schedule::large::Large;
use crate::schedule::launch_work;
use crate::schedule::lowering::Settings;
use crate::schedule::regions;
use crate::schedule::strategy::{Candidates, Strategy};
use crate::schedule::trial::{copied, lowered};
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Choice, Parts};
use stencil_runtime::model::{self, Prediction, Work};
use stencil_runtime::ranks::Devices;

/// A schedule with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The schedule; no tile where `tile-overlapped` fits it to each kernel.
    pub choice: Choice,
    /// Cells of the main kernel's tile.
    pub tile: Vec<i64>,
    /// Cells per thread.
    pub per_thread: Vec<i64>,
    /// What the main kernels do, one per launch.
    pub kernels: Vec<Work>,
    /// The predicted time of the main kernels.
    pub prediction: Prediction,
    /// Seconds a step that it is expected to take, by how sure such predictions are. Schedules are
    /// compared by them.
    pub expected: f64,
    /// Points of the largest grid that a function updates.
    pub points: f64,
    /// The devices that share the tiles.
    pub devices: Devices,
    /// What each of them receives a step. The time of the prediction has it too.
    pub exchange: Exchange,
    /// Seconds a step without the exchange.
    pub computing: f64,
}

impl Candidate {
    /// Whether both are the same schedule once a fitted tile is written out.
    fn is_like(&self, other: &Self) -> bool {
        let named = |candidate: &Self| Choice {
            tile: Some(candidate.tile.clone()),
            ..candidate.choice.clone()
        };
        named(self) == named(other) && self.devices == other.devices
    }

    /// Points times steps a second, in 10^9.
    pub fn gcells(&self) -> f64 {
        self.points / self.prediction.seconds * 1e-9
    }
}

/// All candidates within a choice, that of the least expected time first.
///
/// # Errors
/// Where every candidate is declined, the first one's error in the order of the strategies.
pub fn candidates<'c>(
    context: &'c Context,
    module: &Module<'c>,
    choice: &Choice,
    settings: Settings,
) -> Result<Vec<Candidate>, Error> {
    let program = Program::read(module)?;
    let subject = Subject::of(module, &program)?;
    let mut found = Vec::new();
    for subject in grids(&subject, settings)? {
        let open = openings(context, &subject, choice, settings)?;
        found.extend(evaluate(context, &subject, &open, settings)?);
    }
    let weighed = |one: &Candidate| weighed(one.expected, one.devices);
    found.sort_by(|a, b| weighed(a).total_cmp(&weighed(b)));
    Ok(found)
}

/// The time by which grids of devices are compared. A cut along two dimensions must be predicted to
/// save a tenth: cells beside a column lie apart in memory, which the model does not count.
fn weighed(seconds: f64, devices: Devices) -> f64 {
    if devices.shape()[1] > 1 { seconds / 0.9 } else { seconds }
}

/// The subject for each grid of devices that is worth a look.
fn grids<'c, 'p>(
    subject: &Subject<'c, 'p>,
    settings: Settings,
) -> Result<Vec<Subject<'c, 'p>>, Error> {
    let devices = settings.devices.unwrap_or(subject.devices);
    let grids = devices.grids(rank(subject.program)?).into_iter();
    Ok(grids.map(|devices| Subject { devices, ..*subject }).collect())
}

/// The schedule that is predicted to be fastest within a choice, and the grid of the devices that
/// share it.
///
/// # Errors
/// As for [`candidates`].
pub fn best<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    choice: &Choice,
    settings: Settings,
) -> Result<(Choice, Devices), Error> {
    let grids = grids(subject, settings)?;
    let mut usual = None;
    let mut found: Vec<(f64, Choice, Devices)> = Vec::new();
    for subject in &grids {
        let open = openings(context, subject, choice, settings)?;
        let first = open.first().cloned().unwrap_or_default();
        usual.get_or_insert((first.clone(), subject.devices));
        let best = match open.as_slice() {
            // Nothing to choose: `tile-overlapped` and the lowering report what is wrong with it.
            [only] if grids.len() == 1 => return Ok((only.clone(), subject.devices)),
            [only] if subject.processor.is_some() => {
                let seconds = on_processor(context, subject, only, settings);
                seconds.map(|seconds| seconds.map(|seconds| (seconds, first, subject.devices)))
            }
            _ => evaluate(context, subject, &open, settings).map(|all| {
                let best = all.into_iter().next()?;
                Some((best.expected, best.choice, subject.devices))
            }),
        };
        match best {
            Err(error) if error.is_decline() && open.len() == 1 => {}
            best => found.extend(best?),
        }
    }
    let weighed = |(seconds, _, devices): &(f64, Choice, Devices)| weighed(*seconds, *devices);
    let best = found.into_iter().min_by(|a, b| weighed(a).total_cmp(&weighed(b)));
    // The model can't predict a grid without points, so any schedule will do.
    let best = best.map(|(_, choice, devices)| (choice, devices)).or(usual);
    best.ok_or_else(|| Error::internal("no grid of devices"))
}

/// Bytes a second of a processor's part that is a device, between caches and memory: the order of a
/// core's share.
const PROCESSOR_BANDWIDTH: f64 = 10e9;

/// Seconds a step of a schedule on parts of a processor, to compare grids of them: what the busiest
/// one moves, and what it receives. None where devices can't share it so.
fn on_processor<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    choice: &Choice,
    settings: Settings,
) -> Result<Option<f64>, Error> {
    let mut copy = copied(subject)?;
    let main = lowered(context, &mut copy, choice, settings)?;
    let (program, launches) = (Program::read(&copy)?, tiled::launches(&copy)?);
    let sizes = Large::of(&program);
    let (mut seconds, mut steps) = (0.0, 1);
    for (name, traffic, times) in &main {
        let Some(launch) = launches.iter().find(|launch| launch.name == name) else { continue };
        let Some(part) = launch_work::busiest(launch, &sizes, subject.devices)? else {
            return Ok(None);
        };
        let tiles: f64 = match launch.cut.as_ref().map(|cut| &cut.parts) {
            Some(Parts::Tiles { counts, .. }) => {
                sizes.evaluate(*counts)?.iter().map(|tiles| *tiles as f64).product()
            }
            _ => return Ok(None),
        };
        let moved = part * tiles * (traffic.own + traffic.halo) * traffic.redundancy;
        let exchange = exchange::of(subject.program, launch, &sizes, subject.devices)?;
        let each = exchange.beside(moved / PROCESSOR_BANDWIDTH, subject, settings);
        seconds += each * *times as f64;
        steps = steps.max(launch.schedule.steps);
    }
    Ok(Some(seconds / steps as f64))
}

/// Candidates of some schedules, that of the least expected time first.
///
/// # Errors
/// As for [`candidates`].
pub fn evaluate<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    open: &[Choice],
    settings: Settings,
) -> Result<Vec<Candidate>, Error> {
    let mut found = Vec::new();
    let mut declined = None;
    for choice in open {
        match candidate(context, subject, choice, settings) {
            Ok(candidate) => found.extend(candidate),
            Err(error) if error.is_decline() => declined = declined.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() && subject.devices.count() > 1 {
        // Devices can share none of them, so that all run on one.
        let alone = Subject { devices: Devices::along(1), ..*subject };
        return evaluate(context, &alone, open, settings);
    }
    found.sort_by(|a: &Candidate, b| a.expected.total_cmp(&b.expected));
    let mut different: Vec<Candidate> = Vec::new();
    for candidate in found {
        // A default may be one of the others, which name their tile.
        match different.iter_mut().find(|other| other.is_like(&candidate)) {
            None => different.push(candidate),
            Some(other) if other.choice.tile.is_none() => *other = candidate,
            Some(_) => {}
        }
    }
    match declined {
        Some(error) if different.is_empty() => Err(error),
        _ => Ok(different),
    }
}

/// The schedules to look at, within a choice that the module's own completes.
///
/// # Errors
/// A number out of range, a strategy that is not there, and reads that no tile can hold; for a
/// program with sweeps, as for [`candidates`].
pub fn openings<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    choice: &Choice,
    settings: Settings,
) -> Result<Vec<Choice>, Error> {
    let choice = &choice::completed(choice, subject.module)?;
    regions::refuse_far_reads(subject.program)?;
    if subject.program.sweeps()? {
        return beside_sweeps(context, subject, choice, settings).map(|open| vec![open]);
    }
    let rank = rank(subject.program)?;
    // In a launch that is done in parts, no blocks may wait for each other.
    let fits = |one: &&dyn Strategy| !(one.sweeps() || settings.windows && one.stays_resident());
    let strategies = match &choice.strategy {
        Some(name) => vec![strategies::named(name)?],
        None => {
            let mut open = Vec::new();
            for strategy in strategies::of_target(subject).filter(fits) {
                if strategy.is_proposed(subject)? {
                    open.push(strategy);
                }
            }
            open
        }
    };
    let mut found: Vec<Choice> = Vec::new();
    for strategy in strategies {
        let applies: Vec<_> = subject.program.applies.iter().collect();
        // The defaults alone, so that `tile-overlapped` declines code that is too long.
        let per_thread = choice.per_thread.as_deref().unwrap_or_default();
        let others = match code_size::check(subject.program, strategy, &applies, (per_thread, 1)) {
            Ok(_) => strategy.candidates(subject, rank, choice)?,
            Err(error) if error.is_decline() => Vec::new(),
            Err(error) => return Err(error),
        };
        let most = code_size::most_steps(subject.program, strategy, &applies, (per_thread, rank))?;
        for candidates in [vec![Candidates::defaults()], others].concat() {
            let listed = candidates.pyramid_heights.into_iter();
            let listed = listed.map(|steps| steps.map(|steps| steps.min(most))).collect();
            // A block that is asked for gives the tile.
            let tile = candidates.tile.as_ref().filter(|_| choice.block.is_none());
            let asked = choice.pyramid_height.map(|steps| vec![Some(steps)]);
            for pyramid_height in asked.unwrap_or(listed) {
                let opening = Choice {
                    strategy: Some(strategy.name().to_owned()),
                    tile: choice.tile.clone().or_else(|| tile.cloned()),
                    pyramid_height,
                    per_thread: choice.per_thread.clone().or(candidates.per_thread.clone()),
                    region: choice.region.clone(),
                    block: choice.block.clone(),
                };
                if !found.contains(&opening) {
                    found.push(opening);
                }
            }
        }
    }
    Ok(found)
}

/// The schedule of a program with sweeps. The model knows no wavefronts, so the first strategy that
/// takes the other functions has them.
fn beside_sweeps<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    choice: &Choice,
    settings: Settings,
) -> Result<Choice, Error> {
    let program = subject.program;
    let mut others = false;
    for apply in &program.applies {
        others |= program.dependences(&apply.pieces)?.is_empty();
    }
    if !others || choice.strategy.is_some() {
        return Ok(choice.clone());
    }
    let named = strategies::of_target(subject).filter(|strategy| !strategy.sweeps());
    let named =
        named.map(|named| Choice { strategy: Some(named.name().to_owned()), ..choice.clone() });
    let mut declined = None;
    for open in std::iter::once(choice.clone()).chain(named) {
        match lowered(context, &mut copied(subject)?, &open, settings) {
            Ok(_) => return Ok(open),
            Err(error) if error.is_decline() => declined = declined.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    declined.map_or_else(|| Ok(choice.clone()), Err)
}

/// The rank of the shapes to try: the largest of an updated grid, whose kernels take the most time.
/// Grids that are only read have no tiles.
fn rank(program: &Program) -> Result<usize, Error> {
    let updated = program.applies.iter().flat_map(|apply| &apply.updates);
    let ranks = updated.map(|field| Ok(program.grid_of(field)?.rank()));
    ranks.collect::<Result<Vec<_>, Error>>().map(|ranks| ranks.into_iter().max().unwrap_or(0))
}

/// Tiles, lowers, counts and predicts one schedule; none where its blocks fit on no multiprocessor.
fn candidate<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    choice: &Choice,
    settings: Settings,
) -> Result<Option<Candidate>, Error> {
    let mut copy = copied(subject)?;
    let main = lowered(context, &mut copy, choice, settings)?;
    let (program, launches) = (Program::read(&copy)?, tiled::launches(&copy)?);
    let sizes = Large::of(&program);
    let mut kernels = Vec::new();
    let mut exchange = Exchange::default();
    for (name, traffic, times) in &main {
        let launch = launches.iter().find(|launch| launch.name == name);
        let launch = launch.ok_or_else(|| Error::internal(format!("no pass lowered @{name}")))?;
        let count =
            |map| Ok::<_, Error>(sizes.evaluate(map)?.first().copied().unwrap_or(0).max(0) as f64);
        let bands = match &launch.bands {
            Some(bands) => count(bands.rows)? / bands.row_distance.max(1) as f64,
            None => 0.0,
        };
        let grid = launch.grid.iter().map(|map| count(*map)).collect::<Result<Vec<_>, _>>()?;
        // A launch in bands takes the number of its first row of blocks, and no other part.
        let by_rows = launch.bands.is_some() && subject.devices.shape()[1] > 1;
        let part = launch_work::busiest(launch, &sizes, subject.devices)?;
        let Some(part) = part.filter(|_| !by_rows) else {
            return Ok(None);
        };
        for _ in 0..*times {
            exchange =
                exchange.and(exchange::of(subject.program, launch, &sizes, subject.devices)?);
        }
        let blocks = part * grid.iter().product::<f64>();
        let work = launch_work::of(launch, traffic, (blocks, bands), &sizes, subject)?;
        kernels.extend(std::iter::repeat_n(work, *times));
    }
    let schedules = launches.iter().map(|launch| &launch.schedule);
    let Some(schedule) = schedules.max_by_key(|schedule| schedule.steps) else { return Ok(None) };
    let rounds = launches.iter().filter_map(|launch| launch.sweeps).max().unwrap_or(1);
    let updated = subject.program.applies.iter().flat_map(|apply| &apply.updates);
    let points = updated
        .map(|field| sizes.points(subject.program.grid_of(field)?))
        .collect::<Result<Vec<_>, _>>()?;
    let per_thread = &schedule.per_thread;
    // Other functions may have defaults of their own; one number is then not forced on all.
    let alike = launches.iter().all(|launch| launch.schedule.per_thread == *per_thread);
    let steps = u32::try_from(schedule.steps).unwrap_or(1);
    let exchange = exchange.of_step(steps);
    let computing = model::predict(&kernels, steps, subject.device);
    let predicted = computing.map(|computing| {
        let seconds = exchange.beside(computing.seconds, subject, settings);
        (computing.seconds, Prediction { seconds, ..computing })
    });
    Ok(predicted.map(|(computing, prediction)| Candidate {
        choice: Choice {
            pyramid_height: match subject.program.applies.iter().any(|one| !one.repeats.is_empty())
            {
                true => choice.pyramid_height,
                false => Some(schedule.steps / rounds.max(1)),
            },
            per_thread: match alike {
                true => Some(per_thread.clone()),
                false => choice.per_thread.clone(),
            },
            ..choice.clone()
        },
        tile: schedule.tile.clone(),
        per_thread: per_thread.clone(),
        expected: prediction.seconds * model::expected(&kernels, steps, subject.device),
        kernels,
        prediction,
        points: points.into_iter().fold(0.0, f64::max),
        devices: subject.devices,
        exchange,
        computing,
    }))
}
