//! The functions that C calls to bind fields, to do a run, and for its results.

use crate::caller::{self, place, put_bytes, text, values};
use crate::exports::{Report, RunHandle, element};
use crate::fault::{Fault, Status, guarded};
use crate::handles;
use std::ffi::{c_char, c_void};
use std::sync::atomic::Ordering;
use stencil_runtime::host::{Binding, Given, MOST_DIMENSIONS};
use stencil_runtime::plan::Role;

/// Memory for a field, as C describes it.
struct Described {
    run: RunHandle,
    field: *const c_char,
    type_: i32,
    rank: u32,
    shape: *const i64,
}

impl Described {
    /// Binds memory of the host.
    fn bind_host(&self, strides: *const i64, address: usize, writable: bool) -> Result<(), Fault> {
        let strides = strides_of(strides, self.rank)?;
        self.bind(caller::host(address, strides, writable))
    }

    fn bind(&self, given: Given) -> Result<(), Fault> {
        let run = handles::run(self.run)?;
        let name = text(self.field, "field")?;
        let shape = values(self.shape, rank(self.rank)?, "shape")?;
        let binding = Binding::new(&run.program.plan, &name, element(self.type_)?, &shape, given)?;
        run.state()?.run.fields.insert(name, binding);
        Ok(())
    }
}

fn rank(rank: u32) -> Result<usize, Fault> {
    let found = usize::try_from(rank).ok().filter(|rank| *rank <= MOST_DIMENSIONS);
    found.ok_or_else(|| {
        Fault::argument(format!("a field has at most {MOST_DIMENSIONS} dimensions, not {rank}"))
    })
}

fn strides_of(strides: *const i64, dimensions: u32) -> Result<Option<Vec<i64>>, Fault> {
    let dimensions = rank(dimensions)?;
    if strides.is_null() {
        return Ok(None);
    }
    values(strides, dimensions, "strides").map(Some)
}

/// Binds memory of the host to a field: `shape` has the cells and `strides` the bytes from a cell
/// to the next one of each dimension, the slowest first. Strides may be negative; null means
/// row-major without padding. `data` is the cell of index 0 in each dimension. The field's name,
/// shape and strides are copied. The memory belongs to the caller, is used only within
/// stencil_run_execute, and stays bound until another is. A state field has the result afterwards,
/// and must share no memory with another field: stencil_run_execute refuses what it can tell of
/// that. Cells need not be aligned.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_bind(
    run: RunHandle,
    field: *const c_char,
    type_: i32,
    rank: u32,
    shape: *const i64,
    strides: *const i64,
    data: *mut c_void,
) -> Status {
    guarded(|| {
        let memory = Described { run, field, type_, rank, shape };
        memory.bind_host(strides, data.expose_provenance(), true)
    })
}

/// As stencil_run_bind, for a field that is only read.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_bind_const(
    run: RunHandle,
    field: *const c_char,
    type_: i32,
    rank: u32,
    shape: *const i64,
    strides: *const i64,
    data: *const c_void,
) -> Status {
    guarded(|| {
        let memory = Described { run, field, type_, rank, shape };
        memory.bind_host(strides, data.expose_provenance(), false)
    })
}

/// Binds memory of the run's CUDA device to a field, row-major without padding; `address` is a
/// CUdeviceptr. Writes of other streams to it must be done before stencil_run_execute. If a run
/// fails, the cells of a state field are undefined afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_bind_device(
    run: RunHandle,
    field: *const c_char,
    type_: i32,
    rank: u32,
    shape: *const i64,
    address: u64,
) -> Status {
    guarded(|| Described { run, field, type_, rank, shape }.bind(caller::device(address, None)))
}

/// As stencil_run_bind_device, with the bytes from a cell to the next one of each dimension. Such
/// fields make up an array of structs, or of blocks: all numbers of its cells are bound, and the
/// program is compiled with the layout aos or blocks. For blocks the shape has one dimension more
/// than the field: the last two are blocks of its last dimension, and the 32 cells of a block.
/// stencil_run_execute refuses others.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_bind_device_strides(
    run: RunHandle,
    field: *const c_char,
    type_: i32,
    rank: u32,
    shape: *const i64,
    strides: *const i64,
    address: u64,
) -> Status {
    guarded(|| {
        let memory = Described { run, field, type_, rank, shape };
        memory.bind(caller::device(address, strides_of(strides, rank)?))
    })
}

/// The shape that a field has with the sizes and fields that are set: `shape` gets its extents, of
/// which there are `rank`. Scalars need not be set.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_shape(
    run: RunHandle,
    field: *const c_char,
    rank: u32,
    shape: *mut i64,
) -> Status {
    guarded(|| {
        let run = handles::run(run)?;
        let name = text(field, "field")?;
        let fields = &run.program.plan.fields;
        let found = fields.iter().enumerate().find(|(_, field)| field.name == name);
        let (number, declared) =
            found.ok_or_else(|| Fault::argument(format!("there is no field `{name}`")))?;
        let own = declared.extents.len();
        if own != rank as usize {
            return Err(Fault::argument(format!(
                "field `{name}` has {own} dimensions, not {rank}"
            )));
        }
        let shapes = run.state()?.run.shapes(&run.program)?;
        let extents = shapes.get(number).map(Vec::as_slice).unwrap_or_default();
        let extents: Vec<i64> =
            extents.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        let bytes: Vec<u8> = extents.iter().flat_map(|extent| extent.to_ne_bytes()).collect();
        put_bytes(shape.cast(), &bytes, "shape")
    })
}

