//! From functions for a processor in the LLVM dialect to its machine code: translation to LLVM IR,
//! optimisation and code generation by LLVM.
//!
//! Needs: a module after [`crate::pipeline::host_llvm`], and its plan. Guarantees: an object file
//! whose only symbol is [`Plan::code_symbol`] with an end of the caller's, a table of the kernels'
//! functions in the plan's order. It refers to functions of the C library alone. Objects of several
//! programs can be linked together.

use super::host_entries::PREFIX;
use super::ir::{self, internal, parse};
use crate::kernel::host_function;
use crate::target::{NATIVE, Target};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context as LlvmContext;
use inkwell::module::{Linkage, Module as LlvmModule};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine,
    TargetTriple,
};
use inkwell::types::{AnyType, AnyTypeEnum};
use inkwell::values::{BasicValue, FunctionValue, InstructionOpcode, InstructionValue, Operand};
use inkwell::{AddressSpace, OptimizationLevel};
use melior::Context;
use melior::ir::Module;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_runtime::plan::Plan;
use stencil_runtime::processor::Processor;

/// Operations, and the C library's functions for them. Those for f32 have an `f` at their end.
///
/// LLVM would call the same function for `arith.remf`. But it takes the operation for cheap before,
/// and unrolls the loops around it.
pub const LIBRARY: [(&str, &str); 25] = [
    ("arith.remf", "fmod"),
    ("math.acos", "acos"),
    ("math.acosh", "acosh"),
    ("math.asin", "asin"),
    ("math.asinh", "asinh"),
    ("math.atan", "atan"),
    ("math.atan2", "atan2"),
    ("math.atanh", "atanh"),
    ("math.cbrt", "cbrt"),
    ("math.cos", "cos"),
    ("math.cosh", "cosh"),
    ("math.erf", "erf"),
    ("math.erfc", "erfc"),
    ("math.exp", "exp"),
    ("math.exp2", "exp2"),
    ("math.expm1", "expm1"),
    ("math.log", "log"),
    ("math.log10", "log10"),
    ("math.log1p", "log1p"),
    ("math.log2", "log2"),
    ("math.powf", "pow"),
    ("math.sin", "sin"),
    ("math.sinh", "sinh"),
    ("math.tan", "tan"),
    ("math.tanh", "tanh"),
];

/// Prefix of the C library's functions until LLVM has optimised the code: it takes some that it
/// knows by name for cheap, and unrolls the loops around them.
const MATH: &str = "math.";

/// A processor, as LLVM's backends have it.
struct Known {
    name: &'static str,
    triple: &'static str,
    /// Bytes of its vectors.
    vector: u32,
}

const fn known(name: &'static str, triple: &'static str, vector: u32) -> Known {
    Known { name, triple, vector }
}

const X86: &str = "x86_64-unknown-linux-gnu";
const ARM: &str = "aarch64-unknown-linux-gnu";

/// The processors for which code can be made by name.
const ALL: [Known; 10] = [
    known("x86-64-v3", X86, 32),
    known("x86-64-v4", X86, 64),
    known("znver3", X86, 32),
    known("znver4", X86, 64),
    known("znver5", X86, 64),
    known("icelake-server", X86, 64),
    known("sapphirerapids", X86, 64),
    known("neoverse-n1", ARM, 16),
    known("neoverse-v1", ARM, 16),
    known("neoverse-v2", ARM, 16),
];

/// The names of the processors for which code can be made.
pub fn processors() -> Vec<&'static str> {
    std::iter::once(NATIVE).chain(ALL.iter().map(|known| known.name)).collect()
}

/// The processor of a name: that of this machine for [`NATIVE`], a typical one for other names.
pub fn processor(arch: &str) -> Option<Processor> {
    if arch == NATIVE {
        return Some(Processor::host());
    }
    ALL.iter().find(|known| known.name == arch).map(|known| Processor::named(known.vector))
}

/// The processor of this machine as LLVM knows it: code for [`NATIVE`] is for it alone.
pub fn this_processor() -> String {
    let name = TargetMachine::get_host_cpu_name();
    format!("{name} {}", TargetMachine::get_host_cpu_features())
}

/// Machine code with the LLVM IR that it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    llvm: String,
    bytes: Vec<u8>,
    assembly: String,
}

