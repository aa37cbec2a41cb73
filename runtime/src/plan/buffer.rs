//! Device buffers as a plan declares them, and how their cells lie in memory.

use crate::array::Element;
use crate::expr::Expr;
use crate::number::Numeral;
use serde::{Deserialize, Serialize};

/// A device buffer. Its name stands for memory; a rotation hands the memory on to other names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BufferDecl {
    /// Its name.
    pub name: String,
    /// Its use.
    pub kind: BufferKind,
    /// Type of a cell.
    pub element: Element,
    /// Cells per dimension, slowest first.
    pub extents: Vec<Expr>,
    /// The cell of the field at which it begins, per dimension; left out for the first cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<Expr>,
    /// How its cells lie in memory.
    #[serde(default, skip_serializing_if = "BufferLayout::is_row_major")]
    pub layout: BufferLayout,
    /// Its content when a run begins.
    pub start: Start,
    /// The variable of the code, in constant memory, that is its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<String>,
    /// The device on which it lies, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device: u32,
}

/// The use of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BufferKind {
    /// Cells of a field: its current value, or room for the next one.
    Field,
    /// Memory that kernels use among themselves.
    Scratch,
    /// Counters by which blocks wait for each other: 32-bit integers, counted in epochs.
    Flags,
    /// The same, and behind them four cells for the record of a wait that does not end.
    Watched,
    /// Results of reductions, which the schedule can compare.
    Reduction,
}

/// The content of a buffer when a run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Zeros.
    Zeros,
    /// The input of a field, from the buffer's origin on; zeros for a temp field.
    Input(String),
    /// The inputs of all fields that a declared field of structs or vecs consists of, of a buffer
    /// with the layout `records`.
    Record(String),
    /// A number in each cell.
    Value(Numeral),
}

/// How the cells of a buffer lie in memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BufferLayout {
    /// Row after row, no padding.
    #[default]
    RowMajor,
    /// Row after row, each of `pitch` cells.
    Padded {
        /// Cells from the start of a row to that of the next; at least those of a row.
        pitch: Expr,
    },
    /// Bands of `rows` rows (of the two fastest dimensions), the last one filled up. Within a band
    /// the cell of row `r` and column `c` lies at `(r + c) * rows + r`, so that those of a diagonal
    /// lie side by side.
    Hybrid {
        /// Rows of a band.
        rows: u32,
    },
    /// Blocks of cells one after the other, row-major in themselves and among each other; the last
    /// ones are filled up.
    Blocked {
        /// Cells of a block per dimension, slowest first.
        block: Vec<u32>,
    },
    /// An array of structs, or of blocks: cells row after row without padding, each of as many
    /// numbers as a struct or vec has.
    Records {
        /// Numbers of a cell.
        numbers: u32,
        /// Cells of a block, row-major: the first numbers of all of them lie side by side, then
        /// the second ones, and so on. The last block is filled up. A block of one is a struct.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        block: u32,
    },
}

impl BufferLayout {
    /// Whether cells lie row after row without padding.
    pub fn is_row_major(&self) -> bool {
        *self == Self::RowMajor
    }
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Whether a number may be left out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn is_zero(number: &u32) -> bool {
    *number == 0
}
