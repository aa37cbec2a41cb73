//! Typed views of the `peer` dialect: flags by which blocks of one launch wait for each other.
//!
//! Flags are a memref of one dimension of i32, an index is an `index`, a count an i32 that grows
//! from sweep to sweep, so that flags are never cleared. It wraps after 2^32, which no wait
//! notices: see [`is_late`].

use crate::Signature;
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{Op, Val};

/// Names of the operations.
pub const SIGNAL: &str = "peer.signal";
/// See [`SIGNAL`].
pub const WAIT: &str = "peer.wait";
/// See [`SIGNAL`].
pub const ARRIVE: &str = "peer.arrive";

/// Every operation, as the IRDL text declares it.
pub const OPERATIONS: &[Signature] = &[
    Signature {
        name: SIGNAL,
        operands: &["flags", "index", "count"],
        results: &[],
        attributes: &[],
        optional: &[],
    },
    Signature {
        name: WAIT,
        operands: &["flags", "index", "count"],
        results: &[],
        attributes: &[],
        optional: &[],
    },
    Signature {
        name: ARRIVE,
        operands: &["flags", "index", "count"],
        results: &["before"],
        attributes: &[],
        optional: &[],
    },
];

/// Builds `peer.signal`: the flag becomes the count, released at device scope.
pub fn signal<'c>(
    builder: &Builder<'c>,
    flags: Val<'c>,
    index: Val<'c>,
    count: Val<'c>,
) -> Result<Op<'c>, Error> {
    builder.op(SIGNAL, &[flags, index, count], &[], &[])
}

/// Whether a flag stands before a count. Both wrap, and lie less than 2^31 apart.
pub fn is_late(flag: i32, count: i32) -> bool {
    flag.wrapping_sub(count) < 0
}

/// Builds `peer.wait`: returns once the flag is not late for the count, acquired at device scope.
pub fn wait<'c>(
    builder: &Builder<'c>,
    flags: Val<'c>,
    index: Val<'c>,
    count: Val<'c>,
) -> Result<Op<'c>, Error> {
    builder.op(WAIT, &[flags, index, count], &[], &[])
}

/// Builds `peer.arrive`: adds a count to the flag, released at device scope; gives what the flag
/// stood at before.
pub fn arrive<'c>(
    builder: &Builder<'c>,
    flags: Val<'c>,
    index: Val<'c>,
    count: Val<'c>,
) -> Result<Val<'c>, Error> {
    builder.value(ARRIVE, &[flags, index, count], builder.integer_type(32), &[])
}
