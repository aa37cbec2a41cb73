/* Calls the C interface in random order with right and wrong arguments: handles that are freed,
 * made up or of another kind, null, wrong types, shapes and strides, from two threads.
 *
 *   random SEQUENCES SEED
 *
 * Ends with 0 where every call returned a status of stencil.h other than "internal fault", every
 * message of a failure had a text, and no byte around the fields was written. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencilc.h>

enum { CELLS = 16, GUARD = 64, STATUSES = STENCIL_STATUS_INTERNAL + 1, SHARED = 8 };

static const char text[] =
    "param N\n"
    "scalar alpha : f32 = 0.25\n"
    "grid G = [0..N-1, 0..N-1]\n"
    "field A : f32 on G\n"
    "const field K : f32 on G\n"
    "fn f -> A [1..N-2, 1..N-2] = A[0,0] + alpha * K[0,0] * (A[0,1] - A[0,-1])\n"
    "reduce top : f32 = max(A[0,0]) on [0..N-1, 0..N-1]\n"
    "steps 2\n";

static stencil_program programs[3];
/* Handles that both threads use; a race for one is a wrong handle at worst. */
static stencil_run shared[SHARED];

typedef struct {
    unsigned long long state;
    long sequences;
    unsigned long long counts[STATUSES], wrong, results;
    float memory[2 * GUARD + 4 * CELLS * CELLS];
} Thread;

static unsigned draw(Thread *t, unsigned below) {
    t->state ^= t->state << 13;
    t->state ^= t->state >> 7;
    t->state ^= t->state << 17;
    return (unsigned)(t->state >> 33) % below;
}

static void took(Thread *t, stencil_status status) {
    char message[8];
    if (status < 0 || status >= STATUSES || status == STENCIL_STATUS_INTERNAL) t->wrong++;
    else t->counts[status]++;
    if (status != 0 && stencil_error_message(message, sizeof message) == 0) t->wrong++;
}

static const char *name(Thread *t) {
    static const char *const names[] = {"A", "K", "N", "alpha", "top", "", "none", NULL, "\xff"};
    /* Mostly a right one. */
    return names[draw(t, 3) ? draw(t, 5) : draw(t, 9)];
}

static stencil_run handle(Thread *t, const stencil_run *own) {
    switch (draw(t, 12)) {
    case 0: return 0;
    case 1: return (stencil_run)t->state;
    case 2: return programs[draw(t, 3)];
    case 3: return __atomic_load_n(&shared[draw(t, SHARED)], __ATOMIC_RELAXED);
    default: return own[draw(t, 2)];
    }
}

static void bind(Thread *t, stencil_run run) {
    int64_t n = draw(t, 6) ? 4 + draw(t, CELLS - 3) : (int64_t)draw(t, 5) - 2;
    int64_t shape[] = {n, draw(t, 8) ? n : n + 1};
    const int64_t wild[] = {0, INT64_MAX, INT64_MIN}; /* refused, or of no use to one cell */
    int64_t strides[] = {8 * CELLS, 8};
    float *data = t->memory + GUARD;
    int32_t type = draw(t, 10) ? STENCIL_ELEMENT_F32 : (int32_t)draw(t, 15) - 1;
    uint32_t rank = draw(t, 12) ? 2 : draw(t, 12);
    const int64_t *given = draw(t, 2) ? strides : NULL;
    if (draw(t, 10) == 0) strides[draw(t, 2)] = wild[draw(t, 3)];
    if (rank > 2) rank = 9 + rank; /* The arrays have two numbers. */
    switch (draw(t, 4)) {
    case 0:
        took(t, stencil_run_bind_device(run, name(t), type, rank, shape, draw(t, 2) ? 0 : 4096));
        break;
    case 1:
        took(t, stencil_run_bind_const(run, name(t), type, rank, draw(t, 20) ? shape : NULL, given,
                                       draw(t, 20) ? data : NULL));
        break;
    default:
        took(t, stencil_run_bind(run, name(t), type, rank, draw(t, 20) ? shape : NULL, given,
                                 draw(t, 20) ? data : NULL));
    }
}

