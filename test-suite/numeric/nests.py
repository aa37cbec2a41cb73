"""Functions of affine loops in NumPy, and their runs: each target gives the bits of the reference,
and the reference lies close to NumPy, which adds sums in another order."""

import math
import subprocess
import tempfile
import time

import late_nests
import numpy as np

# A difference that a few hundred roundings explain, relative to the largest value.
CLOSE = {"float32": 1e-4, "float64": 1e-12, "int32": 0}


def mv(f, s):
    f["x"][:] = f["A"] @ f["y"]


def tmv(f, s):
    f["x"][:] = f["A"].T @ f["y"]


def mvt(f, s):
    f["x1"] += f["A"] @ f["y1"]
    f["x2"] += f["A"].T @ f["y2"]


def mm(f, s):
    f["C"][:] = s["alpha"] * (f["A"] @ f["B"]) + s["beta"] * f["C"]


def saxpy(f, s):
    f["y"] += np.float32(s["a"]) * f["x"]


def conv2d(f, s):
    n, m = f["O"].shape
    for k, l in np.ndindex(3, 3):
        f["O"] += f["W"][k, l] * f["A"][k:k + n, l:l + m]


def jacobi2d(f, s):
    a, b = f["A"], f["B"]
    for _ in range(s["T"]):
        mean = a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
        b[1:-1, 1:-1] = np.float32(0.2) * mean
        a[1:-1, 1:-1] = b[1:-1, 1:-1]


def fdtd2d(f, s):
    ex, ey, hz = f["ex"], f["ey"], f["hz"]
    half, most = np.float32(0.5), np.float32(0.7)
    for drive in f["drive"]:
        ey[0] = drive
        ey[1:] -= half * (hz[1:] - hz[:-1])
        ex[:, 1:] -= half * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= most * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def lu(f, s):
    a = f["A"]
    for k in range(len(a)):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])


def cp(f, s):
    n, m = f["V"].shape
    y, x = (np.float32(s["spacing"]) * np.arange(cells, dtype=np.float32) for cells in (n, m))
    for atom in range(len(f["q"])):
        square = (x[None, :] - f["x"][atom])**2 + (y[:, None] - f["y"][atom])**2 + f["z2"][atom]
        f["V"] += f["q"][atom] / np.sqrt(square)


def angles(f):
    """2 pi times the products of samples and points."""
    products = (np.outer(f[axis], f["k" + axis]) for axis in "xyz")
    return np.float32(2 * np.pi) * sum(products)


def mri_q(f, s):
    f["Qr"] += np.cos(angles(f)) @ f["phi"]
    f["Qi"] += np.sin(angles(f)) @ f["phi"]


def mri_fhd(f, s):
    cos, sin = np.cos(angles(f)), np.sin(angles(f))
    f["Fr"] += cos @ f["dr"] + sin @ f["di"]
    f["Fi"] += cos @ f["di"] - sin @ f["dr"]


def sad(f, s):
    n, m, d = f["S"].shape
    for i, j, r in np.ndindex(n, m, d):
        a = f["A"][4 * i:4 * i + 4, 4 * j:4 * j + 4]
        b = f["B"][4 * i:4 * i + 4, 4 * j + r:4 * j + r + 4]
        f["S"][i, j, r] = np.abs(a - b).sum()


def rotated(words, places):
    """Words rotated to the left."""
    left = places & 31
    return words << left | words >> (32 - left & 31)


def rc5(f, s):
    """The words of a key take turns in time here, and move in the nest."""
    n = f["C"].shape[1]
    scalars = {name: np.uint32(s[name] % 2**32) for name in KEYS}
    start = [np.full(n, scalars[name]) for name in ("first", "middle", "last")]
    key = [start[0] + np.arange(n, dtype=np.uint32), *start[1:]]
    schedule = [np.full(n, word, np.uint32) for word in f["magic"].view(np.uint32)]
    a = b = np.zeros(n, np.uint32)
    for step in range(78):
        a = schedule[step % 26] = rotated(schedule[step % 26] + a + b, np.uint32(3))
        b = key[step % 3] = rotated(key[step % 3] + a + b, a + b)
    a, b = scalars["plain0"] + schedule[0], scalars["plain1"] + schedule[1]
    for number in range(1, 13):
        a = rotated(a ^ b, b) + schedule[2 * number]
        b = rotated(b ^ a, a) + schedule[2 * number + 1]
    f["C"][:] = np.stack([a, b]).view(np.int32)


