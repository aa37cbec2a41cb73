/* The C interface of stencilc: loads a launch plan and its code, and runs it.
 *
 * A function that can fail returns a status; 0 is success. stencil_error_message has the message of
 * the thread's last failure. No failure ends the process, unless malloc has no memory for a small
 * piece. A handle that is freed, made up or of another kind is an error.
 *
 * Every function may be called by any thread. Two threads may use one run at a time only where one
 * of them calls stencil_run_cancel or stencil_run_free; another call returns STENCIL_STATUS_BUSY.
 *
 * Handles belong to the caller, who frees them. Memory belongs to whoever made it: the library
 * copies texts, names and shapes within the call, and uses bound memory within
 * stencil_run_execute alone.
 *
 * Made by cbindgen; do not edit. */

#ifndef STENCIL_H
#define STENCIL_H

#include <stddef.h>
#include <stdint.h>

/**
 * What became of a call. Every function that can fail returns one.
 */
enum stencil_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The call did its work.
     */
    STENCIL_STATUS_OK = 0,
    /**
     * An argument is null, not aligned, out of range or no UTF-8, or fits no field.
     */
    STENCIL_STATUS_ARGUMENT = 1,
    /**
     * A handle is none of a live object of this kind: it was freed, or never made here.
     */
    STENCIL_STATUS_HANDLE = 2,
    /**
     * Another thread is using the run.
     */
    STENCIL_STATUS_BUSY = 3,
    /**
     * The plan or its code can't be read.
     */
    STENCIL_STATUS_PLAN = 4,
    /**
     * The program or an option of its compile is wrong.
     */
    STENCIL_STATUS_COMPILE = 5,
    /**
     * Sizes, scalars, steps or shapes are missing or contradict each other.
     */
    STENCIL_STATUS_SIZES = 6,
    /**
     * There is no CUDA driver or no such device.
     */
    STENCIL_STATUS_NO_DEVICE = 7,
    /**
     * The device failed.
     */
    STENCIL_STATUS_DEVICE = 8,
    /**
     * The machine or the device has too little memory.
     */
    STENCIL_STATUS_MEMORY = 9,
    /**
     * The run was cancelled.
     */
    STENCIL_STATUS_CANCELLED = 10,
    /**
     * There is no such result: the run is not done, or has no such reduction.
     */
    STENCIL_STATUS_NO_RESULT = 11,
    /**
     * The library is wrong. Please report it.
     */
    STENCIL_STATUS_INTERNAL = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum stencil_status stencil_status;
#else
typedef int32_t stencil_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The type of a cell or a number.
 */
enum stencil_element
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * IEEE half precision, 2 bytes.
     */
    STENCIL_ELEMENT_F16 = 0,
    /**
     * The upper half of a float, 2 bytes.
     */
    STENCIL_ELEMENT_BF16 = 1,
    /**
     * float
     */
    STENCIL_ELEMENT_F32 = 2,
    /**
     * double
     */
    STENCIL_ELEMENT_F64 = 3,
    /**
     * int8_t
     */
    STENCIL_ELEMENT_I8 = 4,
    /**
     * int16_t
     */
    STENCIL_ELEMENT_I16 = 5,
    /**
     * int32_t
     */
    STENCIL_ELEMENT_I32 = 6,
    /**
     * int64_t
     */
    STENCIL_ELEMENT_I64 = 7,
    /**
     * uint8_t
     */
    STENCIL_ELEMENT_U8 = 8,
    /**
     * uint16_t
     */
    STENCIL_ELEMENT_U16 = 9,
    /**
     * uint32_t
     */
    STENCIL_ELEMENT_U32 = 10,
    /**
     * uint64_t
     */
    STENCIL_ELEMENT_U64 = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum stencil_element stencil_element;
#else
typedef int32_t stencil_element;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The use of a field.
 */
enum stencil_role
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Read and written: bind it by stencil_run_bind.
     */
    STENCIL_ROLE_STATE = 0,
    /**
     * Only read.
     */
    STENCIL_ROLE_CONST = 1,
    /**
     * Memory of the library's own; not bound.
     */
    STENCIL_ROLE_TEMP = 2,
    /**
     * One number, read by stencil_run_reduction after the run.
     */
    STENCIL_ROLE_REDUCTION = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum stencil_role stencil_role;
