//! What a pass works on: a module, its program, and the device that it is compiled for.

use crate::target::Target;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_runtime::device::Device;
use stencil_runtime::model;
use stencil_runtime::processor::Processor;
use stencil_runtime::ranks::Devices;

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
    /// The devices that share the tiles of a launch; one unless `choose-schedule` was told more.
    pub devices: Devices,
}

impl<'c, 'p> Subject<'c, 'p> {
    /// A module with its program, for the device that the module records.
    ///
    /// # Errors
    /// A malformed record.
    pub fn of(module: &'p Module<'c>, program: &'p Program<'c>) -> Result<Self, Error> {
        let Target { device, processor, .. } = Target::of(module)?;
        Ok(Self { module, program, device, processor, devices: shared_by(module)? })
    }

    /// The fewest rows of tiles of a device with which launches overlap: on several devices each
    /// part of a device has one. `star3d1r` in f32 on two H200, with 512^3 cells each, ran at 2,370
    /// GCells/s with 4 rows, and at 2,090 with 3.
    pub fn rows_that_overlap(&self) -> f64 {
        if self.devices.count() > 1 { Devices::PARTS as f64 } else { model::BANDS }
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

/// The devices that share the tiles of a module's launches, such as `"4"` or `"2x2"`.
const DEVICES: &str = "stencil.devices";

/// Notes how many devices share the tiles of a module's launches.
pub fn set_shared_by<'c>(context: &'c Context, module: &Module<'c>, devices: Devices) {
    let text = attribute::string(context, &devices.to_string());
    mlir::set_attribute(mlir::module_op(module), DEVICES, text);
}

/// The devices that share the tiles of a module's launches; one unless more are noted.
///
/// # Errors
/// An attribute of another form.
pub fn shared_by(module: &Module) -> Result<Devices, Error> {
    let op = mlir::module_op(module);
    let Some(found) = mlir::attribute(op, DEVICES) else { return Ok(Devices::along(1)) };
    let text = attribute::as_string(found);
    let devices = text.and_then(|text| text.parse().ok());
    devices.ok_or_else(|| {
        Error::new(
            mlir::place(op.location()),
            format!("{DEVICES} is a number of devices, such as \"4\" or \"2x2\""),
        )
    })
}
