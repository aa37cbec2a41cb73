//! Runs of functions of affine loops by their interpreter, which shares no code with the passes
//! that make kernels.

use crate::failure::Failure;
use crate::stages;
use melior::Context;
use melior::ir::ValueLike;
use melior::ir::r#type::TypeLike;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use stencil_dialects::error::Error;
use stencil_dialects::fast_math::FastMath;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::tiled::Choice;
use stencil_frontend::source::Source;
use stencil_passes::affine::arguments::{Declared, Kind};
use stencil_passes::affine::lower_affine_nest;
use stencil_passes::pipeline::{Config, RecordLayout};
use stencil_passes::target::Arithmetic;
use stencil_runtime::array::Array;
use stencil_runtime::bind::Bound;
use stencil_simulator::nest::{self, Argument};

/// Gives the operations of a function the permissions that the options grant, beside their own.
///
/// # Errors
/// Internal ones only.
pub(crate) fn permit<'c>(
    context: &'c Context,
    function: Op<'c>,
    arithmetic: Arithmetic,
) -> Result<(), Error> {
    let granted = match arithmetic {
        Arithmetic { fast_math: true, .. } => FastMath::FAST,
        Arithmetic { contract: true, .. } => FastMath::CONTRACT,
        _ => return Ok(()),
    };
    let sums = ["arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf"];
    let of_floats = |op: &Op| {
        let known = sums.contains(&mlir::name(*op)) || mlir::name(*op).starts_with("math.");
        known && mlir::results(*op).iter().all(|result| result.r#type().is_float())
    };
    for op in mlir::walk(function).into_iter().filter(of_floats) {
        let (name, flags) = (FastMath::of(op) | granted).attribute(context)?;
        mlir::set_attribute(op, name, flags);
    }
    Ok(())
}

/// A nest has no schedule to choose.
///
/// # Errors
/// A choice, with the name of the source.
pub(crate) fn refuse_choices(config: &Config, name: &str) -> Result<(), Failure> {
    let Config { choice, heights, no_fuse, layout, lowering, .. } = config;
    let options = if !heights.is_empty() {
        "several pyramid heights are"
    } else if *choice != Choice::default() {
        "a strategy, tile, pyramid height or cells per thread are"
    } else if *no_fuse {
        "the option no-fuse is"
    } else if lowering.no_split_interior {
        "the option no-split-interior is"
    } else if *layout != RecordLayout::Soa {
        "the option layout is"
    } else {
        return Ok(());
    };
    Err(Failure::user(format!(
        "{name}: {options} for stencil programs; leave it out for a function of affine loops"
    )))
}

/// Refuses the options of nests for a stencil program.
///
/// # Errors
/// An option, with the name of the source.
pub(crate) fn refuse_options(config: &Config, name: &str) -> Result<(), Failure> {
    let Some(option) = config.of_nests() else { return Ok(()) };
    Err(Failure::user(format!(
        "{name}: the option {option} is for functions of affine loops; leave it out for a stencil \
         program"
    )))
}

/// Whether a module in MLIR is a function of affine loops.
///
/// # Errors
/// The text is no MLIR.
pub(crate) fn is_nest(source: &Source) -> Result<bool, Failure> {
    let context = stages::context(source)?;
    let in_source = |error: Error| Failure::in_source(&error, source);
    let module = mlir::parse_module(&context, &source.text, &source.name).map_err(in_source)?;
    Ok(lower_affine_nest::function(&module).map_err(in_source)?.is_some())
}

/// Refuses other MLIR than a function of affine loops.
///
/// # Errors
/// That, and what is no MLIR.
pub(crate) fn required(source: &Source) -> Result<(), Failure> {
    if is_nest(source)? {
        return Ok(());
    }
    Err(Failure::user(
        "the reference runs .stencil programs and functions of affine loops; run other MLIR with \
         --target sim, cpu or cuda",
    ))
}

/// Runs the function of a source on arrays, which it changes.
///
/// # Errors
/// What the interpreter refuses, with its place; arrays, sizes and scalars that are missing.
pub(crate) fn interpret(
    source: &Source,
    bound: &Bound,
    arrays: &mut BTreeMap<String, Array>,
    cancel: &AtomicBool,
) -> Result<(), Failure> {
    let context = stages::context(source)?;
    let in_source = |error: Error| Failure::in_source(&error, source);
    let module = mlir::parse_module(&context, &source.text, &source.name).map_err(in_source)?;
    let function = lower_affine_nest::function(&module).map_err(in_source)?;
    let function = function.ok_or_else(|| Failure::internal("a function that is gone"))?;
    let declared = Declared::read(function).map_err(in_source)?;
    let mut arguments = Vec::new();
    let given = || declared.arguments.iter().filter(|argument| !argument.own);
    for argument in given() {
        let name = &argument.name;
        let value = match &argument.kind {
            Kind::Size(_) => bound.sizes.get(name).map(|size| Argument::Size(*size)),
            Kind::Scalar(_) => bound.scalars.get(name).map(|number| Argument::Scalar(*number)),
            Kind::Array { .. } => arrays.remove(name).map(Argument::Array),
        };
        arguments.push(value.ok_or_else(|| Failure::internal(format!("no value of `{name}`")))?);
    }
    let cancelled = || cancel.load(Ordering::Relaxed);
    nest::run_until(function, &mut arguments, &cancelled).map_err(|error| match cancelled() {
        true => Failure::cancelled(error),
        false => in_source(error),
    })?;
    for (argument, value) in given().zip(arguments) {
        if let Argument::Array(array) = value {
            arrays.insert(argument.name.clone(), array);
        }
    }
    Ok(())
}
