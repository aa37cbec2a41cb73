"""Programs on this machine's processor beside plain C loops, Numba and Devito, in one go.

    PYTHON cpu.py [--stencilc FILE] [--threads 2] [--only NAME ...] [--out RECORD]

PYTHON has NumPy, and Numba and Devito where they are to be measured too: `python3 -m venv PEERS;
PEERS/bin/pip install numpy numba devito`. Rates are the best of several runs, in turn with the
peers, without the compile. Three steps of each are compared with each other: in `check`, `right` or
the largest difference, relative to the largest value. The machine must have nothing else to do; the
record has its load before and after.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

import cases
import common
import cpu_peers
import module
import plain

FLAGS = ["-O3", "-march=native", "-fopenmp", "-std=gnu11"]
# The rows of decision 032: program, extents, peers.
MAIN = [
    ("heat2d", (4096, 4096), ("numba", "devito")),
    ("heat2d", (1024, 1024), ("numba", "devito")),
    ("acoustic3d-order4", (256, 256, 256), ("numba", "devito")),
    ("acoustic3d-order8", (256, 256, 256), ("numba", "devito")),
]
EXTENTS = {1: (1 << 21,), 2: (1536, 1536), 3: (160, 160, 160)}
NUMPY = {"f16": "f2", "f32": "f4", "f64": "f8", "bool": "?"}
CHECKED_STEPS = 3
REPEATS = 4


def dtype(leaves):
    """NumPy's type of a cell from the paths and types of its numbers."""
    if list(leaves) == [()]:
        kind = leaves[()]
        letter, bits = kind.replace("ui", "u").rstrip("0123456789"), kind.strip("uifbol")
        whole = f"{letter}{int(bits or 8) // 8}"
        return numpy.dtype(NUMPY.get(kind, whole))
    parts = {}
    for (first, *rest), kind in leaves.items():
        parts.setdefault(first, {})[tuple(rest)] = kind
    inner = {first: dtype(rest) for first, rest in parts.items()}
    if all(first.isdigit() for first in parts):
        return numpy.dtype((inner["0"], (len(parts),)))
    if list(parts) == ["re", "im"]:
        return numpy.dtype("c8" if inner["re"].itemsize == 4 else "c16")
    return numpy.dtype(list(inner.items()))


class Case:
    """A program of a size, with its data in a folder."""

    def __init__(self, stem, extents, folder, tools):
        self.stem, self.extents, self.folder, self.tools = stem, extents, folder, tools
        self.source = common.ROOT / "test-suite" / "programs" / f"{stem}.stencil"
        program = cases.Program(self.source)
        self.sizes = program.sizes(dict(zip("NML", extents, strict=False)))
        self.sizes = {one: int(size) for one, size in self.sizes.items()}
        self.options = common.pairs("-D", self.sizes)
        compile_ = [tools.stencilc, self.source, "--arch", "native"]
        self.text = common.call([*compile_, "--emit=stencil"]).stdout
        facts = module.Module(self.text)
        scalars = [name for name, (_, value) in facts.scalars.items() if value == "0.5"]
        self.options += common.pairs("--set", dict.fromkeys(scalars, "0.5"))
        plan = folder / "case.plan.json"
        common.call([*compile_, *common.pairs("-D", self.sizes), "--emit=plan", "-o", plan])
        self.plan = json.loads(plan.read_text())
        self.fields(facts)

    def fields(self, facts):
        """Makes the data of all inputs."""
        self.inputs, self.outputs = {}, []
        declared = {}
        for name, field in facts.fields.items():
            if field["role"] in ("state", "const"):
                whole, start, size = field["member"] or (name, 0, 0)
                declared.setdefault(whole, []).append((name, field, start, size))
        for seed, (whole, leaves) in enumerate(declared.items(), 1):
            ends = facts.grids[leaves[0][1]["grid"]]
            shape = [eval(f"{high} - {low} + 1", {}, self.sizes) for low, high in ends]
            noise = numpy.random.default_rng(seed)
            kinds = {}
            for name, field, _, _ in leaves:
                path = tuple(name[len(whole):].strip(".").split(".")) if name != whole else ()
                kinds[path] = "bool" if field["bool"] else field["type"]
            kind = dtype(kinds)
            size = kind.itemsize
            cells = numpy.zeros((int(numpy.prod(shape)), size), numpy.uint8)
            for (name, field, start, _), one in zip(leaves, kinds.values(), strict=True):
                own = dtype({(): one})
                floats = own.kind == "f"
                values = noise.random(len(cells)) if floats else noise.integers(0, 2, len(cells))
                own_bytes = values.astype(own).view(numpy.uint8).reshape(len(cells), -1)
                cells[:, start : start + own.itemsize] = own_bytes
                own_bytes.tofile(self.folder / f"{name}.in")
                if field["role"] == "state":
                    self.outputs.append((name, whole, own, start, size))
            flat = cells.reshape(-1).view(kind.base)
            numpy.save(self.folder / f"{whole}.npy", flat.reshape([*shape, *kind.shape]))
            self.inputs[whole] = self.folder / f"{whole}.npy"
        # Cells of the grid that the program's own functions update.
        self.cells = int(numpy.prod(self.extents))

    def ours(self, steps, outputs=False):
        """Seconds of a run of stencilc."""
        words = [self.tools.stencilc, "run", self.source, "--target", "cpu", "--threads",
                 self.tools.threads, "--steps", steps, *self.options,
                 *common.pairs("--in", self.inputs)]
        if outputs:
            wanted = dict.fromkeys(whole for _, whole, *_ in self.outputs)
            words += common.pairs("--out", {one: self.folder / f"{one}.out.npy" for one in wanted})
        done = common.call(words)
        found = re.search(r"steps? in ([\d.]+) (us|ms|s)\b", done.stdout + done.stderr)
        return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]]

    def plain(self, steps, repeats):
        """The least seconds of some runs of the plain loops."""
        words = ["./plain", steps, repeats]
        return min(map(float, common.call(words, cwd=self.folder).stdout.split()))

    def difference(self):
        """How far results are from those of the plain loops: `right`, or relative."""
        self.ours(CHECKED_STEPS, outputs=True)
        self.plain(CHECKED_STEPS, 1)
        worst = 0.0
        for name, whole, own, start, size in self.outputs:
            array = numpy.ascontiguousarray(numpy.load(self.folder / f"{whole}.out.npy"))
            array = array.view(numpy.uint8).reshape(-1, size)[:, start : start + own.itemsize]
            found = numpy.ascontiguousarray(array).view(own).reshape(-1).astype(float)
            wanted = numpy.fromfile(self.folder / f"{name}.out", own).astype(float)
            both = numpy.isnan(found) & numpy.isnan(wanted) | (found == wanted)
            off = numpy.abs(numpy.where(both, 0, found - wanted)).max()
            worst = max(worst, off / max(1e-30, numpy.nanmax(numpy.abs(wanted))))
        return "right" if worst <= 1e-5 else f"{worst:.1e}"


