//! Random functions of affine loops ([`generate`]), lowered and run on the simulator. The result
//! must be the interpreter's, bit for bit. Where the interpreter leaves an array, the plan must
//! refuse the sizes.

pub mod generate;

use crate::check::Fault;
use crate::outcome::{Outcome, attempt};
use crate::run::Arrays;
use generate::{Nest, Tiles};
use melior::Context;
use melior::ir::Module;
use std::collections::BTreeMap;
use stencil_compiler::stages::Compilation;
use stencil_compiler::{Class, Control, Failure, Options, Source};
use stencil_dialects::mlir;
use stencil_passes::affine::arguments::{Declared, Kind};
use stencil_passes::affine::lower_affine_nest;
use stencil_runtime::array::{Array, DataMut, Element};
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::compare::compare;
use stencil_runtime::execute;
use stencil_runtime::expr::Expr;
use stencil_runtime::number::{Number, Numeral};
use stencil_runtime::plan::{Node, Plan};
use stencil_simulator::nest::{self, Argument};
use stencil_simulator::{Settings, Simulator};

/// The value of the scalar `s`.
const SCALAR: f32 = 0.75;

/// The message of the one decline that generated functions may meet.
const CROSSES: &str = "declined [nest]: the value of this load is used in another launch";

type Stop = (Fault, String);

/// Checks a function.
pub fn check(nest: &Nest, context: &Context) -> Outcome {
    attempt(|| compared(nest, context))
}

fn compared(nest: &Nest, context: &Context) -> Result<Outcome, Stop> {
    let source = Source::new("nest.mlir", nest.text.as_str());
    let internal = |failure: Failure| (Fault::Internal, failure.to_string());
    let mut options = Options::default();
    match &nest.tiles {
        Tiles::None => options.config.no_nest_tiles = true,
        Tiles::Default => {}
        Tiles::Passes(passes) => options.passes = Some(passes.clone()),
    }
    let inputs = inputs(nest)?;
    let expected = interpreted(nest, context, &inputs)?;
    let lowered = || {
        let mut compilation = Compilation::new(context, &source, &options, Control::default())?;
        compilation.to_gpu()?;
        let plan = compilation.plan()?;
        Ok::<_, Failure>((compilation, plan))
    };
    let (mut compilation, plan) = match lowered() {
        Ok(lowered) => lowered,
        Err(failure) if failure.class == Class::Internal => return Err(internal(failure)),
        // An access that leaves its array for all sizes.
        Err(failure) if failure.to_string().contains("is accessed outside of its dimension") => {
            return match expected {
                Err(_) => Ok(Outcome::Refused),
                // The loops around the access do not run for these sizes.
                Ok(_) => Ok(Outcome::Accepted("never, as an access is always wrong")),
            };
        }
        // Every other form that is generated is one that the documents promise.
        Err(failure) if failure.to_string().contains(CROSSES) => {
            return Ok(Outcome::Accepted("never, as a value crosses launches"));
        }
        Err(failure) => return Err((Fault::UnknownDecline, failure.to_string())),
    };
    let Some(bound) = bound(nest, &plan, &expected)? else { return Ok(Outcome::Refused) };
    let found = simulated(&compilation.module, nest.data, &plan, &bound, &inputs)?;
    agree(&found, &expected)?;
    if nest.ptx {
        compilation.to_nvvm().map_err(internal)?;
        match compilation.code() {
            Ok(_) => {}
            Err(failure) if failure.to_string().contains("libdevice") => {}
            Err(failure) => return Err(internal(failure)),
        }
    }
    let changed = found.iter().any(|(name, array)| inputs.get(name) != Some(array));
    Ok(Outcome::Accepted(if changed { kind(&plan) } else { "without any change" }))
}

/// The sizes of a run; none where interpreter and plan refuse them.
///
/// # Errors
/// Where one of them alone refuses the sizes.
pub(crate) fn bound(
    nest: &Nest,
    plan: &Plan,
    expected: &Result<Arrays, String>,
) -> Result<Option<Bound>, Stop> {
    let request = Request {
        sizes: nest.sizes.iter().cloned().collect(),
        scalars: BTreeMap::from([("s".to_owned(), Numeral::from(Number::F32(SCALAR)))]),
        shapes: nest.arrays.iter().cloned().collect(),
        ..Request::default()
    };
    match (bind(plan, &request), expected) {
        (Ok(bound), Ok(_)) => Ok(Some(bound)),
        (Err(_), Err(_)) => Ok(None),
        (Err(error), Ok(_)) => Err((Fault::Refusal, error.to_string())),
        (Ok(_), Err(message)) => Err((Fault::Refusal, message.clone())),
    }
}

