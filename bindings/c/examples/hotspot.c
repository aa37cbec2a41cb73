/* Calls the functions of SL that stencilc made of Hotspot.sl; needs libstencil_runtime alone.
 *
 *   stencilc Hotspot.sl --emit=c -o Hotspot
 *   cc hotspot.c Hotspot.c $(pkg-config --cflags --libs stencil_runtime) -o hotspot */
#include <stdio.h>
#include "Hotspot.h"

enum { X = 64, Y = 48, STEPS = 100 };

static int failed(void) {
    char message[4096];
    if (runHotspotStatus() == 0) return 0;
    runHotspotMessage(message, sizeof message);
    fprintf(stderr, "hotspot: error %d: %s\n", runHotspotStatus(), message);
    return 1;
}

int main(void) {
    static float data[Y][X], power[Y][X];

    for (int y = 0; y < Y; y++)
        for (int x = 0; x < X; x++) {
            data[y][x] = 60.0f;
            power[y][x] = x > 24 && x < 40 && y > 16 && y < 32 ? 0.5f : 0.0f;
        }
    runHotspotSetData(&power[0][0], X * Y - 1);
    runHotspot(&data[0][0], X, Y, STEPS, 10.0f, 10.0f, 80.0f);
    if (!failed()) return 2;
    runHotspotSetData(&power[0][0], X * Y);
    runHotspot(&data[0][0], X, Y, STEPS, 10.0f, 10.0f, 80.0f);
    if (failed()) return 1;
    printf("the middle has %.4f\n", data[Y / 2][X / 2]);
    return 0;
}
