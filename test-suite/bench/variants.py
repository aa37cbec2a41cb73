"""Fused and kept temp fields, shrinking and fixed regions, measured beside each other.

    python3 test-suite/bench/variants.py build FOLDER [--only PROGRAM...]
    python3 FOLDER/variants.py run FOLDER OUT.tsv [--seconds S] [--repeat R]
    python3 test-suite/bench/variants.py show OUT.tsv

`build` needs the compiled project and no GPU. FOLDER then holds all that `run` needs beside Python
and a GPU: plans, PTX, the oracle's results of small runs, `stencil-bench` and the scripts.

Each program has its variants under each strategy: with the same tile, cells a thread and steps a
launch, and with the schedule that the compiler chooses for the variant. Temp fields are kept
(`--no-fuse`) or fused, whatever the model predicts: the fused program is the IR that the strategy
naive fuses, where fusing pays wherever it is possible. `taken` is the variant that the compiler
takes without options, `predicted` the model's rate. `run` checks and measures as table.py does.
`show` prints a line a pair, with a star at what is taken. Exit code 1 if a result is wrong or a run
fails.
"""

import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import common
from table import CHECKED_STEPS, TOLERANCE, check_naive, measure, naive_of, sizes

BOTH = ("f32", "f64")
# Programs with temp fields that can be fused, and programs of radius 1 and 2, with their types.
FUSED = {"gauss2d": BOTH, "fluxes2d": BOTH, "laser2d": BOTH, "burgers1d": BOTH}
REGIONS = {
    "star2d1r": BOTH,
    "star2d2r": ("f32",),
    "box2d1r": ("f32",),
    "box2d2r": ("f32",),
    "star3d1r": BOTH,
    "star3d2r": ("f32",),
    "j3d27pt": ("f32",),
    "jacobi1d3": BOTH,
    "jacobi1d5": ("f32",),
}
SHAPES = {1: (1 << 27,), 2: (8192, 8192), 3: (512, 512, 512)}
STEPS = {1: 240, 2: 240, 3: 48}
STRATEGIES = {1: ("naive", "block", "warp"), 2: ("naive", "block", "stream")}
# Cells of a tile and a thread of blocks; the first that the compiler takes.
TILES = {1: [("4096", "4")], 2: [("64,64", "8,1")], 3: [("8,8,64", "4,2,1"), ("4,8,32", "2,1,1")]}
# Steps a launch, of temp fields and of regions.
HEIGHTS, REGION_HEIGHTS = (2, 4), (2, 4, 8)


class Builder:
    """Compiles variants of one program into a folder."""

    def __init__(self, stencilc, folder, scratch, name, kind, part):
        programs = common.ROOT / "test-suite/programs"
        self.stencilc, self.folder, self.scratch, self.part = stencilc, folder, scratch, part
        self.program = common.Program(programs / f"{name}.stencil", kind)
        self.stem = f"{name}_{kind}"
        self.source = scratch / f"{self.stem}.stencil"
        self.source.write_text(self.program.text)
        self.shape = SHAPES[self.program.rank]
        self.plans = []

    def words(self, source, options):
        """The command that compiles a source of this program, a program or its IR."""
        fixed = [] if source.suffix == ".mlir" else sizes(self.program, "-D", self.shape)
        return [self.stencilc, source, "--fast-math", *fixed, *options]

    def applies(self, options):
        """How many functions a step are left of the program."""
        return common.call(self.words(self.source, [*options, "--emit=stencil"])).stdout.count(
            '"stencil.apply"'
        )

    def fused(self):
        """The program's IR with all temp fields fused that can be."""
        place = self.scratch / f"{self.stem}.mlir"
        common.call(self.words(self.source, ["--strategy", "naive", "--emit=stencil", "-o", place]))
        return place

    def compiled(self, variant, why, source, options, taken):
        """Compiles a variant; its settings, or none where no block has room for it."""
        place = f"{self.stem}.{self.part}.{len(self.plans)}"
        words = self.words(
            source, [*options, "--emit=ptx,plan", "--report", "-o", self.folder / place]
        )
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode == 1 and "and a block has" in done.stderr:
            return None
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        lines = (done.stdout + done.stderr).split("predicted, of")[1].splitlines()
        plan = f"{place}.plan.json"
        predicted = float(re.match(r"\S+\s+\S+\s+\S+\s+\d+\s+([\d.]+)", lines[2]).group(1))
        self.plans.append(
            {"plan": plan, "variant": variant, "why": why, "taken": taken, "predicted": predicted}
        )
        return json.loads((self.folder / plan).read_text())["settings"]

    def row(self):
        """The variants, with the naive kernel that checks them."""
        return {
            "part": self.part,
            "program": self.program.stem,
            "kind": self.program.kind,
            "shape": self.shape,
            "plans": self.plans,
            "naive": f"{self.stem}.naive.plan.json",
            "sizes": sizes(self.program, "-D", self.shape),
            "steps": STEPS[self.program.rank],
        }


