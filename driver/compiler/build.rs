//! A hash of the compiler's own text, by which measured schedules tell one compiler from another of
//! the same version.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// Where the text lies, from this package. In a package by itself the lock file has the versions of
/// the others.
const PARTS: [&str; 8] = [
    "../../Cargo.lock",
    "Cargo.lock",
    "../../dialects/irdl",
    "../../dialects/src",
    "../../passes/src",
    "../../runtime/src",
    "../frontend/src",
    "src",
];

/// How files of text end.
const ENDINGS: [&str; 4] = ["rs", "ll", "mlir", "lock"];

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
        files.extend(
            place
                .extension()
                .filter(|end| ENDINGS.iter().any(|known| end == known))
                .map(|_| place.to_owned()),
        );
        Ok(())
    }
}
