#!/usr/bin/env python3
"""Runs out of core on a GPU: their results and rates beside those in core.

    python3 test-suite/bench/out_of_core.py bits STENCILC         results, bit for bit
    python3 test-suite/bench/out_of_core.py rates STENCILC OUT    rates of star2d1r
    python3 test-suite/bench/out_of_core.py timeline STENCILC OUT a picture of copies and launches
    python3 test-suite/bench/out_of_core.py four STENCILC FOLDER SECONDS  grids of 4 x the memory
    python3 test-suite/bench/out_of_core.py all STENCILC FOLDER SECONDS

STENCILC is the compiler's file. Rates are in 10^9 cells a second, with all copies of the run but
those from and to the arrays of the caller; `low` and `high` are those of two runs, or of one. `all`
begins no run after so many seconds. With DIVIDE=32 in the environment grids are as many times
shorter in each dimension, and so is the memory, for a trial.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
from devices import Clock, add

PROGRAMS = common.ROOT / "test-suite/programs"
DIVIDE = int(os.environ.get("DIVIDE", "1"))
TARGET = os.environ.get("TARGET", "cuda")
# Grids that no tile divides, the fields, the results, steps, and memory in MiB.
BITS = {
    "star2d1r": ((8111, 8003), "A", "A", 100, 192),
    "fdtd2d": ((4003, 4001), "Ex Ey Hz", "Ex Ey Hz", 40, 192),
    "heat2d": ((4003, 4001), "A K", "A", 40, 96),
    "star3d1r": ((803, 200, 331), "A", "A", 20, 256),
    "acoustic3d-order8": ((803, 100, 331), "P U C", "P U", 10, 256),
}
# Grids of star2d1r, their steps, and memory in MiB; none for a run in core.
RATES = [
    ((32768, 32768), 4000, (None, 2048, 4096, 1024)),
    ((131072, 32768), 1500, (None, 4096)),
    ((65536, 65536), 1500, (None, 4096)),
]


# Those of four times the memory alone.
FOUR = [
    ((131072, 32768), 1500, (None, 4096)),
    ((32768, 32768), 4000, (None, 1024, 2048)),
    ((65536, 65536), 1500, (4096,)),
]


def command(tool, program, shape, fields, steps, memory, *more):
    """A run of a program on random data."""
    sizes = common.pairs("--size", dict(zip("NML", shape)))
    seeds = {name: f"random:{seed}" for seed, name in enumerate(fields.split(), 1)}
    limit = [] if memory is None else ["--device-memory", memory]
    return [tool, "run", PROGRAMS / f"{program}.stencil", "--target", TARGET, *sizes,
            *common.pairs("--in", seeds), "--steps", steps, *limit, *more]


def bits(tool):
    """Compares results out of core with those in core; how many differ, or did not run."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for program, (shape, fields, kept, steps, memory) in BITS.items():
            if Clock.is_late():
                break
            shape = tuple(max(extent // DIVIDE, 8) for extent in shape)
            first = None
            for limit in (None, f"{memory * 1024 // DIVIDE ** len(shape)}KiB"):
                files = {name: Path(folder) / f"{name}.npy" for name in kept.split()}
                outs = common.pairs("--out", files)
                words = command(tool, program, shape, fields, steps, limit, *outs)
                code, text = run(words)
                if code:
                    wrong += 1
                    print(program, limit, text.strip(), sep="\t", flush=True)
                    continue
                found = [file.read_bytes() for file in files.values()]
                first = first or found
                wrong += found != first
                same = "same" if found == first else "DIFFERENT"
                print(program, limit, same, told(text), sep="\t", flush=True)
    return wrong


def run(words):
    """The code of a run, and what it tells."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    return done.returncode, done.stderr


def told(text):
    """The last lines of a run's summary."""
    return " ".join(text.split())[-200:]


def rates(tool, out, grids=None):
    """Measures star2d1r in core and out of core."""
    rows = []
    for shape, steps, limits in grids or RATES:
        shape = tuple(max(extent // DIVIDE, 8) for extent in shape)
        alone = None
        for memory in limits:
            if Clock.is_late():
                return
            limit = None if memory is None else f"{memory * 1024 // DIVIDE ** 2}KiB"
            # Large grids take long to be filled.
            runs = 2 if shape[0] * shape[1] < 1 << 31 else 1
            words = command(tool, "star2d1r", shape, "A", steps, limit)
            texts = [run(words)[1] for _ in range(runs)]
            if not all("GCells/s" in text for text in texts):
                print(shape, limit, texts[0].strip(), sep="\t", flush=True)
                continue
            found = [float(re.search(r"([\d.]+) GCells/s", text)[1]) for text in texts]
            rate = max(found)
            alone = rate if memory is None else alone
            passes = re.search(r"out of core: (.*)", texts[0])
            add(rows, {
                "cells": common.size(shape), "steps": steps,
                "device memory": limit or "in core",
                "grid over memory": "" if memory is None else
                f"{shape[0] * shape[1] * 4 * DIVIDE ** 2 / memory / 2 ** 20:.1f}",
                "gcells": f"{rate:.0f}", "low": f"{min(found):.0f}", "high": f"{rate:.0f}",
                "percent of in core": f"{100 * rate / alone:.1f}" if alone else "",
                "windows": passes[1] if passes else ""}, out)


def timeline(tool, out):
    """Draws when copies and launches go on."""
    shape = tuple(max(extent // DIVIDE, 8) for extent in (32768, 32768))
    limit = f"{2048 * 1024 // DIVIDE ** 2}KiB"
    words = command(tool, "star2d1r", shape, "A", 1000, limit, "--timeline", out)
    print(told(run(words)[1]), flush=True)


def four(tool, folder, seconds):
    """Grids four times the memory, and a timeline."""
    Clock.end = time.monotonic() + float(seconds)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    timeline(tool, folder / "out-of-core.svg")
    rates(tool, folder / "out-of-core.tsv", FOUR)


def everything(tool, folder, seconds):
    """All of it, in limited time."""
    Clock.end = time.monotonic() + float(seconds)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    wrong = bits(tool)
    rates(tool, folder / "out-of-core.tsv")
    timeline(tool, folder / "out-of-core.svg")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    task, *places = sys.argv[1:]
    if task == "bits":
        sys.exit(bits(*places) > 0)
    {"rates": rates, "timeline": timeline, "four": four, "all": everything}[task](*places)
