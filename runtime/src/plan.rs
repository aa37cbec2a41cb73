//! The launch plan: what a compile produces beside the PTX, and all that a run needs to know.
//!
//! A plan is JSON. Sizes are expressions in the run-time params and in `steps`
//! (`crate::expr::Expr`, written as text such as `(N + 63) floordiv 64`).

use crate::array::Element;
use crate::expr::Expr;
use crate::number::Numeral;
use crate::whole_file::write_whole;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

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
    pub default: Option<Numeral>,
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
    /// Which part it is of a declared field whose cells are structs or vecs; left out for one of
    /// numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<Member>,
    /// Input, output, both or neither.
    pub role: Role,
    /// Cells per dimension, slowest first.
    pub extents: Vec<Expr>,
    /// Device buffers: 2 where a kernel reads one and writes the other, 0 for a temp field that no
    /// kernel takes, else 1.
    pub buffers: u32,
}

/// Which part of a declared field a field of numbers is. Its name is that of the declared field and
/// then `.member` or `.lane`, once or more. In memory each is an array of its own; in files
/// ([`crate::record`]) they are the cells of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The declared field.
    pub field: String,
    /// Where the number begins in a cell, in bytes.
    pub offset: usize,
    /// Bytes of a cell.
    pub size: usize,
}

impl FieldDecl {
    /// The name of the declared field.
    pub fn declared_name(&self) -> &str {
        self.member.as_ref().map_or(&self.name, |member| &member.field)
    }
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
    /// How a launch may be cut, if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bands: Option<Bands>,
}

/// How a launch may be cut into bands that are launched one by one ([`crate::bands`]). Its blocks
/// form rows of equal length, numbered from 0; the launch of `n` of them has `n / rows` of all
/// blocks, in x, and is told its first row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bands {
    /// Rows of a whole launch.
    pub rows: Expr,
    /// A row reads and writes nothing that rows farther away than this read or write.
    pub reach: u32,
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
    /// The number of the first row of blocks of the launch, an integer of `index_width` bits.
    Row,
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
    /// What each function of a launch computes, unless what is needed alone: `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// What the schedule can be remembered by (`crate::tune`); of candidates alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
}

