//! The processor of this machine as a target: when it is the usual one, and how code is loaded for
//! it and kept.

use crate::executable::{Executable, Target};
use crate::failure::Failure;
use crate::nest;
use crate::session::{Options, Session};
use crate::stages;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Choice, Region};
use stencil_frontend::source::Source;
use stencil_passes::llvm::emit_object::Object;
use stencil_passes::llvm::load_object;
use stencil_passes::pipeline::{Config, RecordLayout};
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

    /// Finds options that are wrong whatever a program computes on grids of these dimensions; none
    /// where they are not known yet. A compile finds the others.
    ///
    /// # Errors
    /// The first one, with the remedy.
    pub fn check_options(&self, target: Target, ranks: &[usize]) -> Result<(), Failure> {
        self.options.target()?;
        self.check_target(target)?;
        let wrong = |error: Error| Failure::user(error.message);
        let choice = &self.options.config.choice;
        choice::check(choice).map_err(wrong)?;
        check_ranks(choice, ranks)?;
        if let Some(region) = &choice.region {
            Region::parse(region).map_err(wrong)?;
        }
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

/// Refuses shapes of tiles that no grid has the dimensions for, and such a strategy.
fn check_ranks(choice: &Choice, ranks: &[usize]) -> Result<(), Failure> {
    let (Some(rank), Choice { tile, per_thread, strategy, .. }) = (ranks.first(), choice) else {
        return Ok(());
    };
    // One number of cells per thread is for the dimension that a strategy widens.
    let per_thread = per_thread.as_ref().filter(|shape| shape.len() > 1);
    for (name, shape) in [("tile", tile.as_ref()), ("per-thread", per_thread)] {
        let Some(shape) = shape.filter(|shape| !ranks.contains(&shape.len())) else { continue };
        let ends = |count: usize| if count == 1 { "" } else { "s" };
        let count = shape.len();
        return Err(Failure::user(format!(
            "{name} has {count} number{}, and the grid has {rank} dimension{}; give one per \
             dimension",
            ends(count),
            ends(*rank)
        )));
    }
    let Some(name) = strategy else { return Ok(()) };
    let takes = |rank: &usize| strategies::for_rank(name, *rank).map(drop);
    match ranks.iter().any(|rank| takes(rank).is_ok()) {
        true => Ok(()),
        false => takes(rank).map_err(|error| Failure::user(error.message)),
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
    own: Arc<Own>,
}

/// The number of some machine code. At its end, no loaded code of it is kept.
#[derive(Debug)]
struct Own(u64);

impl Drop for Own {
    fn drop(&mut self) {
        let mut idle = idle();
        let all = std::mem::take(&mut idle.programs);
        let (others, gone) = all.into_iter().partition(|(number, _)| *number != self.0);
        idle.programs = others;
        drop(idle);
        let gone: VecDeque<_> = gone;
        drop(gone);
    }
}

/// Loaded code of this process that is not in use, with its threads, by the numbers of machine
/// code; the last used comes last. To load code and to start threads takes far longer than a run of
/// a small program.
#[derive(Debug)]
struct Idle {
    programs: VecDeque<(u64, Program)>,
    /// The process that has the threads; a fork of it has none.
    process: u32,
}

/// Each kept program has threads of its own, which sleep.
const MOST_IDLE: usize = 8;

fn idle() -> MutexGuard<'static, Idle> {
    static IDLE: Mutex<Idle> = Mutex::new(Idle { programs: VecDeque::new(), process: 0 });
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if idle.process != std::process::id() {
        // An end of threads that are not there would be waited for.
        std::mem::take(&mut idle.programs).into_iter().for_each(std::mem::forget);
        idle.process = std::process::id();
    }
    idle
}

impl Machine {
    /// Machine code for some threads.
    pub fn new(object: Object, threads: Option<NonZeroUsize>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let own = Arc::new(Own(NEXT.fetch_add(1, Ordering::Relaxed)));
        Self { object: Arc::new(object), threads, own }
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
        let mut idle = idle();
        let place = idle.programs.iter().rposition(|(number, _)| *number == self.own.0);
        if let Some((_, program)) = place.and_then(|place| idle.programs.remove(place)) {
            return Ok(program);
        }
        drop(idle);
        load(plan, &self.object, self.threads)
    }

    /// Keeps loaded code for the next run, without its buffers. The code that was not used for the
    /// longest time makes room.
    pub fn keep(&self, mut program: Program) {
        program.free();
        let mut idle = idle();
        idle.programs.push_back((self.own.0, program));
        let oldest = (idle.programs.len() > MOST_IDLE).then(|| idle.programs.pop_front());
        drop(idle);
        drop(oldest);
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

    #[test]
    fn loaded_code_is_kept_as_long_as_its_program() {
        let text = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
                    fn f -> A [1..N-2] = A[-1] + A[1]\nsteps 9\n";
        let arch = Some(stencil_passes::target::NATIVE.to_owned());
        let session = Session::new(Options { arch, ..Options::default() });
        let source = Source::new("pairs.stencil", text);
        let levels = [Level::Plan, Level::Llvm];
        let compiled = session.compile(&source, &levels, Control::default()).unwrap();
        let (plan, object) = (compiled.plan().unwrap(), compiled.object().unwrap());
        let machine = Machine::new(object.clone(), NonZeroUsize::new(1));
        let number = machine.own.0;
        let kept = || idle().programs.iter().filter(|(own, _)| *own == number).count();
        let (one, other) = (machine.take(plan).unwrap(), machine.take(plan).unwrap());
        machine.keep(one);
        machine.clone().keep(other);
        assert_eq!(kept(), 2);
        let again = machine.take(plan).unwrap();
        assert_eq!(kept(), 1);
        for _ in 0..MOST_IDLE {
            machine.keep(load(plan, object, NonZeroUsize::new(1)).unwrap());
        }
        assert!(kept() > 1 && idle().programs.len() <= MOST_IDLE);
        drop((again, machine));
        assert_eq!(kept(), 0);
    }

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
