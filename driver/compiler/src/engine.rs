//! An executable runs on memory of another program: what the bindings for other languages run
//! where there is no device.

use crate::control::{Control, Progress};
use crate::executable::Executable;
use crate::failure::{Class, Failure};
use std::collections::BTreeMap;
use stencil_runtime::array::Array;
use stencil_runtime::bind::Request;
use stencil_runtime::host::{Blame, Engine, Hooks, HostError, Ran};

impl Engine for Executable {
    fn run(
        &self,
        inputs: &BTreeMap<String, Array>,
        request: Request,
        hooks: Hooks<'_>,
    ) -> Result<Ran, HostError> {
        let Hooks { cancel, progress: mut hook } = hooks;
        let whole = |steps: u64| i64::try_from(steps).unwrap_or(i64::MAX);
        let mut report = |progress: Progress<'_>| {
            if let (Some(hook), Progress::Steps { done, of }) = (&mut hook, progress) {
                hook(whole(done), whole(of));
            }
        };
        let control = Control { cancel, progress: Some(&mut report), ..self.placement.control() };
        let outcome = Executable::run(self, inputs, request, control)?;
        Ok(Ran {
            outputs: outcome.outputs,
            steps: outcome.steps,
            launches: outcome.launches,
            seconds: outcome.elapsed.map(|elapsed| elapsed.as_secs_f64()),
            met: outcome.ended.map(|ended| ended.met),
        })
    }

    fn release(&self) {
        self.release_kept();
    }

    fn why_host(&self) -> &'static str {
        self.placement.why_host().unwrap_or("the program is compiled for another target")
    }
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        let blame = match failure.class {
            Class::Input | Class::Unread => Blame::Input,
            Class::Device => Blame::Device,
            Class::Cancelled => Blame::Cancelled,
            Class::Memory => Blame::Memory,
            Class::Internal => Blame::Internal,
        };
        Self::Engine { blame, text: failure.to_string() }
    }
}
