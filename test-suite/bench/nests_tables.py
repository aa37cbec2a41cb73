"""What Baskaran et al. measure of compiled loops in section 8, by name, on a GPU of today.

    python3 test-suite/bench/nests_tables.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/nests_tables.py measure FOLDER OUT.tsv
    python3 test-suite/bench/nests_tables.py report OUT.tsv

`build` needs the compiled project, ptxas, nvcc with CUDA's headers, and no GPU; it takes five
minutes. `measure` needs Python, NumPy, CuPy, PyTorch and a GPU. The paper is *A Compiler Framework
for Optimization of Affine Loop Nests for General Purpose Computations on GPUs*,
OSU-CISRC-12/07-TR78. All numbers are of 32 bits.

- Table 2: mv with the matrix from global memory (`--no-nest-tiles`), by tiles without pads (the
  default tile without `bank-pad`, whose 32 lanes then meet in one bank), and by default.
- Table 3: tmv in blocked and cyclic shares of threads, 8 columns each: from global memory as one
  text in CUDA, and by tiles of the compiler (`blocked=on`, `off`), whose copies are cyclic in both.
  `--no-nest-tiles` and the default stand beside them.
- Figure 7: mm by each tile that the search keeps (`--candidates`).
- Figure 8: mv, tmv, mvt and mm beside cuBLAS.
- Table 4: MRI-Q and MRI-FHD by `--no-nest-tiles` and by default, with and without `--fast-math`.
- Figure 9: FDTD as a nest, and as the stencil program of the same updates.

Operations: 2 a term of a product; 12 of MRI-Q and 16 of MRI-FHD, a sine or a cosine being one; 11
a point and step of FDTD. cuBLAS runs by PyTorch, without TF32. Calls of products follow each other
without a pause on both sides; FDTD runs as CUDA graphs. Each version is compared with PyTorch's
result in 64 bits, products of matrices in 64 rows, MRI at 256 points.
"""

import json
import math
import pathlib
import re
import tempfile

import common
import gpu

SIZES = [2048, 4096, 8192, 16384]
SEARCHED = 4096
MRI = {"N": 262144, "K": 2048}
MRI_OPERATIONS = {"mri-q": 12, "mri-fhd": 16}
FDTD_SIZES = [1024, 2048, 4096, 8192]
FDTD_OPERATIONS = 11
NEST_STEPS, PROGRAM_STEPS, CHECKED_STEPS = 16, 64, 12
PLAIN = ["--no-nest-tiles"]
UNPADDED = ["--passes", "builtin.module(tile-affine-nest,lower-affine-nest,"
            "gpu.module(canonicalize{top-down=false},cse))"]


def shares(blocked):
    """Options for tiles with 8 columns a thread."""
    tile = f"tile-affine-nest{{threads=32 copiers=8 per-thread=8 blocked={blocked} time=16}}"
    return ["--passes", f"builtin.module({tile},lower-affine-nest,"
            "gpu.module(canonicalize{top-down=false},cse),eliminate-barriers,bank-pad)"]


# Versions of each program: stem of the files, and options of the compile.
VERSIONS = {
    "mv": {"direct global": PLAIN, "tiles without pads": UNPADDED, "default": []},
    "tmv": {"direct global": PLAIN, "default": [], "tiles blocked": shares("on"),
            "tiles cyclic": shares("off")},
    "mvt": {"direct global": PLAIN, "default": []},
    "mm-f32": {"direct global": PLAIN, "default": []},
    "mri-q": {"direct global": PLAIN, "default": [], "direct global, fast math":
              [*PLAIN, "--fast-math"], "default, fast math": ["--fast-math"]},
    "fdtd2d": {"nest": []},
}
VERSIONS["mri-fhd"] = VERSIONS["mri-q"]
# Columns of a thread, and threads of a block, of tmv in shares.
SHARE, SHARERS = 8, 32
SHARES = r"""
extern "C" __global__ void tmv(const float* a, const float* y, float* x, int n, int m,
                               int thread_step, int column_step) {
    int first = blockIdx.x * blockDim.x * SHARE + threadIdx.x * thread_step;
    float sums[SHARE] = {};
    #pragma unroll 4
    for (int j = 0; j < n; j++)
        #pragma unroll
        for (int k = 0; k < SHARE; k++)
            sums[k] += a[(long long)j * m + first + k * column_step] * y[j];
    #pragma unroll
    for (int k = 0; k < SHARE; k++) x[first + k * column_step] = sums[k];
}
"""


