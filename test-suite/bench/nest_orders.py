"""Rates of affine nests whose loops in another order give other instructions.

    python3 test-suite/bench/nest_orders.py build FOLDER [--release FOLDER]
    python3 FOLDER/nest_orders.py measure FOLDER OUT.tsv
    python3 test-suite/bench/nest_orders.py report OUT.tsv

`build` needs the compiled project and ptxas, and no GPU. It compiles each order of loops that gives
the same bits (nest_variants.py), and keeps those of which an opcode of the PTX occurs more or less
often than in the nest as it is. `measure` needs Python, NumPy, CuPy and a GPU. It takes half a
minute, and compares the results of both orders.
"""

import pathlib
import tempfile

import common
import gpu

# Nests with such orders by the record 2026-11-27-nest-variants.tsv, their sizes, and their arrays
# with extents, outputs first.
NESTS = {
    "doitgen": ({"N": 256, "M": 256, "K": 256}, "float64",
                {"B": "N M K", "A": "N M K", "C": "K K"}, 1),
    "fdtd2d": ({"N": 4096, "M": 4096, "T": 20}, "float32",
               {"ex": "N M", "ey": "N M", "hz": "N M", "drive": "T"}, 3),
}


def build(args):
    """Machine code of both orders of each nest."""
    import nest_variants

    args.folder.mkdir(parents=True, exist_ok=True)
    versions = []
    for name in NESTS:
        text = (nest_variants.NESTS / f"{name}.mlir").read_text()
        with tempfile.TemporaryDirectory() as scratch:
            def compiled(own, folder):
                place = pathlib.Path(scratch) / folder
                place.mkdir()
                return nest_variants.Compiled(args.release / "stencilc", place, own)

            usual = compiled(text, "usual")
            wanted, kept = usual.bits(), [("as it is", text)]
            for number, (order, own) in enumerate(nest_variants.permuted(text)):
                other = compiled(own, str(number))
                if other.bits() == wanted and other.mix() != usual.mix():
                    kept.append((order, own))
        for number, (order, own) in enumerate(kept):
            source = args.folder / f"{name}-{number}.mlir"
            source.write_text(own)
            used = gpu.compiled(args, source.stem, source)
            registers = max(one["registers"] for one in used.values())
            versions.append({"nest": name, "order": order, "stem": source.stem,
                             "registers": registers})
            gpu.progress(versions[-1])
    gpu.prepared(args, "nest_orders.json", ["nest_orders.py"], {"versions": versions})


def measure(args):
    """A row for each order."""
    import cupy

    folder = args.folder.resolve()
    manifest = common.manifest(folder, "nest_orders.json", "nest_orders.py build")
    device, rows, wanted, first = gpu.Device(folder), [], {}, {}
    for version in manifest["versions"]:
        name, stem = version["nest"], version.pop("stem")
        sizes, kind, extents, outputs = NESTS[name]
        plan = gpu.Plan(folder, stem)
        random = cupy.random.default_rng(1)
        arrays = {}
        for array, shape in extents.items():
            cells = tuple(sizes[extent] for extent in shape.split())
            arrays[array] = random.random(cells, getattr(cupy, kind))
        every = {param: of_param(param, sizes, extents) for param in plan.text["params"]}
        run = plan.run(arrays, every)
        run()
        found = {array: arrays[array].copy() for array in list(extents)[:outputs]}
        wanted.setdefault(name, found)
        same = all(bool((found[array] == wanted[name][array]).all()) for array in found)
        seconds = device.timed(run, 3)
        median = sorted(seconds)[len(seconds) // 2]
        first.setdefault(name, median)
        rows.append({**version, "sizes": common.size(sizes.values()), "unit": "ms",
                     **gpu.spread([one * 1e3 for one in seconds]),
                     "over_as_it_is": f"{median / first[name]:.3f}",
                     "check": "right" if same else "wrong"})
        gpu.progress(rows[-1])
    facts = {"what": "affine nests with loops in another order that have other instructions",
             "commit": manifest["commit"], **device.facts(),
             "measured": "median of 5 after one, three runs in a row"}
    gpu.finished(args.out, facts, rows)


def of_param(param, sizes, extents):
    """A size of the plan; those of extents without a name are A_0, A_1, ..."""
    array, _, dimension = param.rpartition("_")
    return sizes[extents[array].split()[int(dimension)] if array in extents else param]


def report(args):
    """A table."""
    facts, rows = common.read_record(args.out)
    print(f"{facts['device']}, {facts['date']}, {facts['clock_counted_mhz']} MHz\n")
    gpu.table(["nest", "order", "registers", "ms", "of the order as it is", "check"],
              [[row["nest"], row["order"], row["registers"], row["value"], row["over_as_it_is"],
                row["check"]] for row in rows])


if __name__ == "__main__":
    gpu.main(__doc__, build, measure, report)
