//! The files of `--out`: cells, pictures and animations, after the last step and at snapshots.

use super::picture::{Colors, Frame, write_gif, write_png};
use crate::files::{self, Outputs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stencil_compiler::{Array, Failure, Plan};
use stencil_runtime::record::{Record, records};

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
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("png") => Self::Picture,
            Some("gif") => Self::Animation,
            _ => Self::Cells,
        }
    }
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
}

fn has_step(path: &Path) -> bool {
    path.to_string_lossy().contains(STEP)
}

/// Whether a file has the name of a snapshot.
fn is_some_step(path: &Path, file: &Path) -> bool {
    let (path, file) = (path.to_string_lossy(), file.to_string_lossy());
    let step = path.split_once(STEP).and_then(|(before, behind)| {
        file.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind))
    });
    step.is_some_and(|step| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()))
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
        let drawn = |path: &Path| Kind::of(path) != Kind::Cells;
        for field in &records(&declared.fields) {
            let Some(path) = paths.get(field.name).filter(|path| drawn(path)) else { continue };
            let rank = field.leaves.first().map_or(0, |(_, leaf)| leaf.extents.len());
            let name = field.name;
            if field.leaves.len() != 1 || rank > 2 {
                return user(format!(
                    "{} would be a picture, which needs one number a cell and one or two \
                     dimensions; write `{name}` as .npy",
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
        for path in paths.values() {
            if let Some(input) = read.iter().find(|input| is_some_step(path, input)) {
                return user(format!(
                    "writing {} would replace the input {}; choose another name",
                    path.display(),
                    input.display()
                ));
            }
        }
        let shows = |path: &PathBuf| has_step(path) || Kind::of(path) == Kind::Animation;
        if asked.snapshots && !paths.values().any(shows) {
            return user(format!(
                "--snapshot-every needs a file for each snapshot or an animation; add \
                 --out FIELD=FILE{STEP}.npy or --out FIELD=FILE.gif"
            ));
        }
        Ok(Self { asked, declared, paths, read, frames: BTreeMap::new() })
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
                let array = leaves(field, values)?.first().map(|array| Frame::of(array));
                self.frames.entry(field.name.to_owned()).or_default().extend(array);
            } else if has_step(path) {
                let path = at_step(path, step);
                self.add(&mut outputs, &path, field, values)?;
                written.push(path);
            }
        }
        files::check_outputs(&written, &self.read)?;
        outputs.write()
    }

    /// Adds the files for the values after the last step.
    pub fn last(
        mut self,
        step: i64,
        values: &BTreeMap<String, Array>,
        report: Option<(&Path, String)>,
    ) -> Result<(), Failure> {
        let records = records(&self.declared.fields);
        let mut frames = std::mem::take(&mut self.frames);
        let mut outputs = Outputs::default();
        let (colors, range) = (self.asked.colors.unwrap_or_default(), self.asked.range);
        let mut written = Vec::new();
        for (field, path) in fields(&records, self.paths) {
            let path = at_step(path, step);
            if Kind::of(&path) == Kind::Animation {
                let mut frames = frames.remove(field.name).unwrap_or_default();
                frames.extend(leaves(field, values)?.first().map(|array| Frame::of(array)));
                let body =
                    move |file: &mut dyn std::io::Write| write_gif(file, &frames, colors, range);
                outputs.add(&path, Box::new(body));
            } else {
                self.add(&mut outputs, &path, field, values)?;
            }
            written.push(path);
        }
        files::check_outputs(&written, &self.read)?;
        if let Some((path, text)) = report {
            outputs.add_text(path, &text);
        }
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
        match (Kind::of(path), leaves.as_slice()) {
            (Kind::Picture, [array]) => {
                let frame = Frame::of(array);
                let body =
                    move |file: &mut dyn std::io::Write| write_png(file, &frame, colors, range);
                outputs.add(path, Box::new(body));
            }
            _ => outputs.add_cells(path, field, leaves),
        }
        Ok(())
    }
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