def schedule(settings):
    """Options for a schedule."""
    tile, cells = (",".join(map(str, settings[name])) for name in ("tile", "per_thread"))
    height = str(settings["pyramid_height"])
    return ["--tile", tile, "--per-thread", cells, "--pyramid-height", height]


def temp_fields(builder):
    """Kept and fused under each strategy."""
    fused = builder.fused()
    count = {
        "kept": builder.applies(["--no-fuse"]),
        "fused": fused.read_text().count('"stencil.apply"'),
    }
    if count["fused"] == count["kept"]:
        sys.exit(f"{builder.stem}: no temp field can be fused")
    sources = {"kept": builder.source, "fused": fused}

    def pair(why, strategy, options):
        words = ["--strategy", strategy, *options]
        left = builder.applies(words)
        found = []
        for variant, source in sources.items():
            taken = left == count[variant]
            found.append(builder.compiled(variant, why, source, ["--no-fuse", *words], taken))
        if left not in count.values():
            builder.compiled("some fused", why, builder.source, words, True)
        return found

    for strategy in STRATEGIES[builder.program.rank]:
        chosen = [schedule(settings) for settings in pair("chosen", strategy, [])]
        if strategy == "block":
            tile, cells = TILES[builder.program.rank][0]
            for height in HEIGHTS:
                pair(
                    "same",
                    strategy,
                    ["--tile", tile, "--per-thread", cells, "--pyramid-height", str(height)],
                )
        elif strategy != "naive":
            # The schedules chosen for either variant, and tiles that are fitted to the kept fields.
            for height in HEIGHTS:
                words = [
                    "--no-fuse",
                    "--strategy",
                    strategy,
                    "--pyramid-height",
                    str(height),
                    "--emit=plan",
                ]
                settings = json.loads(common.call(builder.words(builder.source, words)).stdout)[
                    "settings"
                ]
                chosen.append(schedule(settings))
            for place, options in enumerate(chosen):
                if options not in chosen[:place]:
                    pair("same", strategy, options)


def regions(builder):
    """Shrinking and fixed regions of blocks."""

    def one(region, why, options):
        words = ["--strategy", "block", "--region", region, *options]
        return builder.compiled(region, why, builder.source, words, region == "shrinking")

    for region in ("shrinking", "fixed"):
        one(region, "chosen", [])
    for height in REGION_HEIGHTS:
        for tile, cells in TILES[builder.program.rank]:
            options = ["--tile", tile, "--per-thread", cells, "--pyramid-height", str(height)]
            if one("shrinking", "same", options):
                one("fixed", "same", options)
                break


def build(args):
    """Compiles everything into a folder."""
    release = args.release or common.ROOT / "target/release"
    folder = args.folder
    manifest = {"commit": common.commit(), "naive": [], "rows": []}
    parts = (("temp", FUSED, temp_fields), ("regions", REGIONS, regions))
    if unknown := set(args.only or []) - set(FUSED) - set(REGIONS):
        sys.exit(f"error: no variants of {', '.join(sorted(unknown))}")
    common.take_along(folder, release, "variants.py", "table.py")
    with tempfile.TemporaryDirectory() as scratch:
        for kind, (part, names, variants) in itertools.product(BOTH, parts):
            for name, kinds in names.items():
                if kind not in kinds or (args.only and name not in args.only):
                    continue
                stencilc = release / "stencilc"
                one = Builder(stencilc, folder, pathlib.Path(scratch), name, kind, part)
                manifest["naive"].append(naive_of(stencilc, folder, one.program, one.source))
                variants(one)
                manifest["rows"].append(one.row())
                print(f"{part}: {one.stem}, {len(one.plans)} plans", flush=True)
    (folder / "rows.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{sum(len(row['plans']) for row in manifest['rows'])} plans in {folder}")


