/* Compiles a program at run time, and runs it on arrays of this program.
 *
 *   heat2d [TARGET]      TARGET is auto (the default), cuda, reference or sim
 *
 * A plate of N x M cells is hot in the middle. K is every second column of a wider array, so its
 * strides are not those of an array; the library copies such a field once a run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stencilc.h>

enum { N = 64, M = 48, STEPS = 100 };

static const char program_text[] =
    "param N\n"
    "param M\n"
    "scalar alpha : f32 = 0.1\n"
    "grid G = [0..N-1, 0..M-1]\n"
    "field A : f32 on G\n"
    "const field K : f32 on G\n"
    "fn heat -> A [1..N-2, 1..M-2] =\n"
    "    A[0,0] + alpha * K[0,0] * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1] - 4*A[0,0])\n"
    "reduce hottest : f32 = max(A[0,0]) on [0..N-1, 0..M-1]\n"
    "steps 10\n";

/* Ends the process with the library's message. */
static void check(stencil_status status) {
    char message[4096];
    if (status == STENCIL_STATUS_OK) return;
    stencil_error_message(message, sizeof message);
    fprintf(stderr, "heat2d: %s: %s\n", stencil_status_name(status), message);
    exit(1);
}

int main(int count, char **arguments) {
    static float a[N][M], k[N][2 * M];
    const char *options[] = {"--target", count > 1 ? arguments[1] : "auto"};
    const int64_t shape[] = {N, M};
    const int64_t strides[] = {sizeof k[0], 2 * sizeof k[0][0]};
    const float alpha = 0.2f;
    float hottest;
    stencil_program program;
    stencil_run run;
    stencil_report report;

    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            a[i][j] = i > 24 && i < 40 && j > 16 && j < 32 ? 100.0f : 0.0f;
            k[i][2 * j] = 1.0f;
        }
    check(stencil_compile("heat2d.stencil", program_text, 2, options, &program));
    check(stencil_run_new(program, &run));
    check(stencil_run_scalar(run, "alpha", STENCIL_ELEMENT_F32, &alpha));
    check(stencil_run_steps(run, STEPS));
    check(stencil_run_bind(run, "A", STENCIL_ELEMENT_F32, 2, shape, NULL, a));
    check(stencil_run_bind_const(run, "K", STENCIL_ELEMENT_F32, 2, shape, strides, k));
    check(stencil_run_execute(run));
    check(stencil_run_report(run, &report));
    check(stencil_run_reduction(run, "hottest", STENCIL_ELEMENT_F32, &hottest));
    printf("%" PRId64 " steps, %" PRIu64 " copies of fields\n", report.steps, report.copies);
    printf("the middle has %.4f, the hottest cell %.4f\n", a[N / 2][M / 2], hottest);
    check(stencil_run_free(run));
    check(stencil_program_free(program));
    return 0;
}
