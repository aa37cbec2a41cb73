"""Whether names and the order of loops change the code of affine nests. Needs no GPU.

    python3 test-suite/bench/nest_variants.py OUT.tsv [--release FOLDER]

Each nest of the test suite is compiled as it is, with all of its names replaced, and with each
order of the loops of each of its perfect bands, or of the axes of an `affine.parallel`. An order
counts only if the interpreter gives the same bits for it. The columns of the record:

    same_ptx        the PTX is equal up to names
    same_schedule   kernels have equal threads and shared memory; the plan's schedule is equal
    same_mix        each opcode of the PTX occurs as often
    sectors         sectors of global memory that the simulator counts, over those of the nest as it
                    is; of orders of loops alone

The code of two orders that the text treats alike can differ in the order of its instructions alone,
which `same_mix` then tells.
"""

import argparse
import collections
import datetime
import itertools
import json
import pathlib
import re
import subprocess
import tempfile

import common

NESTS = common.ROOT / "test-suite/nests"
FOR = re.compile(r"\s*affine\.for (%\w+) = (.*) \{$")
PARALLEL = re.compile(r"(\s*affine\.parallel) \((.*?)\) = \((.*?)\) to \((.*)\) \{$")
SIZE, COUNTED_SIZE = 9, 40


def renamed(text):
    """The text with other names of the function, of values, arrays, sizes and scalars."""
    text = re.sub(r"func\.func @\w+", "func.func @other", text)
    # Values without names of their own begin with a digit.
    text = re.sub(r"%([a-zA-Z]\w*)", r"%own_\1", text)
    said = re.compile(r'(stencil\.(?:name|extents) = )(\[[^\]]*\]|"\w+")')
    return said.sub(lambda found: found[1] + re.sub(r'"(\w+)"', r'"q\1"', found[2]), text)


def closed(lines):
    """The line that closes what each line opens."""
    found, opened = {}, []
    for number, line in enumerate(lines):
        if line.strip().startswith("}"):
            found[opened.pop()] = number
        if line.endswith("{"):
            opened.append(number)
    return found


def bands(lines):
    """First lines of perfect bands, in which each loop is all that the one before holds, and the
    lines behind them. A loop that needs the counter of another one of its band ends it.
    """
    ends = closed(lines)
    start = 0
    while start < len(lines):
        end, counters = start, []
        while end < len(lines) and (found := FOR.match(lines[end])):
            if counters and ends[end] + 1 != ends[end - 1]:
                break
            if any(re.search(rf"{counter}\b", found[2]) for counter in counters):
                break
            counters.append(found[1])
            end += 1
        if end - start > 1:
            yield start, end
        start = max(end, start + 1)


def split(text):
    """The parts of a list, without commas in parentheses."""
    return re.findall(r"(?:[^,(]|\([^)]*\))+", text)


def permuted(text):
    """Name and text of each other order of loops."""
    lines = text.splitlines()
    for start, end in bands(lines):
        headers = [line.strip() for line in lines[start:end]]
        for order in list(itertools.permutations(range(end - start)))[1:]:
            own = list(lines)
            for place, header in enumerate(order):
                indent = re.match(r"\s*", lines[start + place])[0]
                own[start + place] = indent + headers[header]
            yield f"line {start + 1}: {','.join(map(str, order))}", "\n".join(own) + "\n"
    for number, line in enumerate(lines):
        found = PARALLEL.match(line)
        axes = [[part.strip() for part in split(found[n])] for n in (2, 3, 4)] if found else [[]]
        for order in list(itertools.permutations(range(len(axes[0]))))[1:]:
            names, lower, upper = ([part[axis] for axis in order] for part in axes)
            own = list(lines)
            own[number] = (f"{found[1]} ({', '.join(names)}) = ({', '.join(lower)}) to "
                           f"({', '.join(upper)}) {{")
            yield f"line {number + 1}: {','.join(map(str, order))}", "\n".join(own) + "\n"


