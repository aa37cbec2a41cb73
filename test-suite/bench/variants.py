"""Fused and kept temp fields, shrinking and fixed regions: builds both of each pair here, measures them on a GPU machine.

    python3 test-suite/bench/variants.py build FOLDER [--only PROGRAM...]
    python3 FOLDER/variants.py run FOLDER OUT.json [--seconds S] [--repeat R]
    python3 test-suite/bench/variants.py show OUT.json

`build` needs the compiled project and no GPU. It leaves plans, PTX, wanted results of small runs by the
oracle, `stencil-bench` and the scripts in FOLDER, all that `run` needs beside Python and a GPU.

Each program has its variants under each strategy with the same tile, cells a thread and steps a launch, and
with the schedule that the compiler chooses for the variant. Temp fields are kept (`--no-fuse`) or fused,
whatever the model says: a program fused for the strategy naive, where fusing pays wherever it is possible, is
compiled from its IR. `taken` says which of them the compiler takes without options, `predicted` what the model
expects of each. `run` checks and measures as the table's does, f32 first: a plan takes about a second. `show` prints
a line a pair, with a star at what is taken. Exit code 1 if a result is wrong or a run fails.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from table import CHECKED_STEPS, TOLERANCE, Program, call, check_naive, measure, naive_of

BOTH = ("f32", "f64")
# Programs with temp fields that can be fused, and programs of radius 1 and 2, with their types.
FUSED = {"gauss2d": BOTH, "fluxes2d": BOTH, "laser2d": BOTH, "burgers1d": BOTH}
REGIONS = {
    "star2d1r": BOTH, "star2d2r": ("f32",), "box2d1r": ("f32",), "box2d2r": ("f32",), "star3d1r": BOTH, "star3d2r": ("f32",),
    "j3d27pt": ("f32",), "jacobi1d3": BOTH, "jacobi1d5": ("f32",),
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
        programs = pathlib.Path(__file__).resolve().parents[1] / "programs"
        self.stencilc, self.folder, self.scratch, self.part = stencilc, folder, scratch, part
        self.program = Program(programs / f"{name}.stencil", kind)
        self.stem = f"{name}_{kind}"
        self.source = scratch / f"{self.stem}.stencil"
        self.source.write_text(self.program.text)
        self.shape = SHAPES[self.program.rank]
        self.plans = []

    def words(self, source, options):
        """The command that compiles a source of this program, a program or its IR."""
        sizes = [] if source.suffix == ".mlir" else self.program.sizes("-D", self.shape)
        return [self.stencilc, source, "--fast-math", *sizes, *options]

    def applies(self, options):
        """How many functions a step are left of the program."""
        return call(self.words(self.source, [*options, "--emit=stencil"])).stdout.count('"stencil.apply"')

    def fused(self):
        """The program's IR with all temp fields fused that can be."""
        place = self.scratch / f"{self.stem}.mlir"
        call(self.words(self.source, ["--strategy", "naive", "--emit=stencil", "-o", place]))
        return place

    def compiled(self, variant, why, source, options, taken):
        """Compiles a variant; its settings, or none where no block has room for it."""
        place = f"{self.stem}.{self.part}.{len(self.plans)}"
        words = self.words(source, [*options, "--emit=ptx,plan", "--report", "-o", self.folder / place])
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode == 1 and "and a block has" in done.stderr:
            return None
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        lines = (done.stdout + done.stderr).split("predicted, of")[1].splitlines()
        plan = f"{place}.plan.json"
        predicted = float(re.match(r"\S+\s+\S+\s+\S+\s+\d+\s+([\d.]+)", lines[2]).group(1))
        self.plans.append({"plan": plan, "variant": variant, "why": why, "taken": taken, "predicted": predicted})
        return json.loads((self.folder / plan).read_text())["settings"]

    def row(self):
        """The variants, with the naive kernel that checks them."""
        return {
            "part": self.part, "program": self.program.name, "kind": self.program.kind, "shape": self.shape, "plans": self.plans,
            "naive": f"{self.stem}.naive.plan.json", "sizes": self.program.sizes("-D", self.shape), "steps": STEPS[self.program.rank],
        }


def schedule(settings):
    """Options for a schedule."""
    listed = lambda name: ",".join(map(str, settings[name]))
    return ["--tile", listed("tile"), "--per-thread", listed("per_thread"), "--pyramid-height", str(settings["pyramid_height"])]


