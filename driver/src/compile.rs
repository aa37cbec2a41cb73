//! `stencilc FILE`: compiles a source and writes the levels that are asked for.

use crate::cli::{CommonArgs, CompileArgs, Emit};
use crate::files::{self, Outputs};
use crate::message::say;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stencil_compiler::{Control, Failure, Level, Progress, Session, Source};

/// Does what the command line asks for.
pub(crate) fn execute(
    common: &CommonArgs,
    args: &CompileArgs,
    cancel: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let mut levels: Vec<Level> = Vec::new();
    for Emit(level) in &args.emit {
        if !levels.contains(level) {
            levels.push(*level);
        }
    }
    let places = places(args, &levels)?;
    files::distinct(&common.files(), &places)?;
    let source = files::read(&common.file)?;
    let session = common.session(&source)?;
    let mut outputs = Outputs::default();
    if let (Some(count), Some(stem)) = (args.candidates, &args.output) {
        candidates(&session, &source, &levels, (count, stem), cancel, &mut outputs)?;
        return outputs.write();
    }
    let mut kept = levels.clone();
    if args.report {
        kept.extend([Level::Plan, Level::Ptx]);
    }
    let mut print = |progress: Progress<'_>| print_ir(progress);
    let progress = common.print_ir_after_all.then_some(&mut print as _);
    let control = Control { progress, cancel: Arc::clone(cancel) };
    let compiled = session.compile(&source, &kept, control)?;
    if common.timing {
        print_timing(compiled.timing());
    }
    if args.report {
        say(session.report(&source, &compiled)?);
    }
    for (level, place) in levels.iter().zip(&places) {
        outputs.add_text(place, compiled.text(*level).unwrap_or_default());
    }
    outputs.write()
}

/// Where each level goes; `-` is standard output.
fn places(args: &CompileArgs, levels: &[Level]) -> Result<Vec<PathBuf>, Failure> {
    let named = |stem: &Path, prefix: &str| -> Vec<PathBuf> {
        let name = |level: &Level| format!("{prefix}{}", level.extension());
        levels.iter().map(|level| with_extension(stem, &name(level))).collect()
    };
    match (levels, &args.output, args.candidates) {
        (_, Some(stem), Some(count)) => {
            Ok((0..count).flat_map(|number| named(stem, &format!("{number}."))).collect())
        }
        ([_], Some(output), None) => Ok(vec![output.clone()]),
        ([_], None, None) => Ok(vec![PathBuf::from("-")]),
        (_, Some(stem), None) => Ok(named(stem, "")),
        _ => Err(Failure::user(
            "several levels need -o NAME; each level is written to NAME with an extension of its \
             own",
        )),
    }
}

/// Compiles the schedules that are predicted to be fastest, each to files with its number.
fn candidates(
    session: &Session,
    source: &Source,
    levels: &[Level],
    (count, stem): (usize, &Path),
    cancel: &Arc<AtomicBool>,
    outputs: &mut Outputs,
) -> Result<(), Failure> {
    let fingerprint = session.fingerprint(source)?;
    let candidates = session.candidates(source)?.into_iter().take(count);
    for (number, candidate) in candidates.enumerate() {
        let control = Control { progress: None, cancel: Arc::clone(cancel) };
        let compiled = session.with_choice(candidate.config).compile(source, levels, control)?;
        for (level, text) in compiled.texts() {
            let place = with_extension(stem, &format!("{number}.{}", level.extension()));
            match compiled.plan().filter(|_| level == Level::Plan) {
                Some(plan) => {
                    let mut plan = plan.clone();
                    plan.settings.fingerprint.clone_from(&fingerprint);
                    outputs.add_text(&place, &(plan.to_json().map_err(Failure::user)? + "\n"));
                }
                None => outputs.add_text(&place, text),
            }
        }
    }
    Ok(())
}

/// `stem` with the extension of a level.
fn with_extension(stem: &Path, extension: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Prints the IR after a pass to standard error.
pub(crate) fn print_ir(progress: Progress<'_>) {
    if let Progress::Pass { name, ir } = progress {
        say(format_args!("// ----- after {name} -----\n{}\n", ir()));
    }
}

/// Prints to standard error how long each pass took.
pub(crate) fn print_timing(timing: &[(String, Duration)]) {
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    for (pass, time) in timing {
        say(format_args!("{:>10.3} ms  {pass}\n", milliseconds(time)));
    }
    let total: f64 = timing.iter().map(|(_, time)| milliseconds(time)).sum();
    say(format_args!("{total:>10.3} ms  in all\n"));
}
