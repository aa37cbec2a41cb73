//! Runs the steps of a pipeline over a module: ours and upstream's, with verification, timing and
//! dumps in one place.

use crate::pass::{Pass, Step};
use crate::stencil::verify;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::time::{Duration, Instant};
use stencil_dialects::error::{Error, Fault};
use stencil_dialects::mlir;

/// Called with the text of a step and the module after it.
pub type Hook<'h> = &'h mut dyn FnMut(&str, &Module);

/// What the runner does around each step.
#[derive(Default)]
pub struct Runner<'h> {
    /// Called after each step with its text and the module.
    pub after: Option<Hook<'h>>,
    /// How long each step took, in order, and after the last how long verification did.
    pub timing: Vec<(String, Duration)>,
}

impl Runner<'_> {
    /// Runs the steps in order. The module is verified before the first and after each that has
    /// work; a failure names the pass. Before `inline`, point functions may have calls.
    pub fn run<'c>(
        &mut self,
        context: &'c Context,
        module: &mut Module<'c>,
        steps: &[Step],
    ) -> Result<(), Error> {
        let mut verification = Duration::ZERO;
        let mut verify = |module: &Module<'c>| {
            let start = Instant::now();
            let result = verify_module(context, module);
            verification += start.elapsed();
            result
        };
        if steps.first().is_some_and(Step::inlines) {
            mlir::verify(context, module)?;
        } else {
            verify(module)?;
        }
        for step in steps {
            let (start, text) = (Instant::now(), step.text());
            // Upstream's passes may break our rules where a user asks for them; ours never may.
            let (name, fault) = match step {
                Step::Ours(pass) => (pass.info().name, Fault::Internal),
                Step::Upstream(text) => (text.as_str(), Fault::User),
            };
            if let Step::Ours(pass) = step {
                refuse_branches(pass.as_ref(), module)?;
            }
            let has_work = step.has_work(module).map_err(|error| in_pass(error, name))?;
            if has_work {
                step.run(context, module).map_err(|error| in_pass(error, name))?;
            }
            self.timing.push((text.clone(), start.elapsed()));
            if let Some(after) = &mut self.after {
                after(&text, module);
            }
            if has_work {
                verify(module).map_err(|error| Error {
                    fault,
                    message: format!(
                        "the IR is not valid after the pass {text}: {}",
                        error.message
                    ),
                    ..error
                })?;
            }
        }
        self.timing.push(("verification".to_owned(), verification));
        Ok(())
    }
}

/// Refuses a pass that follows structured control flow on a module that has branches.
fn refuse_branches(pass: &dyn Pass, module: &Module) -> Result<(), Error> {
    if pass.takes_branches() {
        return Ok(());
    }
    let mut all = mlir::walk(mlir::module_op(module)).into_iter();
    let Some(branch) = all.find(|op| op.successor_count() > 0) else { return Ok(()) };
    Err(Error::new(
        mlir::place(branch.location()),
        format!(
            "the pass {} follows structured control flow, and {} is a branch between blocks; run \
             the pass before convert-scf-to-cf, and write kernels with scf.if and scf.for",
            pass.info().name,
            mlir::name(branch)
        ),
    ))
}

fn in_pass(error: Error, pass: &str) -> Error {
    if error.fault == Fault::Internal {
        Error { message: format!("in the pass {pass}: {}", error.message), ..error }
    } else {
        error
    }
}

fn verify_module<'c>(context: &'c Context, module: &Module<'c>) -> Result<(), Error> {
    mlir::verify(context, module)?;
    verify::check(module)
}