def temp_fields(builder):
    """Kept and fused under each strategy."""
    fused = builder.fused()
    count = {"kept": builder.applies(["--no-fuse"]), "fused": fused.read_text().count('"stencil.apply"')}
    if count["fused"] == count["kept"]:
        sys.exit(f"{builder.stem}: no temp field can be fused")
    sources = {"kept": builder.source, "fused": fused}

    def pair(why, strategy, options):
        words = ["--strategy", strategy, *options]
        left = builder.applies(words)
        found = []
        for variant, source in sources.items():
            found.append(builder.compiled(variant, why, source, ["--no-fuse", *words], left == count[variant]))
        if left not in count.values():
            builder.compiled("some fused", why, builder.source, words, True)
        return found

    for strategy in STRATEGIES[builder.program.rank]:
        chosen = [schedule(settings) for settings in pair("chosen", strategy, [])]
        if strategy == "block":
            tile, cells = TILES[builder.program.rank][0]
            for height in HEIGHTS:
                pair("same", strategy, ["--tile", tile, "--per-thread", cells, "--pyramid-height", str(height)])
        elif strategy != "naive":
            # The schedules chosen for either variant, and the tiles that are fitted to the kept fields.
            for height in HEIGHTS:
                words = ["--no-fuse", "--strategy", strategy, "--pyramid-height", str(height), "--emit=plan"]
                settings = json.loads(call(builder.words(builder.source, words)).stdout)["settings"]
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
    root = pathlib.Path(__file__).resolve().parents[2]
    release = pathlib.Path(args.release) if args.release else root / "target/release"
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for script in ("variants.py", "table.py"):
        shutil.copy(pathlib.Path(__file__).with_name(script), folder / script)
    call(["strip", "-o", folder / "stencil-bench", release / "stencil-bench"])
    manifest = {"commit": call(["git", "-C", root, "rev-parse", "HEAD"]).stdout.strip(), "naive": [], "rows": []}
    with tempfile.TemporaryDirectory() as scratch:
        for kind in BOTH:
            for part, names, variants in (("temp", FUSED, temp_fields), ("regions", REGIONS, regions)):
                for name in (name for name, kinds in names.items() if kind in kinds and (not args.only or name in args.only)):
                    builder = Builder(release / "stencilc", folder, pathlib.Path(scratch), name, kind, part)
                    manifest["naive"].append(naive_of(builder.stencilc, folder, builder.program, builder.source))
                    variants(builder)
                    manifest["rows"].append(builder.row())
                    print(f"{part}: {builder.stem}, {len(builder.plans)} plans", flush=True)
    (folder / "rows.json").write_text(json.dumps(manifest, indent=1) + "\n")
    count = sum(len(row["plans"]) for row in manifest["rows"])
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    print(f"{len(manifest['rows'])} rows, {count} plans, {size:.1f} MiB in {folder}")


def run(args):
    """Measures what was built."""
    folder, start = pathlib.Path(args.folder), time.monotonic()
    manifest = json.loads((folder / "rows.json").read_text())
    record = {"commit": manifest["commit"], "checked_steps": CHECKED_STEPS, "naive": [], "rows": [], "left_out": []}
    failed = check_naive(folder, manifest, record)
    print(f"naive against the oracle: {len(record['naive'])} programs, {failed} differ; {time.monotonic() - start:.0f} s")
    for row in manifest["rows"]:
        name = [row["part"], row["program"], row["kind"]]
        if time.monotonic() - start > args.seconds:
            record["left_out"].append(name)
            continue
        options = ["--reference", folder / row["naive"], "--check-steps", CHECKED_STEPS, "--steps", row["steps"], "--graph"]
        options += ["--tolerance", TOLERANCE[row["kind"]], "--repeat", args.repeat, *row["sizes"]]
        found, good = measure(folder, [plan["plan"] for plan in row["plans"]], options)
        failed += not good
        if not found:
            continue
        record["device"], record["date"], record["state"] = found["device"], found["date"], found["state"]
        record["copy_bandwidth"] = max(record.get("copy_bandwidth", 0), found["copy_bandwidth"])
        record["rows"].append({**row, "results": found["results"], "failures": found["failures"]})
        print(*name, f"{len(found['results'])} of {len(row['plans'])} plans, {time.monotonic() - start:.0f} s", flush=True)
        pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n")
    record["seconds"] = time.monotonic() - start
    pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(record['rows'])} rows in {record['seconds']:.0f} s, {failed} failed, {len(record['left_out'])} left out")
    sys.exit(failed != 0)


def show(args):
    """Prints a row a pair: what was measured, and what the model predicted, of each variant."""
    for row in json.loads(pathlib.Path(args.out).read_text())["rows"]:
        results = {pathlib.Path(result["plan"]).name: result for result in row["results"]}
        pairs, chosen = {}, {}
        for plan in row["plans"]:
            result = results.get(plan["plan"])
            if result and result["check"]["passed"]:
                settings = result["settings"]
                words = (settings["strategy"], "x".join(map(str, settings["tile"])), settings["pyramid_height"])
                place = (settings["strategy"], "chosen") if plan["why"] == "chosen" else words
                pairs.setdefault(place, []).append((plan, words, result))
        for place, members in pairs.items():
            cells = [
                f"{plan['variant']}{'*' if plan['taken'] else ''} {result['gcells']['median']:.0f} (predicted {plan['predicted']:.0f};"
                f" {words[1]}, T={words[2]}, {result['kernels'][0]['registers']} registers, {result['kernels'][0]['local']} spilled)"
                for plan, words, result in members
            ]
            print(row["part"], row["program"], row["kind"], *place, "|", " | ".join(cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder")
    one.add_argument("--release", help="the folder of the compiled tools")
    one.add_argument("--only", nargs="*")
    two = commands.add_parser("run")
    two.add_argument("folder")
    two.add_argument("out")
    two.add_argument("--seconds", type=float, default=3600)
    two.add_argument("--repeat", type=int, default=3)
    three = commands.add_parser("show")
    three.add_argument("out")
    args = parser.parse_args()
    {"build": build, "run": run, "show": show}[args.command](args)


if __name__ == "__main__":
    main()
