//! Code for processors as an engine of [`crate::host`]: what programs of other languages run.

use super::code::Code;
use super::program::{CpuError, Program};
use crate::array::Array;
use crate::bind::{Request, bind};
use crate::execute::{self, Control, ExecuteError, RunProgress};
use crate::host::{Blame, Engine, Hooks, HostError, Ran};
use crate::plan::{Node, Plan};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// A plan with its code on this machine's processor. One run goes on at a time.
#[derive(Debug)]
pub struct Processor {
    plan: Plan,
    program: Mutex<Program>,
}

impl Processor {
    /// A plan with its code, as for [`Program::new`].
    ///
    /// # Errors
    /// As [`Program::new`].
    pub fn new(
        plan: Plan,
        code: Arc<dyn Code>,
        threads: Option<NonZeroUsize>,
    ) -> Result<Self, CpuError> {
        let program = Mutex::new(Program::new(&plan, code, threads)?);
        Ok(Self { plan, program })
    }
}

impl Engine for Processor {
    fn run(
        &self,
        inputs: &BTreeMap<String, Array>,
        mut request: Request,
        hooks: Hooks<'_>,
    ) -> Result<Ran, HostError> {
        let shapes = inputs.iter().map(|(name, array)| (name.clone(), array.shape().to_vec()));
        request.shapes.extend(shapes);
        let bound = bind(&self.plan, &request)?;
        let Hooks { cancel, progress: mut hook } = hooks;
        let mut report = |progress: RunProgress| {
            if let Some(hook) = &mut hook {
                hook(progress.steps, progress.of);
            }
        };
        let mut control = Control {
            progress: Some(&mut report),
            cancel: Some(cancel.as_ref()),
            ..Control::default()
        };
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let ran = execute::run(&self.plan, &bound, inputs, &mut *program, &mut control);
        let ran = ran.map_err(|error| match error {
            ExecuteError::Cancelled(_) => {
                HostError::Engine { blame: Blame::Cancelled, text: error.to_string() }
            }
            error => HostError::from(error),
        })?;
        let loops = self.plan.nodes().into_iter().any(|node| matches!(node, Node::Until(_)));
        let met = ran.launched.iterations.first().map(|of| of.met).filter(|_| loops);
        Ok(Ran {
            outputs: ran.outputs,
            steps: ran.launched.steps,
            launches: ran.launched.count,
            seconds: ran.launched.elapsed.map(|elapsed| elapsed.as_secs_f64()),
            met,
        })
    }
}
