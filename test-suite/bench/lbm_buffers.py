"""Ryoo et al., figure 5: a step of the lattice Boltzmann method by the place of its numbers.

    python3 test-suite/bench/lbm_buffers.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/lbm_buffers.py measure FOLDER OUT.tsv
    python3 test-suite/bench/lbm_buffers.py report OUT.tsv

One text in CUDA streams and relaxes nine populations (D2Q9, BGK) of the inner cells of a grid, with
the numbers of a cell side by side (`structs`), in arrays of their own (`arrays`), or side by side
and moved through shared memory, in whole lines (`structs, buffered`). All three give the same
numbers. `build` needs nvcc with CUDA's headers; `measure` needs Python, NumPy, CuPy and a GPU.
"""

import common
import gpu

ROWS = COLUMNS = 4096
THREADS = 128
VERSIONS = {"structs": "structs", "arrays": "arrays", "structs, buffered": "buffered"}
STEP = r"""
#define ROWS 4096
#define COLUMNS 4096
#define THREADS 128
typedef long long place;
__device__ constexpr int ALONG[9] = {0, 0, 0, 1, -1, 1, -1, 1, -1};
__device__ constexpr int ACROSS[9] = {0, 1, -1, 0, 0, 1, -1, -1, 1};

__device__ void relax(float* f) {
    float rho = 0;
    for (int q = 0; q < 9; q++) rho += f[q];
    float x = (f[1] - f[2] + f[5] - f[6] - f[7] + f[8]) / rho;
    float y = (f[3] - f[4] + f[5] - f[6] + f[7] - f[8]) / rho;
    #pragma unroll
    for (int q = 0; q < 9; q++) {
        float along = ACROSS[q] * x + ALONG[q] * y;
        float weight = q == 0 ? 4.0f / 9 : q < 5 ? 1.0f / 9 : 1.0f / 36;
        float at_rest = 1 + 3 * along + 4.5f * along * along - 1.5f * (x * x + y * y);
        f[q] += 1.2f * (rho * weight * at_rest - f[q]);
    }
}

template <bool ARRAYS> __device__ place number(int i, int j, int q) {
    place cell = (place)i * COLUMNS + j;
    return ARRAYS ? (place)q * ROWS * COLUMNS + cell : cell * 9 + q;
}

template <bool ARRAYS> __device__ void direct(const float* from, float* to) {
    int i = blockIdx.y + 1, j = blockIdx.x * THREADS + threadIdx.x + 1;
    if (j >= COLUMNS - 1) return;
    float f[9];
    #pragma unroll
    for (int q = 0; q < 9; q++) f[q] = from[number<ARRAYS>(i - ALONG[q], j - ACROSS[q], q)];
    relax(f);
    #pragma unroll
    for (int q = 0; q < 9; q++) to[number<ARRAYS>(i, j, q)] = f[q];
}

extern "C" __global__ void structs(const float* from, float* to) { direct<false>(from, to); }
extern "C" __global__ void arrays(const float* from, float* to) { direct<true>(from, to); }

extern "C" __global__ void buffered(const float* from, float* to) {
    __shared__ float rows[3][(THREADS + 2) * 9];
    int i = blockIdx.y + 1, first = blockIdx.x * THREADS + 1, j = first + threadIdx.x;
    int cells = min(THREADS, COLUMNS - 1 - first);
    for (int row = 0; row < 3; row++)
        for (int at = threadIdx.x; at < (cells + 2) * 9; at += THREADS)
            rows[row][at] = from[((place)(i + row - 1) * COLUMNS + first - 1) * 9 + at];
    __syncthreads();
    float f[9];
    if (j < COLUMNS - 1) {
        #pragma unroll
        for (int q = 0; q < 9; q++)
            f[q] = rows[1 - ALONG[q]][(threadIdx.x + 1 - ACROSS[q]) * 9 + q];
        relax(f);
    }
    __syncthreads();
    if (j < COLUMNS - 1)
        for (int q = 0; q < 9; q++) rows[0][threadIdx.x * 9 + q] = f[q];
    __syncthreads();
    for (int at = threadIdx.x; at < cells * 9; at += THREADS)
        to[((place)i * COLUMNS + first) * 9 + at] = rows[0][at];
}
"""


def build(args):
    """Machine code of the three versions."""
    args.folder.mkdir(parents=True, exist_ok=True)
    used = gpu.written(args, "lbm", STEP)
    gpu.progress(used)
    gpu.prepared(args, "lbm_buffers.json", ["lbm_buffers.py"], {"used": used})


def measure(args):
    """A row for each version, compared with the first."""
    import cupy

    folder = args.folder.resolve()
    manifest = common.manifest(folder, "lbm_buffers.json", "lbm_buffers.py build")
    device, module = gpu.Device(folder), cupy.RawModule(path=str(folder / "lbm.cubin"))
    cells = cupy.random.default_rng(1).random((ROWS, COLUMNS, 9), cupy.float32) + 0.5
    grid = ((COLUMNS - 2 + THREADS - 1) // THREADS, ROWS - 2)
    rows, wanted = [], None
    for version, name in VERSIONS.items():
        before = cupy.ascontiguousarray(cells.transpose(2, 0, 1)) if name == "arrays" else cells
        after, kernel = cupy.zeros_like(before), module.get_function(name)
        seconds = device.timed(lambda: kernel(grid, (THREADS,), (before, after)), 10)
        found = after.transpose(1, 2, 0) if name == "arrays" else after
        wanted = found.copy() if wanted is None else wanted
        check = "right" if bool(cupy.allclose(found, wanted, 1e-6, 0)) else "wrong"
        rates = [(ROWS - 2) * (COLUMNS - 2) / one * 1e-9 for one in seconds]
        rows.append({"version": version, **manifest["used"][name], "unit": "GCells/s",
                     **gpu.spread(rates), "check": check})
    facts = {"what": "a step of D2Q9 by the place of its numbers", "commit": manifest["commit"],
             **device.facts(), "sizes": f"{ROWS}x{COLUMNS}",
             "measured": "median of 5 after one, ten calls in a row"}
    gpu.finished(args.out, facts, rows)


def report(args):
    """A table."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz\n")
    gpu.table(["version", "registers", "GCells/s", "check"],
              [[row["version"], row["registers"], row["value"], row["check"]] for row in rows])


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
