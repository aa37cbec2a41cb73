//! Shared steps on LLVM IR of several targets.

use inkwell::OptimizationLevel;
use inkwell::context::Context as LlvmContext;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module as LlvmModule};
use inkwell::targets::TargetMachine;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};
use melior::ir::Module;
use std::ffi::CString;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// The math functions that a device computes exactly, under the names of libdevice.
pub(super) const EXACT_MATH: &str = include_str!("exact_math.ll");

/// The module of the kernels. An error of the user's where there is none.
pub(super) fn gpu_module<'c>(module: &Module<'c>) -> Result<Op<'c>, Error> {
    let found = mlir::operations(mlir::body(module)).into_iter();
    let mut found = found.filter(|op| mlir::name(*op) == "gpu.module");
    found.next().ok_or_else(|| Error::user("the module holds no gpu.module; run a lowering first"))
}

/// A fault of LLVM's.
pub(super) fn internal(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("LLVM: {error}"))
}

/// The most instructions of a function whose machine code is optimised. Allocation of registers
/// and the sinking of instructions take time by the square of it: 28,000 instructions for a
/// processor took 28 s, and take 3 s without. The longest function of a program of the test suite
/// has 10,000.
const MOST_OPTIMISED: usize = 20_000;

/// Instructions for which a division of integers counts. Its operands lie in fixed registers. The
/// time to join the copies to these grows with the square of their number: 2,100 divisions among
/// 11,000 instructions took 20 s.
const DIVISION: usize = 10;

/// How far the machine code of a module is optimised.
pub(super) fn level(module: &LlvmModule<'_>) -> OptimizationLevel {
    let mut functions = module.get_functions();
    let has_long = functions.any(|function| {
        let weights = instructions(function).map(|instruction| weight(instruction.get_opcode()));
        weights.sum::<usize>() > MOST_OPTIMISED
    });
    if has_long { OptimizationLevel::None } else { OptimizationLevel::Aggressive }
}

/// The instructions of a function.
pub(super) fn instructions(
    function: FunctionValue<'_>,
) -> impl Iterator<Item = InstructionValue<'_>> {
    function.get_basic_block_iter().flat_map(|block| block.get_instructions())
}

fn weight(opcode: InstructionOpcode) -> usize {
    if is_division(opcode) { DIVISION } else { 1 }
}

/// Whether an instruction divides integers.
pub(super) fn is_division(opcode: InstructionOpcode) -> bool {
    use InstructionOpcode::{SDiv, SRem, UDiv, URem};
    matches!(opcode, SDiv | SRem | UDiv | URem)
}

/// Reads LLVM IR.
pub(super) fn parse<'l>(
    llvm: &'l LlvmContext,
    text: &str,
    name: &str,
) -> Result<LlvmModule<'l>, Error> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(format!("{text}\0").as_bytes(), name);
    llvm.create_module_from_ir(buffer).map_err(internal)
}

/// Links a library into a module, where its functions become internal. The result is the names of
/// what was linked.
pub(super) fn link<'l>(
    module: &LlvmModule<'l>,
    library: LlvmModule<'l>,
    machine: &TargetMachine,
) -> Result<Vec<CString>, Error> {
    library.set_triple(&machine.get_triple());
    library.set_data_layout(&machine.get_target_data().get_data_layout());
    let functions = library.get_functions().filter(|function| function.count_basic_blocks() > 0);
    let mut names: Vec<_> = functions.map(|function| function.get_name().to_owned()).collect();
    let tables: Vec<_> = library.get_globals().map(|table| table.get_name().to_owned()).collect();
    module.link_in_module(library).map_err(internal)?;
    for name in &names {
        if let Some(function) = name.to_str().ok().and_then(|name| module.get_function(name)) {
            function.set_linkage(Linkage::Internal);
        }
    }
    names.extend(tables);
    Ok(names)
}
