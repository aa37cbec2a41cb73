"""The compiler's choice on random programs, against `naive` and the fastest candidate.

    python3 test-suite/bench/choice.py draw FOLDER [--cases 100] [--seed S]
    python3 test-suite/bench/choice.py build FOLDER [--release RELEASE] [--jobs J]
    python3 FOLDER/choice.py run FOLDER OUT.tsv [--seconds S]
    python3 test-suite/bench/choice.py show OUT.tsv

`draw` takes programs of the generator of random tests whose grids have 2^22 points or more, at 8192
points along each open dimension in two dimensions and 512 in three; reductions and sweeps are left
out, since their strategies are others. `build` compiles `naive`, the compiler's choice and the next
candidates of each with `ptxas`, and leaves out programs that are declined at this size or take
longer than a minute. It finds the steps of a run from the predictions, so that programs take about
the same time. `run` needs Python and a GPU, and compiles nothing. All schedules of a program run on
the same random data, and results are not compared: the random tests do that. The programs are
written beside the record, as OUT.programs. `show` prints how far the choice is behind.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

import common
import table

SIZES = {2: 8192, 3: 512}
FEWEST = 1 << 22
# Bytes of all fields, twice: a launch reads one copy and writes the other. Data of more takes the
# host longer than all runs take the GPU.
MOST_BYTES = 12e9
CANDIDATES = 8
# Steps of a run. Most heights divide them, so that few steps are left over.
STEPS = (240, 120, 60)
REPEATS = 2
# Steps of the first run, which is not measured.
FEW_STEPS = 24
# Seconds of all measured runs of a program, as predicted, and of a program with its data.
PREDICTED = 6
LONGEST_RUN = 40
# Seconds of a program's compile.
LONGEST = 60
# Schedules that are predicted to be so many times slower than the best are not measured: they may
# take minutes.
HOPELESS = 16
PTXAS = common.ROOT / ".toolchain/cuda/nvidia/cu13/bin/ptxas"
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "ool": 1}


def cells(extents, sizes):
    """Points of a grid whose dimensions are `a..b` in the language's arithmetic."""
    count = 1
    for extent in extents:
        ends = [eval(end.replace("/", "//"), {}, sizes) for end in extent.split("..")]
        count *= max(0, ends[-1] - ends[0] + 1)
    return count


def large(text):
    """The sizes at which a program is large; none where it is not, or not for this comparison."""
    if re.search(r"'\[|\breduce\b|\buntil\b", text):
        return None
    found = re.findall(r"^grid (\w+) = \[(.*)\]$", text, re.M)
    grids = {name: grid.split(", ") for name, grid in found}
    own = SIZES.get(max(len(grid) for grid in grids.values()))
    if own is None:
        return None
    open_sizes = {name: own for name in re.findall(r"^param (\w+)\s*$", text, re.M)}
    fixed = {name: int(value) for name, value in re.findall(r"^param (\w+) = (-?\d+)", text, re.M)}
    points = {name: cells(grid, open_sizes | fixed) for name, grid in grids.items()}
    structs = {
        name: sum(BYTES[kind] for kind in re.findall(r": \w*?(8|16|32|64|ool)\b", body))
        for name, body in re.findall(r"^struct (\w+) \{(.*)\}$", text, re.M)
    }
    most, total = 0, 0
    for role, kind, grid in re.findall(r"^(const |temp )?field \w+ : (.+?) on (\w+)", text, re.M):
        most = max(most, points[grid] if not role else 0)
        wide = structs.get(kind) or 8 * int((re.findall(r"vec<(\d+)", kind) or ["1"])[0])
        total += 2 * wide * points[grid]
    return open_sizes if most >= FEWEST and total <= MOST_BYTES else None


