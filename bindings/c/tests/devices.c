/* Devices that share the runs of a program, and runs out of core: both give the bits of one device
 * that holds all fields, and what can't be is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencilc.h>

enum { N = 67, M = 203, STEPS = 11 };

#define FUNCTION                                                                                  \
    "param N\n"                                                                                   \
    "param M\n"                                                                                   \
    "grid G = [0..N-1, 0..M-1]\n"                                                                 \
    "field A : f32 on G\n"                                                                        \
    "fn f -> A [1..N-2, 1..M-2] = 0.5 * A[0,0] + 0.125 * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n"

static const char text[] =
    FUNCTION "reduce total : f64 = sum(f64(A[0,0])) on [0..N-1, 0..M-1]\nsteps 2\n";
/* Runs out of core have no reductions. */
static const char plain[] = FUNCTION "steps 2\n";

static const int64_t shape[] = {N, M};

/* Ends the process where a status is another one, or the library's message has not these words. */
static void expect(stencil_status status, stencil_status wanted, const char *words) {
    char message[4096] = "";
    if (status != STENCIL_STATUS_OK) stencil_error_message(message, sizeof message);
    if (status == wanted && strstr(message, words)) return;
    fprintf(stderr, "devices: status %d, expected %d: %s\n", (int)status, (int)wanted, message);
    exit(1);
}

static stencil_status compile(const char *source, const char *target, const char *option,
                              const char *value, stencil_program *program) {
    const char *options[] = {"--target",     target, "--tile", "8,64",
                             "--fp-contract", "off",  option,   value};
    return stencil_compile("devices.stencil", source, 8, options, program);
}

static stencil_status shared(const char *target, const char *devices, stencil_program *program) {
    return compile(text, target, "--devices", devices, program);
}

static stencil_status windowed(const char *target, const char *size, stencil_program *program) {
    return compile(plain, target, "--device-memory", size, program);
}

static stencil_run run(stencil_program program, float *cells) {
    stencil_run run;

    for (int cell = 0; cell < N * M; cell++) cells[cell] = (float)(cell * 7919 % 1000);
    expect(stencil_run_new(program, &run), STENCIL_STATUS_OK, "");
    expect(stencil_run_steps(run, STEPS), STENCIL_STATUS_OK, "");
    expect(stencil_run_bind(run, "A", STENCIL_ELEMENT_F32, 2, shape, NULL, cells),
           STENCIL_STATUS_OK, "");
    expect(stencil_run_execute(run), STENCIL_STATUS_OK, "");
    return run;
}

static void end(stencil_run run, stencil_program program) {
    /* Memory of a device is refused by the run. */
    expect(stencil_run_bind_device(run, "A", STENCIL_ELEMENT_F32, 2, shape, 4096),
           STENCIL_STATUS_OK, "");
    expect(stencil_run_execute(run), STENCIL_STATUS_ARGUMENT, "give it memory of the host");
    expect(stencil_run_free(run), STENCIL_STATUS_OK, "");
    expect(stencil_program_free(program), STENCIL_STATUS_OK, "");
}

static double run_shared(const char *devices, float *cells) {
    stencil_program program;
    double total;

    expect(shared("cpu", devices, &program), STENCIL_STATUS_OK, "");
    const stencil_run one = run(program, cells);
    expect(stencil_run_reduction(one, "total", STENCIL_ELEMENT_F64, &total), STENCIL_STATUS_OK,
           "");
    end(one, program);
    return total;
}

int main(void) {
    static const char *const lists[] = {"2", "2x2", "3"};
    static const char *const sizes[] = {"1GiB", "96KiB"};
    static float one[N * M], other[N * M];
    /* With one device all fields are in its memory. */
    const double total = run_shared("1", one);
    stencil_program program;

    for (size_t place = 0; place < sizeof lists / sizeof lists[0]; place++) {
        if (run_shared(lists[place], other) != total) return 2;
        if (memcmp(one, other, sizeof one) != 0) return 3;
    }
    for (size_t place = 0; place < sizeof sizes / sizeof sizes[0]; place++) {
        expect(windowed("cpu", sizes[place], &program), STENCIL_STATUS_OK, "");
        end(run(program, other), program);
        if (memcmp(one, other, sizeof one) != 0) return 4;
    }
    expect(shared("cpu", "0", &program), STENCIL_STATUS_COMPILE, "expected a number such as 4");
    expect(shared("cpu", "65", &program), STENCIL_STATUS_COMPILE, "64 devices at most");
    expect(shared("cpu", "0,1", &program), STENCIL_STATUS_COMPILE, "names GPUs");
    expect(shared("reference", "2", &program), STENCIL_STATUS_COMPILE, "has one device");
    expect(windowed("cpu", "much", &program), STENCIL_STATUS_COMPILE, "much");
    expect(windowed("reference", "1GiB", &program), STENCIL_STATUS_COMPILE, "out of core");
    printf("devices agree\n");
    return 0;
}
