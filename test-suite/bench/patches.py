"""Schedules of the strategy patch on small grids, measured beside those of streams.

    python3 test-suite/bench/patches.py build FOLDER [--only PROGRAM...] [--all PROGRAM...]
    python3 FOLDER/table.py run FOLDER OUT.tsv [--seconds S] [--repeat R]
    python3 test-suite/bench/patches.py show OUT.tsv

`build` needs the compiled project and no GPU. FOLDER then holds all that `table.py run` needs,
which checks and measures every plan. A row is a program in one type at one size: the compiler's
choice, its best stream, and patches with rows and columns a lane and steps a launch; their tiles
are fitted to the grid. Programs that `--all` does not name have the compiler's own patch alone.
`show` prints the fastest stream and patches of each row.
"""

import argparse
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import common
from table import Builder, naive_of, sizes

# Floating-point operations of a point and step.
FMA = {
    "star2d1r": 5,
    "box2d1r": 9,
    "star2d2r": 9,
    "hotspot2d": 9,
    "fdtd2d": 8,
    "star3d1r": 7,
    "j3d27pt": 27,
}
KINDS = ("f32", "f64")
# By dimensions: sizes, cells of a lane in both types, and steps a launch.
SIZES = {
    2: [(side, side) for side in (512, 1024, 2048, 4096)],
    3: [(side, side, side) for side in (64, 128, 256)],
}
SHAPES = {
    2: {
        "f32": [(2, 4), (4, 4), (6, 4), (8, 4), (4, 2), (4, 8)],
        "f64": [(2, 2), (4, 2), (8, 2), (2, 4), (4, 4)],
    },
    3: {
        "f32": [(1, 2, 4), (2, 2, 4), (2, 4, 4), (3, 4, 4), (2, 2, 2)],
        "f64": [(1, 2, 2), (2, 2, 2), (2, 4, 2), (1, 2, 4)],
    },
}
HEIGHTS = {2: [4, 8, 12, 16, 24], 3: [2, 3, 4, 6]}
# What a thread or a block has no room for, or loses too much of to the halo.
DECLINED = re.compile(r"declined \[[a-z-]+\]")


def useful(plan):
    """Whether a tile has the cells of at least four warps."""
    settings = json.loads(plan.read_text())["settings"]
    return math.prod(settings["tile"]) >= 4 * 32 * settings["per_thread"][-1]


def compiled(builder, shape, label, options):
    """The plan of some options; none where the compiler declines them."""
    place = builder.folder / f"{builder.stem}.{common.size(shape)}.{label}"
    words = [builder.stencilc, builder.source, "--fast-math", "--emit=ptx,plan", "-o", place]
    words += sizes(builder.program, "-D", shape) + options
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode == 1 and DECLINED.search(done.stderr):
        return []
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return [f"{place.name}.plan.json"]


def patches(builder, shape):
    """Plans of patches."""
    found, seen = [], set()
    rank = builder.program.rank
    for cells, height in itertools.product(SHAPES[rank][builder.program.kind], HEIGHTS[rank]):
        label = f"patch.{common.size(cells)}.{height}"
        options = ["--strategy", "patch", "--per-thread", ",".join(map(str, cells))]
        for name in compiled(builder, shape, label, [*options, "--pyramid-height", height]):
            text = (builder.folder / name).read_text()
            if useful(builder.folder / name) and text not in seen:
                found.append(name)
                seen.add(text)
    return found


def build(args):
    """Compiles everything into a folder."""
    release = args.release or common.ROOT / "target/release"
    common.take_along(args.folder, release, "table.py")
    manifest = {"commit": common.commit(), "naive": [], "rows": []}
    with tempfile.TemporaryDirectory() as scratch:
        for name, kind in itertools.product(args.only or FMA, KINDS):
            source = common.ROOT / f"test-suite/programs/{name}.stencil"
            stencilc = release / "stencilc"
            one = Builder(stencilc, args.folder, pathlib.Path(scratch), source, kind, FMA[name])
            manifest["naive"].append(naive_of(stencilc, args.folder, one.program, one.source))
            for shape in SIZES[one.program.rank]:
                plans = compiled(one, shape, "chosen", [])
                for strategy in ("stream", "patch"):
                    plans += compiled(one, shape, strategy, ["--strategy", strategy])
                plans += patches(one, shape) if name in args.all else []
                one.row(shape, "small", plans)
                print(f"{one.stem} {common.size(shape)}: {len(plans)} plans", flush=True)
            manifest["rows"] += one.rows
    (args.folder / "rows.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{sum(len(row['plans']) for row in manifest['rows'])} plans in {args.folder}")


def show(args):
    """Prints the fastest schedules of each row."""
    facts, lines = common.read_record(args.out)
    common.require(args.out, facts, lines, [], ["program", "type", "cells", "strategy", "gcells"])
    rows = {}
    for line in lines:
        if line["check"] == "right":
            rows.setdefault((line["program"], line["type"], line["cells"]), []).append(line)
    for key, members in rows.items():
        print(*key)
        for strategy, most in (("stream", 1), ("patch", args.best)):
            of = [line for line in members if line["strategy"] == strategy]
            for line in sorted(of, key=lambda line: -float(line["gcells"]))[:most]:
                names = ("strategy", "tile", "per_thread", "height", "registers", "spilled")
                print(f"  {float(line['gcells']):8.0f}", *(line[name] for name in names))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--release", type=pathlib.Path, help="the folder of the compiled tools")
    one.add_argument("--only", nargs="*")
    one.add_argument("--all", nargs="*", default=["star2d1r"], help="programs with all patches")
    two = commands.add_parser("show")
    two.add_argument("out", type=pathlib.Path)
    two.add_argument("--best", type=int, default=5, help="patches of a row that are printed")
    args = parser.parse_args()
    {"build": build, "show": show}[args.command](args)


if __name__ == "__main__":
    main()
