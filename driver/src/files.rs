//! Files in and out: no output replaces an input or another output, and all outputs of a command
//! appear, or none.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use stencil_compiler::{Array, Failure, Source};
use stencil_runtime::record::Record;
use stencil_runtime::whole_file::{Body, check_distinct, check_place, write_all_whole};

/// Standard input or output.
fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a source; `-` is standard input.
pub fn read(path: &Path) -> Result<Source, Failure> {
    let name = path.display().to_string();
    let bytes = if is_standard(path) {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes =
        bytes.map_err(|error| Failure::user(format!("{name}: the file can't be read: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::user(format!("{name}: the file is not text (UTF-8)")))?;
    Ok(Source::new(name, text))
}

/// Checks that each output can be written and is a file of its own.
pub fn check_outputs(outputs: &[PathBuf], inputs: &[PathBuf]) -> Result<(), Failure> {
    fn files(paths: &[PathBuf]) -> Vec<&Path> {
        paths.iter().map(PathBuf::as_path).filter(|path| !is_standard(path)).collect()
    }
    let outputs = files(outputs);
    check_distinct(&outputs, &files(inputs)).map_err(Failure::user)?;
    outputs.into_iter().try_for_each(|path| {
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

    fn add(&mut self, path: &Path, body: Body<'a>) {
        self.files.push((path.to_owned(), body));
    }

    /// Writes all files or none, then standard output.
    pub fn write(self) -> Result<(), Failure> {
        let (paths, bodies): (Vec<_>, Vec<_>) = self.files.into_iter().unzip();
        let files = paths.iter().map(PathBuf::as_path).zip(bodies);
        write_all_whole(files.collect()).map_err(Failure::user)?;
        print(&self.text)
    }
}

/// Writes to standard output. A reader that closes its end early, like `head`, is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::user(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
