//! The code of a plan, loaded on a device.

use super::buffer::Buffer;
use super::device::Device;
use super::error::CudaError;
use super::kernel::{Kernel, check_parameters};
use super::module::{Module, Variable};
use super::null::Null;
use super::program::Program;
use super::stream::{LentStream, Stream};
use crate::bind;
use crate::plan::{Node, Plan};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The code of a plan, loaded on a device. Clones are the same code.
#[derive(Clone, Debug)]
pub struct Code {
    device: Arc<Device>,
    pub(super) kernels: Arc<[Kernel]>,
    pub(super) null: Option<Arc<Null>>,
    pub(super) name: Arc<str>,
    /// The memory of buffers in constant memory, by their places in the plan.
    variables: Arc<BTreeMap<usize, Variable>>,
    /// What loads it once more, where there are such buffers.
    source: Option<Arc<(Plan, Vec<u8>)>>,
    /// The program that has these variables.
    user: Arc<Mutex<Weak<()>>>,
}

/// The constant memory of a program, which it has to itself. Its kernels' module owns it.
#[derive(Debug)]
pub(super) struct Constants {
    variables: Arc<BTreeMap<usize, Variable>>,
    _user: Arc<()>,
}

impl Constants {
    /// The memory of a buffer, by its place in the plan, if it lies there.
    pub fn buffer(
        &self,
        place: usize,
        buffer: &bind::Buffer,
        stream: &Arc<Stream>,
    ) -> Option<Result<Buffer, String>> {
        let variable = self.variables.get(&place)?;
        let (name, found, wanted) = (&buffer.name, variable.bytes, buffer.bytes());
        Some(match found == wanted {
            true => Ok(Buffer::variable(stream, variable)),
            false => Err(format!("`{name}` has {wanted} bytes, its variable {found}")),
        })
    }
}

impl Code {
    /// Loads PTX text or a cubin.
    pub(super) fn load(device: &Arc<Device>, plan: &Plan, code: &[u8]) -> Result<Self, CudaError> {
        let module = Module::new(device, plan, code)?;
        check_parameters(plan, code)?;
        let variables = variables(plan, &module)?;
        let kernels = plan.kernels.iter().map(|kernel| Kernel::new(plan, kernel, &module));
        let chooses = plan.nodes().into_iter().any(|node| matches!(node, Node::Choose(_)));
        Ok(Self {
            device: Arc::clone(device),
            kernels: kernels.collect::<Result<_, _>>()?,
            null: if chooses { Null::new(device, plan)?.map(Arc::new) } else { None },
            name: plan.program.as_str().into(),
            source: (!variables.is_empty()).then(|| Arc::new((plan.clone(), code.to_vec()))),
            variables: Arc::new(variables),
            user: Arc::default(),
        })
    }

    /// The code for a program of its own. Programs run side by side, and each has its own constant
    /// memory: where another one has that of this code, the code is loaded once more.
    fn for_program(&self) -> Result<(Self, Constants), CudaError> {
        let program = Arc::new(());
        let mut code = self.clone();
        if let Some(source) = &self.source {
            let mut user = self.user.lock().unwrap_or_else(PoisonError::into_inner);
            if user.strong_count() == 0 {
                *user = Arc::downgrade(&program);
            } else {
                code = Self::load(&self.device, &source.0, &source.1)?;
            }
        }
        let constants = Constants { variables: Arc::clone(&code.variables), _user: program };
        Ok((code, constants))
    }

    /// A program that works in a stream of its own.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn program(&self) -> Result<Program, CudaError> {
        let (code, constants) = self.for_program()?;
        Program::new(&code, constants, Stream::new(&self.device)?)
    }

    /// A program that works in a stream of the caller, behind the work that it has.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn program_on(&self, stream: LentStream) -> Result<Program, CudaError> {
        let (code, constants) = self.for_program()?;
        Program::new(&code, constants, Stream::lent(&self.device, stream))
    }
}

/// The variables that are memory of buffers, by the buffers' places. The context must be current.
fn variables(plan: &Plan, module: &Module) -> Result<BTreeMap<usize, Variable>, CudaError> {
    let mut found = BTreeMap::new();
    for (place, buffer) in plan.buffers.iter().enumerate() {
        let Some(name) = &buffer.constant else { continue };
        let mismatch =
            |message: String| CudaError::Mismatch { program: plan.program.clone(), message };
        let text = CString::new(name.as_str()).map_err(|error| mismatch(error.to_string()))?;
        let variable = module.variable(&text)?;
        let missing = || mismatch(format!("it has no variable `{name}`"));
        found.insert(place, variable.ok_or_else(missing)?);
    }
    Ok(found)
}
