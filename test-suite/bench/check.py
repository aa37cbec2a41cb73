"""Every program on a GPU under every strategy, held against the oracle bit for bit.

    python3 test-suite/bench/check.py build FOLDER [PROGRAM...] [--release FOLDER] [--jobs N]
    python3 FOLDER/check.py run FOLDER OUT.tsv [--seconds S] [--jobs N]
    python3 FOLDER/check.py sanitize FOLDER OUT.tsv [--seconds S] [--jobs N]

`build` needs the compiled project and no GPU. It compiles every program of the test suite without
contraction, with sizes known at compile time and with sizes of a run; functions of affine loops
(test-suite/nests) with sizes of a run, without tiles and with several. FOLDER then holds the
scripts and a compressed archive of plans, PTX, the oracle's results and `stencil-bench`: all that
the other two commands need beside Python, NumPy and a GPU. Inputs are made from seeds where they
are used.

`run` holds each kernel against the oracle at one or two odd sizes. At a large size it holds kernels
against the naive kernel, or that without tiles, which the small sizes have proved. Three programs
also run on more than 2^31 cells. Naive kernels and those without tiles are launched one by one, all
others as CUDA graphs of a few launches.
Kernels that can be cut into bands run twice: as the device takes them, which is whole at most of
these sizes, and in bands that overlap. `sanitize` runs some kernels, in bands where they can be,
under compute-sanitizer's four tools. Both stop after a number of seconds and record what was left
out. Exit code 1 if a result differs, a run fails, or no run was cut that should be.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import re
import sys
import tarfile
import tempfile
import time

import cases
import common
from cases import PATIENCE, attempt, located

SANITIZED = [
    "jacobi1d3", "star3d1r", "wave3d", "insulated2d", "torus3d", "ring1d", "advect2d", "blur2d",
    "driven2d", "star2d1r", "fluxes2d", "burgers1d", "smith-waterman", "sor2d", "gauss-seidel3d",
]
# With sizes in the code: streams whose rows of 64-bit cells are whole accesses.
SANITIZED_IN_CODE = ["heat2d_f64", "hotspot2d_f64"]
# Functions of affine loops, with tiles.
SANITIZED_AFFINE = ["mm-f32", "mv", "conv2d", "cp"]
TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
# How launches are sent: options of stencil-bench. With few launches a graph, runs reuse graphs with
# other arguments; with an odd number also with a field's two buffers the other way round.
FEW = ["--graph", "--chunk", "3"]
WAYS = {"one by one": [], "whole": FEW, "in bands": [*FEW, "--cut-all"]}


class Session:
    """The unpacked build, with the seconds that are left."""

    def __init__(self, args, scratch):
        self.start, self.seconds, self.jobs = time.monotonic(), args.seconds, args.jobs
        self.folder, self.out = pathlib.Path(scratch), args.out
        try:
            with tarfile.open(args.folder / "check.tar.xz") as archive:
                archive.extractall(scratch, filter="data")
        except (OSError, tarfile.TarError) as error:
            sys.exit(f"error: {args.folder}/check.tar.xz: {error}; check.py build makes it")
        self.manifest = common.manifest(self.folder, "cases.json", "check.py build")
        for group in self.manifest["groups"]:
            located(self.folder, group["inputs"])
        group = self.manifest["groups"][0]
        _, said = attempt(self.words(group, group["plans"][:1], "one by one"))
        # stencil-bench reports a missing device before anything else.
        if said.startswith("error:"):
            sys.exit(said)

    def left(self):
        """Seconds that are left."""
        return self.seconds - (time.monotonic() - self.start)

    def words(self, group, plans, way, *before):
        """The command that runs plans of a group once, one of the ways."""
        plans = [self.folder / plan["plan"] for plan in plans]
        words = [*before, self.folder / "stencil-bench", *plans, *WAYS[way]]
        words += ["--warmup", 0, "--repeat", 1]
        # A function of affine loops has the steps of its own loops.
        words += ["--steps", group["steps"]] if group["steps"] is not None else []
        words += common.pairs("--set", group.get("scalars", {}))
        words += located(self.folder, group["inputs"])
        words += common.pairs("-D", group["sizes"])
        if "reference" in group:
            return [*words, "--reference", self.folder / group["reference"]]
        files = {field: self.folder / file for field, file in group["expected"].items()}
        return words + common.pairs("--expect", files)

    def map(self, task, items):
        """The results of tasks as they end; those for which no time is left give none."""

        def in_time(item):
            return task(item) if self.left() > 0 else None

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            waiting = {pool.submit(in_time, item): item for item in items}
            for done in concurrent.futures.as_completed(waiting):
                yield waiting[done], done.result()

    def write(self, what, facts, rows):
        """Writes the record as far as it is."""
        first = {"what": what, "date": datetime.date.today().isoformat()}
        first["commit"] = self.manifest["commit"]
        seconds = round(time.monotonic() - self.start)
        common.write_record(self.out, {**first, **facts, "seconds": seconds}, rows)


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
        code, said = attempt([*session.words(group, plans, way), "--json", file.name], patience)
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
            # One that brings the process down takes those after it along.
            alone = run_plans(session, group, [plan], way)[0] if session.left() > 0 else []
            findings += alone
            continue
        wrong = said[-2000:]
        if check:
            wrong = {name: one for name, one in check["fields"].items() if one["differing"]}
            if check["repeats"] is False:
                wrong["again"] = "another run gave other bits"
        right = bool(check and check["passed"] and code in (0, 1))
        cut = bool(result and result["bands"] > 1)
        findings.append({**plan, "way": way, "cut": cut, "right": right, "said": wrong})
    return findings, found["device"]


class Tally:
    """Counts of runs, and the rows of the record: runs that were right, by strategy."""

    def __init__(self, declined):
        self.rows, self.failures = {}, []
        self.facts = {"device": "", "right": 0, "in_bands": 0, "not_cut": 0, "failed": 0}
        self.facts.update({"runs_left_out": 0, "declined": len(declined)})

    def add(self, group, finding):
        """Counts a finding."""
        # A run in bands that was not cut, for too few rows of blocks or a single launch, is its run
        # as a whole again.
        again = finding["right"] and finding["way"] == "in bands" and not finding["cut"]
        right = finding["right"] and not again
        key = (group["program"], group["why"])
        row = {"program": key[0], "sizes": key[1], "steps": group["steps"]}
        strategies = ["naive", "block", "stream", "warp", "relay", "strip", "wavefront",
                      "affine"]
        row.update(dict.fromkeys(strategies, ""))
        row = self.rows.setdefault(key, row)
        row[finding["strategy"]] = (row[finding["strategy"]] or 0) + right
        self.facts["right"] += right
        self.facts["in_bands"] += finding["right"] and finding["cut"]
        self.facts["not_cut"] += again
        self.facts["failed"] += not finding["right"]
        if not finding["right"]:
            said = f"{group['program']} {group['sizes']} {finding['schedule']} {finding['way']}"
            self.failures.append(f"{said}: {str(finding['said'])[-600:]}")
            print("FAILED", self.failures[-1], flush=True)

    def record(self):
        """Facts and rows."""
        failures = {f"failure_{number}": said for number, said in enumerate(self.failures, 1)}
        return {**self.facts, **failures}, list(self.rows.values())


def run(args):
    """Runs all groups, the longest first and then those of little code first."""
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(args, scratch)
        groups = session.manifest["groups"]
        groups.sort(key=lambda group: (group["why"] != "huge", group["code"]))
        tally = Tally(session.manifest["declined"])
        for group, result in session.map(lambda group: run_group(session, group), groups):
            findings, device = result or ([], None)
            if device:
                tally.facts["device"] = f"{device['name']}, {device['uuid'][:12]}"
            planned = sum(len(plan["ways"]) for plan in group["plans"])
            tally.facts["runs_left_out"] += planned - len(findings)
            for finding in findings:
                tally.add(group, finding)
            session.write("runs that equal the oracle or the naive kernel", *tally.record())
        facts = tally.facts
        print(*(f"{name}: {value}" for name, value in facts.items()), sep="; ")
        if uncut := facts["not_cut"] and not facts["in_bands"]:
            print("FAILED no launch was cut into bands")
        sys.exit(bool(facts["failed"] or uncut))


def sanitize(args):
    """Runs some programs at their small size under compute-sanitizer."""
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(args, scratch)
        wanted = {"sizes of a run": SANITIZED, "sizes in the code": SANITIZED_IN_CODE}
        wanted["affine, small"] = SANITIZED_AFFINE
        # One schedule of each strategy, the last: it is set by hand and has several tiles.
        runs = []
        for group in session.manifest["groups"]:
            if group["program"] in wanted.get(group["why"], []):
                plans = {plan["strategy"]: plan for plan in group["plans"]}
                runs += [(tool, group, plan) for tool in TOOLS for plan in plans.values()]
        # One tool after the other, so that all of one is done where time runs out.
        runs.sort(key=lambda case: TOOLS.index(case[0]))

        def one(case):
            tool, group, plan = case
            before = ["compute-sanitizer", "--error-exitcode", 9, "--tool", tool]
            words = session.words(group, [plan], plan["ways"][-1], *before)
            return attempt(words, max(1, session.left()))

        rows, facts = {}, {"clean": 0, "failed": 0, "left_out": 0}
        for (tool, group, plan), result in session.map(one, runs):
            key = {"program": group["program"], "schedule": plan["schedule"]}
            key["way"] = plan["ways"][-1]
            row = rows.setdefault(tuple(key.values()), {**key, **dict.fromkeys(TOOLS, "")})
            if result is None or result[0] == 124:
                facts["left_out"] += 1
                continue
            code, said = result
            row[tool] = "failed" if code else "clean"
            facts[row[tool]] += 1
            if code:
                lines = re.findall(r"(?im)^.*(?:error|hazard|differ).*$", said)[:8]
                facts[f"failure_{facts['failed']}"] = f"{tool} {' '.join(key.values())}: {lines}"
                print("FAILED", tool, *key.values(), *lines, sep="\n    ", flush=True)
            session.write("compute-sanitizer over runs of check.py", facts, list(rows.values()))
        print(*(f"{name}: {value}" for name, value in facts.items()), sep="; ")
        sys.exit(facts["failed"] != 0)


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("programs", nargs="*")
    one.add_argument("--release", type=pathlib.Path, help="the folder of the compiled tools")
    one.add_argument("--jobs", type=int, default=2)
    for name in ("run", "sanitize"):
        two = commands.add_parser(name)
        two.add_argument("folder", type=pathlib.Path)
        two.add_argument("out", type=pathlib.Path)
        two.add_argument("--seconds", type=float, default=3600)
        two.add_argument("--jobs", type=int, default=8)
    args = parser.parse_args()
    {"build": cases.build, "run": run, "sanitize": sanitize}[args.command](args)


if __name__ == "__main__":
    main()
