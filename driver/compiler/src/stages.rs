//! The stages of a compile by themselves, for a caller with an MLIR context of its own. All calls
//! of the passes are here.

use crate::control::{Control, Progress};
pub use crate::element::replace_functions;
use crate::failure::Failure;
use crate::import;
use crate::inline_calls;
use crate::mistaken;
use crate::nest;
use crate::processor;
use crate::session::Options;
use crate::toolchain;
use crate::written::Written;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::{OperationLike, OperationPrintingFlags};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use stencil_dialects::error::Error;
use stencil_dialects::{mlir, stencil, tiled};
use stencil_frontend::limits;
use stencil_frontend::program::{Program, Role};
use stencil_frontend::source::Source;
use stencil_passes::affine::lower_affine_nest;
use stencil_passes::launch_plan;
use stencil_passes::llvm::emit_amdgpu::{self, Assembly};
use stencil_passes::llvm::emit_object::{self, Listing, Object};
use stencil_passes::llvm::emit_ptx::{self, Code};
use stencil_passes::llvm::libdevice;
use stencil_passes::pass::Step;
use stencil_passes::pipeline::{self, Config};
use stencil_passes::pipeline_text;
use stencil_passes::runner::Runner;
use stencil_passes::schedule::predict::{self, Candidate};
use stencil_passes::schedule::waves::{self, Sweep};
use stencil_passes::target;
use stencil_passes::upstream;
use stencil_runtime::bounded_read;
use stencil_runtime::plan::Plan;

/// How long each pass and step took, in order.
pub type Timing = Vec<(String, Duration)>;

/// The name of the step before the first pass.
pub(crate) const CHECK: &str = "parse and check";

/// A module on its way through the levels.
pub struct Compilation<'c, 's> {
    context: &'c Context,
    source: &'s Source,
    options: &'s Options,
    control: Control<'s>,
    /// The kind of the source.
    pub(crate) written: Written,
    /// The target of the module.
    target: target::Target,
    /// The module at the level reached.
    pub module: Module<'c>,
    /// How long each pass and step took.
    pub timing: Timing,
}

/// An MLIR context with all dialects.
///
/// # Errors
/// When the dialects can't be loaded, which is a fault of the compiler.
pub fn context(source: &Source) -> Result<Context, Failure> {
    stencil_dialects::context().map_err(|error| Failure::in_source(&error, source))
}

/// Parses and checks a program in the language.
///
/// # Errors
/// What is wrong with the program.
pub fn check(source: &Source, options: &Options) -> Result<Program, Failure> {
    if let Some(place) = mistaken::module_in_mlir(source) {
        let message = "this looks like MLIR; name the file .mlir";
        return Err(Failure::in_source(&Error::new(place, message), source));
    }
    let (program, diagnostics) = stencil_frontend::load(source, &options.defines);
    let mut program = program.ok_or_else(|| Failure::diagnostics(diagnostics, source))?;
    for field in program.fields.values_mut().filter(|field| field.role == Role::Temp) {
        let declared = field.member.as_ref().map_or(&field.name, |member| &member.field);
        if options.outputs.contains(declared) {
            field.role = Role::State;
        }
    }
    Ok(program)
}

/// Whether a source is a module in MLIR: its name ends so.
pub fn is_mlir(source: &Source) -> bool {
    is_mlir_name(&source.name)
}

fn is_mlir_name(name: &str) -> bool {
    name.ends_with(".mlir")
}

/// The syntax tree of a program.
pub(crate) fn syntax_tree(source: &Source) -> Result<String, Failure> {
    if is_mlir(source) {
        return Err(Failure::user(format!(
            "{}: MLIR has no syntax tree; the level ast needs a .stencil program",
            source.name
        )));
    }
    stencil_frontend::syntax_tree(source).map_err(|found| Failure::diagnostics(found, source))
}

/// The most bytes of a source of this name.
pub fn most_bytes(name: &str) -> u64 {
    if is_mlir_name(name) { bounded_read::MOST_TEXT } else { limits::TEXT as u64 }
}

