"""Arrays of structs that a caller hands over by device pointer, relaid or not.

    python3 test-suite/bench/device_layouts.py build FOLDER [--release FOLDER] [--include FOLDER]
    python3 FOLDER/device_layouts.py measure FOLDER OUT.tsv
    python3 test-suite/bench/device_layouts.py report OUT.tsv

`build` needs `stencilc`, `stencil-bench`, `libstencil_c_runtime.so` and nvcc, and no GPU. `measure`
needs Python, NumPy, CuPy and a GPU, and takes three minutes. Programs run on memory of CuPy's by
calls of `stencil.h`: d2q9, d3q19, and five-point averages of vecs of 2 to 6 numbers. Times are
those of whole runs on a stream, transforms counted. Layouts are those of layouts.py. Before that, 3
steps of each layout are compared with separate arrays.
"""

import ctypes
import json
import shutil

import common
import gpu

# Numbers of a cell, and cells.
PROGRAMS = {"d2q9": (9, (4096, 4096)), "d3q19": (19, (256, 256, 256)),
            **{f"vec{numbers}": (numbers, (4096, 4096)) for numbers in (2, 3, 4, 6)}}
SIZES = ["N", "M", "L"]
LAYOUTS = ["soa", "aos-direct", "aos-relaid", "aos-blocks", "blocks"]
STEPS = {10: 5, 100: 5, 1000: 3}
BLOCK, WIDTH = 32, 4
ELEMENT_F32 = 2
LIBRARY = "libstencil_c_runtime.so"


def averages(numbers):
    """A program in which each number of a vec becomes an average with neighbours of the next."""
    lanes = [f"0.5*V[0,0].{lane} + 0.125*(V[-1,0].{after} + V[1,0].{after} + V[0,-1].{after} "
             f"+ V[0,1].{after})" for lane, after in
             ((lane, (lane + 1) % numbers) for lane in range(numbers))]
    return (f"param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield V : vec<{numbers}, f32> on G\n"
            f"fn average -> V [1..N-2, 1..M-2] = vec({', '.join(lanes)})\nsteps 1000\n")


def build(args):
    """Plans of all layouts, and what the GPU machine needs."""
    args.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(args.release / LIBRARY, args.folder / LIBRARY)
    for program, (numbers, shape) in PROGRAMS.items():
        source = common.ROOT / f"test-suite/programs/{program}.stencil"
        if not source.exists():
            source = args.folder / f"{program}.stencil"
            source.write_text(averages(numbers))
        sizes = common.pairs("-D", dict(zip(SIZES, shape, strict=False)))
        for layout in LAYOUTS:
            words = [args.release / "stencilc", source, f"--layout={layout}", "--device=H200"]
            common.call([*words, *sizes, "--emit=ptx,plan",
                         "-o", args.folder / f"{program}-{layout}"])
            gpu.progress(f"{program} {layout}")
    gpu.prepared(args, "device_layouts.json", ["device_layouts.py"], {})


