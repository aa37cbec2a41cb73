//! The launch plan: what a compile produces beside the PTX, and all that a run needs to know.
//!
//! A plan is JSON. Sizes are expressions in the run-time params and in `steps`
//! (`crate::expr::Expr`, written as text such as `(N + 63) floordiv 64`).

use crate::array::Element;
use crate::expr::Expr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format; a plan of another version is refused.
pub const FORMAT: u32 = 1;

/// Everything that a run needs beside the PTX and the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The format's version, [`FORMAT`].
    pub format: u32,
    /// The program's name.
    pub program: String,
    /// The GPU architecture of the PTX, such as `sm_90`.
    pub target: String,
    /// Run-time sizes, in the order of declaration.
    pub params: Vec<String>,
    /// Sizes that the compile fixed, for the record.
    pub constants: BTreeMap<String, i64>,
    /// Run-time scalars.
    pub scalars: Vec<ScalarDecl>,
    /// Fields, in the order of declaration.
    pub fields: Vec<FieldDecl>,
    /// Steps of a run unless told otherwise.
    pub steps: Expr,
    /// Conditions on the sizes.
    pub checks: Vec<Check>,
    /// Bits of an index inside the kernels: 32 or 64. Run-time sizes are passed so wide.
    pub index_width: u32,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// What to launch, in order.
    pub schedule: Vec<Repeat>,
    /// How the kernels were made.
    pub settings: Settings,
}

/// A run-time scalar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalarDecl {
    /// Its name.
    pub name: String,
    /// Its type.
    pub element: Element,
    /// The value unless one is set.
    pub default: Option<f64>,
}

/// What a field is to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Input and output.
    State,
    /// Input only.
    Const,
    /// Neither; starts as zeros.
    Temp,
}

/// A field and its place in memory: row-major, no padding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldDecl {
    /// Its name.
    pub name: String,
    /// Type of a cell.
    pub element: Element,
    /// Input, output, both or neither.
    pub role: Role,
    /// Cells per dimension, slowest first.
    pub extents: Vec<Expr>,
    /// Device buffers: 2 where a kernel reads one and writes the other, else 1.
    pub buffers: u32,
}

/// A condition on the sizes: `value >= 0`, unless one of `unless_negative` is negative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Must not be negative.
    pub value: Expr,
    /// If any of these is negative (an empty piece), the condition is void.
    pub unless_negative: Vec<Expr>,
    /// What to say when it fails.
    pub message: String,
}

/// One kernel of the PTX.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its name in the PTX.
    pub name: String,
    /// Blocks of the launch in x, y, z.
    pub grid: [Expr; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Static shared memory of a block in bytes, for the record.
    pub static_shared: u64,
    /// Dynamic shared memory of a block in bytes.
    pub dynamic_shared: u64,
    /// How many steps one launch takes. Several kernels of one step say 0, the last says 1.
    pub steps: u32,
    /// Arguments in order.
    pub arguments: Vec<Argument>,
}

/// What is passed to a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// The current buffer of a field.
    Read(String),
    /// The other buffer of a field; after the launch the two are swapped.
    Write(String),
    /// The current buffer of a field, updated in place.
    ReadWrite(String),
    /// A run-time size, an integer of `index_width` bits.
    Param(String),
    /// A run-time scalar of its own type.
    Scalar(String),
    /// The number of the first step of the launch, an i64.
    Step,
}

/// A list of launches, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often; may use `steps`.
    pub count: Expr,
    /// Names of the kernels, in order.
    pub kernels: Vec<String>,
}

/// How the kernels were made, for reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `naive`, `block`, ...
    pub strategy: String,
    /// Cells of a tile's result per dimension, slowest first.
    pub tile: Vec<i64>,
    /// Steps a launch of the main kernel.
    pub pyramid_height: i64,
    /// Cells a thread per dimension.
    pub per_thread: Vec<i64>,
    /// Whether `a * b + c` may be one operation.
    pub contract: bool,
    /// Whether approximate and re-associated arithmetic was allowed.
    pub fast_math: bool,
}