def measure(case, peers, tools):
    """A row of the record."""
    text = plain.program(case.text, case.sizes)
    (case.folder / "plain.c").write_text(text)
    common.call(["gcc", *FLAGS, "plain.c", "-o", "plain", "-lm"], cwd=case.folder)
    check = case.difference()
    once = max(1e-5, (case.plain(6, 2) - case.plain(2, 2)) / 4)
    # Whole launches of our side, as a run of many steps has them.
    schedule = case.plan.get("settings") or {}
    height = schedule.get("pyramid_height") or 1
    steps = max(4, 2 * height, int(tools.seconds / once) // height * height)
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(case.ours(steps))
        theirs.append(case.plain(steps, 1))
    rate = case.cells * steps * 1e-9
    row = {
        "program": case.stem, "cells": common.size(case.extents), "steps": steps,
        "gcells": f"{rate / min(ours):.3f}", "low": f"{rate / max(ours):.3f}",
        "plain": f"{rate / min(theirs):.3f}", "of_plain": f"{min(theirs) / min(ours):.2f}",
    }
    for peer in peers:
        found = cpu_peers.rate(peer, case.stem, case.extents, tools.threads, tools.seconds)
        row[peer] = "" if found is None else f"{found:.3f}"
    row |= {
        "strategy": schedule.get("strategy"), "tile": common.size(schedule.get("tile") or []),
        "height": schedule.get("pyramid_height"), "check": check,
    }
    return row


def first_result(tools):
    """The least seconds of the process that compiles heat2d and takes its first step."""
    source = common.ROOT / "test-suite" / "programs" / "heat2d.stencil"
    words = [tools.stencilc, "run", source, "--target", "cpu", "--size", "N=512", "--size",
             "M=512", "--steps", 1, "--in", "A=random:1", "--in", "K=random:2"]
    best = float("inf")
    for _ in range(5):
        begin = datetime.datetime.now()
        common.call(words)
        best = min(best, (datetime.datetime.now() - begin).total_seconds())
    return best


def facts(tools):
    """What was measured on what."""
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    caches = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
    sizes = [f"L{(one / 'level').read_text().strip()} {(one / 'size').read_text().strip()}"
             for one in sorted(caches.glob("index*"))
             if (one / "type").read_text().strip() != "Instruction"]
    wide = max((64, "avx512f"), (32, "avx2"), key=lambda one: one[0] * (one[1] in cpu))
    return {
        "what": f"the processor beside plain C loops (gcc {' '.join(FLAGS)}), Numba, Devito",
        "date": datetime.date.today(), "commit": common.commit(),
        "cpu": re.search(r"model name\s*: (.*)", cpu)[1] + f", {wide[1]}, a virtual machine",
        "caches": ", ".join(sizes), "threads": tools.threads, "gcc": common.call(
            ["gcc", "-dumpfullversion"]).stdout.strip(),
        **cpu_peers.versions(),
        "load_before": f"{os.getloadavg()[0]:.2f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--stencilc", default=common.ROOT / "target/release/stencilc")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a run of the plain loops")
    parser.add_argument("--only", nargs="*", help="programs; all if left out")
    parser.add_argument("--out", type=pathlib.Path, help="the record")
    tools = parser.parse_args()
    tools.stencilc = pathlib.Path(tools.stencilc).resolve()
    os.environ["OMP_NUM_THREADS"] = str(tools.threads)
    rows, about = [], facts(tools)
    suite = sorted((common.ROOT / "test-suite" / "programs").glob("*.stencil"))
    suite = [(one.stem, EXTENTS[common.Program(one).rank], ()) for one in suite]
    for stem, extents, peers in MAIN + suite:
        if tools.only and stem not in tools.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                case = Case(stem, extents, pathlib.Path(folder), tools)
                row = measure(case, peers, tools)
            except module.Unsupported as error:
                row = {"program": stem, "cells": common.size(extents), "check": f"no C: {error}"}
        rows.append(row)
        print(*row.values(), sep="\t", flush=True)
    about["load_after"] = f"{os.getloadavg()[0]:.2f}"
    about["first_result_s"] = f"{first_result(tools):.3f}"
    print(*(f"{name}: {value}" for name, value in about.items()), sep="\n")
    if tools.out:
        common.write_record(tools.out, about, rows)


if __name__ == "__main__":
    main()
