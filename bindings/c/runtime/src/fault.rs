//! What a function tells C: a status code, and a message that the thread keeps.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use stencil_runtime::array::ArrayError;
use stencil_runtime::bind::BindError;
use stencil_runtime::cuda::CudaError;
use stencil_runtime::execute::ExecuteError;
use stencil_runtime::host::{Blame, HostError};

/// What became of a call. Every function that can fail returns one.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call did its work.
    Ok = 0,
    /// An argument is null, not aligned, out of range or no UTF-8, or fits no field.
    Argument = 1,
    /// A handle is none of a live object of this kind: it was freed, or never made here.
    Handle = 2,
    /// Another thread is using the run.
    Busy = 3,
    /// The plan or its code can't be read.
    Plan = 4,
    /// The program or an option of its compile is wrong.
    Compile = 5,
    /// Sizes, scalars, steps or shapes are missing or contradict each other.
    Sizes = 6,
    /// There is no CUDA driver or no such device.
    NoDevice = 7,
    /// The device failed.
    Device = 8,
    /// The machine or the device has too little memory.
    Memory = 9,
    /// The run was cancelled.
    Cancelled = 10,
    /// There is no such result: the run is not done, or has no such reduction.
    NoResult = 11,
    /// The library is wrong. Please report it.
    Internal = 12,
}

impl Status {
    /// All of them, in order.
    ///
    /// cbindgen:ignore
    pub const ALL: [Self; 13] = [
        Self::Ok,
        Self::Argument,
        Self::Handle,
        Self::Busy,
        Self::Plan,
        Self::Compile,
        Self::Sizes,
        Self::NoDevice,
        Self::Device,
        Self::Memory,
        Self::Cancelled,
        Self::NoResult,
        Self::Internal,
    ];
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its code.
    pub status: Status,
    /// Its message.
    pub message: String,
}

impl Fault {
    /// A fault with a message.
    pub fn new(status: Status, message: impl Display) -> Self {
        Self { status, message: message.to_string() }
    }

    /// A wrong argument.
    pub fn argument(message: impl Display) -> Self {
        Self::new(Status::Argument, message)
    }
}

impl From<CudaError> for Fault {
    fn from(error: CudaError) -> Self {
        let status = match error {
            CudaError::NoDriver | CudaError::NoDevice { .. } | CudaError::OldDriver { .. } => {
                Status::NoDevice
            }
            CudaError::OutOfMemory { .. } => Status::Memory,
            CudaError::Code { .. } | CudaError::Mismatch { .. } => Status::Plan,
            CudaError::Lent { .. } => Status::Argument,
            _ => Status::Device,
        };
        Self::new(status, error)
    }
}

impl From<ArrayError> for Fault {
    fn from(error: ArrayError) -> Self {
        let status = match error {
            _ if error.lacks_memory() => Status::Memory,
            _ => Status::Argument,
        };
        Self::new(status, error)
    }
}

/// The remedies are functions of this interface.
impl From<BindError> for Fault {
    fn from(error: BindError) -> Self {
        let message = match &error {
            BindError::MissingSize { names, .. } => format!(
                "the size {} has no value; set it by stencil_run_size, or bind a field whose shape \
                 tells it",
                names.join(", ")
            ),
            BindError::MissingScalar(name) => {
                format!("the scalar `{name}` has no value; set it by stencil_run_scalar")
            }
            BindError::Steps(steps) => format!("{steps} steps can't be run"),
            BindError::FirstStep(step) => format!("a run can't begin at step {step}"),
            other => other.to_string(),
        };
        Self::new(Status::Sizes, message)
    }
}

impl From<ExecuteError> for Fault {
    fn from(error: ExecuteError) -> Self {
        match error {
            error if error.lacks_memory() => Self::new(Status::Memory, error),
            ExecuteError::MissingInput(field) => {
                Self::argument(format!("field `{field}` has no data; bind it by stencil_run_bind"))
            }
            ExecuteError::Array(error) => error.into(),
            ExecuteError::Cancelled(_) => Self::new(Status::Cancelled, error),
            ExecuteError::Target(error) => match error.downcast::<CudaError>() {
                Ok(error) => (*error).into(),
                Err(error) => Self::new(Status::Device, error),
            },
            ExecuteError::Launch(error) => Self::new(Status::Sizes, error),
            ExecuteError::Stuck(_) => Self::new(Status::Internal, error),
            error => Self::argument(error),
        }
    }
}

impl From<HostError> for Fault {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Argument(text) => Self::argument(text),
            HostError::Bind(error) => (*error).into(),
            HostError::Execute(error) => (*error).into(),
            HostError::Array(error) => error.into(),
            HostError::Cuda(error) => (*error).into(),
            HostError::Engine { blame, text } => {
                let status = match blame {
                    Blame::Input => Status::Sizes,
                    Blame::Device => Status::Device,
                    Blame::Cancelled => Status::Cancelled,
                    Blame::Memory => Status::Memory,
                    Blame::Internal => Status::Internal,
                };
                Self::new(status, text)
            }
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The message of this thread's last call that failed.
pub fn message() -> String {
    MESSAGE.try_with(|message| message.borrow().clone()).unwrap_or_default()
}

/// Does the work of a function: no panic leaves it, and a fault becomes its status and the thread's
/// message.
pub fn guarded(work: impl FnOnce() -> Result<(), Fault>) -> Status {
    let ended = catch_unwind(AssertUnwindSafe(work));
    let fault = match ended {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(fault)) => fault,
        Err(panic) => Fault::new(Status::Internal, told(&*panic)),
    };
    // A thread at its end has no message any more.
    let _ = MESSAGE.try_with(|message| message.replace(fault.message));
    fault.status
}

fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("internal fault: {text}; please report it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_runtime::array::{Array, Element};
    use stencil_runtime::cpu::CpuError;
    use stencil_runtime::memory::TooLittleMemory;
    use stencil_runtime::watch::Stuck;

    #[test]
    fn a_wait_that_does_not_end_is_a_fault_of_the_compiler() {
        let buffer = "flags of f".to_owned();
        let stuck = Stuck { buffer, block: 2, flag: 1, wanted: 9, found: Some(5) };
        assert_eq!(guarded(|| Err(ExecuteError::Stuck(stuck).into())), Status::Internal);
        assert!(message().starts_with("block 2 waited in vain for flag 1 of `flags of f`"));
    }

    #[test]
    fn too_little_memory_has_a_status_of_its_own() {
        let device = "device".to_owned();
        let device = CudaError::OutOfMemory { device, wanted: 2, free: 1, total: 1 };
        let array = Array::zeros(Element::F64, &[1 << 40, 1 << 40]).unwrap_err();
        let text = "the run needs more".to_owned();
        let processor = CpuError::from(TooLittleMemory { needed: 2, free: 1 });
        for fault in [
            ExecuteError::Target(device.into()).into(),
            ExecuteError::Target(processor.into()).into(),
            ExecuteError::from(array).into(),
            HostError::Engine { blame: Blame::Memory, text }.into(),
        ] {
            let Fault { status, message } = fault;
            assert_eq!(status, Status::Memory, "{message}");
        }
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        assert_eq!(guarded(|| panic!("planned")), Status::Internal);
        assert_eq!(message(), "internal fault: planned; please report it");
        assert_eq!(guarded(|| Err(Fault::argument("wrong"))), Status::Argument);
        assert_eq!(guarded(|| Ok(())), Status::Ok);
        assert_eq!(message(), "wrong");
        assert_eq!(std::thread::spawn(message).join().ok().as_deref(), Some(""));
    }
}
