"""The combinations of wavefront passes on a GPU: rates, idle times, waits and cache misses.

    python3 test-suite/bench/wavefronts.py build FOLDER [PROGRAM...] [--release FOLDER] [--jobs N]
    python3 FOLDER/wavefronts.py run FOLDER OUT.tsv [PROGRAM...] [--seconds S]
    python3 FOLDER/wavefronts.py waits FOLDER OUT.tsv [PROGRAM...] --record RATES.tsv
    python3 FOLDER/wavefronts.py misses FOLDER OUT.tsv [PROGRAM...] --record RATES.tsv

`build` needs the compiled project and `ptxas`, and no GPU. FOLDER then holds the scripts and an
archive of plans and machine code. The other commands need Python, CuPy and a GPU.

`run` measures each combination at each size of tile. Each result must equal that of strips bit for
bit; strips and the skewed tiles with flags were held against the oracle by check.py. `waits` runs
the fastest tile of each combination with clocks around its waits. `misses` counts sectors of the L2
cache and bytes of memory for the same kernels by Nsight Compute, and calls this script by `once`.

Source of what is measured: PeerWave (docs/decisions/021-wavefronts.md), section 7.
"""

import argparse
import concurrent.futures
import csv
import datetime
import io
import json
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import common
import waits

PROGRAMS = {
    "time-warping": "DTW",
    "heat2d-sweep": "HEAT2D",
    "integral-histogram": "INT",
    "summed-area": "SAT",
    "sor2d": "SOR",
    "smith-waterman": "SW",
}
SIDE = 32768
SQUARES = [(side, side) for side in (32, 64, 128, 256, 512, 1024)]
FLEXIBLE = [(rows, times) for rows in (128, 256, 512) for times in (8, 16, 32, 64, 128, 256)]
# Name: passes after `tile-wavefront`, tiles.
COMBINATIONS = {
    "launches, square": ("", SQUARES),
    "barrier, square": ("grid-sync,", SQUARES),
    "flags, square": ("peer-sync,", SQUARES),
    "launches, skewed": ("hyperplane-skew,", SQUARES),
    "barrier, skewed": ("hyperplane-skew,grid-sync,", SQUARES),
    "flags, skewed": ("hyperplane-skew,peer-sync,", SQUARES),
    "flags, flexible": ("hyperplane-skew,peer-sync,", FLEXIBLE),
}
STRIPS = "strips"
FLAGS = ("flags", "watched")
METRICS = {
    "l2_read_misses": "lts__t_sectors_op_read_lookup_miss.sum",
    "l2_reads": "lts__t_sectors_op_read.sum",
    "memory_read": "dram__bytes_read.sum",
    "memory_written": "dram__bytes_write.sum",
}


def cases(programs):
    """Program, combination, tile and passes of each plan."""
    for program in programs:
        yield program, STRIPS, None, None
        for name, (passes, tiles) in COMBINATIONS.items():
            for tile in tiles:
                # Square tiles of the flexible ones are measured once.
                if name == "flags, flexible" and tile in SQUARES:
                    continue
                text = f"tile-wavefront{{strategy=wavefront tile={tile[0]},{tile[1]}}}"
                yield program, name, tile, f"{text},{passes}tile-overlapped,lower-wavefront"


def compile_case(args, scratch, number, case):
    """Compiles a plan. What the manifest says of it."""
    program, name, tile, passes = case
    stem = f"p{number:03}"
    source = common.ROOT / f"test-suite/programs/{program}.stencil"
    words = [args.release / "stencilc", source, "--emit=ptx,plan", "-o", scratch / stem]
    words += common.pairs("-D", {"N": SIDE, "M": SIDE})
    common.call(words + (["--passes", passes] if passes else []))
    plan = json.loads((scratch / f"{stem}.plan.json").read_text())
    file, arch = scratch / f"{stem}.ptx", f"-arch={plan['target']['arch']}"
    common.call([args.ptxas, arch, file, "-o", file.with_suffix(".cubin")])
    return {"stem": stem, "program": program, "combination": name, "tile": tile}


