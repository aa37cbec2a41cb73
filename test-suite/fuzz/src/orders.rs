//! Passes in any order: random lists over random programs, functions of affine loops, kernels by
//! hand, and the modules of the test suite.
//!
//! Each pass of a list works on the module that the passes before it left, or refuses it in words
//! and changes nothing. A module that reaches the gpu level must have the result of its start, bit
//! for bit. A pass whose head promises that a second run changes nothing keeps the promise. A list
//! that fails is made shorter.
//!
//! ```text
//! seed --draw--> Start, list --walk--> module --launch plan, simulator--> the start's result
//! ```

mod draw;
pub mod kernels;
mod options;
pub mod start;

use crate::check::Fault;
use crate::outcome::{Outcome, attempt, folder};
use crate::random::Random;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::Operation;
use start::{Opened, Start};
use std::time::{Duration, Instant};
use stencil_compiler::stages::text;
use stencil_dialects::error::Error;
use stencil_dialects::{mlir, tiled};
use stencil_passes::llvm::emit_ptx;
use stencil_passes::pass::Step;
use stencil_passes::runner::Runner;
use stencil_passes::{launch_plan, pipeline, pipeline_text};

/// A case: a start and a list of passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The start.
    pub start: Start,
    /// The passes, as in the text of a pipeline.
    pub steps: Vec<String>,
    /// Whether each pass gets the printed text of the module before it.
    pub printed: bool,
    /// Whether the kernels are brought to PTX, too.
    pub ptx: bool,
}

/// Passes whose heads promise that a second run changes nothing.
const REPEATABLE: [&str; 14] = [
    "bank-pad",
    "coalesce-relayout",
    "eliminate-barriers",
    "exact-division",
    "guard-launches",
    "hoist-guards",
    "interleave-records",
    "keep-in-registers",
    "place-constants",
    "sink-time-loops",
    "tile-affine-nest",
    "transpose-arrays",
    "unroll-by-registers",
    "vectorize-copies",
];

/// Passes that leave operations behind that the simulator does not run.
const BEYOND: [&str; 3] = ["lower-peer", "convert-math-to-calls", "host-entries"];

/// Modules of the test suite longer than this take long, and add little.
const MOST_BYTES: usize = 12_000;

/// The time for making a failing list shorter.
const SHORTER: Duration = Duration::from_secs(20);

/// The modules of the test suite that lists may start from.
///
/// # Errors
/// When a file can't be read.
pub fn files() -> Result<Vec<String>, String> {
    let read = |error: std::io::Error| error.to_string();
    let folders = ["passes", "dialects"].map(|name| folder(name, "mlir"));
    let texts = folders.into_iter().collect::<Result<Vec<_>, _>>().map_err(read)?.concat();
    let parts = texts.iter().flat_map(|text| text.split("// -----\n"));
    Ok(parts.filter(|part| part.len() < MOST_BYTES).map(str::to_owned).collect())
}

/// The case of a seed and a number.
pub fn order(files: &[String], seed: u64, index: u64) -> Order {
    let random = &mut Random::of_case(seed ^ 0x6f72_6465_7273, index);
    let start = Start::draw(random, files, seed, index);
    let steps = start.list(random);
    Order { start, steps, printed: random.percent(20), ptx: random.percent(8) }
}

impl Order {
    /// The start's text, and the list as the command that runs it.
    pub fn text(&self, context: &Context) -> String {
        let list = self.steps.join(",");
        let module = match self.start.open(context) {
            Ok(Some(opened)) => opened.text,
            Ok(None) => "// The start is refused.\n".to_owned(),
            Err((fault, message)) => format!("// {fault:?}: {message}\n"),
        };
        format!("// Without the passes that refuse it: {}\n{module}", command(&list))
    }
}

fn command(list: &str) -> String {
    format!("stencil-opt FILE --pass-pipeline='builtin.module({list})'")
}

/// Checks a case.
pub fn check(order: &Order, context: &Context) -> Outcome {
    attempt(|| {
        let Some(opened) = order.start.open(context)? else { return Ok(Outcome::Refused) };
        let outcome = run(order, &order.steps, &opened, context);
        let Outcome::Failed(fault, _) = outcome else { return Ok(outcome) };
        let (steps, message) = shorter(order, fault, &opened, context);
        Err((fault, format!("{}: {message}", command(&steps.join(",")))))
    })
}

