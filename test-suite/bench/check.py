"""Every program on a GPU under every strategy, held against the oracle bit for bit.

    python3 test-suite/bench/check.py build FOLDER [--release FOLDER] [--jobs N] [PROGRAM...]
    python3 FOLDER/check.py run FOLDER OUT.json [--seconds S] [--jobs N]
    python3 FOLDER/check.py sanitize FOLDER OUT.json [--seconds S] [--jobs N]

`build` needs the compiled project and no GPU. It compiles every program of the test suite without
contraction, with sizes known at compile time and with sizes of a run, and leaves plans, PTX, the oracle's
results and `stencil-bench` in FOLDER as one compressed archive beside this script: all that the other two
need beside Python, NumPy and a GPU. Inputs are made from seeds where they are used.

`run` holds each kernel against the oracle at two odd sizes, and at a large one against the naive kernel,
which the small sizes have proved; three programs also run on more than 2^31 cells. Launches of the naive kernels go out
one by one, all others as CUDA graphs of a few, and kernels that can be cut into bands run twice: as the device takes them,
which is whole at most of these sizes, and in bands that overlap. `sanitize` runs some of them, in bands where they can
be, under compute-sanitizer's four tools. Both stop after a number of seconds and say what was left out; exit code 1 if
a result differs, a run fails, or none of the runs that should be cut was.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy

# Sizes per rank: the first and the last meet kernels with sizes of a run, the second and the last those
# with sizes in their code. Rows of the second are whole accesses of 64-bit cells.
SMALL = {1: {"N": 403}, 2: {"N": 67, "M": 131}, 3: {"N": 19, "M": 23, "L": 37}}
MIDDLE = {1: {"N": 10007}, 2: {"N": 211, "M": 398}, 3: {"N": 31, "M": 29, "L": 53}}
LARGE = {1: {"N": (1 << 22) + 3}, 2: {"N": 4096, "M": 3001}, 3: {"N": 257, "M": 200, "L": 301}}
# Just above 2^31 cells, where indices must have 64 bits.
HUGE = {
    "jacobi1d3_f16": {"N": (1 << 31) + 5},
    "heat2d_f16": {"N": 46341, "M": 46342},
    "star3d1r_f16": {"N": 1289, "M": 1301, "L": 1301},
}
# Steps, which are no multiple of the heights below: three launches at least of a stream's main kernel, as bands
# overlap with those of the next launch.
STEPS = {1: 47, 2: 37, 3: 15}
# Fewer for a program whose values grow seventeenfold a step.
FEWER_STEPS = {"poisson2d": 29}
# Params that are no extent of the main grid; `None` is the extent N.
PARAMS = {"lookup": {"K": 13}, "pathfinder": {"N": 19, "M": None}}
# Per rank: strategy, tile, cells a thread, steps a launch; the compiler's own where there is none.
SCHEDULES = {
    1: [
        ("naive", None, None, None),
        ("block", None, None, None),
        ("block", "300", "1", 5),
        ("block", "2000", "8", 3),
        ("warp", None, None, None),
        ("warp", "90", "6", 5),
        ("warp", None, None, 40),
    ],
    2: [
        ("naive", None, None, None),
        ("block", None, None, None),
        ("block", "15,33", "3,1", 2),
        ("block", "8,32", "1", 5),
        ("stream", None, None, None),
        ("stream", None, None, 1),
        ("stream", "7,96", None, 3),
    ],
    3: [
        ("naive", None, None, None),
        ("block", None, None, None),
        ("block", "5,7,17", "2,1,1", 2),
        ("stream", None, None, None),
        ("stream", None, None, 1),
        ("stream", "5,12,24", None, 2),
    ],
}
# Programs that are taken in more types than their own.
TYPES = {
    "f16": ["heat2d", "jacobi1d3", "star3d1r", "fdtd2d", "insulated2d", "flow2d"],
    "f64": ["heat2d", "hotspot2d", "star3d1r", "wave3d", "advect2d", "torus3d", "flow2d", "lookup", "box2d2r", "j3d27pt"],
}
# Programs of hundreds of reads, whose streams take the compiler minutes.
WITHOUT_STREAMS = ["box3d3r", "box3d4r"]
# What no block or warp has room for, and what a strategy does not take, is declined with these words.
DECLINED = re.compile(
    r"bytes of shared memory, and a block has|threads, and a block has|and a warp with|must be a multiple of the|and the strategy stream (selects among|holds)"
)
SANITIZED = [
    "jacobi1d3", "star3d1r", "wave3d", "insulated2d", "torus3d", "ring1d", "advect2d", "blur2d", "driven2d", "fluxes2d", "burgers1d",
]
# With sizes in the code: streams whose rows of 64-bit cells are whole accesses.
SANITIZED_IN_CODE = ["heat2d_f64", "hotspot2d_f64"]
TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
# Seconds that one call may take.
PATIENCE = 100
# How launches are sent: options of stencil-bench. With few launches a graph, runs reuse graphs with other arguments; with
# an odd number also with a field's two buffers the other way round.
FEW = ["--graph", "--chunk", "3"]
WAYS = {"one by one": [], "whole": FEW, "in bands": [*FEW, "--cut-all"]}


def alive(shape, seed):
    """A quarter of the cells 1 and the others 0, from the numbers of stencil-bench's own noise."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> numpy.uint64(31))) >> numpy.uint64(62) == 0).astype(numpy.int32).reshape(shape)


