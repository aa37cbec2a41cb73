"""What arrays of structs cost on a GPU, and what the transform of coalesce-relayout regains.

    python3 test-suite/bench/layouts.py build FOLDER [--release FOLDER]
    python3 FOLDER/layouts.py measure FOLDER OUT.tsv

`build` needs the compiled project and no GPU. FOLDER then holds the scripts, plans, PTX and
`stencil-bench`. `measure` needs Python and a GPU. It measures d2q9 and d3q19 by the schedule of the
compiler's choice and by that of `stream`:

| layout | a run is given | kernels use |
|---|---|---|
| soa | an array for each number | these arrays |
| aos-direct | an array of structs | the array of structs |
| aos-relaid | an array of structs | an array for each number; two transforms are part of the run |
| aos-blocks | an array of structs | an array of blocks, by two transforms |
| blocks | an array of blocks of 32 cells | the array of blocks |

Before that, each other layout is compared with `soa`: the column `check` says whether 3 steps
on a small grid, compiled without contraction, gave the same bits.
"""

import argparse
import json
import pathlib
import statistics

import common

# Programs with the sizes that are measured, and those of the comparison.
PROGRAMS = {
    "d2q9": ({"N": 4096, "M": 4096}, {"N": 300, "M": 500}),
    "d3q19": ({"N": 256, "M": 256, "L": 256}, {"N": 40, "M": 50, "L": 70}),
}
LAYOUTS = ["soa", "aos-direct", "aos-relaid", "aos-blocks", "blocks"]
STRATEGIES = {"chosen": [], "stream": ["--strategy=stream"]}
STEPS = [10, 100, 1000]


def plans():
    """Name, program, layout and strategy of each plan."""
    for program in PROGRAMS:
        for layout in LAYOUTS:
            for strategy in STRATEGIES:
                yield f"{program}-{layout}-{strategy}", program, layout, strategy


def build(args):
    """Plans of all layouts, and what the GPU machine needs."""
    common.take_along(args.folder, args.release, "layouts.py")
    for name, program, layout, strategy in plans():
        source = common.ROOT / f"test-suite/programs/{program}.stencil"
        options = [f"--layout={layout}", *STRATEGIES[strategy], "--device=H200"]
        words = [args.release / "stencilc", source, *options, "--emit=ptx,plan"]
        large, small = (common.pairs("-D", sizes) for sizes in PROGRAMS[program])
        common.call([*words, *large, "-o", args.folder / name])
        common.call([*words, *small, "--fp-contract=off", "-o", args.folder / f"{name}-small"])
        print(name)
    (args.folder / "layouts.json").write_text(json.dumps({"commit": common.commit()}))


def benched(folder, plan, steps, *options):
    """What stencil-bench measures of a plan."""
    file = folder / f"{plan}.json"
    words = [folder / "stencil-bench", folder / f"{plan}.plan.json", "--graph", "--steps", steps]
    common.call([*words, "--repeat", 7, "--warmup", 2, *options, "--json", file])
    return json.loads(file.read_text())


def compared(folder, plan, program, strategy):
    """Whether a plan gives the result of separate arrays on a small grid."""
    reference = folder / f"{program}-soa-{strategy}-small.plan.json"
    found = benched(folder, f"{plan}-small", 3, "--reference", reference)
    check = found["results"][0]["check"]
    return "none" if check is None else "right" if check["passed"] else "wrong"


def measure(args):
    """All rows of the record."""
    rows, facts = [], {}
    built = common.manifest(args.folder, "layouts.json", "layouts.py build")
    what = {"what": "fields of structs as arrays of structs, relaid, and as separate arrays",
            "rate": "GCells/s of a step, transforms counted", **built}
    for name, program, layout, strategy in plans():
        check = "reference"
        if layout != "soa":
            check = compared(args.folder, name, program, strategy)
        for steps in STEPS:
            found = benched(args.folder, name, steps)
            facts = common.device_facts(found, facts)
            result = found["results"][0]
            rates = list(result["gcells"].values())
            rows.append({
                "program": program,
                "sizes": common.size(PROGRAMS[program][0].values()),
                "layout": layout,
                "schedule": strategy,
                "strategy": result["settings"]["strategy"],
                "steps": steps,
                "gcells": f"{statistics.median(rates):.2f}",
                "low": f"{min(rates):.2f}",
                "high": f"{max(rates):.2f}",
                "check": check,
            })
            print(rows[-1], flush=True)
            common.write_record(args.out, {**what, **facts}, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    one.set_defaults(command=build)
    two = commands.add_parser("measure")
    two.add_argument("folder", type=pathlib.Path)
    two.add_argument("out", type=pathlib.Path)
    two.set_defaults(command=measure)
    args = parser.parse_args()
    args.command(args)


if __name__ == "__main__":
    main()