def build(args):
    """Compiles all plans into an archive."""
    common.take_along(args.folder, args.release, "wavefronts.py", "waits.py")
    (args.folder / "stencil-bench").unlink()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            work = enumerate(cases(args.programs or PROGRAMS))
            plans = list(pool.map(lambda item: compile_case(args, scratch, *item), work))
        manifest = {"commit": common.commit(), "plans": plans}
        (scratch / "plans.json").write_text(json.dumps(manifest))
        with tarfile.open(args.folder / "wavefronts.tar.xz", "w:xz") as archive:
            for file in sorted(scratch.iterdir()):
                archive.add(file, file.name)
    print(f"{len(plans)} plans")


class Kernel:
    """A compiled plan of one kernel on the device."""

    def __init__(self, folder, entry, suffix="cubin"):
        import cupy

        plan = json.loads((folder / f"{entry['stem']}.plan.json").read_text())
        (node,) = plan["schedule"]
        (self.launch,) = [item["launch"] for item in node["repeat"]["body"]]
        (kernel,) = plan["kernels"]
        self.entry, self.block, self.shared = entry, kernel["block"], kernel["dynamic_shared"]
        self.grid = [int(blocks) for blocks in self.launch["grid"]]
        self.turns = int(self.launch.get("turns", 1))
        self.index = "int32" if plan["index_width"] == 32 else "int64"
        self.flags = {
            buffer["name"]: cupy.zeros([int(cells) for cells in buffer["extents"]], "int32")
            for buffer in plan["buffers"]
            if buffer["kind"] in FLAGS
        }
        together = self.launch.get("cooperative", False)
        path = str(folder / f"{entry['stem']}.{suffix}")
        self.module = cupy.RawModule(path=path, enable_cooperative_groups=together)
        self.code = self.module.get_function(kernel["name"])
        self.code.max_dynamic_shared_size_bytes = self.shared
        self.epoch = 0

    def start(self, arrays):
        """Starts one sweep."""
        import numpy

        index = getattr(numpy, self.index)
        for turn in range(self.turns):
            words = []
            for argument in self.launch["arguments"]:
                if argument == "step":
                    words.append(numpy.int64(0))
                elif argument == "epoch":
                    words.append(numpy.int32(self.epoch))
                elif argument == "turn":
                    words.append(index(turn))
                else:
                    (buffer,) = argument.values()
                    words.append(self.flags[buffer] if buffer in self.flags else arrays[buffer])
            self.code(tuple(self.grid), tuple(self.block), tuple(words), shared_mem=self.shared)
        self.epoch += 1

    def seconds(self, arrays, count):
        """Seconds of each of some sweeps. Many launches are sent as one graph."""
        import cupy

        cupy.cuda.Device().synchronize()
        stream = cupy.cuda.Stream(non_blocking=True)
        found = []
        with stream:
            graph = None
            if self.turns > 1:
                stream.begin_capture()
                self.start(arrays)
                graph = stream.end_capture()
                graph.upload(stream)
            for _ in range(count):
                first, last = cupy.cuda.Event(), cupy.cuda.Event()
                first.record(stream)
                if graph:
                    graph.launch(stream)
                else:
                    self.start(arrays)
                last.record(stream)
                last.synchronize()
                found.append(cupy.cuda.get_elapsed_time(first, last) * 1e-3)
        return found


def data(folder, entry):
    """Random inputs of a program on the device, by the names of its buffers."""
    import cupy

    plan = json.loads((folder / f"{entry['stem']}.plan.json").read_text())
    cupy.random.seed(1)
    arrays = {}
    for buffer in plan["buffers"]:
        if buffer["kind"] in FLAGS:
            continue
        shape = [int(cells) for cells in buffer["extents"]]
        if buffer["name"].endswith("'"):
            arrays[buffer["name"]] = arrays[buffer["name"][:-1]].copy()
        elif buffer["element"] == "f32":
            arrays[buffer["name"]] = cupy.random.random(shape, "float32")
        else:
            # Letters of a text, or levels of grey.
            arrays[buffer["name"]] = cupy.random.randint(0, 4, shape, "int32")
    return arrays


