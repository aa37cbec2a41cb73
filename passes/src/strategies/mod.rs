//! The strategies, one folder each: the ways in which a device runs the tiles of a kernel.

pub mod block;
pub mod naive;
pub mod patch;
pub mod plane;
pub mod relay;
pub mod resident;
pub mod rows;
pub mod slab;
pub mod stream;
pub mod strip;
pub mod warp;
pub mod wavefront;

use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Strategy;
use crate::subject::Subject;
use stencil_dialects::error::{Decline, Error};

/// Every strategy.
pub const ALL: &[&dyn Strategy] = &[
    &block::Block,
    &stream::Stream,
    &warp::Warp,
    &plane::Plane,
    &patch::Patch,
    &resident::Resident,
    &relay::Relay,
    &naive::Naive,
    &strip::Strip,
    &wavefront::Wavefronts,
    &slab::Slab,
    &rows::Rows,
];

/// The strategies for the target of a module: for a processor, for a GPU of NVIDIA's, or for one of
/// another vendor.
pub fn of_target(subject: &Subject) -> impl Iterator<Item = &'static dyn Strategy> + use<> {
    let (processor, ptx) = (subject.processor.is_some(), subject.device.has_ptx());
    ALL.iter().copied().filter(move |strategy| match processor {
        true => strategy.is_for_processors(),
        false => !strategy.is_for_processors() && (ptx || strategy.is_for_all_gpus()),
    })
}

/// The strategy where nothing is asked for. It takes grids of any rank.
pub fn usual(subject: &Subject) -> &'static dyn Strategy {
    if subject.processor.is_some() { &slab::Slab } else { &block::Block }
}

/// Checks that a strategy is for the target of a module.
///
/// # Errors
/// A decline, with the strategies that there are.
pub fn check_target(subject: &Subject, strategy: &dyn Strategy) -> Result<(), Error> {
    if of_target(subject).any(|other| other.name() == strategy.name()) {
        return Ok(());
    }
    let own = match (strategy.is_for_processors(), strategy.is_for_all_gpus()) {
        (true, _) => "processors",
        (false, true) => "GPUs",
        (false, false) => "NVIDIA's GPUs",
    };
    let target = match (subject.processor, subject.device.has_ptx()) {
        (Some(_), _) => "processors",
        (None, true) => "NVIDIA's GPUs",
        (None, false) => "AMD's GPUs",
    };
    let others = list(of_target(subject).map(|other| other.name()), "or");
    let name = strategy.name();
    let message = format!("the strategy {name} is for {own}, not for {target}; choose {others}");
    Err(Error::declined(Decline::Target, message))
}

/// The strategy of a name.
///
/// # Errors
/// A name that no strategy has.
pub fn named(name: &str) -> Result<&'static dyn Strategy, Error> {
    let found = ALL.iter().copied().find(|strategy| strategy.name() == name);
    found.ok_or_else(|| {
        let names = names("and", |_| true);
        Error::user(format!("there is no strategy '{name}'; there are {names}"))
    })
}

/// Whether launches of the strategy of a name take several rounds of steps.
pub fn stays_resident(name: &str) -> bool {
    ALL.iter().any(|strategy| strategy.name() == name && strategy.stays_resident())
}

/// The names of the strategies that a test accepts, with a word before the last.
pub fn names(joint: &str, which: impl Fn(&dyn Strategy) -> bool) -> String {
    let found = ALL.iter().copied().filter(|strategy| which(*strategy));
    list(found.map(|strategy| strategy.name()), joint)
}

/// The strategy of a name for grids of some dimensions.
///
/// # Errors
/// A name that no strategy has, and a strategy that takes no such grids.
pub fn for_rank(name: &str, rank: usize) -> Result<&'static dyn Strategy, Error> {
    let strategy = named(name)?;
    if strategy.ranks().contains(&rank) {
        return Ok(strategy);
    }
    let ranks = list(strategy.ranks().map(|rank| rank.to_string()), "or");
    let dimensions = if strategy.ranks().eq([1]) { "dimension" } else { "dimensions" };
    Err(Error::declined(
        Decline::Rank,
        format!(
            "the strategy {name} is for grids of {ranks} {dimensions}, and this one has {rank}; \
             choose {}",
            names("or", |other| {
                other.is_for_processors() == strategy.is_for_processors()
                    && other.sweeps() == strategy.sweeps()
                    && other.ranks().contains(&rank)
            })
        ),
    ))
}

/// Whether a strategy takes a group.
pub fn takes(strategy: &dyn Strategy, group: &Group) -> bool {
    strategy.sweeps() == group.sweeps && strategy.ranks().contains(&group.hull.rank())
}

/// The strategies to try, in this order, for functions that read values of their own sweep: the one
/// of a name, unless that one takes only other groups.
///
/// # Errors
/// A name that no strategy has, and a strategy that takes none of the groups.
pub fn sweeping(
    subject: &Subject,
    name: Option<&str>,
    groups: &[Group],
) -> Result<Vec<&'static dyn Strategy>, Error> {
    let all = || -> Vec<_> { of_target(subject).filter(|strategy| strategy.sweeps()).collect() };
    let Some(asked) = name.map(named).transpose()? else { return Ok(all()) };
    check_target(subject, asked)?;
    if asked.sweeps() {
        return Ok(vec![asked]);
    }
    if groups.iter().any(|group| takes(asked, group)) {
        return Ok(all());
    }
    Err(Error::declined(
        Decline::Sweep,
        format!(
            "the strategy {} computes all points of a function at once, and this one reads values \
             of its own sweep; choose {}",
            asked.name(),
            list(all().iter().map(|other| other.name()), "or")
        ),
    ))
}

/// Words with commas, and another word before the last.
fn list(words: impl Iterator<Item = impl ToString>, joint: &str) -> String {
    let words: Vec<_> = words.map(|word| word.to_string()).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {joint} {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
