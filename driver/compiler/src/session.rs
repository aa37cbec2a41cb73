//! A session: how programs are compiled, and what can be had of them.

use crate::control::Control;
use crate::declarations::{self, declarations};
use crate::executable::{Executable, Target};
use crate::failure::Failure;
use crate::level::Level;
use crate::stages::{self, Compilation, Timing};
use std::collections::BTreeMap;
use std::path::PathBuf;
use stencil_dialects::{stencil, tiled::Choice};
use stencil_frontend::ast::{ItemKind, TypeKind};
use stencil_frontend::parser;
use stencil_frontend::program::Program;
use stencil_frontend::source::Source;
use stencil_passes::llvm::emit_object::{self, Listing, Object};
use stencil_passes::pipeline::Config;
use stencil_passes::schedule::predict::Candidate;
use stencil_passes::schedule::waves::Sweep;
use stencil_passes::target::{self, Arithmetic};
use stencil_runtime::{plan::Plan, processor::Processor};

/// How sources are to be compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Values for params.
    pub defines: Vec<(String, i64)>,
    /// Temp fields whose values are wanted: they become state fields, whose inputs must be zeros.
    pub outputs: Vec<String>,
    /// Strategy and sizes of tiles.
    pub config: Config,
    /// Contraction and fast math.
    pub arithmetic: Arithmetic,
    /// The architecture, such as `sm_90`; that of the device where none is named.
    pub arch: Option<String>,
    /// The device, as the driver spells it or by its short name; the usual one of the architecture
    /// where none is named.
    pub device: Option<String>,
    /// libdevice, where it is not to be looked for.
    pub libdevice: Option<PathBuf>,
    /// The end of the symbol of code for a processor.
    pub symbol_end: String,
    /// Passes to run from the stencil level to the gpu level in place of the compiler's own.
    pub passes: Option<String>,
    /// Functions in MLIR that take the place of point functions ([`stages::replace_functions`]).
    pub element: Option<Source>,
    /// Picoseconds of a diagonal and of a handover of wavefronts, where they were measured.
    pub pace: Option<[i64; 2]>,
}

/// Every schedule is chosen, for the best described device; `a * b + c` may be rounded once.
impl Default for Options {
    fn default() -> Self {
        Self {
            defines: Vec::new(),
            outputs: Vec::new(),
            config: Config::default(),
            arithmetic: Arithmetic { contract: true, fast_math: false },
            arch: None,
            device: None,
            libdevice: None,
            symbol_end: String::new(),
            passes: None,
            element: None,
            pace: None,
        }
    }
}

impl Options {
    /// The target that code is made for.
    ///
    /// # Errors
    /// A device that is not described, or one of another architecture than the one named.
    pub fn target(&self) -> Result<target::Target, Failure> {
        if let Some((arch, processor)) = self.processor() {
            if self.device.is_some() {
                return Err(Failure::user(format!(
                    "the option device names a GPU and arch a processor, {arch}; leave one out"
                )));
            }
            return Ok(target::Target::processor(arch, processor, self.arithmetic));
        }
        target::Target::named(self.arch.as_deref(), self.device.as_deref(), self.arithmetic)
            .map_err(|error| Failure::user(error.message))
    }

    /// The processor that code is made for, by its name, where it is not made for a GPU.
    pub fn processor(&self) -> Option<(&str, Processor)> {
        let arch = self.arch.as_deref()?;
        Some((arch, emit_object::processor(arch)?))
    }

    /// Whether nothing is asked of the schedule.
    pub fn leaves_schedule_open(&self) -> bool {
        let Config { choice, heights, no_nest_tiles, transpose_arrays, nest_tile, .. } =
            &self.config;
        let no_tile = nest_tile.is_none() && !no_nest_tiles && !transpose_arrays;
        *choice == Choice::default() && heights.is_empty() && no_tile && self.passes.is_none()
    }
}

