"""The search for the fastest tile of affine loops, held against all tiles of a coarser grid.

    python3 test-suite/bench/search.py build FOLDER [PROGRAM...] [--release RELEASE] [--jobs J]
    python3 FOLDER/search.py run FOLDER OUT.tsv [--seconds S]
    python3 test-suite/bench/search.py show OUT.tsv

PROGRAM is one of mm-f32, mv, tmv, mvt, mri-q and cp; without any, mm-f32, tmv and mri-q are built.
`build` needs the compiled project, or the folder RELEASE with `stencilc` and `stencil-bench`, ptxas
and no GPU; it compiles J tiles at a time. FOLDER then holds all that `run` needs beside
Python and a GPU: plans, PTX, `stencil-bench` and the scripts.

The pruned candidates are those of `stencilc --candidates`. The others have every power of two of
threads (32 to 1,024 with one axis, 64 to 1,024 with two), of copiers with one axis, and of cells
per thread up to 8, and the times of `TIMES`, whatever the limits of the search say. Results are
checked against kernels without tiles. `show` prints the best of both, and the tile that the
compiler takes without a search. Exit code 1 if a run fails.
"""

import argparse
import concurrent.futures
import functools
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import common

# The compiler's own list behind the tile.
CLEANED = "gpu.module(canonicalize{top-down=false},cse)"
LOWERING = (f"lower-affine-nest,{CLEANED},hoist-guards,keep-in-registers,bank-pad,vectorize-copies,"
            "gpu.module(cse,canonicalize{top-down=false},cse),place-constants")
FAST = ["--fast-math"]
# Axes, sizes, options, and how far results may lie apart.
PROGRAMS = {
    "mm-f32": (2, {"N": 4096, "M": 4096, "K": 4096}, [], 0),
    "mv": (1, {"N": 16384, "M": 16384}, [], 0),
    "tmv": (1, {"N": 16384, "M": 16384}, [], 0),
    "mvt": (1, {"N": 16384}, [], 0),
    "mri-q": (1, {"N": 262144, "K": 2048}, FAST, 1e-3),
    "cp": (2, {"N": 2048, "M": 2048, "K": 4096}, FAST, 1e-3),
}
SCALARS = {"mm-f32": {"alpha": 1.5, "beta": 0.25}, "cp": {"spacing": 0.1}}
TIMES = {1: [8, 32, 64, 128, 512], 2: [8, 16, 64]}
MOST = 1000
TILE = ["threads", "copiers", "per_thread", "time"]


def powers(first, last):
    """Powers of two between two of them."""
    return [1 << bit for bit in range(first.bit_length() - 1, last.bit_length())]


