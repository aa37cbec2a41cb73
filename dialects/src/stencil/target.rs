//! `stencil.target`: the device and the arithmetic that a module is compiled for.

use crate::attribute::{self, entry};
use crate::error::Error;
use crate::mlir;
use melior::Context;
use melior::ir::attribute::DictionaryAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Module};

const TARGET: &str = "stencil.target";

/// A module's target: `{arch = "sm_90", device = "NVIDIA H200", contract = true, fast_math =
/// false}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The architecture: `sm_`, a number, and at most one letter.
    pub arch: String,
    /// The device's name.
    pub device: String,
    /// Whether a product and a sum may be rounded once.
    pub contract: bool,
    /// Whether every fast-math flag is allowed.
    pub fast_math: bool,
}

impl Target {
    /// Reads a module's target; none if it has none.
    ///
    /// # Errors
    /// The attribute's fault, at the module's place.
    pub fn get(module: &Module) -> Result<Option<Self>, Error> {
        let op = mlir::module_op(module);
        let Some(attribute) = mlir::attribute(op, TARGET) else { return Ok(None) };
        Self::read(attribute)
            .map(Some)
            .map_err(|fault| Error::new(mlir::place(op.location()), format!("{TARGET}: {fault}")))
    }

    /// Sets a module's target.
    pub fn set(&self, context: &Context, module: &Module) {
        let text = |text: &str| attribute::string(context, text);
        let entries = [
            ("arch", text(&self.arch)),
            ("device", text(&self.device)),
            ("contract", attribute::boolean(context, self.contract)),
            ("fast_math", attribute::boolean(context, self.fast_math)),
        ];
        mlir::set_attribute(
            mlir::module_op(module),
            TARGET,
            attribute::dictionary(context, &entries),
        );
    }

    fn read(target: Attribute) -> Result<Self, String> {
        let entries = DictionaryAttribute::try_from(target)
            .map_err(|_| format!("expected a dictionary, found {target}"))?;
        let text = |name| {
            let text = entry(target, name).and_then(attribute::as_string);
            text.map(str::to_owned).ok_or_else(|| format!("needs {name}, a string"))
        };
        let flag = |name| {
            let flag = entry(target, name).and_then(attribute::as_boolean);
            flag.ok_or_else(|| format!("needs {name}, true or false"))
        };
        let read = Self {
            arch: text("arch")?,
            device: text("device")?,
            contract: flag("contract")?,
            fast_math: flag("fast_math")?,
        };
        if entries.len() != 4 {
            return Err("has entries other than arch, device, contract and fast_math".to_owned());
        }
        if !is_architecture(&read.arch) {
            return Err(format!("\"{}\" is no architecture; expected one like sm_90", read.arch));
        }
        Ok(read)
    }
}

/// Whether an architecture is that of a GPU. All others are processors.
pub fn is_gpu(arch: &str) -> bool {
    arch.starts_with("sm_") || is_amd_gpu(arch)
}

/// Whether an architecture is that of a GPU of AMD's.
pub fn is_amd_gpu(arch: &str) -> bool {
    arch.starts_with("gfx")
}

/// Whether a name is `sm_`, a number of two or three digits, and at most one letter; or the name of
/// a processor, in lower-case letters, digits, `-`, `_` and `.`.
fn is_architecture(name: &str) -> bool {
    let letter = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"-_.".contains(&c);
    let Some(version) = name.strip_prefix("sm_") else {
        return name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(letter);
    };
    let number = version.strip_suffix(['a', 'f']).unwrap_or(version);
    (2..=3).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::ir::Location;

    #[test]
    fn a_target_is_read_as_it_was_set() -> Result<(), Error> {
        let context = crate::context()?;
        let module = Module::new(Location::unknown(&context));
        assert_eq!(Target::get(&module)?, None);
        let target = Target {
            arch: "sm_90a".to_owned(),
            device: "NVIDIA \"H200\"".to_owned(),
            contract: true,
            fast_math: false,
        };
        target.set(&context, &module);
        assert_eq!(Target::get(&module)?, Some(target));
        Ok(())
    }
}
