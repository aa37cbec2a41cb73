//! The crates that run a compiled program, or only read one, never reach LLVM or MLIR.

use anyhow::{Result, ensure};

use crate::project::{Project, capture};

/// Crates that build and run where there is no LLVM.
pub const WITHOUT_LLVM: [&str; 4] =
    ["stencil-runtime", "stencil-c-runtime", "stencil-frontend", "xtask"];

/// The crates through which LLVM and MLIR come in.
const LLVM: [&str; 2] = ["mlir-sys", "llvm-sys"];

/// The dependencies that must not be.
///
/// # Errors
/// When Cargo can't list dependencies, or the check does not see those of the compiler.
pub fn check(project: &Project) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for package in WITHOUT_LLVM {
        for found in reaches(&dependencies(project, package)?) {
            broken.push(format!("{package} depends on {found}"));
        }
    }
    let compiler = dependencies(project, "stencilc")?;
    ensure!(
        reaches(&compiler) == LLVM,
        "the check of dependencies is blind: it does not see that stencilc depends on {}",
        LLVM.join(" and ")
    );
    Ok(broken)
}

/// Names of all packages that `package` is built from, with all of its features.
fn dependencies(project: &Project, package: &str) -> Result<String> {
    let arguments = ["tree", "--all-features", "--edges=normal,build", "--prefix=none"];
    capture(project.cargo(&arguments).args(["--format={p}", "--package", package]))
}

/// The entry packages of LLVM among the lines `name version ...` of a dependency list.
fn reaches(dependencies: &str) -> Vec<&'static str> {
    let has = |name: &&str| dependencies.lines().any(|line| line.split(' ').next() == Some(name));
    LLVM.into_iter().filter(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_told_by_their_names() {
        let list = "stencilc v0.1.0 (here)\nmelior v0.27.8\nmlir-sys v220.0.1 (*)\n";
        assert_eq!(reaches(list), ["mlir-sys"]);
        assert!(reaches("mlir-sys-like v1.0.0\nserde v1\n").is_empty());
    }
}