def grid(axes):
    """Tiles as (threads, copiers, cells per thread, time)."""
    if axes == 1:
        for total, copiers in itertools.product(powers(32, 1024), powers(1, 32)):
            if total // copiers >= 32:
                for cells, steps in itertools.product(powers(1, 8), TIMES[1]):
                    yield [total // copiers], copiers, [cells], steps
        return
    for y, x in itertools.product(powers(2, 64), powers(8, 64)):
        if 64 <= x * y <= 1024:
            for cells in itertools.product(powers(1, 8), repeat=2):
                for steps in TIMES[2]:
                    yield [y, x], 1, list(cells), steps


def text(tile):
    """A tile in a column."""
    threads, copiers, cells, steps = tile
    listed = [",".join(map(str, numbers)) for numbers in (threads, cells)]
    return f"threads={listed[0]} copiers={copiers} per-thread={listed[1]} time={steps}"


def tile_of(plan):
    """The tile that a candidate's plan states."""
    settings = plan["settings"]
    cells = settings["per_thread"]
    threads = [tile // own for tile, own in zip(settings["tile"], cells)]
    return threads, settings["copies"]["copiers"], cells, settings["copies"]["time"]


def build(folder, names, release, jobs):
    """Compiles all tiles of some programs."""
    if unknown := set(names) - set(PROGRAMS):
        sys.exit(f"error: no program {sorted(unknown)[0]}; there are {', '.join(PROGRAMS)}")
    stencilc = release / "stencilc"
    common.take_along(folder, release, "search.py")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        pruned = list(pool.map(lambda name: searched(stencilc, folder, name), names))
        made = {}
        for name, (left, rows) in zip(names, pruned, strict=True):
            axes, sizes, _, tolerance = PROGRAMS[name]
            seen = {tile for _, _, tile in rows}
            others = [tile for tile in grid(axes) if text(tile) not in seen]
            one = functools.partial(alone, stencilc, folder, name)
            rows += filter(None, pool.map(one, range(len(others)), others))
            made[name] = {"sizes": sizes, "tolerance": tolerance, "left": left, "rows": rows}
            print(f"{name}: {left}, {len(rows)} in all", flush=True)
    record = {"commit": common.commit(), "programs": made}
    (folder / "search.json").write_text(json.dumps(record))


def searched(stencilc, folder, name):
    """Compiles the candidates that the compiler leaves: its limits, and the tiles."""
    source = common.ROOT / f"test-suite/nests/{name}.mlir"
    words = [stencilc, source, *PROGRAMS[name][2], "--emit=ptx,plan"]
    common.call([*words, "--no-nest-tiles", "-o", folder / f"{name}.plain"])
    common.call([*words, "-o", folder / f"{name}.default"])
    rows = [[f"{name}.default", "default", "the compiler's own"]]
    found = common.call([*words, "--candidates", MOST, "-o", folder / name])
    left = [line.strip() for line in found.stderr.splitlines()]
    left = left[[line.startswith("tiles left") for line in left].index(True) + 1:]
    left = left[:[line.startswith("number") for line in left].index(True)]
    for plan in sorted(folder.glob(f"{name}.[0-9]*.plan.json")):
        tile = text(tile_of(json.loads(plan.read_text())))
        rows.append([plan.name.removesuffix(".plan.json"), "pruned", tile])
    return left, rows


def alone(stencilc, folder, name, place, tile):
    """Compiles a tile that the search leaves out; nothing where it can't be compiled."""
    source = common.ROOT / f"test-suite/nests/{name}.mlir"
    passes = f"builtin.module(sink-time-loops,tile-affine-nest{{{text(tile)}}},{LOWERING})"
    stem = f"{name}.all.{place}"
    words = [stencilc, source, *PROGRAMS[name][2], "--emit=ptx,plan", "--passes", passes]
    done = subprocess.run(
        [*map(str, words), "-o", folder / stem], capture_output=True, text=True, check=False)
    if "error: internal" in done.stderr:
        sys.exit(f"{name} {text(tile)}: {done.stderr}")
    return None if done.returncode else [stem, "all", text(tile)]


def run(folder, out, seconds):
    """Measures what a build left."""
    folder = folder.resolve()
    record = common.manifest(folder, "search.json", "search.py build")
    rows, facts, failed = [], {"commit": record["commit"]}, False
    start = time.monotonic()
    for name, program in record["programs"].items():
        kinds = dict((stem, (kind, tile)) for stem, kind, tile in program["rows"])
        stems = list(kinds)
        # The pruned ones and the compiler's own come first, in case that the time ends.
        for first in range(0, len(stems), 50):
            if time.monotonic() - start > seconds:
                print(f"{name}: the time ended before {len(stems) - first} tiles")
                break
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                words = [folder / "stencil-bench"]
                words += [folder / f"{stem}.plan.json" for stem in stems[first:first + 50]]
                words += common.pairs("--size", program["sizes"])
                words += common.pairs("--set", SCALARS.get(name, {}))
                words += ["--reference", folder / f"{name}.plain.plan.json", "--json", file.name]
                words += ["--tolerance", program["tolerance"], "--repeat", 3, "--warmup", 1]
                words += ["--pause", 0]
                done = subprocess.run(
                    list(map(str, words)), capture_output=True, text=True, check=False)
                failed |= done.returncode != 0
                if done.returncode:
                    print(done.stderr[-2000:], flush=True)
                found = json.loads(pathlib.Path(file.name).read_text() or "{}")
            facts = facts | common.device_facts(found, facts)
            for result in found.get("results", []):
                stem = pathlib.Path(result["plan"]).name.removesuffix(".plan.json")
                kind, tile = kinds[stem]
                ms = statistics.median(result["seconds"]) * 1e3
                columns = [word.partition("=")[2] for word in tile.split() if "=" in word]
                columns = dict(zip(TILE, columns or [""] * len(TILE), strict=True))
                rows.append({"program": name, "kind": kind, **columns, "ms": f"{ms:.4f}"})
        print(f"{name}: {len(rows)} tiles, {time.monotonic() - start:.0f} s", flush=True)
    facts["limits"] = json.dumps({n: p["left"] for n, p in record["programs"].items()})
    common.write_record(out, facts, rows)
    sys.exit(int(failed))


def show(out):
    """Prints the best tile of each kind for each program."""
    _, rows = common.read_record(out)
    for name in dict.fromkeys(row["program"] for row in rows):
        own = [row for row in rows if row["program"] == name]
        least = min(float(row["ms"]) for row in own)
        for kind in dict.fromkeys(row["kind"] for row in own):
            of_kind = [row for row in own if row["kind"] == kind]
            best = min(of_kind, key=lambda row: float(row["ms"]))
            tile = " ".join(f"{column}={best[column]}" for column in TILE if best[column])
            ms = float(best["ms"])
            print(f"{name:8} {kind:8} {len(of_kind):5} {ms:9.4f} ms {ms / least - 1:6.1%}  {tile}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build")
    command.add_argument("folder", type=pathlib.Path)
    usual = ["mm-f32", "tmv", "mri-q"]
    command.add_argument("programs", nargs="*", metavar="PROGRAM", default=usual)
    command.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    command.add_argument("--jobs", type=int, default=1)
    command = commands.add_parser("run")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("out")
    command.add_argument("--seconds", type=float, default=500)
    command = commands.add_parser("show")
    command.add_argument("out")
    args = parser.parse_args()
    if args.command == "build":
        build(args.folder, args.programs, args.release, args.jobs)
    elif args.command == "run":
        run(args.folder, args.out, args.seconds)
    else:
        show(args.out)


if __name__ == "__main__":
    main()
