//! From ROCDL in the LLVM dialect to assembly of a GPU of AMD's: translation to LLVM IR,
//! optimisation and code generation by LLVM.
//!
//! Needs: a module after [`crate::pipeline::rocdl`]. Guarantees: assembly of a code object, whose
//! only unresolved symbols are functions of AMD's device library `ocml`.

use super::ir::{self, EXACT_MATH, gpu_module, internal, link, parse};
use crate::target::Target;
use inkwell::OptimizationLevel;
use inkwell::context::Context as LlvmContext;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine,
    TargetTriple,
};
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;

/// The architectures for which code can be made.
pub const ARCHITECTURES: [&str; 1] = ["gfx942"];

/// Optimised LLVM IR, and the assembly made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// LLVM IR.
    pub llvm: String,
    /// The assembly.
    pub text: String,
}

/// Compiles the module's `gpu.module`.
///
/// # Errors
/// A user's where there is none, or where the architecture has no code.
pub fn emit(context: &Context, module: &Module) -> Result<Assembly, Error> {
    let target = Target::of(module)?;
    let machine = machine(&target.arch, OptimizationLevel::Aggressive)?;
    let llvm = LlvmContext::create();
    let module = parse(&llvm, &mlir::to_llvm_ir(context, gpu_module(module)?)?, "kernels")?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    link(&module, parse(&llvm, &exact_math(), "exact_math")?, &machine)?;
    module.run_passes("default<O3>", &machine, PassBuilderOptions::create()).map_err(internal)?;
    let machine = self::machine(&target.arch, ir::level(&module))?;
    let text = machine.write_to_memory_buffer(&module, FileType::Assembly).map_err(internal)?;
    Ok(Assembly {
        llvm: module.print_to_string().to_string(),
        text: String::from_utf8_lossy(text.as_slice()).trim_end_matches('\0').to_owned(),
    })
}

/// The exact functions under the names that the conversion to ROCDL gives them: `__ocml_sqrt_f32`
/// for `__nv_sqrtf`.
fn exact_math() -> String {
    let mut text = String::new();
    for line in EXACT_MATH.lines() {
        let named = line.split_once("@__nv_").and_then(|(before, rest)| {
            let (name, rest) = rest.split_once('(')?;
            Some(match before.contains("float") {
                true => format!("{before}@__ocml_{}_f32({rest}", name.strip_suffix('f')?),
                false => format!("{before}@__ocml_{name}_f64({rest}"),
            })
        });
        text += named.as_deref().unwrap_or(line);
        text.push('\n');
    }
    text
}

fn machine(arch: &str, level: OptimizationLevel) -> Result<TargetMachine, Error> {
    if !ARCHITECTURES.contains(&arch) {
        let names = ARCHITECTURES.join(", ");
        return Err(Error::user(format!("there is no architecture {arch}; there are {names}")));
    }
    LlvmTarget::initialize_amd_gpu(&InitializationConfig::default());
    let triple = TargetTriple::create("amdgcn-amd-amdhsa");
    let backend = LlvmTarget::from_triple(&triple).map_err(internal)?;
    backend
        .create_target_machine(&triple, arch, "", level, RelocMode::PIC, CodeModel::Default)
        .ok_or_else(|| Error::user(format!("LLVM has no target machine for {arch}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_functions_have_the_names_of_ocml() {
        let text = exact_math();
        assert!(!text.contains("__nv_"), "{text}");
        for head in [
            "define float @__ocml_fma_f32(float %x, float %y, float %z)",
            "define double @__ocml_sqrt_f64(double %x)",
        ] {
            assert!(text.contains(head), "{text}");
        }
    }
}
