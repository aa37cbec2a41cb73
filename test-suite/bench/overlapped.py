"""Figures 6 to 8 of the paper of overlapped tiling, on one GPU.

    python3 test-suite/bench/overlapped.py build FOLDER
    python3 FOLDER/overlapped.py run FOLDER OUT.tsv [--repeat R] [--only PROGRAM...]
    python3 FOLDER/overlapped.py count FOLDER OUT.tsv        (needs ncu)
    python3 test-suite/bench/overlapped.py draw RATES.tsv COUNTERS.tsv

`build` needs the compiled project and no GPU. The paper: Holewinski, Pouchet, Sadayappan,
*High-Performance Code Generation for Stencil Computations on GPU Architectures*, ICS 2012. Its
scheme is the strategy `block` with `--block` (equation 1): fixed regions, shared memory.

- Figure 6: the best of all blocks, cells a thread and steps a launch (`tiled`), the best of those
  with one step a launch (`spatial`), and the compiler's own choice, for the paper's ten programs.
- Figure 7: Jacobi in two dimensions over the steps a launch, for several numbers of cells a thread.
- Figure 8: counters and time of its kernels over the steps a launch.

Results are compared with those of the naive kernel. `draw` writes tables to the standard output and
the pictures into docs/images.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import common

# The paper's programs by their names here, in its order.
PROGRAMS = {
    "jacobi1d3": "Jacobi 1-D 3-Pt",
    "jacobi1d5": "Jacobi 1-D 5-Pt",
    "jacobi1d7": "Jacobi 1-D 7-Pt",
    "jacobi2d": "Jacobi 2-D",
    "jacobi3d": "Jacobi 3-D",
    "poisson2d": "Poisson",
    "fdtd2d": "Electromagnetics",
    "rician": "Rician Denoising",
    "gradient": "Gradient",
    "tvupdate": "TV Update 2D",
}
# As many points for every number of dimensions.
SHAPES = {1: (1 << 24,), 2: (4096, 4096), 3: (256, 256, 256)}
# By dimensions: threads of a block, cells a thread, steps a launch.
SEARCH = {
    1: (["256", "512"], ["4", "8"], [1, 2, 4, 8, 16, 32]),
    2: (["8,32", "8,64"], ["2,1", "4,1", "8,1"], [1, 2, 4, 8]),
    3: (["8,8,8", "4,8,32"], ["2,1,1", "4,2,1"], [1, 2]),
}
CURVE, CURVE_BLOCK = "jacobi2d", "8,64"
CURVE_CELLS, CURVE_STEPS = ["1,1", "2,1", "4,1", "8,1", "12,1"], range(1, 11)
COUNTED_CELLS = "4,1"
STEPS, CHECKED_STEPS, TOLERANCE = 192, 16, 1e-3
# An error of rounding grows sevenfold in two steps.
CHECKED = {"rician": 8}
COUNTERS = {
    "global loads": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "shared loads": "smsp__inst_executed_op_shared_ld.sum",
    "shared stores": "smsp__inst_executed_op_shared_st.sum",
    "instructions": "smsp__inst_executed.sum",
    "time": "gpu__time_duration.sum",
}


def compiled(folder, program, label, options):
    """A plan in the folder; none where no block can have the tile."""
    source = common.ROOT / f"test-suite/programs/{program.stem}.stencil"
    stem = folder / f"{program.stem}.{label}"
    words = [common.ROOT / "target/release/stencilc", source, "--fast-math", "--emit=ptx,plan"]
    words += common.pairs("-D", dict(zip(program.params, SHAPES[program.rank])))
    words = [str(word) for word in [*words, *options, "-o", stem]]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode and "declined" not in done.stderr:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return None if done.returncode else f"{stem.name}.plan.json"


def schedules(program):
    """The schedules of figures 6 and 7: figure, block, cells a thread, steps a launch."""
    blocks, cells, heights = SEARCH[program.rank]
    found = [(6, block, each, steps) for block in blocks for each in cells for steps in heights]
    if program.stem == CURVE:
        found += [(7, CURVE_BLOCK, each, steps) for each in CURVE_CELLS for steps in CURVE_STEPS]
    return found


def build(args):
    """Compiles everything into a folder."""
    folder, rows = args.folder, []
    common.take_along(folder, common.ROOT / "target/release", "overlapped.py")
    for name in PROGRAMS:
        program = common.Program(common.ROOT / f"test-suite/programs/{name}.stencil")
        naive = compiled(folder, program, "naive", ["--strategy", "naive"])
        own = compiled(folder, program, "own", [])
        plans = {own: (6, "own", "", "")}
        for figure, block, cells, steps in schedules(program):
            options = ["--strategy", "block", "--block", block, "--per-thread", cells]
            options += ["--pyramid-height", str(steps)]
            label = f"{figure}.{block}.{cells}.{steps}".replace(",", "x")
            plan = compiled(folder, program, label, options)
            if plan:
                plans[plan] = (figure, block, cells, steps)
        rows.append({"program": name, "naive": naive, "plans": plans})
        print(name, len(plans), "plans", file=sys.stderr, flush=True)
    manifest = {"commit": common.commit(), "rows": rows}
    (folder / "overlapped.json").write_text(json.dumps(manifest) + "\n")


def bench(folder, plans, options):
    """What stencil-bench found."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [folder / "stencil-bench", *(folder / plan for plan in plans), "--json", file.name]
        words = [str(word) for word in [*words, *options]]
        done = subprocess.run(words, capture_output=True, text=True)
        text = pathlib.Path(file.name).read_text()
    if done.returncode:
        print((done.stdout + done.stderr)[-2000:], file=sys.stderr, flush=True)
    return json.loads(text) if text else sys.exit(done.stderr)


