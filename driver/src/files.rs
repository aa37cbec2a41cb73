//! Files in and out: no output replaces an input or another output, and all outputs of a command
//! appear, or none.

use crate::message::unprinted;
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use stencil_compiler::stages::most_bytes;
use stencil_compiler::{Array, Failure, Source};
use stencil_runtime::bounded_read;
use stencil_runtime::execute::Values;
use stencil_runtime::record::Record;
use stencil_runtime::standard_output;
use stencil_runtime::whole_file::{Body, check_distinct, check_place, write_all_whole};

/// Standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a program, or a module whose name says so; `-` is standard input.
pub fn read(path: &Path) -> Result<Source, Failure> {
    if path.extension().is_some_and(|extension| extension == "json") {
        let plan = path.display();
        return Err(Failure::user(format!(
            "{plan} is no program; a launch plan is run by stencil-bench {plan}"
        )));
    }
    read_within(path, most_bytes(&path.display().to_string()))
}

/// Reads a module; `-` is standard input.
pub fn read_module(path: &Path) -> Result<Source, Failure> {
    read_within(path, bounded_read::MOST_TEXT)
}

fn read_within(path: &Path, most: u64) -> Result<Source, Failure> {
    let name = path.display().to_string();
    let bytes = if is_standard(path) {
        bounded_read::read_all(io::stdin(), most)
    } else {
        bounded_read::read(path, most)
    };
    let bytes =
        bytes.map_err(|error| Failure::user(format!("{name}: the file can't be read: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::user(format!("{name}: the file is not text (UTF-8)")))?;
    Ok(Source::new(name, text))
}

/// The option that names an output, such as `--out A`, and the file.
pub type Place = (String, PathBuf);

/// A file as messages show it.
pub fn shown((option, path): &Place) -> String {
    format!("{} ({option})", path.display())
}

/// Whether two names stand for one file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    check_distinct(&[one], &[other]).is_err()
}

/// Checks that each output can be written and is a file of its own.
pub fn check_outputs(outputs: &[Place], inputs: &[PathBuf]) -> Result<(), Failure> {
    // Standard input may be a file, by this name.
    let input = |path| if is_standard(path) { Path::new("/dev/stdin") } else { path };
    let inputs: Vec<_> = inputs.iter().map(|path| input(path.as_path())).collect();
    let outputs: Vec<_> = outputs.iter().filter(|(_, path)| !is_standard(path)).collect();
    let paths: Vec<_> = outputs.iter().map(|(_, path)| path.as_path()).collect();
    check_distinct(&paths, &inputs).map_err(|same| {
        let first = outputs.iter().find(|(_, path)| *path == same.other);
        let last = outputs.iter().rfind(|(_, path)| *path == same.output);
        match (last, first) {
            (Some(last), Some(first)) if !same.is_input => Failure::user(format!(
                "{} and {} are one file for two outputs; choose two names",
                shown(last),
                shown(first)
            )),
            _ => Failure::user(same),
        }
    })?;
    paths.into_iter().try_for_each(|path| {
        check_place(path)
            .map_err(|error| Failure::user(format!("can't write {}: {error}", path.display())))
    })
}

/// What a command will write.
#[derive(Default)]
pub struct Outputs<'a> {
    files: Vec<(PathBuf, Body<'a>)>,
    /// What goes to standard output.
    text: String,
}

impl<'a> Outputs<'a> {
    /// A text; `-` is standard output.
    pub fn add_text(&mut self, path: &Path, text: &str) {
        if is_standard(path) {
            self.text += text;
        } else {
            let text = text.to_owned();
            self.add(path, Box::new(move |file| file.write_all(text.as_bytes())));
        }
    }

    /// The cells of a field as an `.npy` file.
    pub fn add_cells(&mut self, path: &Path, field: &'a Record<'a>, leaves: Vec<&'a Array>) {
        self.add(path, Box::new(move |file| field.write_to(file, &leaves)));
    }

    /// The cells of a field as an `.npy` file, read in parts while it is written.
    pub fn add_parts(
        &mut self,
        path: &Path,
        field: &'a Record<'a>,
        values: &'a RefCell<&mut Values<'_>>,
    ) {
        let body = move |file: &mut dyn io::Write| {
            let name = |leaf: usize| field.leaves.get(leaf).map_or("", |(_, leaf)| &leaf.name);
            let shape = values.borrow().shape(name(0)).map(<[usize]>::to_vec);
            field.write_parts(file, &shape.unwrap_or_default(), &mut |leaf, first, to| {
                values.borrow_mut().read(name(leaf), first, to)
            })
        };
        self.add(path, Box::new(body));
    }

    /// A file.
    pub fn add(&mut self, path: &Path, body: Body<'a>) {
        self.files.push((path.to_owned(), body));
    }

    /// Writes all files or none, then standard output.
    pub fn write(self) -> Result<(), Failure> {
        let (paths, bodies): (Vec<_>, Vec<_>) = self.files.into_iter().unzip();
        let files = paths.iter().map(PathBuf::as_path).zip(bodies);
        write_all_whole(files.collect()).map_err(Failure::user)?;
        if self.text.is_empty() {
            return Ok(());
        }
        standard_output::print(self.text.as_bytes()).map_err(|error| unprinted(&error))
    }
}
