//! The processor of this machine as a target: when it is the usual one, and how code is loaded for
//! it and kept.

use crate::executable::Target;
use crate::failure::Failure;
use crate::nest;
use crate::session::{Options, Session};
use crate::stages;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use stencil_frontend::source::Source;
use stencil_passes::llvm::emit_object::Object;
use stencil_passes::llvm::load_object;
use stencil_passes::pipeline::{Config, RecordLayout};
use stencil_passes::strategies;
use stencil_runtime::cpu::{CpuError, Program};
use stencil_runtime::cuda::Cuda;
use stencil_runtime::plan::Plan;

impl Session {
    /// The target of a run that names none, and the reason: a CUDA device, or else the processor.
    /// The reference runs what has no code for a processor.
    pub fn usual_target(&self, source: &Source) -> (Target, &'static str) {
        let processor = Target::Cpu { threads: None };
        if self.options().processor().is_some() {
            return (processor, "as the architecture is that of a processor");
        }
        if Cuda::open(0).is_ok() {
            return (Target::Cuda(0), "as there is a CUDA device");
        }
        if stages::is_mlir(source) && nest::required(source).is_ok() {
            let why = "as there is no CUDA device, and affine loops have no code for a processor";
            return (Target::Reference, why);
        }
        if is_for_gpus(self.options()) {
            let why = "as there is no CUDA device, and the options are for GPUs";
            return (Target::Reference, why);
        }
        (processor, "as there is no CUDA device")
    }
}

/// Whether options describe code that a processor can't run.
fn is_for_gpus(options: &Options) -> bool {
    let Options { arch, device, passes, config, .. } = options;
    let strategy = config.choice.strategy.as_deref().map(strategies::named);
    let gpu = strategy.is_some_and(|named| named.is_ok_and(|found| !found.is_for_processors()));
    let cells = config.choice.per_thread.is_some();
    let layout = config.layout != RecordLayout::Soa;
    arch.is_some() || device.is_some() || passes.is_some() || cells || layout || gpu
}

/// Refuses options that a processor's code does not have.
///
/// # Errors
/// Cells per thread, and another layout than the usual one.
pub(crate) fn refuse_choices(config: &Config, place: &str) -> Result<(), Failure> {
    if config.choice.per_thread.is_some() {
        return Err(Failure::user(format!(
            "{place}: cells per thread are for GPUs, as a thread of a processor computes whole \
             tiles; leave them out"
        )));
    }
    if config.layout != RecordLayout::Soa {
        return Err(Failure::user(format!(
            "{place}: the option layout is for GPUs; leave it out for a processor"
        )));
    }
    Ok(())
}

/// Machine code of a program, for some threads; none for as many as the machine runs at once.
#[derive(Clone, Debug)]
pub struct Machine {
    object: Arc<Object>,
    threads: Option<NonZeroUsize>,
    idle: Arc<Idle>,
}

/// Loaded code that no run uses, with its threads and their process; the last used comes last. To
/// load code and to start threads takes far longer than a run of a small program.
#[derive(Debug)]
struct Idle {
    programs: Mutex<VecDeque<(u32, Program)>>,
    /// The process that made the lock.
    process: u32,
}

/// Each idle program has threads of its own, which sleep.
const MOST_IDLE: usize = 8;

impl Idle {
    fn new() -> Self {
        Self { programs: Mutex::default(), process: std::process::id() }
    }

