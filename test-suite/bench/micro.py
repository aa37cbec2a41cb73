"""What Baskaran et al. measure of a GPU in section 3, on a GPU of today, by CUDA kernels.

    python3 test-suite/bench/micro.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/micro.py measure FOLDER OUT.tsv
    python3 test-suite/bench/micro.py report OUT.tsv

`build` needs the compiled project, nvcc with CUDA's headers, nvdisasm, and no GPU. `measure` needs
Python, NumPy, CuPy and a GPU. The paper is *A Compiler Framework for Optimization of Affine Loop
Nests for General Purpose Computations on GPUs*, OSU-CISRC-12/07-TR78.

- Table 1: GB/s of one block that reads N elements of 4 bytes, in blocked or cyclic shares of its
  threads. `one block` reads from memory, `one block, again` what it just read. Of the whole `chip`,
  each block reads N elements of its own.
- Figure 1: GB/s over the stride between threads and the threads of a block, of one block and of the
  chip. Only the bytes that are asked for count.
- Figure 2: clocks of an access to shared memory over the stride between the 32 threads of a warp,
  100 accesses each.
- Figure 3: clocks of an iteration of a loop of 1,024, which adds a scalar to an element of shared
  memory, over unroll factors: always to `one element`, or four times to each of 256 `elements`.
- Figure 6: clocks of an access over the requests to one bank: n lanes read different words of one
  bank, and each other lane reads a word of a bank of its own.

Figures 2 and 6 have three ways. In a `chain`, an access needs the value of the one before. The
accesses of `one warp` are independent, those of `32 warps` too, and all warps do the same.

Clocks are those of `clock64`, a loop without accesses subtracted. `report` fits `C(n) = t_start +
t_request n` (equation 5) by least squares, and compares the points with the constants that
`bank-pad` uses. A global load has a variant that keeps out of the L1 cache (`L2`), as the paper's
device had none. `check` compares each thread's sum, or last value, with NumPy's or CuPy's.
"""

import math
import re

import common
import gpu
from micro_kernels import ACCESSES, UNROLLS, kernels

WORDS = 4096
ELEMENTS = 1 << 28
ITERATIONS = 1024
SIZES = [2048, 4096, 8192, 16384, 32768]
THREADS = [32, 64, 128, 256, 512]
STRIDES = range(1, 65)
# Loads of a thread of figure 1: of one block, and of the whole chip.
LOADS = {"one block": 64, "chip": 16}
REPEATS = 5
WAYS = {"chain": ("chain", 32), "one warp": ("apart", 32), "32 warps": ("apart", 1024)}

def constants():
    """Clocks of a bank that `bank-pad` uses for the H200: t_start and t_request."""
    text = (common.ROOT / "runtime/src/device/catalog.rs").read_text()
    text = text[text.index("pub const H200: Device"):]
    names = ("bank_start_clocks", "bank_request_clocks")
    return {name: float(re.search(name + r": ([\d.]+)", text)[1]) for name in names}


def build(args):
    """Machine code, whose loads are counted, and what the GPU machine needs."""
    import inner_loops

    args.folder.mkdir(parents=True, exist_ok=True)
    used = gpu.written(args, "micro", kernels())
    if spills := [name for name, one in used.items() if one["spilled"]]:
        raise SystemExit(f"error: {', '.join(spills)} spill registers")
    code = inner_loops.kernels(gpu.disassembly(args, args.folder / "micro.cubin"))
    loads = {}
    for name, lines in code.items():
        lines = [line for line in lines if not line.endswith(":")]
        loads[name] = sum(inner_loops.operation(line) == "LDS" for line in lines)
        gpu.progress(f"{name}: {used[name]['registers']} registers, {loads[name]} loads of shared "
                     f"memory in {len(lines)} instructions")
    for name in (f"chain_{ACCESSES}", f"apart_{ACCESSES}"):
        if loads[name] != ACCESSES:
            raise SystemExit(f"error: {name} has {loads[name]} loads, not {ACCESSES}")
    gpu.prepared(args, "micro.json", ["micro.py", "micro_kernels.py"],
                 {"used": used, "loads": loads, "constants": constants()})


