//! Where the data of an input comes from: a file, seeded noise, or zeros.

use crate::array::{Array, ArrayError, Backing};
use crate::bind::{BindError, Bound, Request, bind};
use crate::execute::ExecuteError;
use crate::memory::{self, HostMemory, TooLittleMemory};
use crate::npy::NpyError;
use crate::plan::{FieldDecl, Plan, Role};
use crate::record::{Record, records};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use thiserror::Error;

/// Where the data of an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An `.npy` file.
    File(PathBuf),
    /// Noise from a seed ([`Array::noise`]).
    Random(u64),
    /// Zeros.
    Zeros,
}

/// Why inputs could not be made ready.
#[derive(Debug, Error)]
pub enum InputError {
    /// A file could not be read.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// An array could not be made.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The inputs need more memory than there is.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// The sizes don't fit.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// An input is missing or unknown.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}

/// Arrays of each field that a run out of core has on the host: its input, and the array between
/// passes.
const COPIES: u64 = 2;

/// Reads `FILE.npy`, `random:SEED` or `zeros`.
impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        if text == "zeros" {
            return Ok(Source::Zeros);
        }
        match text.strip_prefix("random:") {
            Some(seed) => seed.parse().map(Source::Random).map_err(|_| {
                format!(
                    "`{seed}` is no seed; write random:7, a whole number from 0 to {}",
                    u64::MAX
                )
            }),
            None if text.is_empty() => Err("the file's name is missing".to_string()),
            None => Ok(Source::File(PathBuf::from(text))),
        }
    }
}

