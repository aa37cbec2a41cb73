//! The functions that C calls. `stencil.h` is made from this file; a test says when it is old.

use crate::caller::{self, get, number_bytes, place, put_text, text, values};
use crate::fault::{self, Fault, Status, guarded};
use crate::handles::{self, Object};
use crate::run::{self, Run};
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use stencil_runtime::array::{Array, Element};
use stencil_runtime::bounded_read::{MOST_CODE, MOST_TEXT, read};
use stencil_runtime::cpu::Processor;
use stencil_runtime::host::{Code, Program};
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{FieldDecl, Plan, Role, ptx_beside};

/// A program: a plan with its code. 0 is none.
pub type ProgramHandle = u64;

/// A run of a program: its sizes, scalars and fields. 0 is none.
pub type RunHandle = u64;

/// The type of a cell or a number.
#[repr(i32)]
pub enum ElementCode {
    /// IEEE half precision, 2 bytes.
    F16 = 0,
    /// The upper half of a float, 2 bytes.
    Bf16 = 1,
    /// float
    F32 = 2,
    /// double
    F64 = 3,
    /// int8_t
    I8 = 4,
    /// int16_t
    I16 = 5,
    /// int32_t
    I32 = 6,
    /// int64_t
    I64 = 7,
    /// uint8_t
    U8 = 8,
    /// uint16_t
    U16 = 9,
    /// uint32_t
    U32 = 10,
    /// uint64_t
    U64 = 11,
}

/// The use of a field.
#[repr(i32)]
pub enum RoleCode {
    /// Read and written: bind it by stencil_run_bind.
    State = 0,
    /// Only read.
    Const = 1,
    /// Memory of the library's own; not bound.
    Temp = 2,
    /// One number, read by stencil_run_reduction after the run.
    Reduction = 3,
}

/// A field of a program.
#[repr(C)]
pub struct Field {
    /// An enum stencil_element.
    pub element: i32,
    /// An enum stencil_role.
    pub role: i32,
    /// The number of its dimensions.
    pub rank: u32,
}

/// Counts and times of a run.
#[repr(C)]
pub struct Report {
    /// Steps taken; fewer than asked for where an `until` of the program ended early.
    pub steps: i64,
    /// Kernels launched.
    pub launches: u64,
    /// Seconds that the steps took on the device; negative where that is not measured.
    pub seconds: f64,
    /// Copies of whole fields beside those between host and device: for strides, for values that
    /// the last step left in another buffer, and for all fields elsewhere than on CUDA.
    pub copies: u64,
    /// The bytes of these copies.
    pub copied_bytes: u64,
    /// 1 where the condition of an `until` was met, 0 where not, -1 where there is none.
    pub met: i32,
}

/// The version of the library, as text that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The name of a status as text that is never freed; "unknown" for any other number.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_status_name(status: i32) -> *const c_char {
    const NAMES: [&str; 13] = [
        "ok\0",
        "wrong argument\0",
        "wrong handle\0",
        "busy\0",
        "wrong plan\0",
        "compile error\0",
        "wrong sizes\0",
        "no CUDA device\0",
        "device error\0",
        "out of memory\0",
        "cancelled\0",
        "no result\0",
        "internal fault\0",
    ];
    let name = usize::try_from(status).ok().and_then(|status| NAMES.get(status));
    name.unwrap_or(&"unknown\0").as_ptr().cast()
}

/// Copies the message of the last call of this thread that failed to `buffer`: as much as there is
/// room for, always ended by a zero. Returns the bytes of the whole message, without the zero.
/// `buffer` may be null. A call that succeeds leaves the message as it is.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_error_message(buffer: *mut c_char, capacity: usize) -> usize {
    let mut length = 0;
    let status = guarded(|| {
        length = put_text(&fault::message(), buffer, capacity);
        Ok(())
    });
    if status == Status::Ok { length } else { 0 }
}

/// The type of a number in the interface.
pub(crate) fn element(code: i32) -> Result<Element, Fault> {
    let found = usize::try_from(code).ok().and_then(|code| Element::ALL.get(code).copied());
    found.ok_or_else(|| {
        Fault::argument(format!("{code} is no type of a cell; see enum stencil_element"))
    })
}

/// Reads a plan.
fn plan(text: Vec<u8>, origin: &str) -> Result<Plan, Fault> {
    let wrong = |why: String| Fault::new(Status::Plan, why);
    let text =
        String::from_utf8(text).map_err(|_| wrong(format!("{origin} is not text (UTF-8)")))?;
    Plan::from_json(&text, origin).map_err(|error| wrong(error.to_string()))
}

