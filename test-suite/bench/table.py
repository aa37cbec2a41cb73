"""The table of rates: builds every row here, measures all of them on a GPU machine.

    python3 test-suite/bench/table.py build FOLDER [--candidates N] [--main] [--only ROW...]
    python3 FOLDER/table.py run FOLDER OUT.tsv [--seconds S] [--repeat R] [--steps T] [--unchecked]

`build` needs the compiled project and no GPU. FOLDER then holds all that `run` needs beside Python
and a GPU: plans, PTX, the oracle's results of small runs, `stencil-bench` and the scripts.

A row is a program in f32 or f64 at one size; f64 sources are the f32 ones with the word replaced.
`run` first holds the naive kernels against the oracle, bit for bit, at a small size. Each row then
runs the compiler's choice of schedule and N - 1 runners-up. A result is compared with the naive
kernel's on the same data after a few steps, and then measured. `--main --candidates 40` with
`run --unchecked` measures all schedules that the model looks at. Exit code 1 if a result is wrong
or a run fails.

The record has a line a schedule; the first line of a row is the compiler's choice.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import common

# Floating-point operations of a point and step: a*b + c is one, a division by a constant a product;
# none where they are not counted.
ROWS = {
    "j2d5pt": 5,
    "star2d1r": 5,
    "j2d9pt": 9,
    "star2d2r": 9,
    "j2d9pt-gol": 9,
    "box2d1r": 9,
    "box2d2r": 25,
    "gradient2d": 11,
    "hotspot2d": 9,
    "fdtd2d": 8,
    "star3d1r": 7,
    "star3d2r": 13,
    "j3d27pt": 27,
    "wave3d": 9,
    "jacobi1d3": 3,
    "acoustic3d-order4": 19,
    "acoustic3d-order8": 31,
    "d2q9": None,
    "d3q19": None,
    "shallow-water": None,
}
# More programs for the plot of rates over the radius, by number of points.
RADII = {"star2d3r": 13, "star2d4r": 17, "box2d3r": 49, "star3d3r": 19}
CUBE, SQUARE, LINE = (512, 512, 512), (16384, 16384), (1 << 28,)
MAIN = {
    "fdtd2d": (8192, 8192),
    "d2q9": (4096, 4096),
    "d3q19": (256, 256, 256),
    "shallow-water": (8192, 8192),
}
# Rows of the large size alone.
LARGE = {"acoustic3d-order4", "acoustic3d-order8", "d2q9", "d3q19", "shallow-water"}
# A program whose steps are of one length, without the reductions that find it, and whose rim is
# held fixed.
FIXED_STEP = {
    "shallow-water": (
        (r"reduce speed.*?initially 0\n", "scalar speed : f32 = 1.5\n"),
        (r" until time >= end", ""),
        (r"boundary [^\n]*\n", ""),
        (r"-> \(h, u, v\) \[0..N-1, 0..M-1\]", "-> (h, u, v) [1..N-2, 1..M-2]"),
    )
}
OTHER = {1: [], 2: [(4096, 4096), (10000, 3001)], 3: [(200, 200, 200)]}
# Sizes of the plot of rates over the size, and small cubes.
SIZES = [(512, 512), (1024, 1024), (2048, 2048), (8192, 8192)]
CUBES = [(64, 64, 64), (128, 128, 128), (256, 256, 256)]
# Heights of the plot of rates over the steps a launch.
HEIGHTS = [1, 2, 4, 6, 8, 10, 12]
SMALL = {1: (10007,), 2: (211, 199), 3: (31, 29, 53)}
MAIN_STEPS, OTHER_STEPS, SMALL_STEPS = 1000, 480, 9
# Some launches of the main kernel, which overlap.
CHECKED_STEPS = 37
TOLERANCE = {"f32": 1e-3, "f64": 1e-9}
# gradient2d divides by differences of neighbours: an error of rounding grows a hundredfold a step.
# A launch of jacobi1d3 takes 48 steps.
CHECKED = {"gradient2d": 13, "jacobi1d3": 97}
# Milliseconds before a run: under load the device reaches its power limit and lowers its clock.
PAUSE = 100
TOLERANCES = {("gradient2d", "f32"): 3e-2, ("gradient2d", "f64"): 1e-6}


def sizes(program, option, shape):
    """Options that set the sizes."""
    return common.pairs(option, dict(zip(program.params, shape)))


def naive_of(stencilc, folder, program, source):
    """Compiles the naive kernel, and makes the oracle's results that it is held against."""
    stem = f"{program.stem}_{program.kind}"
    exact = ["--strategy", "naive", "--no-fuse", "--fp-contract=off", "--emit=ptx,plan"]
    common.call([stencilc, source, *exact, "-o", folder / f"{stem}.naive"])
    small = SMALL[program.rank]
    expected = {field: f"{stem}.{field}.npy" for field in program.outputs}
    # Noise as stencil-bench makes it unless told otherwise.
    data = {name: f"random:{seed}" for seed, name in enumerate(program.inputs, 1)}
    words = [stencilc, "run", source, "--target", "reference", "--steps", SMALL_STEPS]
    words += common.pairs("--in", data) + sizes(program, "--size", small)
    files = {field: folder / file for field, file in expected.items()}
    common.call(words + common.pairs("--out", files))
    return {
        "program": program.stem,
        "kind": program.kind,
        "plan": f"{stem}.naive.plan.json",
        "expected": expected,
        "sizes": sizes(program, "-D", small),
    }