impl<'c, 's> Compilation<'c, 's> {
    /// The stencil level of a source: a program in the language, or a module in MLIR.
    ///
    /// # Errors
    /// What is wrong with the source.
    pub fn new(
        context: &'c Context,
        source: &'s Source,
        options: &'s Options,
        control: Control<'s>,
    ) -> Result<Self, Failure> {
        control.check()?;
        let start = Instant::now();
        let in_source = |error: Error| Failure::in_source(&error, source);
        let module = if is_mlir(source) {
            if let Some((name, _)) = options.defines.first() {
                return Err(Failure::user(format!(
                    "a value is given for the param {name}, and {} is IR, whose sizes are compiled \
                     as they stand; leave the value out, and give an open size to run --size",
                    source.name
                )));
            }
            let mut module =
                mlir::parse_module(context, &source.text, &source.name).map_err(in_source)?;
            inline_calls::run(context, &mut module).map_err(in_source)?;
            module
        } else {
            import::module(context, &check(source, options)?, source, options.arithmetic)
                .map_err(in_source)?
        };
        let written = Written::of(&module, source, options.element.is_some()).map_err(in_source)?;
        if let Some(element) = &options.element {
            replace_functions(context, &module, element)
                .map_err(|error| Failure::in_source(&error, element))?;
        }
        let timing = vec![(CHECK.to_owned(), start.elapsed())];
        if let Some(function) = lower_affine_nest::function(&module).map_err(in_source)? {
            nest::permit(context, function, options.arithmetic).map_err(in_source)?;
        }
        let (target, place) = (options.target()?, &source.name);
        let mut compilation =
            Self { context, source, options, control, written, target, module, timing };
        compilation.record_target()?;
        if let Some(pace) = options.pace {
            tiled::set_pace(context, &compilation.module, pace);
        }
        if compilation.processor().is_some() {
            processor::refuse_choices(&options.config, place)?;
        }
        if compilation.is_nest() {
            nest::refuse_choices(&options.config, place)?;
        } else {
            nest::refuse_options(&options.config, place)?;
            compilation.run(&pipeline::stencil(&options.config))?;
        }
        Ok(compilation)
    }

    /// Writes the target into a module that has none, and refuses options that contradict one.
    fn record_target(&mut self) -> Result<(), Failure> {
        let wanted = self.options.target()?.record();
        let Options { arch, device, .. } = self.options;
        let name = &self.source.name;
        let contradicts = |has: String, option: &str| {
            Err(Failure::user(format!(
                "{name}: its stencil.target has {has}; compile its source with the option \
                 {option}, or leave the option out"
            )))
        };
        let found = stencil::Target::get(&self.module).and_then(|found| match found {
            Some(_) => target::Target::of(&self.module).map(|target| Some(target.record())),
            None => Ok(None),
        });
        let found = found.map_err(|error| Failure::in_source(&error, self.source))?;
        match found {
            None => wanted.set(self.context, &self.module),
            Some(found) if wanted.fast_math && !found.fast_math => {
                return contradicts("fast_math = false".to_owned(), "fast-math");
            }
            Some(found) if !wanted.contract && found.contract => {
                return contradicts("contract = true".to_owned(), "fp-contract=off");
            }
            Some(found) if arch.is_some() && wanted.arch != found.arch => {
                let option = format!("arch={}", wanted.arch);
                return contradicts(format!("arch = \"{}\"", found.arch), &option);
            }
            Some(found) if device.is_some() && wanted.device != found.device => {
                let option = format!("device={}", wanted.device);
                return contradicts(format!("device = \"{}\"", found.device), &option);
            }
            Some(_) => {}
        }
        self.target = target::Target::of(&self.module)
            .map_err(|error| Failure::in_source(&error, self.source))?;
        Ok(())
    }

    fn run(&mut self, passes: &[Step]) -> Result<(), Failure> {
        self.control.check()?;
        let control = &mut self.control;
        let mut report = |name: &str, module: &Module| {
            control.report(Progress::Pass { name, ir: &|| text(module) });
        };
        let mut runner = Runner { after: Some(&mut report), timing: Vec::new() };
        let result = runner.run(self.context, &mut self.module, passes);
        self.timing.append(&mut runner.timing);
        result.map_err(|error| Failure::in_source(&error, self.source))
    }

