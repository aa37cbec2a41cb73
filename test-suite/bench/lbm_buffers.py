"""Ryoo et al., figure 5: a step of the lattice Boltzmann method by the place of its numbers.

    python3 test-suite/bench/lbm_buffers.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/lbm_buffers.py measure FOLDER OUT.tsv
    python3 test-suite/bench/lbm_buffers.py report OUT.tsv

One text in CUDA streams and relaxes the populations (D2Q9 and D3Q19, BGK) of the inner cells of a
grid, with the numbers of a cell side by side (`structs`), in arrays of their own (`arrays`), or
side by side and moved through shared memory, in whole lines (`structs, buffered`). All three give
the same numbers. `build` needs nvcc with CUDA's headers; `measure` needs Python, NumPy, CuPy and a
GPU.
"""

import common
import gpu

VERSIONS = {"structs": "structs", "arrays": "arrays", "structs, buffered": "buffered"}
# Cells along z, y and x, threads of a block, and constants of the text. Shared memory of D3Q19 has
# nine rows of 66 cells.
LATTICES = {
    "d2q9": ((1, 4096, 4096), 128, {
        "Q": "9", "DEEP": "0", "WEIGHTS": "4.0f / 9, 1.0f / 9, 1.0f / 36",
        "ACROSS_X": "0, 1, -1, 0, 0, 1, -1, -1, 1", "ACROSS_Y": "0, 0, 0, 1, -1, 1, -1, 1, -1",
        "ACROSS_Z": "0",
    }),
    "d3q19": ((256, 256, 256), 64, {
        "Q": "19", "DEEP": "1", "WEIGHTS": "1.0f / 3, 1.0f / 18, 1.0f / 36",
        "ACROSS_X": "0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1, 0, 0, 0, 0",
        "ACROSS_Y": "0, 0, 0, 1, -1, 0, 0, 1, -1, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1",
        "ACROSS_Z": "0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1",
    }),
}
STEP = r"""
typedef long long place;
__device__ constexpr int X[Q] = {ACROSS_X}, Y[Q] = {ACROSS_Y}, Z[Q] = {ACROSS_Z};
__device__ constexpr float WEIGHT[3] = {WEIGHTS};
constexpr int NEAR = DEEP ? 9 : 3;

__device__ void relax(float* f) {
    float rho = 0, x = 0, y = 0, z = 0;
    #pragma unroll
    for (int q = 0; q < Q; q++) {
        rho += f[q];
        if (X[q]) x += X[q] * f[q];
        if (Y[q]) y += Y[q] * f[q];
        if (Z[q]) z += Z[q] * f[q];
    }
    x /= rho, y /= rho, z /= rho;
    #pragma unroll
    for (int q = 0; q < Q; q++) {
        float along = X[q] * x + Y[q] * y + Z[q] * z;
        float weight = WEIGHT[X[q] * X[q] + Y[q] * Y[q] + Z[q] * Z[q]];
        float at_rest = 1 + 3 * along + 4.5f * along * along - 1.5f * (x * x + y * y + z * z);
        f[q] += 1.2f * (rho * weight * at_rest - f[q]);
    }
}

template <bool ARRAYS> __device__ place number(int k, int i, int j, int q) {
    place cell = ((place)k * ROWS + i) * COLUMNS + j;
    return ARRAYS ? (place)q * PLANES * ROWS * COLUMNS + cell : cell * Q + q;
}

template <bool ARRAYS> __device__ void direct(const float* from, float* to) {
    int k = blockIdx.z + DEEP, i = blockIdx.y + 1, j = blockIdx.x * THREADS + threadIdx.x + 1;
    if (j >= COLUMNS - 1) return;
    float f[Q];
    #pragma unroll
    for (int q = 0; q < Q; q++) f[q] = from[number<ARRAYS>(k - Z[q], i - Y[q], j - X[q], q)];
    relax(f);
    #pragma unroll
    for (int q = 0; q < Q; q++) to[number<ARRAYS>(k, i, j, q)] = f[q];
}

extern "C" __global__ void structs(const float* from, float* to) { direct<false>(from, to); }
extern "C" __global__ void arrays(const float* from, float* to) { direct<true>(from, to); }

extern "C" __global__ void buffered(const float* from, float* to) {
    __shared__ float rows[NEAR][(THREADS + 2) * Q];
    int k = blockIdx.z + DEEP, i = blockIdx.y + 1, first = blockIdx.x * THREADS + 1;
    int j = first + threadIdx.x, cells = min(THREADS, COLUMNS - 1 - first);
    for (int row = 0; row < NEAR; row++) {
        place begin = number<false>(k + (DEEP ? row / 3 - 1 : 0), i + row % 3 - 1, first - 1, 0);
        for (int at = threadIdx.x; at < (cells + 2) * Q; at += THREADS)
            rows[row][at] = from[begin + at];
    }
    __syncthreads();
    float f[Q];
    if (j < COLUMNS - 1) {
        #pragma unroll
        for (int q = 0; q < Q; q++)
            f[q] = rows[DEEP * (3 - 3 * Z[q]) + 1 - Y[q]][(threadIdx.x + 1 - X[q]) * Q + q];
        relax(f);
    }
    __syncthreads();
    if (j < COLUMNS - 1)
        for (int q = 0; q < Q; q++) rows[0][threadIdx.x * Q + q] = f[q];
    __syncthreads();
    for (int at = threadIdx.x; at < cells * Q; at += THREADS)
        to[number<false>(k, i, first, 0) + at] = rows[0][at];
}
"""


