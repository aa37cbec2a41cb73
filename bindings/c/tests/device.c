/* Runs a plan on a CUDA device by the C interface: memory of the host with and without strides,
 * memory of the device, an array of structs and one of blocks there, a stream of this program, and
 * two threads. Made for the driver of the runtime's own tests; a device gives the same bits.
 *
 *   device PLAN RECORDS BLOCKS  the plans smear.plan.json and smear_records.plan.json of the
 *                               runtime's tests, and the second one with blocks of two cells */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencil.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);

enum { N = 700, F32 = STENCIL_ELEMENT_F32 };

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            char message[1000] = "";                                                         \
            stencil_error_message(message, sizeof message);                                  \
            fprintf(stderr, "device.c:%d: %s (%s)\n", __LINE__, #condition, message);        \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

static const int64_t shape[] = {N};
static stencil_program program, records, blocks;

static void fill(float *a) {
    for (int i = 0; i < N; i++) a[i] = (float)(i * 7919 % 1000) / 1000.0f;
}

/* What `steps` steps of the plan make of `fill`, in the plan's own order of operations. */
static void reference(float *a, int steps) {
    float old[N];
    fill(a);
    for (int step = 0; step < steps; step++) {
        memcpy(old, a, sizeof old);
        for (int i = 1; i < N - 1; i++) {
            float left = old[i - 1] - old[i], right = old[i + 1] - old[i], sum = left + right;
            float part = 0.25f * sum, inner = old[i] + part;
            a[i] = inner + (float)step;
        }
    }
}

static stencil_run new_run(int steps) {
    stencil_run run;
    CHECK(stencil_run_new(program, &run) == 0);
    CHECK(stencil_run_steps(run, steps) == 0);
    return run;
}

static void done(stencil_run run, uint64_t copies) {
    stencil_report report;
    CHECK(stencil_run_execute(run) == 0);
    CHECK(stencil_run_report(run, &report) == 0);
    CHECK(report.copies == copies && report.copied_bytes == copies * N * sizeof(float));
    CHECK(stencil_run_free(run) == 0);
}

static void on_host(int steps) {
    float a[N], wanted[N];
    stencil_run run = new_run(steps);
    fill(a);
    reference(wanted, steps);
    CHECK(stencil_run_bind(run, "A", F32, 1, shape, NULL, a) == 0);
    done(run, 0);
    CHECK(memcmp(a, wanted, sizeof a) == 0);
}

/* Every third number, from the last one on. */
static void with_strides(int steps) {
    float a[3 * N], start[N], wanted[N];
    const int64_t strides[] = {-3 * (int64_t)sizeof *a};
    stencil_run run = new_run(steps);
    fill(start);
    reference(wanted, steps);
    for (int i = 0; i < 3 * N; i++) a[i] = -1.0f;
    for (int i = 0; i < N; i++) a[3 * (N - 1 - i)] = start[i];
    CHECK(stencil_run_bind(run, "A", F32, 1, shape, strides, a + 3 * (N - 1)) == 0);
    done(run, 2);
    for (int i = 0; i < N; i++) {
        CHECK(a[3 * (N - 1 - i)] == wanted[i]);
        CHECK(a[3 * i + 1] == -1.0f && a[3 * i + 2] == -1.0f);
    }
}

/* The last of an odd number of steps leaves the value in the library's own buffer. */
static void on_device(int steps, int own_stream, void *context) {
    float a[N], wanted[N];
    uint64_t address;
    void *stream, *given;
    stencil_run run = new_run(steps);
    fill(a);
    reference(wanted, steps);
    CHECK(cuCtxSetCurrent(context) == 0);
    CHECK(cuMemAlloc_v2(&address, sizeof a) == 0 && cuStreamCreate(&stream, 0) == 0);
    given = own_stream ? NULL : stream;
    CHECK(cuMemcpyHtoDAsync_v2(address, a, sizeof a, stream) == 0);
    CHECK(stencil_run_stream(run, given) == 0);
    CHECK(stencil_run_bind_device(run, "A", F32, 1, shape, address + 4) == 0);
    CHECK(stencil_run_execute(run) == STENCIL_STATUS_ARGUMENT);
    CHECK(stencil_run_bind_device(run, "A", F32, 1, shape, 64) == 0);
    CHECK(stencil_run_execute(run) == STENCIL_STATUS_ARGUMENT);
    CHECK(stencil_run_bind_device(run, "A", F32, 1, shape, address) == 0);
    done(run, (uint64_t)steps % 2);
    CHECK(cuCtxSetCurrent(context) == 0);
    CHECK(cuMemcpyDtoHAsync_v2(a, address, sizeof a, stream) == 0);
    CHECK(memcmp(a, wanted, sizeof a) == 0);
    CHECK(cuMemFree_v2(address) == 0 && cuStreamDestroy_v2(stream) == 0);
}

/* A run on an array of records in so many bytes of the device, the first ones filled. */
static stencil_run new_records(stencil_program of, int steps, size_t bytes, uint64_t *address,
                               void *context) {
    float a[N];
    stencil_run run;
    fill(a);
    CHECK(cuCtxSetCurrent(context) == 0);
    CHECK(cuMemAlloc_v2(address, bytes) == 0);
    CHECK(cuMemcpyHtoDAsync_v2(*address, a, sizeof a, NULL) == 0);
    CHECK(stencil_run_new(of, &run) == 0 && stencil_run_steps(run, steps) == 0);
    CHECK(stencil_run_size(run, "N", N) == 0);
    return run;
}

static void done_records(stencil_run run, int steps, uint64_t address, void *context) {
    float a[N], wanted[N];
    reference(wanted, steps);
    done(run, (uint64_t)steps % 2);
    CHECK(cuCtxSetCurrent(context) == 0);
    CHECK(cuMemcpyDtoHAsync_v2(a, address, sizeof a, NULL) == 0);
    CHECK(memcmp(a, wanted, sizeof a) == 0);
    CHECK(cuMemFree_v2(address) == 0);
}

/* The kernel sees the numbers of all cells in a row. */
static void as_structs(int steps, void *context) {
    const int64_t cells[] = {N / 2}, bytes[] = {8}, apart[] = {16};
    uint64_t address;
    stencil_run run = new_records(records, steps, 2 * N * sizeof(float), &address, context);
    CHECK(stencil_run_bind_device_strides(run, "P.x", F32, 1, cells, bytes, address) == 0);
    CHECK(stencil_run_bind_device_strides(run, "P.y", F32, 1, cells, apart, address + 4) == 0);
    CHECK(stencil_run_execute(run) == STENCIL_STATUS_ARGUMENT);
    CHECK(stencil_run_bind_device_strides(run, "P.y", F32, 1, cells, bytes, address + 4) == 0);
    done_records(run, steps, address, context);
}

/* The same numbers in a row are blocks of two cells: two of P.x, two of P.y. */
static void as_blocks(int steps, void *context) {
    const int64_t cells[] = {N / 4, 2}, bytes[] = {16, 4}, apart[] = {8, 4}, flat[] = {N / 2};
    uint64_t address;
    stencil_run run = new_records(blocks, steps, N * sizeof(float), &address, context);
    CHECK(stencil_run_bind_device_strides(run, "P.x", F32, 2, cells, bytes, address) == 0);
    CHECK(stencil_run_bind_device_strides(run, "P.y", F32, 2, cells, apart, address + 8) == 0);
    CHECK(stencil_run_execute(run) == STENCIL_STATUS_ARGUMENT);
    CHECK(stencil_run_bind_device_strides(run, "P.y", F32, 1, flat, apart, address + 8) == 0);
    CHECK(stencil_run_execute(run) == STENCIL_STATUS_ARGUMENT);
    CHECK(stencil_run_bind_device_strides(run, "P.y", F32, 2, cells, bytes, address + 8) == 0);
    done_records(run, steps, address, context);
}

/* A field that is no part of an array of structs has no strides on a device. */
static void no_structs(void) {
    const int64_t strides[] = {8};
    stencil_run run = new_run(1);
    CHECK(stencil_run_bind_device_strides(run, "A", F32, 1, shape, strides, 1 << 20) == 0);
    CHECK(stencil_run_execute(run) == STENCIL_STATUS_ARGUMENT);
    CHECK(stencil_run_free(run) == 0);
}

static void *thread(void *argument) {
    for (int i = 0; i < 20; i++) on_host(i % 5 + *(int *)argument);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    int more[] = {0, 1};
    void *context;
    char name[4];
    size_t length;
    stencil_field field;
    stencil_program twice = 0, again;
    CHECK(count == 4 && stencil_load_file(arguments[1], &program) == 0);
    CHECK(stencil_load_file(arguments[2], &records) == 0);
    CHECK(stencil_load_file(arguments[3], &blocks) == 0);
    CHECK(stencil_program_field(program, 0, &field, name, sizeof name, &length) == 0);
    CHECK(strcmp(name, "A") == 0 && length == 1 && field.element == F32 && field.rank == 1);
    CHECK(stencil_program_field(program, 9, &field, NULL, 0, NULL) == STENCIL_STATUS_ARGUMENT);
    CHECK(stencil_load((const uint8_t *)"{", 1, NULL, 0, &twice) == STENCIL_STATUS_PLAN);
    CHECK(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0);
    for (int steps = 0; steps < 6; steps++) {
        on_host(steps);
        with_strides(steps);
        on_device(steps, 0, context);
        on_device(steps, 1, context);
        as_structs(steps, context);
        as_blocks(steps, context);
    }
    no_structs();
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, thread, &more[i]) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    stencil_run run = new_run(1);
    CHECK(stencil_run_execute(run) != 0); /* No size, and no field. */
    CHECK(stencil_run_device(run, 99) == 0);
    again = program;
    CHECK(stencil_program_free(program) == 0 && stencil_program_free(records) == 0);
    CHECK(stencil_program_free(blocks) == 0);
    CHECK(stencil_program_free(again) == STENCIL_STATUS_HANDLE);
    CHECK(stencil_run_new(again, &run) == STENCIL_STATUS_HANDLE);
    CHECK(stencil_run_free(run) == 0 && stencil_run_free(run) == STENCIL_STATUS_HANDLE);
    CHECK(stencil_run_new(0, &run) == STENCIL_STATUS_HANDLE);
    CHECK(stencil_run_new(program, NULL) == STENCIL_STATUS_ARGUMENT);
    CHECK(cuDevicePrimaryCtxRelease_v2(0) == 0);
    puts("device: all as wanted");
    return 0;
}
