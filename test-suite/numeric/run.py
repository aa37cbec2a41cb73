#!/usr/bin/env python3
"""Runs programs by `stencilc run` on every target that this machine has, and compares the results
bit for bit with NumPy (programs.py); functions of affine loops (nests.py)
and programs of SL (sl.py) too.

    python3 test-suite/numeric/run.py [WORD...]      only cases with one of the words in their line

The tool is taken from STENCILC_BIN_DIR, else from Cargo's release folder, else from PATH.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
import nests
import sl
from lattices import LATTICES
from places import PLACES
from programs import LEAST, MORE_SIZES, NUMBERED, PROGRAMS, RULED, dtype, rank, shapes
from reductions import REDUCED
from sums import AN5D
from wavefronts import WAVEFRONTS
from waves import WAVES

SUITE = Path(__file__).resolve().parent.parent
FOLDER = tempfile.TemporaryDirectory()
SIZE_NAMES = "NML"
# Sizes: smaller than any stencil, one cell, primes, and others that no tile divides.
SHAPES = {
    1: [(0,), (1,), (2,), (5,), (7,), (4099,)],
    2: [(0, 5), (1, 1), (2, 31), (4, 3), (5, 5), (37, 101), (67, 131)],
    3: [(1, 1, 1), (2, 7, 3), (5, 4, 6), (17, 19, 71)],
}
STEPS = [0, 1, 2, 7]
# The simulator executes every thread; beyond this many cells times steps a run takes too long.
SIMULATED = 400_000
SCHEDULES = {
    "reference": [[]],
    "sim": [["--strategy=naive"], ["--strategy=block"]],
    "cuda": [["--strategy=naive"], ["--strategy=block"]],
}
# Strategies for one number of dimensions alone.
OF_RANK = {1: [["--strategy=warp"]]}
# How programs run that read values of their own sweep, by the number of dimensions.
SWEEPS = {
    2: [
        ["--strategy=wavefront", "--tile=8,16"],
        ["--strategy=strip", "--tile=64,4", "--per-thread=1,1"],
        [],
    ],
    3: [["--strategy=wavefront", "--tile=3,4,8"], []],
}
SWEEPING = {*WAVEFRONTS, "relax2d"}
# Programs with so many numbers in a cell that the tiles of `block` must be smaller.
SMALL_TILES = {
    "d2q9": ["--tile=8,32", "--pyramid-height=2"],
    "d3q19": ["--tile=4,4,16", "--pyramid-height=1"],
    "elastic3d": ["--tile=4,4,16", "--pyramid-height=1"],
}
# These run by streams too, one step per launch.
PLAIN_STREAM = ["--strategy=stream", "--pyramid-height=1"]
# Programs that run with a fixed region too: one or several functions, grids, boundary rules.
FIXED = ["jacobi1d5", "heat2d", "fdtd2d", "fluxes2d", "blur2d", "driven2d", "torus3d", "burgers1d"]
FIXED_REGION = ["--strategy=block", "--region=fixed"]
# Programs of one field that run by relays too: stars and a box, pieces, boundary rules, two types.
RELAYED = ["advect2d", "blur2d", "box2d2r", "driven2d", "insulated2d", "j2d5pt", "jacobi2d_f64",
           "life2d", "poisson2d", "star2d3r"]
RELAY = ["--strategy=relay"]
# Programs with temp fields that are computed again where they are read, unless they are to be kept.
FUSED = ["gauss2d", "fluxes2d", "burgers1d", "laser2d", "ghost2d", "rician"]
KEPT = {
    1: [["--strategy=naive", "--no-fuse"]],
    2: [["--strategy=naive", "--no-fuse"], ["--strategy=stream"]],
}


def noise(seed, shape, kind):
    """The cells of `random:SEED`: splitmix64, as `Array::noise` of the runtime documents it. The
    numbers of a vec or a struct count as one more dimension."""
    number = kind.base if kind.names is None else kind[0].base
    if kind.kind == "c":
        number = np.dtype(f"f{kind.itemsize // 2}")
    whole = (*shape, kind.itemsize // number.itemsize)
    with np.errstate(over="ignore"):
        places = np.arange(1, int(np.prod(whole)) + 1, dtype=np.uint64)
        z = np.uint64(seed) + places * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    whole_numbers = np.issubdtype(number, np.integer)
    bits = 7 if number == np.int8 else 8
    values = z >> np.uint64(64 - bits) if whole_numbers else (z >> np.uint64(11)) * 2.0**-53
    cells = values.astype(number).reshape(whole)
    if kind.names or kind.kind == "c":
        return cells.view(kind).reshape(shape)
    return cells if kind.shape else cells.reshape(shape)


class Case:
    """A program with its inputs, number of steps and scalars."""

    def __init__(self, program, inputs, shape, steps, scalars=None, double=False):
        self.program, self.inputs, self.shape, self.steps = program, inputs, shape, steps
        self.scalars, self.double = scalars or {}, double

    def title(self):
        """The case in a line."""
        size = "x".join(map(str, self.shape))
        files = [source for source in self.inputs.values() if ":" not in source]
        words = [Path(source).name for source in files]
        words += [f"{k}={v}" for k, v in self.scalars.items()]
        words += ["in f64"] * self.double
        return " ".join([self.program, size, f"{self.steps} steps", *words])

    def expected(self):
        """The outputs by NumPy."""
        step, state, const = PROGRAMS[self.program]
        shape = shapes(self.program, self.shape)
        fields = {}
        for name in state + const:
            source = self.inputs[name]
            kind = dtype(self.program, name, self.double)
            if source.startswith("random:"):
                fields[name] = noise(int(source.removeprefix("random:")), shape[name], kind)
            else:
                fields[name] = np.load(source).astype(kind.base, casting="no")
        with np.errstate(all="ignore"):
            for t in range(self.steps):
                more = {"t": t} if self.program in NUMBERED else {}
                if step(fields, self.scalars, **more):
                    break
        wanted = {name: fields[name] for name in state}
        for name, (kind, initial) in REDUCED.get(self.program, {}).items():
            real = "<f8" if self.double else "<f4"
            kind = np.dtype(real if kind == "real" else kind)
            wanted[name] = np.array([fields.get(name, initial)]).astype(kind)
        return wanted

    def command(self, tool, target, schedule, folder):
        """The command line that runs it, with outputs in a folder."""
        source = SUITE / "programs" / f"{self.program}.stencil"
        if self.double:
            text = source.read_text()
            source = Path(folder) / source.name
            source.write_text(text.replace("f32", "f64").replace("complex64", "complex128"))
        words = [tool, "run", source]
        words += ["--target", target, "--fp-contract=off", "--steps", self.steps, *schedule]
        wide = self.double or self.program[-2:] in ("3r", "4r")
        if "--strategy=block" in schedule and self.program in SMALL_TILES:
            words += SMALL_TILES[self.program]
        elif rank(self.program) == 3 and "--strategy=block" in schedule and wide:
            # The tiles of two steps are larger than a block's shared memory.
            words.append("--pyramid-height=1")
        if all(source.startswith("random:") for source in self.inputs.values()):
            more = MORE_SIZES.get(self.program, lambda *_: {})(*self.shape)
            for name, cells in [*zip(SIZE_NAMES, self.shape), *more.items()]:
                words += ["--size", f"{name}={cells}"]
        for name, source in self.inputs.items():
            words += ["--in", f"{name}={source}"]
        for name, value in self.scalars.items():
            words += ["--set", f"{name}={value}"]
        for name in [*PROGRAMS[self.program][1], *REDUCED.get(self.program, [])]:
            words += ["--out", f"{name}={folder}/{name}.npy"]
        return [str(word) for word in words]


def difference(name, found, wanted):
    """The difference of an output in words; nothing where it agrees bit for bit."""
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return f"{name} is {found.dtype} {found.shape}, wanted {wanted.dtype} {wanted.shape}"
    size = wanted.dtype.itemsize
    bits = f"u{size}" if size in (1, 2, 4, 8) else f"V{size}"
    unlike = np.ascontiguousarray(found).view(bits) != np.ascontiguousarray(wanted).view(bits)
    if not unlike.any():
        return ""
    first = tuple(int(index) for index in np.argwhere(unlike)[0])
    return (f"{name}: {unlike.sum()} of {unlike.size} cells differ, the first at {first}: "
            f"{found[first]!r}, wanted {wanted[first]!r}")


def run(case, wanted, tool, target, schedule):
    """Runs a case; what went wrong, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        command = case.command(tool, target, schedule, folder)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return f"exit code {done.returncode}: {done.stderr.strip()}"
        found = {name: np.load(f"{folder}/{name}.npy") for name in wanted}
        complaints = [difference(name, found[name], value) for name, value in wanted.items()]
    return "; ".join(filter(None, complaints))


