//! The tile of a launch of affine loops, as an attribute of its outermost loop.

use crate::attribute;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::operation::OperationLike;

const NEST_TILE: &str = "tiled.nest_tile";
const CONSTANTS: &str = "tiled.nest_constants";
const NOT_TILED: &str = "tiled.not_tiled";
const BLOCKED: &str = "blocked";
const COPIERS: &str = "copiers";
const THREADS: &str = "threads";
const PER_THREAD: &str = "per_thread";
const TIME: &str = "time";

/// The tile of a block: its threads, and the iterations between two copies to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestTile {
    /// Threads of a block along each axis, slowest first.
    pub threads: Vec<i64>,
    /// Threads of a block that share the copies of one thread along the axes, itself included. The
    /// others do nothing else. The attribute may leave out 1.
    pub copiers: i64,
    /// Iterations of each thread along each axis, slowest first.
    pub per_thread: Vec<i64>,
    /// Whether the iterations of a thread lie side by side: blocked shares. Else they go round,
    /// four at a time: cyclic shares. The attribute may leave out `false`.
    pub blocked: bool,
    /// Iterations of a loop in time that share a copy.
    pub time: i64,
}

/// The tile that a loop states.
///
/// # Errors
/// An attribute of another form, with the place of the loop.
pub fn nest_tile(op: Op) -> Result<Option<NestTile>, Error> {
    let Some(stated) = mlir::attribute(op, NEST_TILE) else { return Ok(None) };
    let integers = |name: &str| attribute::entry(stated, name).and_then(attribute::as_integers);
    let time = attribute::entry(stated, TIME).and_then(attribute::as_integer);
    let copiers = match attribute::entry(stated, COPIERS) {
        Some(copiers) => attribute::as_integer(copiers),
        None => Some(1),
    };
    let blocked = match attribute::entry(stated, BLOCKED) {
        Some(blocked) => attribute::as_boolean(blocked),
        None => Some(false),
    };
    match (integers(THREADS), integers(PER_THREAD), copiers, time, blocked) {
        (Some(threads), Some(per_thread), Some(copiers), Some(time), Some(blocked)) => {
            Ok(Some(NestTile { threads, copiers, per_thread, blocked, time }))
        }
        _ => Err(Error::new(
            mlir::place(op.location()),
            format!(
                "{NEST_TILE} needs {THREADS} and {PER_THREAD}, each an array<i64>, and {TIME}, \
                 an integer; {COPIERS} is an integer, {BLOCKED} true or false"
            ),
        )),
    }
}

/// States the tile of a loop.
pub fn set_nest_tile<'c>(context: &'c Context, op: Op<'c>, tile: &NestTile) {
    let mut entries = vec![
        (PER_THREAD, attribute::integers(context, &tile.per_thread)),
        (THREADS, attribute::integers(context, &tile.threads)),
        (TIME, attribute::integer(context, tile.time)),
    ];
    if tile.copiers != 1 {
        entries.push((COPIERS, attribute::integer(context, tile.copiers)));
    }
    if tile.blocked {
        entries.push((BLOCKED, attribute::boolean(context, true)));
    }
    mlir::remove_attribute(op, NOT_TILED);
    mlir::set_attribute(op, NEST_TILE, attribute::dictionary(context, &entries));
}

/// Notes why a loop has no tile.
pub fn set_not_tiled<'c>(context: &'c Context, op: Op<'c>, reason: &str) {
    mlir::set_attribute(op, NOT_TILED, attribute::string(context, reason));
}

/// The arrays that a loop's launch will read from constant memory, by name.
///
/// # Errors
/// An attribute of another form, with the place of the loop.
pub fn nest_constants<'c>(op: Op<'c>) -> Result<Vec<&'c str>, Error> {
    Ok(attribute::read_optional(op, CONSTANTS, attribute::as_strings)?.unwrap_or_default())
}

/// Names the arrays that a loop's launch will read from constant memory.
pub fn set_nest_constants<'c>(context: &'c Context, op: Op<'c>, names: &[&str]) {
    mlir::set_attribute(op, CONSTANTS, attribute::strings(context, names));
}