def rpes(f, s):
    for i, j in np.ndindex(*f["V"].shape):
        p, q = f["p"][i][:, None], f["q"][j]
        square = sum((f["p" + axis][i][:, None] - f["q" + axis][j])**2 for axis in "xyz")
        root = np.sqrt(p * q / (p + q) * square).astype(float)
        boys = np.sqrt(np.pi) / 2 * np.vectorize(math.erf, otypes=[float])(root) / root
        terms = f["cp"][i][:, None] * f["cq"][j] * boys / (p * q * np.sqrt(p + q))
        f["V"][i, j] = terms.sum()


def sweep(before, after, r):
    """Solves (1 + 2 r) x - r (left + right) for the rows but the first and last, between ones."""
    n, one = len(before), np.float32(1)
    rows = slice(1, n - 1)
    p, q = np.zeros_like(before), np.ones_like(before)
    sums = r * (before[:-2] + before[2:]) + (one - 2 * r) * before[1:-1]
    for j in range(1, n - 1):
        scale = one + 2 * r - r * p[rows, j - 1]
        p[rows, j] = r / scale
        q[rows, j] = (sums[:, j] + r * q[rows, j - 1]) / scale
    after[rows, 0] = after[rows, n - 1] = one
    for j in range(n - 2, 0, -1):
        after[rows, j] = p[rows, j] * after[rows, j + 1] + q[rows, j]


def adi(f, s):
    u, r = f["u"], np.float32(s["r"])
    v = np.zeros_like(u)
    for _ in range(s["T"]):
        sweep(u.T, v.T, r)
        sweep(v, u, r)


def prefix(f, s):
    f["A"][:] = np.cumsum(f["A"], axis=1)


def atax(f, s):
    f["y"][:] = f["A"].T @ (f["A"] @ f["x"])


def bicg(f, s):
    f["s"][:] = f["A"].T @ f["r"]
    f["q"][:] = f["A"] @ f["p"]


def gesummv(f, s):
    f["y"][:] = s["alpha"] * (f["A"] @ f["x"]) + s["beta"] * (f["B"] @ f["x"])


def gemver(f, s):
    f["A"] += np.outer(f["u1"], f["v1"]) + np.outer(f["u2"], f["v2"])
    f["x"] += s["beta"] * (f["A"].T @ f["y"])


def syrk(f, s):
    whole = s["beta"] * f["C"] + s["alpha"] * (f["A"] @ f["A"].T)
    lower = np.tril_indices(len(whole))
    f["C"][lower] = whole[lower]


def trmm(f, s):
    lower = np.tril(f["L"], -1) + np.eye(len(f["L"]))
    f["B"][:] = s["alpha"] * (lower.T @ f["B"])


def doitgen(f, s):
    f["B"][:] = f["A"] @ f["C"]


def covariance(f, s):
    f["mean"][:] = f["A"].sum(axis=0) / s["count"]
    differences = f["A"] - f["mean"]
    f["V"][:] = differences.T @ differences


def heat3d(f, s):
    a, b = f["A"], f["B"]
    inner, all_axes = (slice(1, -1),) * 3, range(3)
    for _ in range(s["T"]):
        around = [np.roll(a, by, axis)[inner] for axis in all_axes for by in (1, -1)]
        b[inner] = a[inner] + s["c"] * sum(around)
        a[inner] = b[inner]


def conv1d_batch(f, s):
    m = f["O"].shape[1]
    f["O"][:] = sum(f["A"][:, l:l + m] * f["F"][:, l:l + 1] for l in range(5))


