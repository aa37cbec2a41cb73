//! The target of a compile: a device and the arithmetic that may be used. It stands in the module
//! as `stencil.target`, and every pass reads it here.

use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::stencil;
use stencil_runtime::device::{self, Device};

/// A target.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The architecture, such as `sm_90`.
    pub arch: String,
    /// What is known of the device.
    pub device: &'static Device,
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
        Self { arch: arch.to_owned(), device: device::for_arch(arch), arithmetic }
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
            return Err(Error::user(format!(
                "the device {name} is {} and the architecture is {arch}; leave one of them out",
                device.target
            )));
        }
        Ok(Self { arch: arch.to_owned(), device, arithmetic })
    }

    /// The target that a module records; without a record the best described device, with no
    /// freedom in arithmetic.
    ///
    /// # Errors
    /// A malformed record.
    pub fn of(module: &Module) -> Result<Self, Error> {
        let Some(found) = stencil::Target::get(module)? else {
            return Ok(Self::new(device::BEST_DESCRIBED.target, Arithmetic::default()));
        };
        let device = device::device_named(&found.device);
        Ok(Self {
            device: device.unwrap_or_else(|| device::for_arch(&found.arch)),
            arch: found.arch,
            arithmetic: Arithmetic { contract: found.contract, fast_math: found.fast_math },
        })
    }

    /// The record of a module.
    pub fn record(&self) -> stencil::Target {
        stencil::Target {
            arch: self.arch.clone(),
            device: self.device.name.to_owned(),
            contract: self.arithmetic.contract,
            fast_math: self.arithmetic.fast_math,
        }
    }
}
