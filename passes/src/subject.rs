//! What a pass works on: a module, its program, and the device that it is compiled for.

use crate::target::Target;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_runtime::device::Device;
use stencil_runtime::processor::Processor;

/// Bytes of a vector that all processors have.
const LEAST_VECTOR: u32 = 16;

/// Registers for vectors that all processors have.
const LEAST_REGISTERS: usize = 16;

/// A module with its program and its device.
#[derive(Clone, Copy)]
pub struct Subject<'c, 'p> {
    /// The module.
    pub module: &'p Module<'c>,
    /// Its declarations and applies.
    pub program: &'p Program<'c>,
    /// The device.
    pub device: &'static Device,
    /// The processor, where code is for one and not for a GPU.
    pub processor: Option<Processor>,
}

impl<'c, 'p> Subject<'c, 'p> {
    /// A module with its program, for the device that the module records.
    ///
    /// # Errors
    /// A malformed record.
    pub fn of(module: &'p Module<'c>, program: &'p Program<'c>) -> Result<Self, Error> {
        let Target { device, processor, .. } = Target::of(module)?;
        Ok(Self { module, program, device, processor })
    }

    /// Bytes of the widest vectors of the processor.
    pub fn vector_bytes(&self) -> u32 {
        self.processor.map_or(LEAST_VECTOR, |processor| processor.vector)
    }

    /// Registers of the processor for vectors.
    pub fn vector_registers(&self) -> usize {
        self.processor.map_or(LEAST_REGISTERS, |processor| processor.registers())
    }
}