/// Runs a list. A pass that refuses the module is left out.
fn run(order: &Order, steps: &[String], opened: &Opened, context: &Context) -> Outcome {
    attempt(|| {
        let stop = |error: Error| (Fault::Internal, error.to_string());
        let mut module = mlir::parse_module(context, &opened.text, "start.mlir").map_err(stop)?;
        let mut beyond = false;
        for step in steps {
            let Some(next) = after(context, &module, step)? else { continue };
            let name = step.split('{').next().unwrap_or_default();
            if REPEATABLE.contains(&name) {
                repeat(context, &next, step)?;
            }
            beyond |= BEYOND.contains(&name);
            module = if order.printed { again(context, &next)? } else { next };
        }
        let plan = match launch_plan::of(context, &module) {
            Ok(plan) => plan,
            Err(error) if error.is_internal() => return Err(stop(error)),
            Err(_) => return Ok(Outcome::Accepted("before the gpu level")),
        };
        let judged = order.start.judge(opened, context, &module, &plan);
        let how = match judged {
            Err((Fault::Simulator, _)) if beyond => "behind the gpu level",
            judged => judged?,
        };
        if order.ptx {
            let steps = pipeline::nvvm(tiled::index_width(&module));
            match Runner::default().run(context, &mut module, &steps) {
                Err(error) if error.is_internal() => return Err(stop(error)),
                Err(_) => {}
                // Functions of libdevice may be missing, which is a user's error.
                Ok(()) => match emit_ptx::emit(context, &module, None) {
                    Err(error) if error.is_internal() => return Err(stop(error)),
                    _ => {}
                },
            }
        }
        Ok(Outcome::Accepted(how))
    })
}

/// The module behind a pass; none where the pass refuses it.
fn after<'c>(
    context: &'c Context,
    module: &Module<'c>,
    step: &str,
) -> Result<Option<Module<'c>>, (Fault, String)> {
    let Ok(steps) = pipeline_text::parse(step) else { return Ok(None) };
    let copy = Module::from_operation(Operation::clone(&module.as_operation()));
    let mut copy = copy.ok_or((Fault::Internal, "no module".to_owned()))?;
    match Runner::default().run(context, &mut copy, &steps) {
        Ok(()) => Ok(Some(copy)),
        // A pass of upstream's may leave what our verifier refuses.
        Err(error) if error.is_internal() && steps.iter().all(is_ours) => {
            Err((Fault::Internal, error.to_string()))
        }
        Err(error) if error.message.trim().is_empty() => Err((Fault::Silent, step.to_owned())),
        Err(_) => Ok(None),
    }
}

fn is_ours(step: &Step) -> bool {
    matches!(step, Step::Ours(_))
}

/// Runs a pass again, which must change nothing.
fn repeat(context: &Context, module: &Module, step: &str) -> Result<(), (Fault, String)> {
    let before = text(module);
    let found = after(context, module, step)?.map(|module| text(&module));
    if found.as_ref() == Some(&before) {
        return Ok(());
    }
    let what = if found.is_some() { "changes the module" } else { "is refused" };
    Err((Fault::Repeated, format!("the second run of {step} {what}")))
}

/// The module that its printed text has.
fn again<'c>(context: &'c Context, module: &Module) -> Result<Module<'c>, (Fault, String)> {
    let printed = text(module);
    let read = mlir::parse_module(context, &printed, "printed.mlir");
    read.map_err(|error| (Fault::RoundTrip, error.to_string()))
}

/// A shorter list with the same kind of failure, and its message.
fn shorter(
    order: &Order,
    fault: Fault,
    opened: &Opened,
    context: &Context,
) -> (Vec<String>, String) {
    let begin = Instant::now();
    let fails = |steps: &[String]| match run(order, steps, opened, context) {
        Outcome::Failed(found, message) if found == fault => Some(message),
        _ => None,
    };
    let (mut steps, mut message) = (order.steps.clone(), String::new());
    loop {
        let mut changed = false;
        for place in (0..steps.len()).rev() {
            for simpler in simpler(&steps[place]) {
                let mut fewer = steps.clone();
                fewer.splice(place..=place, simpler);
                if begin.elapsed() > SHORTER {
                    break;
                }
                if let Some(found) = fails(&fewer) {
                    (steps, message, changed) = (fewer, found, true);
                    break;
                }
            }
        }
        if !changed {
            break;
        }
    }
    if message.is_empty() {
        message = fails(&steps).unwrap_or_else(|| "the failure does not come again".to_owned());
    }
    (steps, message)
}

/// What may stand in the place of a step: nothing, the pass without options, without one of them.
fn simpler(step: &str) -> Vec<Option<String>> {
    let mut all = vec![None];
    if let Some((name, options)) = step.split_once('{')
        && let Some(options) = options.strip_suffix('}')
        && !name.contains('(')
    {
        all.push(Some(name.to_owned()));
        let options: Vec<&str> = options.split(' ').collect();
        for left_out in 0..if options.len() > 1 { options.len() } else { 0 } {
            let kept = options.iter().enumerate().filter(|(place, _)| *place != left_out);
            let kept: Vec<&str> = kept.map(|(_, option)| *option).collect();
            all.push(Some(format!("{name}{{{}}}", kept.join(" "))));
        }
    }
    all
}