class Compiled:
    """Plan and PTX of a text."""

    def __init__(self, stencilc, folder, text):
        self.stencilc, self.folder = stencilc, folder
        self.source = folder / "nest.mlir"
        self.source.write_text(text)
        subprocess.run([stencilc, self.source, "--emit=ptx,plan", "-o", folder / "nest"],
                       check=True, capture_output=True, text=True)
        self.plan = json.loads((folder / "nest.plan.json").read_text())
        self.ptx = (folder / "nest.ptx").read_text()

    def code(self):
        """The PTX without comments, with names by the order in which they occur."""
        text = re.sub(r"//.*", "", self.ptx)
        names = {}
        for kernel in self.plan["kernels"]:
            names.setdefault(kernel["name"], f"kernel{len(names)}")
        for kernel in sorted(names, key=len, reverse=True):
            text = text.replace(kernel, names[kernel])
        return [line.strip() for line in text.splitlines() if line.strip()]

    def mix(self):
        """How often each opcode occurs."""
        lines = (re.sub(r"^@!?%\w+\s+", "", line) for line in self.code())
        codes = (line.split()[0] for line in lines if not line.startswith((".", "$", "{")))
        return collections.Counter(codes)

    def schedule(self):
        """Kernels and launches, with names by the order in which they occur."""
        plan = self.plan
        names = [part["name"] for key in ("kernels", "fields", "buffers", "scalars")
                 for part in plan[key]] + plan["params"]
        numbers = {}
        for name in names:
            numbers.setdefault(name, f"<{len(numbers)}>")
        words = "|".join(map(re.escape, sorted(numbers, key=len, reverse=True)))
        names = re.compile(rf"(?<![\w.])(?:{words})(?![\w.])")

        def numbered(part):
            """A part of the plan; keys of objects are no names."""
            if isinstance(part, dict):
                return {key: numbered(value) for key, value in part.items()}
            if isinstance(part, list):
                return [numbered(value) for value in part]
            own = isinstance(part, str)
            return names.sub(lambda one: numbers[one[0]], part) if own else part

        return numbered([plan["kernels"], plan["schedule"], plan["settings"]])

    def run(self, target, size, *options):
        """Runs the text on random data: whether it is accepted, and the outputs."""
        plan = self.plan
        words = []
        for place, name in enumerate(plan["params"]):
            # Arrays without named extents have room for what a nest reads beside its points.
            words += ["--size", f"{name}={size + 3 * place + 6 * size * ('_' in name)}"]
        for place, field in enumerate(plan["fields"]):
            if field["role"] != "temp":
                words += ["--in", f"{field['name']}=random:{place + 1}"]
        for scalar in plan["scalars"]:
            words += ["--set", f"{scalar['name']}={'0.5' if 'f' in scalar['element'] else '5'}"]
        outputs = [field["name"] for field in plan["fields"] if field["role"] == "state"]
        for name in outputs:
            words += ["--out", f"{name}={self.folder / name}.npy"]
        command = [self.stencilc, "run", self.source, "--target", target, *words, *options]
        good = subprocess.run(command, capture_output=True).returncode == 0
        return good, [self.folder / f"{name}.npy" for name in outputs]

    def bits(self):
        """What the interpreter makes of the data; None where it refuses the nest."""
        good, outputs = self.run("reference", SIZE)
        return [output.read_bytes() for output in outputs] if good else None

    def sectors(self):
        """Sectors of global memory that all kernels touch, counted by the simulator."""
        file = self.folder / "counters.json"
        good, _ = self.run("sim", COUNTED_SIZE, "--report-json", file)
        assert good, self.source
        totals = [kernel["total"] for kernel in json.loads(file.read_text())["kernels"]]
        return sum(total[way]["moved"] for total in totals
                   for way in ("global_read", "global_write"))


def rows(stencilc, path):
    """A row for each variant of a nest that is legal."""
    def compiled(text):
        folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        return Compiled(stencilc, folder, text)

    with tempfile.TemporaryDirectory() as scratch:
        text = path.read_text()
        usual = compiled(text)
        variants = [("renamed", "", renamed(text)), *(("permuted", *one) for one in permuted(text))]
        wanted = usual.bits() if len(variants) > 1 else None
        if wanted is None:
            print(f"{path.name}: no order of loops to compare")
        for kind, order, own in variants:
            other = compiled(own)
            if kind == "permuted" and (wanted is None or other.bits() != wanted):
                yield {"nest": path.stem, "variant": kind, "order": order, "legal": "no",
                       "same_ptx": "", "same_schedule": "", "same_mix": "", "sectors": ""}
                continue
            sectors = f"{other.sectors() / usual.sectors():.3f}" if kind == "permuted" else ""
            said = lambda same: "yes" if same else "no"  # noqa: E731
            yield {"nest": path.stem, "variant": kind, "order": order, "legal": "yes",
                   "same_ptx": said(other.code() == usual.code()),
                   "same_schedule": said(other.schedule() == usual.schedule()),
                   "same_mix": said(other.mix() == usual.mix()), "sectors": sectors}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    args = parser.parse_args()
    found = []
    for path in sorted(NESTS.glob("*.mlir")):
        found += rows(args.release / "stencilc", path)
        print(f"{path.stem}: {len(found)} rows", flush=True)
    facts = {"what": "affine nests with other names and orders of loops, against the same nests as "
                     "they are", "commit": common.commit(), "date": datetime.date.today()}
    common.write_record(args.out, facts, found)
    for kind in ("renamed", "permuted"):
        own = [row for row in found if row["variant"] == kind and row["legal"] == "yes"]
        counts = {key: sum(row[key] == "yes" for row in own)
                  for key in ("same_ptx", "same_mix", "same_schedule")}
        nests = len({row["nest"] for row in own})
        print(f"{kind}: {len(own)} variants of {nests} nests, {counts}")


if __name__ == "__main__":
    main()
