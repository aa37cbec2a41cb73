//! Damaged MLIR: the printed levels of programs, and the inputs of the lit tests, with a few words
//! changed. They go the way of `stencilc FILE.mlir` and `stencil-opt`: parse, verify, and the
//! passes from their level on. All may refuse them, none may panic, hang, abort or call it an
//! internal fault.

use crate::mutate::{Corpus, mutate};
use crate::outcome::{Outcome, attempt, documents, folder, judge};
use crate::random::Random;
use melior::Context;
use stencil_compiler::stages::{self, Compilation};
use stencil_compiler::{Choice, Class, Config, Control, Failure, Options, Source};
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::tiled;
use stencil_passes::launch_plan;
use stencil_passes::llvm::emit_ptx;
use stencil_passes::pipeline;
use stencil_passes::runner::Runner;

/// Where a text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Programs.
    Stencil,
    /// Tile kernels.
    Tiled,
    /// Kernels of the gpu dialect.
    Gpu,
}

/// Texts with their levels.
#[derive(Clone, Debug)]
pub struct Inputs {
    corpus: Corpus,
    levels: Vec<Level>,
}

/// An input of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The text.
    pub text: String,
    /// Where it begins.
    pub level: Level,
    /// How it is tiled, where it is not yet.
    pub choice: Choice,
    /// Whether it goes on from the gpu level to NVVM.
    pub nvvm: bool,
    /// And from there to PTX.
    pub ptx: bool,
}

/// Texts longer than this are left out: they add little, and take long.
const MOST_BYTES: usize = 30_000;

/// The levels of the programs of the test suite, the modules of its lit tests, those of
/// `docs/ir.md`.
///
/// # Errors
/// When a file can't be read, or a program does not compile.
pub fn inputs(context: &Context) -> Result<Inputs, String> {
    let read = |error: std::io::Error| error.to_string();
    let mut found: Vec<(Level, String)> = Vec::new();
    for text in folder("programs", "stencil").map_err(read)?.iter().filter(|text| text.len() < 800)
    {
        for strategy in ["naive", "block", "stream"] {
            let source = Source::new("input.stencil", text.as_str());
            let height = (strategy != "naive").then_some(2);
            let choice = Choice {
                strategy: Some(strategy.to_owned()),
                pyramid_height: height,
                ..Choice::default()
            };
            let options = options(choice);
            let mut compilation = Compilation::new(context, &source, &options, Control::default())
                .map_err(|failure| failure.to_string())?;
            if strategy == "naive" {
                found.push((Level::Stencil, stages::text(&compilation.module)));
            }
            // Not every strategy takes every program.
            if compilation.tile().is_ok() {
                found.push((Level::Tiled, stages::text(&compilation.module)));
                if compilation.lower().is_ok() {
                    found.push((Level::Gpu, stages::text(&compilation.module)));
                }
            }
        }
    }
    let files = [folder("dialects", "mlir"), folder("passes", "mlir"), documents("ir.md", "mlir")];
    for text in files.into_iter().collect::<Result<Vec<_>, _>>().map_err(read)?.concat() {
        for part in text.split("// -----\n") {
            let level = [("gpu.func", Level::Gpu), ("tiled.", Level::Tiled)].into_iter();
            let level = level
                .into_iter()
                .find(|(word, _)| part.contains(word))
                .map_or(Level::Stencil, |found| found.1);
            found.push((level, part.to_owned()));
        }
    }
    found.retain(|(_, text)| text.len() < MOST_BYTES);
    let (levels, texts) = found.into_iter().unzip();
    Ok(Inputs { corpus: Corpus::new(texts), levels })
}

fn options(choice: Choice) -> Options {
    Options { config: Config { choice, ..Config::default() }, ..Options::default() }
}

/// The input of a case.
pub fn input(inputs: &Inputs, seed: u64, index: u64) -> Input {
    let random = &mut Random::of_case(seed, index);
    let which = random.below(inputs.levels.len());
    let text = mutate(&inputs.corpus.texts[which], &inputs.corpus, random);
    let strategy = random.pick(&["naive", "block", "stream"]);
    let choice = Choice {
        strategy: Some(strategy.to_owned()),
        pyramid_height: (strategy != "naive").then(|| random.pick(&[1, 1, 2, 3])),
        ..Choice::default()
    };
    let nvvm = random.percent(20);
    Input { text, level: inputs.levels[which], choice, nvvm, ptx: nvvm && random.percent(15) }
}

/// Checks an input.
pub fn check(input: &Input, context: &Context) -> Outcome {
    attempt(|| {
        let result = if input.level == Level::Stencil {
            whole(input, context)
        } else {
            partial(input, context)
        };
        result.or_else(|(internal, message)| judge(internal, &message))
    })
}

/// An error, and whether it is internal.
type Stop = (bool, String);

/// As `stencilc FILE.mlir`.
fn whole(input: &Input, context: &Context) -> Result<Outcome, Stop> {
    let source = Source::new("input.mlir", input.text.as_str());
    let options = options(input.choice.clone());
    let stop = |failure: Failure| (failure.class == Class::Internal, failure.to_string());
    let mut compilation =
        Compilation::new(context, &source, &options, Control::default()).map_err(stop)?;
    compilation.to_gpu().map_err(stop)?;
    compilation.plan().map_err(stop)?;
    if input.nvvm {
        compilation.to_nvvm().map_err(stop)?;
    }
    if input.ptx {
        compilation.code().map_err(stop)?;
    }
    Ok(reached(input))
}

/// As `stencil-opt` with the passes that follow.
fn partial(input: &Input, context: &Context) -> Result<Outcome, Stop> {
    let stop = |error: Error| (error.is_internal(), error.message);
    let mut module = mlir::parse_module(context, &input.text, "input.mlir").map_err(stop)?;
    let passes =
        if input.level == Level::Tiled { pipeline::gpu(&Config::default()) } else { Vec::new() };
    Runner::default().run(context, &mut module, &passes).map_err(stop)?;
    launch_plan::of(context, &module).map_err(stop)?;
    if input.nvvm {
        let passes = pipeline::nvvm(tiled::index_width(&module));
        Runner::default().run(context, &mut module, &passes).map_err(stop)?;
    }
    if input.ptx {
        emit_ptx::emit(context, &module, None).map_err(stop)?;
    }
    Ok(reached(input))
}

fn reached(input: &Input) -> Outcome {
    Outcome::Accepted(match (input.nvvm, input.ptx) {
        (_, true) => "to PTX",
        (true, _) => "to NVVM",
        _ => "to the gpu level",
    })
}