def cases():
    """All cases: real data, then every program on noise, for sizes and numbers of steps."""
    dem, camera, mri = (str(SUITE / "data" / f"{name}.npy") for name in ("dem", "camera", "mri"))
    yield Case("heat2d", {"A": dem, "K": "random:1"}, (344, 403), 37)
    yield Case("heat2d", {"A": camera, "K": camera}, (512, 512), 5, {"alpha": 0.25})
    yield Case("fdtd2d", {"Ex": "random:1", "Ey": "random:2", "Hz": mri}, (256, 256), 9)
    scalars = {"Rx": 3.5, "Ry": 7, "Rz": 1e30}
    yield Case("hotspot2d", {"T": dem, "P": "random:3"}, (344, 403), 11, scalars)
    yield Case("gradient2d", {"A": mri}, (256, 256), 13)
    yield Case("j2d9pt-gol", {"A": camera}, (512, 512), 3)
    yield Case("rician", {"U": mri, "F": mri}, (256, 256), 5, {"sigma": 0.08, "lambda": 0.1})
    yield Case("tvupdate", {"U": camera, "F": camera}, (512, 512), 3, {"V": 20})
    heard = {name: f"random:{seed}" for seed, name in enumerate(
        ("P", "U", "trace", "C", "source", "y", "x"), 1)}
    yield Case("acoustic2d", heard, (37, 101), 4, {"row": 17, "column": 40})
    for program, (_, state, const) in PROGRAMS.items():
        inputs = {name: f"random:{seed}" for seed, name in enumerate(state + const, 1)}
        least = LEAST.get(program, ())
        fits = lambda shape: all(cells >= needed for cells, needed in zip(shape, least))
        shapes = [shape for shape in SHAPES[rank(program)] if fits(shape)]
        if not program.endswith("_f64"):
            yield Case(program, inputs, shapes[-2], 2, double=True)
        if program in AN5D:
            # These differ in offsets and weights alone.
            yield Case(program, inputs, shapes[1], 3)
            yield Case(program, inputs, shapes[-1], 2)
            continue
        for number, shape in enumerate(shapes):
            # Each size with a few steps more than the one before; the largest with all numbers.
            for steps in STEPS if shape == shapes[-1] else [STEPS[number % 3 + 1]]:
                yield Case(program, inputs, shape, steps)
    for program, shape in (("life2d", (37, 101)), ("cell3d", (11, 13, 37))):
        # Noise of whole numbers is never alive; every second of these cells is.
        alive = f"{FOLDER.name}/{program}.npy"
        np.save(alive, noise(1, shape, dtype(program, "A")) % 2)
        for steps in STEPS:
            yield Case(program, {"A": alive}, shape, steps)
    for shape in ((2, 6), (38, 102)):
        spins = f"{FOLDER.name}/spins-{shape[0]}.npy"
        np.save(spins, noise(1, shape, np.dtype(np.int8)) % 2 * 2 - 1)
        seeds = f"{FOLDER.name}/seeds-{shape[0]}.npy"
        np.save(seeds, np.random.default_rng(1).integers(1, 1 << 32, shape, dtype=np.uint32))
        for steps in STEPS:
            yield Case("ising2d", {"S": spins, "R": seeds}, shape, steps)


