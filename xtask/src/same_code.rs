//! `cargo xtask same-code`: compares the code that two revisions of the compiler generate.
//!
//! The schedule is fixed to the one that the other revision takes for a strategy, and symbols are
//! numbered, so that equal code means equal PTX text. Where no strategy is asked for, only the
//! schedules that the two revisions choose are compared.

mod cases;
mod compiler;
mod ptx;
mod report;
mod revision;
mod schedule;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail, ensure};

use crate::project::{Project, stream};
use crate::setup;
use cases::Case;
use compiler::{Compiler, Output};
use report::{Finding, Verdict};
use schedule::Schedule;

/// The arguments of the command line.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    revision: String,
    /// A compiler that was built of the revision before.
    stencilc: Option<String>,
    /// Part of the programs' names.
    filter: String,
    /// Whether to take every combination of element type, fast math and size.
    all: bool,
}

impl Request {
    /// Reads `REVISION [--stencilc PATH] [--all] [FILTER]`.
    ///
    /// # Errors
    /// When the revision is missing, or an argument is one too many or unknown.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut request = Self::default();
        let mut words = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--all" => request.all = true,
                "--stencilc" => match rest.next() {
                    Some(path) => request.stencilc = Some(path.clone()),
                    None => bail!("--stencilc needs the path of a compiler"),
                },
                option if option.starts_with('-') => {
                    bail!("'same-code' has no option '{option}', only --stencilc PATH and --all")
                }
                _ => words.push(argument.clone()),
            }
        }
        let mut words = words.into_iter();
        match words.next() {
            Some(revision) => request.revision = revision,
            None => bail!("'same-code' needs a revision to compare with, such as HEAD or main"),
        }
        request.filter = words.next().unwrap_or_default();
        if let Some(extra) = words.next() {
            bail!("'same-code' takes one revision and one filter, and no '{extra}'");
        }
        Ok(request)
    }
}

/// Builds both compilers, compares all cases and prints what was found.
///
/// # Errors
/// When a compiler can't be built or started, no program fits the filter, or code differs.
pub fn run(project: &Project, request: &Request) -> Result<()> {
    setup::run(project)?;
    let cases = cases::all(project, &request.filter, request.all)?;
    ensure!(
        !cases.is_empty(),
        "no program of test-suite/programs has '{}' in its name",
        request.filter
    );
    let theirs = revision::compiler(project, &request.revision, request.stencilc.as_deref())?;
    stream(&mut project.cargo(&["build", "--release", "--bin", "stencilc"]))?;
    let ours = Compiler::new(project, project.binaries().join("stencilc"));
    let findings = in_parallel(project, &cases, |case| compare(case, &theirs, &ours))?;
    print!("{}", report::table(&cases, &findings));
    let different = findings.iter().filter(|finding| finding.verdict == Verdict::Different).count();
    ensure!(different == 0, "{different} cases differ from {}", request.revision);
    project.say("same code");
    Ok(())
}

/// Compares one case.
fn compare(case: &Case, theirs: &Compiler, ours: &Compiler) -> Result<Finding> {
    let plan = [case.options.clone(), vec!["--emit=plan".to_owned()]].concat();
    let their_plan = theirs.compile(case, &plan)?;
    let schedule = match &their_plan {
        Output::Text(text) => Schedule::read(text)?,
        Output::Declined { .. } => {
            return Ok(Finding::of(&their_plan, &ours.compile(case, &plan)?));
        }
    };
    if case.strategy.is_some() {
        let fixed = [case.sizes_and_math.clone(), schedule.options()].concat();
        let (old, new) = (theirs.compile(case, &fixed)?, ours.compile(case, &fixed)?);
        return Ok(Finding::of(&old.map(ptx::number_symbols), &new.map(ptx::number_symbols)));
    }
    match ours.compile(case, &plan)? {
        Output::Text(text) if Schedule::read(&text)? == schedule => Ok(Finding::equal()),
        Output::Text(text) => {
            let rated = |compiler: &Compiler, schedule: &Schedule| -> Result<String> {
                let rate = compiler.predicted_rate(case)?;
                Ok(format!("{schedule}, predicted GCells/s: {rate}"))
            };
            Ok(Finding::rescheduled(
                rated(theirs, &schedule)?,
                rated(ours, &Schedule::read(&text)?)?,
            ))
        }
        declined => Ok(Finding::of(&their_plan, &declined)),
    }
}

/// Does `work` for each case, on all cores, and says now and then how far it is.
fn in_parallel(
    project: &Project,
    cases: &[Case],
    work: impl Fn(&Case) -> Result<Finding> + Sync,
) -> Result<Vec<Finding>> {
    let cores = std::thread::available_parallelism()?.get();
    project.say(format!("same-code: {} cases on {cores} cores", cases.len()));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let one_after_another = || -> Result<()> {
        while let Some((at, case)) = take(&next, cases) {
            // Nobody takes a further case after one that could not be compared.
            let finding = work(case).inspect_err(|_| next.store(cases.len(), Ordering::Relaxed))?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((at, finding));
            let (before, now) =
                ((done.len() - 1) * 20 / cases.len(), done.len() * 20 / cases.len());
            if now > before {
                let different = done.iter().filter(|(_, f)| f.verdict == Verdict::Different);
                let (percent, different) = (now * 5, different.count());
                project.say(format!("same-code: {percent:3} %, {different} different"));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(one_after_another)).collect();
        for worker in workers {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(())
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, finding)| finding).collect())
}

fn take<'a>(next: &AtomicUsize, cases: &'a [Case]) -> Option<(usize, &'a Case)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    cases.get(at).map(|case| (at, case))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Request> {
        Request::parse(&arguments.iter().map(|a| a.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_come_in_any_order() {
        let request = parsed(&["--all", "main", "--stencilc", "bin/x", "star"]).unwrap();
        let wanted = Request {
            revision: "main".into(),
            stencilc: Some("bin/x".into()),
            filter: "star".into(),
            all: true,
        };
        assert_eq!(request, wanted);
        assert_eq!(
            parsed(&["main"]).unwrap(),
            Request { revision: "main".into(), ..Default::default() }
        );
    }

    #[test]
    fn faulty_arguments_are_refused() {
        let message = |arguments: &[&str]| format!("{:#}", parsed(arguments).unwrap_err());
        assert!(message(&[]).contains("needs a revision"));
        assert!(message(&["a", "b", "c"]).ends_with("no 'c'"));
        assert!(message(&["a", "--fast"]).contains("no option '--fast'"));
        assert!(message(&["a", "--stencilc"]).contains("needs the path"));
    }
}