def run(args):
    """Measures what was built."""
    manifest = common.manifest(args.folder, "overlapped.json", "overlapped.py build")
    facts = {"what": "figures 6 and 7 of the paper of overlapped tiling, GCells/s",
             "commit": manifest["commit"], "steps": STEPS}
    lines = []
    for row in manifest["rows"]:
        if args.only and row["program"] not in args.only:
            continue
        checked = CHECKED.get(row["program"], CHECKED_STEPS)
        options = ["--steps", STEPS, "--pause", 0, "--repeat", args.repeat, "--graph",
                   "--reference", args.folder / row["naive"], "--check-steps", checked,
                   "--tolerance", TOLERANCE]
        found = bench(args.folder, row["plans"], options)
        facts.update(common.device_facts(found, facts))
        for result in found["results"]:
            plan = pathlib.Path(result["plan"]).name
            figure, block, cells, steps = row["plans"][plan]
            lines.append({"program": row["program"], "figure": figure, "block": block,
                          "cells": cells, "steps": steps, **common.measurement(result)})
        common.write_record(args.out, facts, lines)
        print(row["program"], len(found["results"]), file=sys.stderr, flush=True)


def count(args):
    """Counters of one launch of the main kernel, for each number of steps."""
    manifest = common.manifest(args.folder, "overlapped.json", "overlapped.py build")
    facts = {"what": "figure 8 of the paper of overlapped tiling: counters of one launch by ncu",
             "commit": manifest["commit"], "program": CURVE, "block": CURVE_BLOCK,
             "cells": COUNTED_CELLS}
    lines = []
    plans = next(row["plans"] for row in manifest["rows"] if row["program"] == CURVE)
    for plan, (figure, block, cells, steps) in plans.items():
        if (figure, cells) != (7, COUNTED_CELLS):
            continue
        words = ["ncu", "--clock-control", "none", "--csv", "--metrics",
                 ",".join(COUNTERS.values()), "--kernel-name", f"{CURVE}_{steps}",
                 "--launch-count", "1", args.folder / "stencil-bench", args.folder / plan,
                 "--steps", steps, "--repeat", 1, "--warmup", 0, "--pause", 0]
        text = common.call(words).stdout
        table = list(csv.DictReader(text[text.index('"ID"'):].splitlines()))
        values = {line["Metric Name"]: float(line["Metric Value"].replace(",", ""))
                  for line in table}
        lines.append({"steps": steps, **{name: f"{values[metric]:.0f}"
                                         for name, metric in COUNTERS.items()}})
        common.write_record(args.out, facts, lines)