impl Object {
    /// Machine code alone.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { llvm: String::new(), bytes, assembly: String::new() }
    }

    /// LLVM IR as text, after optimisation.
    pub fn llvm(&self) -> &str {
        &self.llvm
    }

    /// The object file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The assembly; nothing where it was not asked for.
    pub fn assembly(&self) -> &str {
        &self.assembly
    }
}

/// What is made beside machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Assembly, which takes as long again as machine code.
    Assembly,
    /// Nothing.
    Nothing,
}

/// Compiles the functions of a plan's module for the processor of its target.
///
/// # Errors
/// A user's where the module has no such functions, or LLVM no such processor.
pub fn emit(
    context: &Context,
    module: &Module,
    (plan, symbol_end): (&Plan, &str),
    listing: Listing,
) -> Result<Object, Error> {
    let target = Target::of(module)?;
    let vector = target.processor.map_or(0, |processor| processor.vector);
    let text = mlir::to_llvm_ir(context, host_function::module_of(module)?)?;
    let llvm = LlvmContext::create();
    let machine = machine(&target.arch, OptimizationLevel::Aggressive)?;
    let mut scalar = BTreeSet::new();
    let module = loop {
        let module = parse(&llvm, &text, "")?;
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        table(&llvm, &module, (plan, symbol_end))?;
        prepare(&llvm, &module, vector, &scalar);
        let options = PassBuilderOptions::create();
        module.run_passes("default<O3>", &machine, options).map_err(internal)?;
        let wrong = divides_under_masks(&module);
        if wrong.is_subset(&scalar) {
            break module;
        }
        scalar.extend(wrong);
    };
    for function in module.get_functions() {
        let name = function.get_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_prefix(MATH) {
            function.as_global_value().set_name(name);
        }
    }
    let machine = self::machine(&target.arch, ir::level(&module))?;
    let write = |kind| machine.write_to_memory_buffer(&module, kind).map_err(internal);
    let assembly = match listing {
        Listing::Assembly => Some(write(FileType::Assembly)?),
        Listing::Nothing => None,
    };
    let assembly = assembly.as_ref().map(|text| String::from_utf8_lossy(text.as_slice()));
    let assembly = assembly.unwrap_or_default();
    Ok(Object {
        llvm: module.print_to_string().to_string(),
        bytes: write(FileType::Object)?.as_slice().to_vec(),
        assembly: assembly.trim_end_matches('\0').to_owned(),
    })
}

/// Adds the table of the kernels' functions, which become internal. A kernel without a function has
/// no tiles, and a null in its place.
fn table<'l>(
    llvm: &'l LlvmContext,
    module: &LlvmModule<'l>,
    (plan, symbol_end): (&Plan, &str),
) -> Result<(), Error> {
    let pointer = llvm.ptr_type(AddressSpace::default());
    let function = |kernel: &str| match module.get_function(&format!("{PREFIX}{kernel}")) {
        Some(function) => {
            function.set_linkage(Linkage::Internal);
            function.as_global_value().as_pointer_value()
        }
        None => pointer.const_null(),
    };
    let functions: Vec<_> = plan.kernels.iter().map(|kernel| function(&kernel.name)).collect();
    let symbol = plan.code_symbol().map_err(internal)? + symbol_end;
    let length = u32::try_from(functions.len()).map_err(internal)?;
    let table = module.add_global(pointer.array_type(length), None, &symbol);
    table.set_constant(true);
    table.set_initializer(&pointer.const_array(&functions));
    Ok(())
}

/// Says how wide vectors are, and that the C library's functions are to be called as they are:
/// LLVM would replace a power by a product, which is rounded otherwise. Functions with many calls
/// stay functions. LLVM makes no vectors of its own in a function that has `noimplicitfloat`.
fn prepare(llvm: &LlvmContext, module: &LlvmModule, vector: u32, scalar: &BTreeSet<String>) {
    // Functions of the program's must not take the place of the C library's.
    for own in module.get_functions().filter(|own| own.get_linkage() == Linkage::Internal) {
        let name = own.get_name().to_string_lossy().into_owned();
        own.as_global_value().set_name(&format!("tile.{name}"));
    }
    let flag = |name| llvm.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
    let width = llvm.create_string_attribute("prefer-vector-width", &(vector * 8).to_string());
    for function in module.get_functions() {
        let name = function.get_name().to_string_lossy().into_owned();
        if name.starts_with(MATH) {
            for name in ["nobuiltin", "nounwind", "willreturn"] {
                function.add_attribute(AttributeLoc::Function, flag(name));
            }
            continue;
        }
        if function.count_basic_blocks() > 0 && vector > 0 {
            function.add_attribute(AttributeLoc::Function, width);
        }
        if operations_on_16_bits(llvm, function) > MOST_ON_16_BITS || scalar.contains(&name) {
            function.add_attribute(AttributeLoc::Function, flag("noimplicitfloat"));
        }
        if calls(function) > MOST_COPIES {
            function.add_attribute(AttributeLoc::Function, flag("noinline"));
        }
    }
}

