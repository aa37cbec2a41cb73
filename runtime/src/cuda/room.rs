//! Whether a device has room for the memory of a program.

use super::error::CudaError;
use super::program::Program;

impl Program {
    /// Refuses a run that needs more bytes than are free; else gives the error of one for which
    /// they turn out to be too few.
    pub(super) fn require(&self, wanted: u64) -> Result<CudaError, CudaError> {
        let (free, total) = self.stream.device().memory()?;
        let device = self.stream.device().label().to_owned();
        let error = CudaError::OutOfMemory { device, wanted, free, total };
        if wanted > free { Err(error) } else { Ok(error) }
    }
}
