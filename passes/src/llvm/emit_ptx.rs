//! From NVVM in the LLVM dialect to PTX: translation to LLVM IR, math functions, optimisation and
//! code generation by LLVM.
//!
//! Needs: a module after [`crate::pipeline::nvvm`]. Guarantees: PTX without unresolved symbols.
//! Declines: a math function that only libdevice has, when there is no libdevice.

use super::ir::{gpu_module, internal, parse};
use super::{libdevice, parts};
use crate::target::{Arithmetic, Target};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context as LlvmContext;
use inkwell::module::Module as LlvmModule;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine,
    TargetTriple,
};
use inkwell::values::{AnyValueEnum, BasicValue};
use inkwell::{AddressSpace, OptimizationLevel};
use melior::Context;
use melior::ir::Module;
use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use stencil_dialects::error::Error;

/// Bytes of a thread's stack: what a main thread has.
const STACK: usize = 8 << 20;

/// LLVM's number of the calling convention of kernels.
const PTX_KERNEL: u32 = 71;

/// An architecture, as LLVM's backend has it.
struct Architecture {
    name: &'static str,
    /// The version of PTX: 8.4, or the first that has the architecture.
    ptx: &'static str,
    /// Whether the backend knows how it prefetches. Older devices can too; the backend ends the
    /// process there.
    prefetches: bool,
}

const fn architecture(name: &'static str, ptx: &'static str, prefetches: bool) -> Architecture {
    Architecture { name, ptx, prefetches }
}

const ALL: [Architecture; 10] = [
    architecture("sm_75", "+ptx84", false),
    architecture("sm_80", "+ptx84", false),
    architecture("sm_86", "+ptx84", false),
    architecture("sm_87", "+ptx84", false),
    architecture("sm_89", "+ptx84", false),
    architecture("sm_90", "+ptx84", true),
    architecture("sm_90a", "+ptx84", true),
    architecture("sm_100", "+ptx86", true),
    architecture("sm_100a", "+ptx86", true),
    architecture("sm_120", "+ptx87", true),
];

/// The architectures for which code can be made: those of CUDA 13 that LLVM's backend has.
pub fn architectures() -> Vec<&'static str> {
    ALL.iter().map(|known| known.name).collect()
}

/// An architecture by its name. LLVM takes an unknown name with a warning and chooses for itself.
fn known(arch: &str) -> Result<&'static Architecture, Error> {
    ALL.iter().find(|known| known.name == arch).ok_or_else(|| {
        Error::user(format!(
            "there is no architecture {arch}; there are {}",
            architectures().join(", ")
        ))
    })
}

/// Optimised LLVM IR, and the PTX made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Of kernels that share nothing, in their order.
    parts: Vec<Part>,
}

/// A part of the code: a module of LLVM's and its PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    llvm: String,
    ptx: String,
}

/// The last line of the head of a PTX text, which all parts have alike.
const HEAD_END: &str = "\n.address_size 64\n";

impl Code {
    /// PTX text: the first part, and the bodies of the others.
    ///
    /// # Errors
    /// Internal ones only: a part without the usual head.
    pub fn ptx(&self) -> Result<String, Error> {
        let mut text = String::new();
        for Part { ptx, .. } in &self.parts {
            let (_, body) = ptx
                .split_once(HEAD_END)
                .ok_or_else(|| Error::internal("LLVM: PTX without an address size in its head"))?;
            text.push_str(if text.is_empty() { ptx } else { body });
        }
        Ok(text)
    }

    /// LLVM IR text as the code generator saw it, after optimisation.
    ///
    /// # Errors
    /// Internal ones only.
    pub fn llvm(&self) -> Result<String, Error> {
        if let [Part { llvm, .. }] = self.parts.as_slice() {
            return Ok(llvm.clone());
        }
        let llvm = LlvmContext::create();
        let whole = llvm.create_module("kernels");
        for part in &self.parts {
            let part = parse(&llvm, &part.llvm, "kernels")?;
            whole.set_triple(&part.get_triple());
            whole.set_data_layout(&part.get_data_layout());
            whole.link_in_module(part).map_err(internal)?;
        }
        Ok(whole.print_to_string().to_string())
    }
}

/// Compiles the module's `gpu.module`, parts of it side by side. An error of the user's where there
/// is none, where LLVM knows no such architecture, or where a math function needs libdevice and
/// there is none or it is unreadable.
pub fn emit(context: &Context, module: &Module, libdevice: Option<&Path>) -> Result<Code, Error> {
    let target = Target::of(module)?;
    let kernels = gpu_module(module)?;
    let emission =
        Emission { arch: known(&target.arch)?, arithmetic: target.arithmetic, libdevice };
    let parts =
        side_by_side(&parts::of(context, kernels)?, |number, text| emission.part(number, text));
    Ok(Code { parts: parts.into_iter().collect::<Result<_, _>>()? })
}

/// How all parts are compiled.
#[derive(Clone, Copy)]
struct Emission<'a> {
    arch: &'static Architecture,
    arithmetic: Arithmetic,
    libdevice: Option<&'a Path>,
}

