//! The part of a report on the memory of arrays: which kernels copy which arrays to shared memory,
//! and which fields lie in constant memory.

use melior::ir::Module;
use serde_json::{Value, json};
use std::fmt::{self, Formatter};
use stencil_dialects::error::Error;
use stencil_passes::analysis::array_places::{self, ConstantArray, Kept, SharedBuffer};

/// Where the kernels of a module keep arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayMemory {
    kernels: Vec<Kept>,
    constants: Vec<ConstantArray>,
}

/// The memory of arrays of a module at the gpu level.
///
/// # Errors
/// A malformed module.
pub fn of(module: &Module) -> Result<ArrayMemory, Error> {
    let (kernels, constants) = array_places::of(module)?;
    Ok(ArrayMemory { kernels, constants })
}

impl ArrayMemory {
    /// A line for each kernel with shared buffers, and one for constant memory.
    pub fn write(&self, out: &mut Formatter) -> fmt::Result {
        for kernel in self.kernels.iter().filter(|kernel| !kernel.shared.is_empty()) {
            let buffers: Vec<_> = kernel.shared.iter().map(text).collect();
            writeln!(out, "shared memory of {}: {}", kernel.kernel, buffers.join("; "))?;
        }
        if !self.constants.is_empty() {
            let constant = |one: &ConstantArray| format!("{}, {} bytes", one.array, one.bytes);
            let all: Vec<_> = self.constants.iter().map(constant).collect();
            writeln!(out, "constant memory: {}", all.join("; "))?;
        }
        Ok(())
    }

    /// The same as JSON.
    pub fn to_json(&self) -> Value {
        let shared = |kernel: &Kept| {
            let buffers = kernel.shared.iter().map(|buffer| {
                json!({
                    "kernel": kernel.kernel,
                    "arrays": buffer.arrays,
                    "extents": buffer.extents,
                    "element": buffer.element,
                    "pad_words": buffer.pad,
                    "note": buffer.note,
                })
            });
            buffers.collect::<Vec<_>>()
        };
        let constant = |one: &ConstantArray| json!({"array": one.array, "bytes": one.bytes});
        json!({
            "shared": self.kernels.iter().flat_map(shared).collect::<Vec<_>>(),
            "constant": self.constants.iter().map(constant).collect::<Vec<_>>(),
        })
    }
}

/// `A, 8 x 132 f32, a row padded by 4 words (no avoidable conflict)`.
fn text(buffer: &SharedBuffer) -> String {
    let arrays = match buffer.arrays.as_slice() {
        [] => "results".to_owned(),
        arrays => arrays.join(" and "),
    };
    let extents: Vec<_> = buffer.extents.iter().map(i64::to_string).collect();
    let pad = match buffer.pad {
        0 => String::new(),
        1 => ", a row padded by 1 word".to_owned(),
        words => format!(", a row padded by {words} words"),
    };
    let note = buffer.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
    format!("{arrays}, {} {}{pad}{note}", extents.join(" x "), buffer.element)
}
