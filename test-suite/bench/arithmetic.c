// Fused multiply-adds of some threads, without memory: how far a processor scales at all.
//
//     gcc -O3 -march=x86-64-v4 -fopenmp arithmetic.c -o arithmetic; ./arithmetic THREADS

#include <immintrin.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHAINS = 10, LANES = 16, STEPS = 30000000, REPEATS = 5 };

int main(int count, char **words) {
    int threads = count > 1 ? atoi(words[1]) : 1;
    double least = 1e9;
    float sum = 0;
    omp_set_num_threads(threads);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double start = omp_get_wtime();
#pragma omp parallel reduction(+ : sum)
        {
            __m512 values[CHAINS], factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(1e-3f);
            for (int chain = 0; chain < CHAINS; chain++) values[chain] = _mm512_set1_ps(chain);
            for (long step = 0; step < STEPS; step++)
                for (int chain = 0; chain < CHAINS; chain++)
                    values[chain] = _mm512_fmadd_ps(values[chain], factor, term);
            for (int chain = 0; chain < CHAINS; chain++) sum += _mm512_reduce_add_ps(values[chain]);
        }
        double seconds = omp_get_wtime() - start;
        if (seconds < least) least = seconds;
    }
    // The sum is used, so that the loops stay.
    printf("%d threads: %.1f G/s%s\n", threads,
           (double)STEPS * CHAINS * LANES * threads / least * 1e-9, sum == 1 ? "." : "");
    return 0;
}