def text(lattice):
    """The text with the constants of a lattice before it."""
    (planes, rows, columns), threads, constants = LATTICES[lattice]
    sizes = {"PLANES": planes, "ROWS": rows, "COLUMNS": columns, "THREADS": threads}
    return "".join(f"#define {name} {one}\n" for name, one in {**sizes, **constants}.items()) + STEP


def build(args):
    """Machine code of the three versions of both lattices."""
    args.folder.mkdir(parents=True, exist_ok=True)
    used = {lattice: gpu.written(args, f"lbm-{lattice}", text(lattice)) for lattice in LATTICES}
    gpu.progress(used)
    gpu.prepared(args, "lbm_buffers.json", ["lbm_buffers.py"], {"used": used})


def of_lattice(folder, device, lattice, used):
    """A row for each version of a lattice, compared with the first."""
    import cupy

    shape, threads, constants = LATTICES[lattice]
    module = cupy.RawModule(path=str(folder / f"lbm-{lattice}.cubin"))
    planes, height, width = (cells - 2 if cells > 1 else 1 for cells in shape)
    cells = cupy.random.default_rng(1).random((*shape, int(constants["Q"])), cupy.float32) + 0.5
    grid, wanted = ((width + threads - 1) // threads, height, planes), None
    for version, name in VERSIONS.items():
        arrays = name == "arrays"
        before = cupy.ascontiguousarray(cells.transpose(3, 0, 1, 2)) if arrays else cells
        after, kernel = cupy.zeros_like(before), module.get_function(name)
        seconds = device.timed(lambda: kernel(grid, (threads,), (before, after)), 10)
        found = after.transpose(1, 2, 3, 0) if arrays else after
        wanted = found.copy() if wanted is None else wanted
        check = "right" if bool(cupy.allclose(found, wanted, 1e-5, 0)) else "wrong"
        rates = [planes * height * width / one * 1e-9 for one in seconds]
        yield {"lattice": lattice, "sizes": common.size(shape), "version": version, **used[name],
               "unit": "GCells/s", **gpu.spread(rates), "check": check}


def measure(args):
    """All rows of the record."""
    folder = args.folder.resolve()
    manifest = common.manifest(folder, "lbm_buffers.json", "lbm_buffers.py build")
    device = gpu.Device(folder)
    rows = [row for lattice in LATTICES
            for row in of_lattice(folder, device, lattice, manifest["used"][lattice])]
    facts = {"what": "a step of lattice Boltzmann by the place of its numbers",
             "commit": manifest["commit"], **device.facts(),
             "measured": "median of 5 after one, ten calls in a row"}
    gpu.finished(args.out, facts, rows)


def report(args):
    """A table."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz\n")
    gpu.table(["lattice", "version", "registers", "GCells/s", "check"],
              [[row["lattice"], row["version"], row["registers"], row["value"], row["check"]]
               for row in rows])


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
