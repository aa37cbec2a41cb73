/* Devices that share the runs of a program: parts of the processor give the bits of one, and what
 * can't be is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencilc.h>

enum { N = 67, M = 203, STEPS = 11 };

static const char text[] =
    "param N\n"
    "param M\n"
    "grid G = [0..N-1, 0..M-1]\n"
    "field A : f32 on G\n"
    "fn f -> A [1..N-2, 1..M-2] = 0.5 * A[0,0] + 0.125 * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n"
    "reduce total : f64 = sum(f64(A[0,0])) on [0..N-1, 0..M-1]\n"
    "steps 2\n";

static const int64_t shape[] = {N, M};

/* Ends the process where a status is another one, or the library's message has not these words. */
static void expect(stencil_status status, stencil_status wanted, const char *words) {
    char message[4096] = "";
    if (status != STENCIL_STATUS_OK) stencil_error_message(message, sizeof message);
    if (status == wanted && strstr(message, words)) return;
    fprintf(stderr, "devices: status %d, expected %d: %s\n", (int)status, (int)wanted, message);
    exit(1);
}

static stencil_status compile(const char *target, const char *devices, stencil_program *program) {
    const char *options[] = {"--target",     target, "--tile",    "8,64",
                             "--fp-contract", "off",  "--devices", devices};
    return stencil_compile("devices.stencil", text, 8, options, program);
}

static double run(const char *devices, float *cells) {
    stencil_program program;
    stencil_run run;
    double total;

    for (int cell = 0; cell < N * M; cell++) cells[cell] = (float)(cell * 7919 % 1000);
    expect(compile("cpu", devices, &program), STENCIL_STATUS_OK, "");
    expect(stencil_run_new(program, &run), STENCIL_STATUS_OK, "");
    expect(stencil_run_steps(run, STEPS), STENCIL_STATUS_OK, "");
    expect(stencil_run_bind(run, "A", STENCIL_ELEMENT_F32, 2, shape, NULL, cells),
           STENCIL_STATUS_OK, "");
    expect(stencil_run_execute(run), STENCIL_STATUS_OK, "");
    expect(stencil_run_reduction(run, "total", STENCIL_ELEMENT_F64, &total), STENCIL_STATUS_OK,
           "");
    /* Memory of a device is refused by the run. */
    expect(stencil_run_bind_device(run, "A", STENCIL_ELEMENT_F32, 2, shape, 4096),
           STENCIL_STATUS_OK, "");
    expect(stencil_run_execute(run), STENCIL_STATUS_ARGUMENT, "give it memory of the host");
    expect(stencil_run_free(run), STENCIL_STATUS_OK, "");
    expect(stencil_program_free(program), STENCIL_STATUS_OK, "");
    return total;
}

int main(void) {
    static const char *const shared[] = {"2", "2x2", "3"};
    static float one[N * M], several[N * M];
    const double total = run("1", one);
    stencil_program program;

    for (size_t place = 0; place < sizeof shared / sizeof shared[0]; place++) {
        if (run(shared[place], several) != total) return 2;
        if (memcmp(one, several, sizeof one) != 0) return 3;
    }
    expect(compile("cpu", "0", &program), STENCIL_STATUS_COMPILE, "expected a number such as 4");
    expect(compile("cpu", "65", &program), STENCIL_STATUS_COMPILE, "64 devices at most");
    expect(compile("cpu", "0,1", &program), STENCIL_STATUS_COMPILE, "names GPUs");
    expect(compile("reference", "2", &program), STENCIL_STATUS_COMPILE, "has one device");
    printf("devices agree\n");
    return 0;
}
