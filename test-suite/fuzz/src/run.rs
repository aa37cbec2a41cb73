//! One case on the oracle and on the simulator.

use crate::check::{self, Fault, Stop};
use crate::devices;
use crate::model::{self, Case, Flag, Schedule};
use crate::print::field_name;
use crate::random::Random;
use crate::windows::{self, Fate};
use melior::Context;
use melior::ir::Module;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use stencil_compiler::stages::{Compilation, text};
use stencil_compiler::{
    Arithmetic, Choice, Class, Config, Control as Hooks, Failure, Lowering, Options, RecordLayout,
    Source,
};
use stencil_dialects::mlir;
use stencil_frontend::oracle;
use stencil_frontend::program::Program;
use stencil_passes::launch_plan;
use stencil_passes::llvm::emit_object::Object;
use stencil_passes::llvm::load_object;
use stencil_passes::pass::Step;
use stencil_passes::pipeline;
use stencil_passes::runner::Runner;
use stencil_passes::target::NATIVE;
use stencil_runtime::array::{Array, DataMut, bf16};
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::cpu;
use stencil_runtime::execute::{self, Control};
use stencil_runtime::number::{Numeral, half};
use stencil_runtime::plan::{FieldDecl, Member, Plan, Role};
use stencil_runtime::record::records;
use stencil_simulator::bands::Overlapping;
use stencil_simulator::{Settings, Simulator};

/// Arrays by the name of their field.
pub type Arrays = BTreeMap<String, Array>;

/// The text of a case as the compiler gets it.
pub fn source(case: &Case) -> Source {
    Source::new("case.stencil", case.program.text())
}

/// The options of a compile.
pub fn options(case: &Case, schedule: &Schedule) -> Options {
    use crate::model::Known;
    let params = case.program.params.iter().enumerate();
    Options {
        defines: params
            .filter(|(_, param)| param.known == Known::Define)
            .map(|(place, param)| (format!("P{place}"), param.value))
            .collect(),
        config: Config {
            choice: Choice {
                strategy: (!schedule.is_for_processor()).then(|| schedule.strategy.to_owned()),
                tile: schedule.tile.clone(),
                pyramid_height: schedule.height,
                per_thread: schedule.per_thread.clone(),
                region: schedule.flags.contains(&Flag::FixedRegion).then(|| "fixed".to_owned()),
                block: None,
            },
            heights: Vec::new(),
            no_fuse: schedule.flags.contains(&Flag::NoFuse),
            no_nest_tiles: false,
            no_vector_copies: false,
            unroll_by_registers: false,
            no_place_constants: false,
            transpose_arrays: false,
            nest_tile: None,
            layout: RecordLayout::Soa,
            lowering: Lowering {
                no_split_interior: schedule.flags.contains(&Flag::NoSplitInterior),
                devices: None,
                link: None,
                windows: case.windows,
            },
        },
        arithmetic: Arithmetic { contract: false, fast_math: false },
        passes: schedule.passes(),
        arch: schedule.is_for_processor().then(|| NATIVE.to_owned()),
        ..Options::default()
    }
}

/// The reason why a compile or a run ends early.
pub fn stop(failure: &Failure) -> Stop {
    match failure.class {
        Class::Internal => Stop::Failed(Fault::Internal, failure.to_string()),
        Class::Input | Class::Device | Class::Cancelled | Class::Memory | Class::Unread => {
            Stop::Declined(failure.to_string())
        }
    }
}

/// The numbers of all fields, as a plan has them but for their extents.
pub fn leaves(program: &model::Program) -> Vec<FieldDecl> {
    let mut all = Vec::new();
    for (place, field) in program.fields.iter().enumerate() {
        let name = field_name(place);
        let leaves = program.leaves(field.ty);
        let size = leaves.iter().map(|(_, leaf)| leaf.kept().size()).sum();
        let mut offset = 0;
        for (path, leaf) in leaves {
            let element = leaf.kept();
            all.push(FieldDecl {
                name: format!("{name}{path}"),
                element,
                boolean: leaf == model::Type::Bool,
                member: field.ty.is_aggregate().then(|| Member {
                    field: name.clone(),
                    offset,
                    size,
                }),
                role: match field.role {
                    model::Role::State => Role::State,
                    model::Role::Const => Role::Const,
                    model::Role::Temp => Role::Temp,
                },
                extents: Vec::new(),
                value: Vec::new(),
            });
            offset += element.size();
        }
    }
    all
}