POINTS = {axis: "N" for axis in "xyz"} | {"k" + axis: "K" for axis in "xyz"}
KEYS = {"first": 1234567, "middle": -87654321, "last": 171, "plain0": 1953002868, "plain1": -1}
# For each program: its reference, its arrays with their extents, outputs first, the number of
# outputs, and values of scalars.
NESTS = {
    "mv": (mv, {"x": "N", "A": "N M", "y": "M"}, 1, {}),
    "tmv": (tmv, {"x": "M", "A": "N M", "y": "N"}, 1, {}),
    "mvt": (mvt, {"x1": "N", "x2": "N", "A": "N N", "y1": "N", "y2": "N"}, 2, {}),
    "mm": (mm, {"C": "N M", "A": "N K", "B": "K M"}, 1, {"alpha": 1.5, "beta": 0.25}),
    "mm-f32": (mm, {"C": "N M", "A": "N K", "B": "K M"}, 1, {"alpha": 1.5, "beta": 0.25}),
    "saxpy": (saxpy, {"y": "N", "x": "N"}, 1, {"a": 0.3}),
    "conv2d": (conv2d, {"O": "N M", "A": "N+2 M+2", "W": "3 3"}, 1, {}),
    "jacobi2d": (jacobi2d, {"A": "N M", "B": "N M"}, 2, {}),
    "fdtd2d": (fdtd2d, {"ex": "N M", "ey": "N M", "hz": "N M", "drive": "T"}, 3, {}),
    "lu": (lu, {"A": "N N"}, 1, {}),
    "adi": (adi, {"u": "N N"}, 1, {"r": 0.3}),
    "prefix": (prefix, {"A": "N M"}, 1, {}),
    "cp": (cp, {"V": "N M", "x": "K", "y": "K", "z2": "K", "q": "K"}, 1, {"spacing": 0.1}),
    "mri-q": (mri_q, {"Qr": "N", "Qi": "N", "phi": "K", **POINTS}, 2, {}),
    "mri-fhd": (mri_fhd, {"Fr": "N", "Fi": "N", "dr": "K", "di": "K", **POINTS}, 2, {}),
    "rc5": (rc5, {"C": "2 N", "S": "26 N", "L": "3 N", "magic": "26"}, 1, KEYS),
    "rpes": (rpes, {"V": "N M", **{name: "N K" for name in ("p", "cp", "px", "py", "pz")},
                    **{name: "M K" for name in ("q", "cq", "qx", "qy", "qz")}}, 1, {}),
    "atax": (atax, {"y": "M", "A": "N M", "x": "M", "t": "N"}, 1, {}),
    "bicg": (bicg, {"s": "M", "q": "N", "A": "N M", "p": "M", "r": "N"}, 2, {}),
    "gesummv": (gesummv, {"y": "N", "A": "N N", "B": "N N", "x": "N"}, 1,
                {"alpha": 1.5, "beta": 0.25}),
    "gemver": (gemver, {"A": "N N", "x": "N", "u1": "N", "v1": "N", "u2": "N", "v2": "N",
                        "y": "N"}, 2, {"beta": 0.25}),
    "syrk": (syrk, {"C": "N N", "A": "N K"}, 1, {"alpha": 1.5, "beta": 0.25}),
    "trmm": (trmm, {"B": "N M", "L": "N N"}, 1, {"alpha": 1.5}),
    "doitgen": (doitgen, {"B": "N M K", "A": "N M K", "C": "K K"}, 1, {}),
    "covariance": (covariance, {"V": "M M", "mean": "M", "A": "N M"}, 2, {"count": 40.0}),
    "heat3d": (heat3d, {"A": "N N N", "B": "N N N"}, 2, {"c": 0.1}),
    "conv1d-batch": (conv1d_batch, {"O": "N M", "A": "N M+4", "F": "N 5"}, 1, {}),
    "sad": (sad, {"S": "N M D", "A": "4*N 4*M", "B": "4*N 4*M+D"}, 1, {}),
    **late_nests.NESTS,
}
# Sizes that are arguments, and of no extents or of extents without a name.
ARGUMENTS = {"adi": "T", "conv2d": "NM", "heat3d": "T", "jacobi2d": "T", "rc5": "N", "sad": "NMD",
             **late_nests.ARGUMENTS}
DOUBLE = ["atax", "bicg", "gesummv", "gemver", "syrk", "trmm", "doitgen", "covariance", "heat3d",
          "conv1d-batch"]
TYPES = {"mm": np.float64, "lu": np.float64, "rc5": np.int32, "sad": np.int32,
         **dict.fromkeys(DOUBLE, np.float64), **late_nests.TYPES}
# Options of further runs on the simulator: without tiles, with arrays in the order of the text and
# in another one, and with tiles that divide nothing.
LOWERING = ("lower-affine-nest,gpu.module(canonicalize{top-down=false},cse),hoist-guards,"
            "keep-in-registers,bank-pad,vectorize-copies,unroll-by-registers")
