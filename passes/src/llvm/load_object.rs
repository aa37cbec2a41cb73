//! Loads an object file of this machine into the process, by LLVM's ORC. All `unsafe` for it is
//! here.

#![allow(unsafe_code, reason = "ORC has no interface that is safe")]

use super::emit_object::Object;
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{
    LLVMConsumeError, LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage,
};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile,
    LLVMOrcLLJITGetExecutionSession, LLVMOrcLLJITGetGlobalPrefix, LLVMOrcLLJITGetMainJITDylib,
    LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCSymbolMapPair, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess,
    LLVMOrcExecutionSessionSetErrorReporter, LLVMOrcJITDylibAddGenerator, LLVMOrcJITDylibDefine,
};
use inkwell::targets::{InitializationConfig, Target};
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use stencil_dialects::error::Error;
use stencil_runtime::cpu::Code;
use stencil_runtime::element::bf16;
use stencil_runtime::number::{brain, half};

/// Machine code in memory. It stays there until this is dropped.
#[derive(Debug)]
pub struct Loaded {
    jit: LLVMOrcLLJITRef,
}

// SAFETY: LLJIT locks its session in every call, and `Loaded` has the only handle to it.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Machine code that was kept, with neither its LLVM IR nor its assembly.
///
/// # Safety
/// The bytes are those of an [`Object`] that this version of the compiler made for this processor.
pub unsafe fn kept(bytes: Vec<u8>) -> Object {
    Object::of(bytes)
}

/// Loads an object that `emit-object` made for this machine. Functions of the C library are those
/// of this process, except `erf` and `cbrt`, which are the reference's. Conversions to short floats
/// are the crate's own: LLVM's code calls a library for them that is not in every process.
///
/// # Errors
/// What LLVM finds wrong with it.
pub fn load(object: &Object) -> Result<Loaded, Error> {
    Target::initialize_native(&InitializationConfig::default()).map_err(Error::internal)?;
    let mut jit = ptr::null_mut();
    // SAFETY: without a builder LLVM makes one for this machine; the handle is written where there
    // is no error, and disposed of once, when `loaded` is dropped.
    check(unsafe { LLVMOrcCreateLLJIT(&mut jit, ptr::null_mut()) })?;
    let loaded = Loaded { jit };
    let bytes = object.bytes();
    // SAFETY: the handle is valid. The generator, the definitions and the buffer are the session's
    // from the calls on that take them. The buffer is a copy, whose bytes are read in the call.
    unsafe {
        let session = LLVMOrcLLJITGetExecutionSession(jit);
        LLVMOrcExecutionSessionSetErrorReporter(session, say_nothing, ptr::null_mut());
        let library = LLVMOrcLLJITGetMainJITDylib(jit);
        let mut own = OWN.map(|(name, address)| symbol(jit, name, address() as u64));
        let own = LLVMOrcAbsoluteSymbols(own.as_mut_ptr(), own.len());
        check(LLVMOrcJITDylibDefine(library, own))?;
        let mut process = ptr::null_mut();
        let prefix = LLVMOrcLLJITGetGlobalPrefix(jit);
        check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
            &mut process,
            prefix,
            None,
            ptr::null_mut(),
        ))?;
        LLVMOrcJITDylibAddGenerator(library, process);
        let name = c"object".as_ptr();
        let buffer =
            LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.as_ptr().cast(), bytes.len(), name);
        check(LLVMOrcLLJITAddObjectFile(jit, library, buffer))?;
    }
    Ok(loaded)
}

// SAFETY: `emit-object` made the object with the table of one plan, whose hash is in the symbol.
// The functions keep the contract of `Code`: see `host-entries` for their arguments, the lowerings
// for what they read and write. They stay until `Loaded` is dropped.
unsafe impl Code for Loaded {
    fn symbol(&self, name: &str) -> Result<usize, String> {
        let symbol = CString::new(name).map_err(|error| error.to_string())?;
        let mut address = 0;
        // SAFETY: the handle is valid, and the name lives until the call returns.
        check(unsafe { LLVMOrcLLJITLookup(self.jit, &mut address, symbol.as_ptr()) })
            .map_err(|error| error.message)?;
        usize::try_from(address).map_err(|error| error.to_string())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the handle is valid and used no more. There is nobody to tell of an error.
        let error = unsafe { LLVMOrcDisposeLLJIT(self.jit) };
        let _ = check(error);
    }
}

