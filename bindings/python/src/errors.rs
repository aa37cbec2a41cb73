//! Failures as Python's exceptions, which `stencilc/_errors.py` declares.

use pyo3::prelude::*;
use stencil_compiler::{Class, Failure};
use stencil_runtime::bind::BindError;
use stencil_runtime::cuda::CudaError;
use stencil_runtime::execute::ExecuteError;
use stencil_runtime::host::{Blame, HostError};

/// The classes of exceptions.
#[derive(Clone, Copy)]
pub enum Kind {
    Compile,
    Argument,
    Device,
    Cancelled,
    Internal,
}

/// An exception with a text.
pub fn raise(py: Python<'_>, kind: Kind, text: String) -> PyErr {
    let name = match kind {
        Kind::Compile => "CompileError",
        Kind::Argument => "ArgumentError",
        Kind::Device => "DeviceError",
        Kind::Cancelled => "Cancelled",
        Kind::Internal => "InternalError",
    };
    let made = py.import("stencilc._errors").and_then(|module| module.getattr(name));
    match made.and_then(|class| class.call1((text,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A wrong argument.
pub fn argument(py: Python<'_>, text: impl Into<String>) -> PyErr {
    raise(py, Kind::Argument, text.into())
}

/// A failed compile. The places of its messages become attributes.
pub fn compile(py: Python<'_>, failure: &Failure) -> PyErr {
    let kind = match failure.class {
        Class::Input | Class::Unread => Kind::Compile,
        Class::Cancelled => Kind::Cancelled,
        Class::Memory | Class::Device => Kind::Device,
        Class::Internal => Kind::Internal,
    };
    let error = raise(py, kind, failure.to_string());
    if let Some(message) = failure.messages().first() {
        let place = message.place.as_ref();
        let place = place.map(|place| (place.file.clone(), place.line, place.column));
        // An exception without a place is still one.
        let _ = error.value(py).setattr("place", place);
    }
    error
}

/// A failed run; the remedies are arguments of a call.
pub fn run(py: Python<'_>, error: HostError) -> PyErr {
    let (kind, text) = match error {
        HostError::Argument(text) => (Kind::Argument, text),
        HostError::Array(error) if error.lacks_memory() => (Kind::Device, error.to_string()),
        HostError::Array(error) => (Kind::Argument, error.to_string()),
        HostError::Bind(error) => (Kind::Argument, bind(&error)),
        HostError::Cuda(error) => cuda(&error),
        HostError::Execute(error) => execute(*error),
        HostError::Engine { blame, text } => {
            let kind = match blame {
                Blame::Input => Kind::Argument,
                Blame::Cancelled => Kind::Cancelled,
                Blame::Memory | Blame::Device => Kind::Device,
                Blame::Internal => Kind::Internal,
            };
            (kind, text)
        }
    };
    raise(py, kind, text)
}

/// What is wrong with sizes, scalars or steps.
pub fn bind(error: &BindError) -> String {
    match error {
        BindError::MissingSize { names, .. } => {
            let first = names.first().map_or("N", String::as_str);
            format!(
                "the size {} has no value; give it as {first}=..., or an array whose shape tells \
                 it",
                names.join(", ")
            )
        }
        BindError::MissingScalar(name) => {
            format!("the scalar `{name}` has no value; give it as {name}=...")
        }
        BindError::Steps(steps) => format!("{steps} steps can't be run"),
        BindError::FirstStep(step) => format!("a run can't begin at step {step}"),
        other => other.to_string(),
    }
}

fn cuda(error: &CudaError) -> (Kind, String) {
    let kind = match error {
        CudaError::Lent { .. } => Kind::Argument,
        _ => Kind::Device,
    };
    (kind, error.to_string())
}

fn execute(error: ExecuteError) -> (Kind, String) {
    match error {
        error if error.lacks_memory() => (Kind::Device, error.to_string()),
        ExecuteError::MissingInput(field) => {
            (Kind::Argument, format!("field `{field}` has no data; give it as {field}=ARRAY"))
        }
        ExecuteError::Cancelled(_) => (Kind::Cancelled, error.to_string()),
        ExecuteError::Stuck(_) => (Kind::Internal, error.to_string()),
        ExecuteError::Target(error) => match error.downcast::<CudaError>() {
            Ok(error) => cuda(&error),
            Err(error) => (Kind::Device, error.to_string()),
        },
        error => (Kind::Argument, error.to_string()),
    }
}
