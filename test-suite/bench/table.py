"""The table of rates: builds every row here, measures all of them on a GPU machine.

    python3 test-suite/bench/table.py build FOLDER [--candidates N] [--main] [--only ROW...]
    python3 FOLDER/table.py run FOLDER OUT.json [--seconds S] [--repeat R] [--steps T] [--unchecked]

`build` needs the compiled project and no GPU. It leaves plans, PTX, wanted results of small runs by the
oracle, `stencil-bench` and this script in FOLDER, all that `run` needs beside Python and a GPU.

A row is a program in f32 or f64 (f64 sources are the f32 ones with the word replaced) at one size. `run`
first holds the naive kernel against the oracle, bit for bit, at a small size, then runs the compiler's
own choice of schedule and N - 1 runners-up, checks each against the naive kernel after a few steps on the
same data, and measures them. `--main --candidates 40` looks at all schedules that the model does, for which
`run --unchecked` leaves the comparison out. Exit code 1 if a result is wrong or a run fails.
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

# Floating-point operations of a point and step, where a*b + c is one and a division by a constant a product.
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
}
# More programs for the plot of rates over the radius, by number of points.
RADII = {"star2d3r": 13, "star2d4r": 17, "box2d3r": 49, "star3d3r": 19}
CUBE, SQUARE, LINE = (512, 512, 512), (16384, 16384), (1 << 28,)
MAIN = {"fdtd2d": (8192, 8192)}
OTHER = {1: [], 2: [(4096, 4096), (10000, 3001)], 3: [(200, 200, 200)]}
# Sizes of the plot of rates over the size.
SIZES = [(1024, 1024), (2048, 2048), (8192, 8192)]
# Heights of the plot of rates over the steps a launch.
HEIGHTS = [1, 2, 4, 6, 8, 10, 12]
SMALL = {1: (10007,), 2: (211, 199), 3: (31, 29, 53)}
MAIN_STEPS, OTHER_STEPS, SMALL_STEPS = 1000, 480, 9
# Some launches of the main kernel one after the other, which overlap.
CHECKED_STEPS = 37
TOLERANCE = {"f32": 1e-3, "f64": 1e-9}
# gradient2d divides by differences of neighbours, so that an error of rounding grows a hundredfold a step.
# A launch of jacobi1d3 takes 48.
CHECKED = {"gradient2d": 13, "jacobi1d3": 97}
# Milliseconds before a run: under load the device reaches its power limit and lowers its clock.
PAUSE = 100
TOLERANCES = {("gradient2d", "f32"): 3e-2, ("gradient2d", "f64"): 1e-6}


class Program:
    """A program in one type."""

    def __init__(self, source, kind):
        self.name, self.kind = source.stem, kind
        text = source.read_text()
        self.text = re.sub(r"\bf32\b", "f64", text) if kind == "f64" else text
        self.params = re.findall(r"^param\s+(\w+)\s*(?:#.*)?$", text, re.M)
        self.inputs = re.findall(r"^(?:const )?field\s+(\w+)", text, re.M)
        self.outputs = re.findall(r"^field\s+(\w+)", text, re.M)
        self.rank = re.search(r"^grid[^=]*=\s*\[(.*?)\]", text, re.M).group(1).count(",") + 1

    def sizes(self, option, shape):
        """Options that set the sizes."""
        return [word for name, cells in zip(self.params, shape) for word in (option, f"{name}={cells}")]

    def data(self):
        """Options for the inputs, noise as stencil-bench makes it unless told otherwise."""
        return [word for seed, name in enumerate(self.inputs, 1) for word in ("--in", f"{name}=random:{seed}")]


def call(words, **options):
    """Runs a command; the process that ended, whose failure ends this one."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, **options)
    except OSError as error:
        sys.exit(f"{words[0]}: {error.strerror}")
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done


def naive_of(stencilc, folder, program, source):
    """Compiles the naive kernel that others are held against; what is wanted of it at a small size, by the oracle."""
    stem = f"{program.name}_{program.kind}"
    exact = ["--strategy", "naive", "--no-fuse", "--fp-contract=off", "--emit=ptx,plan", "-o", folder / f"{stem}.naive"]
    call([stencilc, source, *exact])
    small = SMALL[program.rank]
    expected = {field: f"{stem}.{field}.npy" for field in program.outputs}
    words = [stencilc, "run", source, "--target", "reference", "--steps", SMALL_STEPS, *program.data()]
    outputs = [word for field, file in expected.items() for word in ("--out", f"{field}={folder / file}")]
    call(words + program.sizes("--size", small) + outputs)
    return {
        "program": program.name, "kind": program.kind, "plan": f"{stem}.naive.plan.json", "expected": expected,
        "sizes": program.sizes("-D", small),
    }