/// Takes what ORC would print. The call that fails returns an error of its own.
extern "C" fn say_nothing(_: *mut c_void, error: LLVMErrorRef) {
    // SAFETY: the error is handed over, and this is its only use.
    unsafe { LLVMConsumeError(error) };
}

/// A function of this process under a name.
///
/// # Safety
/// The handle must be valid.
unsafe fn symbol(jit: LLVMOrcLLJITRef, name: &CStr, address: u64) -> LLVMOrcCSymbolMapPair {
    let exported = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8;
    let flags = LLVMJITSymbolFlags { GenericFlags: exported, TargetFlags: 0 };
    LLVMOrcCSymbolMapPair {
        // SAFETY: the handle is valid by the caller, and the name lives until the call returns.
        Name: unsafe { LLVMOrcLLJITMangleAndIntern(jit, name.as_ptr()) },
        Sym: LLVMJITEvaluatedSymbol { Address: address, Flags: flags },
    }
}

/// An error of LLVM's as one of ours.
fn check(error: LLVMErrorRef) -> Result<(), Error> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is not null and is taken by the first call, which gives a message that is
    // copied before it is disposed of.
    let text = unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        text
    };
    Err(Error::internal(format!("LLVM: {text}")))
}

/// Functions of C of one float.
macro_rules! of_one {
    ($($name:ident : $number:ty = $function:expr;)*) => {
        $(extern "C" fn $name(x: $number) -> $number {
            $function(x)
        })*
    };
}

of_one! {
    erf: f64 = libm::erf;
    erff: f32 = libm::erff;
    erfc: f64 = libm::erfc;
    erfcf: f32 = libm::erfcf;
    cbrt: f64 = f64::cbrt;
    cbrtf: f32 = f32::cbrt;
    asinh: f64 = libm::asinh;
    asinhf: f32 = libm::asinhf;
    acosh: f64 = libm::acosh;
    acoshf: f32 = libm::acoshf;
    atanh: f64 = libm::atanh;
    atanhf: f32 = libm::atanhf;
}

/// The name that code calls a function by, and where it is.
type Named = (&'static CStr, fn() -> *const ());

/// A function under the name that code calls it by.
macro_rules! named {
    ($name:literal, $function:ident) => {
        ($name, || $function as *const ())
    };
}

/// The functions that this crate has for code, which the C library has not, or others than the
/// simulator's.
const OWN: [Named; 15] = [
    named!(c"erf", erf),
    named!(c"erff", erff),
    named!(c"erfc", erfc),
    named!(c"erfcf", erfcf),
    named!(c"cbrt", cbrt),
    named!(c"cbrtf", cbrtf),
    named!(c"asinh", asinh),
    named!(c"asinhf", asinhf),
    named!(c"acosh", acosh),
    named!(c"acoshf", acoshf),
    named!(c"atanh", atanh),
    named!(c"atanhf", atanhf),
    named!(c"__truncsfbf2", short_of_single),
    named!(c"__truncdfbf2", short_of_double),
    named!(c"__truncdfhf2", half_of_double),
];

/// A number of 16 bits as a caller expects it: in the lowest bits of a vector register.
fn in_register(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits))
}

/// Rounds to bf16, as the reference does.
extern "C" fn short_of_single(x: f32) -> f32 {
    in_register(bf16::from_f32(x).to_bits())
}

/// Rounds to bf16, as the simulator does.
extern "C" fn short_of_double(x: f64) -> f32 {
    in_register(brain(x).to_bits())
}

/// Rounds to f16, as the reference does.
extern "C" fn half_of_double(x: f64) -> f32 {
    in_register(half(x).to_bits())
}
