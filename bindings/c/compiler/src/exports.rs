//! The function that C calls to compile. `stencilc.h` is made from this file.

use crate::compiled;
use std::ffi::c_char;
use stencil_c_runtime::caller::{place, text, values};
use stencil_c_runtime::exports::ProgramHandle;
use stencil_c_runtime::fault::{Fault, Status, guarded};
use stencil_c_runtime::run::publish;

/// Options of a compile at most.
const MOST_OPTIONS: usize = 1000;

/// Compiles a program. `name` stands for its file in messages; one that ends with `.mlir` is a
/// module in MLIR (stencil IR, or a function of affine loops), one with `.sl` a program of SL, any
/// other a program in the language. `options` are those of `stencilc run` that describe a compile,
/// each a string: "-D", "N=100", "--fast-math"; "--target" with "cuda", "cpu", "reference", "sim"
/// or "auto"; "--devices" with "4", "2x2" or the numbers of GPUs "0,2": devices that share each
/// run of the program; or "--device-memory" with "4GiB": runs out of core. The fields of both lie
/// on the host. The default target is "auto": "cuda" where there is a device, else "cpu"; without
/// a device, affine loops and programs with an option for GPUs alone run on "reference". All texts
/// are copied. `program` gets a handle, which the caller frees by stencil_program_free.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_compile(
    name: *const c_char,
    source: *const c_char,
    option_count: usize,
    options: *const *const c_char,
    program: *mut ProgramHandle,
) -> Status {
    guarded(|| {
        let program = place(program, "program")?;
        let (name, source) = (text(name, "name")?, text(source, "source")?);
        if option_count > MOST_OPTIONS {
            return Err(Fault::argument(format!(
                "a compile has at most {MOST_OPTIONS} options, not {option_count}"
            )));
        }
        let options = values(options, option_count, "options")?;
        let options: Result<Vec<_>, _> =
            options.iter().map(|option| text(*option, "an option")).collect();
        program.put(publish(compiled(&name, &source, &options?)?));
        Ok(())
    })
}
