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
PLATE = {"hot": 7.25, "cold": -1.5}
# Name: heights, scalars, the paper's size, that of 100 times its cells.
APPLICATIONS = {
    "Pathfinder": ([1, 2, 3, 4, 6, 8, 12, 16, 24, 32], {}, (400_000,), (40_000_000,)),
    "Plate": ([1, 2, 3, 4, 6, 8, 12], PLATE, (1000, 1000), (10_000, 10_000)),
    "PlateHalo": ([1, 2, 3, 4, 6, 8, 12], PLATE, (1000, 1000), (10_000, 10_000)),
    "Plate++": ([1, 2, 3, 4, 6, 8], PLATE, (1000, 1000), (10_000, 10_000)),
    "Hotspot": ([1, 2, 3, 4, 6, 8], {"Rx": 3.5, "Ry": 7, "Rz": 80}, (1000, 1000),
                (10_000, 10_000)),
    "Cell": ([1, 2, 3, 4], {}, (60, 60, 60), (278, 278, 278)),
}
# Steps of a run: small grids run longer.
STEPS = {"paper": 4096, "hundred": 1024}


def sizes(shape):
    """Names and sizes, x first."""
    return dict(zip(("size_x", "size_y", "size_z"), reversed(shape)))


def build(folder):
    """Plans with all heights and by naive, for fixed sizes, and their cubins."""
    folder.mkdir(parents=True, exist_ok=True)
    tool = os.environ.get("STENCILC", str(SUITE.parent / "target/release/stencilc"))
    ptxas = os.environ.get("STENCILC_PTXAS", "ptxas")
    for name, (heights, _, paper, hundred) in APPLICATIONS.items():
        for size, shape in (("paper", paper), ("hundred", hundred)):
            for kind in ("heights", "naive"):
                stem = folder / f"{name}-{size}-{kind}"
                if stem.with_suffix(".cubin").exists():
                    continue
                words = [tool, SUITE / "sl" / f"{name}.sl", "--emit=ptx,plan", "-o", stem]
                for param, cells in sizes(shape).items():
                    words += ["-D", f"{param}={cells}"]
                if kind == "naive":
                    words += ["--strategy", "naive"]
                else:
                    words += ["--heights", ",".join(map(str, heights))]
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
             folder / f"{stem}.cubin", "--graph", "--repeat=3", "--pause=10", "--steps", steps]
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
                # The wall has a row for each step, and must fit in memory.
                steps = 2048 if size == "paper" else 192
                more = ["--size", f"layers={steps}", "--in", "read=zeros"]
            bench(folder, out, f"{name}-{size}-naive", steps, more)
            check = ["--reference", folder / f"{name}-{size}-naive.plan.json"]
            if name == "Hotspot":
                # Another kernel contracts other products.
                check += ["--tolerance=1e-4"]
            bench(folder, out, f"{name}-{size}-heights", steps, [*more, *check, "--every-height"])


def median(values):
    """The middle one."""
    return sorted(values)[len(values) // 2]


def table(out):
    """Rows of the tables: microseconds of a step."""
    print("size\tprogram\tnaive\theight 1\tbest\tits height\tchosen\tits height\tlost\tspeedup")
    product, count = {}, {}
    for size in ("paper", "hundred"):
        for name in APPLICATIONS:
            naive, heights = (out / f"{name}-{size}-{kind}.json" for kind in ("naive", "heights"))
            if not naive.exists() or not heights.exists():
                continue
            naive = json.loads(naive.read_text())["results"]
            found = json.loads(heights.read_text())["results"]
            if not naive or not found:
                continue
            steps = found[0]["sizes"]["steps"]
            times = {one["height"]: median(one["seconds"]) / steps * 1e6
                     for one in found[0]["heights"]}
            slow = median(naive[0]["seconds"]) / naive[0]["sizes"]["steps"] * 1e6
            best = min(times, key=times.get)
            chosen = found[0]["chosen"]["height"]
            ratio = slow / times[chosen]
            product[size] = product.get(size, 1) * ratio
            count[size] = count.get(size, 0) + 1
            print(f"{size}\t{name}\t{slow:.2f}\t{times['1']:.2f}\t{times[best]:.2f}\t{best}\t"
                  f"{times[chosen]:.2f}\t{chosen}\t{times[chosen] / times[best] - 1:.1%}\t"
                  f"{ratio:.2f}")
    for size, value in product.items():
        print(f"geometric mean {size}: {value ** (1 / count[size]):.2f}")


if __name__ == "__main__":
    task, *places = sys.argv[1:]
    {"build": build, "run": run, "table": table}[task](*map(Path, places))
