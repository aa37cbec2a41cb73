//! A choice of schedule as options of a pass: what is asked for, the rest left open.

use crate::options::Options;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::tiled::{self, Choice, MOST_CELLS, MOST_STEPS, Region};
use stencil_runtime::device::Device;

/// The option for [`Choice::strategy`].
pub const STRATEGY: (&str, &str) = ("strategy", "how tiles are run (default: chosen)");
/// The option for [`Choice::tile`].
pub const TILE: (&str, &str) = ("tile", "cells of a tile per dimension, slowest first");
/// The option for [`Choice::pyramid_height`].
pub const PYRAMID_HEIGHT: (&str, &str) = ("pyramid-height", "steps per launch");
/// The option for [`Choice::per_thread`].
pub const PER_THREAD: (&str, &str) = (
    "per-thread",
    "cells per thread and dimension, or one number for the dimension that the strategy widens",
);
/// The option for [`Choice::region`].
pub const REGION: (&str, &str) =
    ("region", "the cells that each apply computes: shrinking (default) or fixed");

/// The option for [`Choice::block`].
pub const BLOCK: (&str, &str) =
    ("block", "threads of a block of fixed regions, slowest first, in place of the tile");

/// The choice that options hold.
///
/// # Errors
/// A value that is no number, or one out of range.
pub fn read(options: &Options) -> Result<Choice, Error> {
    Ok(Choice {
        strategy: options.text(STRATEGY.0).map(str::to_owned),
        tile: options.integers(TILE.0, 1..=MOST_CELLS)?,
        pyramid_height: options.integer(PYRAMID_HEIGHT.0, 1..=MOST_STEPS)?,
        per_thread: options.integers(PER_THREAD.0, 1..=MOST_CELLS)?,
        region: options.text(REGION.0).map(str::to_owned),
        block: options.integers(BLOCK.0, 1..=MOST_CELLS)?,
    })
}

/// A choice as options: the inverse of [`read`].
pub fn options(choice: &Choice) -> Vec<(&'static str, String)> {
    let list = |values: &Vec<i64>| values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let options = [
        (STRATEGY.0, choice.strategy.clone()),
        (TILE.0, choice.tile.as_ref().map(list)),
        (PYRAMID_HEIGHT.0, choice.pyramid_height.map(|height| height.to_string())),
        (PER_THREAD.0, choice.per_thread.as_ref().map(list)),
        (REGION.0, choice.region.clone()),
        (BLOCK.0, choice.block.as_ref().map(list)),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The region of a choice: fixed where the threads of a block are asked for.
///
/// # Errors
/// A name that is no region, and what excludes the other.
pub fn region(choice: &Choice) -> Result<Region, Error> {
    let asked = choice.region.as_deref().map(Region::parse).transpose()?;
    if choice.block.is_none() {
        return Ok(asked.unwrap_or_default());
    }
    if choice.tile.is_some() {
        return Err(Error::user("block and tile both give the size of a tile; leave one out"));
    }
    match asked {
        None | Some(Region::Fixed) => Ok(Region::Fixed),
        Some(other) => Err(Error::user(format!(
            "block is for fixed regions, and region is {}; leave region out, or give a tile in \
             place of block",
            other.name()
        ))),
    }
}

/// The cells of all threads of a block, per dimension.
///
/// # Errors
/// More threads than a block of the device has, and more cells than a tile may have.
pub fn cells(block: &[i64], per_thread: &[i64], device: &Device) -> Result<Vec<i64>, Error> {
    let threads = block.iter().fold(1, |all: i64, one| all.saturating_mul(*one));
    let most = i64::from(device.threads_per_block);
    if threads > most {
        return Err(Error::user(format!(
            "the block has {threads} threads, and one of this device has {most} at most; make \
             block smaller"
        )));
    }
    let cells: Vec<i64> =
        block.iter().zip(per_thread).map(|(threads, each)| threads.saturating_mul(*each)).collect();
    match cells.iter().all(|cells| *cells <= MOST_CELLS) {
        true => Ok(cells),
        false => Err(Error::user(format!(
            "the threads of block have more than {MOST_CELLS} cells along a dimension; make block \
             or per-thread smaller"
        ))),
    }
}

/// Checks a choice against the ranges of [`read`].
///
/// # Errors
/// A number out of range.
pub fn check(choice: &Choice) -> Result<(), Error> {
    let mut given = Options::default();
    options(choice).into_iter().for_each(|(name, value)| given.set(name, value));
    read(&given).map(drop)
}

/// A choice whose open parts are taken from the module.
///
/// # Errors
/// An attribute of the module of the wrong kind, and a number out of range.
pub fn completed(choice: &Choice, module: &Module) -> Result<Choice, Error> {
    check(choice)?;
    let (choice, by) = (choice.clone(), tiled::choice(module)?);
    let choice = Choice {
        strategy: choice.strategy.or(by.strategy),
        tile: choice.tile.or(by.tile),
        pyramid_height: choice.pyramid_height.or(by.pyramid_height),
        per_thread: choice.per_thread.or(by.per_thread),
        region: choice.region.or(by.region),
        block: choice.block.or(by.block),
    };
    // The options were checked before, so an error stands in the module.
    check(&choice).map_err(|error| error.at(mlir::place(mlir::module_op(module).location())))?;
    Ok(choice)
}
