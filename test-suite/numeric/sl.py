"""The applications of SL in NumPy, and their runs: the `.sl` file and its `.stencil` twin give the
bits of NumPy on every target."""

import subprocess
import tempfile
import time

import numpy as np

SINGLE = np.float32


def padded(a, value):
    """The matrix with two cells more on each side."""
    return np.pad(a, 2, constant_values=value)


def plate(a, s):
    """A plate whose upper edge is hot: the matrix with what lies around it."""
    around = padded(a, SINGLE(s["cold"]))
    around[:2] = SINGLE(s["hot"])
    return around


def at(around, x, y):
    """The cells at an offset, x first."""
    return around[2 + y:around.shape[0] - 2 + y, 2 + x:around.shape[1] - 2 + x]


def hotspot(a, read, s, t):
    around = np.pad(a, 2, mode="edge")
    term1 = (at(around, 0, 1) + at(around, 0, -1) - a) / SINGLE(s["Ry"])
    term2 = (at(around, 1, 0) + at(around, -1, 0) - a) / SINGLE(s["Rx"])
    # 80.0 is a double.
    term3 = ((80.0 - a.astype("f8")) / np.float64(SINGLE(s["Rz"]))).astype("f4")
    return a + (read + term1 + term2 + term3)


def plate_four(a, read, s, t):
    around = plate(a, s)
    return (at(around, 0, -1) + at(around, -1, 0) + at(around, 1, 0) + at(around, 0, 1)) / SINGLE(4)


def plate_halo(a, read, s, t):
    around = plate(a, s)
    above = at(around, -1, -1) + at(around, 0, -1) + at(around, 1, -1)
    here = above + (at(around, -1, 0) + at(around, 1, 0))
    below = at(around, -1, 1) + at(around, 0, 1) + at(around, 1, 1)
    return (here + below) / SINGLE(8)


def plate_plus(a, read, s, t):
    around = plate(a, s)
    column = at(around, 0, -2) + at(around, 0, -1) + at(around, 0, 1) + at(around, 0, 2)
    row = at(around, -2, 0) + at(around, -1, 0) + at(around, 1, 0) + at(around, 2, 0)
    return (column + row) / SINGLE(8)


def pathfinder(a, read, s, t):
    around = np.pad(a, 1, mode="edge")
    return np.minimum(a, np.minimum(around[:-2], around[2:])) + read[t]


def cell(a, read, s, t):
    around = np.pad(a, 1)
    z, y, x = a.shape
    alive = sum(around[k:k + z, j:j + y, i:i + x] for k, j, i in np.ndindex(3, 3, 3)) - a
    return ((alive == 6) | (a == 1) & (alive >= 5) & (alive <= 7)).astype(a.dtype)


PLATE = {"hot": 7.25, "cold": -1.5}
# Name: a step, the type of a cell, scalars, shapes, and whether there is read-only data.
APPLICATIONS = {
    "Hotspot": (hotspot, "f4", {"Rx": 3.5, "Ry": 7, "Rz": 80}, [(1, 1), (37, 101)], "cells"),
    "Plate": (plate_four, "f4", PLATE, [(1, 3), (37, 101)], None),
    "PlateHalo": (plate_halo, "f4", PLATE, [(2, 1), (37, 101)], None),
    "Plate++": (plate_plus, "f4", PLATE, [(1, 1), (37, 101)], None),
    "Pathfinder": (pathfinder, "i4", {}, [(1,), (4099,)], "layers"),
    "Cell": (cell, "i4", {}, [(1, 1, 1), (7, 11, 37)], None),
}
STEPS = 7


def run(path, tool, target, options, arrays, scalars, wanted):
    """Runs a file; what went wrong, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        words = [tool, "run", path, "--target", target, "--fp-contract=off", "--steps", STEPS]
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
            words += ["--in", f"{name}={folder}/{name}.npy"]
        for name, value in scalars.items():
            words += ["--set", f"{name}={value}"]
        words += ["--out", f"data={folder}/after.npy", *options]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode != 0:
            return f"exit code {done.returncode}: {done.stderr.strip()}"
        found = np.load(f"{folder}/after.npy")
    if found.shape != wanted.shape or found.tobytes() != wanted.tobytes():
        return f"{(found != wanted).sum()} of {wanted.size} cells differ"
    return ""


def outcomes(suite, tool, targets, words):
    """What each selected run gave: title, what went wrong or nothing, seconds."""
    generator = np.random.default_rng(1)
    for name, (step, kind, scalars, shapes, reads) in APPLICATIONS.items():
        for shape in shapes:
            noise = lambda size: (generator.random(size) * 200).astype(kind)
            first = noise(shape) % 2 if name == "Cell" else noise(shape)
            arrays = {"data": first}
            if reads:
                arrays["read"] = noise(shape if reads == "cells" else (STEPS, *shape))
            wanted = first
            for t in range(STEPS):
                wanted = step(wanted, arrays.get("read"), scalars, t)
            for target in targets:
                for options in [[]] if target == "reference" else [[], ["--strategy=naive"]]:
                    for extension in ("sl", "stencil"):
                        path = suite / "sl" / f"{name}.{extension}"
                        size = "x".join(map(str, shape))
                        title = " ".join([path.name, size, target, *options])
                        if words and not any(word in title for word in words):
                            continue
                        began = time.monotonic()
                        wrong = run(path, tool, target, options, arrays, scalars, wanted)
                        yield title, wrong, time.monotonic() - began