def lines_of(row, found):
    """Lines of the record, one a result."""
    plans = {plan["plan"]: plan for plan in row["plans"]}
    for result in found["results"]:
        plan = plans[pathlib.Path(result["plan"]).name]
        yield {
            "part": row["part"],
            "program": row["program"],
            "type": row["kind"],
            "cells": common.size(row["shape"]),
            "steps": row["steps"],
            "variant": plan["variant"],
            "why": plan["why"],
            "taken": "yes" if plan["taken"] else "no",
            **common.measurement(result),
            "predicted": plan["predicted"],
        }


def run(args):
    """Measures what was built."""
    folder, start = args.folder, time.monotonic()
    manifest = common.manifest(folder, "rows.json", "variants.py build")
    wrong = check_naive(folder, manifest)
    facts = {
        "what": "fused and kept temp fields, shrinking and fixed regions of blocks, GCells/s",
        "commit": manifest["commit"],
        "checked_steps": CHECKED_STEPS,
        "naive_differs": ", ".join(wrong) or "none",
    }
    print("naive kernels that differ from the oracle:", facts["naive_differs"], flush=True)
    lines, left, failed = [], [], len(wrong)
    for row in manifest["rows"]:
        name = f"{row['part']} {row['program']} {row['kind']}"
        if time.monotonic() - start > args.seconds:
            left.append(name)
            continue
        options = ["--reference", folder / row["naive"], "--check-steps", CHECKED_STEPS, "--graph"]
        options += ["--steps", row["steps"], "--tolerance", TOLERANCE[row["kind"]]]
        options += ["--repeat", args.repeat, *row["sizes"]]
        found, good = measure(folder, [plan["plan"] for plan in row["plans"]], options)
        failed += not good
        if not found:
            continue
        facts.update(common.device_facts(found, facts))
        lines += lines_of(row, found)
        print(f"{name}: {len(found['results'])} of {len(row['plans'])} plans", flush=True)
        common.write_record(args.out, facts, lines)
    facts.update(
        {"left_out": ", ".join(left) or "none", "seconds": round(time.monotonic() - start)}
    )
    common.write_record(args.out, facts, lines)
    print(f"{len(lines)} lines in {facts['seconds']} s, {failed} failed, {len(left)} rows left out")
    sys.exit(failed != 0)


def show(args):
    """Prints a line a pair: what was measured of each variant, and what the model predicted."""
    facts, lines = common.read_record(args.out)
    common.require(args.out, facts, lines, [], ["part", "variant", "why", "taken", "predicted"])
    found = {}
    for line in lines:
        if line["check"] == "right":
            same = (line["tile"], f"T={line['height']}") if line["why"] == "same" else ("chosen",)
            key = (line["part"], line["program"], line["type"], line["strategy"], *same)
            found.setdefault(key, []).append(line)
    for key, members in found.items():
        cells = [
            f"{line['variant']}{'*' if line['taken'] == 'yes' else ''} {float(line['gcells']):.0f}"
            f" (predicted {float(line['predicted']):.0f}; {line['tile']}, T={line['height']},"
            f" {line['registers']} registers, {line['spilled']} spilled)"
            for line in members
        ]
        print(*key, "|", " | ".join(cells))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--release", type=pathlib.Path, help="the folder of the compiled tools")
    one.add_argument("--only", nargs="*")
    two = commands.add_parser("run")
    two.add_argument("folder", type=pathlib.Path)
    two.add_argument("out", type=pathlib.Path)
    two.add_argument("--seconds", type=float, default=3600)
    two.add_argument("--repeat", type=int, default=3)
    three = commands.add_parser("show")
    three.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    {"build": build, "run": run, "show": show}[args.command](args)


if __name__ == "__main__":
    main()