#else
typedef int32_t stencil_role;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A program: a plan with its code. 0 is none.
 */
typedef uint64_t stencil_program;

/**
 * A field of a program.
 */
typedef struct {
    /**
     * An enum stencil_element.
     */
    int32_t element;
    /**
     * An enum stencil_role.
     */
    int32_t role;
    /**
     * The number of its dimensions.
     */
    uint32_t rank;
} stencil_field;

/**
 * A run of a program: its sizes, scalars and fields. 0 is none.
 */
typedef uint64_t stencil_run;

/**
 * Counts and times of a run.
 */
typedef struct {
    /**
     * Steps taken; fewer than asked for where an `until` of the program ended early.
     */
    int64_t steps;
    /**
     * Kernels launched.
     */
    uint64_t launches;
    /**
     * Seconds that the steps took on the device; negative where that is not measured.
     */
    double seconds;
    /**
     * Copies of whole fields beside those between host and device: for strides, for values that
     * the last step left in another buffer, and for all fields elsewhere than on CUDA.
     */
    uint64_t copies;
    /**
     * The bytes of these copies.
     */
    uint64_t copied_bytes;
    /**
     * 1 where the condition of an `until` was met, 0 where not, -1 where there is none.
     */
    int32_t met;
} stencil_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, as text that is never freed.
 */
const char *stencil_version(void);

/**
 * The name of a status as text that is never freed; "unknown" for any other number.
 */
const char *stencil_status_name(int32_t status);

/**
 * Copies the message of the last call of this thread that failed to `buffer`: as much as there is
 * room for, always ended by a zero. Returns the bytes of the whole message, without the zero.
 * `buffer` may be null. A call that succeeds leaves the message as it is.
 */
size_t stencil_error_message(char *buffer, size_t capacity);

/**
 * Makes a program of a plan (JSON) for CUDA and its code (PTX or a cubin). Both are copied.
 * `program` gets a handle, which the caller frees by stencil_program_free.
 */
stencil_status stencil_load(const uint8_t *text,
                            size_t text_bytes,
                            const uint8_t *code,
                            size_t code_bytes,
                            stencil_program *program);

/**
 * As stencil_load, where `program` is no live program yet; else it stays as it is. Several threads
 * may call this for one place at once: one of them loads.
 */
stencil_status stencil_load_once(const uint8_t *text,
                                 size_t text_bytes,
                                 const uint8_t *code,
                                 size_t code_bytes,
                                 stencil_program *program);

/**
 * As stencil_load_once, with code for a processor that is linked into the process. `code` is the
 * table that the object file of the plan has under `symbol`: `extern const void *const
 * stencil_code_...[]`. The program runs on as many threads as the machine runs at once, one run at
 * a time.
 */
stencil_status stencil_load_linked(const uint8_t *text,
                                   size_t text_bytes,
                                   const char *symbol,
                                   const void *code,
                                   stencil_program *program);

/**
 * Makes a program of the file `NAME.plan.json` for CUDA and of `NAME.ptx` beside it.
 */
stencil_status stencil_load_file(const char *path, stencil_program *program);

/**
 * Frees a program. Its runs go on to work.
 */
stencil_status stencil_program_free(stencil_program program);

/**
 * The number of fields of a program.
 */
stencil_status stencil_program_fields(stencil_program program, uint32_t *count);

/**
 * A field by its number from 0, in the order of the plan. Its name goes to `name` as by
 * stencil_error_message, and `length` gets the bytes of the whole name; `name` and `length` may be
 * null. The cells of structs and vecs are a field for each number: `W.h`, `V.0`.
 */
stencil_status stencil_program_field(stencil_program program,
                                     uint32_t number,
                                     stencil_field *field,
                                     char *name,
                                     size_t capacity,
                                     size_t *length);

/**
 * Makes a run of a program. `run` gets a handle, which the caller frees by stencil_run_free. A run
 * can be done again, with other settings.
 */
stencil_status stencil_run_new(stencil_program program, stencil_run *run);

/**
 * Frees a run. One that another thread is doing goes on to its end.
 */
stencil_status stencil_run_free(stencil_run run);