class Bench:
    """Kernels, and the array that global loads read."""

    def __init__(self, folder):
        import cupy
        import numpy

        self.cupy, self.np, self.rows = cupy, numpy, []
        self.device = gpu.Device(folder)
        self.manifest = common.manifest(folder, "micro.json", "micro.py build")
        self.module = cupy.RawModule(path=str(folder / "micro.cubin"))
        self.cells = cupy.arange(ELEMENTS, dtype=cupy.uint32)
        self.cells *= cupy.uint32(2654435761)
        self.place, self.megahertz = 0, self.device.megahertz()

    def row(self, columns, values, unit, check):
        """Adds a row."""
        self.rows.append({**columns, "unit": unit, **gpu.spread(values),
                          "check": "right" if check else "wrong"})

    def region(self, size):
        """The start of elements that were not read of late."""
        if self.place + size > ELEMENTS:
            self.place = 0
        start, self.place = self.place, self.place + -(-size // 64) * 64
        return start

    def read(self, through, blocks, threads, each, steps, start):
        """A function that launches global loads; their clocks, and whether sums are right."""
        cupy, np = self.cupy, self.np
        thread_step, access_step, block_step = steps
        cells = self.cells[start:]
        sums = cupy.zeros((blocks, threads), cupy.uint32)
        clocks = cupy.zeros(2, cupy.int64)
        kernel = self.module.get_function(f"read_{through}")
        words = (cells, sums, clocks, np.int32(each), np.int32(thread_step),
                 np.int32(access_step), np.int64(block_step))

        def launch():
            kernel((blocks,), (threads,), words)

        def right():
            strides = tuple(4 * step for step in (block_step, thread_step, access_step))
            shape = (blocks, threads, each)
            view = cupy.lib.stride_tricks.as_strided(cells, shape, strides)
            return bool((view.sum(axis=2, dtype=cupy.uint32) == sums).all())

        return launch, clocks, right

    def one_block(self, columns, threads, each, steps):
        """Rates of one block: from memory, and again from caches."""
        first, again, size = [], [], each * threads
        for _ in range(1 + REPEATS):
            span = (threads - 1) * steps[0] + (each - 1) * steps[1] + 1
            launch, clocks, right = self.read(
                columns["through"], 1, threads, each, (*steps, span), self.region(span))
            launch()
            for rates, count in zip((first, again), clocks.get().tolist(), strict=True):
                rates.append(4 * size * self.megahertz * 1e6 / max(count, 1) * 1e-9)
        check = right()
        self.row({**columns, "way": "one block"}, first[1:], "GB/s", check)
        self.row({**columns, "way": "one block, again"}, again[1:], "GB/s", check)

    def chip(self, columns, threads, each, steps, span):
        """The rate of all multiprocessors, each block with elements of its own."""
        blocks = ELEMENTS // span
        launch, _, right = self.read(
            columns["through"], blocks, threads, each, (*steps, span), 0)
        seconds = self.device.timed(launch, repeats=REPEATS)
        rates = [4e-9 * blocks * threads * each / one for one in seconds]
        self.row({**columns, "way": "chip"}, rates, "GB/s", right())

    def table_1(self):
        """Shares of threads: the paper does not give the threads of its block."""
        for through in ("L1", "L2"):
            for threads in (128, 512):
                for size in SIZES:
                    each = size // threads
                    for shares, steps in (("blocked", (each, 1)), ("cyclic", (1, threads))):
                        columns = {"figure": "table 1", "through": through, "threads": threads,
                                   "elements": size, "shares": shares}
                        self.one_block(columns, threads, each, steps)
                        self.chip(columns, threads, each, steps, size)

    def figure_1(self):
        """Strides between threads."""
        for threads in THREADS:
            for stride in STRIDES:
                columns = {"figure": "figure 1", "through": "L1", "threads": threads,
                           "stride": stride}
                steps = (stride, threads * stride)
                self.one_block(columns, threads, LOADS["one block"], steps)
                span = threads * stride * LOADS["chip"]
                self.chip(columns, threads, LOADS["chip"], steps, span)

    def wanted(self, kernel, starts):
        """Results of 32 lanes."""
        at = self.np.array(starts)
        if kernel == "chain":
            return at + ACCESSES
        words = (self.np.arange(WORDS, dtype=self.np.uint64) * 2654435761) % (1 << 32)
        return self.np.bitwise_xor.reduce([words[at + k] for k in range(ACCESSES)])

    def access(self, columns, starts):
        """Clocks of an access of a warp to shared memory, in all ways."""
        cupy = self.cupy
        first, clocks = cupy.asarray(starts, cupy.int32), cupy.zeros(1, cupy.int64)
        for way, (kernel, threads) in WAYS.items():
            found, counts = cupy.zeros(threads, cupy.uint32), {}
            for count in (0, ACCESSES):
                launched = self.module.get_function(f"{kernel}_{count}")
                counts[count] = []
                for _ in range(REPEATS):
                    launched((1,), (threads,), (first, clocks, found))
                    counts[count].append(int(clocks.get()[0]))
            empty = sorted(counts[0])[REPEATS // 2]
            each = ACCESSES * threads // 32
            lanes = self.np.tile(self.wanted(kernel, starts), threads // 32)
            check = (found.get() == lanes).all()
            values = [(one - empty) / each for one in counts[ACCESSES]]
            self.row({**columns, "way": way}, values, "clocks", check)

    def figure_2(self):
        """Strides in shared memory."""
        for stride in (*range(1, 34), 64):
            columns = {"figure": "figure 2", "stride": stride, "requests": math.gcd(stride, 32)}
            self.access(columns, [lane * stride for lane in range(32)])

    def figure_6(self):
        """Requests to one bank."""
        for count in range(1, 33):
            starts = [32 * lane if lane < count else lane for lane in range(32)]
            self.access({"figure": "figure 6", "requests": count}, starts)

    def figure_3(self):
        """Unrolled loops."""
        cupy, np = self.cupy, self.np
        for kernel, way, blocks in (("one", "one element", (32, 256)), ("each", "elements", (32,))):
            for threads in blocks:
                for factor in UNROLLS:
                    name, values = f"{kernel}_{factor}", []
                    found, clocks = cupy.zeros(threads, cupy.float32), cupy.zeros(1, cupy.int64)
                    for _ in range(REPEATS):
                        words = (np.float32(0.5), clocks, found)
                        self.module.get_function(name)((1,), (threads,), words)
                        values.append(int(clocks.get()[0]) / ITERATIONS)
                    columns = {"figure": "figure 3", "way": way, "threads": threads,
                               "unroll": factor,
                               "registers": self.manifest["used"][name]["registers"]}
                    check = (found.get() == np.float32(0.5 * ITERATIONS)).all()
                    self.row(columns, values, "clocks", check)


def measure(args):
    """All figures."""
    bench = Bench(args.folder)
    facts = {"what": "microbenchmarks of Baskaran et al., section 3",
             "commit": bench.manifest["commit"], **bench.device.facts(),
             "measured": f"median of {REPEATS} after one; {ACCESSES} accesses a thread",
             **bench.manifest["constants"]}
    for figure in (bench.figure_6, bench.figure_2, bench.figure_3, bench.table_1, bench.figure_1):
        figure()
        gpu.progress(f"{figure.__name__}: {len(bench.rows)} rows")
    gpu.finished(args.out, facts, bench.rows)


def fit(points):
    """The line of least squares through (n, clocks): start and slope."""
    count, xs, ys = len(points), [x for x, _ in points], [y for _, y in points]
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points)
    slope /= sum((x - mean_x) ** 2 for x in xs)
    return mean_y - slope * mean_x, slope


def within(points, line):
    """How many points lie within 20 % of a line, and the largest difference, as text."""
    start, slope = line
    off = [abs(start + slope * x - y) / y if y > 0 else math.inf for x, y in points]
    return f"{sum(one <= 0.2 for one in off)} of {len(off)}, {max(off):.0%} at most"


def report_banks(facts, rows):
    """Figures 2 and 6, and the fits."""
    own = gpu.pick(rows, figure="figure 6")
    model = tuple(float(facts[name]) for name in ("bank_start_clocks", "bank_request_clocks"))
    lines = []
    for way in WAYS:
        points = [(int(row["requests"]), float(row["value"])) for row in gpu.pick(own, way=way)]
        line = fit(points)
        lines.append([way, f"{line[0]:.2f}", f"{line[1]:.3f}", within(points, line),
                      within(points, model)])
    print(f"Fits of figure 6. `bank-pad` has t_start = {model[0]}, t_request = {model[1]}.\n")
    gpu.table(["way", "t_start", "t_request", "within 20 % of the fit",
               "within 20 % of the model"], lines)
    for figure, name in (("figure 6", "requests"), ("figure 2", "stride")):
        own = gpu.pick(rows, figure=figure)
        print(f"Clocks of an access, {figure}.\n")
        found = list(dict.fromkeys(row[name] for row in own))
        degrees = {row[name]: int(row["requests"]) for row in own}
        gpu.table([name, "requests", *WAYS, "model"],
                  [[one, degrees[one], *(gpu.cell(own, "{:.2f}", way=way, **{name: one})
                                         for way in WAYS),
                    f"{model[0] + model[1] * degrees[one]:g}"] for one in found])


def report(args):
    """Tables in Markdown."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz\n")
    for through in ("L1", "L2"):
        for threads in (128, 512):
            wanted = {"figure": "table 1", "through": through, "threads": threads}
            ways = [(way, shares) for way in ("one block", "one block, again", "chip")
                    for shares in ("blocked", "cyclic")]
            print(f"Table 1, GB/s, {threads} threads, loads through {through}.\n")
            gpu.table(["N", *(f"{way}: {shares}" for way, shares in ways)],
                      [[size, *(gpu.cell(rows, **wanted, elements=size, way=way, shares=shares)
                                for way, shares in ways)] for size in SIZES])
    for way in ("one block", "chip"):
        print(f"Figure 1, GB/s asked for, {way}.\n")
        gpu.table(["stride", *(f"{threads} threads" for threads in THREADS)],
                  [[stride, *(gpu.cell(rows, figure="figure 1", way=way, stride=stride,
                                       threads=threads) for threads in THREADS)]
                   for stride in (*range(1, 10), 12, 16, 17, 24, 31, 32, 33, 48, 63, 64)])
    report_banks(facts, rows)
    print("Figure 3, clocks of an iteration.\n")
    ways = [("one element", 32), ("one element", 256), ("elements", 32)]
    gpu.table(["unroll", *(f"{way}, {threads} threads" for way, threads in ways)],
              [[factor, *(gpu.cell(rows, "{:.2f}", figure="figure 3", way=way, threads=threads,
                                   unroll=factor) for way, threads in ways)]
               for factor in UNROLLS])


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