/// Compiles and runs programs. A session holds options alone: it can be sent to and shared between
/// threads, and each call has an MLIR context of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    pub(crate) options: Options,
    /// Where the schedule comes from, for messages.
    pub(crate) schedule_from: Option<String>,
}

/// What a compile gave, as plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compiled {
    texts: BTreeMap<Level, String>,
    plan: Option<Plan>,
    object: Option<Object>,
    timing: Timing,
}

impl Compiled {
    /// The text of a level that was asked for.
    pub fn text(&self, level: Level) -> Option<&str> {
        self.texts.get(&level).map(String::as_str)
    }

    /// The texts of all levels that were asked for, in the order of the levels.
    pub fn texts(&self) -> impl Iterator<Item = (Level, &str)> {
        self.texts.iter().map(|(level, text)| (*level, text.as_str()))
    }

    /// The PTX, where it was asked for.
    pub fn ptx(&self) -> Option<&str> {
        self.text(Level::Ptx)
    }

    /// The launch plan, where it was asked for.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// The object file for a processor, where its LLVM IR or assembly was asked for.
    pub fn object(&self) -> Option<&Object> {
        self.object.as_ref()
    }

    /// How long each pass and step took, in order.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    fn keep(&mut self, level: Level, levels: &[Level], text: impl FnOnce() -> String) {
        if levels.contains(&level) {
            self.texts.insert(level, text());
        }
    }
}

impl Session {
    /// A session with some options.
    pub fn new(options: Options) -> Self {
        Self { options, schedule_from: None }
    }

    /// The same with other [`Options::outputs`].
    pub fn keeping(mut self, temps: Vec<String>) -> Self {
        self.options.outputs = temps;
        self
    }

    /// The same with more params fixed at compile time. A module in MLIR keeps its sizes open.
    pub fn with_sizes(mut self, source: &Source, sizes: &BTreeMap<String, i64>) -> Self {
        if !stages::is_mlir(source) {
            self.options.defines.extend(sizes.iter().map(|(name, size)| (name.clone(), *size)));
        }
        self
    }

    /// Checks that the options of the code fit where it is to run.
    ///
    /// # Errors
    /// An option that names a processor for a GPU, or another one than this machine's.
    pub fn check_target(&self, target: Target) -> Result<(), Failure> {
        let arch = self.options.arch.as_deref();
        match (target, arch, &self.options.device) {
            (Target::Reference, ..) | (Target::Cpu { .. }, None | Some(target::NATIVE), None) => {
                Ok(())
            }
            (Target::Cpu { .. }, _, Some(device)) => Err(Failure::user(format!(
                "the device {device} is a GPU; leave it out for a run on the processor"
            ))),
            (Target::Cpu { .. }, Some(arch), None) => Err(Failure::user(format!(
                "a run on the processor takes the architecture of this machine, not {arch}; leave \
                 it out"
            ))),
            (_, Some(arch), _) if !stencil::is_gpu(arch) => Err(Failure::user(format!(
                "the architecture {arch} is that of a processor; run on the target cpu, or leave \
                 it out"
            ))),
            (Target::Cuda(_), ..) => {
                let target = self.options.target()?;
                target.device.has_ptx().then_some(()).ok_or_else(|| {
                    let name = target.device.name;
                    Failure::user(format!(
                        "code for an {name} can't run here; run on the target sim, or take a GPU \
                         of NVIDIA's"
                    ))
                })
            }
            _ => Ok(()),
        }
    }

