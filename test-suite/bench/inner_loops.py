"""Instructions of the inner parts of kernels per cell and step, counted in the machine code.

    python3 test-suite/bench/inner_loops.py [--nvdisasm FILE] [--print] [PROGRAM...]

Needs the compiled project, `ptxas` and `nvdisasm` (`pip install nvidia-cuda-nvdisasm`), and no GPU.
Prints the table of docs/inner-loops.md; `--print` shows the instructions too.

The inner part is what tiles away from every rim repeat. For naive kernels it is the way of a thread
whose point is computed, through all kernels. For the others it is one loop of the kernel of most
steps, without the loops in it: the one with the largest share of floating-point instructions. Their
number a cell is known, so they tell how many cells a turn of the loop computes.
"""

import argparse
import collections
import json
import pathlib
import re
import tempfile

import common

SIZES = {1: {"N": 1 << 28}, 2: {"N": 16384, "M": 16384}, 3: {"N": 512, "M": 512, "L": 512}}
# Floating-point instructions of a cell and step, and strategies. A block's loops compute one
# function each, so a program of several functions has no one inner loop.
PROGRAMS = {
    "j2d5pt": (5, ["naive", "block", "stream"]),
    "hotspot2d": (9, ["naive", "block", "stream"]),
    "fdtd2d": (8, ["naive", "stream"]),
    "star3d1r": (7, ["naive", "block", "stream"]),
    "jacobi1d3": (3, ["naive", "block", "warp"]),
    "insulated2d": (5, ["naive", "block", "stream"]),
}
KINDS = {
    "float": r"FADD|FMUL|FFMA|DADD|DMUL|DFMA|MUFU|FMNMX|FSEL|FSETP|FSET|F2F|I2F",
    "global": r"LDG|STG|CCTL",
    "shared": r"LDS|STS",
    "shuffle": r"SHFL",
    "move": r"MOV|UMOV|CS2R|HFMA2|PRMT|LDC|ULDC|S2R|S2UR|R2UR|SEL|USEL",
    "control": r"BRA|BAR|BSSY|BSYNC|ISETP|UISETP|PLOP3|EXIT|NOP|WARPSYNC|ELECT|VOTEU|BREAK",
    "address": r".*",
}


def kernels(text):
    """Per kernel its lines of machine code: labels and instructions."""
    found, lines = {}, None
    for line in text.splitlines():
        if match := re.match(r"\.text\.(\w+):", line):
            lines = found.setdefault(match[1], [])
        elif re.match(r"//-{5}", line):
            lines = None
        elif lines is not None and (
            match := re.match(r"(\.L_\w+):|\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)
        ):
            lines.append(match[1] + ":" if match[1] else match[2])
    return found


def operation(line):
    """An instruction's name without its guard and its modifiers."""
    return re.sub(r"^@!?U?P\w+\s+", "", line).split()[0].split(".")[0]


def kind(line):
    """Which column an instruction counts in; IMAD.MOV moves only."""
    name = operation(line)
    if name == "IMAD" and "IMAD.MOV" in line:
        return "move"
    return next(kind for kind, names in KINDS.items() if re.fullmatch(names, name))


def straight(lines):
    """The way of a thread that takes no conditional branch."""
    labels = {line: place for place, line in enumerate(lines) if line.endswith(":")}
    way, place, seen = [], 0, set()
    while place < len(lines) and place not in seen:
        seen.add(place)
        line = lines[place]
        place += 1
        if line.endswith(":"):
            continue
        way.append(line)
        if operation(line) == "EXIT" and not line.startswith("@"):
            break
        if operation(line) == "BRA" and not line.startswith("@"):
            place = labels[re.search(r"\.L_\w+", line)[0] + ":"]
    return way


def loops(lines):
    """The lines of each loop without its inner loops: from a label to the branch back to it."""
    labels = {line: place for place, line in enumerate(lines) if line.endswith(":")}
    ends = []
    for place, line in enumerate(lines):
        if operation(line) == "BRA":
            start = labels.get(re.search(r"\.L_\w+", line)[0] + ":", place)
            if start < place:
                ends.append((start, place))

    def own(a, b):
        others = [(c, d) for c, d in ends if a <= c and d <= b and (a, b) != (c, d)]
        places = [place for place in range(a, b + 1) if not any(c <= place <= d for c, d in others)]
        return [lines[place] for place in places if not lines[place].endswith(":")]

    return [own(a, b) for a, b in ends]


def count(lines):
    """Instructions by kind."""
    return collections.Counter(map(kind, lines))


def hot(lines):
    """The loop of the largest share of floating-point instructions, of those with many."""
    found = [(count(loop), loop) for loop in loops(lines)]
    most = max((counts["float"] for counts, _ in found), default=0)
    return max(
        (one for one in found if 2 * one[0]["float"] > most),
        key=lambda one: one[0]["float"] / len(one[1]),
    )[1]


def inner_part(args, folder, name, strategy):
    """The lines of the inner part."""
    source = common.ROOT / f"test-suite/programs/{name}.stencil"
    program = common.Program(source)
    words = common.pairs("-D", SIZES[program.rank])
    words += ["--fast-math"] if re.search(r"\s/\s", program.text) else []
    stem = folder / f"{name}.{strategy}"
    words += ["--strategy", strategy, "--emit=ptx,plan", "-o", stem]
    common.call([args.release / "stencilc", source, *words])
    plan = json.loads(pathlib.Path(f"{stem}.plan.json").read_text())
    arch = f"-arch={plan['target']['arch']}"
    common.call([args.ptxas, arch, f"{stem}.ptx", "-o", f"{stem}.cubin"])
    code = kernels(common.call([args.nvdisasm, f"{stem}.cubin"]).stdout)
    if strategy == "naive":
        return [line for kernel in plan["kernels"] for line in straight(code[kernel["name"]])]
    launches = [node["launch"] for entry in plan["schedule"] for node in entry["repeat"]["body"]]
    main = max(launches, key=lambda launch: launch["steps"])
    return hot(code[main["kernel"]])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--ptxas", default=common.ROOT / ".toolchain/cuda/nvidia/cu13/bin/ptxas")
    parser.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS])
    args = parser.parse_args()
    print("| program | strategy | cells a turn | " + " | ".join(KINDS) + " | all | float of all |")
    print("|---|---|---|" + "---|" * (len(KINDS) + 2))
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.programs or PROGRAMS:
            of_a_cell, strategies = PROGRAMS[name]
            for strategy in strategies:
                lines = inner_part(args, pathlib.Path(scratch), name, strategy)
                counts = count(lines)
                cells = 1 if strategy == "naive" else counts["float"] / of_a_cell
                each = [f"{counts[kind] / cells:.2f}" for kind in KINDS]
                share = f"{100 * counts['float'] / len(lines):.0f} %"
                each += [f"{len(lines) / cells:.2f}", share]
                print(f"| {name} | {strategy} | {cells:.4g} | {' | '.join(each)} |", flush=True)
                if args.print:
                    print("\n".join(f"    {kind(line):8}{line}" for line in lines))


if __name__ == "__main__":
    main()