/**
 * Chooses the CUDA device by its number; 0 unless it is chosen. Programs of other targets, and
 * those that several devices share, have no use for it.
 */
stencil_status stencil_run_device(stencil_run run, int32_t device);

/**
 * Chooses the CUDA stream (a CUstream or cudaStream_t of the run's device) that the work goes to,
 * behind the work that is there; null for a stream of the run's own. The stream lives until the
 * run is done. Programs of other targets have no use for it.
 */
stencil_status stencil_run_stream(stencil_run run, void *stream);

/**
 * Sets a size. Sizes that the shapes of fields tell may be left out.
 */
stencil_status stencil_run_size(stencil_run run, const char *name, int64_t size);

/**
 * Sets a scalar to the number of the given type at `value`, which must fit the scalar's own type.
 */
stencil_status stencil_run_scalar(stencil_run run,
                                  const char *name,
                                  int32_t type_,
                                  const void *value);

/**
 * Sets the number of steps; the program's own unless it is set.
 */
stencil_status stencil_run_steps(stencil_run run, int64_t steps);

/**
 * Sets the number of the first step, which `t` gives; 0 unless it is set.
 */
stencil_status stencil_run_first_step(stencil_run run, int64_t step);

/**
 * Binds memory of the host to a field: `shape` has the cells and `strides` the bytes from a cell
 * to the next one of each dimension, the slowest first. Strides may be negative; null means
 * row-major without padding. `data` is the cell of index 0 in each dimension. The field's name,
 * shape and strides are copied. The memory belongs to the caller, is used only within
 * stencil_run_execute, and stays bound until another is. A state field has the result afterwards,
 * and must share no memory with another field: stencil_run_execute refuses what it can tell of
 * that. Cells need not be aligned.
 */
stencil_status stencil_run_bind(stencil_run run,
                                const char *field,
                                int32_t type_,
                                uint32_t rank,
                                const int64_t *shape,
                                const int64_t *strides,
                                void *data);

/**
 * As stencil_run_bind, for a field that is only read.
 */
stencil_status stencil_run_bind_const(stencil_run run,
                                      const char *field,
                                      int32_t type_,
                                      uint32_t rank,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      const void *data);

/**
 * Binds memory of the run's CUDA device to a field, row-major without padding; `address` is a
 * CUdeviceptr. Writes of other streams to it must be done before stencil_run_execute. If a run
 * fails, the cells of a state field are undefined afterwards.
 */
stencil_status stencil_run_bind_device(stencil_run run,
                                       const char *field,
                                       int32_t type_,
                                       uint32_t rank,
                                       const int64_t *shape,
                                       uint64_t address);

/**
 * As stencil_run_bind_device, with the bytes from a cell to the next one of each dimension. Such
 * fields make up an array of structs, or of blocks: all numbers of its cells are bound, and the
 * program is compiled with the layout aos or blocks. For blocks the shape has one dimension more
 * than the field: the last two are blocks of its last dimension, and the 32 cells of a block.
 * stencil_run_execute refuses others.
 */
stencil_status stencil_run_bind_device_strides(stencil_run run,
                                               const char *field,
                                               int32_t type_,
                                               uint32_t rank,
                                               const int64_t *shape,
                                               const int64_t *strides,
                                               uint64_t address);

/**
 * The shape that a field has with the sizes and fields that are set: `shape` gets its extents, of
 * which there are `rank`. Scalars need not be set.
 */
stencil_status stencil_run_shape(stencil_run run, const char *field, uint32_t rank, int64_t *shape);

/**
 * Does the run, and returns when it is done. A run that fails leaves memory of the host as it was.
 */
stencil_status stencil_run_execute(stencil_run run);

/**
 * Ends a run that another thread is doing, before its next launch or step. It has no effect on a
 * run that is not being done.
 */
stencil_status stencil_run_cancel(stencil_run run);

/**
 * Tells what the last stencil_run_execute of this run did: `report` gets it.
 */
stencil_status stencil_run_report(stencil_run run, stencil_report *report);

/**
 * Writes the value of a reduction to `value`, which has room for a number of its type. The
 * type is that of stencil_program_field, also of a bool, a count or a place.
 */
stencil_status stencil_run_reduction(stencil_run run, const char *name, int32_t type_, void *value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STENCIL_H */
