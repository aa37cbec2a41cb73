//! The folder in which a tool runs: how it is laid out, and what changed in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file, folder or link at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A file.
    File(Vec<u8>),
    /// A file that nobody may write.
    ReadOnly(Vec<u8>),
    /// A folder.
    Folder,
    /// A symbolic link.
    Link(String),
    /// One more name of a file that is there.
    HardLink(String),
}

/// Everything in a folder by its path; links are not followed.
pub type Tree = BTreeMap<PathBuf, (u32, Thing)>;

/// Empties the folder and puts the things into it.
///
/// # Errors
/// When the system refuses.
pub fn lay(folder: &Path, things: &[(String, Thing)]) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for (name, thing) in things {
        let path = folder.join(name);
        match thing {
            Thing::File(bytes) => fs::write(path, bytes)?,
            Thing::ReadOnly(bytes) => {
                fs::write(&path, bytes)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o444))?;
            }
            Thing::Folder => fs::create_dir(path)?,
            Thing::Link(to) => std::os::unix::fs::symlink(to, path)?,
            Thing::HardLink(to) => fs::hard_link(folder.join(to), path)?,
        }
    }
    Ok(())
}

/// The content of a folder.
///
/// # Errors
/// When it can't be read.
pub fn tree(folder: &Path) -> io::Result<Tree> {
    let (mut found, mut folders) = (Tree::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            let data = fs::symlink_metadata(&path)?;
            let thing = if data.is_symlink() {
                Thing::Link(fs::read_link(&path)?.display().to_string())
            } else if data.is_dir() {
                folders.push(path.clone());
                Thing::Folder
            } else if data.is_file() {
                Thing::File(fs::read(&path)?)
            } else {
                Thing::Link("a device or a pipe".to_owned())
            };
            found.insert(path, (data.permissions().mode() & 0o777, thing));
        }
    }
    Ok(found)
}

/// The file that a path leads to, from the folder; none of a device, a folder or no place at all.
pub fn target(folder: &Path, path: &OsStr) -> Option<PathBuf> {
    let path = folder.join(path);
    if let Ok(found) = fs::canonicalize(&path) {
        return found.is_file().then_some(found);
    }
    // A name that ends in a slash is a folder's.
    if path.as_os_str().as_bytes().ends_with(b"/") || path.is_symlink() {
        return None;
    }
    Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?))
}

/// Shell words that lay out the folder.
pub fn script(things: &[(String, Thing)]) -> String {
    let mut text = String::new();
    for (name, thing) in things {
        let name = quoted(OsStr::new(name));
        text += &match thing {
            Thing::File(bytes) => format!("printf {} >{name}\n", octal(bytes)),
            Thing::ReadOnly(bytes) => {
                format!("printf {} >{name}\nchmod a-w {name}\n", octal(bytes))
            }
            Thing::Folder => format!("mkdir {name}\n"),
            Thing::Link(to) => format!("ln -s {} {name}\n", quoted(OsStr::new(to))),
            Thing::HardLink(to) => format!("ln {} {name}\n", quoted(OsStr::new(to))),
        };
    }
    text
}

/// A word of the shell.
pub fn quoted(word: &OsStr) -> String {
    if word.to_str().is_some_and(|text| !text.contains(|letter: char| letter.is_control())) {
        return format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"));
    }
    format!("\"$(printf {})\"", octal(word.as_bytes()))
}

/// Bytes as `printf` reads them.
fn octal(bytes: &[u8]) -> String {
    let mut text = "'".to_owned();
    for byte in bytes {
        match byte {
            b'\n' => text += "\\n",
            b'%' => text += "%%",
            b' '..=b'~' if !b"'\\".contains(byte) => text.push(char::from(*byte)),
            _ => text += &format!("\\{byte:03o}"),
        }
    }
    text + "'"
}
