"""What reductions cost on a GPU, and SRAD against plain CUDA.

    python3 test-suite/bench/reductions.py build FOLDER [--release FOLDER]
    python3 FOLDER/reductions.py measure FOLDER OUT.tsv

`build` needs the compiled project and no GPU. FOLDER then holds the scripts, plans, PTX and
`stencil-bench`. `measure` needs Python, NumPy, CuPy and a GPU. It measures star2d1r with and
without a reduction that ends the run, and SRAD: the compiled program against two kernels in CUDA as
one writes them by hand, one thread a cell, with sums by the library.

The plain version is measured in two forms. `plain` stores the coefficient alone and forms the
differences twice. `plain, differences stored` stores them too, as the version of Rodinia does. Sums
are CuPy's reductions, which run CUB, and stay on the device. Each form takes the fastest of three
ways to sum that were tried in the same run. With fast math both sides have it.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics

import common

SIZE = 8192
STEPS = 100
STAR = 16384
STAR_STEPS = 1000
# What stands before the steps, how they end, and options of the compile.
MOST = "reduce most : f32 = {} on [{}..N-{}, {}..M-{}]\n"
WHOLE = MOST.format("{}", 0, 1, 0, 1)
STARS = {
    "no look": ("", ""),
    "no look, 10 steps a launch": ("", "", "--pyramid-height=10"),
    "a look every 10": ("", "until t > 1000000 every 10"),
    "max, every 10": (WHOLE.format("max(A[0,0])"), "until most > 1000000 every 10"),
    "max of the interior, every 10": (
        MOST.format("max(A[0,0])", 1, 2, 1, 2), "until most > 1000000 every 10"),
    "max of a formula, every 10": (
        WHOLE.format("max(abs(A[0,0] - 0.5))"), "until most > 1000000 every 10"),
    "a look every 100": ("", "until t > 1000000 every 100"),
    "max, every 100": (WHOLE.format("max(A[0,0])"), "until most > 1000000 every 100"),
    "sum, every 10": (WHOLE.format("sum(A[0,0])"), "until most < -1 every 10"),
}
# How SRAD is compiled.
SRADS = {"srad": [], "srad, fast math": ["--fast-math"]}

KERNELS = r"""
__device__ float coefficient(float here, float n, float s, float w, float e, double total,
                             double squares, double points) {
    double mean = total / points;
    double variance = squares / points - mean * mean;
    float speckle = (float)(variance / (mean * mean));
    float above = here + 0.001f;
    float gradient = (n * n + s * s + w * w + e * e) / (above * above);
    float laplacian = (n + s + w + e) / above;
    float around = 1 + 0.25f * laplacian;
    float q = (0.5f * gradient - 0.0625f * laplacian * laplacian) / (around * around);
    float c = 1 / (1 + (q - speckle) / (speckle * (1 + speckle)));
    return fmaxf(0, fminf(1, c));
}
#define POINT \
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y; \
    if (i >= rows || j >= columns) return; \
    size_t at = (size_t)i * columns + j; \
    size_t north = (size_t)max(i - 1, 0) * columns + j, west = at - (j > 0); \
    size_t south = (size_t)min(i + 1, rows - 1) * columns + j, east = at + (j < columns - 1);