    /// The architecture that the module is for, where that is a processor.
    pub(crate) fn processor(&self) -> Option<&str> {
        self.target.processor.map(|_| self.target.arch.as_str())
    }

    /// The architecture that the module is for, where that is a GPU without PTX.
    pub(crate) fn other_gpu(&self) -> Option<&str> {
        let is_other = self.target.processor.is_none() && !self.target.device.has_ptx();
        is_other.then_some(self.target.arch.as_str())
    }

    /// Whether the module was made from a function of affine loops.
    pub(crate) fn is_nest(&self) -> bool {
        self.written == Written::Nest
    }

    /// On to the tiled level.
    ///
    /// # Errors
    /// When no schedule takes the program, or the one asked for does not. A function of affine
    /// loops has no tiled level.
    pub fn tile(&mut self) -> Result<(), Failure> {
        self.written.refuse_kernels(self.source)?;
        if self.is_nest() {
            return Err(Failure::user(format!(
                "{}: a function of affine loops has no tiled level; choose another one",
                self.source.name
            )));
        }
        self.run(&pipeline::tiled(&self.options.config))
    }

    /// The schedules to choose from at the stencil level, the fastest by the model first. A
    /// function of affine loops has none.
    ///
    /// # Errors
    /// When the schedule asked for does not fit.
    pub fn candidates(&self) -> Result<Vec<Candidate>, Failure> {
        self.control.check()?;
        if self.is_nest() {
            return Ok(Vec::new());
        }
        let Config { choice, lowering, .. } = &self.options.config;
        predict::candidates(self.context, &self.module, choice, *lowering)
            .map_err(|error| Failure::in_source(&error, self.source))
    }

    /// The predicted wavefronts of the stencil level.
    ///
    /// # Errors
    /// When the schedule asked for does not fit.
    pub fn waves(&self) -> Result<Vec<Sweep>, Failure> {
        self.control.check()?;
        if self.is_nest() {
            return Ok(Vec::new());
        }
        let Config { choice, lowering, .. } = &self.options.config;
        waves::of(self.context, &self.module, choice, *lowering)
            .map_err(|error| Failure::in_source(&error, self.source))
    }

    /// On to a function of affine loops whose arrays and loops have the order that its kernels use.
    /// Another module stays as it is.
    ///
    /// # Errors
    /// What is wrong with the function.
    pub(crate) fn order_nest(&mut self) -> Result<(), Failure> {
        match self.is_nest() {
            true => self.run(&pipeline::nest_order(&self.options.config)),
            false => Ok(()),
        }
    }

    /// From the tiled level to the gpu level.
    ///
    /// # Errors
    /// When a lowering declines its kernel.
    pub fn lower(&mut self) -> Result<(), Failure> {
        match (self.is_nest(), self.processor()) {
            (true, None) => self.run(&pipeline::nest_gpu(&self.options.config)),
            (false, None) => self.run(&pipeline::gpu(&self.options.config)),
            (false, Some(_)) => self.run(&pipeline::host()),
            (true, Some(_)) => Err(Failure::user(format!(
                "{}: functions of affine loops have no code for a processor; take another target",
                self.source.name
            ))),
        }
    }

    /// From the stencil level straight to the gpu level, by the passes of the options if they name
    /// any.
    ///
    /// # Errors
    /// As [`Self::tile`] and [`Self::lower`].
    pub fn to_gpu(&mut self) -> Result<(), Failure> {
        match &self.options.passes {
            Some(passes) => {
                let steps = pipeline_text::parse(passes)
                    .map_err(|error| Failure::in_source(&error, self.source))?;
                upstream::asked(|| self.run(&steps))
            }
            None => {
                if !self.is_nest() {
                    self.tile()?;
                }
                self.lower()
            }
        }
    }

    /// The launch plan of the gpu level.
    ///
    /// # Errors
    /// When the IR has no launch schedule.
    pub fn plan(&self) -> Result<Plan, Failure> {
        launch_plan::of(self.context, &self.module)
            .map_err(|error| Failure::in_source(&error, self.source))
    }

