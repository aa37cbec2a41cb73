/* Functions that stencilc made for the processor: one program under two names, and one of SL that
 * ends by itself. */
#include <stdio.h>
#include <string.h>
#include "Laplace.h"
#include "first.h"
#include "second.h"

enum { N = 20, M = 30, STEPS = 7, SIZE = 8, MOST = 10000 };

int main(void) {
    static float a[N][M], b[N][M], k[N][M];
    static double matrix[SIZE][SIZE];

    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            a[i][j] = b[i][j] = (float)(i * j % 7);
            k[i][j] = 1.0f;
        }
    if (first_run(STEPS, N, M, 0.2f, &a[0][0], &k[0][0]) != 0) return 1;
    if (second_run(STEPS, N, M, 0.2f, &b[0][0], &k[0][0]) != 0) return 2;
    if (memcmp(a, b, sizeof a) != 0) return 3;
    Laplace(&matrix[0][0], SIZE, SIZE, MOST);
    if (LaplaceStatus() != 0) return 4;
    if (LaplaceIterations() <= 0 || LaplaceIterations() >= MOST) return 5;
    if (LaplaceIterations() % 50 != 0) return 6;
    int64_t iterations = LaplaceIterations();
    Laplace(&matrix[0][0], -1, SIZE, MOST);
    if (LaplaceStatus() != 1) return 7;
    if (LaplaceIterations() != iterations) return 8;
    if (LaplaceMessage(NULL, 1) == 0) return 9;
    printf("%s, %s\n", matrix[0][0] > 0 ? "converged" : "nothing", "twins agree");
    first_unload();
    second_unload();
    return 0;
}