/// The inputs, an array for each number of a cell; none where an extent would be negative.
pub fn inputs(case: &Case) -> Option<Arrays> {
    let program = &case.program;
    let leaves = leaves(program);
    let mut arrays = Arrays::new();
    for (place, record) in records(&leaves).iter().enumerate() {
        let bounds = program.grid_of(place).bounds(&program.params);
        let extents = bounds.iter().map(|(first, last)| usize::try_from(last - first + 1).ok());
        let shape: Vec<usize> = extents.collect::<Option<_>>()?;
        if record.role() == Some(Role::Temp) {
            continue;
        }
        let seed = case.data.seed + place as u64;
        let noise = record.noise(&shape, seed).ok()?;
        for ((lane, (_, leaf)), mut array) in record.leaves.iter().enumerate().zip(noise) {
            if case.data.rough {
                roughen(&mut array, seed + 1000 * lane as u64);
            }
            arrays.insert(leaf.name.clone(), array);
        }
    }
    Some(arrays)
}

/// Mixes what is seldom among numbers into an array of noise.
fn roughen(array: &mut Array, seed: u64) {
    let mut random = Random::of_case(seed, 0);
    // Beyond the range of a type, and within it.
    let special = [
        0.0,
        -0.0,
        1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-310,
        -1e-42,
        3e38,
        1e300,
        6e4,
        1e-7,
    ];
    let mut float = |old: f64| match random.below(12) {
        0 => random.pick(&special),
        1 | 2 => 8.0 * old,
        _ => 2.0 * old - 1.0,
    };
    let mut random = Random::of_case(seed, 1);
    let mut integer = || match random.below(3) {
        0 => random.pick(&[0, 1, -1, i64::from(i32::MIN), i64::from(i32::MAX), i64::MIN, i64::MAX]),
        1 => random.range(-9, 9),
        _ => (random.bits() as i64) >> random.below(64),
    };
    match array.data_mut() {
        DataMut::F16(cells) => cells.iter_mut().for_each(|cell| *cell = half(float(cell.to_f64()))),
        DataMut::Bf16(cells) => {
            cells.iter_mut().for_each(|cell| *cell = bf16::from_f64(float(cell.to_f64())));
        }
        DataMut::F32(cells) => {
            cells.iter_mut().for_each(|cell| *cell = float(f64::from(*cell)) as f32)
        }
        DataMut::F64(cells) => cells.iter_mut().for_each(|cell| *cell = float(*cell)),
        DataMut::I8(cells) => cells.iter_mut().for_each(|cell| *cell = integer() as i8),
        DataMut::I16(cells) => cells.iter_mut().for_each(|cell| *cell = integer() as i16),
        DataMut::U8(cells) => cells.iter_mut().for_each(|cell| *cell = integer() as u8),
        DataMut::U16(cells) => cells.iter_mut().for_each(|cell| *cell = integer() as u16),
        DataMut::I32(cells) => cells.iter_mut().for_each(|cell| *cell = integer() as i32),
        DataMut::I64(cells) => cells.iter_mut().for_each(|cell| *cell = integer()),
        DataMut::U32(cells) => cells.iter_mut().for_each(|cell| *cell = integer() as u32),
        DataMut::U64(cells) => cells.iter_mut().for_each(|cell| *cell = integer() as u64),
    }
}

/// The oracle's result: the state fields, or why it refuses the sizes.
pub fn reference(case: &Case, program: &Program, inputs: &Arrays) -> Result<Arrays, String> {
    let value = |name: &str| {
        name.strip_prefix('P')
            .and_then(|place| case.program.params.get(place.parse::<usize>().ok()?))
    };
    let sizes = program.params.iter().filter(|(_, param)| param.value.is_none());
    let sizes = sizes.filter_map(|(id, param)| Some((id, value(&param.name)?.value))).collect();
    let mut fields = inputs.clone();
    let steps = u64::try_from(case.program.steps).map_err(|error| error.to_string())?;
    oracle::run(program, &sizes, &scalars(case), steps, &mut fields, &mut |_, _| {
        ControlFlow::Continue(())
    })
    .map_err(|error| error.to_string())?;
    let leaves = leaves(&case.program);
    let named = |(place, one): (usize, &model::Reduction)| {
        let best = one.operation.starts_with("arg").then(|| format!("r{place}.best"));
        [Some(format!("r{place}")), best]
    };
    let all = case.program.reductions.iter().enumerate();
    let reductions: Vec<String> = all.flat_map(named).flatten().collect();
    fields.retain(|name, _| {
        leaves.iter().any(|leaf| leaf.role == Role::State && leaf.name == *name)
            || reductions.contains(name)
    });
    Ok(fields)
}

