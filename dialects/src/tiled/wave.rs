//! How a wavefront kernel is skewed, and how its blocks wait for each other: attributes that passes
//! note on a tile kernel, each by itself.

use super::{PACE, SHEAR, SKEW, SWEEPS, SYNC};
use crate::attribute::{self, read, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Module};

/// The skewing vector of a kernel's tiles: points of one time are independent. The time of a point
/// is its fastest coordinate and, for each of its rows, the times of that dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// Times between a row and the next along each dimension but the fastest: `tiled.skew`.
    pub times: Vec<i64>,
    /// Rows by which the second of three coordinates is moved for each row of the first:
    /// `tiled.shear`, left out for 0.
    pub shear: i64,
}

impl Skew {
    /// A dependence vector's rows, sheared, and its distance in time; none beyond 64 bits.
    pub fn distance(&self, vector: &[i64]) -> Option<(Vec<i64>, i64)> {
        let (last, rows) = vector.split_last()?;
        let mut rows = rows.to_vec();
        if let [first, second] = rows.as_mut_slice() {
            *second = first.checked_mul(self.shear)?.checked_add(*second)?;
        }
        let times = rows
            .iter()
            .zip(&self.times)
            .try_fold(*last, |time, (rows, each)| time.checked_add(rows.checked_mul(*each)?))?;
        Some((rows, times))
    }
}

/// How the blocks of a wavefront kernel wait for tiles of other blocks: `tiled.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Each block waits by a flag for the tile rows on which its own depends.
    Peer,
    /// All blocks meet after each diagonal of tiles.
    Grid,
}

impl Waiting {
    const ALL: [Self; 2] = [Self::Peer, Self::Grid];

    /// Its word in the IR.
    pub fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Grid => "grid",
        }
    }
}

/// The notes of passes on a wavefront kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wave {
    /// None where tiles are square: cut along the coordinates.
    pub skew: Option<Skew>,
    /// None where no block waits: each diagonal of tiles is a launch.
    pub waiting: Option<Waiting>,
    /// The sweeps of a launch, each of which follows the one before: `tiled.sweeps`. Of tiles that
    /// stay resident they are rounds of several steps. None for one.
    pub sweeps: Option<i64>,
}

impl Wave {
    /// The sweeps of a launch.
    pub fn all_sweeps(&self) -> i64 {
        self.sweeps.unwrap_or(1)
    }
}

pub(super) fn read_wave(op: Op) -> Result<Wave, Error> {
    let skew = match mlir::attribute(op, SKEW) {
        None => None,
        Some(_) => Some(Skew {
            times: read(op, SKEW, attribute::as_integers)?,
            shear: read_optional(op, SHEAR, attribute::as_integer)?.unwrap_or(0),
        }),
    };
    let word = read_optional(op, SYNC, attribute::as_string)?;
    let waiting = word.map(|word| {
        let found = Waiting::ALL.into_iter().find(|waiting| waiting.name() == word);
        found.ok_or_else(|| {
            Error::new(
                mlir::place(op.location()),
                format!("{SYNC} must be \"peer\" or \"grid\", or left out, but is \"{word}\""),
            )
        })
    });
    let sweeps = read_optional(op, SWEEPS, attribute::as_integer)?;
    Ok(Wave { skew, waiting: waiting.transpose()?, sweeps })
}

/// Notes the skewing vector of a tile kernel.
pub fn set_skew(builder: &Builder, kernel: Op, skew: &Skew) {
    let context = builder.context;
    mlir::set_attribute(kernel, SKEW, attribute::integers(context, &skew.times));
    if skew.shear != 0 {
        mlir::set_attribute(kernel, SHEAR, attribute::integer(context, skew.shear));
    }
}

/// Notes how the blocks of a tile kernel wait.
pub fn set_waiting(builder: &Builder, kernel: Op, waiting: Waiting) {
    mlir::set_attribute(kernel, SYNC, attribute::string(builder.context, waiting.name()));
}

/// The measured pace of a module's wavefronts, if it has one: picoseconds of a diagonal of a tile,
/// and of a handover.
///
/// # Errors
/// An attribute that is not two positive numbers.
pub fn pace(module: &Module) -> Result<Option<[i64; 2]>, Error> {
    let op = mlir::module_op(module);
    let Some(numbers) = read_optional(op, PACE, attribute::as_integers)? else { return Ok(None) };
    match numbers.as_slice() {
        &[diagonal, handover] if diagonal > 0 && handover >= 0 => Ok(Some([diagonal, handover])),
        _ => Err(Error::new(
            mlir::place(op.location()),
            format!(
                "{PACE} is the picoseconds of a diagonal, from 1 on, and of a handover, from 0 on"
            ),
        )),
    }
}

/// Notes the measured pace of a module's wavefronts, as [`pace`] reads it.
pub fn set_pace<'c>(context: &'c Context, module: &Module<'c>, pace: [i64; 2]) {
    mlir::set_attribute(mlir::module_op(module), PACE, attribute::integers(context, &pace));
}

/// Makes a launch of a tile kernel take so many sweeps.
pub fn set_sweeps(builder: &Builder, kernel: Op, sweeps: i64) {
    mlir::set_attribute(kernel, SWEEPS, attribute::integer(builder.context, sweeps));
}

/// The attribute of a lowered kernel for the sweeps of a launch, if it has several.
pub fn sweeps_attribute<'c>(
    builder: &Builder<'c>,
    wave: &Wave,
) -> Option<(&'static str, Attribute<'c>)> {
    wave.sweeps.map(|sweeps| (SWEEPS, attribute::integer(builder.context, sweeps)))
}
