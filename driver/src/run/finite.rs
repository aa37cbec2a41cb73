//! The first NaN or infinity of a run that is not the reference's: where a result has one, the
//! reference runs again from the last pause without one, and finds step, cell and expression.

use super::{Hooks, Job};
use std::collections::BTreeMap;
use stencil_compiler::{Array, Failure, Request, Target};
use stencil_runtime::array::ArrayError;

/// The last values without a NaN or an infinity.
pub struct Watched {
    on: bool,
    good: Option<(i64, BTreeMap<String, Array>)>,
}

impl Watched {
    pub fn new(on: bool) -> Self {
        Self { on, good: None }
    }

    /// Looks at the values after a step.
    pub fn look(
        &mut self,
        job: &Job<'_>,
        step: i64,
        values: &BTreeMap<String, Array>,
    ) -> Result<(), Failure> {
        if !self.on {
            return Ok(());
        }
        let lost = values.iter().find(|(_, array)| array.first_not_finite().is_some());
        let Some((name, _)) = lost else {
            let copy = |(name, array): (&String, &Array)| Ok((name.clone(), array.copy()?));
            let copies = values.iter().map(copy).collect::<Result<_, _>>();
            self.good = Some((step, copies.map_err(|error: ArrayError| Failure::user(error))?));
            return Ok(());
        };
        let mut inputs = BTreeMap::new();
        for (name, array) in &job.inputs {
            inputs.insert(name.clone(), array.copy().map_err(Failure::user)?);
        }
        let (first_step, good) = self.good.take().unwrap_or((job.request.first_step, [].into()));
        inputs.extend(good);
        let request = Request {
            first_step,
            steps: Some(step - first_step),
            choices: BTreeMap::new(),
            ..job.request.clone()
        };
        let hooks = Hooks { finite: true, ..Hooks::default() };
        job.run_on(Target::Reference, &inputs, request, hooks)?;
        Err(Failure::user(format!(
            "`{name}` has a NaN or an infinity after step {step}, and the reference has none; \
             compare them with --check"
        )))
    }
}