def stem(program, version):
    """The name of files of a version."""
    return f"{program}.{re.sub(r'[^a-z]+', '-', version)}"


def tile(plan):
    """The tile that a candidate's plan states, as a column."""
    settings = json.loads(plan.read_text())["settings"]
    cells = settings["per_thread"]
    threads = [size // own for size, own in zip(settings["tile"], cells, strict=True)]
    return (f"threads={','.join(map(str, threads))} per-thread={','.join(map(str, cells))} "
            f"time={settings['copies']['time']}")


def worst(used):
    """Registers and spilled bytes of the kernel that takes most."""
    return max(used.values(), key=lambda one: one["registers"])


def candidates(args):
    """All tiles of mm that the search keeps."""
    source = common.ROOT / "test-suite/nests/mm-f32.mlir"
    words = [args.release / "stencilc", source, "--emit=ptx,plan", "--candidates", 1000]
    common.call([*words, "-o", args.folder / "mm"])
    made = {}
    for plan in sorted(args.folder.glob("mm.[0-9]*.plan.json")):
        name = plan.name.removesuffix(".plan.json")
        used = gpu.cubin(args, args.folder / f"{name}.ptx")
        made[name] = {"tile": tile(plan), **worst(used)}
    return made


def build(args):
    """Plans and machine code of all versions."""
    args.folder.mkdir(parents=True, exist_ok=True)
    used = {}
    for program, versions in VERSIONS.items():
        source = common.ROOT / f"test-suite/nests/{program}.mlir"
        for version, options in versions.items():
            name = stem(program, version)
            used[name] = worst(gpu.compiled(args, name, source, *options))
            gpu.progress(f"{name}: {used[name]}")
    used["shares"] = worst(gpu.written(args, "shares", SHARES.replace("SHARE", str(SHARE))))
    source = common.ROOT / "test-suite/programs/fdtd2d.stencil"
    words = [args.release / "stencilc", source, "--device=H200", "--emit=ptx,plan"]
    for size in FDTD_SIZES:
        fixed = ["-D", f"N={size}", "-D", f"M={size}"]
        common.call([*words, *fixed, "-o", args.folder / f"fdtd-{size}"])
        naive = [*fixed, "--strategy=naive", "-o", args.folder / f"fdtd-naive-{size}"]
        common.call([*words, *naive])
    searched = candidates(args)
    gpu.progress(f"{len(searched)} candidates of mm")
    gpu.prepared(args, "nests_tables.json", ["nests_tables.py"],
                 {"used": used, "candidates": searched})


def close(found, wanted, tolerance=1e-4):
    """Whether all values lie within a part of the largest one."""
    off = (found.double() - wanted).abs().max().item()
    return math.isfinite(off) and off <= tolerance * wanted.abs().max().item()


class Bench:
    """Data on the device, and rows."""

    def __init__(self, folder, made="nests_tables"):
        import cupy
        import torch

        self.cupy, self.torch, self.folder, self.rows = cupy, torch, folder, []
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(1)
        self.device = gpu.Device(folder)
        self.manifest = common.manifest(folder, f"{made}.json", f"{made}.py build")

    def noise(self, *shape):
        """Numbers from -0.5 to 0.5."""
        return self.torch.rand(shape, device="cuda") - 0.5

    def plan(self, name, data, sizes, scalars=None):
        """A function that runs a plan on tensors."""
        arrays = {key: self.cupy.asarray(one) for key, one in data.items()}
        return gpu.Plan(self.folder, name).run(arrays, sizes, scalars)

    def row(self, columns, name, operations, seconds, check):
        """Adds a row with a rate in GFLOP/s; `check` is nothing where no result was compared."""
        used = self.manifest["used"].get(name) or self.manifest.get("candidates", {}).get(name, {})
        rates = [operations / one * 1e-9 for one in seconds]
        self.rows.append({**columns, **used, "unit": "GFLOP/s", **gpu.spread(rates),
                          "ms": f"{sorted(seconds)[len(seconds) // 2] * 1e3:.5g}",
                          "check": {True: "right", False: "wrong", None: "none"}[check]})

    def versus(self, figure, name, case, call, right, inner):
        """Runs a version once, compares, measures and adds a row."""
        program, version, size, operations = case
        call()
        check = right()
        seconds = self.device.timed(call, inner)
        self.row({"figure": figure, "program": program, "size": size, "version": version},
                 name, operations, seconds, check)

    def shares(self, data, size, version):
        """A function that runs tmv in blocked or cyclic shares."""
        import numpy

        kernel = self.cupy.RawModule(path=str(self.folder / "shares.cubin")).get_function("tmv")
        steps = (SHARE, 1) if version == "blocked" else (1, SHARERS)
        arrays = tuple(self.cupy.asarray(data[key]) for key in ("A", "y", "x"))
        words = (*arrays, *(numpy.int32(one) for one in (size, size, *steps)))
        return lambda: kernel((size // (SHARE * SHARERS),), (SHARERS,), words)

    def vectors(self, size):
        """Tables 2 and 3, and figure 8 for mv and tmv."""
        torch, matrix, y = self.torch, self.noise(size, size), self.noise(size)
        sizes = {"N": size, "M": size}
        for program, own in (("mv", matrix), ("tmv", matrix.t())):
            wanted = own.double() @ y.double()
            versions = [*VERSIONS[program], "cuBLAS"]
            versions += ["blocked", "cyclic"] if program == "tmv" else []
            for version in versions:
                name, data = stem(program, version), {"A": matrix, "y": y}
                x = data["x"] = torch.full((size,), math.nan, device="cuda")
                if version == "cuBLAS":
                    call = lambda: torch.mv(own, y, out=x)  # noqa: E731
                elif version in VERSIONS[program]:
                    call = self.plan(name, data, sizes)
                else:
                    name, call = "shares", self.shares(data, size, version)
                case = (program, version, size, 2 * size * size)
                self.versus("products", name, case, call, lambda: close(x, wanted), 10)

    def both(self, size):
        """Figure 8 for mvt: two products, added to what the results were."""
        torch, matrix, y1, y2 = self.torch, self.noise(size, size), *self.noise(2, size)
        wanted = matrix.double() @ y1.double(), matrix.t().double() @ y2.double()
        for version in (*VERSIONS["mvt"], "cuBLAS"):
            x1, x2 = torch.zeros((2, size), device="cuda")
            name = stem("mvt", version)

            def library():
                torch.addmv(x1, matrix, y1, out=x1)
                torch.addmv(x2, matrix.t(), y2, out=x2)

            data = {"A": matrix, "x1": x1, "x2": x2, "y1": y1, "y2": y2}
            call = library if version == "cuBLAS" else self.plan(name, data, {"N": size})
            case = ("mvt", version, size, 4 * size * size)
            right = lambda: close(x1, wanted[0]) and close(x2, wanted[1])  # noqa: E731
            self.versus("products", name, case, call, right, 10)

    def matrices(self, size, versions, figure="products"):
        """Figure 8 for mm, or figure 7: C = alpha A B + beta C."""
        torch, scalars = self.torch, {"alpha": 1.5, "beta": 0.25}
        a, b, start = (self.noise(size, size) for _ in range(3))
        some = torch.randperm(size, device="cuda")[:64]
        wanted = 1.5 * (a[some].double() @ b.double()) + 0.25 * start[some].double()
        for version, name in versions.items():
            c = start.clone()
            call = lambda: torch.addmm(c, a, b, beta=0.25, alpha=1.5, out=c)  # noqa: E731
            if version != "cuBLAS":
                sizes = {"N": size, "M": size, "K": size}
                call = self.plan(name, {"A": a, "B": b, "C": c}, sizes, scalars)
            case = ("mm-f32", version, size, 2 * size**3)
            right = lambda: close(c[some], wanted)  # noqa: E731
            self.versus(figure, name, case, call, right, 5 if size <= SEARCHED else 1)

    def products(self):
        """Tables 2 and 3, and figure 8."""
        for size in SIZES:
            self.vectors(size)
            self.both(size)
            versions = {version: stem("mm-f32", version) for version in VERSIONS["mm-f32"]}
            if size > SEARCHED:
                del versions["direct global"]
            self.matrices(size, versions | {"cuBLAS": ""})
            gpu.progress(f"size {size}: {len(self.rows)} rows")

    def search(self):
        """Figure 7."""
        versions = {one["tile"]: name for name, one in self.manifest["candidates"].items()}
        versions |= {"default": stem("mm-f32", "default"), "cuBLAS": ""}
        self.matrices(SEARCHED, versions, "figure 7")

    def mri(self):
        """Table 4."""
        torch, (points, samples) = self.torch, MRI.values()
        data = {key: self.noise(points) for key in "xyz"}
        data |= {f"k{key}": self.noise(samples) for key in "xyz"}
        data |= {key: self.noise(samples) for key in ("phi", "dr", "di")}
        angles = sum(torch.outer(data[key][:256].double(), data[f"k{key}"].double())
                     for key in "xyz") * 2 * math.pi
        cosine, sine = angles.cos(), angles.sin()
        phi, dr, di = (data[key].double() for key in ("phi", "dr", "di"))
        wanted = {"mri-q": (cosine @ phi, sine @ phi),
                  "mri-fhd": (cosine @ dr + sine @ di, cosine @ di - sine @ dr)}
        for program, operations in MRI_OPERATIONS.items():
            letter = "Q" if program == "mri-q" else "F"
            for version in VERSIONS[program]:
                real, imaginary = torch.zeros((2, points), device="cuda")
                name = stem(program, version)
                all_data = data | {f"{letter}r": real, f"{letter}i": imaginary}
                case = (program, version, points, operations * points * samples)
                call, bound = self.plan(name, all_data, MRI), 1e-3 if "fast" in version else 1e-4
                right = lambda: all(  # noqa: E731
                    close(one[:256], want, bound)
                    for one, want in zip((real, imaginary), wanted[program], strict=True))
                self.versus("table 4", name, case, call, right, 3)

    def stepped(self, fields, drive, steps):
        """FDTD by PyTorch; the stencil program has no row that is driven."""
        ex, ey, hz = (field.clone() for field in fields)
        for step in range(steps):
            if drive is not None:
                ey[0] = drive[step]
            ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
            ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
            inner = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            hz[:-1, :-1] -= 0.7 * inner
        return ex, ey, hz

    def nest_of_fdtd(self, size):
        """Figure 9 by the nest: a graph of some steps."""
        fields, drive = list(self.noise(3, size, size)), self.noise(NEST_STEPS)
        wanted = self.stepped(fields, drive, NEST_STEPS)
        data = dict(zip(("ex", "ey", "hz"), fields, strict=True), drive=drive)
        name = stem("fdtd2d", "nest")
        launches = self.plan(name, data, {"N": size, "M": size, "T": NEST_STEPS})
        launches()
        check = all(close(one, want.double(), 1e-5)
                    for one, want in zip(fields, wanted, strict=True))
        self.torch.cuda.synchronize()
        seconds = self.device.timed(self.device.graph(launches))
        columns = {"figure": "figure 9", "program": "fdtd2d", "size": size, "version": "nest"}
        operations = FDTD_OPERATIONS * size * size * NEST_STEPS
        self.row(columns, name, operations, seconds, check)

    def benched(self, size, *options):
        """What stencil-bench measures of the stencil program."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            words = [self.folder / "stencil-bench", self.folder / f"fdtd-{size}.plan.json"]
            words += ["--graph", "--steps", PROGRAM_STEPS, "--check-steps", CHECKED_STEPS]
            words += ["--repeat", 5, "--warmup", 1, "--pause", 0, "--tolerance", 1e-5]
            common.call([*words, *options, "--json", file.name])
            return json.loads(pathlib.Path(file.name).read_text())["results"][0]

    def expectation(self, folder, size):
        """Options that give the program data, and compare its result with PyTorch's."""
        import numpy

        fields, options = list(self.noise(3, size, size)), []
        wanted = self.stepped(fields, None, CHECKED_STEPS)
        for name, start, end in zip(("Ex", "Ey", "Hz"), fields, wanted, strict=True):
            for option, part, one in (("--in", "in", start), ("--expect", "out", end)):
                file = pathlib.Path(folder) / f"{name}.{part}.npy"
                numpy.save(file, one.cpu().numpy())
                options += [option, f"{name}={file}"]
        return options

    def program_of_fdtd(self, size):
        """Figure 9 by the stencil program: PyTorch's result for the least size, else naive's."""
        with tempfile.TemporaryDirectory() as scratch:
            options = ["--reference", self.folder / f"fdtd-naive-{size}.plan.json"]
            if size == FDTD_SIZES[0]:
                options = self.expectation(scratch, size)
            found = self.benched(size, *options)
        settings = found["settings"]
        version = f"program, {settings['strategy']}, {settings['pyramid_height']} steps a launch"
        operations = FDTD_OPERATIONS * size * size * PROGRAM_STEPS
        columns = {"figure": "figure 9", "program": "fdtd2d", "size": size, "version": version}
        check = found["check"] is not None and found["check"]["passed"]
        self.row(columns, "", operations, found["seconds"], check)

    def fdtd(self):
        """Figure 9."""
        for size in FDTD_SIZES:
            self.nest_of_fdtd(size)
            self.program_of_fdtd(size)
            gpu.progress(f"fdtd2d {size}: {len(self.rows)} rows")


def measure(args):
    """All tables and figures."""
    bench = Bench(args.folder.resolve())
    facts = {"what": "compiled loops of Baskaran et al., section 8",
             "commit": bench.manifest["commit"], **bench.device.facts(),
             "measured": "median of 5 after one; 10 (mv, tmv, mvt), 5 (mm up to 4,096), 3 (mri) "
                         "or one (mm above) calls in a row; FDTD: graphs",
             "mri": json.dumps(MRI)}
    for part in (bench.products, bench.search, bench.mri, bench.fdtd):
        part()
        gpu.progress(f"{part.__name__}: {len(bench.rows)} rows")
    gpu.finished(args.out, facts, bench.rows)


def by_size(rows, title, program, versions):
    """A table over sizes, GFLOP/s."""
    print(f"{title}, GFLOP/s\n")
    gpu.table(["N", *versions], [
        [size, *(gpu.cell(rows, "{:,.0f}", figure="products", program=program, size=size,
                          version=version) for version in versions)] for size in SIZES])


def report(args):
    """Tables in Markdown."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz\n")
    by_size(rows, "Table 2: mv", "mv", [*VERSIONS["mv"], "cuBLAS"])
    by_size(rows, "Table 3: tmv", "tmv",
            ["blocked", "cyclic", "direct global", "default", "cuBLAS"])
    for program in ("mv", "tmv", "mvt", "mm-f32"):
        by_size(rows, f"Figure 8: {program}", program, ["default", "cuBLAS"])
    own = sorted(gpu.pick(rows, figure="figure 7"), key=lambda row: -float(row["value"]))
    print(f"Figure 7: mm, {SEARCHED} x {SEARCHED}, GFLOP/s\n")
    gpu.table(["version", "registers", "spilled", "GFLOP/s", "check"],
              [[row["version"], row["registers"], row["spilled"],
                f"{float(row['value']):,.0f}", row["check"]] for row in own])
    print("Table 4: MRI, GFLOP/s\n")
    gpu.table(["version", *MRI_OPERATIONS], [
        [version, *(gpu.cell(rows, "{:,.0f}", figure="table 4", program=program, version=version)
                    for program in MRI_OPERATIONS)] for version in VERSIONS["mri-q"]])
    print("Figure 9: FDTD, GFLOP/s and GCells/s\n")
    gpu.table(["size", "version", "GFLOP/s", "GCells/s", "check"],
              [[row["size"], row["version"], f"{float(row['value']):,.0f}",
                f"{float(row['value']) / FDTD_OPERATIONS:,.1f}", row["check"]]
               for row in gpu.pick(rows, figure="figure 9")])


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
