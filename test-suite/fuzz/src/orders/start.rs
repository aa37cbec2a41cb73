//! Where a list of passes starts, and how its result is judged.

use super::draw;
use super::kernels::{self, Kernels};
use crate::check;
use crate::check::{Fault, Stop};
use crate::generate;
use crate::model::{Case, Kind, Program};
use crate::nests::{self, generate as nest_generator};
use crate::random::Random;
use crate::run::{self, Arrays};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::Operation;
use stencil_compiler::stages::{self, Compilation};
use stencil_compiler::{Class, Config, Control, Failure, Options, RecordLayout, Source};
use stencil_dialects::error::Error;
use stencil_dialects::{mlir, tiled};
use stencil_passes::affine::lower_affine_nest;
use stencil_passes::launch_plan;
use stencil_passes::llvm::emit_object::{self, Listing};
use stencil_passes::pass::Step;
use stencil_passes::runner::Runner;
use stencil_passes::{pipeline, pipeline_text};
use stencil_runtime::bind::Request;
use stencil_runtime::input::{self, Source as Input};
use stencil_runtime::plan::Plan;

/// The start of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// A random program, for the processor of this machine if its schedule is. The oracle knows its
    /// result.
    Program {
        /// The program with a schedule.
        case: Box<Case>,
        /// The architecture, where it is not the usual one.
        arch: Option<&'static str>,
    },
    /// A random function of affine loops. The interpreter knows its result.
    Nest(Box<nest_generator::Nest>),
    /// Kernels by hand. Their result is that of a run before any pass.
    Kernels(Kernels),
    /// A module of the test suite. Its result is that of the compiler's own passes, where they
    /// lead to a run.
    File(Kernels),
}

/// A start with its text and the result that all lists must give.
pub struct Opened {
    /// The module's text.
    pub text: String,
    expected: Expected,
}

enum Expected {
    Program { inputs: Arrays, result: Result<Arrays, String> },
    Nest { inputs: Arrays, result: Result<Arrays, String> },
    Untouched { size: i64, result: Option<Arrays> },
}

/// Buffers of modules of the test suite that take more bytes are not run.
const MOST_BYTES: u64 = 1 << 20;

/// Parts of expressions and points that a program may have.
const MOST_PARTS: usize = 150;
const MOST_POINTS: i64 = 3_000;

/// A stop of the judge; a decline is none.
type Fail = (Fault, String);

impl Start {
    /// The start of a case, from the given modules where it is one of them.
    pub fn draw(random: &mut Random, files: &[String], seed: u64, index: u64) -> Self {
        match random.below(20) {
            0..=9 => {
                let case = Box::new(program(random, seed, index));
                let arch = random.percent(12).then(|| random.pick(&["sm_75", "sm_80", "sm_100"]));
                let arch = arch.filter(|_| !case.schedules[0].is_for_processor());
                Self::Program { case, arch }
            }
            10..=13 => Self::Nest(Box::new(nest_generator::nest(seed, index))),
            14..=17 => Self::Kernels(kernels::kernels(random)),
            _ if files.is_empty() => Self::Kernels(kernels::kernels(random)),
            _ => {
                let text = random.pick(files);
                Self::File(Kernels { text, size: random.range(5, 40) })
            }
        }
    }

    /// The compiler's own passes.
    pub fn own(&self, random: &mut Random) -> Vec<Step> {
        match self {
            Self::Program { case, .. } => own_of(case, random),
            Self::Nest(_) => {
                let mut config = Config {
                    transpose_arrays: random.percent(30),
                    no_vector_copies: random.percent(20),
                    unroll_by_registers: random.percent(30),
                    no_place_constants: random.percent(20),
                    ..Config::default()
                };
                config.no_nest_tiles = random.percent(15);
                pipeline::nest_gpu(&config)
            }
            Self::Kernels(_) => pipeline::nest_gpu(&Config::default()),
            Self::File(_) => {
                let config = Config { no_fuse: true, ..Config::default() };
                let mut steps = pipeline::nest_gpu(&config);
                steps.extend(pipeline::stencil(&config));
                steps.extend(pipeline::tiled(&config));
                steps.extend(pipeline::gpu(&config));
                steps
            }
        }
    }