/// Why a plan could not be loaded, saved or used.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file can't be read.
    #[error("can't read the plan {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file can't be written.
    #[error("can't write the plan {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The text is no plan.
    #[error("{origin} is no launch plan: {message}; make it with stencilc --emit=plan")]
    Syntax {
        /// Where the text came from.
        origin: String,
        /// What is wrong, and in which line.
        message: String,
    },
    /// The plan has another format.
    #[error(
        "{origin} is a plan of format {found}, this program reads format {FORMAT}; compile the \
         program again"
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
        let text = std::fs::read_to_string(path)
            .map_err(|source| PlanError::Read { path: path.to_path_buf(), source })?;
        Plan::from_json(&text, &path.display().to_string())
    }

    /// Reads and checks a plan from text; `origin` says in messages where it came from.
    ///
    /// # Errors
    /// When the text is no plan, has another format or contradicts itself.
    pub fn from_json(text: &str, origin: &str) -> Result<Plan, PlanError> {
        let syntax = |e: serde_json::Error| PlanError::Syntax {
            origin: origin.to_string(),
            message: e.to_string(),
        };
        // The format comes first: another one may have other members.
        let value: serde_json::Value = serde_json::from_str(text).map_err(syntax)?;
        if let Some(found) =
            value.get("format").filter(|found| found.as_u64() != Some(FORMAT.into()))
        {
            return Err(PlanError::Format { origin: origin.to_string(), found: found.to_string() });
        }
        let plan: Plan = serde_json::from_str(text).map_err(syntax)?;
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

    /// Checks that the plan does not contradict itself: every name that is used is declared once,
    /// blocks and index widths are possible, and what is written has a second buffer.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn validate(&self) -> Result<(), PlanError> {
        self.contradiction().map_or(Ok(()), |message| Err(self.invalid(message)))
    }

    fn invalid(&self, message: String) -> PlanError {
        PlanError::Invalid { program: self.program.clone(), message }
    }

    fn contradiction(&self) -> Option<String> {
        if self.format != FORMAT {
            return Some(format!("its format is {}, not {FORMAT}", self.format));
        }
        if !matches!(self.index_width, 32 | 64) {
            return Some(format!("an index has {} bits, not 32 or 64", self.index_width));
        }
        let mut names = BTreeSet::from(["steps"]);
        let sizes = self.params.iter().chain(self.constants.keys());
        let scalars = self.scalars.iter().map(|scalar| &scalar.name);
        let fields = self.fields.iter().map(|field| &field.name);
        if let Some(name) = sizes.chain(scalars).chain(fields).find(|name| !names.insert(name)) {
            return Some(format!("`{name}` is declared twice"));
        }
        let mut names = BTreeSet::new();
        if let Some(kernel) = self.kernels.iter().find(|kernel| !names.insert(&kernel.name)) {
            return Some(format!("kernel `{}` is declared twice", kernel.name));
        }
        self.bad_sizes()
            .or_else(|| {
                let mut fields = self.fields.iter();
                fields.find_map(bad_field)
            })
            .or_else(|| self.kernels.iter().find_map(|kernel| self.bad_kernel(kernel)))
            .or_else(|| {
                let mut names = self.schedule.iter().flat_map(|repeat| &repeat.kernels);
                let unknown = names.find(|name| self.kernel(name).is_none())?;
                Some(format!("the schedule launches the kernel `{unknown}`, which is not declared"))
            })
    }

    /// An expression with a name that has no value where it is used.
    fn bad_sizes(&self) -> Option<String> {
        let mut found = None;
        let mut check = |expr: &Expr, place: String, steps: bool| {
            expr.for_each_name(&mut |name| {
                let known = self.params.iter().any(|param| param == name)
                    || self.constants.contains_key(name)
                    || (steps && name == "steps");
                if !known && found.is_none() {
                    found = Some(format!(
                        "{place}, `{expr}`, uses the size `{name}`, which is not declared there"
                    ));
                }
            });
        };
        check(&self.steps, "the number of steps".to_string(), false);
        for field in &self.fields {
            field
                .extents
                .iter()
                .for_each(|e| check(e, format!("an extent of field `{}`", field.name), false));
        }
        for condition in &self.checks {
            check(&condition.value, "a check".to_string(), true);
            condition.unless_negative.iter().for_each(|e| check(e, "a check".to_string(), true));
        }
        for kernel in &self.kernels {
            let sizes = kernel.grid.iter().chain(kernel.bands.iter().map(|bands| &bands.rows));
            sizes.for_each(|e| check(e, format!("the grid of kernel `{}`", kernel.name), true));
        }
        self.schedule
            .iter()
            .for_each(|repeat| check(&repeat.count, "a count of the schedule".to_string(), true));
        found
    }

    fn bad_kernel(&self, kernel: &Kernel) -> Option<String> {
        let name = &kernel.name;
        let threads = kernel.block.iter().try_fold(1u32, |n, &extent| n.checked_mul(extent));
        if !threads.is_some_and(|n| (1..=MOST_THREADS).contains(&n)) {
            return Some(format!(
                "kernel `{name}` has blocks of {:?} threads; 1 to {MOST_THREADS} are possible",
                kernel.block
            ));
        }
        if kernel.bands.is_some() && !kernel.arguments.contains(&Argument::Row) {
            return Some(format!("kernel `{name}` has bands, and no argument for its first row"));
        }
        let mut written = BTreeSet::new();
        for argument in &kernel.arguments {
            let known = match argument {
                Argument::Read(field) | Argument::Write(field) | Argument::ReadWrite(field) => {
                    self.field(field).is_some()
                }
                Argument::Param(param) => self.params.contains(param),
                Argument::Scalar(scalar) => self.scalars.iter().any(|s| s.name == *scalar),
                Argument::Step => true,
                Argument::Row => kernel.bands.is_some(),
            };
            if !known {
                return Some(format!(
                    "kernel `{name}` has the argument {argument:?}, which is not declared"
                ));
            }
            match argument {
                Argument::Read(field) | Argument::ReadWrite(field)
                    if self.field(field).is_some_and(|f| f.buffers < 1) =>
                {
                    return Some(format!(
                        "kernel `{name}` takes field `{field}`, which has no buffer"
                    ));
                }
                Argument::Write(field) if self.field(field).is_some_and(|f| f.buffers < 2) => {
                    return Some(format!(
                        "kernel `{name}` writes field `{field}`, which has only one buffer"
                    ));
                }
                Argument::Write(field) | Argument::ReadWrite(field) if !written.insert(field) => {
                    return Some(format!(
                        "kernel `{name}` writes field `{field}` through two arguments"
                    ));
                }
                _ => {}
            }
        }
        None
    }
}

