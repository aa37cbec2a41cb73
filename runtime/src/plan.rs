//! The launch plan: a compile makes it beside the PTX, and a run needs nothing else.
//!
//! A plan is JSON, described in `docs/plan.md` and by the schema `docs/plan.schema.json`. Sizes are
//! expressions in the run-time params and in `steps` ([`Expr`], written as text such as
//! `(N + 63) floordiv 64`).
//!
//! | file | what it holds |
//! |---|---|
//! | `plan.rs` | declarations; reading and writing a plan |
//! | `plan/buffer.rs` | buffers and their layouts |
//! | `plan/constants.rs` | buffers in constant memory |
//! | `plan/cut.rs` | how the blocks of a launch may be shared out between devices |
//! | `plan/schedule.rs` | the schedule: launches, loops, exchanges, snapshots |
//! | `plan/records.rs` | arrays of structs |
//! | `plan/settings.rs` | how the kernels were made |
//! | `plan/validate.rs` | contradictions |

mod buffer;
mod constants;
mod cut;
mod members;
pub(crate) mod records;
mod schedule;
#[cfg(test)]
mod schema;
mod settings;
#[cfg(test)]
pub(crate) mod tests;
mod validate;

use crate::array::Element;
use crate::bounded_read::{MOST_TEXT, read_text};
use crate::cell::Layout;
use crate::expr::Expr;
use crate::hash::Hash;
use crate::number::Numeral;
use crate::whole_file::write_whole;
pub use buffer::{BufferDecl, BufferKind, BufferLayout, Start};
pub use cut::{Cut, Near, Order, Parts, Points, Tiles, Use};
pub use schedule::{
    Alternative, Argument, Bands, Choose, Exchange, Launch, Limit, Node, Relation, Repeat,
    Snapshot, Until,
};
pub(crate) use schedule::{launches, nodes};
use serde::{Deserialize, Serialize};
pub use settings::{CopySettings, RecordSettings, Settings};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The version of the format; a plan of another version is refused.
pub const FORMAT: u32 = 2;

/// Steps of a run.
pub const MOST_STEPS: i64 = 1 << 48;

/// Everything that a run needs beside the PTX and the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The format's version, 2.
    pub format: u32,
    /// The program's name.
    pub program: String,
    /// The device and the arithmetic that the PTX is made for.
    pub target: CompiledFor,
    /// Run-time sizes, in the order of declaration.
    pub params: Vec<String>,
    /// Sizes that the compile fixed, for the record.
    pub constants: BTreeMap<String, i64>,
    /// Run-time scalars.
    pub scalars: Vec<ScalarDecl>,
    /// Fields, in the order of declaration.
    pub fields: Vec<FieldDecl>,
    /// Device buffers.
    pub buffers: Vec<BufferDecl>,
    /// Steps of a run unless told otherwise.
    pub steps: Expr,
    /// Conditions on the sizes.
    pub checks: Vec<Check>,
    /// Bits of an index inside the kernels: 32 or 64. Run-time sizes are passed in as many bits.
    pub index_width: u32,
    /// The kernels of the PTX.
    pub kernels: Vec<Kernel>,
    /// The nodes to run, in order.
    pub schedule: Vec<Node>,
    /// How the kernels were made.
    pub settings: Settings,
}

/// The architecture, device and arithmetic of the PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CompiledFor {
    /// The GPU architecture of the PTX, such as `sm_90`.
    pub arch: String,
    /// The device that the schedule was chosen for, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How many devices the schedule was chosen for, and their grid, such as `4` or `2x2`; none for
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<String>,
    /// Whether `a * b + c` may be one operation.
    pub contract: bool,
    /// Whether approximate and re-associated arithmetic was allowed.
    pub fast_math: bool,
}

/// A run-time scalar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScalarDecl {
    /// Its name.
    pub name: String,
    /// Its type.
    pub element: Element,
    /// The value unless one is set.
    pub default: Option<Numeral>,
}

/// The use of a field by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Input and output.
    State,
    /// Input only.
    Const,
    /// Neither; starts as zeros.
    Temp,
    /// Output only: the value of a reduction, in one cell.
    Reduction,
}

