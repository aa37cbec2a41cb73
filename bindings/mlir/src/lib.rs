//! `libStencilPasses.so`: the passes of stencilc for `mlir-opt --load-pass-plugin`.
//!
//! `shim.cpp` makes passes of MLIR's C++ interface, whose work is done here. Everything of MLIR and
//! LLVM comes from the tool's own shared libraries: `xtask` links this library so, and looks at
//! which archives it takes anything from.
//!
//! Beside the passes of the registry there are two that write files: `stencil-emit-ptx` and
//! `stencil-emit-plan`, with the option `output`.

use melior::ContextRef;
use melior::ir::Module;
use mlir_sys::{MlirModule, MlirStringRef};
use std::ffi::{CString, c_char, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::OnceLock;
use stencil_dialects::error::{Error, Place};
use stencil_passes::runner::Runner;
use stencil_passes::{launch_plan, llvm::emit_ptx, pipeline_text, registry};

/// The version of the plugin interface (`MLIR_PLUGIN_API_VERSION`).
const INTERFACE: u32 = 1;

/// What the tool reads of a plugin (`mlir::PassPluginLibraryInfo`).
#[repr(C)]
pub struct Plugin {
    interface: u32,
    name: *const c_char,
    version: *const c_char,
    register: unsafe extern "C" fn(),
}

#[link(name = "stencil_shim", kind = "static")]
unsafe extern "C" {
    fn stencil_register_passes();
}

/// What the tool looks for in a plugin.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetPassPluginInfo() -> Plugin {
    Plugin {
        interface: INTERFACE,
        name: c"stencil".as_ptr(),
        version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
        register: stencil_register_passes,
    }
}

/// Passes that write files.
const WRITERS: [(&str, &str); 2] = [
    ("stencil-emit-ptx", "Write the PTX of a module in the LLVM dialect to the file `output`"),
    ("stencil-emit-plan", "Write the launch plan of the gpu level to the file `output`"),
];

/// Names and summaries, as C has them.
fn passes() -> &'static [(CString, CString)] {
    static PASSES: OnceLock<Vec<(CString, CString)>> = OnceLock::new();
    PASSES.get_or_init(|| {
        let ours = registry::passes().map(|pass| (pass.name, pass.summary));
        let text = |text| CString::new(text).unwrap_or_default();
        ours.chain(WRITERS).map(|(name, summary)| (text(name), text(summary))).collect()
    })
}

fn name(pass: usize) -> &'static str {
    passes().get(pass).and_then(|(name, _)| name.to_str().ok()).unwrap_or_default()
}

/// The number of passes.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_pass_count() -> usize {
    passes().len()
}

/// The name of a pass.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_pass_name(pass: usize) -> *const c_char {
    passes().get(pass).map_or(c"".as_ptr(), |(name, _)| name.as_ptr())
}

/// What a pass does.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_pass_summary(pass: usize) -> *const c_char {
    passes().get(pass).map_or(c"".as_ptr(), |(_, summary)| summary.as_ptr())
}

/// Whether the options are some of the pass.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_pass_takes(
    pass: usize,
    options: MlirStringRef,
    context: *mut c_void,
    wrong: extern "C" fn(*mut c_void, MlirStringRef),
) -> bool {
    let checked = guarded(|| match output(name(pass), text(options)?)? {
        Some(_) => Ok(()),
        None => steps(name(pass), text(options)?).map(drop),
    });
    let Err(error) = checked else { return true };
    let why = error.message;
    wrong(context, MlirStringRef { data: why.as_ptr().cast(), length: why.len() });
    false
}

/// Runs a pass; a failure has emitted an error.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_pass_run(
    pass: usize,
    options: MlirStringRef,
    module: MlirModule,
) -> bool {
    // SAFETY: the module is the tool's, which keeps it: it is not dropped here.
    let mut module = ManuallyDrop::new(unsafe { Module::from_raw(module) });
    // SAFETY: the context of a module that lives.
    let context = unsafe { ContextRef::from_raw(mlir_sys::mlirModuleGetContext(module.to_raw())) };
    let ran = guarded(|| {
        let (name, options) = (name(pass), text(options)?);
        match output(name, options)? {
            None => Runner::default().run(&context, &mut module, &steps(name, options)?),
            Some(file) if name == "stencil-emit-plan" => {
                let plan = launch_plan::of(&context, &module)?.to_json();
                write(file, plan.map(|json| json + "\n").map_err(|e| Error::user(e.to_string())))
            }
            Some(file) => {
                let libdevice = std::env::var_os("STENCILC_LIBDEVICE");
                let libdevice = libdevice.as_ref().map(std::path::Path::new);
                write(file, emit_ptx::emit(&context, &module, libdevice)?.ptx())
            }
        }
    });
    let Err(error) = ran else { return true };
    emit(&context, &error);
    false
}

/// No panic crosses to C++.
fn guarded(work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::internal("a panic; see the text on standard error")))
}

fn steps(name: &str, options: &str) -> Result<Vec<stencil_passes::pass::Step>, Error> {
    let pipeline = match options {
        "" => format!("builtin.module({name})"),
        options => format!("builtin.module({name}{{{options}}})"),
    };
    pipeline_text::parse(&pipeline)
}

/// The file of a pass that writes one; none of the others.
fn output<'o>(name: &str, options: &'o str) -> Result<Option<&'o str>, Error> {
    if WRITERS.iter().all(|(writer, _)| *writer != name) {
        return Ok(None);
    }
    let file = options.strip_prefix("output=").filter(|file| !file.is_empty());
    file.map(Some).ok_or_else(|| Error::user(format!("{name} needs its one option output=FILE")))
}

fn write(file: &str, text: Result<String, Error>) -> Result<(), Error> {
    std::fs::write(file, text?).map_err(|error| Error::user(format!("{file}: {error}")))
}

fn text<'a>(text: MlirStringRef) -> Result<&'a str, Error> {
    // SAFETY: the string is the caller's, and lives during the call.
    let bytes = unsafe { slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    std::str::from_utf8(bytes).map_err(|_| Error::user("the options are not UTF-8"))
}

/// Emits an error at its place.
fn emit(context: &melior::Context, error: &Error) {
    let at = |place: &Place| match place == &Place::unknown() {
        true => melior::ir::Location::unknown(context),
        false => melior::ir::Location::new(context, &place.file, place.line, place.column),
    };
    let mut message = error.message.clone();
    for (place, note) in &error.notes {
        message += &format!("\n{place}: {note}");
    }
    if let Ok(message) = CString::new(message) {
        // SAFETY: the location is of the context; the text is copied.
        unsafe { mlir_sys::mlirEmitError(at(&error.place).to_raw(), message.as_ptr()) };
    }
}

