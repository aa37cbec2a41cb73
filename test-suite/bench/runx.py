#!/usr/bin/env python3
"""The functions of SL, `runX` and `runXDevice`, on a device: results beside NumPy's, and times.

    python3 test-suite/bench/runx.py build FOLDER     C code and shared libraries (no GPU)
    python3 FOLDER/runx.py run FOLDER OUT             runs and compares them (NumPy, CuPy)

`build` needs libstencil_runtime.a in target/release. The data is random; each result must have the
bits of NumPy's, so products and sums are not contracted.
"""

import ctypes
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "numeric"), str(HERE)]
import sl  # noqa: E402

# Larger than a tile, no multiple of one.
SHAPES = {1: [(4099,), (100_003,)], 2: [(37, 101), (1003, 2001)], 3: [(7, 11, 37), (65, 130, 200)]}
# The first leaves steps over for every height.
STEPS = (1, 37)
KINDS = {"f4": ctypes.c_float, "i4": ctypes.c_int}


def build(folder):
    """A shared library of each application, with the runtime inside."""
    root = HERE.parent.parent
    folder.mkdir(parents=True, exist_ok=True)
    for name in sl.APPLICATIONS:
        # A file of C can't be called Plate++ everywhere.
        stem = folder / name.replace("+", "p")
        source = root / "test-suite/sl" / f"{name}.sl"
        tool = root / "target/release/stencilc"
        subprocess.run([tool, source, "--emit=c", "--fp-contract", "off", "-o", stem], check=True)
        subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", f"-I{root}/bindings/c/include", f"{stem}.c",
             root / "target/release/libstencil_runtime.a", "-lm", "-lpthread", "-ldl",
             "-Wl,--gc-sections", "-s", "-o", f"{stem}.so"], check=True)
    for file in (HERE / "runx.py", HERE.parent / "numeric" / "sl.py"):
        shutil.copy(file, folder)


class Library:
    """The functions of an application."""

    def __init__(self, folder, name):
        stem = name.replace("+", "p")
        text = (folder / f"{stem}.h").read_text()
        self.name = next(word for word in text.replace("(", " ").split() if word.startswith("run"))
        self.own = ctypes.CDLL(str(folder / f"{stem}.so"))
        self.message = getattr(self.own, f"{self.name}Message")

    def call(self, ending, *arguments):
        getattr(self.own, self.name + ending)(*arguments)
        status = getattr(self.own, f"{self.name}Status")()
        if status:
            text = ctypes.create_string_buffer(4096)
            self.message(text, ctypes.c_size_t(4096))
            raise RuntimeError(f"{self.name}{ending}: {status}: {text.value.decode()}")


def run(folder, out):
    """Compares `runX` and `runXDevice` with NumPy; rows go to OUT."""
    import cupy as cp
    rows, failed = [], 0
    for name, (step, dtype, scalars, _, reads) in sl.APPLICATIONS.items():
        library = Library(folder, name)
        kind = KINDS[dtype]
        rank = {"Pathfinder": 1, "Cell": 3}.get(name, 2)
        for shape in SHAPES[rank]:
            for steps in STEPS:
                noise = np.random.default_rng(steps)
                data = noise.integers(0, 2 if name == "Cell" else 100, shape).astype(dtype)
                layers = (steps,) if reads == "layers" else ()
                read = noise.integers(0, 10, (*layers, *shape)).astype(dtype)
                wanted = data
                for t in range(steps):
                    wanted = step(*((wanted, read) if reads else (wanted, None)), scalars, t)
                if reads:
                    library.call("SetData", ctypes.c_void_p(read.ctypes.data), read.size)
                sizes = [ctypes.c_int(size) for size in reversed(shape)]
                numbers = [*sizes, steps, *(kind(value) for value in scalars.values())]
                found = data.copy()
                begin = time.perf_counter()
                library.call("", ctypes.c_void_p(found.ctypes.data), *numbers)
                took = time.perf_counter() - begin
                # The same twice as long, by two calls on one matrix in device memory.
                on_device = cp.asarray(data)
                if reads:
                    reading = cp.asarray(read)
                    library.call("DeviceSetData", ctypes.c_uint64(reading.data.ptr), read.size)
                stream = cp.cuda.Stream(non_blocking=True)
                cp.cuda.runtime.deviceSynchronize()
                place = [ctypes.c_int32(0), ctypes.c_void_p(stream.ptr),
                         ctypes.c_uint64(on_device.data.ptr)]
                library.call("Device", *place, *numbers)
                stream.synchronize()
                on_device = cp.asnumpy(on_device)
                right = [one.tobytes() == wanted.tobytes() for one in (found, on_device)]
                failed += right != [True, True]
                words = ["right" if one else "wrong" for one in right]
                rows.append((name, "x".join(map(str, shape)), steps, *words, f"{took * 1e3:.1f}"))
                print(*rows[-1], sep="\t", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [f"# device: {device}", "program\tcells\tsteps\trunX\trunXDevice\tms of runX"]
    lines += ["\t".join(map(str, row)) for row in rows]
    (out / "runx.tsv").write_text("\n".join(lines) + "\n")
    sys.exit(failed > 0)


if __name__ == "__main__":
    task, *places = sys.argv[1:]
    {"build": build, "run": run}[task](*map(Path, places))
