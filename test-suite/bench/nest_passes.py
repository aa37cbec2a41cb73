"""What each pass for affine loops gives, on and off, on a GPU.

    python3 test-suite/bench/nest_passes.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/nest_passes.py measure FOLDER OUT.tsv
    python3 test-suite/bench/nest_passes.py report OUT.tsv

`build` needs the compiled project, ptxas, nvcc with CUDA's headers, and no GPU. `measure` needs
Python, NumPy, CuPy, PyTorch and a GPU. A version without a pass is the list of the default without
it; others are options of the compiler. Products stand beside cuBLAS by PyTorch, without TF32. Each
version is compared with PyTorch's result. Those of adi are compared with the interpreter on a small
grid, and with code without tiles at full size. Calls follow each other without a pause.
"""

import json
import math
import re
import subprocess

import common
import gpu
import nests_tables

CLEAN = "gpu.module(canonicalize{top-down=false},cse)"
PASSES = ["sink-time-loops", "tile-affine-nest{constants=on}", "lower-affine-nest", CLEAN,
          "hoist-guards", "keep-in-registers", "bank-pad",
          "vectorize-copies", "gpu.module(cse,canonicalize{top-down=false},cse)",
          "place-constants"]


def without(name):
    """The default list without a pass."""
    kept = [one for one in PASSES if not one.startswith(name)]
    if name == "place-constants":
        kept[1] = "tile-affine-nest"
    return ["--passes", f"builtin.module({','.join(kept)})"]


OFF = {f"without {name}": without(name)
       for name in ("sink-time-loops", "hoist-guards", "keep-in-registers", "bank-pad",
                    "vectorize-copies", "place-constants")}
OFF["with eliminate-barriers"] = [
    "--passes", f"builtin.module({','.join([*PASSES[:-1], 'eliminate-barriers', PASSES[-1]])})"]
USUAL = {"default": [], "--no-nest-tiles": ["--no-nest-tiles"],
         "--unroll-by-registers": ["--unroll-by-registers"], **OFF}
FAST = {name: [*options, "--fast-math"] for name, options in USUAL.items()}
ADI = {"default": [], "--transpose-arrays": ["--transpose-arrays"]}
VERSIONS = {**dict.fromkeys(("mv", "tmv", "mvt", "mm-f32", "conv2d"), USUAL),
            **dict.fromkeys(("mri-q", "mri-fhd", "cp"), FAST), "adi": ADI}
PRODUCTS = [4096, 16384]
POINTS, SAMPLES = 262144, 2048
CELLS = 8192
PLANE, ATOMS = 2048, 2048
ADI_SIZES, ADI_STEPS = [4096, 16384], 4
# Data of both comparisons, the small grid, and the largest error relative to the largest value.
ADI_DATA = ["--in", "u=random:1", "--set", "r=0.3"]
ADI_SMALL, ADI_TOLERANCE = 100, 1e-5


def stem(program, version):
    """The name of files of a version."""
    return f"{program}.{re.sub(r'[^a-z]+', '-', version)}"


def build(args):
    """Plans and machine code of all versions."""
    args.folder.mkdir(parents=True, exist_ok=True)
    used = {}
    for program, versions in VERSIONS.items():
        source = common.ROOT / f"test-suite/nests/{program}.mlir"
        for version, options in versions.items():
            name = stem(program, version)
            used[name] = nests_tables.worst(gpu.compiled(args, name, source, *options))
            gpu.progress(f"{name}: {used[name]}")
    adi = common.ROOT / "test-suite/nests/adi.mlir"
    gpu.compiled(args, stem("adi", "plain"), adi, "--no-nest-tiles", "--no-place-constants")
    small = common.pairs("--size", {"N": ADI_SMALL, "T": ADI_STEPS})
    common.call([args.release / "stencilc", "run", adi, "--target", "reference", *small, *ADI_DATA,
                 "--out", f"u={args.folder / 'adi.npy'}"])
    gpu.prepared(args, "nest_passes.json", ["nests_tables.py", "nest_passes.py"], {"used": used})


