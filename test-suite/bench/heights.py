#!/usr/bin/env python3
"""The pyramid heights of the SL applications: every height, the run's own choice, and naive.

    python3 test-suite/bench/heights.py build FOLDER     compiles plans and code (no GPU)
    python3 test-suite/bench/heights.py run FOLDER OUT   measures them (stencil-bench in FOLDER)
    python3 test-suite/bench/heights.py table OUT        tables of the results
"""

import json
import os
import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent
# The formula of the paper grows without limit where these are small.
CHIP = {"Rx": 10_000, "Ry": 10_000, "Rz": 10_000}
PLATE = {"hot": 7.25, "cold": -1.5}
# Name: heights, scalars, the paper's size, that of 100 times its cells.
APPLICATIONS = {
    "Pathfinder": ([1, 2, 3, 4, 6, 8, 12, 16, 24, 32], {}, (400_000,), (40_000_000,)),
    "Plate": ([1, 2, 3, 4, 6, 8, 12], PLATE, (1000, 1000), (10_000, 10_000)),
    "PlateHalo": ([1, 2, 3, 4, 6, 8, 12], PLATE, (1000, 1000), (10_000, 10_000)),
    "Plate++": ([1, 2, 3, 4, 6, 8], PLATE, (1000, 1000), (10_000, 10_000)),
    "Hotspot": ([1, 2, 3, 4, 6, 8], CHIP, (1000, 1000),
                (10_000, 10_000)),
    "Hotspot80f": ([1, 2, 3, 4, 6, 8], CHIP, (1000, 1000), (10_000, 10_000)),
    "Cell": ([1, 2, 3, 4], {}, (60, 60, 60), (278, 278, 278)),
}
# All heights, the plain kernel, and all heights by streams, of small grids in two dimensions.
KINDS = ("heights", "naive", "streams")
# Steps of a run: small grids run longer.
STEPS = {"paper": 16_384, "hundred": 3072}
# Rows of Pathfinder's wall, one for each step: what 32-bit indices reach, and what memory holds.
LAYERS = {"paper": 5120, "hundred": 256}


def sizes(shape):
    """Names and sizes, x first."""
    return dict(zip(("size_x", "size_y", "size_z"), reversed(shape)))


def source(name, folder):
    """The file of an application; one is Hotspot with the number of its air as a `float`."""
    if name != "Hotspot80f":
        return SUITE / "sl" / f"{name}.sl"
    path = folder / f"{name}.sl"
    path.write_text((SUITE / "sl/Hotspot.sl").read_text().replace("80.0", "80.0f"))
    return path


def build(folder):
    """Plans with all heights and by naive, for fixed sizes, and their cubins."""
    folder.mkdir(parents=True, exist_ok=True)
    tool = os.environ.get("STENCILC", str(SUITE.parent / "target/release/stencilc"))
    ptxas = os.environ.get("STENCILC_PTXAS", "ptxas")
    for name, (heights, _, paper, hundred) in APPLICATIONS.items():
        for size, shape in (("paper", paper), ("hundred", hundred)):
            for kind in KINDS:
                stem = folder / f"{name}-{size}-{kind}"
                few = kind == "streams" and (size == "hundred" or len(shape) != 2)
                if few or stem.with_suffix(".cubin").exists():
                    continue
                words = [tool, source(name, folder), "--emit=ptx,plan", "-o", stem]
                for param, cells in sizes(shape).items():
                    words += ["-D", f"{param}={cells}"]
                if (name, size) == ("Pathfinder", "hundred"):
                    # The wall has more cells than 32-bit indices reach.
                    words += ["-D", f"layers={LAYERS[size]}"]
                if kind == "naive":
                    words += ["--strategy", "naive"]
                else:
                    words += ["--heights", ",".join(map(str, heights))]
                if kind == "streams":
                    words += ["--strategy", "stream"]
                subprocess.run([str(word) for word in words], check=True)
                ptx = f"{stem}.ptx"
                subprocess.run([ptxas, "-arch=sm_90", ptx, "-o", f"{stem}.cubin"], check=True)
                # The code of a reference lies beside its plan.
                if kind != "naive":
                    os.remove(ptx)
                print(stem.name, flush=True)