def tool_path():
    """The built `stencilc`."""
    release = SUITE.parent / os.environ.get("CARGO_TARGET_DIR", "target") / "release"
    folders = [os.environ.get("STENCILC_BIN_DIR"), str(release), os.environ.get("PATH")]
    found = shutil.which("stencilc", path=os.pathsep.join(filter(None, folders)))
    if not found:
        sys.exit("stencilc was not found: run `cargo build --release` first")
    return found


def targets(tool):
    """The targets of the tool that work on this machine."""
    help_of_run = [tool, "run", "--help"]
    words = subprocess.run(help_of_run, capture_output=True, text=True, check=True).stdout
    known = [target for target in SCHEDULES if f"- {target}:" in words]
    if "cuda" in known:
        trial = Case("jacobi1d3", {"A": "random:1"}, (8,), 1)
        if run(trial, trial.expected(), tool, "cuda", []).startswith("exit code 1: error: no CUDA"):
            known.remove("cuda")
    return known


def selected(case, found, words):
    """The runs of a case that contain one of some words, or all: title, target and schedule."""
    for target in found:
        if target == "sim" and int(np.prod(case.shape)) * case.steps > SIMULATED:
            continue
        known = target != "reference" and case.program not in RULED
        more = OF_RANK.get(rank(case.program), []) if known else []
        if target != "reference" and case.program in FIXED:
            more = [*more, FIXED_REGION]
        if target != "reference" and case.program in RELAYED:
            more = [*more, RELAY]
        if target != "reference" and case.program in FUSED:
            more = [*more, *KEPT[rank(case.program)]]
        if target != "reference" and case.program in LATTICES:
            more = [*more, PLAIN_STREAM]
        if target != "reference" and case.program in WAVES:
            more = [*more, ["--strategy=plane"]]
        if target != "reference" and case.program in PLACES:
            more = [*more, []]
        schedules = SCHEDULES[target] + more
        if target != "reference" and case.program in SWEEPING:
            schedules = SWEEPS[rank(case.program)]
        for schedule in schedules:
            options = (word.removeprefix("--strategy=") for word in schedule)
            title = " ".join([case.title(), target, *options])
            if not words or any(word in title for word in words):
                yield title, target, schedule


