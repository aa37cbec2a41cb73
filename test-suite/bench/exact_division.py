"""Quotients by constants as divisions and as `exact-division` makes them, beside each other.

    python3 test-suite/bench/exact_division.py build FOLDER [--release FOLDER]
    python3 FOLDER/exact_division.py run FOLDER OUT.tsv [--repeat R]

`build` needs the compiled project and no GPU. FOLDER then holds all that `run` needs beside Python
and a GPU. Each case is a program with a schedule, compiled by the compiler's own list of passes and
by that list without `exact-division`. Schedules are the one chosen with the pass, and the one
chosen before there was a pass. `run` measures both versions in turns, and compares the results of a
short run with those of the divisions, bit for bit. Exit code 1 if a result differs or a run fails.
"""

import argparse
import json
import pathlib
import sys

import common
from table import measure

LOWERINGS = ("block", "stream", "warp", "plane", "patch", "resident", "relay", "naive", "strip",
             "wavefront")
BEFORE = ("tile-wavefront,hyperplane-skew,peer-sync,flexible-hyper-tiles{measured=on},"
          "tile-overlapped,sweeps-in-flight,stay-resident,rotate-buffers,fuse-reductions,"
          "split-sums,split-interior,lower-reduce,"
          + ",".join(f"lower-{name}" for name in LOWERINGS)
          + ",coalesce-relayout,interleave-records,combine-stores,guard-launches")
CLEAN = "gpu.module(canonicalize{top-down=false},cse)"
VERSIONS = {"division": "", "exact-division": "exact-division,"}

SQUARE, CUBE = (16384, 16384), (512, 512, 512)
STREAM = "strategy=stream tile={} per-thread={} pyramid-height={}"
PATCH = "strategy=patch tile={} per-thread={} pyramid-height={}"
# Program, grid, steps, options of choose-schedule.
CASES = [
    ("sor2d", SQUARE, 16, "strategy=strip pyramid-height=1"),
    ("sor2d", SQUARE, 16, "strategy=strip pyramid-height=8"),
    ("sor2d", (32768, 32768), 4, "strategy=strip pyramid-height=1"),
    ("jacobi2d", SQUARE, 1120, STREAM.format("256,112", "1,4", 7)),
    ("jacobi2d", SQUARE, 1120, PATCH.format("88,120", "8,4", 4)),
    ("jacobi2d_f64", SQUARE, 480, STREAM.format("256,48", "1,2", 8)),
    ("jacobi2d_f64", SQUARE, 480, STREAM.format("256,56", "1,2", 4)),
    ("j2d5pt", SQUARE, 1120, STREAM.format("256,112", "1,4", 7)),
    ("j2d5pt", SQUARE, 1120, PATCH.format("88,120", "8,4", 4)),
    ("j3d27pt", CUBE, 240, STREAM.format("256,26,56", "1,2,4", 3)),
    ("j3d27pt", CUBE, 240, STREAM.format("256,20,56", "1,1,4", 2)),
]
# Steps of the runs that are compared: each kernel of a launch of several steps runs.
CHECKED_STEPS = 15


def build(args):
    """Compiles both versions of each case into the folder."""
    release = args.release or common.ROOT / "target/release"
    common.take_along(args.folder, release, "exact_division.py", "table.py")
    rows = []
    for number, (name, shape, steps, schedule) in enumerate(CASES):
        source = common.ROOT / f"test-suite/programs/{name}.stencil"
        sizes = common.pairs("-D", dict(zip(common.Program(source).params, shape, strict=True)))
        plans = {}
        for version, step in VERSIONS.items():
            passes = f"choose-schedule{{{schedule}}},{BEFORE},{step}{CLEAN}"
            stem = args.folder / f"{name}.{number}.{version}"
            words = [release / "stencilc", source, *sizes, "--passes", f"builtin.module({passes})"]
            common.call([*words, "--emit=ptx,plan", "-o", stem])
            divisions = pathlib.Path(f"{stem}.ptx").read_text().count("div.rn")
            if bool(divisions) == bool(step):
                sys.exit(f"error: {stem}.ptx has {divisions} divisions")
            plans[version] = f"{stem.name}.plan.json"
        rows.append({"program": name, "shape": shape, "steps": steps, "plans": plans})
    manifest = {"commit": common.commit(), "rows": rows}
    (args.folder / "quotients.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{len(rows)} cases in {args.folder}")


def run(args):
    """Measures what was built."""
    manifest = common.manifest(args.folder, "quotients.json", "exact_division.py build")
    facts = {"what": "quotients by constants, GCells/s", "commit": manifest["commit"]}
    lines, failed = [], 0
    for row in manifest["rows"]:
        options = ["--steps", row["steps"], "--repeat", args.repeat, "--graph", "--tolerance", 0,
                   "--reference", args.folder / row["plans"]["division"],
                   "--check-steps", CHECKED_STEPS]
        # Twice in turns: a device changes its clock.
        for version in [*VERSIONS, *VERSIONS]:
            found, good = measure(args.folder, [row["plans"][version]], options)
            failed += not good
            what = {"program": row["program"], "cells": common.size(row["shape"]),
                    "version": version}
            results = found["results"] if found else []
            if found:
                facts.update(common.device_facts(found, facts))
            lines += [{**what, **common.measurement(result)} for result in results]
            if not results:
                lines.append({**what, "check": "failed"})
            print(*lines[-1].values(), flush=True)
            common.write_record(args.out, facts, lines)
    sys.exit(failed != 0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("build")
    part.add_argument("folder", type=pathlib.Path)
    part.add_argument("--release", type=pathlib.Path)
    part = parts.add_parser("run")
    part.add_argument("folder", type=pathlib.Path)
    part.add_argument("out", type=pathlib.Path)
    part.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    {"build": build, "run": run}[args.part](args)


if __name__ == "__main__":
    main()
