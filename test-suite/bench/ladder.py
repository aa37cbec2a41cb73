"""The steps of matrix multiplication of Ryoo et al., figure 4, measured beside their prediction.

    python3 test-suite/bench/ladder.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/ladder.py measure FOLDER OUT.tsv
    python3 test-suite/bench/ladder.py report OUT.tsv

`build` needs the compiled project, ptxas, nvcc with CUDA's headers, nvdisasm, and no GPU. `measure`
needs Python, NumPy, CuPy, PyTorch and a GPU. The paper is *Optimization Principles and Application
Performance Evaluation of a Multithreaded GPU Using CUDA*, PPoPP 2008: C = A B, 4096 x 4096, f32.

- CUDA: the steps of the paper's figure 3: one thread a cell; tiles in shared memory; the inner loop
  unrolled; the next tile loaded before the current one is computed (section 4.4).
- stencilc: `--no-nest-tiles`; the same tiles with one cell a thread, which are always unrolled and
  load the next tile ahead, since no option turns either off; the compiler's own tile.
- cuBLAS: by PyTorch, without TF32.

`build` predicts the throughput from the machine code of the loop over tiles, as the paper's section
4 does. Loops within it count as often as they run. The peak is 66.9 TFLOP/s: 132 multiprocessors,
128 multiply-adds a clock, 1,980 MHz. `full` is the part of a block's lanes that are threads.

    issue   peak * multiply-adds / instructions * full
    demand  bytes of global loads / instructions * 33.5e12 lanes a second * full
    memory  issue * min(1, 4.25 TB/s / demand), the rate of a copy, as if no cache joined loads
    shared  peak / 4 * multiply-adds / loads of shared memory * full

A multiprocessor issues four instructions of a warp a clock, and serves at most one request to
shared memory; the paper's device had no such limit.
The paper's prediction is the smaller of issue and memory. Tiles of 12 need padded arrays, whose
multiply-adds do not count. `check` compares 64 rows with PyTorch's in 64 bits.
"""

import math
import re

import common
import gpu

SIZE = 4096
TILES = [4, 8, 12, 16, 32]
MULTIPROCESSORS, LANES, CLOCK, COPY = 132, 128, 1.98e9, 4.25e12
PEAK = 2 * MULTIPROCESSORS * LANES * CLOCK
PASSES = ("builtin.module(tile-affine-nest{{threads={0},{0} per-thread=1,1 time={0}}},"
          "lower-affine-nest,gpu.module(canonicalize{{top-down=false}},cse),bank-pad)")

NEST = """\
func.func @mm(
    %c: memref<?x?xf32> {stencil.name = "C", stencil.extents = ["N", "M"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %b: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["K", "M"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %k: index {stencil.name = "K"}) {
  %zero = arith.constant 0.0 : f32
  affine.parallel (%i, %j) = (0, 0) to (symbol(%n), symbol(%m)) {
    affine.store %zero, %c[%i, %j] : memref<?x?xf32>
    affine.for %l = 0 to %k {
      %0 = affine.load %c[%i, %j] : memref<?x?xf32>
      %1 = affine.load %a[%i, %l] : memref<?x?xf32>
      %2 = affine.load %b[%l, %j] : memref<?x?xf32>
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %0, %3 : f32
      affine.store %4, %c[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
"""

NAIVE = r"""
extern "C" __global__ void naive(const float* a, const float* b, float* c, int n) {
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    int at = row * n, bt = column;
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < n; i++) {
        sum += a[at] * b[bt];
        at++;
        bt += n;
    }
    c[row * n + column] = sum;
}
"""