class Program:
    """A program in one type."""

    def __init__(self, source, kind=None):
        text = source.read_text()
        self.name = f"{source.stem}_{kind}" if kind else source.stem
        self.text = re.sub(r"\bf32\b", kind, text) if kind else text
        self.params = re.findall(r"^param\s+(\w+)\s*(?:#.*)?$", text, re.M)
        self.inputs = re.findall(r"^(?:const )?field\s+(\w+)\s*:\s*(\w+)", text, re.M)
        self.outputs = re.findall(r"^field\s+(\w+)", text, re.M)
        self.rank = re.search(r"^grid[^=]*=\s*\[(.*?)\]", text, re.M).group(1).count(",") + 1
        self.steps = FEWER_STEPS.get(source.stem, STEPS[self.rank])
        self.others = PARAMS.get(source.stem, {})
        self.schedules = [one for one in SCHEDULES[self.rank] if one[0] != "stream" or source.stem not in WITHOUT_STREAMS]

    def sizes(self, extents):
        """A value for each param."""
        value = lambda name: self.others.get(name) or extents.get(name) or extents["N"]
        return {name: value(name) for name in self.params}

    def data(self, extents):
        """Where each input comes from: noise from a seed, or the name of a file of zeros and ones."""
        shape = "x".join(map(str, extents.values()))
        source = lambda seed, kind: f"alive.{shape}.{seed}.npy" if kind == "i32" else f"random:{seed}"
        return {name: source(seed, kind) for seed, (name, kind) in enumerate(self.inputs, 1)}


def ways(strategy, plan):
    """The ways that the launches of a plan are sent."""
    if strategy == "naive":
        return ["one by one"]
    # The launches of a step that takes several are never cut.
    bodies = [node["repeat"]["body"] for node in plan["schedule"]]
    can_be_cut = any("bands" in body[0]["launch"] for body in bodies if len(body) == 1)
    return ["whole", "in bands"] if can_be_cut else ["whole"]


