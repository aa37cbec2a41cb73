//! `cargo xtask demo`: the heat equation on real terrain, from its source to checked pictures.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::picture::{self, Heights};
use crate::project::{Project, capture};
use crate::{setup, stages};

const PROGRAM: &str = "test-suite/programs/heat2d.stencil";
const TERRAIN: &str = "test-suite/data/dem.npy";
const NUMPY: &str = "test-suite/tools/heat_on_terrain.py";
const OUT: &str = "out/demo";

/// Enough to carry heat, or here height, some ten cells far.
const STEPS: &str = "300";
/// Part of the difference to its four neighbours that a cell takes over in a step, where K is 1.
const ALPHA: &str = "0.2";

/// Sets up, builds, compiles, runs, checks and draws.
///
/// # Errors
/// Whatever goes wrong first, by name; a wrong result is an error too.
pub fn run(project: &Project) -> Result<()> {
    setup::run(project)?;
    project.say("demo: building the tools (the first time, this takes minutes)");
    stages::build(project)?;

    let out = project.root().join(OUT);
    std::fs::create_dir_all(&out).with_context(|| format!("creating {OUT}"))?;
    compile(project)?;

    project.say(format!(
        "demo: {STEPS} steps on the terrain of {TERRAIN}, which conducts better towards the east"
    ));
    python(project, &["conductivity", TERRAIN, "out/demo/k.npy"])?;
    let target = if has_device(project) { "cuda" } else { "cpu" };
    let arguments = [
        "--in",
        "A=test-suite/data/dem.npy",
        "--in",
        "K=out/demo/k.npy",
        "--out",
        "A=out/demo/after.npy",
    ];
    let mut run = stencilc(project, &["run", PROGRAM, "--target", target, "--steps", STEPS]);
    let alpha = format!("alpha={ALPHA}");
    let said = capture(run.args(["--set", &alpha]).args(arguments))?;
    said.lines().for_each(|line| println!("             {line}"));
    let verdict =
        python(project, &["check", TERRAIN, "out/demo/k.npy", "out/demo/after.npy", STEPS, ALPHA])
            .context("the result is wrong")?;
    project.say(format!("demo: run on {target}; the result {}", verdict.trim()));

    let before = Heights::read(&project.root().join(TERRAIN))?;
    let after = Heights::read(&out.join("after.npy"))?;
    picture::compare(&before, &after, &out)?;
    project.say("demo: done\n");
    println!("  program     {PROGRAM}");
    println!("  compiled    {OUT}/heat2d.ptx, {OUT}/heat2d.plan.json");
    println!("  result      {OUT}/after.npy, checked against NumPy");
    println!("  pictures    {OUT}/before.png, {OUT}/after.png, {OUT}/difference.png");
    Ok(())
}

/// Compiles to PTX and plan, and assembles the PTX for its registers and spills.
fn compile(project: &Project) -> Result<()> {
    let began = project.elapsed();
    for (level, file) in [("ptx", "heat2d.ptx"), ("plan", "heat2d.plan.json")] {
        let path = format!("{OUT}/{file}");
        capture(&mut stencilc(project, &[PROGRAM, &format!("--emit={level}"), "-o", &path]))?;
    }
    let seconds = (project.elapsed() - began).as_secs_f64();
    project.say(format!("demo: {PROGRAM} compiled to PTX and to its plan in {seconds:.2} s"));

    let ptx = std::fs::read_to_string(project.root().join(OUT).join("heat2d.ptx"))
        .with_context(|| format!("reading {OUT}/heat2d.ptx"))?;
    let architecture = architecture(&ptx).context("the PTX names no target")?;
    let mut ptxas = project.command(project.cuda().join("bin/ptxas"));
    ptxas.args([
        "-v",
        &format!("-arch={architecture}"),
        "out/demo/heat2d.ptx",
        "-o",
        "out/demo/heat2d.cubin",
    ]);
    let kernels = kernels(&capture(&mut ptxas)?);
    ensure!(!kernels.is_empty(), "ptxas found no kernel in the PTX");
    for kernel in kernels {
        project.say(format!("demo: ptxas -arch={architecture}: {kernel}"));
    }
    Ok(())
}

fn stencilc(project: &Project, arguments: &[&str]) -> std::process::Command {
    let mut command = project.command(project.binaries().join("stencilc"));
    command.args(arguments);
    command
}

fn python(project: &Project, arguments: &[&str]) -> Result<String> {
    capture(project.command(project.python()).arg(NUMPY).args(arguments))
}

/// Whether there is a GPU of NVIDIA's and its driver answers.
fn has_device(project: &Project) -> bool {
    let list = capture(project.command("nvidia-smi").arg("-L"));
    Path::new("/dev/nvidiactl").exists() && list.is_ok_and(|list| list.starts_with("GPU "))
}

/// The architecture that a PTX file is for, such as `sm_90`.
fn architecture(ptx: &str) -> Option<&str> {
    let target = ptx.lines().find_map(|line| line.strip_prefix(".target "))?;
    target.split([',', ' ']).next()
}

/// One line per kernel from the output of `ptxas -v`: name, registers, shared memory and spills.
fn kernels(verbose: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut name = "";
    let mut spills = "";
    for line in verbose.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            name = rest.split('\'').next().unwrap_or(rest);
        } else if line.contains("bytes spill stores") {
            spills = line;
        } else if let Some((_, used)) = line.split_once(": Used ") {
            found.push(format!("{name}: {used}; {spills}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_is_read_from_the_ptx() {
        assert_eq!(architecture("//\n.version 8.4\n.target sm_90a, debug\n"), Some("sm_90a"));
        assert_eq!(architecture(".version 8.4\n"), None);
    }

    #[test]
    fn every_kernel_gets_its_line() {
        let verbose = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
ptxas info    : Compile time = 1.0 ms
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 4096 bytes smem
";
        let expected = [
            "a: 10 registers, used 0 barriers; 0 bytes stack frame, 0 bytes spill stores, 0 bytes \
             spill loads",
            "b: 255 registers, used 1 barriers, 4096 bytes smem; \
             8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads",
        ];
        assert_eq!(kernels(verbose), expected);
    }
}