def bench(folder, out, stem, steps, more):
    """One call of stencil-bench, whose results lie in OUT."""
    name = stem.split("-")[0]
    words = [folder / "stencil-bench", folder / f"{stem}.plan.json", "--ptx",
             folder / f"{stem}.cubin", "--graph", "--repeat=2", "--pause=10", "--steps", steps]
    for key, value in APPLICATIONS[name][1].items():
        words += ["--set", f"{key}={value}"]
    words += ["--json", out / f"{stem}.json", *more]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    print(f"{stem}: {done.returncode} {done.stderr.strip()}", flush=True)


def run(folder, out):
    """Measures everything; results lie in the folder OUT."""
    out.mkdir(parents=True, exist_ok=True)
    for size in ("paper", "hundred"):
        for name in APPLICATIONS:
            steps, more = STEPS[size], []
            if name == "Pathfinder":
                steps, more = LAYERS[size], ["--in", "read=zeros"]
                if size == "paper":
                    more += ["--size", f"layers={steps}"]
            bench(folder, out, f"{name}-{size}-naive", steps, more)
            check = ["--reference", folder / f"{name}-{size}-naive.plan.json"]
            if name.startswith("Hotspot"):
                # Another kernel contracts other products.
                check += ["--tolerance=1e-4"]
            for kind in ("heights", "streams"):
                if (folder / f"{name}-{size}-{kind}.cubin").exists():
                    bench(folder, out, f"{name}-{size}-{kind}", steps,
                          [*more, *check, "--every-height"])


def median(values):
    """The middle, or the mean of the middle two."""
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def table(out):
    """Rows of the tables: microseconds of a step."""
    print("size\tprogram\tkind\tnaive\theight 1\tbest\tits height\tchosen\tits height\tlost\t"
          "speedup\twith measuring\tright")
    ratios = {}
    for size in ("paper", "hundred"):
        for name in APPLICATIONS:
            for kind in ("heights", "streams"):
                naive, heights = (out / f"{name}-{size}-{one}.json" for one in ("naive", kind))
                if not naive.exists() or not heights.exists():
                    continue
                naive = json.loads(naive.read_text())["results"]
                found = json.loads(heights.read_text())["results"]
                # Runs of few steps choose no height.
                if not naive or not found or "chosen" not in found[0]:
                    continue
                one, steps = found[0], found[0]["sizes"]["steps"]
                per_step = lambda seconds: median(seconds) / steps * 1e6
                times = {each["height"]: per_step(each["seconds"]) for each in one["heights"]}
                slow = per_step(naive[0]["seconds"])
                best = min(times, key=times.get)
                chosen = one["chosen"]["height"]
                ratio = slow / times[chosen]
                ratios.setdefault((size, kind), []).append(ratio)
                print(f"{size}\t{name}\t{kind}\t{slow:.2f}\t{times['1']:.2f}\t"
                      f"{times[best]:.2f}\t{best}\t{times[chosen]:.2f}\t{chosen}\t"
                      f"{times[chosen] / times[best] - 1:.1%}"
                      f"\t{ratio:.2f}\t{per_step(one['seconds']):.2f}\t{one['check']['passed']}")
                curve = " ".join(f"{height}:{time:.2f}" for height, time in times.items())
                predicted = " ".join(f"{height}:{time * 1e6:.2f}"
                                     for height, time in one["chosen"]["predicted"])
                print(f"#\t{name}\tsteps {steps}\theights {curve}\tpredicted {predicted}")
    for (size, kind), values in ratios.items():
        product = 1
        for value in values:
            product *= value
        print(f"# geometric mean {size} {kind}: {product ** (1 / len(values)):.2f}")


if __name__ == "__main__":
    task, *places = sys.argv[1:]
    {"build": build, "run": run, "table": table}[task](*map(Path, places))