static void call(Thread *t, stencil_run *own) {
    stencil_run run = handle(t, own);
    int64_t shape[2] = {0, 0};
    float number = (float)draw(t, 9);
    double wide = draw(t, 4) ? 0.5 : 1e300;
    stencil_report report;
    stencil_field field;
    uint32_t count;
    char word[4];
    stencil_status status;
    switch (draw(t, 20)) {
    case 0:
        count = draw(t, 2);
        if (own[count] != 0) took(t, stencil_run_free(own[count]));
        own[count] = 0;
        took(t, stencil_run_new(draw(t, 4) ? programs[draw(t, 3)] : run,
                                draw(t, 20) ? &own[count] : NULL));
        __atomic_store_n(&shared[draw(t, SHARED)], own[0], __ATOMIC_RELAXED);
        break;
    case 1: took(t, stencil_run_free(run)); break;
    case 2: took(t, stencil_run_size(run, name(t), draw(t, 2) ? CELLS : (int64_t)t->state)); break;
    case 3: took(t, stencil_run_scalar(run, name(t), STENCIL_ELEMENT_F32, &number)); break;
    case 4: took(t, stencil_run_scalar(run, name(t), (int32_t)draw(t, 16) - 2, &wide)); break;
    case 5: took(t, stencil_run_steps(run, (int64_t)draw(t, 5) - 1)); break;
    case 6: took(t, stencil_run_first_step(run, (int64_t)draw(t, 4) - 1)); break;
    case 7: took(t, stencil_run_device(run, (int32_t)draw(t, 3) - 1)); break;
    case 8: took(t, stencil_run_cancel(run)); break;
    case 9:
        count = draw(t, 4) ? 2 : draw(t, 3);
        took(t, stencil_run_shape(run, name(t), count, draw(t, 9) ? shape : NULL));
        break;
    case 10: took(t, stencil_run_report(run, draw(t, 9) ? &report : NULL)); break;
    case 11: took(t, stencil_run_reduction(run, name(t), STENCIL_ELEMENT_F32, &number)); break;
    case 12:
        took(t, stencil_program_fields(draw(t, 2) ? programs[0] : run,
                                       draw(t, 9) ? &count : NULL));
        break;
    case 13:
        took(t, stencil_program_field(draw(t, 4) ? programs[draw(t, 3)] : run, draw(t, 5), &field,
                                      draw(t, 4) ? word : NULL, draw(t, 4), NULL));
        break;
    case 14:
    case 15:
    case 16:
        status = stencil_run_execute(run);
        t->results += status == 0;
        took(t, status);
        break;
    default: bind(t, run);
    }
}

static void *thread(void *argument) {
    Thread *t = argument;
    for (long i = 0; i < t->sequences; i++) {
        stencil_run own[2] = {0, 0};
        int64_t shape[] = {8, 8};
        took(t, stencil_run_new(programs[draw(t, 3)], &own[0]));
        if (draw(t, 2)) { /* A run that works, unless it is spoiled. */
            took(t, stencil_run_bind(own[0], "A", STENCIL_ELEMENT_F32, 2, shape, NULL,
                                     t->memory + GUARD));
            took(t, stencil_run_bind(own[0], "K", STENCIL_ELEMENT_F32, 2, shape, NULL,
                                     t->memory + GUARD + CELLS * CELLS));
        }
        for (unsigned calls = 1 + draw(t, 20); calls > 0; calls--) call(t, own);
        for (int one = 0; one < 2; one++)
            if (own[one] != 0) took(t, stencil_run_free(own[one]));
        for (int one = 0; one < GUARD; one++) {
            const float *end = t->memory + sizeof t->memory / sizeof *t->memory - GUARD;
            if (t->memory[one] != 7.0f || end[one] != 7.0f) t->wrong++;
        }
    }
    return NULL;
}

int main(int count, char **arguments) {
    const char *const targets[] = {"reference", "sim", "cuda"};
    static Thread threads[2];
    pthread_t ids[2];
    long sequences = count > 1 ? atol(arguments[1]) : 1000;
    unsigned long long seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1, wrong = 0;
    for (int i = 0; i < 3; i++) {
        const char *options[] = {"--target", targets[i]};
        char message[1000];
        if (stencil_compile("random.stencil", text, 2, options, &programs[i]) != 0) {
            stencil_error_message(message, sizeof message);
            fprintf(stderr, "%s\n", message);
            return 2;
        }
    }
    for (int i = 0; i < 2; i++) {
        Thread *t = &threads[i];
        t->state = (seed + 1) * 0x9e3779b97f4a7c15ull + (unsigned)i * 0x2545f4914f6cdd1dull;
        t->sequences = sequences / 2 + (i == 0 ? sequences % 2 : 0);
        for (size_t k = 0; k < sizeof t->memory / sizeof *t->memory; k++) t->memory[k] = 7.0f;
        pthread_create(&ids[i], NULL, thread, t);
    }
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("%ld sequences, %llu runs done\n", sequences, threads[0].results + threads[1].results);
    for (int i = 0; i < STATUSES; i++)
        printf("%10llu %s\n", threads[0].counts[i] + threads[1].counts[i], stencil_status_name(i));
    for (int i = 0; i < 3; i++) stencil_program_free(programs[i]);
    wrong = threads[0].wrong + threads[1].wrong;
    printf("%10llu wrong\n", wrong);
    return wrong != 0;
}