TILES = [f"{threads} {cells} time=3" for threads, cells in [
    ("threads=9 copiers=3", "per-thread=2"), ("threads=3,5 copiers=2", "per-thread=2,4"),
    ("threads=2,3,2", "per-thread=1,2,3"),
]]
VARIANTS = {
    "": [],
    " untiled": ["--no-nest-tiles"],
    " where it pays": ["--transpose-arrays"],
    " transposed": ["--passes", "builtin.module(transpose-arrays{always=on},"
                                f"tile-affine-nest,{LOWERING})"],
    **{f" {tile}": ["--passes", f"builtin.module(tile-affine-nest{{{tile}}},{LOWERING})"]
       for tile in TILES},
}
SIZES = [
    {"N": 1, "M": 1, "K": 1, "D": 1, "T": 0},
    {"N": 5, "M": 3, "K": 4, "D": 2, "T": 1},
    {"N": 37, "M": 71, "K": 19, "D": 5, "T": 3},
]


def arrays(program, sizes):
    """Random inputs of a program."""
    kind = TYPES.get(program, np.float32)
    random = np.random.default_rng(1)
    fields = {}
    for name, extents in NESTS[program][1].items():
        shape = [eval(extent, {}, sizes) for extent in extents.split()]
        cells = random.random(shape) if kind != np.int32 else random.integers(0, 256, shape)
        fields[name] = cells.astype(kind)
    if program in ("lu", "ludcmp"):
        # Without pivots the diagonal has to be large.
        fields["A"] += len(fields["A"]) * np.eye(len(fields["A"]))
    if program == "rc5":
        words = 0xb7e15163 + 0x9e3779b9 * np.arange(26, dtype=np.uint64)
        fields["magic"] = words.astype(np.uint32).view(np.int32)
    return fields


def run(program, sizes, fields, command, folder):
    """The outputs of a run; what went wrong, or nothing."""
    _, _, outputs, scalars = NESTS[program]
    words = [*command, "--fp-contract=off"]
    for name, cells in fields.items():
        np.save(f"{folder}/{name}.npy", cells)
        words += ["--in", f"{name}={folder}/{name}.npy"]
    words += [f"--size={name}={sizes[name]}" for name in ARGUMENTS.get(program, "")]
    words += [f"--set={name}={value}" for name, value in scalars.items()]
    names = list(fields)[:outputs]
    for name in names:
        words += ["--out", f"{name}={folder}/{name}.out.npy"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        return {}, f"exit code {done.returncode}: {done.stderr.strip()}"
    return {name: np.load(f"{folder}/{name}.out.npy") for name in names}, ""


def far(found, wanted):
    """Outputs that lie far from those of NumPy."""
    wrong = []
    for name, cells in found.items():
        limit = CLOSE[str(cells.dtype)] * max(1, np.abs(wanted[name]).max(initial=0))
        error = np.abs(cells.astype(np.float64) - wanted[name]).max(initial=0)
        if cells.dtype != wanted[name].dtype or not error <= limit:
            wrong.append(f"{name} differs by {error}, and NumPy's largest value allows {limit}")
    return "; ".join(wrong)


def outcomes(suite, tool, targets, words):
    """What each selected run gave: title, what went wrong or nothing, seconds."""
    for program, (reference, _, _, scalars) in NESTS.items():
        for sizes in SIZES:
            cells = " ".join(f"{name}={value}" for name, value in sizes.items())
            titles = {
                (target, variant): f"nest {program} {cells} {target}{variant}"
                for target in targets for variant in VARIANTS if not variant or target == "sim"
            }
            if words and not any(word in title for word in words for title in titles.values()):
                continue
            fields = arrays(program, sizes)
            wanted = {name: value.copy() for name, value in fields.items()}
            reference(wanted, scalars | sizes)
            first = {}
            for (target, variant), title in titles.items():
                began = time.monotonic()
                command = [tool, "run", suite / "nests" / f"{program}.mlir", "--target", target]
                command += VARIANTS[variant]
                with tempfile.TemporaryDirectory() as folder:
                    found, wrong = run(program, sizes, fields, command, folder)
                wrong = wrong or far(found, wanted)
                first = first or found
                unlike = [name for name in found if found[name].tobytes() != first[name].tobytes()]
                if unlike and not wrong:
                    wrong = f"other bits than the reference: {', '.join(unlike)}"
                yield title, wrong, time.monotonic() - began