fn scalars(case: &Case) -> BTreeMap<String, Numeral> {
    let scalars = case.program.scalars.iter().enumerate();
    scalars.map(|(place, scalar)| (format!("s{place}"), scalar.value.into())).collect()
}

/// A compile's levels: the gpu level with its plan, and the texts of the levels before.
pub struct Compiled<'c> {
    /// The gpu level.
    pub module: Module<'c>,
    /// Its plan.
    pub plan: Plan,
    /// The stencil level and the tiled level as text, for cases that read them again.
    pub texts: Option<[String; 2]>,
}

/// Compiles a case to the gpu level.
///
/// # Errors
/// When the compiler declines or fails.
pub fn compile<'c>(
    context: &'c Context,
    case: &Case,
    schedule: &Schedule,
) -> Result<Compiled<'c>, Stop> {
    let (source, options) = (source(case), options(case, schedule));
    let mut compilation = Compilation::new(context, &source, &options, Hooks::default())
        .map_err(|failure| stop(&failure))?;
    let mut texts = None;
    if case.round_trip {
        let stencil = text(&compilation.module);
        compilation.tile().map_err(|failure| stop(&failure))?;
        texts = Some([stencil, text(&compilation.module)]);
        compilation.lower().map_err(|failure| stop(&failure))?;
    } else {
        compilation.to_gpu().map_err(|failure| stop(&failure))?;
    }
    let plan = compilation.plan().map_err(|failure| stop(&failure))?;
    Ok(Compiled { module: compilation.module, plan, texts })
}

/// Compiles on to PTX; the text is not run.
///
/// # Errors
/// When the compiler declines or fails.
pub fn ptx(context: &Context, case: &Case, schedule: &Schedule) -> Result<(), Stop> {
    let (source, options) = (source(case), options(case, schedule));
    let mut compilation = Compilation::new(context, &source, &options, Hooks::default())
        .map_err(|failure| stop(&failure))?;
    compilation
        .to_gpu()
        .and_then(|()| compilation.to_nvvm())
        .and_then(|()| compilation.code())
        .map(drop)
        .map_err(|failure| stop(&failure))
}

/// Parses a printed level and runs a pipeline on it.
///
/// # Errors
/// Any failure: what was printed must be read again and compile as before.
pub fn again<'c>(context: &'c Context, text: &str, passes: &[Step]) -> Result<Module<'c>, String> {
    let mut module =
        mlir::parse_module(context, text, "again.mlir").map_err(|error| error.to_string())?;
    Runner::default().run(context, &mut module, passes).map_err(|error| error.to_string())?;
    Ok(module)
}

/// The passes from the tiled level to the gpu level.
pub fn lowering() -> Vec<Step> {
    pipeline::gpu(&Config::default())
}

/// The plan of a module on the gpu level.
///
/// # Errors
/// As the compiler's.
pub fn plan(context: &Context, module: &Module) -> Result<Plan, String> {
    launch_plan::of(context, module).map_err(|error| error.to_string())
}

/// Runs the gpu level on the simulator, launch by launch or in bands that overlap.
///
/// # Errors
/// [`Stop::Refused`] where the plan refuses the sizes, and a fault where the simulator finds one.
pub fn simulate(
    case: &Case,
    module: &Module,
    plan: &Plan,
    inputs: &Arrays,
    overlap: bool,
) -> Result<Arrays, Stop> {
    let bound = bound(case, plan, inputs)?;
    let options = stencil_simulator::Options {
        // A band writes its own cells alone.
        settings: Settings {
            seed: case.order,
            workers: 1,
            poison_outputs: !overlap,
            ..Settings::default()
        },
        ..stencil_simulator::Options::default()
    };
    let fault = |error: String| Stop::Failed(Fault::Simulator, error);
    let mut simulator =
        Simulator::new(module, options).map_err(|error| fault(error.to_string()))?;
    let outcome = if overlap {
        let mut random = Random::of_case(case.data.seed, 2);
        // A device with little room cuts all launches but the smallest.
        let resident = random.pick(&[0, 0, 8]);
        let mut target = Overlapping::new(simulator, plan, resident, random.bits());
        execute::run(plan, &bound, inputs, &mut target, &mut Control::default())
    } else {
        execute::run(plan, &bound, inputs, &mut simulator, &mut Control::default())
    };
    outcome.map(|outcome| outcome.outputs).map_err(|error| fault(error.to_string()))
}

