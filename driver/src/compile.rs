//! The compile from a source to any level, as one list of steps.

use crate::import;
use crate::message::Failure;
use clap::ValueEnum;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::{OperationLike, OperationPrintingFlags};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use stencil_dialects::error::Error;
use stencil_dialects::tiled::Choice;
use stencil_dialects::{mlir, tiled};
use stencil_frontend::program::Program;
use stencil_frontend::source::Source;
use stencil_passes::launch_plan;
use stencil_passes::llvm::emit_ptx::{self, Code};
use stencil_passes::pass::Step;
use stencil_passes::pipeline::{self, Config};
use stencil_passes::pipeline_text;
use stencil_passes::runner::Runner;
use stencil_passes::schedule::predict::{self, Candidate};
use stencil_passes::target::{Arithmetic, Target};
use stencil_runtime::plan::{Plan, Settings};
use stencil_runtime::tune::{self, Schedules};

/// What a compile can stop at and print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// The syntax tree.
    Ast,
    /// The stencil dialect.
    Stencil,
    /// The tiled dialect.
    Tiled,
    /// Kernels in upstream's gpu dialect.
    Gpu,
    /// Kernels in the LLVM and NVVM dialects.
    Nvvm,
    /// Optimised LLVM IR.
    Llvm,
    /// PTX.
    Ptx,
    /// The launch plan, JSON.
    Plan,
}

impl Level {
    /// The extension of a file that holds it.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ast => "stencil",
            Self::Stencil => "stencil.mlir",
            Self::Tiled => "tiled.mlir",
            Self::Gpu => "gpu.mlir",
            Self::Nvvm => "nvvm.mlir",
            Self::Llvm => "ll",
            Self::Ptx => "ptx",
            Self::Plan => "plan.json",
        }
    }
}

/// How a source is to be compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Values for params.
    pub defines: Vec<(String, i64)>,
    /// Strategy and sizes of tiles.
    pub config: Config,
    /// Contraction and fast math.
    pub arithmetic: Arithmetic,
    /// Such as `sm_90`.
    pub arch: String,
    /// libdevice, where it is not to be looked for.
    pub libdevice: Option<PathBuf>,
    /// Passes to run from the stencil level to the gpu level in place of the compiler's own.
    pub passes: Option<String>,
    /// Whether the IR is printed to standard error after each pass.
    pub print_ir_after_all: bool,
}

impl Options {
    /// What code is made for.
    pub fn target(&self) -> Target {
        Target::new(&self.arch, self.arithmetic)
    }

    /// Whether nothing is asked of the schedule.
    pub fn leaves_schedule_open(&self) -> bool {
        self.config.choice == Choice::default() && self.passes.is_none()
    }
}

/// How long each pass and step took.
pub type Timing = Vec<(String, Duration)>;

/// A module on its way through the levels.
pub struct Compilation<'c, 's> {
    context: &'c Context,
    source: &'s Source,
    options: &'s Options,
    /// The module at the level reached.
    pub module: Module<'c>,
    /// What was done so far.
    pub timing: Timing,
}

/// Parses and checks a `.stencil` source.
pub fn check(source: &Source, defines: &[(String, i64)]) -> Result<Program, Failure> {
    let (program, diagnostics) = stencil_frontend::load(source, defines);
    program.ok_or_else(|| Failure::diagnostics(&diagnostics, source))
}

impl<'c, 's> Compilation<'c, 's> {
    /// The stencil level of a source: a program in the language, or a module in MLIR.
    pub fn new(
        context: &'c Context,
        source: &'s Source,
        options: &'s Options,
    ) -> Result<Self, Failure> {
        let start = Instant::now();
        let in_source = |error: Error| Failure::in_source(&error, source);
        let module = if source.name.ends_with(".mlir") {
            if let Some((name, _)) = options.defines.first() {
                return Err(Failure::user(format!(
                    "-D {name}=... fixes a param of a .stencil program; the sizes of MLIR stand in \
                     the IR"
                )));
            }
            mlir::parse_module(context, &source.text, &source.name).map_err(in_source)?
        } else {
            import::module(context, &check(source, &options.defines)?, source, options.arithmetic)
                .map_err(in_source)?
        };
        let timing = vec![("parse and check".to_owned(), start.elapsed())];
        let mut compilation = Self { context, source, options, module, timing };
        compilation.record_target()?;
        compilation.run(&pipeline::stencil(&options.config))?;
        Ok(compilation)
    }

