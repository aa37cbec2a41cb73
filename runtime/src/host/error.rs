//! Why a run on memory of the caller failed.

use crate::array::ArrayError;
use crate::bind::BindError;
use crate::cuda::CudaError;
use crate::execute::ExecuteError;
use thiserror::Error;

/// Whose fault the failure of an engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The inputs are wrong.
    Input,
    /// There is no such device, or it failed.
    Device,
    /// The caller has ended the work.
    Cancelled,
    /// The machine or the device has too little memory.
    Memory,
    /// The engine is wrong.
    Internal,
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum HostError {
    /// Memory that does not fit its field.
    #[error("{0}")]
    Argument(String),
    /// Sizes, scalars or steps that are missing or wrong.
    #[error(transparent)]
    Bind(Box<BindError>),
    /// The run itself failed.
    #[error(transparent)]
    Execute(Box<ExecuteError>),
    /// An array can't be made.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The device failed.
    #[error(transparent)]
    Cuda(Box<CudaError>),
    /// An engine failed.
    #[error("{text}")]
    Engine {
        /// Whose fault it is.
        blame: Blame,
        /// Why.
        text: String,
    },
}

impl From<BindError> for HostError {
    fn from(error: BindError) -> Self {
        Self::Bind(error.into())
    }
}

impl From<ExecuteError> for HostError {
    fn from(error: ExecuteError) -> Self {
        Self::Execute(error.into())
    }
}

impl From<CudaError> for HostError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error.into())
    }
}
