//! The C interface to the compiler: `stencilc.h`, beside all functions of the crate
//! `stencil-c-runtime`.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "the attribute that exports a function's name is unsafe")]
mod exports;

use stencil_c_runtime::fault::{Fault, Status};
use stencil_compiler::{Class, Control, Failure, Level, Source, Target};
use stencil_runtime::host::{Code, Program};
use stencilc::cli::{Described, embedded};

/// Compiles a text with options of the command line.
fn compiled(name: &str, text: &str, options: &[String]) -> Result<Program, Fault> {
    let source = Source::new(name, text);
    let failed = |failure| fault(failure, Status::Compile);
    let read = embedded(&source.name, options).and_then(|read| read.session(&source));
    let Described { session, target, placement } = read.map_err(failed)?;
    if matches!(target, Target::Cuda(_)) && placement.is_usual() {
        let levels = [Level::Plan, Level::Ptx];
        let compiled = session.compile(&source, &levels, Control::default()).map_err(failed)?;
        let (Some(plan), Some(ptx)) = (compiled.plan(), compiled.ptx()) else {
            return Err(Fault::new(Status::Internal, "internal fault: a compile without a plan"));
        };
        return Ok(Program::new(plan.clone(), Code::Cuda(ptx.as_bytes().to_vec())));
    }
    let executable = session.executable(&source, target, Control::default()).map_err(failed)?;
    let executable = executable.placed(placement);
    let plan = executable.plan().clone();
    Ok(Program::new(plan, Code::Engine(Box::new(executable))))
}

fn fault(failure: Failure, input: Status) -> Fault {
    let status = match failure.class {
        Class::Input | Class::Unread => input,
        Class::Device => Status::Device,
        Class::Cancelled => Status::Cancelled,
        Class::Memory => Status::Memory,
        Class::Internal => Status::Internal,
    };
    Fault::new(status, failure)
}
