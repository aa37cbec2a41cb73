//! Files in and out: whole or not at all.

use crate::message::Failure;
use std::path::{Path, PathBuf};
use stencil_frontend::source::Source;

/// Reads a source; `-` is standard input.
pub fn read(path: &Path) -> Result<Source, Failure> {
    let name = path.display().to_string();
    let bytes = if name == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes =
        bytes.map_err(|error| Failure::user(format!("{name}: the file can't be read: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::user(format!("{name}: the file is not text (UTF-8)")))?;
    Ok(Source::new(name, text))
}

/// Writes a file whole or not at all; without a path, to standard output.
pub fn write(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let Some(path) = path.filter(|path| path.as_os_str() != "-") else {
        // A reader that closes its end early, like `head`, is no failure.
        return match std::io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::user(format!("standard output: {error}")))
            }
            _ => Ok(()),
        };
    };
    stencil_runtime::whole_file::write_whole(path, |file| file.write_all(text.as_bytes())).map_err(
        |error| Failure::user(format!("{}: the file can't be written: {error}", path.display())),
    )
}

/// `stem` with the extension that a level's text has.
pub fn with_extension(stem: &Path, extension: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}
