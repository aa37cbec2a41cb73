//! The compiler of another revision: built once in a git worktree, then kept.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::compiler::Compiler;
use crate::project::{Project, capture, stream};

/// The compiler of `revision`, or `stencilc`, which is kept as that revision's from then on.
///
/// Below `target/same-code`, a folder named after the revision holds its compiler and answers; all
/// revisions are built in the same `worktree` and `build`, so that they share dependencies.
///
/// # Errors
/// When there is no such revision, or its compiler can't be built or copied.
pub fn compiler(project: &Project, revision: &str, stencilc: Option<&str>) -> Result<Compiler> {
    let commit = format!("{revision}^{{commit}}");
    let mut git = project.command("git");
    let hash = capture(git.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]))
        .ok()
        .with_context(|| format!("git knows no revision '{revision}'"))?;
    let hash = hash.trim();

    let folder = project.target().join("same-code").join(hash);
    let kept = folder.join("stencilc");
    let answers = folder.join("answers");
    let built = match stencilc {
        Some(path) => Some(Path::new(path).to_path_buf()),
        None if kept.is_file() => None,
        None => Some(build(project, hash)?),
    };
    if let Some(built) = built {
        ensure!(built.is_file(), "there is no compiler {}", built.display());
        if answers.exists() {
            std::fs::remove_dir_all(&answers)?;
        }
        std::fs::create_dir_all(&answers)?;
        let partial = kept.with_extension("partial");
        std::fs::copy(&built, &partial)
            .and_then(|_| std::fs::rename(&partial, &kept))
            .with_context(|| format!("copying {} to {}", built.display(), kept.display()))?;
    }
    Ok(Compiler::new(project, kept).with_answers(answers))
}

/// Checks a revision out into the worktree for builds, and builds its compiler there.
fn build(project: &Project, hash: &str) -> Result<std::path::PathBuf> {
    let ours = project.target().join("same-code");
    let (worktree, target) = (ours.join("worktree"), ours.join("build"));
    project.say(format!("same-code: building the compiler of {hash}"));
    std::fs::create_dir_all(&ours)?;
    // Forgets a worktree whose folder was deleted; git would refuse to add it again.
    capture(project.command("git").args(["worktree", "prune"]))?;
    let mut git = project.command("git");
    if worktree.is_dir() {
        git.arg("-C").arg(&worktree).args(["checkout", "--quiet", "--force", "--detach", hash]);
    } else {
        git.args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&worktree).arg(hash);
    }
    capture(&mut git)?;
    let mut cargo = project.cargo(&["build", "--release", "--bin", "stencilc"]);
    stream(cargo.current_dir(&worktree).env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("release/stencilc"))
}