/// Compares all results with the interpreter's.
///
/// # Errors
/// The first difference.
pub(crate) fn agree(found: &Arrays, expected: &Result<Arrays, String>) -> Result<(), Stop> {
    for (name, array) in found {
        let wanted = expected.as_ref().ok().and_then(|all| all.get(name));
        let wanted = wanted.ok_or_else(|| (Fault::Difference, format!("{name} is no array")))?;
        let comparison = compare(array, wanted);
        let comparison = comparison.map_err(|error| (Fault::Difference, error.to_string()))?;
        if !comparison.exact() {
            return Err((Fault::Difference, format!("{name}: {comparison}")));
        }
    }
    Ok(())
}

/// How a plan carries a nest out.
fn kind(plan: &Plan) -> &'static str {
    let one = "1".parse::<Expr>().ok();
    let repeats = |node: &Node| matches!(node, Node::Repeat(r) if Some(&r.count) != one.as_ref());
    match () {
        () if plan.kernels.iter().any(|kernel| kernel.static_shared > 0) => {
            "with tiles in shared memory"
        }
        () if plan.schedule.iter().any(repeats) => "with a loop of launches",
        () if plan.kernels.iter().all(|kernel| kernel.block == [1, 1, 1]) => "by one thread",
        () if plan.kernels.iter().any(|kernel| kernel.block[1] > 1) => "by threads along two axes",
        () => "by threads along one axis",
    }
}

pub(crate) fn inputs(nest: &Nest) -> Result<Arrays, Stop> {
    let mut arrays = Arrays::new();
    for (place, (name, shape)) in nest.arrays.iter().enumerate() {
        let line = nest.text.lines().find(|line| line.contains(&format!("\"{name}\"")));
        let element = line.and_then(|line| line.split("> {").next()?.rsplit(['x', '<']).next());
        let element = element.and_then(Element::from_name).unwrap_or(Element::F32);
        let array = Array::noise(element, shape, nest.data.wrapping_add(place as u64));
        let mut array = array.map_err(|error| (Fault::Internal, error.to_string()))?;
        // They divide.
        if let DataMut::I32(cells) = array.data_mut() {
            cells.iter_mut().for_each(|cell| *cell = (*cell & 7).max(1));
        }
        arrays.insert(name.clone(), array);
    }
    Ok(arrays)
}

/// The result by the interpreter, or why it refuses.
pub(crate) fn interpreted(
    nest: &Nest,
    context: &Context,
    inputs: &Arrays,
) -> Result<Result<Arrays, String>, Stop> {
    let stop = |message: String| (Fault::Internal, message);
    let module = mlir::parse_module(context, &nest.text, "nest.mlir")
        .map_err(|error| stop(error.to_string()))?;
    let function = lower_affine_nest::function(&module).map_err(|error| stop(error.to_string()))?;
    // A function without loops is no nest.
    let function = function.ok_or_else(|| stop("no loops".to_owned()))?;
    let declared = Declared::read(function).map_err(|error| stop(error.to_string()))?;
    let sizes: BTreeMap<_, _> = nest.sizes.iter().cloned().collect();
    let mut arguments: Vec<Argument> = Vec::new();
    let given = || declared.arguments.iter().filter(|argument| !argument.own);
    for argument in given() {
        arguments.push(match argument.kind {
            Kind::Size(_) => Argument::Size(sizes[&argument.name]),
            Kind::Scalar(_) => Argument::Scalar(Number::F32(SCALAR)),
            Kind::Array { .. } => Argument::Array(inputs[&argument.name].clone()),
        });
    }
    Ok(nest::run(function, &mut arguments).map_err(|error| error.to_string()).map(|()| {
        let names = given().map(|argument| argument.name.clone());
        let array = |(name, value)| match value {
            Argument::Array(array) => Some((name, array)),
            _ => None,
        };
        names.zip(arguments).filter_map(array).collect()
    }))
}

/// The results of a run on the simulator, whose blocks a seed puts in order.
pub(crate) fn simulated(
    module: &Module,
    seed: u64,
    plan: &Plan,
    bound: &Bound,
    inputs: &Arrays,
) -> Result<Arrays, Stop> {
    let options = stencil_simulator::Options {
        settings: Settings { seed: Some(seed), ..Settings::default() },
        ..stencil_simulator::Options::default()
    };
    let stop = |message: String| (Fault::Simulator, message);
    let mut simulator = Simulator::new(module, options).map_err(|error| stop(error.to_string()))?;
    let mut control = execute::Control::default();
    let ran = execute::run(plan, bound, inputs, &mut simulator, &mut control);
    ran.map(|outcome| outcome.outputs).map_err(|error| stop(error.to_string()))
}