def results(arrays):
    """The arrays that a sweep writes."""
    return {name: array for name, array in arrays.items() if name.endswith("'")}


def equal(arrays, wanted):
    """Whether results have the wanted bits."""
    return all(
        bool((array.view("int32") == wanted[name].view("int32")).all())
        for name, array in results(arrays).items()
    )


def run(args, folder, manifest):
    """Measures all plans."""
    import cupy

    start, rows, wrong = time.monotonic(), [], 0
    for program in args.programs or PROGRAMS:
        plans = [entry for entry in manifest["plans"] if entry["program"] == program]
        arrays, wanted = data(folder, plans[0]), None
        for entry in plans:
            if time.monotonic() - start > args.seconds:
                print("out of time")
                break
            kernel = Kernel(folder, entry)
            for array in results(arrays).values():
                array.view("int32").fill(0x5A5A5A5A)
            (first,) = kernel.seconds(arrays, 1)
            if entry["combination"] == STRIPS:
                wanted = {name: array.copy() for name, array in results(arrays).items()}
            right = equal(arrays, wanted)
            wrong += not right
            times = kernel.seconds(arrays, 2 if first > 0.2 else 5)
            rates = sorted(SIDE * SIDE * 1e-9 / each for each in times)
            rows.append(
                {
                    "program": program,
                    "combination": entry["combination"],
                    "tile": common.size(entry["tile"]) if entry["tile"] else "",
                    "blocks": kernel.grid[0],
                    "launches": kernel.turns,
                    "registers": kernel.code.num_regs,
                    "gcells": f"{statistics.median(rates):.5g}",
                    "low": f"{rates[0]:.5g}",
                    "high": f"{rates[-1]:.5g}",
                    "check": "right" if right else "wrong",
                }
            )
            print(*rows[-1].values(), flush=True)
            write(args, manifest, f"rates of sweeps, {SIDE}x{SIDE}, sizes in the code", rows)
        del arrays, wanted
        cupy.get_default_memory_pool().free_all_blocks()
    return wrong


