"""What each pass for affine loops gives, on and off, on a GPU.

    python3 test-suite/bench/nest_passes.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/nest_passes.py measure FOLDER OUT.tsv
    python3 test-suite/bench/nest_passes.py report OUT.tsv

`build` needs the compiled project, ptxas, nvcc with CUDA's headers, and no GPU. `measure` needs
Python, NumPy, CuPy, PyTorch and a GPU. A version without a pass is the list of the default without
it; others are options of the compiler. Products stand beside cuBLAS by PyTorch, without TF32. Each
version is compared with PyTorch's result. Those of adi and of the nests of `HELD` are compared with
the interpreter at a small size, and with code without tiles at full size. Calls follow each other
without a pause. `measure FOLDER OUT.tsv` with HELD=1 in the environment has the nests of `HELD`
alone.
"""

import functools
import json
import math
import os
import re
import subprocess

import common
import gpu
import nests_tables
import numpy as np

CLEAN = "gpu.module(canonicalize{top-down=false},cse)"
PASSES = ["sink-time-loops", "tile-affine-nest{constants=on}", "lower-affine-nest",
          "exact-division", CLEAN, "hoist-guards", "keep-in-registers", "bank-pad",
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
ADI_SMALL = 100
# Nests in which a loop leaves an element or a copy where it is: sizes.
HELD_VERSIONS = {"default": [], "without keep-in-registers": OFF["without keep-in-registers"],
                 "--no-nest-tiles": ["--no-nest-tiles"]}
HELD = {"trmm": {"N": 1024, "M": 1024}, "rpes": {"N": 512, "M": 512, "K": 8},
        "rc5": {"N": 1 << 20}, "ludcmp": {"N": 256}, "nussinov": {"N": 1024},
        "syr2k": {"N": 1024, "K": 1024}}
HELD_SMALL = {"N": 67, "M": 131, "K": 5}
# The arrays that are inputs of a nest, those that are compared, and scalars.
KEYS = {"first": 1234567, "middle": -87654321, "last": 171, "plain0": 1953002868, "plain1": -1}
DATA = {"adi": ("u", "u", {"r": 0.3}),
        "trmm": ("B L", "B", {"alpha": 1.5}),
        "rpes": ("V p cp px py pz q cq qx qy qz", "V", {}),
        "rc5": ("C S L magic", "C", KEYS),
        "ludcmp": ("A x b", "A x", {}),
        "nussinov": ("P S", "P", {}),
        "syr2k": ("C A B", "C", {"alpha": 1.5, "beta": 0.25})}
# The largest error relative to the largest value.
TOLERANCE = 1e-5


def stem(program, version):
    """The name of files of a version."""
    return f"{program}.{re.sub(r'[^a-z]+', '-', version)}"


def data(folder, program, sizes):
    """Options for the inputs of a nest that stencil-bench or the interpreter runs."""
    inputs, _, scalars = DATA[program]
    files = {name: f"random:{seed}" for seed, name in enumerate(inputs.split(), 1)}
    if program == "ludcmp":
        # Without pivots the diagonal has to be large.
        size = sizes["N"]
        files["A"] = folder / f"ludcmp.{size}.npy"
        if not files["A"].exists():
            np.save(files["A"], np.random.default_rng(1).random((size, size)) + size * np.eye(size))
    return [*common.pairs("--in", files), *common.pairs("--set", scalars)]


def interpreted(args, program, sizes):
    """Results of the interpreter at a small size, and code without tiles to compare with."""
    source = common.ROOT / f"test-suite/nests/{program}.mlir"
    gpu.compiled(args, stem(program, "plain"), source, "--no-nest-tiles", "--no-place-constants")
    plan = json.loads((args.folder / f"{stem(program, 'plain')}.plan.json").read_text())
    sizes = {name: sizes[name] for name in plan["params"]}
    outputs = {name: args.folder / f"{program}.{name}.npy" for name in DATA[program][1].split()}
    common.call([args.release / "stencilc", "run", source, "--target", "reference",
                 *common.pairs("--size", sizes), *data(args.folder, program, sizes),
                 *common.pairs("--out", outputs)])


def build(args):
    """Plans and machine code of all versions."""
    args.folder.mkdir(parents=True, exist_ok=True)
    used = {}
    for program, versions in (VERSIONS | dict.fromkeys(HELD, HELD_VERSIONS)).items():
        source = common.ROOT / f"test-suite/nests/{program}.mlir"
        for version, options in versions.items():
            name = stem(program, version)
            used[name] = nests_tables.worst(gpu.compiled(args, name, source, *options))
            gpu.progress(f"{name}: {used[name]}")
    interpreted(args, "adi", {"N": ADI_SMALL, "T": ADI_STEPS})
    for program in HELD:
        interpreted(args, program, HELD_SMALL)
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

    def benched(self, program, version, sizes, *options):
        """What stencil-bench measures of a nest, which is compared as the options say. A result
        that differs is no failure: the record has it."""
        name = stem(program, version)
        file, plan = self.folder / f"{name}.json", self.folder / f"{name}.plan.json"
        file.unlink(missing_ok=True)
        params = json.loads(plan.read_text())["params"]
        sizes = {name: sizes[name] for name in params}
        subprocess.run([self.folder / "stencil-bench", plan, *common.pairs("--size", sizes),
                        *data(self.folder, program, sizes), "--tolerance", str(TOLERANCE),
                        *options, "--json", file])
        return json.loads(file.read_text())["results"][0]

    def small(self, program, versions, sizes):
        """Whether versions agree with the interpreter at a small size."""
        outputs = DATA[program][1].split()
        wanted = {name: self.folder / f"{program}.{name}.npy" for name in outputs}
        return {version: self.benched(program, version, sizes, *common.pairs("--expect", wanted))
                ["check"]["passed"] for version in ["plain", *versions]}

    def large(self, program, version, sizes):
        """Seconds of a version, and whether it agrees with code without tiles."""
        plain = self.folder / f"{stem(program, 'plain')}.plan.json"
        result = self.benched(program, version, sizes, "--reference", plain, "--repeat", "5",
                              "--warmup", "1")
        return result["seconds"], result["check"]["passed"]

    def sweeps(self):
        """ADI, whose own arrays stencil-bench allocates."""
        right = self.small("adi", ADI, {"N": ADI_SMALL, "T": ADI_STEPS})
        for size in ADI_SIZES:
            for version in ADI:
                seconds, check = self.large("adi", version, {"N": size, "T": ADI_STEPS})
                columns = {"figure": "passes", "program": "adi", "size": size, "version": version}
                # A forward step of a sweep has 9 operations and a backward one 2.
                self.row(columns, stem("adi", version), 22 * size**2 * ADI_STEPS, seconds,
                         right["plain"] and right[version] and check)

    def held(self, program):
        """A nest in which a loop leaves an element or a copy where it is, in runs a second."""
        sizes, right = HELD[program], self.small(program, HELD_VERSIONS, HELD_SMALL)
        for version in HELD_VERSIONS:
            seconds, check = self.large(program, version, sizes)
            columns = {"figure": "held", "program": program,
                       "size": common.size(sizes.values()), "version": version}
            self.row(columns, stem(program, version), 1e9, seconds,
                     right["plain"] and right[version] and check)
            self.rows[-1]["unit"] = "runs/s"
            gpu.progress(self.rows[-1])


def measure(args):
    """All rows."""
    bench = Bench(args.folder.resolve(), "nest_passes")
    facts = {"what": "passes for affine loops, on and off", "commit": bench.manifest["commit"],
             **bench.device.facts(),
             "measured": "median of 5 after one; 10 (mv, tmv, mvt, conv2d), 5 (mm-f32 at 4,096), 3 "
                         "(mri, cp) or one call in a row; mri and cp with fast math"}
    alone = "HELD" in os.environ
    for size in [] if alone else PRODUCTS:
        bench.vectors(size)
        bench.matrices(size)
        gpu.progress(f"size {size}: {len(bench.rows)} rows")
    others = [] if alone else [bench.window, bench.images, bench.sums, bench.sweeps]
    for part in (*others, *(functools.partial(bench.held, program) for program in HELD)):
        part()
        gpu.progress(f"{len(bench.rows)} rows")
        common.write_record(args.out, facts, bench.rows)
    gpu.finished(args.out, facts, bench.rows)


def report(args):
    """A table of all programs."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz\n")
    gpu.table(["program", "size", "version", "registers", "rate", "unit", "check"],
              [[row["program"], row["size"], row["version"], row["registers"],
                f"{float(row['value']):,.5g}", row["unit"], row["check"]] for row in rows])


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
