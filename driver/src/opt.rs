//! `stencil-opt`: runs a pipeline on MLIR text, like upstream's `mlir-opt`.

use crate::compile::{print_ir, print_timing};
use crate::files::{self, Outputs};
use clap::Parser;
use std::path::{Path, PathBuf};
use stencil_compiler::stages::{replace_functions, text};
use stencil_compiler::{Failure, Progress, Source};
use stencil_dialects::IRDL;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_passes::pipeline_text;
use stencil_passes::registry::passes;
use stencil_passes::runner::Runner;
use stencil_passes::upstream;

/// Run passes on MLIR with the stencil, tiled and peer dialects.
#[derive(Debug, Parser)]
#[command(name = "stencil-opt", version, after_help = passes_help())]
pub struct Args {
    /// The MLIR file; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The passes, ours and upstream's:
    /// 'builtin.module(tile-overlapped{pyramid-height=4},lower-block)'
    #[arg(long, default_value = "", hide_default_value = true)]
    pass_pipeline: String,
    /// Functions in MLIR for the place of point functions, by their names, before the passes; one
    /// called compute_element is for the only one
    #[arg(long, value_name = "FILE")]
    element: Option<PathBuf>,
    /// Treat each part between lines of `// -----` as a file of its own
    #[arg(long)]
    split_input_file: bool,
    /// Check that the diagnostics are those of `expected-error {{...}}` comments
    #[arg(long)]
    verify_diagnostics: bool,
    /// Print the IR to standard error after each pass
    #[arg(long)]
    print_ir_after_all: bool,
    /// Print to standard error how long each pass took
    #[arg(long)]
    timing: bool,
    /// Print the IRDL declarations of our dialects, for `mlir-opt --irdl-file`
    #[arg(long, exclusive = true)]
    print_irdl: bool,
    /// Where to write; standard output if left out
    #[arg(short, long)]
    output: Option<PathBuf>,
}

fn passes_help() -> String {
    let known = upstream::PASSES.join(", ");
    let mut help =
        format!("Passes of upstream that can be named: {known}\n\nPasses of stencilc:\n");
    for pass in passes() {
        help += &format!("  {:<18} {}\n", pass.name, pass.summary);
        for (name, meaning) in pass.options {
            help += &format!("      {name}=  {meaning}\n");
        }
    }
    help
}

/// Runs the tool.
///
/// # Errors
/// What is wrong with each part of the file; then no output is written.
pub fn run(args: &Args) -> Result<(), Vec<Failure>> {
    let alone = |failure| vec![failure];
    if args.print_irdl {
        let mut outputs = Outputs::default();
        outputs.add_text(Path::new("-"), &IRDL.map(|(_, text)| text).concat());
        return outputs.write().map_err(alone);
    }
    let output = args.output.as_deref().unwrap_or(Path::new("-"));
    let place = ("-o".to_owned(), output.to_owned());
    files::check_outputs(&[place], std::slice::from_ref(&args.file)).map_err(alone)?;
    let source = files::read_module(&args.file).map_err(alone)?;
    let element = args.element.as_deref().map(files::read_module).transpose().map_err(alone)?;
    let parts: Vec<Source> = if args.split_input_file { split(&source) } else { vec![source] };
    if !args.pass_pipeline.is_empty() {
        tell_crashes();
    }
    let mut texts = Vec::new();
    let mut failures = Vec::new();
    for part in &parts {
        match (process(args, part, element.as_ref()), args.verify_diagnostics) {
            (Ok(text), false) => texts.push(text),
            (Err(error), false) => failures.push(Failure::in_source(&error, part)),
            (result, true) => failures.extend(unexpected(part, result.err().as_ref())),
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    let mut outputs = Outputs::default();
    if !args.verify_diagnostics {
        outputs.add_text(output, &texts.join("// -----\n"));
    }
    outputs.write().map_err(alone)
}

/// Passes of upstream that the user asks for crash on some modules, and LLVM's reader crashes on
/// some files: the process then ends with a sentence.
pub(crate) fn tell_crashes() {
    #[cfg(target_os = "linux")]
    let _ = stencil_runtime::crash::tell(&upstream::RUNNING);
}

fn process(args: &Args, source: &Source, element: Option<&Source>) -> Result<String, Error> {
    let context = stencil_dialects::context()?;
    let mut module = mlir::parse_module(&context, &source.text, &source.name)?;
    if let Some(element) = element {
        replace_functions(&context, &module, element)?;
    }
    let mut print = |name: &str, module: &melior::ir::Module| {
        print_ir(Progress::Pass { name, ir: &|| text(module) })
    };
    let mut runner =
        Runner { after: args.print_ir_after_all.then_some(&mut print as _), timing: Vec::new() };
    let steps = pipeline_text::parse(&args.pass_pipeline)?;
    upstream::asked(|| runner.run(&context, &mut module, &steps))?;
    if args.timing {
        print_timing(&runner.timing);
    }
    Ok(text(&module))
}

/// The parts of a file; each keeps its line numbers by leading empty lines.
fn split(source: &Source) -> Vec<Source> {
    let mut parts = vec![String::new()];
    for (number, line) in source.text.lines().enumerate() {
        if line.trim() == "// -----" {
            parts.push("\n".repeat(number + 1));
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts.into_iter().map(|text| Source::new(source.name.clone(), text)).collect()
}

/// Expected diagnostics that did not come, and diagnostics that were not expected.
///
/// `// expected-error {{part of the message}}` stands on the line it speaks of, or says how many
/// lines away that is: `@+1`, `@-2`; `@unknown` is a message without a place. Notes likewise.
fn unexpected(source: &Source, error: Option<&Error>) -> Vec<Failure> {
    let mut found: Vec<(&str, usize, &str)> = Vec::new();
    if let Some(error) = error {
        found.push(("error", error.place.line, &error.message));
        found.extend(error.notes.iter().map(|(place, note)| ("note", place.line, note.as_str())));
    }
    let mut failures = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        for kind in ["error", "note"] {
            let Some((_, rest)) = line.split_once(&format!("expected-{kind}")) else { continue };
            let Some((at, message)) = rest
                .split_once("{{")
                .and_then(|(at, rest)| Some((at.trim(), rest.split_once("}}")?.0)))
            else {
                continue;
            };
            let wanted = match at.strip_prefix('@') {
                Some("unknown") => Some(0),
                Some(distance) => distance
                    .parse::<isize>()
                    .ok()
                    .and_then(|distance| (index + 1).checked_add_signed(distance)),
                None => Some(index + 1),
            };
            let matching = found.iter().position(|(other, line, text)| {
                *other == kind && Some(*line) == wanted && text.contains(message)
            });
            match matching {
                Some(position) => drop(found.remove(position)),
                None => failures.push(Failure::user(format!(
                    "{}:{}: the expected {kind} '{message}' did not come",
                    source.name,
                    index + 1
                ))),
            }
        }
    }
    // Notes need not all be expected; errors must.
    for (kind, line, message) in found {
        if kind == "error" {
            failures.push(Failure::user(format!(
                "{}:{line}: unexpected error: {message}",
                source.name
            )));
        }
    }
    failures
}
