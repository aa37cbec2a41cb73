"""Rates on a processor over the number of threads.

    python3 cpu_scaling.py [--stencilc FILE] [--most 16] [--only NAME ...] [--out RECORD]
    python3 cpu_scaling.py --draw RECORD SVG       draws a record

Rates are the best of several runs, without the compile and the files. The machine must have nothing
else to do. `speedup` is against one thread, `efficiency` the speed-up per thread. Each thread has a
core of its own where there are as many cores.
"""

import argparse
import datetime
import os
import pathlib
import tempfile

import common
import cpu

# Program, extents, steps: from grids that leave the caches to those that stay in them.
CASES = [
    ("heat2d", (8192, 8192), 256),
    ("heat2d", (4096, 4096), 512),
    ("box2d2r", (4096, 4096), 96),
    ("life2d", (8192, 8192), 128),
    ("grayscott", (4096, 4096), 128),
    ("star3d1r", (512, 512, 512), 48),
    ("acoustic3d-order8", (512, 512, 512), 16),
    ("smith-waterman", (16384, 16384), 1),
]
REPEATS = 3
ALL = sorted(os.sched_getaffinity(0))


def processors(threads):
    """Processors for some threads, spread over cores. Where the machine hides which processors
    share a core, neighbours are taken to."""
    places, topology = {}, pathlib.Path("/sys/devices/system/cpu")
    for one in ALL:
        siblings = topology / f"cpu{one}" / "topology" / "thread_siblings_list"
        core = siblings.read_text().strip() if siblings.exists() else str(one)
        places.setdefault(core, []).append(one)
    firsts = [core[0] for core in places.values()]
    others = [one for core in places.values() for one in core[1:]]
    if threads <= len(firsts):
        return [firsts[at * len(firsts) // threads] for at in range(threads)]
    return (firsts + others)[:threads]


def measure(tools):
    """Rows of the record."""
    counts = [1, 2, 4, 8, 16, 32, 64]
    rows = []
    for stem, extents, steps in CASES:
        if tools.only and stem not in tools.only:
            continue
        if not (common.ROOT / "test-suite" / "programs" / f"{stem}.stencil").exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            tools.threads = 1
            case = cpu.Case(stem, extents, pathlib.Path(folder), tools)
            first = None
            for threads in [one for one in counts if one <= tools.most]:
                tools.threads = threads
                os.sched_setaffinity(0, processors(threads))
                # Few threads run fewer steps, at least a quarter.
                taken = -(-steps * max(1, 4 * threads // tools.most) // 4)
                seconds = min(case.ours(taken) for _ in range(REPEATS))
                rate = case.cells * taken / seconds * 1e-9
                first = first or rate
                rows.append({
                    "program": stem, "cells": common.size(extents), "steps": taken,
                    "threads": threads, "gcells": f"{rate:.3f}",
                    "speedup": f"{rate / first:.2f}",
                    "efficiency": f"{rate / first / threads:.2f}",
                })
                print(*rows[-1].values(), sep="\t", flush=True)
            os.sched_setaffinity(0, ALL)
    return rows


def draw(record, picture):
    """The speed-up over threads of each program, as SVG."""
    import page
    _, rows = common.read_record(record)
    lines = {}
    for row in rows:
        name = f"{row['program']} {row['cells']}"
        lines.setdefault(name, []).append((float(row["threads"]), float(row["speedup"])))
    most = max(x for line in lines.values() for x, _ in line)
    lines["threads"] = [(1.0, 1.0), (most, most)]
    picture.write_text(page.plot("Speed-up over threads", "threads", lines, True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--stencilc", default=common.ROOT / "target/release/stencilc")
    parser.add_argument("--most", type=int, default=os.cpu_count(), help="threads")
    parser.add_argument("--only", nargs="*", help="programs; all if left out")
    parser.add_argument("--out", type=pathlib.Path, help="the record")
    parser.add_argument("--draw", nargs=2, type=pathlib.Path, metavar=("RECORD", "SVG"))
    tools = parser.parse_args()
    if tools.draw:
        draw(*tools.draw)
        return
    tools.stencilc = pathlib.Path(tools.stencilc).resolve()
    tools.threads = tools.most
    about = cpu.facts(tools)
    rows = measure(tools)
    about = {
        "what": "the processor over the number of threads", "date": datetime.date.today(),
        "commit": about["commit"], "cpu": about["cpu"], "caches": about["caches"],
        "processors": os.cpu_count(), "load_before": about["load_before"],
    }
    if tools.out:
        common.write_record(tools.out, about, rows)


if __name__ == "__main__":
    main()
