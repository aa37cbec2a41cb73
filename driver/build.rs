//! A hash of the compiler's own text, by which measured schedules tell one compiler from another of the same version.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// Where the text lies, from this package. A part that is not there, in a package by itself, has a version of its own.
const PARTS: [&str; 6] = ["../Cargo.lock", "../dialects/src", "../passes/src", "../runtime/src", "frontend/src", "src"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for part in PARTS.map(Path::new).into_iter().filter(|part| part.exists()) {
        println!("cargo::rerun-if-changed={}", part.display());
        collect(part, &mut files)?;
    }
    files.sort();
    // Its keys are the same in every run, and a new compiler of Rust may change it.
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(file)?.hash(&mut hasher);
    }
    println!("cargo::rustc-env=STENCILC_TEXT={:016x}", hasher.finish());
    Ok(())
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if place.is_dir() {
        fs::read_dir(place)?.try_for_each(|entry| collect(&entry?.path(), files))
    } else {
        files.push(place.to_owned());
        Ok(())
    }
}
