//! The files of `--out`: cells, pictures and animations, after the last step and at snapshots.

use crate::files::{self, Outputs, Place};
use crate::picture::{Colors, Frame, write_gif, write_png};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use stencil_compiler::{Array, Failure, Plan};
use stencil_runtime::execute::Values;
use stencil_runtime::record::{Record, records};
use stencil_runtime::whole_file::check_distinct;

/// Stands for the number of steps taken.
const STEP: &str = "{step}";

/// The kind of a file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cells,
    Picture,
    Animation,
}

impl Kind {
    fn of(path: &Path) -> Self {
        match extension(path).as_deref() {
            Some("png") => Self::Picture,
            Some("gif") => Self::Animation,
            _ => Self::Cells,
        }
    }

    /// Refuses a name that promises another format.
    fn check(path: &Path) -> Result<(), Failure> {
        let other = extension(path).filter(|extension| {
            extension.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && !["npy", "png", "gif"].contains(&extension.as_str())
        });
        other.map_or(Ok(()), |extension| {
            Err(Failure::user(format!(
                "{}: `.{extension}` is no format of results; write .npy for cells, .png for a \
                 picture, .gif for an animation",
                path.display()
            )))
        })
    }
}

/// The ending of a file's name, in lower case.
fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// What the command line asks for.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Whether there are snapshots.
    pub snapshots: bool,
    /// The colours of pictures.
    pub colors: Option<Colors>,
    /// The values of the first and the last colour.
    pub range: Option<(f64, f64)>,
}

/// The files of a run.
pub struct Results<'a> {
    asked: Asked,
    declared: &'a Plan,
    /// By field.
    paths: &'a BTreeMap<String, PathBuf>,
    /// Files that no output may replace.
    read: Vec<PathBuf>,
    /// The frames of each animation so far, by field.
    frames: BTreeMap<String, Vec<Frame>>,
    /// The files that were written, without links, and after how many steps.
    written: BTreeMap<PathBuf, i64>,
    /// Whether the files for the values after the last step are written.
    complete: bool,
}

fn has_step(path: &Path) -> bool {
    path.to_string_lossy().contains(STEP)
}

/// Refuses a name whose last brace is not closed: it is rarely meant.
fn check_braces(path: &Path) -> Result<(), Failure> {
    let text = path.to_string_lossy();
    match text.rsplit_once('{') {
        Some((_, rest)) if !rest.contains('}') => Err(Failure::user(format!(
            "a brace of the name {text} is not closed; write {STEP} for the number of the step, \
             or leave the brace out"
        ))),
        _ => Ok(()),
    }
}

