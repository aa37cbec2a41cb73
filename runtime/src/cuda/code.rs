//! The code of a plan, loaded on a device.

use super::device::Device;
use super::error::CudaError;
use super::kernel::{Kernel, check_parameters};
use super::module::Module;
use super::null::Null;
use super::program::Program;
use super::stream::{LentStream, Stream};
use crate::plan::{Node, Plan};
use std::sync::Arc;

/// The code of a plan, loaded on a device. Clones are the same code.
#[derive(Clone, Debug)]
pub struct Code {
    device: Arc<Device>,
    pub(super) kernels: Arc<[Kernel]>,
    pub(super) null: Option<Arc<Null>>,
    pub(super) name: Arc<str>,
}

impl Code {
    /// Loads PTX text or a cubin.
    pub(super) fn load(device: &Arc<Device>, plan: &Plan, code: &[u8]) -> Result<Self, CudaError> {
        let module = Module::new(device, plan, code)?;
        check_parameters(plan, code)?;
        let kernels = plan.kernels.iter().map(|kernel| Kernel::new(plan, kernel, &module));
        let chooses = plan.nodes().into_iter().any(|node| matches!(node, Node::Choose(_)));
        Ok(Self {
            device: Arc::clone(device),
            kernels: kernels.collect::<Result<_, _>>()?,
            null: if chooses { Null::new(device, plan)?.map(Arc::new) } else { None },
            name: plan.program.as_str().into(),
        })
    }

    /// A program that works in a stream of its own.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn program(&self) -> Result<Program, CudaError> {
        Program::new(self, Stream::new(&self.device)?)
    }

    /// A program that works in a stream of the caller, behind the work that it has.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn program_on(&self, stream: LentStream) -> Result<Program, CudaError> {
        Program::new(self, Stream::lent(&self.device, stream))
    }
}
