#!/usr/bin/env python3
"""Programs on several GPUs of a host: results beside those of one GPU, rates, and other tools.

    python3 test-suite/bench/devices.py bits STENCILC COUNTS       results, bit for bit
    python3 test-suite/bench/devices.py rates STENCILC COUNTS OUT  weak and strong scaling
    python3 test-suite/bench/devices.py once STENCILC COUNTS OUT   the same, an exchange a step
    python3 test-suite/bench/devices.py choice STENCILC COUNTS OUT steps a launch, and cuts
    python3 test-suite/bench/devices.py timelines STENCILC COUNTS OUT  shares, and pictures
    python3 test-suite/bench/devices.py peers COUNTS OUT           star2d1r in JAX and PyTorch
    python3 test-suite/bench/devices.py all STENCILC COUNTS FOLDER MINUTES
    python3 test-suite/bench/devices.py predict STENCILC OUT       by the model, without a GPU

COUNTS is a list such as 1,2,4, and 1 comes first. STENCILC is the compiler's file. A grid of weak
scaling is as many times as long along its slowest dimension as there are devices. Rates are in 10^9
cells a second, of all devices together: the median of three runs. `all` begins with what matters
most and begins no run after so many minutes; records have what was measured until then. With
DIVIDE=32 in the environment grids are as many times shorter in each dimension, for a trial.
"""

import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import common

PROGRAMS = common.ROOT / "test-suite/programs"
# Grids that no tile divides; the fields that are compared.
BITS = {
    "heat2d": ((2003, 1777), "A K", "A", 37),
    "box2d1r": ((2003, 1777), "A", "A", 37),
    "fdtd2d": ((2003, 1777), "Ex Ey Hz", "Ex Ey Hz", 37),
    "star3d1r": ((203, 150, 331), "A", "A", 37),
    "acoustic3d-order8": ((203, 150, 331), "P U C", "P U", 37),
    "torus3d": ((203, 150, 331), "A", "A", 37),
    "srad": ((2003, 1777), "J", "J", 20),
    "conjugate-gradients": ((2003, 1777), "X R", "X R", 200),
    "poisson2d": ((2003, 1777), "A", "A", 37),
    "semi-lagrange2d": ((2003, 1777), "A V", "A", 20),
    "d2q9": ((2003, 1777), "F", "F", 37),
    "ring1d": ((5000011,), "A", "A", 137),
}
# Those of three dimensions come first: `all` may end early.
RATES = {
    "star3d1r": ((512, 512, 512), "A", 2000),
    "acoustic3d-order8": ((512, 512, 512), "P U C", 500),
    "star2d1r": ((16384, 16384), "A", 2000),
    "box2d1r": ((16384, 16384), "A", 1000),
    "fdtd2d": ((16384, 16384), "Ex Ey Hz", 500),
}
# Steps a launch beside the model's own.
HEIGHTS = {"star3d1r": (1, 2, 3, 4, 5, 6), "star2d1r": (4, 6, 8, 10, 12, 14, 16)}
RUNS = 3
DIVIDE = int(os.environ.get("DIVIDE", "1"))


class Clock:
    """Ends the work in time: no run begins behind its end."""

    end = float("inf")

    @classmethod
    def is_late(cls):
        return time.monotonic() > cls.end


def command(tool, program, devices, shape, fields, steps, *more):
    """A run of a program on random data."""
    sizes = common.pairs("--size", dict(zip("NML", shape)))
    seeds = {name: f"random:{seed}" for seed, name in enumerate(fields.split(), 1)}
    return [tool, "run", PROGRAMS / f"{program}.stencil", "--target", "cuda", "--devices",
            devices, *sizes, *common.pairs("--in", seeds), "--steps", steps, *more]


