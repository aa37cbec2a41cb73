//! A run on a CUDA device. Dense memory of the host goes to the device and comes back without a
//! copy in between. Memory of the device takes the place of a buffer where the plan allows it.

use super::binding::{Binding, Memory};
use super::error::HostError;
use super::program::{self, Hooks, Ran};
use super::run::{Copies, Done, Run, gathered};
use super::{raw, records};
use crate::array::{Array, Element};
use crate::bind::{Bound, BufferId};
use crate::cuda::{GraphSettings, Lent, Program};
use crate::execute::heights::{self, Chosen};
use crate::execute::{
    self, Control, Input, Inputs, Launched, RunProgress, Target, check_devices, check_inputs,
    homeward, launch_all, lendable, read_value,
};
use crate::plan::{Plan, Role};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// The cells of an input.
enum Cells<'a> {
    /// Memory of the caller.
    Dense(&'a Binding, &'a [u8]),
    /// A copy of those of the caller.
    Copied(&'a Array),
    /// In a buffer already.
    Lent(&'a Binding),
}

impl Input for Cells<'_> {
    fn element(&self) -> Element {
        match self {
            Self::Dense(field, _) | Self::Lent(field) => field.element,
            Self::Copied(array) => array.element(),
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Self::Dense(field, _) | Self::Lent(field) => &field.shape,
            Self::Copied(array) => array.shape(),
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Dense(_, bytes) => Some(bytes),
            Self::Copied(array) => Some(array.bytes()),
            Self::Lent(_) => None,
        }
    }
}

/// Does a run.
pub(super) fn execute(
    program: &program::Program,
    run: &mut Run,
    bound: &Bound,
    code: &[u8],
    hooks: Hooks<'_>,
) -> Result<Done, HostError> {
    let fields = run.fields.iter();
    let kinds: BTreeMap<_, _> = fields.map(|(name, f)| (name.clone(), Cells::Lent(f))).collect();
    check_inputs(&program.plan, bound, &kinds)?;
    drop(kinds);
    let mut loaded = match program.take_loaded(run.device) {
        Some(loaded) => loaded,
        None => program.code_on(run.device, code)?.program()?,
    };
    if let Some(stream) = run.stream {
        loaded.come_behind(stream)?;
    }
    loaded.use_graphs(GraphSettings::default())?;
    let device = loaded.device_name().to_owned();
    let memory = || program.heights.lock().unwrap_or_else(PoisonError::into_inner);
    let known = memory().find(&program.plan, bound, &device);
    let mut chosen = bound.clone();
    chosen.choices.extend(known.map(|height| (heights::NAME.to_owned(), height)));
    let (done, height) = on(&program.plan, run, &chosen, &mut loaded, hooks)?;
    if let Some(height) = height {
        memory().remember(&program.plan, bound, &device, &height.height);
    }
    program.keep_loaded(run.device, loaded);
    Ok(done)
}

fn on(
    plan: &Plan,
    run: &mut Run,
    bound: &Bound,
    target: &mut Program,
    hooks: Hooks<'_>,
) -> Result<(Done, Option<Chosen>), HostError> {
    let mut copies = Copies::default();
    let lent = lent(plan, bound, &run.fields);
    target.lend(lent.iter().map(|one| (one.home, one.memory)).collect());
    target.allocate(bound).map_err(execute::ExecuteError::Target)?;
    let mut copied = copied(&run.fields, &lent, target, &mut copies)?;
    let launched = {
        let mut inputs = BTreeMap::new();
        for (name, field) in &run.fields {
            let cells = match (copied.get(name), raw::dense(field)) {
                (Some(array), _) => Cells::Copied(array),
                (None, Some(bytes)) => Cells::Dense(field, bytes),
                (None, None) => Cells::Lent(field),
            };
            inputs.insert(name.clone(), cells);
        }
        check_devices(plan, bound, target)?;
        execute::upload(plan, bound, &inputs, target)?;
        let Hooks { cancel, mut progress } = hooks;
        let mut report = |done: RunProgress| {
            if let Some(hook) = &mut progress {
                hook(done.steps, done.of);
            }
        };
        let (cancel, progress) = (Some(cancel.as_ref()), Some(&mut report as _));
        let mut control = Control { cancel, progress, ..Control::default() };
        // Inputs are for snapshots, of which there are none.
        launch_all(plan, bound, &Inputs::new(), target, &mut control)?
    };
    let results = Results { plan, bound, launched: &launched };
    let outputs = results.bring(&mut run.fields, &lent, &mut copied, target, &mut copies)?;
    let Launched { count, elapsed, steps, iterations, height, .. } = launched;
    let seconds = elapsed.map(|elapsed| elapsed.as_secs_f64());
    let met = iterations.first().map(|until| until.met);
    let ran = Ran { outputs, steps, launches: count, seconds, met };
    Ok((Done { ran, copies }, height))
}