    /// The idle programs; none in a fork where they can't be had.
    fn programs(&self) -> Option<MutexGuard<'_, VecDeque<(u32, Program)>>> {
        if std::process::id() == self.process {
            return Some(self.programs.lock().unwrap_or_else(PoisonError::into_inner));
        }
        // A thread that held the lock at the fork is not there to give it back.
        let mut programs = match self.programs.try_lock() {
            Ok(programs) => programs,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        forget_others(&mut programs);
        Some(programs)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        forget_others(self.programs.get_mut().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Forgets programs whose threads are those of another process: a fork of it has none of them. The
/// end of a pool takes locks of the pool, which a thread may have held at the fork.
fn forget_others(programs: &mut VecDeque<(u32, Program)>) {
    let own = std::process::id();
    while let Some(place) = programs.iter().position(|(process, _)| *process != own) {
        programs.remove(place).into_iter().for_each(std::mem::forget);
    }
}

impl Machine {
    /// Machine code for some threads.
    pub fn new(object: Object, threads: Option<NonZeroUsize>) -> Self {
        Self { object: Arc::new(object), threads, idle: Arc::new(Idle::new()) }
    }

    /// The code.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Takes code that is loaded and not in use, or loads it. The plan is the one that was compiled
    /// together with the code, in all calls.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn take(&self, plan: &Plan) -> Result<Program, Failure> {
        let idle = self.idle.programs().and_then(|mut programs| programs.pop_back());
        match idle {
            Some((_, program)) => Ok(program),
            None => load(plan, &self.object, self.threads),
        }
    }

    /// Loads the code for so many of several devices, which share the threads.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn several(
        &self,
        plan: &Plan,
        devices: usize,
        here: usize,
    ) -> Result<Vec<Program>, Failure> {
        let own = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.threads.map_or(own, NonZeroUsize::get) / devices.max(1);
        let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        (0..here).map(|_| load(plan, &self.object, Some(threads))).collect()
    }

    /// Keeps loaded code for the next run, without its memory. The code that was not used for the
    /// longest time makes room.
    pub fn keep(&self, mut program: Program) {
        program.free();
        let Some(mut programs) = self.idle.programs() else { return };
        programs.push_back((std::process::id(), program));
        let oldest = if programs.len() > MOST_IDLE { programs.pop_front() } else { None };
        drop(programs);
        drop(oldest);
    }

    /// Ends the threads of loaded code that no run uses.
    pub fn release(&self) {
        let programs = self.idle.programs().map(|mut programs| std::mem::take(&mut *programs));
        drop(programs);
    }
}

/// Loads the code of a plan for some threads.
fn load(plan: &Plan, object: &Object, threads: Option<NonZeroUsize>) -> Result<Program, Failure> {
    let code = load_object::load(object).map_err(Failure::internal)?;
    Program::new(plan, Arc::new(code), threads).map_err(|error| match error {
        // One compile made the code and the plan.
        CpuError::Code { .. } => Failure::internal(error),
        error => Failure::user(error),
    })
}

/// The device, for messages.
pub fn label(program: &Program) -> String {
    match program.threads() {
        1 => "processor, 1 thread".to_owned(),
        threads => format!("processor, {threads} threads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::level::Level;

    /// A plan with its machine code.
    fn pairs() -> (Plan, Object) {
        let text = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
                    fn f -> A [1..N-2] = A[-1] + A[1]\nsteps 9\n";
        let arch = Some(stencil_passes::target::NATIVE.to_owned());
        let session = Session::new(Options { arch, ..Options::default() });
        let levels = [Level::Plan, Level::Llvm];
        let source = Source::new("pairs.stencil", text);
        let compiled = session.compile(&source, &levels, Control::default()).unwrap();
        (compiled.plan().unwrap().clone(), compiled.object().unwrap().clone())
    }

    #[test]
    fn loaded_code_is_kept_up_to_a_limit() {
        let (plan, object) = pairs();
        let (plan, object) = (&plan, &object);
        let machine = Machine::new(object.clone(), NonZeroUsize::new(1));
        let kept = || machine.idle.programs().unwrap().len();
        let (one, other) = (machine.take(plan).unwrap(), machine.take(plan).unwrap());
        machine.keep(one);
        machine.clone().keep(other);
        assert_eq!(kept(), 2);
        let again = machine.take(plan).unwrap();
        assert_eq!(kept(), 1);
        for _ in 0..MOST_IDLE {
            machine.keep(load(plan, object, NonZeroUsize::new(1)).unwrap());
        }
        assert_eq!(kept(), MOST_IDLE);
        machine.keep(again);
        machine.release();
        assert_eq!(kept(), 0);
    }

    #[test]
    fn a_fork_takes_no_code_of_its_parent_and_waits_for_no_lock() {
        let (plan, object) = pairs();
        let threads = NonZeroUsize::new(1);
        let process = std::process::id() + 1;
        let idle = Idle { programs: Mutex::default(), process };
        let machine = Machine { object: Arc::new(object.clone()), threads, idle: Arc::new(idle) };
        let program = load(&plan, &object, threads).unwrap();
        machine.idle.programs.lock().unwrap().push_back((process, program));
        let held = machine.idle.programs.lock().unwrap();
        machine.keep(machine.take(&plan).unwrap());
        assert_eq!(held.len(), 1);
        drop(held);
        assert_eq!(machine.idle.programs().unwrap().len(), 0);
        machine.keep(machine.take(&plan).unwrap());
        assert_eq!(machine.idle.programs().unwrap().len(), 1);
    }

    #[test]
    fn code_runs_with_its_own_plan_alone() {
        let (plan, object) = pairs();
        let (plan, object) = (&plan, &object);
        // Assembly takes as long again, and nobody asked for it.
        assert!(object.assembly().is_empty());
        let mut measured = plan.clone();
        measured.settings.fingerprint = "of a measurement".to_owned();
        for own in [plan, &measured] {
            assert!(load(own, object, NonZeroUsize::new(1)).is_ok());
        }
        let mut memory = plan.clone();
        memory.kernels[0].dynamic_shared += 64;
        let mut kernels = plan.clone();
        kernels.kernels.push(plan.kernels[0].clone());
        for other in [memory, kernels] {
            let message = load(&other, object, None).unwrap_err().to_string();
            assert!(message.contains("the code does not fit the plan of pairs"), "{message}");
        }
    }
}