def draw(args):
    """Writes random programs and their sizes into a folder."""
    common.take_along(args.folder, args.release, "choice.py", "table.py")
    words = [args.release / "stencil-fuzz", "programs", "--print", "--seed", args.seed]
    printed = common.call([*words, "--cases", 20 * args.cases]).stdout
    rows = []
    for place, case in enumerate(re.split(r"^# case ", printed, flags=re.M)[1:]):
        lines = case.splitlines()[1:]
        text = "\n".join(line for line in lines if not line.startswith("#")) + "\n"
        found = large(text)
        if found is None:
            continue
        scalars = dict(re.findall(r"--set (\w+)=(\S+)", lines[0]))
        rows.append({"case": place, "sizes": found, "scalars": scalars})
        (args.folder / f"case{place}.stencil").write_text(text)
        if len(rows) == 2 * args.cases:
            break
    facts = {"seed": args.seed, "cases": args.cases, "commit": common.commit(), "rows": rows}
    (args.folder / "programs.json").write_text(json.dumps(facts) + "\n")
    print(f"{len(rows)} programs, for {args.cases} that are accepted")


def compiled(args, row):
    """Plans of a program: naive, the choice, the next candidates; or why there are none."""
    stem = args.folder / f"case{row['case']}"
    words = [args.release / "stencilc", f"{stem}.stencil", *common.pairs("-D", row["sizes"])]
    words.append("--emit=ptx,plan")
    start = time.monotonic()
    for name, options in {
        "naive": ["--strategy", "naive"],
        "choice": ["--candidates", CANDIDATES],
    }.items():
        every = [str(word) for word in [*words, *options, "-o", f"{stem}.{name}"]]
        try:
            done = subprocess.run(every, capture_output=True, text=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return {**row, "why": f"{name} takes over {LONGEST} s"}
        if done.returncode:
            return {**row, "why": done.stderr.splitlines()[0]}
    plans = sorted(path.name for path in args.folder.glob(f"{stem.name}.choice.*plan.json"))
    plans.sort(key=lambda name: int((re.findall(r"choice\.(\d+)\.", name) or ["0"])[0]))
    plans = [f"{stem.name}.naive.plan.json", *plans]
    seconds = [predicted(args, row, args.folder / plan) for plan in plans]
    chosen = [
        (plan, each)
        for place, (plan, each) in enumerate(zip(plans, seconds))
        if place == 0 or each <= HOPELESS * min(seconds)
    ]
    one_step = REPEATS * sum(seconds for _, seconds in chosen)
    steps = next((steps for steps in STEPS if steps * one_step <= PREDICTED), STEPS[-1])
    plans = [plan for plan, _ in chosen]
    for plan in plans:
        # The driver takes machine code in place of PTX, and has nothing to compile then.
        code = args.folder / plan.replace(".plan.json", ".ptx")
        arch = re.search(r"^\.target (\w+)", code.read_text(), re.M)[1]
        common.call([args.ptxas, f"-arch={arch}", code, "-o", code.with_suffix(".cubin")])
        code.with_suffix(".cubin").replace(code)
    spent = round(time.monotonic() - start, 1)
    return {**row, "plans": plans, "steps": steps, "predicted": steps * one_step, "seconds": spent}


def predicted(args, row, plan):
    """The predicted seconds of a step of a plan."""
    settings = json.loads(plan.read_text())["settings"]
    words = [args.release / "stencilc", args.folder / f"case{row['case']}.stencil"]
    words += [*common.pairs("-D", row["sizes"]), "--emit=plan", "-o", plan.with_suffix(".again")]
    words += ["--strategy", settings["strategy"], "--pyramid-height", settings["pyramid_height"]]
    for option, name in {"--tile": "tile", "--per-thread": "per_thread"}.items():
        words += [option, ",".join(map(str, settings[name]))]
    report = plan.with_suffix(".report")
    common.call([*words, "--report-json", report])
    return json.loads(report.read_text())["predicted"]["seconds"]["seconds"]


def build(args):
    """Compiles the programs that were drawn."""
    made = common.manifest(args.folder, "programs.json", "choice.py draw")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda row: compiled(args, row), made["rows"]))
    good = [row for row in rows if "plans" in row][: made["cases"]]
    refused = [row["why"] for row in rows if "why" in row]
    made |= {"rows": good, "refused": refused}
    (args.folder / "plans.json").write_text(json.dumps(made, indent=1) + "\n")
    plans = sum(len(row["plans"]) for row in good)
    print(f"{len(good)} programs, {plans} plans; {len(refused)} refused")


