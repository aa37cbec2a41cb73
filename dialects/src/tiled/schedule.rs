//! Schedules: that of a kernel, what a module has chosen for kernels to be made, and the order of
//! launches.

use super::{
    BLOCK, HALO, HEIGHT, HEIGHTS, PER_THREAD, REGION, REPEAT, STEPS, STRATEGY, TILE, UNTIL,
};
use crate::attribute::{self, read, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute, Module};
use std::collections::BTreeSet;

/// How a tile kernel is to be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// `naive`, `block`, ...
    pub strategy: String,
    /// Cells of the tile per dimension, slowest first.
    pub tile: Vec<i64>,
    /// Cells a thread per dimension, slowest first.
    pub per_thread: Vec<i64>,
    /// Steps a launch of this kernel (0 for all but the last kernel of a step that takes several).
    pub steps: i64,
    /// What each apply computes.
    pub region: Region,
}

impl Schedule {
    /// The steps that a launch of the kernel works on: at least 1, where a step takes several
    /// kernels too.
    pub fn steps_per_launch(&self) -> i64 {
        self.steps.max(1)
    }
}

/// Which cells the applies of a kernel compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Region {
    /// Each apply computes the cells that later applies and the tile need.
    #[default]
    Shrinking,
    /// Every apply computes the first apply's cells, so each thread does the same work in every
    /// step. Cells beyond the needed ones may come from cells that no tile holds; no stored cell
    /// comes from them.
    Fixed,
}

impl Region {
    const ALL: [(&'static str, Self); 2] = [("shrinking", Self::Shrinking), ("fixed", Self::Fixed)];

    /// The region of a name.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|(word, _)| *word == name);
        let wrong =
            || Error::user(format!("there is no region '{name}'; there are shrinking and fixed"));
        found.map(|(_, region)| region).ok_or_else(wrong)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, region)| *region == self).map_or("", |(name, _)| name)
    }
}

pub(super) fn read_schedule(op: Op) -> Result<Schedule, Error> {
    Ok(Schedule {
        strategy: read(op, STRATEGY, attribute::as_string)?.to_owned(),
        tile: read(op, TILE, attribute::as_integers)?,
        per_thread: read(op, PER_THREAD, attribute::as_integers)?,
        steps: read(op, STEPS, attribute::as_integer)?,
        region: read_region(op)?,
    })
}

fn read_region(op: Op) -> Result<Region, Error> {
    let Some(attribute) = mlir::attribute(op, REGION) else { return Ok(Region::default()) };
    let at = |error: Error| Error::new(mlir::place(op.location()), error.message);
    Region::parse(attribute::as_string(attribute).unwrap_or_default()).map_err(at)
}

/// Attributes of a tile kernel's function.
pub fn schedule_attributes<'c>(
    builder: &Builder<'c>,
    schedule: &Schedule,
) -> Vec<(&'static str, Attribute<'c>)> {
    let context = builder.context;
    let mut attributes = vec![
        (STRATEGY, attribute::string(context, &schedule.strategy)),
        (TILE, attribute::integers(context, &schedule.tile)),
        (PER_THREAD, attribute::integers(context, &schedule.per_thread)),
        (STEPS, attribute::integer(context, schedule.steps)),
    ];
    if schedule.region != Region::default() {
        attributes.push((REGION, attribute::string(context, schedule.region.name())));
    }
    attributes
}

/// A module's schedule for kernels that are still to be made; what is none is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// See [`Schedule::strategy`].
    pub strategy: Option<String>,
    /// See [`Schedule::tile`].
    pub tile: Option<Vec<i64>>,
    /// Steps a launch of the main kernel.
    pub pyramid_height: Option<i64>,
    /// See [`Schedule::per_thread`]; one number alone is for the dimension that the strategy
    /// widens.
    pub per_thread: Option<Vec<i64>>,
    /// The name of a [`Region`].
    pub region: Option<String>,
    /// Threads of a block of [`Region::Fixed`], slowest dimension first, from which the tile
    /// follows.
    pub block: Option<Vec<i64>>,
}

/// Reads a module's choice of schedule.
///
/// # Errors
/// An attribute of the wrong kind.
pub fn choice(module: &Module) -> Result<Choice, Error> {
    let op = mlir::module_op(module);
    let text = |name| Ok(read_optional(op, name, attribute::as_string)?.map(str::to_owned));
    Ok(Choice {
        strategy: text(STRATEGY)?,
        tile: read_optional(op, TILE, attribute::as_integers)?,
        per_thread: read_optional(op, PER_THREAD, attribute::as_integers)?,
        pyramid_height: read_optional(op, STEPS, attribute::as_integer)?,
        region: text(REGION)?,
        block: read_optional(op, BLOCK, attribute::as_integers)?,
    })
}

/// Writes a module's choice of schedule.
pub fn set_choice<'c>(context: &'c Context, module: &Module<'c>, choice: &Choice) {
    for (name, value) in entries(context, choice) {
        mlir::set_attribute(mlir::module_op(module), name, value);
    }
}