/// Does the run, and returns when it is done. A run that fails leaves memory of the host as it was.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_execute(run: RunHandle) -> Status {
    guarded(|| handles::run(run)?.execute())
}

/// Ends a run that another thread is doing, before its next launch or step. It has no effect on a
/// run that is not being done.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_cancel(run: RunHandle) -> Status {
    guarded(|| {
        handles::run(run)?.cancel.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// Tells what the last stencil_run_execute of this run did: `report` gets it.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_report(run: RunHandle, report: *mut Report) -> Status {
    guarded(|| {
        let result = place(report, "report")?;
        let run = handles::run(run)?;
        let state = run.state()?;
        let done = state.done.as_ref().ok_or_else(not_done)?;
        result.put(Report {
            steps: done.ran.steps,
            launches: done.ran.launches,
            seconds: done.ran.seconds.unwrap_or(-1.0),
            copies: done.copies.count,
            copied_bytes: done.copies.bytes,
            met: done.ran.met.map_or(-1, i32::from),
        });
        Ok(())
    })
}

/// Writes the value of a reduction to `value`, which has room for a number of its type. The
/// type is that of stencil_program_field, also of a bool, a count or a place.
#[unsafe(no_mangle)]
pub extern "C" fn stencil_run_reduction(
    run: RunHandle,
    name: *const c_char,
    type_: i32,
    value: *mut c_void,
) -> Status {
    guarded(|| {
        let run = handles::run(run)?;
        let name = text(name, "name")?;
        let element = element(type_)?;
        let declared = run.program.plan.field(&name).filter(|field| field.role == Role::Reduction);
        let Some(declared) = declared else {
            return Err(Fault::new(Status::NoResult, format!("there is no reduction `{name}`")));
        };
        if declared.element != element {
            let own = declared.element;
            return Err(Fault::argument(format!("the reduction `{name}` is {own}, not {element}")));
        }
        let state = run.state()?;
        let done = state.done.as_ref().ok_or_else(not_done)?;
        let found = done.ran.outputs.get(&name).filter(|array| array.len() == 1);
        let found = found.ok_or_else(|| {
            Fault::new(Status::NoResult, format!("the run has no value of `{name}`"))
        })?;
        put_bytes(value, found.bytes(), "value")
    })
}

fn not_done() -> Fault {
    Fault::new(Status::NoResult, "the run is not done; call stencil_run_execute first")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::{ProgramHandle, stencil_load, stencil_run_new, stencil_run_size};
    use stencil_runtime::array::Element;

    const PLAN: &str = include_str!("../../../../runtime/tests/data/heat.plan.json");

    fn load(plan: &str) -> (Status, ProgramHandle) {
        let (code, mut program) = ([0_u8], 0);
        let status = stencil_load(plan.as_ptr(), plan.len(), code.as_ptr(), 1, &raw mut program);
        (status, program)
    }

    /// A run with the sizes N = 4 and M = 2, and the code of f32.
    fn run() -> (RunHandle, i32) {
        let (status, program) = load(PLAN);
        assert_eq!(status, Status::Ok, "{}", crate::fault::message());
        let mut run = 0;
        assert_eq!(stencil_run_new(program, &raw mut run), Status::Ok);
        for (name, size) in [(c"N", 4), (c"M", 2)] {
            assert_eq!(stencil_run_size(run, name.as_ptr(), size), Status::Ok);
        }
        let float = Element::ALL.iter().position(|one| *one == Element::F32).unwrap();
        (run, i32::try_from(float).unwrap())
    }

    #[test]
    fn a_plan_for_a_processor_is_told_how_to_load() {
        let plan = PLAN.replace("\"sm_90\"", "\"znver4\"");
        assert_eq!(load(&plan).0, Status::Plan);
        let message = crate::fault::message();
        assert!(message.contains("for znver4, a processor; link the object file"), "{message}");
    }

    #[test]
    fn shapes_are_told_before_scalars_are_set() {
        let (run, _) = run();
        let mut shape = [0_i64; 2];
        assert_eq!(stencil_run_shape(run, c"A".as_ptr(), 2, shape.as_mut_ptr()), Status::Ok);
        assert_eq!(shape, [4, 5]);
        for (field, rank, place) in [
            (c"Z", 2, shape.as_mut_ptr()),
            (c"A", 3, shape.as_mut_ptr()),
            (c"A", 2, std::ptr::null_mut()),
        ] {
            let status = stencil_run_shape(run, field.as_ptr(), rank, place);
            assert_eq!(status, Status::Argument, "{field:?}");
        }
    }

    #[test]
    fn fields_that_share_memory_are_refused() {
        let (run, float) = run();
        let mut cells = [0_f32; 24];
        let (a, k) = ([4_i64, 5], [4_i64]);
        let memory = cells.as_mut_ptr();
        let bind = |field: &std::ffi::CStr, shape: &[i64], first: usize| {
            let (rank, data) = (shape.len() as u32, memory.wrapping_add(first).cast());
            let (name, shape) = (field.as_ptr(), shape.as_ptr());
            stencil_run_bind(run, name, float, rank, shape, std::ptr::null(), data)
        };
        assert_eq!((bind(c"A", &a, 0), bind(c"K", &k, 0)), (Status::Ok, Status::Ok));
        assert_eq!(stencil_run_execute(run), Status::Argument);
        let message = crate::fault::message();
        assert!(message.contains("fields `A` and `K` share memory"), "{message}");
    }
}