def call(words, patience=PATIENCE):
    """Runs a command; its exit code and what it said."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return 124, f"took more than {patience:.0f} seconds"
    return done.returncode, (done.stdout + done.stderr).strip()


def pairs(option, values):
    """`option name=value` for each."""
    return [word for name, value in values.items() for word in (option, f"{name}={value}")]


def located(folder, data):
    """The inputs as options; files of zeros and ones are made where they are missing."""
    for source in data.values():
        if source.startswith("alive.") and not (folder / source).exists():
            shape, seed = source.split(".")[1:3]
            numpy.save(folder / source, alive([int(n) for n in shape.split("x")], int(seed)))
    return pairs("--in", {name: folder / text if text.endswith(".npy") else text for name, text in data.items()})


def compile_program(stencilc, folder, program):
    """Compiles a program under all schedules; its groups of runs, and what was declined."""
    source = folder / f"{program.name}.stencil"
    source.write_text(program.text)
    groups, declined, start = [], [], time.monotonic()

    def compiled(label, options, schedules=program.schedules):
        plans = []
        for place, (strategy, tile, cells, height) in enumerate(schedules):
            words = {"--strategy": strategy, "--tile": tile, "--per-thread": cells, "--pyramid-height": height}
            words = [word for option, value in words.items() if value for word in (option, value)]
            stem = f"{program.name}.{label}.{place}"
            code, said = call([stencilc, source, "--fp-contract=off", "--emit=ptx,plan", "-o", folder / stem, *words, *options])
            if code == 0:
                plan = json.loads((folder / f"{stem}.plan.json").read_text())
                plans.append({
                    "plan": f"{stem}.plan.json", "strategy": strategy, "schedule": " ".join(map(str, words)),
                    "ways": ways(strategy, plan),
                })
            elif code == 1 and DECLINED.search(said):
                declined.append({"program": program.name, "sizes": label, "schedule": " ".join(map(str, words)), "said": said.split("\n")[0]})
            else:
                sys.exit(f"{program.name} {options} {words}: exit code {code}\n{said}")
        return plans

    def group(why, extents, plans, **more):
        size = sum((folder / plan["plan"].replace(".plan.json", ".ptx")).stat().st_size for plan in plans)
        groups.append({
            "program": program.name, "why": why, "sizes": program.sizes(extents), "steps": program.steps,
            "inputs": program.data(extents), "plans": plans, "code": size, **more,
        })

    def wanted(label, extents):
        files = {field: f"{program.name}.{label}.{field}.npy" for field in program.outputs}
        words = [stencilc, "run", source, "--target", "reference", "--steps", program.steps, *located(folder, program.data(extents))]
        words += pairs("--size", program.sizes(extents)) + pairs("--out", {field: folder / file for field, file in files.items()})
        code, said = call(words, 600)
        if code:
            sys.exit(f"the oracle on {program.name}: exit code {code}\n{said}")
        for file in files.values():
            # A result of one number or of none would prove nothing.
            array = numpy.load(folder / file)
            array = numpy.concatenate([array[name].ravel() for name in array.dtype.names]) if array.dtype.names else array
            finite = array[numpy.isfinite(array)]
            if finite.size < array.size / 2 or (finite == finite[0]).all():
                sys.exit(f"the oracle's result for {program.name} tells nothing")
        return {"expected": files}

    small, middle, large = (sizes[program.rank] for sizes in (SMALL, MIDDLE, LARGE))
    of_a_run = compiled("run", [])
    group("sizes of a run", small, of_a_run, **wanted("small", small))
    group("sizes in the code", middle, compiled("code", pairs("-D", program.sizes(middle))), **wanted("middle", middle))
    naive, others = of_a_run[0]["plan"], of_a_run[1:]
    own = [schedule for schedule in program.schedules if not any(schedule[1:])][1:]
    others += compiled("large", pairs("-D", program.sizes(large)), own)
    if others:
        group("large", large, others, reference=naive)
    if program.name in HUGE:
        huge = HUGE[program.name]
        group("huge", huge, compiled("huge", pairs("-D", program.sizes(huge)), own), reference=naive)
    print(f"{program.name}: {time.monotonic() - start:.0f} s", flush=True)
    return groups, declined


def build(args):
    """Compiles everything into an archive."""
    root = pathlib.Path(__file__).resolve().parents[2]
    release = pathlib.Path(args.release) if args.release else root / "target/release"
    target = pathlib.Path(args.folder)
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, target / "check.py")
    sources = [path for path in sorted((root / "test-suite/programs").glob("*.stencil")) if not args.programs or path.stem in args.programs]
    programs = [Program(path) for path in sources]
    programs += [Program(path, kind) for kind, names in TYPES.items() for path in sources if path.stem in names]
    commit = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    manifest = {"commit": commit, "groups": [], "declined": []}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = pathlib.Path(scratch)
        for groups, declined in pool.map(lambda program: compile_program(release / "stencilc", folder, program), programs):
            manifest["groups"] += groups
            manifest["declined"] += declined
        (folder / "cases.json").write_text(json.dumps(manifest, indent=1) + "\n")
        subprocess.run(["strip", "-o", folder / "stencil-bench", release / "stencil-bench"], check=True)
        for file in [*folder.glob("*.stencil"), *folder.glob("alive.*")]:
            file.unlink()
        with tarfile.open(target / "check.tar.xz", "w:xz", preset=3) as archive:
            archive.add(folder, arcname=".")
    runs = sum(len(plan["ways"]) for group in manifest["groups"] for plan in group["plans"])
    size = (target / "check.tar.xz").stat().st_size / 2**20
    print(f"{len(programs)} programs, {runs} runs, {len(manifest['declined'])} schedules declined, {size:.1f} MiB in {target}")


class Session:
    """What was built, unpacked, with the seconds that are left."""

    def __init__(self, args, scratch):
        self.start, self.seconds, self.jobs = time.monotonic(), args.seconds, args.jobs
        self.folder, self.out = pathlib.Path(scratch), pathlib.Path(args.out)
        with tarfile.open(pathlib.Path(args.folder) / "check.tar.xz") as archive:
            archive.extractall(scratch, filter="data")
        self.manifest = json.loads((self.folder / "cases.json").read_text())
        for group in self.manifest["groups"]:
            located(self.folder, group["inputs"])
        group = self.manifest["groups"][0]
        _, said = call(self.words(group, group["plans"][:1], "one by one"))
        # stencil-bench speaks of the device before anything else.
        if said.startswith("error:"):
            sys.exit(said)

    def left(self):
        """Seconds that are left."""
        return self.seconds - (time.monotonic() - self.start)

    def words(self, group, plans, way, *before):
        """The command that runs plans of a group once, one of the ways."""
        words = [*before, self.folder / "stencil-bench", *(self.folder / plan["plan"] for plan in plans), *WAYS[way]]
        words += ["--steps", group["steps"], "--warmup", 0, "--repeat", 1, *located(self.folder, group["inputs"])]
        words += pairs("-D", group["sizes"])
        if "reference" in group:
            return [*words, "--reference", self.folder / group["reference"]]
        return words + pairs("--expect", {field: self.folder / file for field, file in group["expected"].items()})

    def map(self, task, items):
        """The results of tasks as they end; those for which no time is left give none."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            waiting = {pool.submit(lambda item: task(item) if self.left() > 0 else None, item): item for item in items}
            for done in concurrent.futures.as_completed(waiting):
                yield waiting[done], done.result()

    def write(self, record):
        """Writes the record as far as it is."""
        record = {"date": datetime.date.today().isoformat(), "commit": self.manifest["commit"], **record}
        self.out.write_text(json.dumps(record, indent=1) + "\n")