def build(args):
    """Compiles everything into a folder."""
    root = pathlib.Path(__file__).resolve().parents[2]
    release = pathlib.Path(args.release) if args.release else root / "target/release"
    stencilc, folder = release / "stencilc", pathlib.Path(args.folder)
    programs = root / "test-suite/programs"
    wanted = {**ROWS, **{name: fma for name, fma in RADII.items() if (programs / f"{name}.stencil").exists()}}
    if unknown := [name for name in args.only or [] if name not in wanted]:
        sys.exit(f"no rows of {', '.join(unknown)}; there are {', '.join(wanted)}")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, folder / "table.py")
    call(["strip", "-o", folder / "stencil-bench", release / "stencil-bench"])
    manifest = {"commit": call(["git", "-C", root, "rev-parse", "HEAD"]).stdout.strip(), "naive": [], "rows": []}
    with tempfile.TemporaryDirectory() as scratch:
        for name, fma in wanted.items():
            for kind in ("f32", "f64"):
                program = Program(programs / f"{name}.stencil", kind)
                if (args.only and name not in args.only) or (args.main and name in RADII):
                    continue
                source = pathlib.Path(scratch) / f"{name}_{kind}.stencil"
                source.write_text(program.text)
                stem = f"{name}_{kind}"
                manifest["naive"].append(naive_of(stencilc, folder, program, source))
                main = MAIN.get(name, {1: LINE, 2: SQUARE, 3: CUBE}[program.rank])
                def row(shape, why, plans):
                    manifest["rows"].append({
                        "program": name, "kind": kind, "shape": shape, "why": why, "fma": fma, "plans": plans,
                        "naive": f"{stem}.naive.plan.json", "sizes": program.sizes("-D", shape),
                    })
                def compiled(shape, label, options):
                    place = f"{stem}.{'x'.join(map(str, shape))}.{label}"
                    words = [stencilc, source, "--fast-math", "--emit=ptx,plan", "-o", folder / place]
                    call(words + program.sizes("-D", shape) + options)
                    return sorted(path.name for path in folder.glob(f"{place}.*plan.json"))
                # A quarter or an eighth of the points is as good where rows are compared with each other.
                half = tuple(cells // 2 for cells in main)
                if name in RADII:
                    row(half, "radius", compiled(half, "radius", []))
                    continue
                row(main, "main", compiled(main, "main", ["--candidates", str(args.candidates)]))
                if args.main:
                    continue
                if name in ("star2d1r", "star2d2r", "box2d1r", "box2d2r", "star3d1r", "star3d2r"):
                    row(half, "radius", compiled(half, "radius", []))
                others = OTHER[program.rank] + (SIZES if name in ("star2d1r", "j2d5pt") and kind == "f32" else [])
                for shape in others:
                    row(shape, "size", compiled(shape, "size", []))
                if name in ("star2d1r", "box2d1r"):
                    plans = [
                        plan
                        for height in HEIGHTS
                        for plan in compiled(half, f"T{height}", ["--strategy", "stream", "--pyramid-height", str(height)])
                    ]
                    row(half, "height", plans)
    order = {why: place for place, why in enumerate(["main", "size", "height", "radius"])}
    manifest["rows"].sort(key=lambda row: order[row["why"]])
    (folder / "rows.json").write_text(json.dumps(manifest, indent=1) + "\n")
    count = sum(len(row["plans"]) for row in manifest["rows"])
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    print(f"{len(manifest['rows'])} rows, {count} plans, {size:.1f} MiB in {folder}")


def measure(folder, plans, options):
    """Runs stencil-bench over plans; its record, and whether all went well."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [folder / "stencil-bench", *(folder / plan for plan in plans), "--json", file.name, *options]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        text = pathlib.Path(file.name).read_text()
    # Without a device no other plan can run either.
    if done.returncode and not done.stdout and re.match(r"error: .*\bCUDA (device|driver)", done.stderr):
        sys.exit(done.stderr.strip())
    if done.returncode:
        print((done.stdout + done.stderr).strip(), flush=True)
    found = json.loads(text) if text else None
    # A record names plans, not where they lay.
    for result in found["results"] if found else []:
        result["plan"] = pathlib.Path(result["plan"]).name
        if result["check"]:
            result["check"]["against"] = pathlib.Path(result["check"]["against"]).name
    return found, done.returncode == 0


def check_naive(folder, manifest, record):
    """Holds the naive kernels against the oracle, bit for bit; how many differ."""
    for row in manifest["naive"]:
        expected = [word for field, file in row["expected"].items() for word in ("--expect", f"{field}={folder / file}")]
        _, good = measure(folder, [row["plan"]], ["--steps", SMALL_STEPS, "--repeat", 1, *row["sizes"], *expected])
        record["naive"].append({"program": row["program"], "kind": row["kind"], "equals_oracle": good})
    return sum(not row["equals_oracle"] for row in record["naive"])


def run(args):
    """Measures what was built."""
    folder, start = pathlib.Path(args.folder), time.monotonic()
    needed = {folder / "rows.json": "table.py build makes it", pathlib.Path(args.out).parent: "the record goes there"}
    for place, why in needed.items():
        if not place.exists():
            sys.exit(f"{place} is missing; {why}")
    manifest = json.loads((folder / "rows.json").read_text())
    record = {
        "commit": manifest["commit"], "steps": args.steps or MAIN_STEPS, "other_steps": args.steps or OTHER_STEPS,
        "checked_steps": CHECKED_STEPS, "pause": PAUSE, "naive": [], "rows": [],
    }
    failed = 0 if args.unchecked else check_naive(folder, manifest, record)
    print(f"naive against the oracle: {len(record['naive'])} programs, {failed} differ; {time.monotonic() - start:.0f} s")
    for row in manifest["rows"]:
        if time.monotonic() - start > args.seconds:
            record.setdefault("left_out", []).append([row["program"], row["kind"], row["shape"], row["why"]])
            continue
        checked = CHECKED.get(row["program"], CHECKED_STEPS)
        options = [] if args.unchecked else ["--reference", folder / row["naive"], "--check-steps", checked]
        steps = args.steps or (MAIN_STEPS if row["why"] == "main" else OTHER_STEPS)
        options += ["--steps", steps, "--pause", PAUSE]
        tolerance = TOLERANCES.get((row["program"], row["kind"]), TOLERANCE[row["kind"]])
        options += ["--tolerance", tolerance, "--repeat", args.repeat, "--graph", "--fma-per-point", row["fma"]]
        found, good = measure(folder, row["plans"], options)
        failed += not good
        if not found:
            continue
        record["device"], record["date"], record["state"] = found["device"], found["date"], found["state"]
        record["copy_bandwidth"] = max(record.get("copy_bandwidth", 0), found["copy_bandwidth"])
        record["rows"].append({**row, "checked_steps": 0 if args.unchecked else checked, "results": found["results"], "failures": found["failures"]})
        for result in found["results"]:
            kernel, check = result["kernels"][0], result["check"]
            print(
                f"{row['program']:11} {row['kind']} {'x'.join(map(str, row['shape'])):12} {row['why']:6}"
                f" {result['settings']['strategy']:6} {'x'.join(map(str, result['settings']['tile'])):10}"
                f" T={result['settings']['pyramid_height']:<2} {result['gcells']['median']:7.1f} GCells/s"
                f" {100 * result['of_copy_limit']:4.0f} % copy {100 * (result['of_fma_limit'] or 0):3.0f} % FMA"
                f" {kernel['registers']} registers {kernel['local']} spilled, first {1e3 * result['first_seconds']:.0f} ms,"
                f" {'unchecked' if args.unchecked else 'right' if check and check['passed'] else 'WRONG'}",
                flush=True,
            )
        pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n")
    record["seconds"] = time.monotonic() - start
    pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(record['rows'])} rows in {record['seconds']:.0f} s, {failed} failed, {len(record.get('left_out', []))} left out")
    sys.exit(failed != 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder")
    one.add_argument("--release", help="the folder of the compiled tools")
    one.add_argument("--candidates", type=int, default=4)
    one.add_argument("--only", nargs="*")
    one.add_argument("--main", action="store_true", help="the largest size of each row alone")
    two = commands.add_parser("run")
    two.add_argument("folder")
    two.add_argument("out")
    two.add_argument("--seconds", type=float, default=3600)
    two.add_argument("--repeat", type=int, default=5)
    two.add_argument("--unchecked", action="store_true", help="no comparison with the naive kernels, for searches")
    two.add_argument("--steps", type=int, help="steps of a measured run in place of a row's own")
    args = parser.parse_args()
    {"build": build, "run": run}[args.command](args)


if __name__ == "__main__":
    main()