class Builder:
    """Compiles the rows of one program in one type into a folder."""

    def __init__(self, stencilc, folder, scratch, source, kind, fma):
        self.stencilc, self.folder, self.fma = stencilc, folder, fma
        self.program = common.Program(source, kind)
        for pattern, text in FIXED_STEP.get(self.program.stem, ()):
            text = re.sub(r"\bf32\b", kind, text)
            self.program.text = re.sub(pattern, text, self.program.text, flags=re.S)
        self.stem = f"{self.program.stem}_{kind}"
        self.source = scratch / f"{self.stem}.stencil"
        self.source.write_text(self.program.text)
        self.rows = []

    def compiled(self, shape, label, options):
        """Plans of one size."""
        place = f"{self.stem}.{common.size(shape)}.{label}"
        words = [
            self.stencilc,
            self.source,
            "--fast-math",
            "--emit=ptx,plan",
            "-o",
            self.folder / place,
        ]
        common.call(words + sizes(self.program, "-D", shape) + options)
        return sorted(path.name for path in self.folder.glob(f"{place}.*plan.json"))

    def row(self, shape, why, plans):
        self.rows.append(
            {
                "program": self.program.stem,
                "kind": self.program.kind,
                "shape": shape,
                "why": why,
                "fma": self.fma,
                "plans": plans,
                "naive": f"{self.stem}.naive.plan.json",
                "sizes": sizes(self.program, "-D", shape),
            }
        )

    def all_rows(self, candidates, main_only):
        """All rows, or those of the large size alone."""
        name, kind, rank = self.program.stem, self.program.kind, self.program.rank
        main = MAIN.get(name, {1: LINE, 2: SQUARE, 3: CUBE}[rank])
        # A quarter or an eighth of the points is as good where rows are compared with each other.
        half = tuple(cells // 2 for cells in main)
        if name not in RADII:
            self.row(main, "main", self.compiled(main, "main", ["--candidates", str(candidates)]))
        if main_only or name in LARGE:
            return
        if re.fullmatch(r"(star|box)\dd\dr", name):
            self.row(half, "radius", self.compiled(half, "radius", []))
        if name in RADII:
            return
        plotted = name in ("star2d1r", "j2d5pt") and kind == "f32"
        small = SIZES if plotted else CUBES if (name, kind) == ("star3d1r", "f32") else []
        for shape in OTHER[rank] + small:
            # Small grids have schedules of several kinds.
            options = ["--candidates", str(max(candidates, 3))] if shape in small else []
            self.row(shape, "size", self.compiled(shape, "size", options))
        if name in ("star2d1r", "box2d1r"):
            plans = []
            for height in HEIGHTS:
                options = ["--strategy", "stream", "--pyramid-height", str(height)]
                plans += self.compiled(half, f"T{height}", options)
            self.row(half, "height", plans)


def build(args):
    """Compiles everything into a folder."""
    release = args.release or common.ROOT / "target/release"
    stencilc, folder = release / "stencilc", args.folder
    programs = common.ROOT / "test-suite/programs"
    radii = {name: fma for name, fma in RADII.items() if (programs / f"{name}.stencil").exists()}
    wanted = {**ROWS, **({} if args.main else radii)}
    if unknown := [name for name in args.only or [] if name not in wanted]:
        sys.exit(f"error: no rows of {', '.join(unknown)}; there are {', '.join(wanted)}")
    common.take_along(folder, release, "table.py")
    manifest = {"commit": common.commit(), "naive": [], "rows": []}
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.only or wanted:
            for kind in ("f32", "f64"):
                source = programs / f"{name}.stencil"
                one = Builder(stencilc, folder, pathlib.Path(scratch), source, kind, wanted[name])
                manifest["naive"].append(naive_of(stencilc, folder, one.program, one.source))
                one.all_rows(args.candidates, args.main)
                manifest["rows"] += one.rows
    order = {why: place for place, why in enumerate(["main", "size", "height", "radius"])}
    manifest["rows"].sort(key=lambda row: order[row["why"]])
    (folder / "rows.json").write_text(json.dumps(manifest, indent=1) + "\n")
    count = sum(len(row["plans"]) for row in manifest["rows"])
    mib = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    print(f"{len(manifest['rows'])} rows, {count} plans, {mib:.1f} MiB in {folder}")


def measure(folder, plans, options, seconds=None):
    """Runs stencil-bench over plans for so long; its JSON, and whether all went well."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [folder / "stencil-bench", *(folder / plan for plan in plans)]
        words += ["--json", file.name, *options]
        words = [str(word) for word in words]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
        text = pathlib.Path(file.name).read_text()
    # Without a device no other plan can run either.
    if (
        done.returncode
        and not done.stdout
        and re.match(r"error: .*\bCUDA (device|driver)", done.stderr)
    ):
        sys.exit(done.stderr.strip())
    if done.returncode:
        print((done.stdout + done.stderr).strip(), flush=True)
    return json.loads(text) if text else None, done.returncode == 0


def check_naive(folder, manifest):
    """Holds the naive kernels against the oracle, bit for bit; those that differ."""
    wrong = []
    for row in manifest["naive"]:
        files = {field: folder / file for field, file in row["expected"].items()}
        options = [
            "--steps",
            SMALL_STEPS,
            "--repeat",
            1,
            *row["sizes"],
            *common.pairs("--expect", files),
        ]
        if not measure(folder, [row["plan"]], options)[1]:
            wrong.append(f"{row['program']} {row['kind']}")
    return wrong


def lines_of(row, checked_steps, found):
    """Lines of the record: one a result, and one a plan that failed."""
    what = {
        "program": row["program"],
        "type": row["kind"],
        "cells": common.size(row["shape"]),
        "why": row["why"],
        "checked_steps": checked_steps,
    }
    lines = []
    for result in found["results"]:
        lines.append(
            {
                **what,
                **common.measurement(result),
                "of_copy": f"{100 * result['of_copy_limit']:.6g}",
                "of_fma": f"{100 * (result['of_fma_limit'] or 0):.6g}",
                "first_ms": f"{1e3 * result['first_seconds']:.5g}",
            }
        )
    return lines + [{**what, "check": "failed"} for _ in found["failures"]]


def run(args):
    """Measures what was built."""
    folder, start = args.folder, time.monotonic()
    if not args.out.parent.is_dir():
        sys.exit(f"error: {args.out.parent} is missing; the record goes there")
    manifest = common.manifest(folder, "rows.json", "table.py build")
    wrong = [] if args.unchecked else check_naive(folder, manifest)
    facts = {
        "what": "rates of the compiler's schedules in GCells/s",
        "commit": manifest["commit"],
        "steps": args.steps or MAIN_STEPS,
        "other_steps": args.steps or OTHER_STEPS,
        "pause_ms": PAUSE,
        "naive_equals_oracle": 0 if args.unchecked else len(manifest["naive"]) - len(wrong),
        "naive_differs": ", ".join(wrong) or "none",
    }
    print("naive kernels that differ from the oracle:", facts["naive_differs"], flush=True)
    lines, left, failed = [], [], len(wrong)
    for row in manifest["rows"]:
        if time.monotonic() - start > args.seconds:
            left.append(f"{row['program']} {row['kind']} {row['why']}")
            continue
        checked = CHECKED.get(row["program"], CHECKED_STEPS)
        steps = args.steps or (MAIN_STEPS if row["why"] == "main" else OTHER_STEPS)
        tolerance = TOLERANCES.get((row["program"], row["kind"]), TOLERANCE[row["kind"]])
        options = ["--steps", steps, "--pause", PAUSE, "--tolerance", tolerance]
        options += ["--repeat", args.repeat, "--graph"]
        if row["fma"]:
            options += ["--fma-per-point", row["fma"]]
        if not args.unchecked:
            options += ["--reference", folder / row["naive"], "--check-steps", checked]
        found, good = measure(folder, row["plans"], options)
        failed += not good
        if not found:
            continue
        facts.update(common.device_facts(found, facts))
        new = lines_of(row, 0 if args.unchecked else checked, found)
        for line in new:
            print(*line.values(), flush=True)
        lines += new
        common.write_record(args.out, facts, lines)
    facts.update(
        {"left_out": ", ".join(left) or "none", "seconds": round(time.monotonic() - start)}
    )
    common.write_record(args.out, facts, lines)
    print(f"{len(lines)} lines in {facts['seconds']} s, {failed} failed, {len(left)} rows left out")
    sys.exit(failed != 0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--release", type=pathlib.Path, help="the folder of the compiled tools")
    one.add_argument("--candidates", type=int, default=4)
    one.add_argument("--only", nargs="*")
    one.add_argument("--main", action="store_true", help="the largest size of each row alone")
    two = commands.add_parser("run")
    two.add_argument("folder", type=pathlib.Path)
    two.add_argument("out", type=pathlib.Path)
    two.add_argument("--seconds", type=float, default=3600)
    two.add_argument("--repeat", type=int, default=5)
    two.add_argument(
        "--unchecked",
        action="store_true",
        help="no comparison with the naive kernels, for searches",
    )
    two.add_argument("--steps", type=int, help="steps of a measured run in place of a row's own")
    args = parser.parse_args()
    {"build": build, "run": run}[args.command](args)


if __name__ == "__main__":
    main()