/// The sizes of a run.
///
/// # Errors
/// [`Stop::Refused`] where the plan refuses them.
pub fn bound(case: &Case, plan: &Plan, inputs: &Arrays) -> Result<Bound, Stop> {
    use crate::model::Known;
    let params =
        case.program.params.iter().enumerate().filter(|(_, param)| param.known == Known::Run);
    let scalars = scalars(case).into_iter();
    let request = Request {
        sizes: params.map(|(place, param)| (format!("P{place}"), param.value)).collect(),
        steps: case.steps_given.then_some(case.program.steps),
        scalars: scalars.filter(|(name, _)| given(case, name)).collect(),
        shapes: inputs.iter().map(|(name, array)| (name.clone(), array.shape().to_vec())).collect(),
        ..Request::default()
    };
    bind(plan, &request).map_err(|error| Stop::Refused(error.to_string()))
}

/// Compiles a case for the processor of this machine, and runs it there by two threads.
///
/// # Errors
/// When the compiler declines or fails; [`Stop::Refused`] where the plan refuses the sizes.
pub fn on_processor(
    context: &Context,
    case: &Case,
    schedule: &Schedule,
    inputs: &Arrays,
) -> Result<(Arrays, Option<Fate>), Stop> {
    let (source, options) = (source(case), options(case, schedule));
    let compiled = Compilation::new(context, &source, &options, Hooks::default());
    let compiled = compiled.and_then(|mut compilation| {
        compilation.to_gpu()?;
        let plan = compilation.plan()?;
        let object = compilation.object(&plan)?;
        Ok((plan, object))
    });
    let (plan, object) = compiled.map_err(|failure| stop(&failure))?;
    of_object(case, &plan, &object, inputs)
}

/// Runs machine code of a case on the processor of this machine, by two threads.
///
/// # Errors
/// [`Stop::Refused`] where the plan refuses the sizes, and a fault where the code does not run.
pub fn of_object(
    case: &Case,
    plan: &Plan,
    object: &Object,
    inputs: &Arrays,
) -> Result<(Arrays, Option<Fate>), Stop> {
    let fault = |error: String| Stop::Failed(Fault::Internal, error);
    let code = load_object::load(object).map_err(|error| fault(error.to_string()))?;
    let code: Arc<dyn cpu::Code> = Arc::new(code);
    let load = |threads| {
        cpu::Program::new(plan, Arc::clone(&code), NonZeroUsize::new(threads))
            .map_err(|error| fault(error.to_string()))
    };
    let bound = bound(case, plan, inputs)?;
    let outcome = execute::run(plan, &bound, inputs, &mut load(2)?, &mut Control::default());
    let outputs = outcome.map_err(|error| fault(error.to_string()))?.outputs;
    let shared = devices::of_case(case);
    let loaded = (0..shared.count()).map(|_| load(1)).collect::<Result<Vec<_>, _>>();
    let found = devices::share(case, plan, inputs, shared, &mut loaded?)?;
    if let Some(found) = found {
        check::same(&found, &outputs).map_err(|difference| {
            fault(format!("on {shared} devices the processor differs: {difference}"))
        })?;
    }
    if !case.windows {
        return Ok((outputs, None));
    }
    let (found, fate) = windows::run(case, plan, inputs, &mut load(1)?)?;
    for (memory, found) in found {
        check::same(&found, &outputs).map_err(|difference| {
            fault(format!("out of core in {memory} the processor differs: {difference}"))
        })?;
    }
    Ok((outputs, Some(fate)))
}

fn given(case: &Case, name: &str) -> bool {
    name.strip_prefix('s')
        .and_then(|place| case.program.scalars.get(place.parse::<usize>().ok()?))
        .is_some_and(|scalar| scalar.given)
}
