//! A run: sizes, scalars, steps and memory of the caller, and how it is done.

use crate::binding::{Binding, Memory};
use crate::caller;
use crate::device;
use crate::fault::{Fault, Status};
use crate::handles::{self, Object};
use crate::program::{Code, Engine, Program, Ran};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use stencil_runtime::array::Array;
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::execute::check_inputs;
use stencil_runtime::plan::Role;

/// A run of a program.
pub struct Run {
    pub program: Arc<Program>,
    pub cancel: Arc<AtomicBool>,
    state: Mutex<State>,
}

/// What a run is to do, and what it did.
#[derive(Default)]
pub struct State {
    pub request: Request,
    pub fields: BTreeMap<String, Binding>,
    pub device: i32,
    /// The address of a stream's handle.
    pub stream: Option<usize>,
    pub done: Option<Done>,
}

/// What a run did.
pub struct Done {
    /// Outputs that are in no memory of the caller: reductions.
    pub ran: Ran,
    pub copies: Copies,
}

/// Copies of whole fields within a machine's memory or a device's, which another layout of the
/// caller's memory would spare.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copies {
    pub count: u64,
    pub bytes: u64,
}

impl Copies {
    pub fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes as u64;
    }
}

impl Run {
    /// Makes a run live, and returns its handle.
    pub fn publish(program: Arc<Program>) -> u64 {
        let (cancel, state) = (Arc::default(), Mutex::default());
        handles::add(Object::Run(Arc::new(Self { program, cancel, state })))
    }

    /// Its state, which one thread at a time may use.
    pub fn state(&self) -> Result<MutexGuard<'_, State>, Fault> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Fault::new(Status::Busy, "another thread is using this run"))
            }
        }
    }

    /// Does the run.
    pub fn execute(&self) -> Result<(), Fault> {
        let mut state = self.state()?;
        state.done = None;
        self.cancel.store(false, Ordering::Relaxed);
        let bound = self.bound(&state)?;
        let done = match &self.program.code {
            Code::Cuda(code) => device::execute(self, &mut state, &bound, code)?,
            Code::Engine(engine) => self.on_engine(&mut state, &bound, engine.as_ref())?,
        };
        state.done = Some(done);
        Ok(())
    }

    /// All sizes, checked.
    pub fn bound(&self, state: &State) -> Result<Bound, Fault> {
        let mut request = state.request.clone();
        let shapes = state.fields.iter();
        request.shapes = shapes.map(|(name, field)| (name.clone(), field.shape.clone())).collect();
        Ok(bind(&self.program.plan, &request)?)
    }

    /// Runs on copies of all fields.
    fn on_engine(
        &self,
        state: &mut State,
        bound: &Bound,
        engine: &dyn Engine,
    ) -> Result<Done, Fault> {
        let mut copies = Copies::default();
        let mut inputs = BTreeMap::new();
        for (name, field) in &state.fields {
            if let Memory::Device { .. } = field.memory {
                return Err(Fault::argument(format!(
                    "field `{name}` lies on a device, and the program is compiled for another \
                     target; bind memory of the host"
                )));
            }
            inputs.insert(name.clone(), gathered(field, &mut copies)?);
        }
        check_inputs(&self.program.plan, bound, &inputs)?;
        let request = Request { shapes: BTreeMap::new(), ..state.request.clone() };
        let mut ran = engine.run(&inputs, request, &self.cancel)?;
        for field in self.program.plan.fields.iter().filter(|field| field.role == Role::State) {
            let value = ran.outputs.remove(&field.name);
            if let Some((binding, value)) = state.fields.get(&field.name).zip(value) {
                caller::scatter(binding, value.bytes());
                copies.add(binding.bytes());
            }
        }
        Ok(Done { ran, copies })
    }
}

/// A field's cells as an array.
pub fn gathered(field: &Binding, copies: &mut Copies) -> Result<Array, Fault> {
    let mut array = Array::zeros(field.element, &field.shape)?;
    caller::gather(field, array.bytes_mut());
    copies.add(field.bytes());
    Ok(array)
}