    /// The list of passes of a case.
    pub fn list(&self, random: &mut Random) -> Vec<String> {
        let own = self.own(random);
        let rank = match self {
            Self::Program { case, .. } => {
                let updates = case.program.functions.first().and_then(|one| one.updates.first());
                updates.map_or(1, |field| case.program.grid_of(*field).rank())
            }
            _ => random.range(1, 3) as usize,
        };
        draw::list(random, &own, rank)
    }

    /// The module's text and the expected result; none for a program that the compiler refuses.
    ///
    /// # Errors
    /// A failure of the compiler before the first pass of a list.
    pub fn open(&self, context: &Context) -> Result<Option<Opened>, Fail> {
        match self {
            Self::Program { case, arch } => open_program(case, *arch, context),
            Self::Nest(nest) => {
                let inputs = nests::inputs(nest)?;
                let result = nests::interpreted(nest, context, &inputs)?;
                let source = Source::new("nest.mlir", nest.text.as_str());
                let options = Options::default();
                let opened = Compilation::new(context, &source, &options, Control::default());
                let text = match opened {
                    Ok(compilation) => stages::text(&compilation.module),
                    Err(failure) => return refused(&failure),
                };
                Ok(Some(Opened { text, expected: Expected::Nest { inputs, result } }))
            }
            Self::Kernels(kernels) => {
                let module = parse(context, &kernels.text)?;
                let stop = |error: Error| (Fault::Internal, error.to_string());
                let plan = launch_plan::of(context, &module).map_err(stop)?;
                let result = on_simulator(&module, &plan, kernels.size)?;
                let result = result.ok_or((Fault::Refusal, "it can't be run".to_owned()))?;
                let (text, size) = (kernels.text.clone(), kernels.size);
                let expected = Expected::Untouched { size, result: Some(result) };
                Ok(Some(Opened { text, expected }))
            }
            Self::File(file) => {
                // Faulty ones are there too.
                let Ok(module) = mlir::parse_module(context, &file.text, "file.mlir") else {
                    return Ok(None);
                };
                let result = untouched(context, module, file.size);
                let (text, size) = (file.text.clone(), file.size);
                Ok(Some(Opened { text, expected: Expected::Untouched { size, result } }))
            }
        }
    }

    /// Compares the result of lowered kernels with the expected one; gives what was compared.
    ///
    /// # Errors
    /// The failure.
    pub fn judge(
        &self,
        opened: &Opened,
        context: &Context,
        module: &Module,
        plan: &Plan,
    ) -> Result<&'static str, Fail> {
        match (&opened.expected, self) {
            (Expected::Program { inputs, result }, Self::Program { case, .. }) => {
                if case.schedules[0].is_for_processor() {
                    return on_processor(case, context, module, plan, (inputs, result));
                }
                judge_program(case, module, plan, inputs, result)
            }
            (Expected::Nest { inputs, result }, Self::Nest(nest)) => {
                let Some(bound) = nests::bound(nest, plan, result)? else {
                    return Ok("whose sizes are refused alike");
                };
                let found = nests::simulated(module, nest.data, plan, &bound, inputs)?;
                nests::agree(&found, result).map(|()| "nests with the interpreter's result")
            }
            (Expected::Untouched { size, result: Some(result) }, _) => {
                let found = on_simulator(module, plan, *size)?;
                let found = found.ok_or((Fault::Refusal, "the plan refuses it".to_owned()))?;
                let same = check::same(&found, result);
                same.map_err(|difference| (Fault::Difference, difference))?;
                Ok(match self {
                    Self::Kernels(_) => "kernels with the result that they had",
                    _ => "modules of the test suite with the result that they had",
                })
            }
            _ => Ok("modules without a known result"),
        }
    }
}

