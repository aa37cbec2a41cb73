//! Runs of functions of affine loops by their interpreter, which shares no code with the passes
//! that make kernels.

use crate::failure::Failure;
use crate::stages;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_frontend::source::Source;
use stencil_passes::affine::arguments::{Declared, Kind};
use stencil_passes::affine::lower_affine_nest;
use stencil_runtime::array::Array;
use stencil_runtime::bind::Bound;
use stencil_simulator::nest::{self, Argument};

/// Refuses other MLIR than a function of affine loops.
///
/// # Errors
/// That, and what is no MLIR.
pub(crate) fn required(source: &Source) -> Result<(), Failure> {
    let context = stages::context(source)?;
    let in_source = |error: Error| Failure::in_source(&error, source);
    let module = mlir::parse_module(&context, &source.text, &source.name).map_err(in_source)?;
    match lower_affine_nest::function(&module).map_err(in_source)? {
        Some(_) => Ok(()),
        None => Err(Failure::user(
            "run takes a .stencil program or a function of affine loops; compile other MLIR by \
             --emit=ptx,plan and run it by stencil-bench",
        )),
    }
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
    for argument in &declared.arguments {
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
    for (argument, value) in declared.arguments.iter().zip(arguments) {
        if let Argument::Array(array) = value {
            arrays.insert(argument.name.clone(), array);
        }
    }
    Ok(())
}