def run(args):
    """Measures what was built."""
    start = time.monotonic()
    made = common.manifest(args.folder, "plans.json", "choice.py build")
    facts = {"what": "schedules of random programs, GCells/s", "seed": made["seed"]}
    facts |= {"commit": made["commit"], "refused": len(made["refused"])}
    lines, too_long = [], []
    for row in made["rows"]:
        left = args.seconds - (time.monotonic() - start)
        if left <= LONGEST_RUN:
            break
        options = ["--graph", "--steps", row["steps"], "--check-steps", FEW_STEPS]
        options += ["--warmup", 0, "--repeat", REPEATS, "--pause", 0]
        options += common.pairs("--set", row["scalars"])
        try:
            found, _ = table.measure(args.folder, row["plans"], options, LONGEST_RUN)
        except subprocess.TimeoutExpired:
            too_long.append(row["case"])
            continue
        if not found:
            continue
        facts |= common.device_facts(found, facts)
        for result in found["results"]:
            place = row["plans"].index(pathlib.Path(result["plan"]).name)
            what = {"case": row["case"], "steps": row["steps"], "place": place}
            lines.append({**what, **common.measurement(result)})
        common.write_record(args.out, facts, lines)
    facts |= {"too_long": too_long or "none", "seconds": round(time.monotonic() - start)}
    common.write_record(args.out, facts, lines)
    measured = {line["case"] for line in lines}
    rows = [row for row in made["rows"] if row["case"] in measured]
    args.out.with_suffix(".programs").write_text("".join(text_of(args, row) for row in rows))
    print(f"{len(lines)} schedules of {len(rows)} programs in {facts['seconds']} s")


def text_of(args, row):
    """A program behind a line with its sizes."""
    sizes = " ".join(f"{name}={size}" for name, size in row["sizes"].items())
    text = (args.folder / f"case{row['case']}.stencil").read_text()
    return f"# case {row['case']} {sizes}\n{text.strip()}\n"


def show(args):
    """Prints how far the choice is behind naive and behind the fastest."""
    _, rows = common.read_record(args.out)
    cases = {}
    for row in rows:
        cases.setdefault(row["case"], {})[int(row["place"])] = row
    shares = []
    for case, places in cases.items():
        rate = {place: float(row["gcells"]) for place, row in places.items()}
        if 0 not in rate or 1 not in rate:
            continue
        best = max(rate, key=rate.get)
        shares.append((rate[1] / rate[best], rate[1] / rate[0], rate[best] / rate[0], case, best))
    shares.sort()
    for of_best, of_naive, gain, case, best in shares:
        if of_best < 0.85 or of_naive < 0.95:
            one, other = cases[case][1], cases[case][best]
            print(f"case {case}: {of_best:.2f} of the fastest, {of_naive:.2f} of naive; "
                  f"{one['strategy']} {one['tile']} T {one['height']}, fastest "
                  f"{other['strategy']} {other['tile']} T {other['height']}")
    count = len(shares)
    doubled = sum(gain >= 2 for _, _, gain, *_ in shares)
    print(f"{count} programs; naive can be doubled in {doubled}")
    print(f"within 15 % of the fastest: {sum(one >= 0.85 for one, *_ in shares)}")
    print(f"more than 5 % slower than naive: {sum(one < 0.95 for _, one, *_ in shares)}")
    mean = statistics.geometric_mean([one for _, one, *_ in shares])
    print(f"choice over naive, geometric mean: {mean:.2f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    release = common.ROOT / "target/release"
    for name, act in {"draw": draw, "build": build, "run": run, "show": show}.items():
        command = commands.add_parser(name)
        command.set_defaults(act=act)
        if name != "show":
            command.add_argument("folder", type=pathlib.Path)
        if name in ("run", "show"):
            command.add_argument("out", type=pathlib.Path)
        if name in ("draw", "build"):
            command.add_argument("--release", type=pathlib.Path, default=release)
        if name == "build":
            command.add_argument("--jobs", type=int, default=1)
            command.add_argument("--ptxas", type=pathlib.Path, default=PTXAS)
        if name == "draw":
            command.add_argument("--cases", type=int, default=100)
            command.add_argument("--seed", type=int, required=True)
        if name == "run":
            command.add_argument("--seconds", type=float, default=3600)
    args = parser.parse_args()
    args.act(args)


if __name__ == "__main__":
    sys.exit(main())
