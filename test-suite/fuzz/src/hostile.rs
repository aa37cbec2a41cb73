//! Hostile use of the built tools: command lines, files in the way, signals, damaged plans and
//! damaged headers. The tools must end in time, print a message where they fail, and lose nothing.
//!
//! Seed and number make an attempt: a folder, a command to run in it, and the outputs that the
//! command names. It is judged by its exit code, its words, and the folder afterwards. A file
//! for each class of attempts lies in the folder `hostile`.

mod attempt;
mod files;
mod folder;
mod headers;
mod options;
mod plans;
mod signals;

use crate::check::Fault;
use crate::outcome::Outcome;
use crate::random::Random;
pub use attempt::{Attempt, Class};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A program on one grid that a point-by-point run ends in no time.
const PROGRAM: &str = "param N\nparam M\nscalar alpha : f32 = 0.1\n\
    grid G = [0..N-1, 0..M-1]\nfield A : f32 on G\nconst field K : f32 on G\n\
    fn heat -> A [1..N-2, 1..M-2] =\n    A[0,0] + alpha * K[0,0] * (A[-1,0] + A[1,0])\nsteps 3\n";

/// A program that stops by a value over its grid, with the names of the first.
const REDUCING: &str = "param N\nparam M\nscalar alpha : f32 = 0.1\n\
    grid G = [0..N-1, 0..M-1]\nfield A : f32 on G\nconst field K : f32 on G\n\
    reduce worst : f32 = max(A[0,0] * K[0,0]) on [0..N-1, 0..M-1]\n\
    fn heat -> A [0..N-1, 0..M-1] = A[0,0] * alpha + K[0,0] * worst\n\
    steps 3 until worst < 0.01 every 2\n";

/// A program that reads what the sweep has computed, with the names of the first.
const SWEEP: &str = "param N\nparam M\nscalar alpha : f32 = 0.1\n\
    grid G = [0..N-1, 0..M-1]\nfield A : f32 on G\nconst field K : f32 on G\n\
    fn heat -> A [1..N-1, 1..M-1] =\n\
    A'[-1,0] + alpha * (K[0,0] + A'[0,-1]) + A[0,0]\nsteps 3\n";

/// An affine nest with the names of the first program.
const NEST: &str = "func.func @heat(\n\
    %a: memref<?x?xf32> {stencil.name = \"A\", stencil.extents = [\"N\", \"M\"]},\n\
    %k: memref<?x?xf32> {stencil.name = \"K\", stencil.extents = [\"N\", \"M\"]},\n\
    %alpha: f32 {stencil.name = \"alpha\"}, %n: index {stencil.name = \"N\"},\n\
    %m: index {stencil.name = \"M\"}) {\n\
    affine.parallel (%i, %j) = (0, 0) to (symbol(%n), symbol(%m)) {\n\
    %0 = affine.load %a[%i, %j] : memref<?x?xf32>\n\
    %1 = affine.load %k[%i, %j] : memref<?x?xf32>\n\
    %2 = arith.mulf %alpha, %1 : f32\n    %3 = arith.addf %0, %2 : f32\n\
    affine.store %3, %a[%i, %j] : memref<?x?xf32>\n    }\n    return\n}\n";

/// The tools, and what they made to be damaged.
#[derive(Debug)]
pub struct Inputs {
    tools: PathBuf,
    /// Launch plans as JSON, each with a program's name.
    plans: Vec<serde_json::Value>,
    scratch: TempDir,
}

/// The tools beside this program, and plans that they make.
///
/// # Errors
/// When a tool is not built, or makes no plan.
pub fn inputs() -> Result<Inputs, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // A test lies one folder further down.
    let tools = program.ancestors().skip(1).take(2).find(|folder| folder.join("stencilc").exists());
    let tools = tools.ok_or("stencilc is not built: run `cargo build --release` first")?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let plans = plans::real(tools)?;
    Ok(Inputs { tools: tools.to_owned(), plans, scratch })
}

/// The attempt of a number.
pub fn attempt(inputs: &Inputs, seed: u64, index: u64) -> Attempt {
    let random = &mut Random::of_case(seed, index);
    let mut attempt = match random.below(100) {
        0..45 => options::attempt(random),
        45..65 => files::attempt(random),
        65..80 => plans::attempt(&inputs.plans, random),
        80..95 => headers::attempt(random),
        _ => signals::attempt(random),
    };
    if matches!(attempt.class, Class::Options | Class::Files) && random.percent(10) {
        attempt.blocks = Some(random.pick(&[1, 2, 4, 16, 64]));
    }
    attempt
}

/// Makes an attempt and judges it.
pub fn check(inputs: &Inputs, seed: u64, index: u64) -> Outcome {
    let attempt = attempt(inputs, seed, index);
    if let Some(failure) = attempt.plan.as_deref().and_then(plans::check) {
        return failure;
    }
    let (work, words) = (inputs.scratch.path().join("work"), inputs.scratch.path().join("words"));
    let done = folder::lay(&work, &attempt.things)
        .and_then(|()| std::fs::create_dir_all(&words))
        .and_then(|()| attempt.run(&inputs.tools, &work, &words));
    match done {
        Ok(Ok(how)) => Outcome::Accepted(how),
        Ok(Err((fault, message))) => {
            Outcome::Failed(fault, format!("{:?}: {message}", attempt.class))
        }
        Err(error) => Outcome::Failed(Fault::Crash, format!("the attempt can't be made: {error}")),
    }
}

/// A tool as a process without devices, with its memory and its files limited and signals as usual.
fn command(tools: &Path, name: &str, blocks: Option<u32>) -> Command {
    let mut command = Command::new("env");
    let files = blocks.map(|blocks| format!("ulimit -f {blocks}; ")).unwrap_or_default();
    command
        .args(["--default-signal", "sh", "-c"])
        .arg(format!("ulimit -c 0; ulimit -v 4000000; {files}exec \"$0\" \"$@\""))
        .arg(tools.join(name))
        .env("CUDA_VISIBLE_DEVICES", "-1")
        .env_remove("STENCILC_SCHEDULES");
    command
}