/// A small program with a schedule.
fn program(random: &mut Random, seed: u64, index: u64) -> Case {
    let make: fn(u64, u64) -> Case = match random.below(20) {
        0..=6 => generate::case,
        7..=10 => generate::sweep,
        11..=15 => generate::reduction,
        16 | 17 => generate::in_patches,
        _ => generate::on_processor,
    };
    let small = |case: &Case| {
        let mut parts = 0;
        for value in case.program.values() {
            value.visit(&mut |_| parts += 1);
        }
        let points = |place: usize| -> i64 {
            let bounds = case.program.grid_of(place).bounds(&case.program.params);
            bounds.iter().map(|(first, last)| (last - first + 1).max(0)).product()
        };
        let points: i64 = (0..case.program.fields.len()).map(points).sum();
        parts <= MOST_PARTS && points * case.program.steps.max(1) <= MOST_POINTS
    };
    // Passes that move buffers in place of values have conditions of their own.
    let mut handing_on = if random.percent(30) { TRIES } else { 0 };
    let mut number = index;
    loop {
        let case = make(seed, number);
        if small(&case) && (handing_on == 0 || hands_on(&case.program)) {
            return case;
        }
        handing_on = handing_on.saturating_sub(1);
        number = random.bits();
    }
}

/// Programs that are looked at for one in which a field takes another one's value.
const TRIES: usize = 60;

/// Whether a field takes the value of another one at the point, which is updated too.
fn hands_on(program: &Program) -> bool {
    program.functions.iter().any(|function| {
        let values =
            function.pieces.iter().flat_map(|piece| function.updates.iter().zip(&piece.values));
        values.into_iter().any(|(field, value)| match &value.kind {
            Kind::Read(from, offset) => {
                from != field && function.updates.contains(from) && offset.iter().all(|o| *o == 0)
            }
            _ => false,
        })
    })
}

/// The compiler's own passes for a program.
fn own_of(case: &Case, random: &mut Random) -> Vec<Step> {
    let schedule = &case.schedules[0];
    let mut config = run::options(case, schedule).config;
    let records = case.program.fields.iter().any(|field| field.ty.is_aggregate());
    config.layout = match random.below(if records { 10 } else { 40 }) {
        0..=2 => RecordLayout::Aos,
        3 | 4 => RecordLayout::AosDirect,
        5 => RecordLayout::AosRelaid,
        6 => RecordLayout::AosBlocks,
        _ => RecordLayout::Soa,
    };
    config.no_fuse |= random.percent(50);
    if random.percent(6) {
        config.heights = vec![1, 2, 3];
    }
    let mut steps = pipeline::stencil(&config);
    if schedule.is_for_processor() {
        steps.extend(pipeline::tiled(&config));
        steps.extend(pipeline::host());
        return steps;
    }
    match schedule.passes().and_then(|passes| pipeline_text::parse(&passes).ok()) {
        Some(passes) => steps.extend(passes),
        None => {
            steps.extend(pipeline::tiled(&config));
            steps.extend(pipeline::gpu(&config));
        }
    }
    steps
}

fn open_program(
    case: &Case,
    arch: Option<&str>,
    context: &Context,
) -> Result<Option<Opened>, Fail> {
    let Some(inputs) = run::inputs(case) else { return Ok(None) };
    let source = run::source(case);
    let mut options = run::options(case, &case.schedules[0]);
    options.config.no_fuse = true;
    options.passes = None;
    options.arch = arch.map(str::to_owned).or(options.arch);
    let program = match stages::check(&source, &options) {
        Ok(program) => program,
        Err(failure) => return refused(&failure),
    };
    let result = run::reference(case, &program, &inputs);
    let text = match Compilation::new(context, &source, &options, Control::default()) {
        Ok(compilation) => stages::text(&compilation.module),
        Err(failure) => return refused(&failure),
    };
    Ok(Some(Opened { text, expected: Expected::Program { inputs, result } }))
}

fn refused(failure: &Failure) -> Result<Option<Opened>, Fail> {
    match failure.class {
        Class::Internal => Err((Fault::Internal, failure.to_string())),
        _ => Ok(None),
    }
}

