/* Calls a function that stencilc made of heat2d.stencil; needs libstencil_runtime alone.
 *
 *   stencilc heat2d.stencil --emit=c -o plate
 *   cc emitted.c plate.c $(pkg-config --cflags --libs stencil_runtime) -o emitted */
#include <stdio.h>
#include "plate.h"

enum { N = 64, M = 48, STEPS = 100 };

int main(void) {
    static float a[N][M], k[N][M];
    char message[4096];
    int status;

    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            a[i][j] = i > 24 && i < 40 && j > 16 && j < 32 ? 100.0f : 0.0f;
            k[i][j] = 1.0f;
        }
    status = plate_run(STEPS, N, M, 0.2f, &a[0][0], &k[0][0]);
    if (status != 0) {
        plate_message(message, sizeof message);
        fprintf(stderr, "emitted: error %d: %s\n", status, message);
        return 1;
    }
    printf("the middle has %.4f\n", a[N / 2][M / 2]);
    plate_unload();
    return 0;
}