impl Role {
    /// Whether a run needs data for such fields.
    pub fn is_input(self) -> bool {
        matches!(self, Self::State | Self::Const)
    }

    /// Whether a run gives the values of such fields.
    pub fn is_output(self) -> bool {
        matches!(self, Self::State | Self::Reduction)
    }
}

/// A field: an input or an output of a run, or neither.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FieldDecl {
    /// Its name.
    pub name: String,
    /// Type of a cell.
    pub element: Element,
    /// Whether files hold NumPy's `bool`: 0 is false. The type of a cell is then `u8`.
    #[serde(default, rename = "bool", skip_serializing_if = "std::ops::Not::not")]
    pub boolean: bool,
    /// Its place in a declared field whose cells are structs or vecs; left out for a field of
    /// numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<Member>,
    /// Input, output, both or neither.
    pub role: Role,
    /// Cells per dimension, slowest first.
    pub extents: Vec<Expr>,
    /// Where its current value lies. A cell that no part covers has its input's value. Empty for a
    /// temp field that no kernel uses.
    pub value: Vec<Part>,
}

/// The place of a field of numbers in a declared field. Its name is that of the declared field,
/// followed by `.member` or `.lane` once or more. In memory each is an array of its own; in files
/// ([`crate::record`]) they are the cells of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The declared field.
    pub field: String,
    /// Where the number begins in a cell, in bytes.
    pub offset: usize,
    /// Bytes of a cell.
    pub size: usize,
}

/// Cells of a field's current value that lie in one buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The buffer.
    pub buffer: String,
    /// First and last cell per dimension, counted from 0 in the field; left out for all cells of
    /// the buffer. The part is empty where a last cell lies before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<Vec<[Expr; 2]>>,
    /// Which number of a cell it is, in a buffer with the layout `records` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
}

impl FieldDecl {
    /// The type of a cell of a file.
    pub fn layout(&self) -> Layout {
        if self.boolean { Layout::Bool } else { Layout::Number(self.element) }
    }

    /// The name of the declared field.
    pub fn declared_name(&self) -> &str {
        self.member.as_ref().map_or(&self.name, |member| &member.field)
    }
}

/// A condition on the sizes: `value >= 0`, unless one of `unless_negative` is negative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Must not be negative.
    pub value: Expr,
    /// If any of these is negative (an empty piece), the condition is void.
    pub unless_negative: Vec<Expr>,
    /// The message when it fails.
    pub message: String,
}

/// One kernel of the PTX.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its name in the PTX.
    pub name: String,
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Static shared memory of a block in bytes, for the record.
    pub static_shared: u64,
    /// Dynamic shared memory of a block in bytes.
    pub dynamic_shared: u64,
}

/// Why a plan could not be loaded, saved or used.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file can't be read.
    #[error("can't read the plan {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file can't be written.
    #[error("can't write the plan {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text is no plan.
    #[error("{origin} is no launch plan: {message}; make it with stencilc --emit=plan")]
    Syntax {
        /// Where the text came from.
        origin: String,
        /// The fault and its line.
        message: String,
    },
    /// The plan has another format.
    #[error(
        "{origin} is a plan of format {found}, this program reads format {FORMAT}; compile the \
         program again: stencilc PROGRAM.stencil --emit=ptx,plan -o NAME"
    )]
    Format {
        /// Where the text came from.
        origin: String,
        /// Its format.
        found: String,
    },
    /// The plan contradicts itself.
    #[error("the plan of {program} is not valid: {message}; compile the program again")]
    Invalid {
        /// The program.
        program: String,
        /// The contradiction.
        message: String,
    },
}

impl Plan {
    /// Reads and checks a plan.
    ///
    /// # Errors
    /// When the file can't be read, is no plan, has another format or contradicts itself.
    pub fn load(path: &Path) -> Result<Plan, PlanError> {
        let text = read_text(path, MOST_TEXT)
            .map_err(|source| PlanError::Read { path: path.to_path_buf(), source })?;
        Plan::from_json(&text, &path.display().to_string())
    }