fn judge_program(
    case: &Case,
    module: &Module,
    plan: &Plan,
    inputs: &Arrays,
    expected: &Result<Arrays, String>,
) -> Result<&'static str, Fail> {
    let banded = expected.is_ok() && plan.launches().any(|launch| launch.bands.is_some());
    for overlap in [false, true].into_iter().take(1 + usize::from(banded)) {
        let found = run::simulate(case, module, plan, inputs, overlap);
        let what = if overlap { "in bands that overlap: " } else { "" };
        match check::judge(found, expected, Fault::Difference, what) {
            Ok(()) => {}
            Err(Stop::Failed(fault, message)) => return Err((fault, message)),
            Err(_) => return Ok("whose sizes are refused alike"),
        }
    }
    Ok("programs with the oracle's result")
}

/// Brings functions of tiles to machine code, and runs it.
fn on_processor(
    case: &Case,
    context: &Context,
    module: &Module,
    plan: &Plan,
    (inputs, expected): (&Arrays, &Result<Arrays, String>),
) -> Result<&'static str, Fail> {
    let copy = Module::from_operation(Operation::clone(&module.as_operation()));
    let mut copy = copy.ok_or((Fault::Internal, "no module".to_owned()))?;
    let code = Runner::default()
        .run(context, &mut copy, &pipeline::host_llvm())
        .and_then(|()| emit_object::emit(context, &copy, (plan, ""), Listing::Nothing));
    let object = match code {
        Ok(object) => object,
        Err(error) if error.is_internal() => return Err((Fault::Internal, error.to_string())),
        Err(_) => return Ok("before machine code"),
    };
    let found = run::of_object(case, plan, &object, inputs).map(|(found, _)| found);
    match check::judge(found, expected, Fault::Difference, "on the processor: ") {
        Ok(()) => Ok("programs on the processor with the oracle's result"),
        Err(Stop::Failed(fault, message)) => Err((fault, message)),
        Err(_) => Ok("whose sizes are refused alike"),
    }
}

fn parse<'c>(context: &'c Context, text: &str) -> Result<Module<'c>, Fail> {
    let stop = |error: Error| (Fault::Internal, error.to_string());
    mlir::parse_module(context, text, "start.mlir").map_err(stop)
}

/// The result of a module as the compiler's own passes lower it, where it has one.
fn untouched<'c>(context: &'c Context, mut module: Module<'c>, size: i64) -> Option<Arrays> {
    if tiled::launches(&module).ok()?.is_empty() {
        let config = Config { no_fuse: true, ..Config::default() };
        let steps = match lower_affine_nest::function(&module) {
            Ok(Some(_)) => pipeline::nest_gpu(&config),
            _ => pipeline::stencil(&config)
                .into_iter()
                .chain(pipeline::tiled(&config))
                .chain(pipeline::gpu(&config))
                .collect(),
        };
        Runner::default().run(context, &mut module, &steps).ok()?;
    }
    let plan = launch_plan::of(context, &module).ok()?;
    on_simulator(&module, &plan, size).ok()?
}

/// The results of a run with noise as input; none where the sizes do not fit, or are large.
fn on_simulator(module: &Module, plan: &Plan, size: i64) -> Result<Option<Arrays>, Fail> {
    // Sizes that differ find swapped dimensions.
    let sizes = plan.params.iter().enumerate();
    let sizes = sizes.map(|(place, name)| (name.clone(), size + 3 * place as i64)).collect();
    let half = |name: &String| (name.clone(), 0.5.into());
    let scalars = plan.scalars.iter().map(|scalar| half(&scalar.name)).collect();
    let request = Request { sizes, scalars, ..Request::default() };
    let prepared = input::prepare(plan, request, &Default::default(), |place| {
        Some(Input::Random(place as u64 + 7))
    });
    let Ok((bound, inputs)) = prepared else { return Ok(None) };
    if bound.device_bytes() > MOST_BYTES {
        return Ok(None);
    }
    nests::simulated(module, 1, plan, &bound, &inputs).map(Some)
}