TILED = r"""
extern "C" __global__ void __launch_bounds__(TILE * TILE) NAME(
        const float* a, const float* b, float* c, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    int at = row * n + tx, bt = ty * n + column;
    float sum = 0, next_a, next_b;
    if (AHEAD) {
        next_a = a[at];
        next_b = b[bt];
    }
    #pragma unroll 1
    for (int k = 0; k < n; k += TILE) {
        as[ty][tx] = AHEAD ? next_a : a[at];
        bs[ty][tx] = AHEAD ? next_b : b[bt];
        at += TILE;
        bt += TILE * n;
        __syncthreads();
        if (AHEAD && k + TILE < n) {
            next_a = a[at];
            next_b = b[bt];
        }
        #pragma unroll UNROLL
        for (int i = 0; i < TILE; i++) sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""

# Steps of CUDA: whether the inner loop is unrolled, and whether the next tile is loaded ahead.
STEPS = {"tiles": (False, False), "tiles, unrolled": (True, False),
         "tiles, unrolled, next tile ahead": (True, True)}
AHEAD = "tiles, unrolled, next tile ahead"


def rungs():
    """Source, step and tile of each rung, and the stem of its file or the name of its kernel."""
    yield "CUDA", "naive", 16, "naive"
    for place, step in enumerate(STEPS):
        for tile in TILES:
            yield "CUDA", step, tile, f"tiles_{tile}_{place}"
    yield "stencilc", "naive", "", "mm-naive"
    for tile in TILES:
        yield "stencilc", AHEAD, tile, f"mm-{tile}"
    yield "stencilc", "default", "", "mm-default"
    yield "cuBLAS", "", "", ""


def cuda():
    """The text of all kernels in CUDA."""
    parts = [NAIVE]
    for source, step, tile, name in rungs():
        if source == "CUDA" and step in STEPS:
            unrolled, ahead = STEPS[step]
            words = {"NAME": name, "UNROLL": str(tile if unrolled else 1),
                     "AHEAD": str(int(ahead)), "TILE": str(tile)}
            text = TILED
            for word, value in words.items():
                text = re.sub(rf"\b{word}\b", value, text)
            parts.append(text)
    return "".join(parts)


def spans(lines):
    """First and last line of each loop: a label, and the last branch back to it."""
    import inner_loops

    labels = {line: place for place, line in enumerate(lines) if line.endswith(":")}
    found = {}
    for place, line in enumerate(lines):
        if not line.endswith(":") and inner_loops.operation(line) == "BRA":
            target = re.search(r"\.L_\w+", line)
            start = labels.get(target[0] + ":", place) if target else place
            # A kernel ends with a branch to itself, which is no loop.
            if start < place - 1:
                found[start] = place
    return [(start, end) for start, end in found.items()]


def counts(lines):
    """Instructions, multiply-adds, bytes of global loads and loads of shared memory."""
    import inner_loops

    lines = [line for line in lines if not line.endswith(":")]
    names = [inner_loops.operation(line) for line in lines]
    widths = [re.search(r"\bLDG\S*", line) for line in lines]
    sizes = [int((re.search(r"\.(64|128)\b", one[0]) or [0, 32])[1]) // 8
             for one in widths if one]
    return [len(lines), names.count("FFMA"), sum(sizes), names.count("LDS")]


def turn(lines, wanted):
    """Counts of one turn of the loop over tiles, which computes `wanted` multiply-adds: the loop
    with barriers, if there is one, of the most multiply-adds."""
    loops = [(end - start, start, end) for start, end in spans(lines)
             if counts(lines[start:end + 1])[1]]
    fenced = [one for one in loops if any("BAR.SYNC" in line for line in lines[one[1]:one[2]])]
    loops = fenced or loops
    outer = [one for one in loops
             if not any(b < one[1] and one[2] < c for _, b, c in loops)]
    _, start, end = max(outer, key=lambda one: (counts(lines[one[1]:one[2] + 1])[1], one[0]))
    within = [(b, c) for b, c in spans(lines)
              if start < b and c < end and counts(lines[b:c + 1])[1]]
    own = [line for place, line in enumerate(lines)
           if start <= place <= end and not any(b <= place <= c for b, c in within)]
    total = counts(own)
    for b, c in within:
        inner = counts(lines[b:c + 1])
        turns = (wanted - total[1]) / inner[1]
        total = [x + turns * y for x, y in zip(total, inner, strict=True)]
    return total


def prediction(found, threads):
    """Columns of the bounds, in TFLOP/s and TB/s; a block has so many threads."""
    instructions, adds, size, loads = found
    full = threads / (32 * -(-threads // 32))
    issue = PEAK * adds / instructions * full
    demand = size / instructions * MULTIPROCESSORS * LANES * CLOCK * full
    memory = issue * min(1, COPY / demand) if demand else issue
    shared = PEAK / 4 * adds / loads * full if loads else math.inf
    return {"instructions": f"{instructions:g}", "multiply_adds": f"{adds:g}",
            "global_bytes": f"{size:g}", "shared_loads": f"{loads:g}",
            "issue": f"{issue * 1e-12:.2f}", "demand_tbs": f"{demand * 1e-12:.2f}",
            "memory": f"{memory * 1e-12:.2f}",
            "shared": "" if shared == math.inf else f"{shared * 1e-12:.2f}",
            "predicted": f"{min(issue, memory) * 1e-12:.2f}",
            "predicted_with_shared": f"{min(issue, memory, shared) * 1e-12:.2f}"}


def build(args):
    """Machine code of all rungs, and predictions."""
    import inner_loops

    args.folder.mkdir(parents=True, exist_ok=True)
    used = gpu.written(args, "ladder", cuda())
    code = inner_loops.kernels(gpu.disassembly(args, args.folder / "ladder.cubin"))
    source, made = args.folder / "mm.mlir", {}
    source.write_text(NEST)
    options = {"naive": lambda _: ["--no-nest-tiles"], "default": lambda _: [],
               AHEAD: lambda tile: ["--passes", PASSES.format(tile)]}
    for origin, step, tile, name in rungs():
        if origin == "cuBLAS":
            continue
        lines = code.get(name)
        own = used.get(name)
        if origin == "stencilc":
            (own,) = gpu.compiled(args, name, source, *options[step](tile)).values()
            text = gpu.disassembly(args, args.folder / f"{name}.cubin")
            (lines,) = inner_loops.kernels(text).values()
        made[name] = {**own, **prediction(turn(lines, tile), (tile or 32) ** 2)}
        gpu.progress(f"{name}: {made[name]}")
    gpu.prepared(args, "ladder.json", ["ladder.py"], {"rungs": made})


class Bench:
    """Matrices on the device."""

    def __init__(self, folder):
        import cupy
        import numpy
        import torch

        self.cupy, self.np, self.torch, self.folder = cupy, numpy, torch, folder
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(1)
        self.device = gpu.Device(folder)
        self.manifest = common.manifest(folder, "ladder.json", "ladder.py build")
        self.a, self.b = (torch.rand((SIZE, SIZE), device="cuda") - 0.5 for _ in range(2))
        self.some = torch.randperm(SIZE, device="cuda")[:64]
        self.wanted = self.a[self.some].double() @ self.b.double()

    def padded(self, matrix, size):
        """A matrix with zeros behind its rows and columns."""
        found = self.torch.zeros((size, size), device="cuda")
        found[:SIZE, :SIZE] = matrix
        return found

    def call(self, source, tile, name):
        """A function that multiplies, and where its result is."""
        size = -(-SIZE // tile) * tile if source == "CUDA" else SIZE
        a, b = (one if size == SIZE else self.padded(one, size) for one in (self.a, self.b))
        c = self.torch.full((size, size), math.nan, device="cuda")
        if source == "cuBLAS":
            return (lambda: self.torch.mm(a, b, out=c)), c
        arrays = {key: self.cupy.asarray(one) for key, one in zip("ABC", (a, b, c), strict=True)}
        if source == "stencilc":
            sizes = {"N": SIZE, "M": SIZE, "K": SIZE}
            return gpu.Plan(self.folder, name).run(arrays, sizes), c
        module = self.cupy.RawModule(path=str(self.folder / "ladder.cubin"))
        kernel, words = module.get_function(name), (*arrays.values(), self.np.int32(size))
        blocks = size // tile
        return (lambda: kernel((blocks, blocks), (tile, tile), words)), c

    def right(self, c):
        """Whether 64 rows are those of the product in 64 bits."""
        off = (c[self.some, :SIZE].double() - self.wanted).abs().max().item()
        return math.isfinite(off) and off <= 1e-4 * self.wanted.abs().max().item()


def measure(args):
    """All rungs."""
    bench = Bench(args.folder.resolve())
    facts = {"what": f"matrix multiplication of Ryoo et al., figure 4, {SIZE} x {SIZE}, f32",
             "commit": bench.manifest["commit"], **bench.device.facts(),
             "measured": "median of 5 after two, TFLOP/s"}
    rows = []
    for source, step, tile, name in rungs():
        call, c = bench.call(source, tile, name)
        call()
        check = "right" if bench.right(c) else "wrong"
        rates = [2e-12 * SIZE**3 / one for one in bench.device.timed(call)]
        rows.append({"source": source, "step": step, "tile": f"{tile}x{tile}" if tile else "",
                     **gpu.spread(rates), **bench.manifest["rungs"].get(name, {}),
                     "check": check})
        gpu.progress(f"{source} {step} {tile}: {rows[-1]['value']} TFLOP/s, {check}")
    gpu.finished(args.out, facts, rows)


def report(args):
    """A table in Markdown."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz; TFLOP/s\n")
    columns = ["issue", "memory", "shared", "predicted", "predicted_with_shared"]
    lines = []
    for row in rows:
        parts = [f"{float(row['value']) / float(row[name]):.2f}" if row[name] else ""
                 for name in columns[3:]]
        lines.append([row["source"], row["step"], row["tile"], row["registers"],
                      f"{float(row['value']):.2f}", *(row[name] for name in columns),
                      *parts, row["check"]])
    gpu.table(["source", "step", "tile", "registers", "measured", *columns,
               "of predicted", "of predicted with shared", "check"], lines)


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