/// What a choice has, as attributes.
fn entries<'c>(context: &'c Context, choice: &Choice) -> Vec<(&'static str, Attribute<'c>)> {
    let entries = [
        (STRATEGY, choice.strategy.as_ref().map(|strategy| attribute::string(context, strategy))),
        (TILE, choice.tile.as_ref().map(|tile| attribute::integers(context, tile))),
        (PER_THREAD, choice.per_thread.as_ref().map(|cells| attribute::integers(context, cells))),
        (STEPS, choice.pyramid_height.map(|steps| attribute::integer(context, steps))),
        (REGION, choice.region.as_ref().map(|region| attribute::string(context, region))),
        (BLOCK, choice.block.as_ref().map(|threads| attribute::integers(context, threads))),
    ];
    entries.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Where a list of launches stands in the loop of a `stencil.until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// In the loop: between two looks at the condition.
    Body,
    /// Behind it, where the condition was never met: the steps that are left over.
    Otherwise,
}

impl Part {
    const ALL: [(&'static str, Self); 2] = [("body", Self::Body), ("otherwise", Self::Otherwise)];
}

/// `tiled.repeat`: a list of launches, repeated.
#[derive(Clone, Debug)]
pub struct Repeat<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// How often; one result, one symbol a run-time size, then the number of steps.
    pub count: AffineMap<'c>,
    /// Kernels and reductions in order.
    pub kernels: Vec<&'c str>,
    /// Where it stands in a loop, if it does: the attribute `tiled.until`.
    pub part: Option<Part>,
    /// The alternative that it belongs to, if there are several.
    pub height: Option<Height>,
}

/// One of several pyramid heights: the attributes `tiled.height` and `tiled.halo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Height {
    /// Steps of a launch of the main kernel.
    pub steps: i64,
    /// How far a step reads, per dimension, slowest first.
    pub reach: Vec<i64>,
}

/// Makes a `tiled.repeat` a part of the alternative of a pyramid height.
pub fn set_height(builder: &Builder, repeat: Op, height: &Height) {
    mlir::set_attribute(repeat, HEIGHT, attribute::integer(builder.context, height.steps));
    mlir::set_attribute(repeat, HALO, attribute::integers(builder.context, &height.reach));
}

fn height(op: Op) -> Result<Option<Height>, Error> {
    let Some(steps) = read_optional(op, HEIGHT, attribute::as_integer)? else { return Ok(None) };
    Ok(Some(Height { steps, reach: read(op, HALO, attribute::as_integers)? }))
}

/// The schedules of several pyramid heights, from which a run chooses; the usual one first.
///
/// # Errors
/// An attribute of the wrong kind.
pub fn heights(module: &Module) -> Result<Vec<Choice>, Error> {
    let op = mlir::module_op(module);
    let Some(list) = mlir::attribute(op, HEIGHTS) else { return Ok(Vec::new()) };
    let wrong = || {
        let message = format!("{HEIGHTS} is a list of schedules, each with {STRATEGY} and {STEPS}");
        Error::new(mlir::place(op.location()), message)
    };
    let entries = attribute::as_array(list).ok_or_else(wrong)?;
    let entries = entries.into_iter().map(|entry| choice_of(entry).ok_or_else(wrong));
    let choices = entries.collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    match choices.iter().find(|choice| !seen.insert(choice.pyramid_height)) {
        None => Ok(choices),
        Some(twice) => {
            let height = twice.pyramid_height.unwrap_or(1);
            let message = format!("{HEIGHTS} has two schedules of {height} steps; leave one out");
            Err(Error::new(mlir::place(op.location()), message))
        }
    }
}

/// Takes the schedules of several pyramid heights away, for others to be chosen.
pub fn remove_heights(module: &Module) {
    mlir::remove_attribute(mlir::module_op(module), HEIGHTS);
}

/// A schedule as an entry of a list.
fn choice_of(entry: Attribute<'_>) -> Option<Choice> {
    let integers = |name| attribute::entry(entry, name).and_then(attribute::as_integers);
    Some(Choice {
        strategy: Some(attribute::entry(entry, STRATEGY).and_then(attribute::as_string)?.into()),
        tile: integers(TILE),
        per_thread: integers(PER_THREAD),
        pyramid_height: Some(attribute::entry(entry, STEPS).and_then(attribute::as_integer)?),
        region: attribute::entry(entry, REGION).and_then(attribute::as_string).map(str::to_owned),
        block: integers(BLOCK),
    })
}

/// Writes the schedules of several pyramid heights.
pub fn set_heights<'c>(context: &'c Context, module: &Module<'c>, heights: &[Choice]) {
    let entry = |choice: &Choice| attribute::dictionary(context, &entries(context, choice));
    let list: Vec<_> = heights.iter().map(entry).collect();
    mlir::set_attribute(mlir::module_op(module), HEIGHTS, attribute::array(context, &list));
}

/// Puts a `tiled.repeat` in the loop of a `stencil.until`.
pub fn set_part(builder: &Builder, repeat: Op, part: Part) {
    let name = Part::ALL.into_iter().find(|(_, one)| *one == part).map_or("", |(name, _)| name);
    mlir::set_attribute(repeat, UNTIL, attribute::string(builder.context, name));
}

/// Gives a `tiled.repeat` another list of kernels.
pub fn set_kernels(builder: &Builder, repeat: Op, kernels: &[String]) {
    mlir::set_attribute(repeat, "kernels", attribute::symbols(builder.context, kernels));
}

fn part(op: Op) -> Result<Option<Part>, Error> {
    let Some(name) = read_optional(op, UNTIL, attribute::as_string)? else { return Ok(None) };
    let found = Part::ALL.into_iter().find(|(word, _)| *word == name);
    let wrong = || {
        let message = format!("{UNTIL} is \"body\" or \"otherwise\", not \"{name}\"");
        Error::new(mlir::place(op.location()), message)
    };
    found.map(|(_, part)| Some(part)).ok_or_else(wrong)
}

/// The host schedule.
pub fn repeats<'c>(module: &Module<'c>) -> Result<Vec<Repeat<'c>>, Error> {
    mlir::operations(mlir::body(module))
        .into_iter()
        .filter(|op| mlir::name(*op) == REPEAT)
        .map(|op| {
            Ok(Repeat {
                op,
                count: read(op, "count", attribute::as_map)?,
                kernels: read(op, "kernels", attribute::as_symbols)?,
                part: part(op)?,
                height: height(op)?,
            })
        })
        .collect()
}