/// Threads of a block on every CUDA device.
const MOST_THREADS: u32 = 1024;

fn bad_field(field: &FieldDecl) -> Option<String> {
    let least = if field.role == Role::Temp { 0 } else { 1 };
    if !(least..=2).contains(&field.buffers) {
        return Some(format!(
            "field `{}` has {} buffers; {least} to 2 are possible",
            field.name, field.buffers
        ));
    }
    if field.extents.is_empty() {
        return Some(format!("field `{}` has no dimensions", field.name));
    }
    None
}

/// Where the PTX of a plan lies: `x.ptx` beside `x.plan.json`.
pub fn ptx_beside(plan: &Path) -> PathBuf {
    let name = plan.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem =
        name.strip_suffix(".plan.json").or_else(|| name.strip_suffix(".json")).unwrap_or(&name);
    plan.with_file_name(format!("{stem}.ptx"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program of two fields: `A` is double and updated by `two` (two steps a launch) and `one`,
    /// `K` is only read.
    pub(crate) const HEAT: &str = r#"{
        "format": 1, "program": "heat", "target": "sm_90", "params": ["N", "M"], "constants": {"Q": 5},
        "scalars": [{"name": "alpha", "element": "f32", "default": 0.1}],
        "fields": [
            {"name": "A", "element": "f32", "role": "state", "extents": ["N", "2 * M + 1"], "buffers": 2},
            {"name": "K", "element": "f32", "role": "const", "extents": ["N"], "buffers": 1},
            {"name": "W", "element": "f64", "role": "temp", "extents": ["Q"], "buffers": 1}],
        "steps": "10",
        "checks": [{"value": "N - 3", "unless_negative": ["M - 1"], "message": "the grid must have 3 rows"}],
        "index_width": 32,
        "kernels": [
            {"name": "two", "grid": ["N ceildiv 16", "1", "1"], "block": [16, 1, 1], "static_shared": 0,
             "dynamic_shared": 0, "steps": 2,
             "arguments": [{"read": "A"}, {"read": "K"}, {"write": "A"}, {"param": "N"}, {"scalar": "alpha"}, "step"]},
            {"name": "one", "grid": ["N", "1", "1"], "block": [16, 1, 1], "static_shared": 0,
             "dynamic_shared": 0, "steps": 1, "arguments": [{"read": "A"}, {"write": "A"}, {"read_write": "W"}]}],
        "schedule": [
            {"count": "steps floordiv 2", "kernels": ["two"]},
            {"count": "steps mod 2", "kernels": ["one"]}],
        "settings": {"strategy": "block", "tile": [16], "pyramid_height": 2, "per_thread": [1],
                     "contract": false, "fast_math": false}
    }"#;

    pub(crate) fn heat() -> Plan {
        Plan::from_json(HEAT, "heat").unwrap()
    }

    /// The same, and the first kernel may be cut.
    pub(crate) fn banded() -> Plan {
        let mut plan = heat();
        plan.kernels[0].arguments.push(Argument::Row);
        plan.kernels[0].bands = Some(Bands { rows: "N ceildiv 16".parse().unwrap(), reach: 1 });
        plan.validate().unwrap();
        plan
    }

    fn error(from: &str, to: &str) -> String {
        assert!(HEAT.contains(from), "{from}");
        Plan::from_json(&HEAT.replacen(from, to, 1), "heat.plan.json").unwrap_err().to_string()
    }

    #[test]
    fn plans_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heat.plan.json");
        heat().save(&path).unwrap();
        assert_eq!(Plan::load(&path).unwrap(), heat());
        let text = heat().to_json().unwrap();
        assert!(
            text.contains("\"count\": \"steps floordiv 2\"") && text.ends_with("}\n"),
            "{text}"
        );
    }

    #[test]
    fn other_formats_are_refused_before_all_else() {
        assert_eq!(
            error("\"format\": 1, \"program\"", "\"format\": 2, \"title\""),
            "heat.plan.json is a plan of format 2, this program reads format 1; compile the \
             program again"
        );
        let text = error("\"program\"", "\"title\"");
        assert!(text.contains("unknown field `title`") && text.contains("line 2"), "{text}");
        let text = error("N ceildiv 16", "N / 16");
        assert!(text.contains("`N / 16` is no size expression"), "{text}");
    }

    #[test]
    fn contradictions_are_found() {
        for (from, to, wanted) in [
            (
                "[\"two\"]",
                "[\"three\"]",
                "the schedule launches the kernel `three`, which is not declared",
            ),
            ("\"step\"]", "\"row\"]", "kernel `two` has the argument Row, which is not declared"),
            (
                "\"step\"]",
                "\"step\"], \"bands\": {\"rows\": \"N\", \"reach\": 1}",
                "kernel `two` has bands, and no argument for its first row",
            ),
            (
                "{\"read\": \"K\"}",
                "{\"read\": \"L\"}",
                "kernel `two` has the argument Read(\"L\"), which is not declared",
            ),
            (
                "{\"param\": \"N\"}",
                "{\"param\": \"K\"}",
                "kernel `two` has the argument Param(\"K\"), which is not declared",
            ),
            (
                "{\"read\": \"K\"}",
                "{\"write\": \"K\"}",
                "kernel `two` writes field `K`, which has only one buffer",
            ),
            (
                "{\"read\": \"A\"}",
                "{\"read_write\": \"A\"}",
                "kernel `two` writes field `A` through two arguments",
            ),
            ("[\"N\", \"M\"]", "[\"N\", \"M\", \"A\"]", "`A` is declared twice"),
            ("\"one\", \"grid\"", "\"two\", \"grid\"", "kernel `two` is declared twice"),
            (
                "\"block\": [16",
                "\"block\": [2000",
                "kernel `two` has blocks of [2000, 1, 1] threads; 1 to 1024 are possible",
            ),
            (
                "\"block\": [16",
                "\"block\": [0",
                "kernel `two` has blocks of [0, 1, 1] threads; 1 to 1024 are possible",
            ),
            ("\"index_width\": 32", "\"index_width\": 16", "an index has 16 bits, not 32 or 64"),
            (
                "[\"Q\"]",
                "[\"steps\"]",
                "an extent of field `W`, `steps`, uses the size `steps`, which is not declared \
                 there",
            ),
            ("N - 3", "L - 3", "a check, `L - 3`, uses the size `L`, which is not declared there"),
            ("\"buffers\": 2", "\"buffers\": 3", "field `A` has 3 buffers; 1 to 2 are possible"),
            ("\"buffers\": 2", "\"buffers\": 0", "field `A` has 0 buffers; 1 to 2 are possible"),
            (
                "[\"Q\"], \"buffers\": 1",
                "[\"Q\"], \"buffers\": 0",
                "kernel `one` takes field `W`, which has no buffer",
            ),
        ] {
            let wanted =
                format!("the plan of heat is not valid: {wanted}; compile the program again");
            assert_eq!(error(from, to), wanted);
        }
    }

    #[test]
    fn the_ptx_lies_beside() {
        assert_eq!(ptx_beside(Path::new("out/heat.plan.json")), Path::new("out/heat.ptx"));
        assert_eq!(ptx_beside(Path::new("heat")), Path::new("heat.ptx"));
    }
}