impl Emission<'_> {
    /// Compiles a part from LLVM IR.
    fn part(self, number: usize, text: &str) -> Result<Part, Error> {
        let llvm = LlvmContext::create();
        let module = parse(&llvm, text, "kernels")?;
        printable_names(&module)?;
        let machine = machine(self.arch)?;
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        let library =
            libdevice::resolve(&llvm, &module, &machine, (self.arithmetic, self.libdevice))?;
        if !self.arch.prefetches {
            drop_prefetches(&module);
        }
        module
            .run_passes("default<O3>", &machine, PassBuilderOptions::create())
            .map_err(internal)?;
        promise_defined(&llvm, &module);
        if number > 0 {
            tell_apart(&module, &library, number);
        }
        let ptx = machine.write_to_memory_buffer(&module, FileType::Assembly).map_err(internal)?;
        Ok(Part {
            llvm: module.print_to_string().to_string(),
            ptx: String::from_utf8_lossy(ptx.as_slice()).trim_end_matches('\0').to_owned(),
        })
    }
}

/// Promises that a kernel's arguments are not undefined, which a launch ensures. Without it LLVM's
/// straight-line strength reduction looks for a proof for each pair of similar addresses, which
/// takes a sixth of the compile of large kernels. The optimised code is the same.
fn promise_defined(llvm: &LlvmContext, module: &LlvmModule) {
    let promise = llvm.create_enum_attribute(Attribute::get_named_enum_kind_id("noundef"), 0);
    for kernel in module.get_functions().filter(|one| one.get_call_conventions() == PTX_KERNEL) {
        for place in 0..kernel.count_params() {
            kernel.add_attribute(AttributeLoc::Param(place), promise);
        }
    }
}

/// Gives what a part has of the libraries, and its shared memory, names that no other part has.
fn tell_apart(module: &LlvmModule, library: &[CString], number: usize) {
    let shared = AddressSpace::from(parts::SHARED_MEMORY);
    let globals = module.get_globals();
    for memory in
        globals.filter(|memory| memory.as_pointer_value().get_type().get_address_space() == shared)
    {
        memory.set_name(&format!("{}${number}", memory.get_name().to_string_lossy()));
    }
    for name in library.iter().filter_map(|name| name.to_str().ok()) {
        let own = format!("{name}${number}");
        if let Some(function) = module.get_function(name).filter(|own| own.count_basic_blocks() > 0)
        {
            function.as_global_value().set_name(&own);
        } else if let Some(table) = module.get_global(name) {
            table.set_name(&own);
        }
    }
}

/// The results of some work on each text and its number, in order, by as many threads as the
/// machine runs at once.
fn side_by_side<R: Send>(
    texts: &[String],
    work: impl Fn(usize, &str) -> Result<R, Error> + Sync,
) -> Vec<Result<R, Error>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(number) else { return done };
            done.push((number, work(number, text)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let start = || std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, take);
        let others = (1..threads.min(texts.len())).filter_map(|_| start().ok());
        let others: Vec<_> = others.collect();
        let mut done = take();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// PTX has letters, digits, `_` and `$` in a name; LLVM ends the process at another.
fn printable_names(module: &LlvmModule) -> Result<(), Error> {
    let printable = |name: &str| {
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$')
    };
    let names = module.get_functions().filter(|function| function.count_basic_blocks() > 0);
    let mut names = names.map(|function| function.get_name().to_string_lossy().into_owned());
    match names.find(|name| !printable(name)) {
        Some(name) => Err(Error::user(format!(
            "PTX has no function '{name}': its names are made of letters, digits, _ and $; rename \
             it"
        ))),
        None => Ok(()),
    }
}

fn machine(arch: &Architecture) -> Result<TargetMachine, Error> {
    LlvmTarget::initialize_nvptx(&InitializationConfig::default());
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    let nvptx = LlvmTarget::from_triple(&triple).map_err(internal)?;
    nvptx
        .create_target_machine(
            &triple,
            arch.name,
            arch.ptx,
            OptimizationLevel::Aggressive,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| Error::user(format!("LLVM has no target machine for {}", arch.name)))
}

/// Takes out prefetches, which are no more than advice.
fn drop_prefetches(module: &LlvmModule) {
    for function in module.get_functions() {
        if function.get_name().to_string_lossy().starts_with("llvm.nvvm.prefetch.") {
            while let Some(call) = function.as_global_value().as_pointer_value().get_first_use() {
                let AnyValueEnum::InstructionValue(call) = call.get_user() else { break };
                call.erase_from_basic_block();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_dialects::error::Fault;

    #[test]
    fn parts_share_one_head() {
        let part = |ptx: &str| Part { llvm: String::new(), ptx: ptx.to_owned() };
        let parts = |texts: [&str; 2]| Code { parts: texts.map(part).into() };
        let code = parts(["// a\n.address_size 64\nA\n", "// b\n.address_size 64\nB\n"]);
        assert_eq!(code.ptx().unwrap(), "// a\n.address_size 64\nA\nB\n");
        let error = parts(["// a\n.address_size 64\nA\n", "B\n"]).ptx().unwrap_err();
        assert_eq!(error.fault, Fault::Internal);
    }
}
