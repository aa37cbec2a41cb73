//! The bodies of math functions for NVIDIA's GPUs: exact ones of our own, the others of libdevice.

use super::ir::{EXACT_MATH, instructions, internal, link, parse};
use crate::target::Arithmetic;
use crate::upstream;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context as LlvmContext;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module as LlvmModule;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::values::{BasicValue, FunctionValue};
use melior::ir::Module;
use std::ffi::CString;
use std::path::Path;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{Boundary, Program};
use stencil_runtime::bounded_read;

/// The operations of `math` that become functions of libdevice, under the names of sources.
const LIBDEVICE: &[(&str, &str)] = &[
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

/// Tells before a long compile what [`super::emit_ptx::emit`] would tell after it: the first math
/// function of a module, at any level before NVVM, that needs a libdevice which is not there.
/// Boundary rules are left to that: no read may leave the grid.
pub fn check(module: &Module, libdevice: Option<&Path>) -> Result<(), Error> {
    let missing = match libdevice.map(|path| (path, std::fs::metadata(path))) {
        Some((_, Ok(_))) => return Ok(()),
        Some((path, Err(error))) => Some((path, error)),
        None => None,
    };
    let function = |op: Op| {
        let name = mlir::name(op);
        LIBDEVICE.iter().find(|(operation, _)| *operation == name).map(|(_, function)| *function)
    };
    let fields = Program::read(module).map(|program| program.fields).unwrap_or_default();
    let is_rule = |op: &Op| {
        let name = mlir::attribute(*op, "sym_name").and_then(attribute::as_string);
        let rule = name.map(Boundary::Value);
        rule.is_some() && fields.iter().any(|field| field.boundary == rule)
    };
    let all = mlir::operations(mlir::body(module)).into_iter();
    let own = all.filter(|op| !is_rule(op));
    let Some(name) = own.flat_map(mlir::walk).find_map(function) else { return Ok(()) };
    Err(missing.map_or_else(|| not_found(name), |(path, error)| unreadable(path, &error)))
}

/// Where a function needs libdevice and there is none.
fn not_found(name: &str) -> Error {
    Error::user(format!(
        "the function {name} needs NVIDIA's libdevice, which was not found; install the wheel \
         nvidia-nvvm or CUDA, and give its libdevice.10.bc by the option libdevice"
    ))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::user(format!("{}: libdevice can't be read: {error}", path.display()))
}

/// Gives every called math function a body: exact ones from our own text, the others from
/// libdevice. Long ones stay functions where there are many calls. The result is the names of what
/// was linked.
pub(super) fn resolve<'l>(
    llvm: &'l LlvmContext,
    module: &LlvmModule<'l>,
    machine: &TargetMachine,
    (arithmetic, libdevice): (Arithmetic, Option<&Path>),
) -> Result<Vec<CString>, Error> {
    if unresolved(module).is_empty() {
        return Ok(Vec::new());
    }
    let mut exact = EXACT_MATH.to_owned();
    if arithmetic.fast_math {
        // There is no approximate root of f64 that is good enough.
        exact = exact.replace("call float @llvm.sqrt", "call fast float @llvm.sqrt");
        exact += include_str!("fast_math.ll");
    }
    let mut names = link(module, parse(llvm, &exact, "exact_math")?, machine)?;
    let missing = unresolved(module);
    if let Some(first) = missing.first() {
        let name = source_name(module, first);
        let path = libdevice.ok_or_else(|| not_found(name))?;
        let bytes = bounded_read::read(path, bounded_read::MOST_CODE)
            .map_err(|error| unreadable(path, &error))?;
        let library = upstream::under(&damaged(path), || read(llvm, &bytes));
        let library = library.map_err(|error| unreadable(path, &error))?;
        names.extend(link(module, library, machine)?);
    }
    if let Some(missing) = unresolved(module).first() {
        return Err(Error::user(format!("nothing defines the function {missing}")));
    }
    bound_inlining(llvm, module, machine, &names)?;
    Ok(names)
}

