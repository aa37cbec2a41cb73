/* The C interface of stencilc with the compiler: link libstencilc alone, which has all functions of
 * libstencil_runtime too.
 *
 * Made by cbindgen; do not edit. */

#ifndef STENCILC_H
#define STENCILC_H

#include <stddef.h>
#include "stencil.h"

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Compiles a program. `name` stands for its file in messages; one that ends with `.mlir` is a
 * module in MLIR (stencil IR, or a function of affine loops), one with `.sl` a program of SL, any
 * other a program in the language. `options` are those of `stencilc run` that describe a compile,
 * each a string: "-D", "N=100", "--fast-math"; "--target" with "cuda", "cpu", "reference", "sim"
 * or "auto"; "--devices" with "4", "2x2" or the numbers of GPUs "0,2": devices that share each
 * run of the program; or "--device-memory" with "4GiB": runs out of core. The fields of both lie
 * on the host. The default target is "auto": "cuda" where there is a device, else "cpu"; without
 * a device, affine loops and programs with an option for GPUs alone run on "reference". All texts
 * are copied. `program` gets a handle, which the caller frees by stencil_program_free.
 */
stencil_status stencil_compile(const char *name,
                               const char *source,
                               size_t option_count,
                               const char *const *options,
                               stencil_program *program);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STENCILC_H */