class Runtime:
    """The calls of the library. A call that fails ends the process."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))

    def __getattr__(self, name):
        function = getattr(self.library, f"stencil_{name}")

        def call(*arguments):
            if function(*arguments):
                text = ctypes.create_string_buffer(2000)
                self.library.stencil_error_message(text, ctypes.c_size_t(len(text)))
                raise SystemExit(f"error: stencil_{name}: {text.value.decode()}")

        return call


def laid_out(cells, layout):
    """Cells with their numbers last, in a layout, with the shape and the strides of a number's
    cells, and the bytes from a number to the next."""
    import cupy

    *grid, numbers = cells.shape
    if layout == "soa":
        memory, shape = cupy.ascontiguousarray(cupy.moveaxis(cells, -1, 0)), grid
        strides, apart = memory.strides[1:], memory.strides[0]
    elif layout == "blocks":
        parts = cells.reshape(*grid[:-1], grid[-1] // BLOCK, BLOCK, numbers)
        memory = cupy.ascontiguousarray(cupy.swapaxes(parts, -1, -2))
        shape = [*grid[:-1], grid[-1] // BLOCK, BLOCK]
        strides, apart = (*memory.strides[:-2], memory.strides[-1]), memory.strides[-2]
    else:
        memory, shape = cells.copy(), grid
        strides, apart = memory.strides[:-1], memory.strides[-1]
    return memory, shape, strides, apart


def as_cells(memory, layout):
    """The cells of an array in a layout, with their numbers last."""
    import cupy

    if layout == "soa":
        return cupy.moveaxis(memory, 0, -1)
    if layout == "blocks":
        parts = cupy.swapaxes(memory, -1, -2)
        return parts.reshape(*parts.shape[:-3], -1, parts.shape[-1])
    return memory


class Lent:
    """A program that runs on memory of the caller."""

    def __init__(self, runtime, folder, program, layout, cells, stream):
        self.runtime = runtime
        plan = folder / f"{program}-{layout}.plan.json"
        names = [field["name"] for field in json.loads(plan.read_text())["fields"]]
        loaded, self.handle = ctypes.c_uint64(), ctypes.c_uint64()
        runtime.load_file(str(plan).encode(), ctypes.byref(loaded))
        runtime.run_new(loaded, ctypes.byref(self.handle))
        runtime.run_device(self.handle, ctypes.c_int32(0))
        runtime.run_stream(self.handle, ctypes.c_void_p(stream.ptr))
        self.memory, shape, strides, apart = laid_out(cells, layout)
        rank = len(shape)
        shape, strides = (ctypes.c_int64 * rank)(*shape), (ctypes.c_int64 * rank)(*strides)
        for number, name in enumerate(names):
            address = ctypes.c_uint64(self.memory.data.ptr + number * apart)
            runtime.run_bind_device_strides(
                self.handle, name.encode(), ctypes.c_int32(ELEMENT_F32), ctypes.c_uint32(rank),
                shape, strides, address)

    def run(self, steps):
        """A run of so many steps from what the memory holds."""
        self.runtime.run_steps(self.handle, ctypes.c_int64(steps))
        self.runtime.run_execute(self.handle)


def seconds(stream, call, repeats):
    """The time of each call after one, by events on the stream."""
    import cupy

    found = []
    for number in range(repeats + 1):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(stream)
        call()
        end.record(stream)
        end.synchronize()
        if number:
            found.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
    return found


def of_program(runtime, folder, program):
    """A row for each layout and number of steps."""
    import cupy

    (numbers, shape), wanted = PROGRAMS[program], None
    cells = cupy.random.default_rng(1).random((*shape, numbers), cupy.float32) + 0.5
    stream = cupy.cuda.Stream(non_blocking=True)
    for layout in LAYOUTS:
        lent = Lent(runtime, folder, program, layout, cells, stream)
        cupy.cuda.Device().synchronize()
        lent.run(3)
        found = as_cells(lent.memory, layout)
        wanted = found.copy() if wanted is None else wanted
        check = "right" if bool(cupy.allclose(found, wanted, 1e-4, 0)) else "wrong"
        for steps, repeats in STEPS.items():
            times = seconds(stream, lambda: lent.run(steps), repeats)
            rates = [steps * cells.size / numbers / one * 1e-9 for one in times]
            row = {"program": program, "sizes": common.size(shape), "layout": layout,
                   "steps": steps, "unit": "GCells/s", **gpu.spread(rates), "check": check}
            gpu.progress(row)
            yield row
        del lent, found


def measure(args):
    """All rows of the record."""
    folder = args.folder.resolve()
    manifest = common.manifest(folder, "device_layouts.json", "device_layouts.py build")
    device, runtime = gpu.Device(folder), Runtime(folder / LIBRARY)
    rows = [row for program in PROGRAMS for row in of_program(runtime, folder, program)]
    facts = {"what": "runs on arrays of structs that are handed over by device pointer",
             "commit": manifest["commit"], **device.facts(),
             "measured": "median of 3 to 5 runs after one, by events on the stream"}
    gpu.finished(args.out, facts, rows)


def report(args):
    """Rates of the layouts beside each other."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz, GCells/s\n")
    cases = list(dict.fromkeys((row["program"], row["steps"]) for row in rows))
    by_place = {(row["program"], row["steps"], row["layout"]): row["value"] for row in rows}
    lines = []
    for case in cases:
        rates = [by_place[(*case, layout)] for layout in LAYOUTS]
        _, direct, arrays, blocks, _ = map(float, rates)
        lines.append([*case, *rates, f"{arrays / direct:.2f}", f"{blocks / direct:.2f}"])
    gpu.table(["program", "steps", *LAYOUTS, "relaid over direct", "to blocks over direct"], lines)


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