/// The most operations on floats of 16 bits in a function whose loops LLVM may vectorize. Most
/// processors convert such numbers lane by lane, before and after each operation: a sum of 1,400
/// conversions took over 100 s with vectors.
const MOST_ON_16_BITS: usize = 200;

/// Instructions of a function that make or take floats of 16 bits.
fn operations_on_16_bits(llvm: &LlvmContext, function: FunctionValue) -> usize {
    let short = [llvm.f16_type(), llvm.bf16_type()];
    let is_short = |ty: AnyTypeEnum| match ty {
        AnyTypeEnum::FloatType(ty) => short.contains(&ty),
        AnyTypeEnum::VectorType(ty) => {
            let element = ty.get_element_type();
            short.iter().any(|short| element == (*short).into())
        }
        _ => false,
    };
    let takes = |operand: Operand| match operand {
        Operand::Value(value) => is_short(value.get_type().as_any_type_enum()),
        Operand::Block(_) => false,
    };
    let operates = |instruction: &InstructionValue| {
        let opcode = instruction.get_opcode();
        is_short(instruction.get_type())
            // Operands of calls may be no values.
            || opcode != InstructionOpcode::Call
                && instruction.get_operands().flatten().any(takes)
    };
    ir::instructions(function).filter(operates).count()
}

/// The functions with vectors in which lanes divide integers one by one, where their conditions
/// hold. LLVM 22 lets the first lane alone divide, if all lanes divide the same: where its own
/// condition does not hold, the others have a quotient that nobody computed.
fn divides_under_masks(module: &LlvmModule<'_>) -> BTreeSet<String> {
    let divides = |block: &BasicBlock| {
        let name = block.get_name().to_string_lossy();
        ["pred.sdiv", "pred.srem", "pred.udiv", "pred.urem"].iter().any(|of| name.starts_with(of))
    };
    let functions = module.get_functions();
    let wrong = functions.filter(|function| function.get_basic_block_iter().any(|at| divides(&at)));
    wrong.map(|function| function.get_name().to_string_lossy().into_owned()).collect()
}

/// The most calls of a function that LLVM may inline. The steps of all kernels call the same
/// functions: a line of two reads with 24 steps was compiled in 5 s with all calls inlined, and
/// takes 0.3 s without. Its run takes as long, because a box of cells takes far longer than a call.
const MOST_COPIES: usize = 2;

/// How often a function is called.
fn calls(function: FunctionValue) -> usize {
    let first = function.as_global_value().as_pointer_value().get_first_use();
    std::iter::successors(first, |call| call.get_next_use()).count()
}

/// LLVM's backend for a processor.
fn machine(arch: &str, level: OptimizationLevel) -> Result<TargetMachine, Error> {
    let config = InitializationConfig::default();
    LlvmTarget::initialize_x86(&config);
    LlvmTarget::initialize_aarch64(&config);
    let (triple, cpu, features) = if arch == NATIVE {
        let cpu = TargetMachine::get_host_cpu_name().to_string();
        // Its instruction for f32 to bf16 takes small numbers for 0.
        let features = TargetMachine::get_host_cpu_features().to_string() + ",-avx512bf16";
        (TargetMachine::get_default_triple(), cpu, features)
    } else {
        let found = ALL.iter().find(|known| known.name == arch);
        let found = found.ok_or_else(|| {
            let names = processors().join(", ");
            Error::user(format!("there is no processor {arch}; there are {names}"))
        })?;
        let features = if found.triple == X86 { "-avx512bf16" } else { "" };
        (TargetTriple::create(found.triple), found.name.to_owned(), features.to_owned())
    };
    let backend = LlvmTarget::from_triple(&triple).map_err(internal)?;
    backend
        .create_target_machine(&triple, &cpu, &features, level, RelocMode::PIC, CodeModel::Default)
        .ok_or_else(|| Error::user(format!("LLVM has no target machine for {arch}")))
}
