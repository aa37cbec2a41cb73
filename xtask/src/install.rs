//! `cargo xtask install`: builds the libraries for C programs, and puts them, their headers, and
//! files for pkg-config and CMake into a folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::project::{Project, stream};

/// A library: its crate's file, its name in C, its headers, and what pkg-config says of it.
struct Library {
    package: &'static str,
    name: &'static str,
    headers: &'static [&'static str],
    description: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library {
        package: "stencil-c-runtime",
        name: "stencil_runtime",
        headers: &["stencil.h"],
        description: "Runs compiled stencil programs",
    },
    Library {
        package: "stencil-c-compiler",
        name: "stencilc",
        headers: &["stencil.h", "stencilc.h"],
        description: "Compiles and runs stencil programs",
    },
];

/// The examples with the programs that they compile, from the folder of the C interface.
const EXAMPLES: [&str; 6] = [
    "examples/CMakeLists.txt",
    "examples/emitted.c",
    "examples/heat2d.c",
    "examples/hotspot.c",
    "../../test-suite/programs/heat2d.stencil",
    "../../test-suite/sl/Hotspot.sl",
];

/// Reads `--prefix DIR`, and `--runtime`, which leaves out the compiler and so needs no LLVM.
///
/// # Errors
/// When the arguments are others.
pub fn run(project: &Project, arguments: &[String]) -> Result<()> {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (prefix, libraries) = match arguments.as_slice() {
        ["--prefix", prefix] => (prefix, &LIBRARIES[..]),
        ["--prefix", prefix, "--runtime"] | ["--runtime", "--prefix", prefix] => {
            (prefix, &LIBRARIES[..1])
        }
        _ => bail!("'install' needs --prefix DIR, and takes --runtime"),
    };
    let mut cargo = project.cargo(&["build", "--release", "--lib"]);
    for library in libraries {
        cargo.args(["--package", library.package]);
    }
    stream(&mut cargo)?;
    place(project, libraries, Path::new(prefix))
}

/// Installs what is built already into a folder.
///
/// # Errors
/// When a file can't be copied.
pub fn built(project: &Project, prefix: &Path) -> Result<()> {
    place(project, &LIBRARIES, prefix)
}

fn place(project: &Project, libraries: &[Library], prefix: &Path) -> Result<()> {
    std::fs::create_dir_all(prefix).with_context(|| format!("making {}", prefix.display()))?;
    let prefix = std::fs::canonicalize(prefix)?;
    for library in libraries {
        install(project, library, &prefix)?;
    }
    let sources = project.root().join("bindings/c");
    for example in EXAMPLES {
        let name = Path::new(example).file_name().context("an example without a name")?;
        copy(&sources.join(example), &prefix.join("share/stencil/examples").join(name))?;
    }
    let source = sources.join("install/stencil-config.cmake");
    copy(&source, &prefix.join("lib/cmake/stencil/stencil-config.cmake"))?;
    let version =
        std::fs::read_to_string(source.with_file_name("stencil-config-version.cmake.in"))?
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    std::fs::write(prefix.join("lib/cmake/stencil/stencil-config-version.cmake"), version)?;
    project.say(format!("install: {} libraries in {}", libraries.len(), prefix.display()));
    Ok(())
}

fn install(project: &Project, library: &Library, prefix: &Path) -> Result<()> {
    let Library { package, name, headers, description } = library;
    let c = project.root().join("bindings/c");
    let built = |end: &str| -> PathBuf {
        let file = format!("lib{}.{end}", package.replace('-', "_"));
        project.target().join("release").join(file)
    };
    copy(&built("so"), &prefix.join(format!("lib/lib{name}.so")))?;
    if *package == "stencil-c-runtime" {
        copy(&built("a"), &prefix.join(format!("lib/lib{name}.a")))?;
    }
    for header in *headers {
        copy(&c.join("include").join(header), &prefix.join("include").join(header))?;
    }
    let text = std::fs::read_to_string(c.join("install/stencil.pc.in"))?
        .replace("@PREFIX@", &prefix.display().to_string())
        .replace("@NAME@", name)
        .replace("@DESCRIPTION@", description)
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let file = prefix.join(format!("lib/pkgconfig/{name}.pc"));
    folder_of(&file)?;
    std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

/// Copies a file; one that a program has open keeps its old contents.
fn copy(from: &Path, to: &Path) -> Result<()> {
    folder_of(to)?;
    let partial = to.with_extension("partial");
    std::fs::copy(from, &partial)
        .and_then(|_| std::fs::rename(&partial, to))
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

fn folder_of(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}