/// Whether two names can be of one file, where each `{step}` stands for digits.
fn may_meet(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(letters);
    // The places in both names that some common beginning leads to.
    let mut reached = BTreeSet::from([(0, 0)]);
    let mut open = vec![(0, 0)];
    while let Some((at, place)) = open.pop() {
        let (Some(a), Some(b)) = (one.get(at), other.get(place)) else { continue };
        let digits = |letter: &Option<char>| letter.is_none_or(|letter| letter.is_ascii_digit());
        if a != b && !(digits(a) && digits(b) && (a.is_none() || b.is_none())) {
            continue;
        }
        // Digits may go on.
        let after = |letter: &Option<char>, at| {
            if letter.is_none() { at..=at + 1 } else { at + 1..=at + 1 }
        };
        for next in after(a, at).flat_map(|at| after(b, place).map(move |place| (at, place))) {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached.contains(&(one.len(), other.len()))
}

/// The files that are there by a name with `{step}`, whatever the step. Links may lead anywhere.
fn there(path: &Path) -> Vec<PathBuf> {
    if !has_step(path) {
        return Vec::new();
    }
    let mut found = vec![PathBuf::new()];
    for part in path.components().map(|part| Path::new(part.as_os_str())) {
        if !has_step(part) {
            found.iter_mut().for_each(|folder| folder.push(part));
            continue;
        }
        let inside = |folder: &PathBuf| -> Vec<PathBuf> {
            let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
            let names = entries.map(|entry| PathBuf::from(entry.file_name()));
            names.filter(|name| may_meet(name, part)).map(|name| folder.join(name)).collect()
        };
        found = found.iter().flat_map(inside).collect();
    }
    found.sort();
    found
}

/// The letters of a name with its folder; none stands for the digits of a step.
fn letters(path: &Path) -> Vec<Option<char>> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = path.to_string_lossy();
    let mut parts = text.split(STEP);
    let mut letters: Vec<_> = parts.next().unwrap_or_default().chars().map(Some).collect();
    for part in parts {
        letters.push(None);
        letters.extend(part.chars().map(Some));
    }
    letters
}

/// The place of a field's output.
pub fn place(field: &str, path: PathBuf) -> Place {
    (format!("--out {field}"), path)
}

/// Checks that no snapshot takes the place of an input, of another output, or of another field's
/// snapshot, whatever the step.
pub fn check_steps(
    paths: &BTreeMap<String, PathBuf>,
    others: &[Place],
    read: &[PathBuf],
) -> Result<(), Failure> {
    let inputs: Vec<_> = read.iter().map(PathBuf::as_path).collect();
    let mut outputs: Vec<_> =
        paths.iter().map(|(field, path)| place(field, path.clone())).collect();
    outputs.extend_from_slice(others);
    for (number, path) in paths.values().enumerate() {
        let meets = |other: &PathBuf| (has_step(path) || has_step(other)) && may_meet(path, other);
        if let Some(input) = read.iter().find(|input| meets(input)) {
            return Err(Failure::user(format!(
                "writing {} would replace the input {}; choose another name",
                path.display(),
                input.display()
            )));
        }
        there(path)
            .iter()
            .try_for_each(|file| check_distinct(&[file], &inputs))
            .map_err(Failure::user)?;
        let mut rest = outputs.iter().skip(number);
        if let (Some(own), Some(other)) = (rest.next(), rest.find(|(_, other)| meets(other))) {
            return Err(Failure::user(format!(
                "{} and {} may be one file for two outputs; choose names that differ in more than \
                 digits",
                files::shown(own),
                files::shown(other)
            )));
        }
    }
    Ok(())
}

/// The file for a step.
pub fn at_step(path: &Path, step: i64) -> PathBuf {
    match path.to_str() {
        Some(text) => PathBuf::from(text.replace(STEP, &step.to_string())),
        None => path.to_owned(),
    }
}

impl<'a> Results<'a> {
    /// Checks what can be known of the files before the run.
    pub fn new(
        asked: Asked,
        declared: &'a Plan,
        paths: &'a BTreeMap<String, PathBuf>,
        read: Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        let user = |text: String| Err(Failure::user(text));
        paths.values().try_for_each(|path| Kind::check(path))?;
        paths.values().try_for_each(|path| check_braces(path))?;
        let drawn = |path: &Path| Kind::of(path) != Kind::Cells;
        for field in &records(&declared.fields) {
            let Some(path) = paths.get(field.name).filter(|path| drawn(path)) else { continue };
            let rank = field.leaves.first().map_or(0, |(_, leaf)| leaf.extents.len());
            let name = field.name;
            if !is_drawn(field) || rank > 2 {
                return user(format!(
                    "{} would be a picture, which needs a real or a complex number a cell, and one \
                     or two dimensions; write `{name}` as .npy",
                    path.display()
                ));
            }
            if Kind::of(path) == Kind::Animation && !asked.snapshots {
                return user(format!(
                    "{} would be an animation of one frame; add --snapshot-every K, or write .png",
                    path.display()
                ));
            }
        }
        if !paths.values().any(|path| drawn(path))
            && (asked.colors.is_some() || asked.range.is_some())
        {
            return user(
                "--colors and --range are for pictures; add --out FIELD=FILE.png".to_owned(),
            );
        }
        let shows = |path: &PathBuf| has_step(path) || Kind::of(path) == Kind::Animation;
        if asked.snapshots && !paths.values().any(shows) {
            return user(format!(
                "--snapshot-every needs a file for each snapshot or an animation; add \
                 --out FIELD=FILE{STEP}.npy or --out FIELD=FILE.gif"
            ));
        }
        let (frames, written) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { asked, declared, paths, read, frames, written, complete: false })
    }

    /// Takes a snapshot.
    pub fn snapshot(&mut self, step: i64, values: &BTreeMap<String, Array>) -> Result<(), Failure> {
        let records = records(&self.declared.fields);
        let mut outputs = Outputs::default();
        let mut written = Vec::new();
        for (field, path) in fields(&records, self.paths) {
            // A reduction may have no value before the first step.
            if field.leaves.iter().any(|(_, leaf)| !values.contains_key(&leaf.name)) {
                continue;
            }
            if Kind::of(path) == Kind::Animation {
                let array = frame(&leaves(field, values)?)?;
                self.frames.entry(field.name.to_owned()).or_default().extend(array);
            } else if has_step(path) {
                let path = at_step(path, step);
                self.add(&mut outputs, &path, field, values)?;
                written.push(place(field.name, path));
            }
        }
        self.check(step, &written)?;
        outputs.write()?;
        let places = written.iter().filter_map(|(_, path)| path.canonicalize().ok());
        self.written.extend(places.map(|place| (place, step)));
        Ok(())
    }

    /// Checks that the files of a step are different ones, and neither inputs nor those of another
    /// step.
    fn check(&self, step: i64, files: &[Place]) -> Result<(), Failure> {
        files::check_outputs(files, &self.read)?;
        for (_, file) in files {
            let place = file.canonicalize().ok();
            let before = place.and_then(|place| self.written.get(&place));
            if let Some(before) = before.filter(|before| **before != step) {
                return Err(Failure::user(format!(
                    "writing {} after step {step} would replace the output of step {before}; \
                     choose names without links",
                    file.display()
                )));
            }
        }
        Ok(())
    }

    /// Whether all files hold cells, which can be read in parts while they are written.
    pub fn are_cells(&self) -> bool {
        self.paths.values().all(|path| Kind::of(path) == Kind::Cells)
    }

    /// Writes the files for the values after the last step, which are read in parts.
    pub fn write_parts(&mut self, begin: i64, values: &mut Values<'_>) -> Result<(), Failure> {
        let step = begin + values.launched().steps;
        let records = records(&self.declared.fields);
        let values = RefCell::new(values);
        let mut outputs = Outputs::default();
        let mut written = Vec::new();
        for (field, path) in fields(&records, self.paths) {
            let path = at_step(path, step);
            outputs.add_parts(&path, field, &values);
            written.push(place(field.name, path));
        }
        self.check(step, &written)?;
        self.complete = true;
        outputs.write()
    }

    /// Writes the files for the values after the last step, where [`Self::write_parts`] did not.
    pub fn last<'t>(
        mut self,
        step: i64,
        values: &BTreeMap<String, Array>,
        texts: impl Iterator<Item = (&'t Path, String)>,
    ) -> Result<(), Failure> {
        let records = records(&self.declared.fields);
        let mut frames = std::mem::take(&mut self.frames);
        let mut outputs = Outputs::default();
        texts.for_each(|(path, text)| outputs.add_text(path, &text));
        if self.complete {
            return outputs.write();
        }
        let (colors, range) = (self.asked.colors.unwrap_or_default(), self.asked.range);
        let mut written = Vec::new();
        for (field, path) in fields(&records, self.paths) {
            let path = at_step(path, step);
            if Kind::of(&path) == Kind::Animation {
                let mut frames = frames.remove(field.name).unwrap_or_default();
                frames.extend(frame(&leaves(field, values)?)?);
                let body =
                    move |file: &mut dyn std::io::Write| write_gif(file, &frames, colors, range);
                outputs.add(&path, Box::new(body));
            } else {
                self.add(&mut outputs, &path, field, values)?;
            }
            written.push(place(field.name, path));
        }
        self.check(step, &written)?;
        outputs.write()
    }

    fn add<'o>(
        &self,
        outputs: &mut Outputs<'o>,
        path: &Path,
        field: &'o Record<'o>,
        values: &'o BTreeMap<String, Array>,
    ) -> Result<(), Failure> {
        let leaves = leaves(field, values)?;
        let (colors, range) = (self.asked.colors.unwrap_or_default(), self.asked.range);
        if Kind::of(path) != Kind::Picture {
            outputs.add_cells(path, field, leaves);
        } else if let Some(frame) = frame(&leaves)? {
            let body = move |file: &mut dyn std::io::Write| write_png(file, &frame, colors, range);
            outputs.add(path, Box::new(body));
        }
        Ok(())
    }
}