def outcomes(case, tool, found, words):
    """What each selected run of a case gave: title, what went wrong or nothing, seconds."""
    runs = list(selected(case, found, words))
    expected = case.expected() if runs else {}
    done = []
    for title, target, schedule in runs:
        began = time.monotonic()
        wrong = run(case, expected, tool, target, schedule)
        done.append((title, wrong, time.monotonic() - began))
    return done


def main():
    """Runs what the arguments select; the last line says how many passed."""
    tool, words = tool_path(), sys.argv[1:]
    found = targets(tool)
    missing = {path.stem for path in (SUITE / "programs").glob("*.stencil")} - set(PROGRAMS)
    failed, passed = [f"{name}: has no reference in programs.py" for name in sorted(missing)], 0
    other = {path.stem for path in (SUITE / "sl").glob("*.sl")} ^ set(sl.APPLICATIONS)
    failed += [f"{name}: stands in sl.py or in the folder sl alone" for name in sorted(other)]
    unknown = {path.stem for path in (SUITE / "nests").glob("*.mlir")} - set(nests.NESTS)
    failed += [f"{name}: has no reference in nests.py" for name in sorted(unknown)]
    # The work is that of the processes that the threads start.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        of_nests = pool.submit(lambda: list(nests.outcomes(SUITE, tool, found, words)))
        of_sl = pool.submit(lambda: list(sl.outcomes(SUITE, tool, found, words)))
        of_programs = pool.map(lambda case: outcomes(case, tool, found, words), cases())
        for done in chain(of_programs, (future.result() for future in [of_nests, of_sl])):
            for title, wrong, seconds in done:
                print(f"{'FAIL' if wrong else 'ok':4} {title}: {wrong or f'{seconds:.2f} s'}",
                      flush=True)
                passed += not wrong
                failed += [title] if wrong else []
    for title in failed:
        print(f"failed: {title}")
    print(f"numeric: {passed} passed, {len(failed)} failed, bit for bit, on {', '.join(found)}")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