def best(lines, **wanted):
    """The fastest line with these values."""
    fitting = [line for line in lines if line["check"] == "right"
               and all(line[name] == value for name, value in wanted.items())]
    return max(fitting, key=lambda line: float(line["gcells"]), default=None)


def draw(args):
    """Tables, and pictures in docs/images."""
    import page

    _, lines = common.read_record(args.rates)
    searched = [line for line in lines if line["figure"] == "6"]
    bars, table = {}, []
    for name, title in PROGRAMS.items():
        ours = [line for line in searched if line["program"] == name]
        own = best(ours, block="own")
        blocks = [line for line in ours if line["block"] != "own"]
        spatial, tiled = best(blocks, steps="1"), best(blocks)
        rates = [float(line["gcells"]) for line in (spatial, tiled, own)]
        bars[name] = rates
        shape = " ".join((tiled["block"].replace(",", "x"), "threads,",
                          tiled["cells"].replace(",", "x"), "cells,", tiled["steps"], "steps"))
        own_shape = f"{own['strategy']}, {own['height']}"
        table.append([title, name, f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", shape,
                      f"{rates[1] / rates[0]:.2f}", f"{rates[2]:,.0f}", own_shape,
                      f"{rates[2] / rates[1]:.1f}"])
    columns = ["in the paper", "program", "spatial", "tiled", "by", "gain", "the compiler's choice",
               "strategy, steps", "over tiled"]
    print(page.markdown(columns, table))
    title = "Figure 6: f32, GCells/s, the best of all blocks, cells and steps"
    names = ["spatial tiles", "tiled in time", "own choice"]
    (page.IMAGES / "overlapped-6.svg").write_text(page.chart(title, names, bars))

    curves = {}
    for line in lines:
        if line["figure"] == "7" and line["check"] == "right":
            name = f"{line['cells'].split(',')[0]} cells a thread"
            curves.setdefault(name, []).append((int(line["steps"]), float(line["gcells"])))
    title = "Figure 7: jacobi2d in f32, blocks of 8 x 64 threads, GCells/s"
    (page.IMAGES / "overlapped-7.svg").write_text(
        page.plot(title, "steps a launch", curves, False))

    _, counts = common.read_record(args.counters)
    curves = {}
    for name in COUNTERS:
        # A step's share of a launch.
        shares = [(int(line["steps"]), float(line[name]) / int(line["steps"])) for line in counts]
        most = max(share for _, share in shares)
        curves[name] = [(steps, share / most) for steps, share in shares]
    title = "Figure 8: counters and time of a step, each over its largest"
    (page.IMAGES / "overlapped-8.svg").write_text(
        page.plot(title, "steps a launch", curves, False))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, task in (("build", build), ("run", run), ("count", count)):
        command = commands.add_parser(name)
        command.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
        command.set_defaults(task=task)
        if name != "build":
            command.add_argument("out", type=pathlib.Path)
        if name == "run":
            command.add_argument("--repeat", type=int, default=3)
            command.add_argument("--only", nargs="*")
    command = commands.add_parser("draw")
    command.add_argument("rates", type=pathlib.Path)
    command.add_argument("counters", type=pathlib.Path)
    command.set_defaults(task=draw)
    args = parser.parse_args()
    args.task(args)


if __name__ == "__main__":
    main()