    /// On to NVVM in the LLVM dialect.
    ///
    /// # Errors
    /// When a conversion fails.
    pub fn to_nvvm(&mut self) -> Result<(), Failure> {
        self.run(&pipeline::nvvm(tiled::index_width(&self.module)))
    }

    /// Machine code of the lowered kernels and their plan, for a processor.
    ///
    /// # Errors
    /// When a conversion fails.
    pub fn object(&mut self, plan: &Plan) -> Result<Object, Failure> {
        self.listed(plan, Listing::Nothing)
    }

    /// [`Self::object`] and what `listing` names beside it.
    ///
    /// # Errors
    /// When a conversion fails.
    pub(crate) fn listed(&mut self, plan: &Plan, listing: Listing) -> Result<Object, Failure> {
        self.run(&pipeline::host_llvm())?;
        self.control.check()?;
        let start = Instant::now();
        let named = (plan, self.options.symbol_end.as_str());
        let object = emit_object::emit(self.context, &self.module, named, listing)
            .map_err(|error| Failure::in_source(&error, self.source));
        self.timing.push(("emit-object".to_owned(), start.elapsed()));
        object
    }

    /// Assembly of the lowered kernels, for a GPU without PTX.
    ///
    /// # Errors
    /// When a conversion fails.
    pub fn assembly(&mut self) -> Result<Assembly, Failure> {
        self.run(&pipeline::rocdl(&self.target.arch, tiled::index_width(&self.module)))?;
        self.control.check()?;
        let start = Instant::now();
        let assembly = emit_amdgpu::emit(self.context, &self.module)
            .map_err(|error| Failure::in_source(&error, self.source));
        self.timing.push(("emit-amdgpu".to_owned(), start.elapsed()));
        assembly
    }

    /// LLVM IR of compiled code.
    ///
    /// # Errors
    /// Internal ones only.
    pub fn llvm(&self, code: &Code) -> Result<String, Failure> {
        code.llvm().map_err(|error| Failure::in_source(&error, self.source))
    }

    /// PTX of compiled code.
    ///
    /// # Errors
    /// Internal ones only.
    pub fn ptx(&self, code: &Code) -> Result<String, Failure> {
        code.ptx().map_err(|error| Failure::in_source(&error, self.source))
    }

    /// Checks at the stencil level that [`Self::code`] will find libdevice, if it will need it.
    /// Passes of the user's may replace math functions, so that nothing is known before them.
    ///
    /// # Errors
    /// When a math function needs libdevice, and it is not there.
    pub fn check_libdevice(&self) -> Result<(), Failure> {
        if self.options.passes.is_some() {
            return Ok(());
        }
        libdevice::check(&self.module, self.libdevice().as_deref())
            .map_err(|error| Failure::in_source(&error, self.source))
    }

    fn libdevice(&self) -> Option<PathBuf> {
        self.options.libdevice.clone().or_else(toolchain::libdevice)
    }

    /// LLVM IR and PTX of a module in the LLVM dialect.
    ///
    /// # Errors
    /// When a function has no body, as without libdevice.
    pub fn code(&mut self) -> Result<Code, Failure> {
        self.control.check()?;
        let start = Instant::now();
        let code = emit_ptx::emit(self.context, &self.module, self.libdevice().as_deref())
            .map_err(|error| Failure::in_source(&error, self.source));
        self.timing.push(("emit-ptx".to_owned(), start.elapsed()));
        code
    }
}

/// A module as text.
pub fn text(module: &Module) -> String {
    printed(module, OperationPrintingFlags::new())
}

/// A module as text with the places of its operations.
pub(crate) fn text_with_places(module: &Module) -> String {
    printed(module, OperationPrintingFlags::new().enable_debug_info(true, false))
}

fn printed(module: &Module, flags: OperationPrintingFlags) -> String {
    let text = module.as_operation().to_string_with_flags(flags);
    text.map_or_else(|error| error.to_string(), |text| text + "\n")
}
