//! Files in and out: no output replaces an input or another output, and all outputs of a command
//! appear, or none.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use stencil_compiler::{Array, Failure, Source};
use stencil_runtime::npy::write_whole;
use stencil_runtime::record::Record;

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

/// Checks before any work that each output is a file of its own, also through links.
pub fn distinct(inputs: &[PathBuf], outputs: &[PathBuf]) -> Result<(), Failure> {
    let mut seen: Vec<(Identity, bool)> = Vec::new();
    let files =
        inputs.iter().map(|path| (path, true)).chain(outputs.iter().map(|path| (path, false)));
    for (path, is_input) in files {
        let Some(identity) = Identity::of(path) else { continue };
        let same = seen.iter().find(|(other, _)| !is_input && *other == identity);
        if let Some((_, of_input)) = same {
            let what = if *of_input {
                "is also an input"
            } else {
                "names the same file as another output"
            };
            return Err(Failure::user(format!(
                "{}: this output {what}; choose another name",
                path.display()
            )));
        }
        seen.push((identity, is_input));
    }
    Ok(())
}

/// What tells one file from another.
#[derive(PartialEq)]
enum Identity {
    /// Device and number of a file that is there.
    #[cfg(unix)]
    Node(u64, u64),
    /// Where a file will be.
    Path(PathBuf),
}

impl Identity {
    /// None for what no write replaces: standard output, devices, pipes, folders that are missing.
    fn of(path: &Path) -> Option<Self> {
        if is_standard(path) {
            return None;
        }
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => None,
            #[cfg(unix)]
            Ok(found) => {
                use std::os::unix::fs::MetadataExt;
                Some(Self::Node(found.dev(), found.ino()))
            }
            #[cfg(not(unix))]
            Ok(_) => path.canonicalize().ok().map(Self::Path),
            Err(_) => {
                // A link may lead to where no file is yet.
                let target = std::fs::read_link(path).ok();
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                let path = target.map_or(path.to_owned(), |target| folder.join(target));
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
                Some(Self::Path(folder.join(path.file_name()?)))
            }
        }
    }
}

/// What a command will write.
#[derive(Default)]
pub struct Outputs<'a> {
    files: Vec<(PathBuf, Content<'a>)>,
}

enum Content<'a> {
    Text(String),
    Cells(&'a Record<'a>, Vec<&'a Array>),
}

impl<'a> Outputs<'a> {
    /// A text; `-` is standard output.
    pub fn add_text(&mut self, path: &Path, text: &str) {
        self.files.push((path.to_owned(), Content::Text(text.to_owned())));
    }

    /// The cells of a field as an `.npy` file.
    pub fn add_cells(&mut self, path: &Path, field: &'a Record<'a>, leaves: Vec<&'a Array>) {
        self.files.push((path.to_owned(), Content::Cells(field, leaves)));
    }

    /// Writes all files.
    pub fn write(self) -> Result<(), Failure> {
        for (path, content) in &self.files {
            match content {
                Content::Text(text) if is_standard(path) => print(text)?,
                Content::Text(text) => {
                    write_whole(path, |file| file.write_all(text.as_bytes())).map_err(|error| {
                        let path = path.display();
                        Failure::user(format!("{path}: the file can't be written: {error}"))
                    })?;
                }
                Content::Cells(field, leaves) => {
                    field.write(path, leaves).map_err(Failure::user)?;
                }
            }
        }
        Ok(())
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
