//! `cargo xtask test`: everything that a change must pass, stage by stage.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::project::{LLVM, Project, capture, stream};
use crate::{c_host, links, python, rules, setup, snapshots};

struct Stage {
    name: &'static str,
    what: &'static str,
    run: Run,
}

/// Does a stage's work; the result is its summary, in a few words or lines.
type Run = fn(&Project) -> Result<String>;

const fn stage(name: &'static str, what: &'static str, run: Run) -> Stage {
    Stage { name, what, run }
}

/// In the order in which they run: stages that fail quickly come first.
const STAGES: [Stage; 12] = [
    stage("setup", "install what is missing", set_up),
    stage("fmt", "layout of the code", format),
    stage("rules", "what must not come into the tree", rules::check),
    stage("clippy", "lints, warnings as errors", clippy),
    stage("build", "the tools and the tests", build_all),
    stage("unit", "unit and snapshot tests", unit),
    stage("lit", "the tools from IR to IR", lit),
    stage("c", "programs in C on the libraries", c_host::check),
    stage("python", "the Python package", python::check),
    stage("numeric", "results against NumPy", numeric),
    stage("mpi", "runs of several processes", mpi),
    stage("docs", "documentation, its examples and its links", docs),
];

/// Take the place of `build` where no tests are run: with and without the stage `c`.
const LIBRARIES: Stage = stage("build", "the tools and the libraries", build_libraries);
const TOOLS: Stage = stage("build", "the tools", build);

/// Stages that run the project's binaries.
const NEED_BUILD: [&str; 3] = ["lit", "c", "numeric"];

/// Which stages to run, and whether to go on after a failure.
#[derive(Debug, PartialEq)]
pub struct Selection {
    named: Vec<String>,
    keep_going: bool,
}

/// The stages' names, in order.
pub fn names() -> Vec<&'static str> {
    STAGES.iter().map(|stage| stage.name).collect()
}

impl Selection {
    /// Reads the arguments of `cargo xtask test`: `--keep-going` and names of stages.
    ///
    /// # Errors
    /// When an argument is neither; says what there is.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let (options, named): (Vec<_>, Vec<_>) =
            arguments.iter().cloned().partition(|a| a.starts_with('-'));
        if let Some(option) = options.iter().find(|option| *option != "--keep-going") {
            bail!("'test' has no option '{option}', only --keep-going");
        }
        if let Some(name) = named.iter().find(|name| !names().contains(&name.as_str())) {
            bail!("no stage '{name}': there are {}", names().join(", "));
        }
        Ok(Self { named, keep_going: !options.is_empty() })
    }

    /// The stages named, or all; with them the stages that they build on.
    fn stages(&self) -> Vec<&'static Stage> {
        let named = |name: &str| self.named.is_empty() || self.named.iter().any(|n| n == name);
        let wanted = |stage: &&Stage| {
            named(stage.name)
                || stage.name == "setup"
                || (stage.name == "build" && NEED_BUILD.into_iter().any(named))
        };
        let of = |stage: &'static Stage| match stage.name {
            "build" if named("unit") => stage,
            "build" if named("c") => &LIBRARIES,
            "build" => &TOOLS,
            _ => stage,
        };
        STAGES.iter().filter(wanted).map(of).collect()
    }
}