class Bench(nests_tables.Bench):
    """Rows of all programs."""

    def all_versions(self, program, size, operations, data, start, right, inner, scalars=None):
        """Every version of a program; `start` resets its outputs."""
        for version in VERSIONS[program]:
            arrays, sizes = data
            start()
            call = self.plan(stem(program, version), arrays, sizes, scalars)
            case = (program, version, size, operations)
            self.versus("passes", stem(program, version), case, call, right, inner)

    def library(self, program, size, operations, call, right, inner):
        """A row of cuBLAS."""
        self.versus("passes", "", (program, "cuBLAS", size, operations), call, right, inner)

    def vectors(self, size):
        """mv, tmv and mvt."""
        torch, matrix, y, y2 = self.torch, self.noise(size, size), *self.noise(2, size)
        x, x2 = torch.zeros((2, size), device="cuda")
        close = nests_tables.close
        wanted = {"mv": matrix.double() @ y.double(), "tmv": matrix.double().t() @ y.double()}
        second = matrix.double().t() @ y2.double()
        sizes = {"N": size, "M": size}
        for program, own in (("mv", matrix), ("tmv", matrix.t())):
            right = lambda: close(x, wanted[program])  # noqa: E731
            data = {"A": matrix, "x": x, "y": y}, sizes
            self.all_versions(program, size, 2 * size**2, data, x.zero_, right, 10)
            self.library(program, size, 2 * size**2, lambda: torch.mv(own, y, out=x), right, 10)

        def both():
            torch.addmv(x, matrix, y, out=x)
            torch.addmv(x2, matrix.t(), y2, out=x2)

        def start():
            x.zero_()
            x2.zero_()

        right = lambda: close(x, wanted["mv"]) and close(x2, second)  # noqa: E731
        data = {"A": matrix, "x1": x, "x2": x2, "y1": y, "y2": y2}, {"N": size}
        self.all_versions("mvt", size, 4 * size**2, data, start, right, 10)
        start()
        self.library("mvt", size, 4 * size**2, both, right, 10)

    def matrices(self, size):
        """mm-f32."""
        torch, (a, b, before) = self.torch, (self.noise(size, size) for _ in range(3))
        c = before.clone()
        some = torch.randperm(size, device="cuda")[:64]
        wanted = 1.5 * (a[some].double() @ b.double()) + 0.25 * before[some].double()
        right = lambda: nests_tables.close(c[some], wanted)  # noqa: E731
        operations, inner = 2 * size**3, 5 if size < 8192 else 1
        if size > 4096:
            # Hours without tiles.
            VERSIONS["mm-f32"] = {name: one for name, one in USUAL.items() if name[2:4] != "no"}
        data = {"A": a, "B": b, "C": c}, dict.fromkeys("NMK", size)
        scalars = {"alpha": 1.5, "beta": 0.25}
        start = lambda: c.copy_(before)  # noqa: E731
        self.all_versions("mm-f32", size, operations, data, start, right, inner, scalars)
        start()
        call = lambda: torch.addmm(c, a, b, beta=0.25, alpha=1.5, out=c)  # noqa: E731
        self.library("mm-f32", size, operations, call, right, inner)

    def window(self):
        """conv2d."""
        image, filtered = self.noise(CELLS + 2, CELLS + 2), self.torch.zeros(CELLS, CELLS,
                                                                            device="cuda")
        weights = self.noise(3, 3)
        wanted = sum(weights[k, l].double() * image[k:k + CELLS, l:l + CELLS].double()
                     for k in range(3) for l in range(3))
        right = lambda: nests_tables.close(filtered, wanted)  # noqa: E731
        extents = {"O_0": CELLS, "O_1": CELLS, "A_0": CELLS + 2, "A_1": CELLS + 2}
        data = {"O": filtered, "A": image, "W": weights}, {"N": CELLS, "M": CELLS, **extents}
        self.all_versions("conv2d", CELLS, 18 * CELLS**2, data, filtered.zero_, right, 10)

    def images(self):
        """MRI-Q and MRI-FHD."""
        torch = self.torch
        data = {key: self.noise(POINTS) for key in "xyz"}
        data |= {f"k{key}": self.noise(SAMPLES) for key in "xyz"}
        data |= {key: self.noise(SAMPLES) for key in ("phi", "dr", "di")}
        angles = sum(torch.outer(data[key][:256].double(), data[f"k{key}"].double())
                     for key in "xyz") * 2 * math.pi
        phi, dr, di = (data[key].double() for key in ("phi", "dr", "di"))
        cos, sin = angles.cos(), angles.sin()
        wanted = {"mri-q": (cos @ phi, sin @ phi),
                  "mri-fhd": (cos @ dr + sin @ di, cos @ di - sin @ dr)}
        real, imaginary = torch.zeros((2, POINTS), device="cuda")

        def start():
            real.zero_()
            imaginary.zero_()

        for program, operations in nests_tables.MRI_OPERATIONS.items():
            letter = "Q" if program == "mri-q" else "F"
            right = lambda: all(nests_tables.close(part[:256], one, 1e-3)  # noqa: E731
                                for part, one in zip((real, imaginary), wanted[program]))
            arrays = data | {f"{letter}r": real, f"{letter}i": imaginary}
            self.all_versions(program, POINTS, operations * POINTS * SAMPLES,
                              (arrays, nests_tables.MRI), start, right, 3)

    def sums(self):
        """Coulomb sums: 8 operations a term, the reciprocal root being one."""
        torch = self.torch
        data = {"x": torch.rand(ATOMS, device="cuda") * 200,
                "y": torch.rand(ATOMS, device="cuda") * 200, "q": self.noise(ATOMS),
                "z2": torch.rand(ATOMS, device="cuda") + 0.5}
        places = 0.1 * torch.arange(PLANE, device="cuda").double()
        x, y, q, z2 = (data[key].double() for key in ("x", "y", "q", "z2"))
        wanted = sum(q[k] / torch.sqrt((places[None, :] - x[k])**2
                                       + (places[:64, None] - y[k])**2 + z2[k])
                     for k in range(ATOMS))
        volume = torch.zeros(PLANE, PLANE, device="cuda")
        right = lambda: nests_tables.close(volume[:64], wanted, 1e-3)  # noqa: E731
        sizes = {"N": PLANE, "M": PLANE, "K": ATOMS}
        self.all_versions("cp", PLANE, 8 * PLANE**2 * ATOMS, (data | {"V": volume}, sizes),
                          volume.zero_, right, 3, {"spacing": 0.1})

    def swept(self, name, size, *options):
        """What stencil-bench measures of a plan of ADI, which is compared as the options say. A
        result that differs is no failure: the record has it."""
        file = self.folder / f"{name}.json"
        file.unlink(missing_ok=True)
        subprocess.run([self.folder / "stencil-bench", self.folder / f"{name}.plan.json",
                        *common.pairs("--size", {"N": size, "T": ADI_STEPS}), *ADI_DATA,
                        "--tolerance", str(ADI_TOLERANCE), *options, "--json", file])
        return json.loads(file.read_text())["results"][0]

    def sweeps(self):
        """ADI, whose own arrays stencil-bench allocates."""
        plain = stem("adi", "plain")
        small = ["--expect", f"u={self.folder / 'adi.npy'}"]
        right = {name: self.swept(name, ADI_SMALL, *small)["check"]["passed"]
                 for name in [plain, *(stem("adi", version) for version in ADI)]}
        for size in ADI_SIZES:
            for version in ADI:
                name = stem("adi", version)
                large = ["--reference", self.folder / f"{plain}.plan.json"]
                result = self.swept(name, size, *large, "--repeat", "5", "--warmup", "1")
                seconds = result["seconds"]
                check = right[plain] and right[name] and result["check"]["passed"]
                columns = {"figure": "passes", "program": "adi", "size": size, "version": version}
                # A forward step of a sweep has 9 operations and a backward one 2.
                self.row(columns, name, 22 * size**2 * ADI_STEPS, seconds, check)


def measure(args):
    """All rows."""
    bench = Bench(args.folder.resolve(), "nest_passes")
    facts = {"what": "passes for affine loops, on and off", "commit": bench.manifest["commit"],
             **bench.device.facts(),
             "measured": "median of 5 after one; 10 (mv, tmv, mvt, conv2d), 5 (mm-f32 at 4,096), 3 "
                         "(mri, cp) or one call in a row; mri and cp with fast math"}
    for size in PRODUCTS:
        bench.vectors(size)
        bench.matrices(size)
        gpu.progress(f"size {size}: {len(bench.rows)} rows")
    for part in (bench.window, bench.images, bench.sums, bench.sweeps):
        part()
        gpu.progress(f"{part.__name__}: {len(bench.rows)} rows")
    gpu.finished(args.out, facts, bench.rows)


def report(args):
    """A table of all programs, GFLOP/s."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz\n")
    gpu.table(["program", "size", "version", "registers", "GFLOP/s", "check"],
              [[row["program"], row["size"], row["version"], row["registers"],
                f"{float(row['value']):,.0f}", row["check"]] for row in rows])


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