def write(args, manifest, what, rows):
    """Writes a record."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    query = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,power.limit"]
    said = common.call([*query, "--format=csv,noheader"]).stdout.strip()
    facts = {
        "what": what,
        "date": datetime.date.today().isoformat(),
        "commit": manifest["commit"],
        "device": f"{name}, {said}",
    }
    common.write_record(args.out, facts, rows)


def fastest(args, manifest):
    """Of each program and combination, the plan with the highest rate in a record."""
    best = {}
    for row in common.read_record(args.record)[1]:
        key = (row["program"], row["combination"])
        if row["program"] not in (args.programs or PROGRAMS):
            continue
        if row["check"] == "right" and float(row["gcells"]) > float(
            best.get(key, {"gcells": 0})["gcells"]
        ):
            best[key] = row
    for entry in manifest["plans"]:
        row = best.get((entry["program"], entry["combination"]))
        if row and row["tile"] == (common.size(entry["tile"]) if entry["tile"] else ""):
            yield entry


def measure_waits(args, folder, manifest):
    """Runs the fastest plans with clocks."""
    start, rows, arrays, last = time.monotonic(), [], None, None
    for entry in fastest(args, manifest):
        if entry["combination"] == STRIPS or time.monotonic() - start > args.seconds:
            continue
        if last != entry["program"]:
            arrays, last = None, entry["program"]
            arrays = data(folder, entry)
        text = (folder / f"{entry['stem']}.ptx").read_text()
        (folder / f"{entry['stem']}.clock.ptx").write_text(waits.with_clocks(text))
        kernel = Kernel(folder, entry, "clock.ptx")
        row = {
            "program": entry["program"],
            "combination": entry["combination"],
            "tile": common.size(entry["tile"]),
        }
        rows.append({**row, **waits.measure(kernel, arrays, SIDE)})
        print(*rows[-1].values(), flush=True)
        write(args, manifest, f"clocks in waits, {SIDE}x{SIDE}, means of all blocks", rows)
    return 0


def once(args, folder, manifest):
    """Runs the fastest plans once each, for a profiler."""
    import cupy

    arrays, last = None, None
    for entry in fastest(args, manifest):
        if "launches" in entry["combination"]:
            continue
        if last != entry["program"]:
            arrays, last = None, entry["program"]
            cupy.get_default_memory_pool().free_all_blocks()
            arrays = data(folder, entry)
        Kernel(folder, entry).start(arrays)
        cupy.cuda.Device().synchronize()
    return 0


def misses(args, folder, manifest):
    """Counts what the fastest plans read."""
    names = "|".join(name.replace("-", "_") for name in PROGRAMS)
    words = ["ncu", "--clock-control", "none", "--csv", "--metrics", ",".join(METRICS.values())]
    words += ["-k", f"regex:^({names})_0$", sys.executable, __file__, "once", args.folder]
    words += [args.out, *args.programs, "--record", args.record]
    words = [str(word) for word in words]
    said = subprocess.run(words, capture_output=True, text=True, timeout=args.seconds)
    lines = [line for line in said.stdout.splitlines() if line.startswith('"')]
    found = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        value = float(row["Metric Value"].replace(",", ""))
        unit = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}.get(row["Metric Unit"], 1)
        found.setdefault(row["ID"], {})[row["Metric Name"]] = value * unit
    plans = [
        entry for entry in fastest(args, manifest) if "launches" not in entry["combination"]
    ]
    if len(found) != len(plans):
        print(said.stdout[-2000:], said.stderr[-2000:])
    rows = []
    for entry, values in zip(plans, found.values(), strict=False):
        row = {"program": entry["program"], "combination": entry["combination"]}
        row["tile"] = common.size(entry["tile"]) if entry["tile"] else ""
        rows.append({**row, **{k: f"{values[name]:.6g}" for k, name in METRICS.items()}})
    write(args, manifest, f"sectors of L2 and bytes of memory of a sweep, {SIDE}x{SIDE}", rows)
    return len(rows) != len(plans)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("build")
    made.add_argument("folder", type=pathlib.Path)
    made.add_argument("programs", nargs="*", choices=[[], *PROGRAMS])
    made.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    made.add_argument("--ptxas", default=common.ROOT / ".toolchain/cuda/nvidia/cu13/bin/ptxas")
    made.add_argument("--jobs", type=int, default=2)
    tasks = {"run": run, "waits": measure_waits, "misses": misses, "once": once}
    for name in tasks:
        task = commands.add_parser(name)
        task.add_argument("folder", type=pathlib.Path)
        task.add_argument("out", type=pathlib.Path)
        task.add_argument("programs", nargs="*", choices=[[], *PROGRAMS])
        task.add_argument("--record", type=pathlib.Path, required=name != "run")
        task.add_argument("--seconds", type=float, default=300)
    args = parser.parse_args()
    if args.command == "build":
        return build(args)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with tarfile.open(args.folder / "wavefronts.tar.xz") as archive:
                archive.extractall(scratch, filter="data")
        except (OSError, tarfile.TarError) as error:
            sys.exit(f"error: {args.folder}/wavefronts.tar.xz: {error}; `build` makes it")
        folder = pathlib.Path(scratch)
        manifest = common.manifest(folder, "plans.json", "wavefronts.py build")
        sys.exit(bool(tasks[args.command](args, folder, manifest)))


if __name__ == "__main__":
    main()