/// Runs the selected stages, then prints a table of them.
///
/// # Errors
/// Names the stages that failed.
pub fn run(project: &Project, selection: &Selection) -> Result<()> {
    let mut table = String::new();
    let mut failed = Vec::new();
    let mut closing = String::new();
    for stage in selection.stages() {
        project.say(format!("{}: {}", stage.name, stage.what));
        let began = project.elapsed();
        let result = (stage.run)(project);
        let seconds = (project.elapsed() - began).as_secs_f64();
        let first = match &result {
            Ok(found) => found.lines().next().unwrap_or_default(),
            Err(_) => "FAILED",
        };
        table.push_str(&format!("  {:8} {seconds:7.1} s  {first}\n", stage.name));
        match result {
            // The test runner's own closing lines are repeated below the table.
            Ok(found) if stage.name == "unit" => closing = found,
            Ok(_) => (),
            Err(error) => {
                eprintln!("{}: {error:#}", stage.name);
                failed.push(stage.name);
                if stage.name == "setup" || !selection.keep_going {
                    break;
                }
            }
        }
    }
    print!("\n  stage       time    result\n{table}\n");
    if !closing.is_empty() {
        println!("{closing}");
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    project.say("all passed");
    Ok(())
}

fn set_up(project: &Project) -> Result<String> {
    setup::run(project)?;
    Ok("complete".into())
}

fn format(project: &Project) -> Result<String> {
    let arguments = ["fmt", "--all", "--", "--check", "-l"];
    capture(&mut project.cargo(&arguments)).context("`cargo fmt --all` mends these")?;
    Ok("as rustfmt has it".into())
}

/// The runtime is looked at without its features too, as the passes have it where nothing else of
/// the workspace is built.
fn clippy(project: &Project) -> Result<String> {
    let bare = ["clippy", "--release", "--package", "stencil-runtime", "--no-default-features"];
    stream(project.cargo(&bare).args(["--", "-D", "warnings"]))?;
    let arguments = ["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"];
    stream(&mut project.cargo(&arguments))?;
    Ok("no warnings".into())
}

/// Builds the tools.
///
/// # Errors
/// When they don't build.
pub fn build(project: &Project) -> Result<String> {
    stream(&mut project.cargo(&["build", "--release"]))?;
    Ok("stencilc, stencil-opt, stencil-bench".into())
}

/// Builds the libraries for C too.
fn build_libraries(project: &Project) -> Result<String> {
    stream(&mut project.cargo(&["build", "--release", "--workspace"]))?;
    Ok("tools and libraries".into())
}

/// Builds tools and tests at once: apart, Cargo would build most crates twice, because the crates
/// that tests depend on ask for more features of others.
fn build_all(project: &Project) -> Result<String> {
    stream(&mut project.cargo(&["build", "--release", "--workspace", "--all-targets"]))?;
    Ok("tools and tests".into())
}

/// Runs all tests of the crates by cargo-nextest where it is installed, else by `cargo test`; then
/// looks for snapshots that no test referred to.
fn unit(project: &Project) -> Result<String> {
    let references = project.target().join("xtask/snapshot-references");
    std::fs::create_dir_all(references.with_file_name(""))?;
    std::fs::write(&references, "")?;
    let nextest = capture(&mut project.cargo(&["nextest", "--version"])).is_ok();
    let arguments: &[&str] = if nextest {
        &["nextest", "run", "--release", "--workspace", "--no-fail-fast", "--status-level=slow"]
    } else {
        &["test", "--release", "--workspace", "--all-targets", "--no-fail-fast"]
    };
    let mut tests = project.cargo(arguments);
    tests.env("INSTA_UPDATE", "no").env("INSTA_SNAPSHOT_REFERENCES_FILE", &references);
    let closing = closing_lines(&stream(&mut tests)?);
    let snapshots = snapshots::all_referenced(project.root(), &references)?;
    Ok(format!("{closing}\n{snapshots} snapshots, each referred to by a test"))
}

/// nextest's summary as it stands, or the sum of the last lines of the test binaries.
fn closing_lines(output: &str) -> String {
    if let Some(at) = output.find("Summary [") {
        return output[at..].trim_end().to_owned();
    }
    let results = || output.lines().filter_map(|line| line.strip_prefix("test result: "));
    let sum = |what: &str| -> usize {
        let parts = results().flat_map(|line| line.split(['.', ';']));
        parts.filter_map(|part| part.trim().strip_suffix(what)?.trim().parse::<usize>().ok()).sum()
    };
    let (passed, failed, ignored) = (sum("passed"), sum("failed"), sum("ignored"));
    format!(
        "test result: {passed} passed; {failed} failed; {ignored} ignored, in {} binaries",
        results().count()
    )
}

fn lit(project: &Project) -> Result<String> {
    let mut lit = project.command(project.python());
    lit.arg(Path::new(LLVM).join("bin/lit")).args(["-v", "test-suite"]);
    let output = stream(&mut lit)?;
    let counts =
        output.split_once("Total Discovered Tests: ").context("lit's summary is missing")?.1;
    let counts: Vec<&str> = counts.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Ok(format!("tests: {}", counts.join("; ")))
}

fn numeric(project: &Project) -> Result<String> {
    let output = stream(project.command(project.python()).arg("test-suite/numeric/run.py"))?;
    Ok(output.lines().last().unwrap_or_default().trim().to_owned())
}

/// Installs Open MPI, which nothing else needs, and runs the tests of `stencilc-mpi`. It names the
/// whole workspace, so that nothing is built again with other features.
fn mpi(project: &Project) -> Result<String> {
    setup::debian_packages(project, &["libopenmpi-dev", "openmpi-bin"])?;
    let mut tests = project.cargo(&["test", "--release", "--workspace"]);
    tests.args(["--features", "stencil-mpi/mpi", "--test", "mpirun"]);
    let output = stream(tests.env("LIBCLANG_PATH", Path::new(LLVM).join("lib")))?;
    Ok(closing_lines(&output))
}

fn docs(project: &Project) -> Result<String> {
    let mut doc = project.cargo(&["doc", "--no-deps", "--release", "--workspace"]);
    stream(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    stream(&mut project.cargo(&["test", "--doc", "--release", "--workspace"]))?;
    let links = links::check(project.root())?;
    Ok(format!("no warnings, {links} links lead somewhere"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(arguments: &[&str]) -> Result<Vec<&'static str>> {
        let arguments: Vec<String> = arguments.iter().map(|a| a.to_string()).collect();
        Ok(Selection::parse(&arguments)?.stages().iter().map(|stage| stage.name).collect())
    }

    #[test]
    fn stages_come_with_what_they_need_and_in_order() {
        assert_eq!(selected(&[]).unwrap(), names());
        assert_eq!(selected(&["--keep-going"]).unwrap(), names());
        assert_eq!(selected(&["lit", "fmt"]).unwrap(), ["setup", "fmt", "build", "lit"]);
        assert_eq!(selected(&["docs"]).unwrap(), ["setup", "docs"]);
        let builds = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|a| a.to_string()).collect();
            let stages = Selection::parse(&arguments).unwrap().stages();
            stages.iter().find(|stage| stage.name == "build").map(|stage| stage.what)
        };
        assert_eq!(builds(&[]), Some("the tools and the tests"));
        assert_eq!(builds(&["lit"]), Some("the tools"));
        assert_eq!(builds(&["c", "lit"]), Some("the tools and the libraries"));
    }

    #[test]
    fn unknown_words_are_refused() {
        let message = |arguments| format!("{:#}", selected(arguments).unwrap_err());
        assert!(message(&["lint"]).starts_with("no stage 'lint': there are setup, fmt"));
        assert_eq!(message(&["--fast"]), "'test' has no option '--fast', only --keep-going");
    }

    #[test]
    fn closing_lines_of_both_runners() {
        let nextest = "PASS a\n------\n     Summary [   0.1s] 2 tests run: 2 passed, 0 skipped\n";
        assert_eq!(closing_lines(nextest), "Summary [   0.1s] 2 tests run: 2 passed, 0 skipped");
        let cargo = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\nx\n\
                     test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(
            closing_lines(cargo),
            "test result: 15 passed; 0 failed; 1 ignored, in 2 binaries"
        );
    }
}