/// Splits `NAME=VALUE`, the form of `-D`, `--set`, `--in` and `--out`.
///
/// # Errors
/// A message for the user when there is no `=`, no name, or the value is none.
pub fn assignment<T: FromStr>(text: &str) -> Result<(String, T), String>
where
    T::Err: ToString,
{
    match text.split_once('=') {
        Some((_, "")) => Err(format!("nothing follows the `=` in `{text}`")),
        Some((name, value)) if !name.is_empty() => {
            let value =
                value.parse().map_err(|e: T::Err| format!("`{value}`: {}", e.to_string()))?;
            Ok((name.to_string(), value))
        }
        _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

/// Reads the files, binds the plan to their shapes and to the given sizes, and makes the other
/// inputs in the shapes that follow. `request.shapes` is filled in here. Inputs that `sources` does
/// not name come from `default`, called with the field's place in the plan.
///
/// # Errors
/// When a file is unreadable or of the wrong type, when sizes are missing or contradict each
/// other, when an input is unknown or missing.
pub fn prepare(
    plan: &Plan,
    request: Request,
    sources: &BTreeMap<String, Source>,
    default: impl Fn(usize) -> Option<Source>,
) -> Result<(Bound, BTreeMap<String, Array>), InputError> {
    let ready = prepare_on(plan, request, (sources, default), None)?;
    Ok((ready.bound, ready.arrays))
}

/// The inputs of a run.
#[derive(Debug)]
pub struct Ready {
    /// The plan with its sizes.
    pub bound: Bound,
    /// The inputs.
    pub arrays: BTreeMap<String, Array>,
    /// Where the run's other arrays are to lie.
    pub backing: Backing,
}

/// As [`prepare`]. With a `host`, arrays lie in files where the run has too little memory for two
/// of each field.
///
/// # Errors
/// As [`prepare`], and where the folder of the files has too little room.
pub fn prepare_on(
    plan: &Plan,
    mut request: Request,
    (sources, default): (&BTreeMap<String, Source>, impl Fn(usize) -> Option<Source>),
    host: Option<&HostMemory>,
) -> Result<Ready, InputError> {
    let fields: Vec<Record> = records(&plan.fields)
        .into_iter()
        .filter(|record| record.role().is_some_and(Role::is_input))
        .collect();
    if let Some(name) = sources.keys().find(|name| fields.iter().all(|field| field.name != **name))
    {
        let known: Vec<_> = fields.iter().map(|field| field.name).collect();
        let program = plan.program.clone();
        return Err(ExecuteError::UnknownInput {
            program,
            name: name.clone(),
            known: known.join(", "),
        }
        .into());
    }
    let backing = |bytes: u64| {
        host.map_or(Backing::Memory, |host| host.backing(bytes.saturating_mul(COPIES)))
    };
    let length = |source: &Source| match source {
        Source::File(path) => path.metadata().map_or(0, |facts| facts.len()),
        Source::Random(_) | Source::Zeros => 0,
    };
    let of_files = backing(sources.values().map(length).fold(0, u64::saturating_add));
    let mut arrays = BTreeMap::new();
    for field in &fields {
        if let Some(Source::File(path)) = sources.get(field.name) {
            for ((_, leaf), array) in field.leaves.iter().zip(field.read_on(path, &of_files)?) {
                request.shapes.insert(leaf.name.clone(), array.shape().to_vec());
                arrays.insert(leaf.name.clone(), array);
            }
        }
    }
    let bound = bind(plan, &request)?;
    // Files are read already.
    let made = |field: &FieldDecl| field.role.is_input() && !arrays.contains_key(&field.name);
    let backing = backing(bound.field_bytes(plan, |_| true));
    if backing == Backing::Memory {
        memory::require(bound.field_bytes(plan, made))?;
    }
    for field in &fields {
        let Some((place, first)) = field.leaves.first() else { continue };
        if arrays.contains_key(&first.name) {
            continue;
        }
        let shape = bound.shapes.get(*place).map(Vec::as_slice).unwrap_or_default();
        let source = sources.get(field.name).cloned().or_else(|| default(*place));
        let made = match source {
            Some(Source::Random(seed)) => field.noise_on(shape, seed, &backing)?,
            Some(Source::Zeros) => field
                .leaves
                .iter()
                .map(|(_, leaf)| Array::zeros_on(leaf.element, shape, &backing))
                .collect::<Result<_, _>>()?,
            Some(Source::File(path)) => field.read_on(&path, &backing)?,
            None => return Err(ExecuteError::MissingInput(field.name.to_string()).into()),
        };
        arrays.extend(field.leaves.iter().map(|(_, leaf)| leaf.name.clone()).zip(made));
    }
    Ok(Ready { bound, arrays, backing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Element;
    use crate::npy;
    use crate::plan::tests::heat;

    #[test]
    fn sources_and_assignments_are_read() {
        assert_eq!("random:7".parse(), Ok(Source::Random(7)));
        assert_eq!("zeros".parse(), Ok(Source::Zeros));
        assert_eq!("a=b.npy".parse(), Ok(Source::File(PathBuf::from("a=b.npy"))));
        assert!("random:x".parse::<Source>().unwrap_err().starts_with("`x` is no seed"));
        assert_eq!(assignment::<i64>("N=-3"), Ok(("N".to_string(), -3)));
        assert_eq!(assignment::<i64>("N"), Err("`N` is not of the form NAME=VALUE".to_string()));
        assert_eq!(assignment::<i64>("N="), Err("nothing follows the `=` in `N=`".to_string()));
        assert_eq!(assignment::<i64>("N=x"), Err("`x`: invalid digit found in string".to_string()));
        assert_eq!(
            assignment("A=b=c.npy"),
            Ok(("A".to_string(), Source::File(PathBuf::from("b=c.npy"))))
        );
    }

    #[test]
    fn files_tell_the_sizes_of_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let data = Array::noise(Element::F32, &[8, 7], 3).unwrap();
        npy::write(&path, &data).unwrap();
        let sources = BTreeMap::from([("A".to_string(), Source::File(path.clone()))]);
        let (bound, arrays) =
            prepare(&heat(), Request::default(), &sources, |_| Some(Source::Random(4))).unwrap();
        assert_eq!(bound.shapes[0], [8, 7]);
        assert_eq!(arrays["A"], data);
        assert_eq!(arrays["K"], Array::noise(Element::F32, &[8], 4).unwrap());
        let error = prepare(&heat(), Request::default(), &sources, |_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "field `K` has no data; give it with --in K=FILE.npy, random:SEED or zeros"
        );
        let sources = BTreeMap::from([("W".to_string(), Source::Zeros)]);
        let error = prepare(&heat(), Request::default(), &sources, |_| None).unwrap_err();
        assert_eq!(error.to_string(), "heat has no input `W`; it has A, K");
    }
}