/// Refuses a plan whose code is for a processor.
fn for_cuda(plan: &Plan) -> Result<(), Fault> {
    let (program, arch) = (&plan.program, &plan.target.arch);
    if arch.starts_with("sm_") {
        return Ok(());
    }
    Err(Fault::new(
        Status::Plan,
        format!(
            "the plan of {program} is for {arch}, a processor; link the object file that was made \
             with it, and call stencil_load_linked"
        ),
    ))
}

fn loaded(
    text: *const u8,
    text_bytes: usize,
    code: *const u8,
    code_bytes: usize,
) -> Result<Program, Fault> {
    if text_bytes as u64 > MOST_TEXT || code_bytes as u64 > MOST_CODE {
        return Err(Fault::argument(format!(
            "a plan has at most {MOST_TEXT} bytes, its code at most {MOST_CODE}"
        )));
    }
    let plan = plan(values(text, text_bytes, "the plan")?, "the plan")?;
    for_cuda(&plan)?;
    Ok(Program::new(plan, Code::Cuda(values(code, code_bytes, "the code")?)))
}

/// Makes a program of a plan (JSON) for CUDA and its code (PTX or a cubin). Both are copied.
/// `program` gets a handle, which the caller frees by stencil_program_free.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_load(
    text: *const u8,
    text_bytes: usize,
    code: *const u8,
    code_bytes: usize,
    program: *mut ProgramHandle,
) -> Status {
    guarded(|| {
        let program = place(program, "program")?;
        program.put(run::publish(loaded(text, text_bytes, code, code_bytes)?));
        Ok(())
    })
}

/// As stencil_load, where `program` is no live program yet; else it stays as it is. Several threads
/// may call this for one place at once: one of them loads.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_load_once(
    text: *const u8,
    text_bytes: usize,
    code: *const u8,
    code_bytes: usize,
    program: *mut ProgramHandle,
) -> Status {
    load_once(program, || loaded(text, text_bytes, code, code_bytes))
}

/// As stencil_load_once, with code for a processor that is linked into the process. `code` is the
/// table that the object file of the plan has under `symbol`: `extern const void *const
/// stencil_code_...[]`. The program runs on as many threads as the machine runs at once, one run at
/// a time.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_load_linked(
    text: *const u8,
    text_bytes: usize,
    symbol: *const c_char,
    code: *const c_void,
    program: *mut ProgramHandle,
) -> Status {
    load_once(program, || {
        if text_bytes as u64 > MOST_TEXT {
            return Err(Fault::argument(format!("a plan has at most {MOST_TEXT} bytes")));
        }
        let plan = plan(values(text, text_bytes, "the plan")?, "the plan")?;
        let code = caller::linked(caller::text(symbol, "the symbol")?, code)?;
        let processor = Processor::new(plan.clone(), Arc::new(code), None);
        let processor = processor.map_err(|error| Fault::new(Status::Plan, error.to_string()))?;
        Ok(Program::new(plan, Code::Engine(Box::new(processor))))
    })
}

/// Makes a program where `program` is no live one yet. One thread does so at a time.
fn load_once(program: *mut ProgramHandle, load: impl FnOnce() -> Result<Program, Fault>) -> Status {
    static LOADING: Mutex<()> = Mutex::new(());
    guarded(|| {
        let result = place(program, "program")?;
        let _loading = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        if handles::program(get(program, "program")?).is_err() {
            result.put(run::publish(load()?));
        }
        Ok(())
    })
}

/// Makes a program of the file `NAME.plan.json` for CUDA and of `NAME.ptx` beside it.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_load_file(path: *const c_char, program: *mut ProgramHandle) -> Status {
    guarded(|| {
        let program = place(program, "program")?;
        let file = text(path, "path")?;
        let read = |path: &Path, most| {
            let why = |error| Fault::new(Status::Plan, format!("{}: {error}", path.display()));
            read(path, most).map_err(why)
        };
        let plan = plan(read(Path::new(&file), MOST_TEXT)?, &file)?;
        for_cuda(&plan)?;
        let code = read(&ptx_beside(Path::new(&file)), MOST_CODE)?;
        program.put(run::publish(Program::new(plan, Code::Cuda(code))));
        Ok(())
    })
}

/// Frees a program. Its runs go on to work.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_program_free(program: ProgramHandle) -> Status {
    guarded(|| handles::remove(program, |object| matches!(object, Object::Program(_)), "program"))
}

/// The number of fields of a program.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_program_fields(program: ProgramHandle, count: *mut u32) -> Status {
    guarded(|| {
        let count = place(count, "count")?;
        let fields = handles::program(program)?.plan.fields.len();
        count.put(u32::try_from(fields).unwrap_or(u32::MAX));
        Ok(())
    })
}