/// Memory of the caller that takes the place of a buffer.
struct OnLoan {
    /// The fields whose cells lie there: one, or those of an array of structs.
    fields: Vec<String>,
    home: BufferId,
    memory: Lent,
}

/// The fields whose memory takes the place of a buffer.
fn lent(plan: &Plan, bound: &Bound, fields: &BTreeMap<String, Binding>) -> Vec<OnLoan> {
    let declared = plan.fields.iter().enumerate();
    let one = declared.filter_map(|(place, field)| {
        let binding = fields.get(&field.name).filter(|binding| binding.bytes() > 0)?;
        let Memory::Device { address, .. } = binding.memory else { return None };
        let memory = raw::lent(address, binding.bytes());
        let home = lendable(plan, bound, place).filter(|_| binding.is_dense())?;
        Some(OnLoan { fields: vec![field.name.clone()], home, memory })
    });
    let record = bound.buffers.iter().enumerate().filter_map(|(place, buffer)| {
        let address = records::address(plan, bound, place, fields)?;
        let names = buffer.record.iter().filter_map(|field| plan.fields.get(*field));
        let fields = names.map(|field| field.name.clone()).collect();
        let memory = raw::lent(address, buffer.bytes());
        Some(OnLoan { fields, home: BufferId(place), memory })
    });
    one.chain(record).collect()
}

/// Copies of the fields that lie neither dense on the host nor in a buffer.
fn copied(
    fields: &BTreeMap<String, Binding>,
    lent: &[OnLoan],
    target: &Program,
    copies: &mut Copies,
) -> Result<BTreeMap<String, Array>, HostError> {
    let mut copied = BTreeMap::new();
    for (name, field) in fields {
        let array = match field.memory {
            Memory::Host { .. } if field.is_dense() => continue,
            Memory::Host { .. } => gathered(field, copies)?,
            Memory::Device { address, .. } => {
                if lent.iter().any(|one| one.fields.contains(name)) {
                    continue;
                }
                if !field.is_dense() {
                    return Err(HostError::Argument(format!(
                        "field `{name}` lies on a device with strides; give a copy that is \
                         contiguous, or all of an array of structs to a program that is compiled \
                         with the layout aos or blocks"
                    )));
                }
                let mut array = Array::zeros(field.element, &field.shape)?;
                if field.bytes() > 0 {
                    let memory = raw::lent(address, field.bytes());
                    target.read_lent(memory, array.bytes_mut())?;
                }
                copies.add(field.bytes());
                array
            }
        };
        copied.insert(name.clone(), array);
    }
    Ok(copied)
}

/// Results on the device.
struct Results<'a> {
    plan: &'a Plan,
    bound: &'a Bound,
    launched: &'a Launched,
}

impl Results<'_> {
    /// Brings state fields to the caller's memory, and returns the reductions.
    fn bring(
        &self,
        fields: &mut BTreeMap<String, Binding>,
        lent: &[OnLoan],
        copied: &mut BTreeMap<String, Array>,
        target: &mut Program,
        copies: &mut Copies,
    ) -> Result<BTreeMap<String, Array>, HostError> {
        let current = &self.launched.current;
        let is_state =
            |name: &str| self.plan.field(name).is_some_and(|field| field.role == Role::State);
        let homes = lent.iter().filter(|one| one.fields.iter().any(|name| is_state(name)));
        let homes: Vec<_> = homes.map(|one| one.home).collect();
        let mut reductions = BTreeMap::new();
        for (place, field) in self.plan.fields.iter().enumerate() {
            match (field.role, fields.get_mut(&field.name)) {
                (Role::Reduction, _) => {
                    let shape = self.bound.shapes.get(place).map_or(&[] as &[_], Vec::as_slice);
                    let mut value = Array::zeros(field.element, shape)?;
                    read_value(self.bound, current, place, value.bytes_mut(), target)?;
                    reductions.insert(field.name.clone(), value);
                }
                (Role::State, Some(binding)) => match copied.get_mut(&field.name) {
                    Some(array) => {
                        read_value(self.bound, current, place, array.bytes_mut(), target)?;
                        back(binding, array, target)?;
                        copies.add(binding.bytes());
                    }
                    None => {
                        if let Some(bytes) = raw::dense_mut(binding) {
                            read_value(self.bound, current, place, bytes, target)?;
                        }
                    }
                },
                _ => {}
            }
        }
        let home = homeward(current, &homes);
        target.copy_all(&home)?;
        for (_, to) in home {
            copies.add(self.bound.buffers.get(to.0).map_or(0, |buffer| buffer.bytes()));
        }
        Ok(reductions)
    }
}

/// The value of a field from its copy to the caller's memory.
fn back(binding: &Binding, array: &Array, target: &Program) -> Result<(), HostError> {
    match binding.memory {
        Memory::Host { .. } => raw::scatter(binding, array.bytes()),
        Memory::Device { address, .. } if binding.bytes() > 0 => {
            target.write_lent(raw::lent(address, binding.bytes()), array.bytes())?;
        }
        Memory::Device { .. } => {}
    }
    Ok(())
}