def bits(tool, counts):
    """Compares the results of several devices with those of one."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for program, (shape, fields, kept, steps) in BITS.items():
            first = None
            for devices in counts:
                files = {name: Path(folder) / f"{name}.npy" for name in kept.split()}
                outs = common.pairs("--out", files)
                # Schedules differ, and so does what is contracted.
                common.call(command(tool, program, devices, shape, fields, steps, *outs,
                                    "--fp-contract", "off"))
                found = [file.read_bytes() for file in files.values()]
                first = first or found
                wrong += found != first
                same = "same" if found == first else "DIFFERENT"
                print(program, devices, same, sep="\t", flush=True)
    sys.exit(wrong > 0)


def measured(tool, program, devices, way, *more, steps=None, runs=RUNS):
    """A row of a record: the rate of a program in weak or strong scaling."""
    shape, fields, usual = RATES[program]
    shape = tuple(max(extent // DIVIDE, 8) for extent in shape)
    cells = (shape[0] * devices, *shape[1:]) if way == "weak" else shape
    steps = steps or usual
    # The report of a run is on standard error.
    texts = [common.call(command(tool, program, devices, cells, fields, steps, *more)).stderr
             for _ in range(runs)]
    found = [float(re.search(r"([\d.]+) GCells/s", text)[1]) for text in texts]
    return {
        "program": program, "way": way, "devices": devices, "cells": common.size(cells),
        "steps": steps, "launches": re.search(r"(\d+) launches", texts[0])[1],
        "gcells": f"{statistics.median(found):.0f}", "low": f"{min(found):.0f}",
        "high": f"{max(found):.0f}"}


def rates(tool, counts, out):
    """Measures weak and strong scaling."""
    rows = []
    for program in RATES:
        alone = None
        for devices in counts:
            for way in ("weak", "strong")[:1 if devices == 1 else 2]:
                if Clock.is_late():
                    return
                row = measured(tool, program, devices, way)
                rate = float(row["gcells"])
                alone = alone or rate
                row["times"] = f"{rate / max(alone, 1e-9):.2f}"
                row["percent of ideal"] = f"{100 * rate / max(alone, 1e-9) / devices:.1f}"
                add(rows, row, out)


def once(tool, counts, out):
    """Measures weak scaling with an exchange a step: each launch takes one step."""
    rows = []
    for program, (_, _, steps) in RATES.items():
        for devices in counts:
            if Clock.is_late():
                return
            add(rows, measured(tool, program, devices, "weak", "--pyramid-height", 1,
                               steps=steps // 4), out)


def choice(tool, counts, out):
    """Measures what the model chooses, other steps a launch, and a cut along two dimensions."""
    rows = []
    devices = counts[-1]
    for program, heights in HEIGHTS.items():
        for steps in (None, *heights):
            if Clock.is_late():
                return
            more = [] if steps is None else ["--pyramid-height", steps]
            row = measured(tool, program, devices, "strong", *more, runs=1)
            add(rows, {"chosen by": "the model" if steps is None else f"{steps} steps", **row}, out)
        if devices == 4 and not Clock.is_late():
            # Kernels in bands are refused such a cut; tiles of a block are not.
            row = measured(tool, program, "2x2", "strong", "--strategy", "block", runs=1)
            add(rows, {"chosen by": "2x2, block", **row}, out)
            row = measured(tool, program, "4x1", "strong", "--strategy", "block", runs=1)
            add(rows, {"chosen by": "4x1, block", **row}, out)


def timelines(tool, counts, out):
    """Draws when GPUs compute and when they wait, beside the record."""
    rows = []
    for program, height in (("star3d1r", None), ("star2d1r", None), ("star2d1r", 1)):
        if Clock.is_late():
            return
        shape, fields, steps = RATES[program]
        shape = [max(extent // DIVIDE, 8) for extent in shape]
        shape[0] *= counts[-1]
        name = f"{program}{'' if height is None else '-once-a-step'}.svg"
        more = [] if height is None else ["--pyramid-height", height]
        text = common.call(command(tool, program, counts[-1], shape, fields, steps // 10, *more,
                                   "--timeline", Path(out).with_name(name))).stderr
        add(rows, {
            "program": program, "devices": counts[-1], "picture": name,
            "launches": re.search(r"(\d+) launches", text)[1],
            "gcells": re.search(r"([\d.]+) GCells/s", text)[1],
            "percent computing": re.search(r"compute ([\d.]+) %", text)[1]}, out)


def peers(counts, out):
    """Rates of star2d1r in JAX and PyTorch, weak scaling."""
    rows = []
    script = Path(__file__).resolve().with_name("devices_peers.py")
    for devices in counts:
        every = {
            "JAX": [sys.executable, script, "jax", devices],
            "PyTorch": [sys.executable, "-m", "torch.distributed.run", "--standalone",
                        "--nproc-per-node", devices, script, "torch"],
        }
        for tool, words in every.items():
            if Clock.is_late():
                return
            environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                                  env=environment)
            found = re.findall(r"^[\d.]+$", done.stdout, re.M)
            rate = f"{float(found[-1]):.0f}" if found else done.stderr[-300:].replace("\n", " ")
            add(rows, {"program": "star2d1r", "tool": tool, "devices": devices, "gcells": rate},
                out)


def everything(tool, counts, folder, minutes):
    """All measurements, what matters most first, in limited time."""
    Clock.end = time.monotonic() + 60 * float(minutes)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    timelines(tool, counts, folder / "timelines.tsv")
    peers(counts, folder / "peers.tsv")
    rates(tool, counts, folder / "rates.tsv")
    choice(tool, counts, folder / "choice.tsv")
    once(tool, counts, folder / "once.tsv")


# The connection of the prediction: GPUs of a host, and 400 Gbit/s a GPU between hosts.
LINKS = {"NVLink": None, "400 Gbit/s, 10 us": "10000:50000"}


def predict(tool, out):
    """What the model says of weak scaling on H200s. Grids are longer along their slowest dimension
    as in RATES, or have their shape along two dimensions."""
    rows = []
    for program, (shape, _, _) in RATES.items():
        for link, devices, ways in (("NVLink", 1, ["one"]), ("NVLink", 4, ["long"]),
                                    *((link, 64, ["long", "square"]) for link in LINKS),
                                    ("400 Gbit/s, 10 us", 1024, ["long", "square"])):
            for way in ways:
                # All counts are squares.
                wide = math.isqrt(devices) if way == "square" else 1
                cells = (shape[0] * devices // wide, shape[1] * wide, *shape[2:])
                add(rows, {"program": program, "link": link, "grid": way, "devices": devices,
                           **predicted(tool, program, cells, devices, LINKS[link])}, out,
                    {"model of": "H200"})


def predicted(tool, program, cells, devices, link):
    """Columns of a prediction."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        common.call([tool, PROGRAMS / f"{program}.stencil", "--device", "H200", "--devices",
                     devices, *(["--link", link] if link else []), "-o", "/dev/null",
                     "--report-json", file.name, *common.pairs("-D", dict(zip("NML", cells)))])
        found = json.loads(Path(file.name).read_text())
    shared = found.get("shared", {})
    return {"cells": common.size(cells), "cut": shared.get("devices", devices),
            "steps": found["settings"]["pyramid_height"],
            "messages a step": f"{shared.get('messages', 0):.2f}",
            "MB a step": f"{shared.get('bytes', 0) * 1e-6:.3f}",
            "gcells": f"{found['predicted']['gcells']:.0f}",
            "percent without exchange": f"{100 * shared.get('rate', 1):.1f}"}


def add(rows, row, out, known=None):
    """Adds a row of a record, prints it, and writes the record so far."""
    rows.append(row)
    print(*row.values(), sep="\t", flush=True)
    common.write_record(out, {"date": date.today(), **(known or facts())}, rows)


def facts():
    """Where it was measured."""
    asked = ["nvidia-smi", "--query-gpu=name,clocks.max.sm,clocks.max.mem", "--format=csv,noheader"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()
    except OSError:
        found = []
    return {"device": found[0] if found else "unknown"}


if __name__ == "__main__":
    task, *places = sys.argv[1:]
    if task == "predict":
        predict(*places)
    elif task == "peers":
        peers([int(word) for word in places[0].split(",")], places[1])
    else:
        tasks = {"bits": bits, "rates": rates, "once": once, "choice": choice,
                 "timelines": timelines, "all": everything}
        tool, counts, *more = places
        tasks[task](tool, [int(word) for word in counts.split(",")], *more)