    /// The same for the processor of this machine.
    pub fn for_this_processor(&self) -> Self {
        let mut session = self.clone();
        session.options.arch = Some(target::NATIVE.to_owned());
        session.options.device = None;
        session
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Parses and checks a program in the language.
    ///
    /// # Errors
    /// What is wrong with the program.
    pub fn check(&self, source: &Source) -> Result<Program, Failure> {
        stages::check(source, &self.options)
    }

    /// The declarations of a source: enough to bind sizes and to read inputs.
    ///
    /// # Errors
    /// The source's faults.
    pub fn declared(&self, source: &Source) -> Result<Plan, Failure> {
        if stages::is_mlir(source) {
            return declarations::of_module(self, source);
        }
        declarations(&self.check(source)?)
    }

    /// The reductions of a source whose values are conditions; a plan has them as integers.
    pub fn conditions(&self, source: &Source) -> Vec<String> {
        if stages::is_mlir(source) {
            return Vec::new();
        }
        let (file, _) = parser::parse(source);
        let reductions = file.all_items().filter_map(|item| match &item.node {
            ItemKind::Reduce { name, ty, .. } => Some((name, ty)),
            _ => None,
        });
        let conditions =
            reductions.filter(|(_, ty)| matches!(&ty.node, TypeKind::Named(ty) if ty == "bool"));
        conditions.map(|(name, _)| name.node.clone()).collect()
    }

    /// Compiles a source as far as the given levels need, and keeps the text of each. A source
    /// whose name ends with `.mlir` is a module in MLIR: stencil IR, or a function of affine loops.
    /// One with `.sl` is a program of SL, any other a program in the language.
    ///
    /// # Errors
    /// What is wrong with the source or the options, or which pass failed.
    pub fn compile(
        &self,
        source: &Source,
        levels: &[Level],
        mut control: Control<'_>,
    ) -> Result<Compiled, Failure> {
        let mut compiled = Compiled::default();
        if levels.contains(&Level::Ast) {
            compiled.texts.insert(Level::Ast, stages::syntax_tree(source)?);
        }
        let Some(last) = levels.iter().copied().filter(|level| *level > Level::Ast).max() else {
            return Ok(compiled);
        };
        if levels.contains(&Level::Tiled) && self.options.passes.is_some() {
            return Err(Failure::user(
                "the option passes replaces the way to the gpu level, so there is no tiled level \
                 to show; look at the IR after each pass",
            ));
        }
        let context = stages::context(source)?;
        let mut compilation = self.begin(&context, source, control.reborrow())?;
        compiled.keep(Level::Stencil, levels, || stages::text(&compilation.module));
        if last > Level::Stencil {
            self.lowered(&mut compilation, last, levels, &mut compiled)
                .map_err(|failure| self.with_origin(failure))?;
        }
        compiled.timing = compilation.timing;
        Ok(compiled)
    }

    /// From the stencil level to the last.
    fn lowered(
        &self,
        compilation: &mut Compilation<'_, '_>,
        last: Level,
        levels: &[Level],
        compiled: &mut Compiled,
    ) -> Result<(), Failure> {
        let code = [Level::Llvm, Level::Ptx].iter().any(|level| levels.contains(level));
        let is_nvidia = compilation.processor().is_none() && compilation.other_gpu().is_none();
        if code && is_nvidia {
            compilation.check_libdevice()?;
        }
        if self.options.passes.is_some() {
            compilation.to_gpu()?;
        } else {
            if !compilation.is_nest() || levels.contains(&Level::Tiled) {
                compilation.tile()?;
            }
            compiled.keep(Level::Tiled, levels, || stages::text(&compilation.module));
            if last == Level::Tiled {
                return Ok(());
            }
            compilation.lower()?;
        }
        compiled.keep(Level::Gpu, levels, || stages::text(&compilation.module));
        if levels.contains(&Level::Plan) {
            let plan = compilation.plan()?;
            let json = plan.to_json().map_err(Failure::user)?;
            compiled.texts.insert(Level::Plan, json + "\n");
            compiled.plan = Some(plan);
        }
        if compilation.processor().is_some() {
            return for_processor(compilation, levels, compiled);
        }
        if let Some(arch) = compilation.other_gpu() {
            refuse_ptx(levels, &format!("{arch} is a GPU of AMD's"))?;
            if levels.contains(&Level::Llvm) || levels.contains(&Level::Asm) {
                let assembly = compilation.assembly()?;
                compiled.keep(Level::Llvm, levels, || assembly.llvm.clone());
                compiled.keep(Level::Asm, levels, || assembly.text.clone());
            }
            return Ok(());
        }
        if levels.contains(&Level::Asm) {
            return Err(Failure::user(
                "assembly and object files are for processors and AMD's GPUs; add --arch native, \
                 or take ptx",
            ));
        }
        if code || levels.contains(&Level::Nvvm) {
            compilation.to_nvvm()?;
            compiled.keep(Level::Nvvm, levels, || stages::text(&compilation.module));
        }
        if code {
            let code = compilation.code()?;
            if levels.contains(&Level::Llvm) {
                compiled.texts.insert(Level::Llvm, compilation.llvm(&code)?);
            }
            if levels.contains(&Level::Ptx) {
                compiled.texts.insert(Level::Ptx, compilation.ptx(&code)?);
            }
        }
        Ok(())
    }

    /// Compiles a source for a target, ready to be run any number of times.
    ///
    /// # Errors
    /// As [`Self::compile`]; also where the target takes no such source.
    pub fn executable(
        &self,
        source: &Source,
        target: Target,
        control: Control<'_>,
    ) -> Result<Executable, Failure> {
        Executable::new(self, source, target, control)
    }

    /// The schedules that a compile of the source chooses from, the fastest by the model first.
    ///
    /// # Errors
    /// What is wrong with the source, or with the schedule that the options ask for.
    pub fn candidates(&self, source: &Source) -> Result<Vec<Candidate>, Failure> {
        let context = stages::context(source)?;
        self.begin(&context, source, Control::default())?.candidates()
    }

    /// The predicted wavefronts of a source, one for each kernel that sweeps.
    ///
    /// # Errors
    /// As for [`Self::candidates`].
    pub fn waves(&self, source: &Source) -> Result<Vec<Sweep>, Failure> {
        let context = stages::context(source)?;
        self.begin(&context, source, Control::default())?.waves()
    }

    /// The stencil level of a source.
    pub(crate) fn begin<'c, 's>(
        &'s self,
        context: &'c melior::Context,
        source: &'s Source,
        control: Control<'s>,
    ) -> Result<Compilation<'c, 's>, Failure> {
        Compilation::new(context, source, &self.options, control)
            .map_err(|failure| self.with_origin(failure))
    }

    /// A failure of a schedule that nobody wrote on the command line says where it comes from.
    pub(crate) fn with_origin(&self, failure: Failure) -> Failure {
        match &self.schedule_from {
            Some(origin) => failure.note(format!("the schedule comes from {origin}")),
            None => failure,
        }
    }
}

/// The levels behind the lowerings, for a processor.
fn for_processor(
    compilation: &mut Compilation<'_, '_>,
    levels: &[Level],
    compiled: &mut Compiled,
) -> Result<(), Failure> {
    let arch = compilation.processor().unwrap_or_default();
    refuse_ptx(levels, &format!("{arch} is a processor"))?;
    if levels.contains(&Level::Llvm) || levels.contains(&Level::Asm) {
        let plan = compilation.plan()?;
        let object = match levels.contains(&Level::Asm) {
            true => compilation.listed(&plan, Listing::Assembly)?,
            false => compilation.object(&plan)?,
        };
        compiled.keep(Level::Llvm, levels, || object.llvm().to_owned());
        compiled.keep(Level::Asm, levels, || object.assembly().to_owned());
        compiled.object = Some(object);
    }
    Ok(())
}

/// Refuses the levels that NVIDIA's GPUs alone have.
fn refuse_ptx(levels: &[Level], target: &str) -> Result<(), Failure> {
    match levels.iter().find(|level| [Level::Nvvm, Level::Ptx].contains(level)) {
        Some(level) => Err(Failure::user(format!(
            "the level {} is that of NVIDIA's GPUs, and {target}; take llvm or asm",
            level.name()
        ))),
        None => Ok(()),
    }
}