def run_group(session, group):
    """Runs a group, each way in one process; a finding for each plan and way, and the device."""
    findings, device = [], None
    for way in WAYS:
        plans = [plan for plan in group["plans"] if way in plan["ways"]]
        if plans and session.left() > 0:
            found, device = run_plans(session, group, plans, way)
            findings += found
    return findings, device


def run_plans(session, group, plans, way):
    """Runs plans of a group in one process; a finding for each, and the device."""
    with tempfile.NamedTemporaryFile(suffix=".json", dir=session.folder) as file:
        patience = max(1, min(PATIENCE, session.left()))
        code, said = call([*session.words(group, plans, way), "--json", file.name], patience)
        text = pathlib.Path(file.name).read_text()
    if code == 124 and session.left() <= 0:
        return [], None  # Stopped with the session.
    found = json.loads(text) if text else {"results": [], "device": None}
    results = {pathlib.Path(result["plan"]).name: result for result in found["results"]}
    findings = []
    for plan in plans:
        result = results.get(plan["plan"])
        check = result and result["check"]
        if check is None and len(plans) > 1:
            # One that brings the process down takes those after it along: each by itself says more.
            findings += run_plans(session, group, [plan], way)[0] if session.left() > 0 else []
        else:
            fields = {name: field for name, field in check["fields"].items() if field["differing"]} if check else said[-2000:]
            if check and check["repeats"] is False:
                fields["again"] = "another run gave other bits"
            right = bool(check and check["passed"] and code in (0, 1))
            findings.append({**plan, "way": way, "cut": bool(result and result["bands"] > 1), "right": right, "said": fields})
    return findings, found["device"]