    /// Writes the target into a module that has none.
    fn record_target(&mut self) -> Result<(), Failure> {
        let wanted = self.options.target().record();
        let found = stencil_dialects::stencil::Target::get(&self.module)
            .map_err(|error| Failure::in_source(&error, self.source))?;
        match found {
            None => wanted.set(self.context, &self.module),
            Some(found) if wanted.fast_math && !found.fast_math => {
                return Err(Failure::user(format!(
                    "{}: its stencil.target has fast_math = false; compile its source with \
                     --fast-math, or leave the option out",
                    self.source.name
                )));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn run(&mut self, passes: &[Step]) -> Result<(), Failure> {
        let mut print = |pass: &str, module: &Module| {
            eprintln!("// ----- after {pass} -----\n{}", text(module))
        };
        let mut runner = Runner {
            after: self.options.print_ir_after_all.then_some(&mut print as _),
            timing: Vec::new(),
        };
        let result = runner.run(self.context, &mut self.module, passes);
        self.timing.append(&mut runner.timing);
        result.map_err(|error| Failure::in_source(&error, self.source))
    }

    /// On to the tiled level.
    pub fn tile(&mut self) -> Result<(), Failure> {
        self.run(&pipeline::tiled(&self.options.config))
    }

    /// The schedules that were to choose from at the stencil level, the fastest by the model first.
    pub fn candidates(&self) -> Result<Vec<Candidate>, Failure> {
        let Config { choice, lowering, .. } = &self.options.config;
        predict::candidates(self.context, &self.module, choice, *lowering)
            .map_err(|error| Failure::in_source(&error, self.source))
    }

    /// On to the gpu level: by the passes that the user gave, else from the tiled level.
    pub fn lower(&mut self) -> Result<(), Failure> {
        self.run(&pipeline::gpu())
    }

    /// From the stencil level straight to the gpu level.
    pub fn to_gpu(&mut self) -> Result<(), Failure> {
        match &self.options.passes {
            Some(passes) => {
                let steps = pipeline_text::parse(passes)
                    .map_err(|error| Failure::in_source(&error, self.source))?;
                self.run(&steps)
            }
            None => {
                self.tile()?;
                self.lower()
            }
        }
    }

    /// The launch plan of the gpu level.
    pub fn plan(&self) -> Result<Plan, Failure> {
        launch_plan::of(self.context, &self.module)
            .map_err(|error| Failure::in_source(&error, self.source))
    }

    /// On to NVVM in the LLVM dialect.
    pub fn to_nvvm(&mut self) -> Result<(), Failure> {
        self.run(&pipeline::nvvm(tiled::index_width(&self.module)))
    }

    /// LLVM IR and PTX of a module in the LLVM dialect.
    pub fn code(&mut self) -> Result<Code, Failure> {
        let start = Instant::now();
        let libdevice = self.options.libdevice.clone().or_else(crate::toolchain::libdevice);
        let code = emit_ptx::emit(self.context, &self.module, libdevice.as_deref())
            .map_err(|error| Failure::in_source(&error, self.source));
        self.timing.push(("emit-ptx".to_owned(), start.elapsed()));
        code
    }
}

/// A module as text.
pub fn text(module: &Module) -> String {
    module
        .as_operation()
        .to_string_with_flags(OperationPrintingFlags::new())
        .map_or_else(|error| error.to_string(), |text| text + "\n")
}

/// The texts of the wanted levels, in the order of the levels.
pub fn emit(
    source: &Source,
    options: &Options,
    wanted: &[Level],
) -> Result<(Vec<(Level, String)>, Timing), Failure> {
    let mut texts = Vec::new();
    let wants = |level| wanted.contains(&level);
    if wants(Level::Ast) {
        if source.name.ends_with(".mlir") {
            return Err(Failure::user(format!(
                "{}: MLIR has no syntax tree; --emit=ast takes a .stencil program",
                source.name
            )));
        }
        let (file, diagnostics) = stencil_frontend::parser::parse(source);
        if !diagnostics.is_empty() {
            return Err(Failure::diagnostics(&diagnostics, source));
        }
        texts.push((Level::Ast, stencil_frontend::print::print(&file)));
    }
    let Some(last) = wanted.iter().copied().filter(|level| *level > Level::Ast).max() else {
        return Ok((texts, Vec::new()));
    };
    let context =
        stencil_dialects::context().map_err(|error| Failure::in_source(&error, source))?;
    let mut compilation = Compilation::new(&context, source, options)?;
    if wants(Level::Stencil) {
        texts.push((Level::Stencil, text(&compilation.module)));
    }
    if last > Level::Stencil && options.passes.is_some() {
        if wants(Level::Tiled) {
            return Err(Failure::user(
                "--passes replaces the way to the gpu level; the tiled level can't be shown with \
                 it (use --print-ir-after-all)",
            ));
        }
        compilation.to_gpu()?;
    } else if last > Level::Stencil {
        compilation.tile()?;
        if wants(Level::Tiled) {
            texts.push((Level::Tiled, text(&compilation.module)));
        }
        if last > Level::Tiled {
            compilation.lower()?;
        }
    }
    if last > Level::Tiled {
        if wants(Level::Gpu) {
            texts.push((Level::Gpu, text(&compilation.module)));
        }
        if wants(Level::Plan) {
            let json = compilation.plan()?.to_json().map_err(Failure::user)?;
            texts.push((Level::Plan, json + "\n"));
        }
    }
    if wants(Level::Nvvm) || wants(Level::Llvm) || wants(Level::Ptx) {
        compilation.to_nvvm()?;
        if wants(Level::Nvvm) {
            texts.push((Level::Nvvm, text(&compilation.module)));
        }
        if wants(Level::Llvm) || wants(Level::Ptx) {
            let code = compilation.code()?;
            if wants(Level::Llvm) {
                texts.push((Level::Llvm, code.llvm));
            }
            if wants(Level::Ptx) {
                texts.push((Level::Ptx, code.ptx));
            }
        }
    }
    Ok((texts, compilation.timing))
}

/// The schedules that the compile of a source chooses from, the fastest by the model first.
pub fn candidates(source: &Source, options: &Options) -> Result<Vec<Candidate>, Failure> {
    let context =
        stencil_dialects::context().map_err(|error| Failure::in_source(&error, source))?;
    Compilation::new(&context, source, options)?.candidates()
}

/// What measured schedules of a source are remembered by: see [`tune::fingerprint`].
pub fn fingerprint(source: &Source, options: &Options) -> Result<String, Failure> {
    let context =
        stencil_dialects::context().map_err(|error| Failure::in_source(&error, source))?;
    let module = text(&Compilation::new(&context, source, options)?.module);
    // Two compilers of a version may differ while it is worked on.
    let compiler = concat!(env!("CARGO_PKG_VERSION"), " ", env!("STENCILC_TEXT"));
    Ok(tune::fingerprint(&format!("{compiler} {}", options.arch), &module))
}

/// Takes the schedule that was measured to be fastest, where one is known and none is asked for.
pub fn with_schedules(
    source: &Source,
    options: Options,
    schedules: &Schedules,
) -> Result<Options, Failure> {
    if !options.leaves_schedule_open() {
        return Ok(options);
    }
    let device = options.target().device;
    let found =
        schedules.find(&fingerprint(source, &options)?, device.name).map(|entry| &entry.settings);
    let choice = found
        .map_or_else(|| Ok(Choice::default()), |settings| choice_of(settings, source, &options))?;
    Ok(Options { config: Config { choice, ..options.config }, ..options })
}

/// The choice that settings were compiled from. Where the candidate's tile is fitted to each
/// kernel, the settings have that of the main one; with it as the choice, kernels for the steps
/// that are left over would be others than those measured.
fn choice_of(settings: &Settings, source: &Source, options: &Options) -> Result<Choice, Failure> {
    let named = Choice {
        strategy: Some(settings.strategy.clone()),
        tile: Some(settings.tile.clone()),
        pyramid_height: Some(settings.pyramid_height),
        per_thread: Some(settings.per_thread.clone()),
        region: settings.region.clone(),
    };
    let candidates = candidates(source, options)?;
    if candidates.iter().any(|candidate| candidate.choice == named) {
        return Ok(named);
    }
    let whole = |candidate: &Candidate| Choice {
        tile: Some(candidate.tile.clone()),
        ..candidate.choice.clone()
    };
    let fitted = candidates.into_iter().find(|candidate| whole(candidate) == named);
    Ok(fitted.map_or(named, |candidate| candidate.choice))
}