/// The picture of a field. An animation keeps all of its frames until the run ends.
fn frame(leaves: &[&Array]) -> Result<Option<Frame>, Failure> {
    Frame::of_parts(leaves).map_err(|_| {
        Failure::user(
            "out of memory for a picture; for an animation, take a larger --snapshot-every, or \
             write pictures by {step} in the name of a .png",
        )
    })
}

/// Whether the cells of a field are real or complex numbers.
fn is_drawn(field: &Record<'_>) -> bool {
    field.leaves.len() == 1 || field.layout.complex().is_some()
}

/// The fields that have files.
fn fields<'r>(
    records: &'r [Record<'r>],
    paths: &'r BTreeMap<String, PathBuf>,
) -> impl Iterator<Item = (&'r Record<'r>, &'r Path)> {
    records.iter().filter_map(|field| Some((field, paths.get(field.name)?.as_path())))
}

fn leaves<'v>(
    field: &Record<'_>,
    values: &'v BTreeMap<String, Array>,
) -> Result<Vec<&'v Array>, Failure> {
    let leaves = field.leaves.iter().map(|(_, leaf)| values.get(&leaf.name));
    let missing = || Failure::user(format!("there is no output `{}`", field.name));
    leaves.collect::<Option<_>>().ok_or_else(missing)
}