def run(args):
    """Runs all groups, the longest first and then those of little code first."""
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(args, scratch)
        groups = sorted(session.manifest["groups"], key=lambda group: (group["why"] != "huge", group["code"]))
        steps = {group["program"]: group["steps"] for group in groups}
        record = {"device": None, "steps": steps, "programs": {}, "failures": [], "left_out": [], "declined": session.manifest["declined"]}
        good = bad = cut = whole = 0
        for group, result in session.map(lambda group: run_group(session, group), groups):
            findings, device = result or ([], None)
            record["device"] = device or record["device"]
            if missing := sum(len(plan["ways"]) for plan in group["plans"]) - len(findings):
                record["left_out"].append({"program": group["program"], "why": group["why"], "runs": missing})
            for finding in findings:
                # One without cuts, for too few rows of blocks or a single launch of the kernel, is its run as a whole again.
                again = finding["right"] and finding["way"] == "in bands" and not finding["cut"]
                right = finding["right"] and not again
                counts = record["programs"].setdefault(group["program"], {}).setdefault(group["why"], {})
                counts[finding["strategy"]] = counts.get(finding["strategy"], 0) + right
                good, bad, whole = good + right, bad + (not finding["right"]), whole + again
                cut += finding["right"] and finding["cut"]
                if not finding["right"]:
                    record["failures"].append({"program": group["program"], "sizes": group["sizes"], "why": group["why"], **finding})
                    print("FAILED", group["program"], group["sizes"], finding["schedule"], finding["way"], str(finding["said"])[-600:], flush=True)
            left_out = sum(entry["runs"] for entry in record["left_out"])
            record.update({"right": good, "in_bands": cut, "not_cut": whole, "failed": bad, "runs_left_out": left_out, "seconds": round(time.monotonic() - session.start)})
            session.write(record)
        print(f"{good} runs right ({cut} in bands), {whole} with nothing to cut, {bad} failed, {left_out} left out, {len(record['declined'])} schedules declined; {record['seconds']} s")
        if whole and not cut:
            print("FAILED no launch was cut into bands")
        sys.exit(bad != 0 or (whole and not cut))


def sanitize(args):
    """Runs some programs at their small size under compute-sanitizer."""
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(args, scratch)
        wanted = {"sizes of a run": SANITIZED, "sizes in the code": SANITIZED_IN_CODE}
        groups = [group for group in session.manifest["groups"] if group["program"] in wanted.get(group["why"], [])]
        # One schedule of each strategy, the one last named: it is set by hand and has several tiles.
        chosen = [(group, {plan["strategy"]: plan for plan in group["plans"]}) for group in groups]
        cases = [(tool, group, plan) for tool in TOOLS for group, plans in chosen for plan in plans.values()]

        def one(case):
            tool, group, plan = case
            before = ["compute-sanitizer", "--error-exitcode", 9, "--tool", tool]
            return call(session.words(group, [plan], plan["ways"][-1], *before), max(1, session.left()))

        record, bad = {"runs": [], "left_out": 0}, 0
        for (tool, group, plan), result in session.map(one, cases):
            if result is None or result[0] == 124:
                record["left_out"] += 1
                continue
            code, said = result
            lines = re.findall(r"=+ (?:ERROR|RACECHECK) SUMMARY: (.*)", said)
            # Lines of the tool's findings say more than the summary.
            findings = [line for line in said.splitlines() if re.search(r"(?i)error|hazard|differ", line)][:8] if code else []
            bad += code != 0
            record["runs"].append({
                "tool": tool, "program": group["program"], "schedule": plan["schedule"], "way": plan["ways"][-1], "clean": code == 0,
                "summary": lines[-1] if lines else "", "findings": findings,
            })
            if code:
                print("FAILED", tool, group["program"], plan["schedule"], *findings, sep="\n    ", flush=True)
            session.write(record)
        clean = len(record["runs"]) - bad
        session.write({**record, "clean": clean, "failed": bad, "seconds": round(time.monotonic() - session.start)})
        print(f"{clean} runs clean, {bad} failed, {record['left_out']} left out")
        sys.exit(bad != 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder")
    one.add_argument("programs", nargs="*")
    one.add_argument("--release", help="the folder of the compiled tools")
    one.add_argument("--jobs", type=int, default=2)
    for name in ("run", "sanitize"):
        two = commands.add_parser(name)
        two.add_argument("folder")
        two.add_argument("out")
        two.add_argument("--seconds", type=float, default=3600)
        two.add_argument("--jobs", type=int, default=8)
    args = parser.parse_args()
    {"build": build, "run": run, "sanitize": sanitize}[args.command](args)


if __name__ == "__main__":
    main()
