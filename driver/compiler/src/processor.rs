//! The processor of this machine as a target: when it is the usual one, and how code is loaded for
//! it and kept.

use crate::executable::{Executable, Target};
use crate::failure::Failure;
use crate::nest;
use crate::session::{Options, Session};
use crate::stages;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stencil_dialects::error::Error;
use stencil_frontend::source::Source;
use stencil_passes::llvm::emit_object::Object;
use stencil_passes::llvm::load_object;
use stencil_passes::schedule::choice;
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

    /// Finds options that are wrong for any program. A compile finds the others.
    ///
    /// # Errors
    /// The first one, with the remedy.
    pub fn check_options(&self, target: Target) -> Result<(), Failure> {
        self.options.target()?;
        self.check_target(target)?;
        let wrong = |error: Error| Failure::user(error.message);
        let choice = &self.options.config.choice;
        choice::check(choice).map_err(wrong)?;
        let Some(name) = &choice.strategy else { return Ok(()) };
        let strategy = strategies::named(name).map_err(wrong)?;
        let is_processor = matches!(target, Target::Cpu { .. });
        if target == Target::Reference || strategy.is_for_processors() == is_processor {
            return Ok(());
        }
        let [own, other] = match is_processor {
            true => ["GPUs", "processors"],
            false => ["processors", "GPUs"],
        };
        let others = strategies::names("or", |other| other.is_for_processors() == is_processor);
        Err(Failure::user(format!(
            "the strategy {name} is for {own}, and the target for {other}; choose {others}"
        )))
    }

    /// The same with other [`Options::symbol_end`].
    pub fn with_symbol_end(mut self, end: String) -> Self {
        self.options.symbol_end = end;
        self
    }

    /// The executable of an earlier compile, from its plan and its machine code.
    ///
    /// # Errors
    /// The source's faults.
    pub fn kept_executable(
        &self,
        source: &Source,
        plan: Plan,
        object: Object,
        threads: Option<NonZeroUsize>,
    ) -> Result<Executable, Failure> {
        Executable::kept(self, source, plan, object, threads)
    }
}

/// Whether options describe code that a processor can't run.
fn is_for_gpus(options: &Options) -> bool {
    let Options { arch, device, passes, config, .. } = options;
    let strategy = config.choice.strategy.as_deref().map(strategies::named);
    let gpu = strategy.is_some_and(|named| named.is_ok_and(|found| !found.is_for_processors()));
    let cells = config.choice.per_thread.is_some();
    arch.is_some() || device.is_some() || passes.is_some() || cells || gpu
}

/// Machine code of a program, for some threads; none for as many as the machine runs at once.
#[derive(Clone, Debug)]
pub struct Machine {
    object: Arc<Object>,
    threads: Option<NonZeroUsize>,
    idle: Arc<Mutex<Idle>>,
}

/// Code that is loaded and not in use, with its threads. To load code and to start threads takes
/// far longer than a run of a small program.
#[derive(Debug, Default)]
struct Idle {
    programs: Vec<Program>,
    /// The process that has the threads; a fork of it has none.
    process: u32,
}

impl Machine {
    /// Machine code for some threads.
    pub fn new(object: Object, threads: Option<NonZeroUsize>) -> Self {
        Self { object: Arc::new(object), threads, idle: Arc::default() }
    }

    /// The code.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Takes code that is loaded and not in use, or loads it.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn take(&self, plan: &Plan) -> Result<Program, Failure> {
        let mut idle = self.idle();
        if idle.process != std::process::id() {
            // An end of threads that are not there would be waited for.
            std::mem::take(&mut idle.programs).into_iter().for_each(std::mem::forget);
        }
        if let Some(program) = idle.programs.pop() {
            return Ok(program);
        }
        drop(idle);
        let code = load_object::load(&self.object).map_err(Failure::internal)?;
        Program::new(plan, Arc::new(code), self.threads).map_err(|error| match error {
            // One compile made the code and the plan.
            CpuError::Code { .. } => Failure::internal(error),
            error => Failure::user(error),
        })
    }

    /// Keeps loaded code for the next run. Its buffers are freed.
    pub fn keep(&self, mut program: Program) {
        program.free();
        let mut idle = self.idle();
        idle.process = std::process::id();
        idle.programs.push(program);
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    #[test]
    fn code_runs_with_its_own_plan_alone() {
        let text = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
                    fn f -> A [1..N-2] = A[-1] + A[1]\nsteps 9\n";
        let source = Source::new("pairs.stencil", text);
        let arch = Some(stencil_passes::target::NATIVE.to_owned());
        let session = Session::new(Options { arch, ..Options::default() });
        let levels = [Level::Plan, Level::Llvm];
        let compiled = session.compile(&source, &levels, Control::default()).unwrap();
        let (plan, object) = (compiled.plan().unwrap(), compiled.object().unwrap());
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
