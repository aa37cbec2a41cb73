"""Functions of affine loops for check.py: sizes, tiles, and how they are compiled.

Arrays, scalars and outputs of each function are those of the numeric stage (numeric/nests.py)."""

import json
import sys
import time

import cases
import common

sys.path.append(str(common.ROOT / "test-suite/numeric"))
import nests  # noqa: E402

# Sizes that no tile divides: held against the oracle, and against kernels without tiles.
SMALL = {"N": 67, "M": 131, "K": 37, "D": 5, "T": 3}
LARGE = {"N": 1031, "M": 1543, "K": 517, "D": 9, "T": 5}
# The oracle takes minutes for some of these: loops in two dimensions around loops over samples.
FEWER = {"sad": {"N": 19, "M": 23}, "cp": {"N": 31, "M": 43}}
# The device's sine, cosine and error function differ from the oracle's in the last places.
OTHER_LAST_PLACES = {"mri-q", "mri-fhd", "rpes"}
# Without tiles, with the compiler's own, and with some for one, two and three axes.
TILES = [
    "threads=96 copiers=2 per-thread=2 time=7", "threads=8,16 copiers=3 per-thread=4,4 time=5",
    "threads=2,4,16 per-thread=1,2,1 time=2",
]
SCHEDULES = {"no tiles": ["--no-nest-tiles"], "default": []} | {
    tile: ["--passes", f"builtin.module(tile-affine-nest{{{tile}}},{nests.LOWERING})"]
    for tile in TILES
}


def names():
    """The functions that can be built."""
    return sorted(nests.NESTS)


class Builder:
    """Compiles a function under all tiles into a folder."""

    def __init__(self, stencilc, folder, name):
        _, self.arrays, outputs, self.scalars = nests.NESTS[name]
        self.stencilc, self.folder, self.name = stencilc, folder, name
        self.outputs = list(self.arrays)[:outputs]
        self.source = common.ROOT / f"test-suite/nests/{name}.mlir"
        self.groups, self.declined, self.params = [], [], []
        self.data = {array: f"random:{seed}" for seed, array in enumerate(self.arrays, 1)}

    def compiled(self):
        """A plan for each way to tile."""
        plans = []
        for place, (schedule, options) in enumerate(SCHEDULES.items()):
            stem = f"{self.name}.affine.{place}"
            words = [self.stencilc, self.source, "--fp-contract=off", "--emit=ptx,plan"]
            code, said = cases.attempt([*words, "-o", self.folder / stem, *options])
            if code:
                sys.exit(f"{self.name} {schedule}: exit code {code}\n{said}")
            plan = json.loads((self.folder / f"{stem}.plan.json").read_text())
            self.params = plan["params"]
            ways = ["one by one"] if schedule == "no tiles" else ["whole"]
            plans.append({
                "plan": f"{stem}.plan.json", "strategy": "affine", "schedule": schedule,
                "ways": ways,
            })
        return plans

    def sizes(self, of):
        """A value for each size of the plan; those of extents without a name are A_0, A_1, ..."""
        sizes = {}
        for param in self.params:
            array, _, dimension = param.rpartition("_")
            extent = self.arrays[array].split()[int(dimension)] if array in self.arrays else param
            sizes[param] = eval(extent, {}, of)
        return sizes

    def group(self, why, of, plans, **more):
        """Plans that run on the same data, and what their results are held against."""
        codes = [self.folder / plan["plan"].replace(".plan.json", ".ptx") for plan in plans]
        self.groups.append({
            "program": self.name, "why": why, "sizes": self.sizes(of), "steps": None,
            "scalars": self.scalars, "inputs": self.data, "plans": plans,
            "code": sum(code.stat().st_size for code in codes), **more,
        })

    def wanted(self, of):
        """The oracle's results."""
        files = {array: f"{self.name}.affine.{array}.npy" for array in self.outputs}
        words = [self.stencilc, "run", self.source, "--target", "reference"]
        words += common.pairs("--in", self.data) + common.pairs("--size", self.sizes(of))
        words += common.pairs("--set", self.scalars)
        words += common.pairs("--out", {name: self.folder / file for name, file in files.items()})
        code, said = cases.attempt(words, 600)
        if code:
            sys.exit(f"the oracle on {self.name}: exit code {code}\n{said}")
        if not all(cases.telling(self.folder / file) for file in files.values()):
            sys.exit(f"the oracle's result for {self.name} tells nothing")
        return {"expected": files}

    def all_groups(self):
        """All groups of the function."""
        start, plans = time.monotonic(), self.compiled()
        small = SMALL | FEWER.get(self.name, {})
        if self.name in OTHER_LAST_PLACES:
            self.group("affine, small", small, plans[1:], reference=plans[0]["plan"])
        else:
            self.group("affine, small", small, plans, **self.wanted(small))
        self.group("affine, large", LARGE, plans[1:], reference=plans[0]["plan"])
        print(f"{self.name}: {time.monotonic() - start:.0f} s", flush=True)
        return self
