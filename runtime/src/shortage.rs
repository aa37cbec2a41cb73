//! Which failures of a run mean that there is too little memory, on this machine or on a device.

use crate::execute::{ExecuteError, TargetError};

impl ExecuteError {
    /// Whether the machine or the device has too little memory for the run.
    pub fn lacks_memory(&self) -> bool {
        match self {
            Self::Array(error) => error.lacks_memory(),
            Self::Target(error) => on_device(error) || on_processor(error),
            _ => false,
        }
    }
}

#[cfg(feature = "cuda")]
fn on_device(error: &TargetError) -> bool {
    matches!(
        error.downcast_ref(),
        Some(
            crate::cuda::CudaError::OutOfMemory { .. }
                | crate::cuda::CudaError::OutOfHostMemory { .. }
        )
    )
}

#[cfg(not(feature = "cuda"))]
fn on_device(_: &TargetError) -> bool {
    false
}

#[cfg(feature = "processor")]
fn on_processor(error: &TargetError) -> bool {
    error.downcast_ref().is_some_and(crate::cpu::CpuError::lacks_memory)
}

#[cfg(not(feature = "processor"))]
fn on_processor(_: &TargetError) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Element};

    #[test]
    fn a_failed_run_tells_whether_it_lacks_memory() {
        let array = |shape: &[usize]| Array::zeros(Element::F64, shape).unwrap_err();
        assert!(ExecuteError::from(array(&[1 << 40, 1 << 40])).lacks_memory());
        assert!(!ExecuteError::MissingInput("A".to_owned()).lacks_memory());
        #[cfg(feature = "processor")]
        {
            let refused = crate::memory::TooLittleMemory { needed: 2, free: 1 };
            let target = ExecuteError::Target(crate::cpu::CpuError::from(refused).into());
            assert!(target.lacks_memory());
        }
    }
}
