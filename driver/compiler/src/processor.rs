//! The processor of this machine as a target: when it is the usual one, and how code is loaded for
//! it.

use crate::executable::{Executable, Target};
use crate::failure::Failure;
use crate::nest;
use crate::session::{Options, Session};
use crate::stages;
use std::num::NonZeroUsize;
use std::sync::Arc;
use stencil_frontend::source::Source;
use stencil_passes::llvm::emit_object::Object;
use stencil_passes::llvm::load_object;
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

/// Loads the code of a plan for some threads.
///
/// # Errors
/// When the system gives no threads.
pub fn load(
    plan: &Plan,
    object: &Object,
    threads: Option<NonZeroUsize>,
) -> Result<Program, Failure> {
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
