"""Runs programs on the GPU under many schedules and compares each result with the oracle.

    python3 test-suite/bench/check.py [--stencilc FILE] [--out FILE.json] [--jobs 8] [PROGRAM...]

Every program runs with strategy naive, and with strategy block for three tile shapes and four
pyramid heights (1-D programs with strategy warp and 2-D programs with strategy stream too), at two sizes, each once known at compile time and once at run time, with a number
of steps that is no multiple of the pyramid height, and without contraction, so that the result
must equal the oracle's bit for bit. Exit code 1 if any run differs or fails.
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
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEIGHTS = [1, 2, 3, 5]
STEPS = 17
TILES = {
    1: [("300", "1"), ("1024", "4"), ("2000", "8")],
    2: [("8,32", "1"), ("32,64", "4"), ("15,33", "3,1")],
    3: [("4,4,32", "1"), ("8,8,32", "4,2,1"), ("5,7,17", "2,1,1")],
}
SIZES = {
    1: [["N=403"], ["N=10007"]],
    2: [["N=344", "M=403"], ["N=211", "M=199"]],
    3: [["N=43", "M=37", "L=67"], ["N=31", "M=29", "L=53"]],
}


def rank(text):
    """Dimensions of the program's grid."""
    return re.search(r"^grid[^=]*=\s*\[(.*?)\]", text, re.M).group(1).count(",") + 1


def cases(program):
    """Sizes, schedules and inputs for one program."""
    text = program.read_text()
    params = re.findall(r"^param\s+(\w+)\s*(?:#.*)?$", text, re.M)
    inputs = re.findall(r"^(?:const )?field\s+(\w+)", text, re.M)
    dimensions = rank(text)
    schedules = [["--strategy", "naive"]]
    for tile, cells in TILES[dimensions]:
        for height in HEIGHTS:
            schedules.append(["--strategy", "block", "--tile", tile, "--per-thread", cells, "--pyramid-height", str(height)])
    if dimensions == 1:
        for height in HEIGHTS + [40]:
            schedules.append(["--strategy", "warp", "--pyramid-height", str(height)])
        schedules.append(["--strategy", "warp", "--tile", "90", "--per-thread", "6", "--pyramid-height", "5"])
    if dimensions == 2:
        for height in HEIGHTS:
            schedules.append(["--strategy", "stream", "--pyramid-height", str(height)])
        schedules.append(["--strategy", "stream", "--tile", "31,96", "--pyramid-height", "4"])
    if dimensions == 3:
        for height in HEIGHTS[:3]:
            schedules.append(["--strategy", "stream", "--pyramid-height", str(height)])
        schedules.append(["--strategy", "stream", "--tile", "9,12,24", "--pyramid-height", "2"])
    data = [item for i, name in enumerate(inputs) for item in ("--in", f"{name}=random:{i + 1}")]
    for size in SIZES[dimensions]:
        values = dict(item.split("=") for item in size)
        # A program with fewer params than dimensions has a square or cubic grid.
        sizes = [f"{name}={values.get(name, values['N'])}" for name in params]
        for option in ("-D", "--size"):
            for schedule in schedules:
                yield program, [item for size in sizes for item in (option, size)], schedule, data


def run(stencilc, case):
    program, sizes, schedule, data = case
    command = [stencilc, "run", str(program), "--target", "cuda", "--check", "--fp-contract=off", "--steps", str(STEPS)]
    start = time.time()
    done = subprocess.run(command + sizes + schedule + data, capture_output=True, text=True)
    text = done.stdout + done.stderr
    exact = done.returncode == 0 and "bit for bit" in text and "differ" not in text
    return {
        "program": program.stem,
        "sizes": " ".join(sizes),
        "schedule": " ".join(schedule),
        "exact": exact,
        # A schedule that no block has the shared memory for must be refused, not run.
        "declined": done.returncode == 1 and "bytes of shared memory, and a block has" in text,
        "seconds": round(time.time() - start, 2),
        "output": "" if exact else text.strip(),
    }


def device():
    """Name, driver and clocks of the GPU, as nvidia-smi says them."""
    if not shutil.which("nvidia-smi"):
        return None
    query = "--query-gpu=name,driver_version,clocks.sm,clocks.mem"
    return subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencilc", default=str(ROOT / "target/release/stencilc"))
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("programs", nargs="*")
    args = parser.parse_args()
    folder = ROOT / "test-suite/programs"
    programs = [folder / f"{name}.stencil" for name in args.programs] or sorted(folder.glob("*.stencil"))
    todo = [case for program in programs for case in cases(program)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda case: run(args.stencilc, case), todo))
    summary = {}
    for result in results:
        if not (result["exact"] or result["declined"]):
            print("FAILED", result["program"], result["sizes"], result["schedule"], "\n   ", result["output"])
        good, declined, count = summary.get(result["program"], (0, 0, 0))
        summary[result["program"]] = (good + result["exact"], declined + result["declined"], count + 1)
    words = {
        name: f"{good} of {count} runs equal the oracle bit for bit, {declined} declined for want of shared memory"
        for name, (good, declined, count) in summary.items()
    }
    for name, text in words.items():
        print(f"{name:20} {text}")
    good = sum(result["exact"] or result["declined"] for result in results)
    if args.out:
        record = {
            "date": datetime.date.today().isoformat(),
            "device": device(),
            "steps": STEPS,
            "tiles": TILES,
            "pyramid_heights": HEIGHTS,
            "sizes": SIZES,
            "summary": words,
            "failures": [result for result in results if not (result["exact"] or result["declined"])],
        }
        pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n")
    print(f"{good} passed, {len(results) - good} failed")
    sys.exit(good != len(results))


if __name__ == "__main__":
    main()