extern "C" __global__ void diffusion(const float* J, float* C, const double* total,
                                     const double* squares, int rows, int columns) {
    POINT
    float here = J[at];
    C[at] = coefficient(here, J[north] - here, J[south] - here, J[west] - here, J[east] - here,
                        *total, *squares, (double)rows * columns);
}
extern "C" __global__ void diffuse(const float* J, const float* C, float* next, float lambda,
                                   int rows, int columns) {
    POINT
    float here = J[at];
    float flow = C[south] * (J[south] - here) + C[at] * (J[north] - here)
               + C[east] * (J[east] - here) + C[at] * (J[west] - here);
    next[at] = here + 0.25f * lambda * flow;
}
extern "C" __global__ void diffusion_stored(const float* J, float* C, float* N, float* S, float* W,
                                            float* E, const double* total, const double* squares,
                                            int rows, int columns) {
    POINT
    float here = J[at];
    float n = J[north] - here, s = J[south] - here, w = J[west] - here, e = J[east] - here;
    N[at] = n; S[at] = s; W[at] = w; E[at] = e;
    C[at] = coefficient(here, n, s, w, e, *total, *squares, (double)rows * columns);
}
extern "C" __global__ void diffuse_stored(float* J, const float* C, const float* N, const float* S,
                                          const float* W, const float* E, float lambda, int rows,
                                          int columns) {
    POINT
    float c = C[at];
    float flow = C[south] * S[at] + c * N[at] + C[east] * E[at] + c * W[at];
    J[at] += 0.25f * lambda * flow;
}
"""


def build(args):
    """Plans of all programs, and what the GPU machine needs."""
    common.take_along(args.folder, args.release, "reductions.py")
    programs = common.ROOT / "test-suite/programs"
    star = (programs / "star2d1r.stencil").read_text()
    stencilc = [args.release / "stencilc", "--device=H200", "--emit=ptx,plan"]
    for place, (name, (text, until, *options)) in enumerate(STARS.items()):
        source = args.folder / f"star{place}.stencil"
        source.write_text(star.replace("steps 1000", f"{text}steps {STAR_STEPS} {until}"))
        sizes = ["-D", f"N={STAR}", "-D", f"M={STAR}"]
        common.call([*stencilc, source, *sizes, *options, "-o", args.folder / f"star{place}"])
        print(name)
    sizes = ["-D", f"N={SIZE}", "-D", f"M={SIZE}"]
    source = programs / "srad.stencil"
    for place, options in enumerate(SRADS.values()):
        common.call([*stencilc, source, *sizes, *options, "-o", args.folder / f"srad{place}"])


def benched(folder, plan, steps):
    """What stencil-bench measures of a plan."""
    file = folder / f"{plan}.json"
    words = [folder / "stencil-bench", folder / f"{plan}.plan.json", "--graph", "--steps", steps]
    common.call([*words, "--repeat", 7, "--warmup", 2, "--json", file])
    return json.loads(file.read_text())


def plain(form, steps, fast):
    """Seconds of runs of the plain version."""
    import cupy
    from cupyx.profiler import benchmark

    options = ("--std=c++17", "--use_fast_math") if fast else ("--std=c++17",)
    module = cupy.RawModule(code=KERNELS, options=options)
    cupy.random.seed(1)
    image = cupy.random.random((SIZE, SIZE), dtype=cupy.float32) + cupy.float32(0.001)
    first = image.copy()
    arrays = [cupy.empty_like(image) for _ in range(6)]
    double = cupy.float64
    squares = cupy.ReductionKernel("float32 x", "float64 y", "(double)x * x", "a + b", "y = a", "0")
    sums = {
        "sum, ReductionKernel": lambda a: (a.sum(dtype=double), squares(a)),
        "ReductionKernel twice": lambda a: (total(a), squares(a)),
        "sum in f32, vdot": lambda a: (
            a.sum().astype(double), cupy.vdot(a, a).astype(double)),
    }
    total = cupy.ReductionKernel("float32 x", "float64 y", "(double)x", "a + b", "y = a", "0")
    block = (32, 8)
    grid = (-(-SIZE // 32), -(-SIZE // 8))
    lengths = (cupy.int32(SIZE), cupy.int32(SIZE))
    rate = cupy.float32(0.5)

    def run(reduce):
        nonlocal image
        other, coefficients, *differences = arrays
        for _ in range(steps):
            total, squares = reduce(image)
            if form == "plain":
                module.get_function("diffusion")(
                    grid, block, (image, coefficients, total, squares, *lengths))
                module.get_function("diffuse")(
                    grid, block, (image, coefficients, other, rate, *lengths))
                image, other = other, image
            else:
                module.get_function("diffusion_stored")(
                    grid, block, (image, coefficients, *differences, total, squares, *lengths))
                module.get_function("diffuse_stored")(
                    grid, block, (image, coefficients, *differences, rate, *lengths))
        arrays[0] = other

    found = {}
    for name, reduce in sums.items():
        image = first.copy()
        times = benchmark(run, (reduce,), n_repeat=5, n_warmup=1).gpu_times[0]
        found[name] = sorted(float(time) for time in times)
    image = first.copy()
    run(sums["sum, ReductionKernel"])
    found["mean"] = float(image.mean(dtype=double))
    found["deviation"] = float(image.std(dtype=double))
    return found


def measure(args):
    """All rows of the record."""
    os.environ.setdefault("CUPY_ACCELERATORS", "cub")
    rows, facts = [], {}

    def row(what, sizes, steps, rates, more=""):
        low, middle, high = min(rates), statistics.median(rates), max(rates)
        rows.append({"program": what, "sizes": sizes, "steps": steps, "gcells": f"{middle:.1f}",
                     "low": f"{low:.1f}", "high": f"{high:.1f}", "note": more})
        print(rows[-1], flush=True)

    for place, name in enumerate(STARS):
        found = benched(args.folder, f"star{place}", STAR_STEPS)
        facts = common.device_facts(found, facts)
        rates = found["results"][0]["gcells"]
        row(f"star2d1r, {name}", f"{STAR}x{STAR}", STAR_STEPS, list(rates.values()))
    cells = SIZE * SIZE * STEPS * 1e-9
    for place, name in enumerate(SRADS):
        found = benched(args.folder, f"srad{place}", STEPS)
        row(name, f"{SIZE}x{SIZE}", STEPS, list(found["results"][0]["gcells"].values()))
    for form, fast in itertools.product(("plain", "plain, differences stored"), (False, True)):
        found = plain(form, STEPS, fast)
        said = f"mean {found.pop('mean'):.9f}, deviation {found.pop('deviation'):.9f}"
        for name, times in found.items():
            row(f"srad, {form}{', fast math' if fast else ''}", f"{SIZE}x{SIZE}", STEPS,
                [cells / one for one in times], f"{name}; {said}")
    what = {"what": "star2d1r with reductions that end the run; SRAD against plain CUDA",
            "rate": "GCells/s of a step"}
    common.write_record(args.out, {**what, **facts}, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    one.set_defaults(command=build)
    two = commands.add_parser("measure")
    two.add_argument("folder", type=pathlib.Path)
    two.add_argument("out", type=pathlib.Path)
    two.set_defaults(command=measure)
    args = parser.parse_args()
    args.command(args)


if __name__ == "__main__":
    main()