    /// Reads and checks a plan from text; `origin` names its source in messages.
    ///
    /// # Errors
    /// When the text is no plan, has another format or contradicts itself.
    pub fn from_json(text: &str, origin: &str) -> Result<Plan, PlanError> {
        let syntax = |message: String| PlanError::Syntax { origin: origin.to_string(), message };
        // The format comes first: another one may have other members.
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| syntax(e.to_string()))?;
        if let Some(found) =
            value.get("format").filter(|found| found.as_u64() != Some(FORMAT.into()))
        {
            return Err(PlanError::Format { origin: origin.to_string(), found: found.to_string() });
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let plan: Plan = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| syntax(in_words_of_json(&error)))?;
        plan.validate()?;
        Ok(plan)
    }

    /// The plan as JSON text, ending with a line break.
    ///
    /// # Errors
    /// When a number in it has no JSON form (an infinite default of a scalar).
    pub fn to_json(&self) -> Result<String, PlanError> {
        let text = serde_json::to_string_pretty(self).map_err(|e| self.invalid(e.to_string()))?;
        Ok(text + "\n")
    }

    /// The symbol by which code for processors names the plan that it was made with. Two plans with
    /// one symbol have the same kernels, launches, buffers and checks.
    ///
    /// # Errors
    /// As [`Plan::to_json`].
    pub fn code_symbol(&self) -> Result<String, PlanError> {
        // A remembered schedule changes the settings alone.
        let text = Self { settings: Settings::default(), ..self.clone() }.to_json()?;
        Ok(format!("stencil_code_{:016x}", Hash::of(text.as_bytes())))
    }

    /// Writes the plan; the file appears whole or not at all.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn save(&self, path: &Path) -> Result<(), PlanError> {
        let text = self.to_json()?;
        write_whole(path, |file| file.write_all(text.as_bytes()))
            .map_err(|source| PlanError::Write { path: path.to_path_buf(), source })
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&FieldDecl> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The kernel of a name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The buffer of a name.
    pub fn buffer(&self, name: &str) -> Option<&BufferDecl> {
        self.buffers.iter().find(|buffer| buffer.name == name)
    }

    /// All nodes of the schedule, those inside others too, in the order of the file.
    pub fn nodes(&self) -> Vec<&Node> {
        nodes(&self.schedule)
    }

    /// All launches of the schedule, in the order of the file.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        launches(&self.schedule)
    }

    /// After how many steps a run looks whether it ends early; none where it does not, and where
    /// sizes decide it, which no compile of a program gives.
    pub fn steps_between_looks(&self) -> Option<i64> {
        self.nodes().into_iter().find_map(|node| match node {
            Node::Until(until) => until.steps_between_looks(),
            _ => None,
        })
    }

    /// How many arguments a kernel is launched with; all its launches agree.
    pub fn parameters(&self, kernel: &Kernel) -> usize {
        let launch = self.launches().find(|launch| launch.kernel == kernel.name);
        launch.map_or(0, |launch| launch.arguments.len())
    }

    fn invalid(&self, message: String) -> PlanError {
        PlanError::Invalid { program: self.program.clone(), message }
    }
}

/// The place and the fault of a text, without the names of our types.
fn in_words_of_json(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let place = error.path().to_string();
    let mut text = error.inner().to_string();
    for kind in ["expected struct variant ", "expected struct ", "expected enum "] {
        while let Some((before, after)) = text.split_once(kind) {
            let rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || c == ':');
            text = format!("{before}expected an object{rest}");
        }
    }
    for (from, to) in [
        // The text is JSON; a member that can be either is of another type.
        ("expected value", "expected a string or an object"),
        ("expected string or map", "expected a string or an object"),
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
    ] {
        text = text.replace(from, to);
    }
    if place == "." { text } else { format!("{place}: {text}") }
}

/// Where the PTX of a plan lies: `x.ptx` beside `x.plan.json`.
pub fn ptx_beside(plan: &Path) -> PathBuf {
    let name = plan.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem =
        name.strip_suffix(".plan.json").or_else(|| name.strip_suffix(".json")).unwrap_or(&name);
    plan.with_file_name(format!("{stem}.ptx"))
}
