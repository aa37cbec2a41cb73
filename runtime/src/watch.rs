//! Waits of blocks that do not end, which only a fault of the compiler can cause.
//!
//! A block that looked at a flag very often without success gives up. Its next act depends on
//! the first cell of the record that stands behind the flags:
//!
//! | first cell | what the block does |
//! |---|---|
//! | [`NOBODY`] | it traps, because no one would see the record |
//! | [`WATCHED`] | it writes the record and goes on, as do the blocks that come to it later |
//!
//! A run that is waited for sets the first cell before its launches, and the flag to -1. The record
//! is read after the run. Of several waits it has the one for the least flag, for which the others
//! wait too. Two blocks that give up in the same moment may leave the block of one beside the flag
//! of the other.

use crate::expr::Expr;
use std::fmt;

/// Cells from a flag to the next, 256 bytes. Flags side by side in a cache line slow down every
/// block that waits for one of them.
pub const APART: usize = 64;
/// Cells of a record: its state, the block, the flag and the count that it waited for.
pub const CELLS: usize = 4;
/// The state of a record that nobody reads.
pub const NOBODY: i32 = 0;
/// The state of a record that is read at the end of a run.
pub const WATCHED: i32 = 1;
/// The state of a record that a block has written.
pub const WRITTEN: i32 = 2;

/// A wait that did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The buffer with the flag.
    pub buffer: String,
    /// The block that waited.
    pub block: i32,
    /// The flag that it waited for.
    pub flag: i32,
    /// The count that it waited for.
    pub wanted: i32,
    /// What the flag stands at.
    pub found: Option<i32>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buffer, block, flag, wanted, found } = self;
        write!(f, "block {block} waited in vain for flag {flag} of `{buffer}` to reach {wanted}")?;
        if let Some(found) = found {
            write!(f, "; it stands at {found}")?;
        }
        write!(f, ". The results are wrong. This is a fault of the compiler; please report it")
    }
}

/// The cells of so many flags.
pub fn cells(flags: Expr) -> Expr {
    flags * APART as i64
}

/// The cells of so many flags and a record.
pub fn with_record(flags: Expr) -> Expr {
    cells(flags) + CELLS as i64
}

/// Asks for a record behind flags, given as the bytes of their buffer.
pub fn arm(cells: &mut [u8]) {
    let start = cells.len().checked_sub(CELLS * 4);
    if let Some(record) = start.and_then(|start| cells.get_mut(start..)) {
        for (cell, value) in record.chunks_exact_mut(4).zip([WATCHED, 0, -1, 0]) {
            cell.copy_from_slice(&value.to_ne_bytes());
        }
    }
}

/// The record behind flags, given as the bytes of their buffer, if a block has written it.
pub fn read(buffer: &str, cells: &[u8]) -> Option<Stuck> {
    let cell = |place: usize| -> Option<i32> {
        let bytes = cells.get(place.checked_mul(4)?..)?.first_chunk()?;
        Some(i32::from_ne_bytes(*bytes))
    };
    let start = (cells.len() / 4).checked_sub(CELLS)?;
    let flag = cell(start + 2)?;
    (cell(start)? == WRITTEN).then_some(Stuck {
        buffer: buffer.to_owned(),
        block: cell(start + 1)?,
        flag,
        wanted: cell(start + 3)?,
        found: usize::try_from(flag).ok().and_then(|flag| cell(flag.checked_mul(APART)?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(cells: &[i32]) -> Vec<u8> {
        cells.iter().flat_map(|cell| cell.to_ne_bytes()).collect()
    }

    /// Three flags, of which block 2 waited for the second.
    #[test]
    fn a_record_tells_the_block_and_the_flag() {
        let with = |record: [i32; CELLS]| {
            let flags = [7, 5, 0].into_iter().flat_map(|flag| [vec![flag], vec![1; APART - 1]]);
            bytes(&flags.flatten().chain(record).collect::<Vec<_>>())
        };
        let mut cells = with([0; CELLS]);
        arm(&mut cells);
        assert_eq!(cells, with([WATCHED, 0, -1, 0]));
        assert_eq!(read("flags of f", &cells), None);
        let stuck = read("flags of f", &with([WRITTEN, 2, 1, 9])).unwrap();
        assert_eq!(
            stuck.to_string(),
            "block 2 waited in vain for flag 1 of `flags of f` to reach 9; it stands at 5. The \
             results are wrong. This is a fault of the compiler; please report it"
        );
    }

    #[test]
    fn buffers_without_room_have_no_record() {
        let mut cells = bytes(&[WRITTEN, 1, 2]);
        arm(&mut cells);
        assert_eq!(cells, bytes(&[WRITTEN, 1, 2]));
        assert_eq!(read("flags", &cells), None);
    }
}