/// A field by its number from 0, in the order of the plan. Its name goes to `name` as by
/// stencil_error_message, and `length` gets the bytes of the whole name; `name` and `length` may be
/// null. The cells of structs and vecs are a field for each number: `W.h`, `V.0`.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_program_field(
    program: ProgramHandle,
    number: u32,
    field: *mut Field,
    name: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guarded(|| {
        let result = place(field, "field")?;
        let program = handles::program(program)?;
        let count = program.plan.fields.len();
        let field: &FieldDecl = program.plan.fields.get(number as usize).ok_or_else(|| {
            Fault::argument(format!("there is no field {number}; the program has {count}"))
        })?;
        let whole = put_text(&field.name, name, capacity);
        if !length.is_null() {
            place(length, "length")?.put(whole);
        }
        let element = Element::ALL.iter().position(|one| *one == field.element);
        let role = match field.role {
            Role::State => RoleCode::State,
            Role::Const => RoleCode::Const,
            Role::Temp => RoleCode::Temp,
            Role::Reduction => RoleCode::Reduction,
        };
        result.put(Field {
            element: element.and_then(|place| i32::try_from(place).ok()).unwrap_or(-1),
            role: role as i32,
            rank: u32::try_from(field.extents.len()).unwrap_or(u32::MAX),
        });
        Ok(())
    })
}

/// Makes a run of a program. `run` gets a handle, which the caller frees by stencil_run_free. A run
/// can be done again, with other settings.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_new(program: ProgramHandle, run: *mut RunHandle) -> Status {
    guarded(|| {
        let run = place(run, "run")?;
        run.put(Run::publish(handles::program(program)?));
        Ok(())
    })
}

/// Frees a run. One that another thread is doing goes on to its end.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_free(run: RunHandle) -> Status {
    guarded(|| handles::remove(run, |object| matches!(object, Object::Run(_)), "run"))
}

/// Chooses the CUDA device by its number; 0 unless it is chosen. Programs of other targets, and
/// those that several devices share, have no use for it.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_device(run: RunHandle, device: i32) -> Status {
    guarded(|| {
        handles::run(run)?.state()?.run.device = device;
        Ok(())
    })
}

/// Chooses the CUDA stream (a CUstream or cudaStream_t of the run's device) that the work goes to,
/// behind the work that is there; null for a stream of the run's own. The stream lives until the
/// run is done. Programs of other targets have no use for it.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_stream(run: RunHandle, stream: *mut c_void) -> Status {
    guarded(|| {
        handles::run(run)?.state()?.run.stream = caller::stream(stream);
        Ok(())
    })
}

/// Sets a size. Sizes that the shapes of fields tell may be left out.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_size(run: RunHandle, name: *const c_char, size: i64) -> Status {
    guarded(|| {
        let run = handles::run(run)?;
        let name = text(name, "name")?;
        if !run.program.plan.params.contains(&name) {
            let (program, known) = (&run.program.plan.program, run.program.plan.params.join(", "));
            return Err(Fault::new(
                Status::Sizes,
                format!("{program} has no run-time size `{name}`; it has {known}"),
            ));
        }
        run.state()?.run.request.sizes.insert(name, size);
        Ok(())
    })
}

/// Sets a scalar to the number of the given type at `value`, which must fit the scalar's own type.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_scalar(
    run: RunHandle,
    name: *const c_char,
    type_: i32,
    value: *const c_void,
) -> Status {
    guarded(|| {
        let run = handles::run(run)?;
        let name = text(name, "name")?;
        let element = element(type_)?;
        let mut number = Array::zeros(element, &[1])?;
        let bytes = number_bytes(value, element.size(), "value")?;
        number.bytes_mut().copy_from_slice(&bytes);
        let number = number.number(0).map(Numeral::from);
        let scalar = run.program.plan.scalars.iter().find(|scalar| scalar.name == name);
        let (Some(scalar), Some(number)) = (scalar, number) else {
            let known = run.program.plan.scalars.iter().map(|scalar| scalar.name.as_str());
            let (program, known) = (&run.program.plan.program, known.collect::<Vec<_>>());
            let text = format!("{program} has no scalar `{name}`; it has {}", known.join(", "));
            return Err(Fault::new(Status::Sizes, text));
        };
        if number.number(scalar.element).is_none() {
            let (own, what) = (scalar.element, "the type of the scalar");
            let text = format!("{number} is no {own}, {what} `{name}`");
            return Err(Fault::new(Status::Sizes, text));
        }
        run.state()?.run.request.scalars.insert(name, number);
        Ok(())
    })
}

/// Sets the number of steps; the program's own unless it is set.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_steps(run: RunHandle, steps: i64) -> Status {
    guarded(|| {
        handles::run(run)?.state()?.run.request.steps = Some(steps);
        Ok(())
    })
}

/// Sets the number of the first step, which `t` gives; 0 unless it is set.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_first_step(run: RunHandle, step: i64) -> Status {
    guarded(|| {
        handles::run(run)?.state()?.run.request.first_step = step;
        Ok(())
    })
}