/// The library of a file's bytes.
fn read<'l>(llvm: &'l LlvmContext, bytes: &[u8]) -> Result<LlvmModule<'l>, String> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(bytes, "libdevice");
    let library = LlvmModule::parse_bitcode_from_buffer(&buffer, llvm);
    let library = library.map_err(|error| error.to_string())?;
    library.verify().map_err(|error| error.to_string())?;
    Ok(library)
}

/// The sentence for a library on which LLVM's reader crashes.
fn damaged(path: &Path) -> String {
    format!("{} is damaged: LLVM can't read it; install libdevice again", path.display())
}

/// The most instructions that the calls of math functions in a part become. Beyond, calls of long
/// functions stay calls. 600 inlined sines take 24 s of a compile, and 600 calls 0.8 s.
const MOST_INLINED: usize = 40_000;

/// The instructions of a function that is inlined in any case, such as a root or a maximum.
const SHORT: usize = 16;

/// Keeps the calls of the library's long functions where their code would be too long in total.
fn bound_inlining(
    llvm: &LlvmContext,
    module: &LlvmModule,
    machine: &TargetMachine,
    library: &[CString],
) -> Result<(), Error> {
    module.run_passes("globaldce", machine, PassBuilderOptions::create()).map_err(internal)?;
    let names = library.iter().filter_map(|name| name.to_str().ok());
    let functions = names.filter_map(|name| module.get_function(name));
    let long: Vec<_> = functions.filter(|function| size(*function) > SHORT).collect();
    let inlined = long.iter().map(|function| size(*function) * calls(*function));
    let inlined: usize = inlined.sum();
    if inlined <= MOST_INLINED {
        return Ok(());
    }
    let kind = Attribute::get_named_enum_kind_id;
    let keep = llvm.create_enum_attribute(kind("noinline"), 0);
    for function in long {
        function.remove_enum_attribute(AttributeLoc::Function, kind("alwaysinline"));
        function.add_attribute(AttributeLoc::Function, keep);
    }
    Ok(())
}

fn size(function: FunctionValue) -> usize {
    instructions(function).count()
}

/// Places at which a function is called.
fn calls(function: FunctionValue) -> usize {
    let first = function.as_global_value().as_pointer_value().get_first_use();
    std::iter::successors(first, |call| call.get_next_use()).count()
}

/// The source name of a function of libdevice, which ends its names for f32 with an `f`.
fn source_name<'n>(module: &LlvmModule, name: &'n str) -> &'n str {
    let is_float = module
        .get_function(name)
        .and_then(|function| function.get_type().get_return_type())
        .is_some_and(|ty| ty.is_float_type() && ty.into_float_type().get_bit_width() == 32);
    let name = name.trim_start_matches("__nv_");
    if is_float { name.strip_suffix('f').unwrap_or(name) } else { name }
}

/// Functions that are called but have neither a body nor a meaning to LLVM.
fn unresolved(module: &LlvmModule) -> Vec<String> {
    module
        .get_functions()
        .filter(|function| function.count_basic_blocks() == 0)
        .map(|function| function.get_name().to_string_lossy().into_owned())
        // LLVM's own passes answer the questions that libdevice asks of the compiler.
        .filter(|name| !name.starts_with("llvm.") && name != "__nvvm_reflect")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libdevice_have_the_names_of_sources() {
        let llvm = LlvmContext::create();
        let text = "declare float @__nv_erff(float)\ndeclare double @__nv_erf(double)\n\
                    declare float @__nv_sinf(float)\n";
        let module = parse(&llvm, text, "names").unwrap();
        for (called, name) in [("__nv_erff", "erf"), ("__nv_erf", "erf"), ("__nv_sinf", "sin")] {
            assert_eq!(source_name(&module, called), name);
        }
    }
}
