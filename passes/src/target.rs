//! The target of a compile: a device and the arithmetic that may be used. It stands in the module
//! as `stencil.target`, and every pass reads it here.

use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::{mlir, stencil};
use stencil_runtime::device::{self, Device};
use stencil_runtime::processor::Processor;

/// The architecture of the processor that the compiler runs on.
pub const NATIVE: &str = "native";

/// A target.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The architecture, such as `sm_90`.
    pub arch: String,
    /// What is known of the device; the least of any where code is for a processor.
    pub device: &'static Device,
    /// The processor, where code is for one and not for a GPU.
    pub processor: Option<Processor>,
    /// How operations may be rounded and rewritten.
    pub arithmetic: Arithmetic,
}

/// The freedom that a compile has in arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// Whether `a * b + c` may be rounded once.
    pub contract: bool,
    /// Whether re-association, reciprocals and approximations are allowed.
    pub fast_math: bool,
}

impl Target {
    /// The target of an architecture's usual device.
    pub fn new(arch: &str, arithmetic: Arithmetic) -> Self {
        Self { arch: arch.to_owned(), device: device::for_arch(arch), processor: None, arithmetic }
    }

    /// The target of a processor, by LLVM's name for it, or [`NATIVE`].
    pub fn processor(arch: &str, processor: Processor, arithmetic: Arithmetic) -> Self {
        let (arch, processor) = (arch.to_owned(), Some(processor));
        Self { arch, device: &device::LEAST, processor, arithmetic }
    }

    /// The target of an architecture, of a device by its name, or of both; of neither, the best
    /// described device.
    ///
    /// # Errors
    /// A device that is not described, or that does not run code for the architecture.
    pub fn named(
        arch: Option<&str>,
        device: Option<&str>,
        arithmetic: Arithmetic,
    ) -> Result<Self, Error> {
        let Some(name) = device else {
            return Ok(Self::new(arch.unwrap_or(device::BEST_DESCRIBED.target), arithmetic));
        };
        let device = device::described(name).map_err(|unknown| Error::user(unknown.to_string()))?;
        let arch = arch.unwrap_or(device.target);
        if !device.runs(arch) {
            let remedy = "leave one of them out";
            return Err(Error::user(contradiction(name, device, arch, remedy)));
        }
        Ok(Self { arch: arch.to_owned(), device, processor: None, arithmetic })
    }

    /// The target that a module records; without a record the best described device, with no
    /// freedom in arithmetic.
    ///
    /// # Errors
    /// A malformed record, a device that is not described, and one that does not run code for the
    /// architecture. An architecture that is not described has a device of its own (`sm_87`).
    pub fn of(module: &Module) -> Result<Self, Error> {
        let Some(found) = stencil::Target::get(module)? else {
            return Ok(Self::new(device::BEST_DESCRIBED.target, Arithmetic::default()));
        };
        let refuse = |message: String| {
            let place = mlir::place(mlir::module_op(module).location());
            Error::new(place, format!("stencil.target: {message}"))
        };
        let (arch, name) = (found.arch, found.device);
        let (contract, fast_math) = (found.contract, found.fast_math);
        let arithmetic = Arithmetic { contract, fast_math };
        if !stencil::is_gpu(&arch) {
            return Ok(Self::processor(&arch, name.parse().map_err(refuse)?, arithmetic));
        }
        let usual = device::for_arch(&arch);
        let device = match name == usual.name {
            true => usual,
            false => device::described(&name).map_err(|unknown| refuse(unknown.to_string()))?,
        };
        if device != usual && !device.runs(&arch) {
            let remedy = "change one of them";
            return Err(refuse(contradiction(&name, device, &arch, remedy)));
        }
        Ok(Self { arch, device, processor: None, arithmetic })
    }

    /// The record of a module.
    pub fn record(&self) -> stencil::Target {
        stencil::Target {
            arch: self.arch.clone(),
            device: match self.processor {
                Some(processor) => processor.to_string(),
                None => self.device.name.to_owned(),
            },
            contract: self.arithmetic.contract,
            fast_math: self.arithmetic.fast_math,
        }
    }
}

fn contradiction(name: &str, device: &Device, arch: &str, remedy: &str) -> String {
    let own = device.target;
    format!("the device {name} is {own} and the architecture is {arch}; {remedy}")
}
