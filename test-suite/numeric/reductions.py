"""The programs of the test suite with reductions in NumPy.

A reduction has the order of the language: blocks of 8,192 points, 256 lanes of a block, then 1,024
lanes for the results of the blocks. A step function that returns true ends the run.
"""

import numpy as np

from cells import inner, numbers
from wavefronts import sweep

BLOCK, OF_BLOCK, OF_ALL = 8192, 256, 1024


def lanes(values, count, combine, neutral):
    """Values to so many lanes in turn, each of which combines its own in order; then the halves of
    the lanes, until one is left. The last axis counts the values."""
    missing = -values.shape[-1] % count
    rest = np.full((*values.shape[:-1], missing), neutral, values.dtype)
    turns = np.concatenate([values, rest], -1)
    turns = turns.reshape(*values.shape[:-1], turns.shape[-1] // count, count)
    kept = np.full((*values.shape[:-1], count), neutral, values.dtype)
    for turn in range(turns.shape[-2]):
        kept = combine(kept, turns[..., turn, :])
    while kept.shape[-1] > 1:
        half = kept.shape[-1] // 2
        kept = combine(kept[..., :half], kept[..., half:])
    return kept[..., 0]


def reduced(values, combine, neutral):
    """The value of a reduction."""
    values = np.ascontiguousarray(values).reshape(-1)
    missing = -len(values) % BLOCK
    blocks = np.concatenate([values, np.full(missing, neutral, values.dtype)])
    blocks = blocks.reshape(len(blocks) // BLOCK, BLOCK)
    of_blocks = lanes(blocks, OF_BLOCK, combine, neutral)
    return lanes(of_blocks, OF_ALL, combine, neutral)


def total(values):
    return reduced(values, np.add, 0)


def largest(values):
    return reduced(values, np.maximum, -np.inf)


def lowest(values):
    return reduced(values, np.minimum, np.inf)


def around(field, rows=1, columns=1):
    """Reads beside the points of a field whose nearest cells go on outside. Where the sign of a
    dimension is -1, they go on with the other sign."""
    wide = np.pad(field, 1, mode="edge")
    for rim, sign in (((slice(0, 1),), rows), ((slice(-1, None),), rows),
                      ((slice(None), slice(0, 1)), columns),
                      ((slice(None), slice(-1, None)), columns)):
        wide[rim] *= sign
    n, m = field.shape
    return lambda i, j: wide[1 + i:1 + i + n, 1 + j:1 + j + m]


def srad(fields, scalars):
    J = fields["J"]
    c, wide = numbers(J), J.astype(np.float64)
    fields["total"], fields["squares"] = total(wide), total(wide * wide)
    points = np.float64(J.size)
    mean = fields["total"] / points
    variance = fields["squares"] / points - mean * mean
    speckle = J.dtype.type(variance / (mean * mean))
    at = around(J)
    here = at(0, 0) + c("0.001")
    n, s, w, e = (at(*side) - at(0, 0) for side in ((-1, 0), (1, 0), (0, -1), (0, 1)))
    gradient = (n * n + s * s + w * w + e * e) / (here * here)
    laplacian = (n + s + w + e) / here
    near = c(1) + c("0.25") * laplacian
    q = (c("0.5") * gradient - c("0.0625") * laplacian * laplacian) / (near * near)
    free = c(1) / (c(1) + (q - speckle) / (speckle * (c(1) + speckle)))
    C = around(np.fmax(c(0), np.fmin(c(1), free)))
    flow = (C(1, 0) * (at(1, 0) - at(0, 0)) + C(0, 0) * (at(-1, 0) - at(0, 0))
            + C(0, 1) * (at(0, 1) - at(0, 0)) + C(0, 0) * (at(0, -1) - at(0, 0)))
    J[:] = at(0, 0) + c("0.25") * c(scalars.get("lambda", "0.5")) * flow


def conjugate_gradients(fields, scalars):
    X, R = fields["X"], fields["R"]
    P, Q = fields.setdefault("P", np.zeros_like(X)), fields.setdefault("Q", np.zeros_like(X))
    after, before = fields.get("after", np.float64(0)), fields.get("before", np.float64(1))
    r, p, q, x = (inner(field, 1) for field in (R, P, Q, X))
    p(0, 0)[...] = r(0, 0) + after / before * p(0, 0)
    q(0, 0)[...] = np.float64(4) * p(0, 0) - p(-1, 0) - p(1, 0) - p(0, -1) - p(0, 1)
    fields["before"] = before = total(r(0, 0) * r(0, 0))
    fields["energy"] = energy = total(p(0, 0) * q(0, 0))
    x(0, 0)[...] = x(0, 0) + before / energy * p(0, 0)
    r(0, 0)[...] = r(0, 0) - before / energy * q(0, 0)
    fields["after"] = total(r(0, 0) * r(0, 0))
    return np.sqrt(fields["after"]) <= np.float64(scalars.get("tolerance", "1e-8"))


def implicit2d(fields, scalars):
    U, k = fields["U"], np.float64(scalars.get("k", "4"))
    R, P, Q = (fields.setdefault(name, np.zeros_like(U)) for name in "RPQ")
    u, r, p, q = (inner(field, 1) for field in (U, R, P, Q))

    def spread(x):
        return k * (x(-1, 0) + x(1, 0) + x(0, -1) + x(0, 1) - np.float64(4) * x(0, 0))

    r(0, 0)[...] = spread(u)
    p(0, 0)[...] = r(0, 0)
    for _ in range(5):
        fields["before"] = before = total(r(0, 0) * r(0, 0))
        q(0, 0)[...] = p(0, 0) - spread(p)
        fields["energy"] = energy = total(p(0, 0) * q(0, 0))
        far = before / energy if energy > 0 else np.float64(0)
        u(0, 0)[...] = u(0, 0) + far * p(0, 0)
        r(0, 0)[...] = r(0, 0) - far * q(0, 0)
        fields["after"] = after = total(r(0, 0) * r(0, 0))
        p(0, 0)[...] = r(0, 0) + (after / before if before > 0 else np.float64(0)) * p(0, 0)


def relax2d(fields, scalars):
    A = fields["A"]
    c = numbers(A)
    k = c(scalars.get("k", "0.5"))
    B = fields.setdefault("B", np.zeros_like(A))
    a = inner(A, 1)
    inner(B, 1)(0, 0)[...] = a(0, 0) - c("0.25") * (a(0, 0) - a(0, -1))

    def value(old, i, j):
        new = A[i - 1, j] + A[i, j - 1] + old[i + 1, j] + old[i, j + 1]
        return (B[i, j] + k * new) / (c(1) + c(4) * k)

    for _ in range(3):
        before = A.copy()
        sweep(A, [1, 1], [1, 1], value)
        sweep(A, [1, 1], [1, 1], value)
        fields["moved"] = largest(np.abs(A - before)).astype(A.dtype)


def shallow_water(fields, scalars):
    h, u, v = fields["h"], fields["u"], fields["v"]
    c = numbers(h)
    cfl, one, half, four = c(scalars.get("cfl", "0.4")), c(1), c("0.5"), c(4)
    depth = one + h
    waves = np.fmax(np.abs(u), np.abs(v)) / depth + np.sqrt(depth)
    fields["speed"] = speed = largest(waves).astype(h.dtype)
    fields["time"] = fields.get("time", np.float64(0)) + np.float64(cfl / speed)
    H, U, V = around(h), around(u, rows=-1), around(v, columns=-1)

    def step(X, away):
        near = X(-1, 0) + X(1, 0) + X(0, -1) + X(0, 1)
        return X(0, 0) - half * cfl / speed * away + half * cfl * (near - four * X(0, 0))

    def along(momentum, depth):
        return momentum * momentum / depth + half * depth * depth

    def aside(momentum, other, depth):
        return momentum * other / depth

    n, s, w, e = (one + H(*side) for side in ((-1, 0), (1, 0), (0, -1), (0, 1)))
    mass = U(1, 0) - U(-1, 0) + V(0, 1) - V(0, -1)
    of_u = (along(U(1, 0), s) - along(U(-1, 0), n)
            + (aside(U(0, 1), V(0, 1), e) - aside(U(0, -1), V(0, -1), w)))
    of_v = (aside(U(1, 0), V(1, 0), s) - aside(U(-1, 0), V(-1, 0), n)
            + (along(V(0, 1), e) - along(V(0, -1), w)))
    new = step(H, mass), step(U, of_u), step(V, of_v)
    h[:], u[:], v[:] = new
    return fields["time"] >= np.float64(scalars.get("end", "20"))


def weno1d(fields, scalars):
    u, c = fields["u"], np.float64
    cfl = c(scalars.get("cfl", "0.4"))
    fastest = fields["fastest"] = largest(np.abs(u))
    fields["time"] = fields.get("time", c(0)) + cfl / fastest

    def square(x):
        return x * x

    def weight(ideal, second, slope):
        rough = c(13) / c(12) * square(second) + c(0.25) * square(slope)
        return c(ideal) / square(c(1e-6) + rough)

    def face(p, q, r, s, t):
        w0 = weight(0.1, p - c(2) * q + r, p - c(4) * q + c(3) * r)
        w1 = weight(0.6, q - c(2) * r + s, q - s)
        w2 = weight(0.3, r - c(2) * s + t, c(3) * r - c(4) * s + t)
        top = (w0 * (c(2) * p - c(7) * q + c(11) * r) + w1 * (-q + c(5) * r + c(2) * s)
               + w2 * (c(2) * r + c(5) * s - t))
        return top / (c(6) * (w0 + w1 + w2))

    def change(x):
        at = [np.roll(x, -offset) for offset in range(-3, 4)]
        right = [c(0.5) * (c(0.5) * x * x + fastest * x) for x in at]
        left = [c(0.5) * (c(0.5) * x * x - fastest * x) for x in at]
        flux = [face(*right[k:k + 5]) + face(*left[k + 5:k:-1]) for k in (0, 1)]
        return -cfl / fastest * (flux[1] - flux[0])

    a = u + change(u)
    b = c(0.75) * u + c(0.25) * (a + change(a))
    u[:] = u / c(3) + c(2) / c(3) * (b + change(b))
    return fields["time"] >= c(scalars.get("end", "40"))


def statistics3d(fields, scalars):
    A = fields["A"]
    c = numbers(A)
    D = fields.setdefault("D", np.zeros_like(A))
    before = fields.get("largest", c(0))
    D[1:] = A[1:] - A[:-1]
    fields["steepest"] = steepest = largest(np.abs(D))
    fields["lowest"], fields["sum_of_all"] = lowest(A), total(A)
    fields["high"] = high = total((A > c("0.5")).astype(np.int64))
    flat = (np.abs(D[1:]) <= c("0.75") * steepest).all()
    peak = (A[::2] > c("0.999")).any()
    fields["flat"], fields["peak"] = np.uint32(flat), np.uint32(peak)
    usual = fields["sum_of_all"] / A.dtype.type(A.size)
    above = (A > usual) & ~flat
    more = np.where(above, c("0.01") * A.dtype.type(high % 7), c(0))
    calm = c("0.5") if peak else c("0.25")
    new = A - c("0.1") * (D + more) * calm + c("0.001") * (fields["lowest"] - before)
    A[:] = new
    fields["largest"] = largest(A)


REDUCTIONS = {
    "srad": (srad, ["J"], []),
    "conjugate-gradients": (conjugate_gradients, ["X", "R"], []),
    "implicit2d": (implicit2d, ["U"], []),
    "relax2d": (relax2d, ["A"], []),
    "shallow-water": (shallow_water, ["h", "u", "v"], []),
    "statistics3d": (statistics3d, ["A"], []),
    "weno1d": (weno1d, ["u"], []),
}

# The reductions of a program, with their types from the float type and their values before the
# first step.
REDUCED = {
    "multigrid2d": {"worst": ("real", 0)},
    "affine-gap-score": {"end": ("i8", 0), "end.best": ("i4", 0)},
    "srad": {"total": ("f8", 0), "squares": ("f8", 0)},
    "conjugate-gradients": {"before": ("f8", 1), "energy": ("f8", 0), "after": ("f8", 0)},
    "implicit2d": {"before": ("f8", 0), "energy": ("f8", 0), "after": ("f8", 0)},
    "relax2d": {"moved": ("real", 0)},
    "shallow-water": {"speed": ("real", 0), "time": ("f8", 0)},
    "weno1d": {"fastest": ("f8", 0), "time": ("f8", 0)},
    "statistics3d": {
        "steepest": ("real", 1),
        "lowest": ("real", 0),
        "sum_of_all": ("real", 0),
        "high": ("i8", 0),
        "flat": ("u4", 0),
        "peak": ("u4", 0),
        "largest": ("real", 0),
    },
}
