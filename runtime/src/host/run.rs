//! A run: sizes, scalars, steps and memory of the caller, and how it is done.

use super::binding::{Binding, Memory};
use super::error::HostError;
use super::program::{Code, Engine, Hooks, Program, Ran};
use super::{device, raw};
use crate::array::Array;
use crate::bind::{Bound, Request, bind};
use crate::cuda::LentStream;
use crate::execute::check_inputs;
use crate::number::Numeral;
use crate::plan::{Plan, Role};
use std::collections::BTreeMap;

/// A run of a program.
#[derive(Default)]
pub struct Run {
    /// Sizes, scalars and steps. The shapes of the fields tell sizes too.
    pub request: Request,
    /// Memory of the fields, by name. A state field has the result there afterwards.
    pub fields: BTreeMap<String, Binding>,
    /// The CUDA device, by its number.
    pub device: i32,
    /// The stream that the work goes to; one of the run's own where there is none.
    pub stream: Option<LentStream>,
}

/// What a run did.
#[derive(Debug)]
pub struct Done {
    /// Outputs that are in no memory of the caller: reductions.
    pub ran: Ran,
    /// Copies that it had to make.
    pub copies: Copies,
}

/// Copies of whole fields within a machine's memory or a device's, which another layout of the
/// caller's memory would spare.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copies {
    /// How many.
    pub count: u64,
    /// The bytes of all of them.
    pub bytes: u64,
}

impl Copies {
    pub(super) fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes as u64;
    }
}

impl Run {
    /// Does the run, and returns when it is done.
    ///
    /// # Errors
    /// When sizes, scalars or fields are missing or do not fit, when the device fails, when the run
    /// is cancelled. Memory of the host is then as it was.
    pub fn execute(&mut self, program: &Program, hooks: Hooks<'_>) -> Result<Done, HostError> {
        let bound = self.bound(program)?;
        self.check_apart(&program.plan)?;
        match &program.code {
            Code::Cuda(code) => device::execute(program, self, &bound, code, hooks),
            Code::Engine(engine) => self.on_engine(program, &bound, engine.as_ref(), hooks),
        }
    }

    /// Checks that what the run writes is no other field's memory.
    fn check_apart(&self, plan: &Plan) -> Result<(), HostError> {
        let is_state = |name: &str| plan.field(name).is_some_and(|one| one.role == Role::State);
        for (number, (name, field)) in self.fields.iter().enumerate() {
            let others = self.fields.iter().skip(number + 1);
            let mut others = others.filter(|(other, _)| is_state(name) || is_state(other));
            if let Some((other, _)) = others.find(|(_, other)| field.meets(other)) {
                return Err(HostError::Argument(format!(
                    "fields `{name}` and `{other}` share memory, and the run writes to it; give \
                     each its own"
                )));
            }
        }
        Ok(())
    }

    /// The cells of each field in each dimension, in the order of the plan. Scalars need no value.
    ///
    /// # Errors
    /// When sizes are missing or contradict each other.
    pub fn shapes(&self, program: &Program) -> Result<Vec<Vec<usize>>, HostError> {
        let mut request = self.request.clone();
        for scalar in &program.plan.scalars {
            request.scalars.entry(scalar.name.clone()).or_insert_with(|| Numeral::from(0.0));
        }
        let run = Self { request, fields: self.fields.clone(), ..Self::default() };
        Ok(run.bound(program)?.shapes)
    }

    /// All sizes, checked.
    ///
    /// # Errors
    /// When some are missing or contradict each other.
    pub fn bound(&self, program: &Program) -> Result<Bound, HostError> {
        self.bound_to(&program.plan)
    }

    pub(super) fn bound_to(&self, plan: &Plan) -> Result<Bound, HostError> {
        let mut request = self.request.clone();
        let shapes = self.fields.iter();
        request.shapes = shapes.map(|(name, field)| (name.clone(), field.shape.clone())).collect();
        Ok(bind(plan, &request)?)
    }

    /// Runs on copies of all fields.
    fn on_engine(
        &self,
        program: &Program,
        bound: &Bound,
        engine: &dyn Engine,
        hooks: Hooks<'_>,
    ) -> Result<Done, HostError> {
        let mut copies = Copies::default();
        let mut inputs = BTreeMap::new();
        for (name, field) in &self.fields {
            if let Memory::Device { .. } = field.memory {
                return Err(HostError::Argument(format!(
                    "field `{name}` lies on a device, and {}; give it memory of the host",
                    engine.why_host()
                )));
            }
            inputs.insert(name.clone(), gathered(field, &mut copies)?);
        }
        check_inputs(&program.plan, bound, &inputs)?;
        let request = Request { shapes: BTreeMap::new(), ..self.request.clone() };
        let mut ran = engine.run(&inputs, request, hooks)?;
        for field in program.plan.fields.iter().filter(|field| field.role == Role::State) {
            let value = ran.outputs.remove(&field.name);
            if let Some((binding, value)) = self.fields.get(&field.name).zip(value) {
                raw::scatter(binding, value.bytes());
                copies.add(binding.bytes());
            }
        }
        Ok(Done { ran, copies })
    }
}

/// A field's cells as an array.
pub(super) fn gathered(field: &Binding, copies: &mut Copies) -> Result<Array, HostError> {
    let mut array = Array::zeros(field.element, &field.shape)?;
    raw::gather(field, array.bytes_mut());
    copies.add(field.bytes());
    Ok(array)
}
