"""Shared by scripts that launch kernels by themselves: compiles them, launches them by CuPy.

A script prepares a folder where the compiler is: `cubin` makes machine code of CUDA or of PTX, and
says what registers it takes. On the GPU machine, `Plan` launches a plan of affine loops with its
machine code, and `Device` times launches. Times are those of events. Launches that are timed wait
behind a kernel that spins, so that the time of the host is not in them.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

import common

CUDA = common.ROOT / ".toolchain/cuda/nvidia/cu13"
ARCH = "sm_90a"
# Clocks that a kernel spins before launches are timed, about a millisecond.
SPIN = 2_000_000

KERNELS = r"""
extern "C" __global__ void spin(long long clocks, long long* found) {
    long long start = clock64(), begin, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    while (clock64() - start < clocks) {}
    long long spun = clock64() - start;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    found[0] = spun;
    found[1] = end - begin;
}
"""


def main(text, build, measure, report):
    """The commands of a script, whose first line of text is its help."""
    parser = argparse.ArgumentParser(description=text.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("build")
    arguments(one)
    one.set_defaults(command=build)
    two = commands.add_parser("measure")
    two.add_argument("folder", type=pathlib.Path)
    two.add_argument("out", type=pathlib.Path)
    two.set_defaults(command=measure)
    three = commands.add_parser("report")
    three.add_argument("out", type=pathlib.Path)
    three.set_defaults(command=report)
    args = parser.parse_args()
    args.command(args)


def arguments(parser):
    """Arguments of every command that prepares a folder."""
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    parser.add_argument("--cuda", type=pathlib.Path, default=CUDA, help="has bin/ptxas, bin/nvcc")
    parser.add_argument("--include", type=pathlib.Path, help="has cuda_runtime.h")
    parser.add_argument("--nvdisasm", default="nvdisasm")


def resources(said):
    """Registers and spilled bytes of each kernel, from what `ptxas -v` said."""
    found, name = {}, None
    for line in said.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name = match[1]
        elif match := re.search(r"(\d+) bytes spill stores", line):
            found.setdefault(name, {})["spilled"] = int(match[1])
        elif match := re.search(r"Used (\d+) registers", line):
            found.setdefault(name, {})["registers"] = int(match[1])
    return found


def cubin(args, source):
    """Machine code beside a .cu or .ptx file; the resources of its kernels."""
    tool, options = "ptxas", ["-v", f"-arch={ARCH}"]
    if source.suffix == ".cu":
        include = args.include or args.cuda / "include"
        tool, options = "nvcc", ["-cubin", f"-arch={ARCH}", "-Xptxas", "-v", f"-I{include}"]
    words = [args.cuda / "bin" / tool, *options, source, "-o", source.with_suffix(".cubin")]
    done = common.call(words)
    return resources(done.stdout + done.stderr)


def written(args, name, text):
    """Machine code of a text of CUDA in the folder; the resources of its kernels."""
    source = args.folder / f"{name}.cu"
    source.write_text(text)
    return cubin(args, source)


def disassembly(args, path):
    """Text of machine code."""
    return common.call([args.nvdisasm, path]).stdout


def compiled(args, stem, source, *options):
    """Plan, PTX and machine code of affine loops in the folder; resources of its kernels."""
    words = [args.release / "stencilc", source, *options, "--emit=ptx,plan", "-o"]
    common.call([*words, args.folder / stem])
    return cubin(args, args.folder / f"{stem}.ptx")


def prepared(args, name, scripts, made):
    """Writes the manifest, and copies what the GPU machine needs."""
    args.folder.mkdir(parents=True, exist_ok=True)
    common.take_along(args.folder, args.release, "gpu.py", *scripts)
    written(args, "gpu", KERNELS)
    (args.folder / name).write_text(json.dumps({"commit": common.commit(), **made}))


def progress(text):
    """A line to standard error."""
    print(text, file=sys.stderr, flush=True)


def value(expression, sizes):
    """The value of an expression of a plan of affine loops."""
    text = re.sub(r"(\w+|\([^()]*\)) ceildiv (\d+)", r"(-(-\1 // \2))", str(expression))
    return int(eval(text, {"max": max, "min": min}, dict(sizes)))


class Plan:
    """A plan of affine loops with its machine code."""

    def __init__(self, folder, stem):
        import cupy

        self.text = json.loads((folder / f"{stem}.plan.json").read_text())
        self.module = cupy.RawModule(path=str(folder / f"{stem}.cubin"))
        self.blocks = {one["name"]: tuple(one["block"]) for one in self.text["kernels"]}

    def argument(self, one, arrays, sizes, scalars, step):
        """An argument of a kernel."""
        import numpy

        whole = numpy.int64 if self.text["index_width"] == 64 else numpy.int32
        if one == "step":
            return numpy.int64(step)
        ((kind, name),) = one.items()
        if kind == "param":
            return whole(sizes[name])
        return numpy.float32(scalars[name]) if kind == "scalar" else arrays[name]

    def launches(self, arrays, sizes, scalars=None):
        """All launches of a run, in order: calls without arguments."""
        found = []
        for entry in self.text["schedule"]:
            for step in range(value(entry["repeat"]["count"], sizes)):
                for node in entry["repeat"]["body"]:
                    launch = node["launch"]
                    kernel = self.module.get_function(launch["kernel"])
                    grid = tuple(value(axis, sizes) for axis in launch["grid"])
                    words = tuple(self.argument(one, arrays, sizes, scalars, step)
                                  for one in launch["arguments"])
                    found.append((kernel, grid, self.blocks[launch["kernel"]], words))
        return found

    def fill(self, arrays):
        """Copies arrays to the constant memory that stands for them."""
        import cupy

        for buffer in self.text["buffers"]:
            if symbol := buffer.get("constant"):
                source = arrays[buffer["start"]["input"]]
                variable = self.module.get_global(symbol)
                kind = cupy.cuda.runtime.memcpyDeviceToDevice
                cupy.cuda.runtime.memcpy(variable.ptr, source.data.ptr, source.nbytes, kind)

    def run(self, arrays, *data):
        """A function that launches a whole run."""
        self.fill(arrays)
        launches = self.launches(arrays, *data)

        def launched():
            for kernel, grid, block, words in launches:
                kernel(grid, block, words)

        return launched


class Device:
    """The GPU, and times on it."""

    def __init__(self, folder):
        import cupy

        self.cupy = cupy
        self.spinner = cupy.RawModule(path=str(folder / "gpu.cubin")).get_function("spin")
        self.spun = cupy.zeros(2, cupy.int64)

    def spin(self, clocks=SPIN):
        """Keeps the device busy while the host queues launches."""
        import numpy

        self.spinner((1,), (1,), (numpy.int64(clocks), self.spun))

    def megahertz(self):
        """Clocks of a multiprocessor per microsecond, over a tenth of a second."""
        for _ in range(2):
            self.spin(200_000_000)
        clocks, nanoseconds = self.spun.get().tolist()
        return clocks / max(nanoseconds, 1) * 1e3

    def timed(self, call, inner=1, repeats=5, warmup=1):
        """Seconds of a call: one number for each repeat, of `inner` calls in a row."""
        found = []
        for _ in range(warmup):
            call()
        for _ in range(repeats):
            start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            self.spin()
            start.record()
            for _ in range(inner):
                call()
            end.record()
            end.synchronize()
            found.append(self.cupy.cuda.get_elapsed_time(start, end) * 1e-3 / inner)
        return found

    def graph(self, call):
        """The launches of a call as one CUDA graph, and a function that launches it."""
        stream = self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            call()
            graph = stream.end_capture()
        return graph.launch

    def facts(self):
        """Facts of a record, as stencil-bench names them."""
        fields = "name,uuid,driver_version,clocks.sm,clocks.max.sm,power.draw"
        words = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        self.spin(2_000_000_000)
        try:
            said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        except OSError:
            said = ""
        cells = [cell.strip() for cell in said.split("\n")[0].split(",")]
        name, uuid, driver, clock, most, power = cells if len(cells) == 6 else ["unknown"] * 6
        date = common.call(["date", "-u", "+%Y-%m-%d"]).stdout.strip()
        return {"date": date, "device": f"{name}, {uuid[:12]}", "driver": driver,
                "clock_mhz": clock, "clock_max_mhz": most, "power_w": power,
                "clock_counted_mhz": f"{self.megahertz():.0f}"}


def spread(values, digits=6):
    """Median, least and greatest value as columns."""
    return {"value": f"{statistics.median(values):.{digits}g}",
            "low": f"{min(values):.{digits}g}", "high": f"{max(values):.{digits}g}"}


def finished(path, facts, rows):
    """Writes a record, and ends the script: with an error where a result is wrong."""
    common.write_record(path, facts, rows)
    wrong = [row for row in rows if row.get("check") in ("wrong", "failed")]
    for row in wrong:
        progress(f"wrong: {row}")
    progress(f"{len(rows)} rows, {len(wrong)} wrong")
    sys.exit(int(bool(wrong)))


def table(header, rows):
    """A table in Markdown."""
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def pick(rows, **wanted):
    """The rows whose columns have these values."""
    return [row for row in rows if all(row.get(k) == str(v) for k, v in wanted.items())]


def cell(rows, text="{:.3g}", **wanted):
    """The value of the one row with these columns, in a format; marked where it is wrong."""
    found = pick(rows, **wanted)
    if not found or not found[0]["value"]:
        return ""
    mark = " (wrong)" if found[0].get("check") == "wrong" else ""
    return text.format(float(found[0]["value"])) + mark
