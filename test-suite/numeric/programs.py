"""The programs of the test suite, written once more in NumPy.

One function a program takes its fields by name and makes one step of them, in place. Every
operation is NumPy's own in the type of the field, in the order in which the program has it, so that
results agree bit for bit with any target that neither contracts nor re-associates.
"""

import numpy as np

from cells import anywhere, at, inner, numbers, update
from lattices import LATTICES
from places import LEAST_OF_PLACES, PLACES, SHAPES_OF_PLACES
from quanta import QUANTA
from reductions import REDUCTIONS, around
from sums import AN5D, JACOBI, box, mean
from wavefronts import SEQUENCES, TABLES, WAVEFRONTS
from waves import WAVES


def heat2d(fields, scalars):
    A, K = fields["A"], fields["K"]
    c, a, k = numbers(A), inner(A, 1), inner(K, 1)
    alpha = c(scalars.get("alpha", "0.1"))
    new = a(0, 0) + alpha * k(0, 0) * (a(-1, 0) + a(1, 0) + a(0, -1) + a(0, 1) - c(4) * a(0, 0))
    update(A, [1, 1], [1, 1], new)


def fdtd2d(fields, scalars):
    Ex, Ey, Hz = fields["Ex"], fields["Ey"], fields["Hz"]
    c = numbers(Ex)

    def box(field, lower, upper):
        return lambda *offset: at(field, lower, upper, *offset)

    e, h = box(Ey, [1, 0], [0, 0]), box(Hz, [1, 0], [0, 0])
    update(Ey, [1, 0], [0, 0], e(0, 0) - c("0.5") * (h(0, 0) - h(-1, 0)))
    e, h = box(Ex, [0, 1], [0, 0]), box(Hz, [0, 1], [0, 0])
    update(Ex, [0, 1], [0, 0], e(0, 0) - c("0.5") * (h(0, 0) - h(0, -1)))
    x, y, h = (box(field, [0, 0], [1, 1]) for field in (Ex, Ey, Hz))
    update(Hz, [0, 0], [1, 1], h(0, 0) - c("0.7") * (x(0, 1) - x(0, 0) + y(1, 0) - y(0, 0)))


def yee2d(fields, scalars):
    Ex, Ey, Hz = fields["Ex"], fields["Ey"], fields["Hz"]
    c = numbers(Hz)(scalars.get("c", "0.5"))
    if Ex.shape[1] > 1:
        Ex[:, 1:-1] = Ex[:, 1:-1] + c * (Hz[:, 1:] - Hz[:, :-1])
    if Ey.shape[0] > 1:
        Ey[1:-1] = Ey[1:-1] - c * (Hz[1:] - Hz[:-1])
    Hz[:] = Hz + c * (Ex[:, 1:] - Ex[:, :-1] - Ey[1:] + Ey[:-1])


def wave2d(fields, scalars):
    P, U, C = fields["P"], fields["U"], fields["C"]
    number, p, u, c = numbers(U), inner(P, 1), inner(U, 1), inner(C, 1)
    near = u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1)
    new = number(2) * u(0, 0) - p(0, 0) + c(0, 0) * (near - number(4) * u(0, 0))
    old = u(0, 0).copy()
    update(P, [1] * 2, [1] * 2, old)
    update(U, [1] * 2, [1] * 2, new)


def pathfinder(fields, scalars, t):
    best, cost = fields["best"], fields["cost"]
    if best.size:
        wide = np.concatenate([[np.inf], best, [np.inf]]).astype(best.dtype)
        least = np.minimum(wide[:-2], np.minimum(wide[1:-1], wide[2:]))
        best[:] = cost[min(t, len(cost) - 1)] + least


def lookup(fields, scalars):
    A, rate, weight = fields["A"], fields["rate"], fields["weight"]
    c, a = numbers(A), inner(A, 1)
    slot = np.clip((c(scalars.get("scale", "8")) * a(0, 0)).astype(np.int64), 0, len(rate) - 1)
    near = a(-1, 0) + a(1, 0) + a(0, -1) + a(0, 1) - c(4) * a(0, 0)
    update(A, [1, 1], [1, 1], a(0, 0) + weight[1:-1, None] * rate[slot] * near)


def wave3d(fields, scalars):
    P, U, C = fields["P"], fields["U"], fields["C"]
    number, p, u, c = numbers(U), inner(P, 1), inner(U, 1), inner(C, 1)
    near = u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) + u(0, 0, 1)
    new = number(2) * u(0, 0, 0) - p(0, 0, 0) + c(0, 0, 0) * (near - number(6) * u(0, 0, 0))
    old = u(0, 0, 0).copy()
    update(P, [1] * 3, [1] * 3, old)
    update(U, [1] * 3, [1] * 3, new)


def hotspot2d(fields, scalars):
    T, P = fields["T"], fields["P"]
    c, t, p = numbers(T), inner(T, 1), inner(P, 1)
    value = t(0, 0)
    term1 = (t(1, 0) + t(-1, 0) - c(2) * value) / c(scalars.get("Ry", "10"))
    term2 = (t(0, 1) + t(0, -1) - c(2) * value) / c(scalars.get("Rx", "10"))
    term3 = (c(80) - value) / c(scalars.get("Rz", "80"))
    update(T, [1, 1], [1, 1], value + (p(0, 0) + term1 + term2 + term3))


def gradient2d(fields, scalars):
    A = fields["A"]
    c, a = numbers(A), inner(A, 1)
    n, s, e, w = (a(0, 0) - a(*offset) for offset in ((-1, 0), (1, 0), (0, 1), (0, -1)))
    root = np.sqrt(c("1e-4") + n * n + s * s + e * e + w * w)
    update(A, [1, 1], [1, 1], a(0, 0) + c(1) / root)


def gradient(fields, scalars):
    A = fields["A"]
    c, a = numbers(A), inner(A, 1)
    n, s, e, w = (a(0, 0) - a(*offset) for offset in ((-1, 0), (1, 0), (0, 1), (0, -1)))
    update(A, [1, 1], [1, 1], a(0, 0) + c(1) / np.sqrt(c("1e-5") + n * n + s * s + e * e + w * w))


def poisson2d(fields, scalars):
    A = fields["A"]
    c, a = numbers(A), inner(A, 1)
    total = a(0, 1) + a(0, -1) + a(-1, -1) + a(1, 1) + a(-1, 0)
    total = total + a(1, 0) + a(1, 1) + a(-1, 1) + a(1, -1)
    update(A, [1, 1], [1, 1], c(8) * a(0, 0) - total)


def rician(fields, scalars):
    U, F = fields["U"], fields["F"]
    D = np.zeros_like(U)
    c, u, d, f = numbers(U), inner(U, 1), inner(D, 1), inner(F, 1)(0, 0)
    value = u(0, 0)
    n, s, e, w = (value - u(*offset) for offset in ((-1, 0), (1, 0), (0, 1), (0, -1)))
    update(D, [1, 1], [1, 1], c(1) / np.sqrt(c("1e-20") + n * n + s * s + e * e + w * w))
    sigma, strength = c(scalars.get("sigma", "1.00001")), c(scalars.get("lambda", "1.00001"))
    s2 = sigma * sigma
    gamma = strength / s2
    q = value * f / s2
    above = c("2.38944") + q * (c("0.950037") + q)
    r = q * above / (c("4.65314") + q * (c("2.57541") + q * (c("1.48937") + q)))
    near = u(-1, 0) * d(-1, 0) + u(1, 0) * d(1, 0) + u(0, 1) * d(0, 1) + u(0, -1) * d(0, -1)
    weight = d(-1, 0) + d(1, 0) + d(0, 1) + d(0, -1)
    above, below = value + c(5) * (near + gamma * f * r), c(1) + c(5) * (weight + gamma)
    update(U, [1, 1], [1, 1], above / below)


def gauss2d(fields, scalars):
    A = fields["A"]
    c, B = numbers(A), np.zeros_like(A)

    def blur(cells):
        weights = ("0.0625", "0.25", "0.375", "0.25", "0.0625")
        five = [c(weight) * cell for weight, cell in zip(weights, cells)]
        return five[0] + five[1] + five[2] + five[3] + five[4]

    update(B, [0, 2], [0, 2], blur([at(A, [0, 2], [0, 2], 0, offset) for offset in range(-2, 3)]))
    b = inner(B, 2)
    update(A, [2, 2], [2, 2], blur([b(offset, 0) for offset in range(-2, 3)]))


def fluxes2d(fields, scalars):
    A, K = fields["A"], fields["K"]
    c = numbers(A)
    dt = c(scalars.get("dt", "0.2"))
    x = c("0.5") * (K[:-1] + K[1:]) * (A[1:] - A[:-1])
    y = c("0.5") * (K[:, :-1] + K[:, 1:]) * (A[:, 1:] - A[:, :-1])
    if min(A.shape) > 2:
        gain = x[1:, 1:-1] - x[:-1, 1:-1] + y[1:-1, 1:] - y[1:-1, :-1]
        A[1:-1, 1:-1] = A[1:-1, 1:-1] + dt * gain


def burgers1d(fields, scalars):
    A = fields["A"]
    number = numbers(A)
    c = number(scalars.get("c", "0.4"))
    F = number("0.25") * (A[:-1] * A[:-1] + A[1:] * A[1:]) - number("0.5") * (A[1:] - A[:-1]) / c
    if A.size > 2:
        A[1:-1] = A[1:-1] - c * (F[1:] - F[:-1])


def ghost2d(fields, scalars):
    A = fields["A"]
    c, T = numbers(A), np.zeros([cells + 4 for cells in A.shape], A.dtype)
    T[:2], T[-2:], T[2:-2, :2], T[2:-2, -2:] = c("1.5"), c("0.25"), c("0.5"), c("0.75")
    T[2:-2, 2:-2] = A
    t = inner(T, 2)
    near = t(-2, 0) + t(-1, 0) + t(1, 0) + t(2, 0) + t(0, -2) + t(0, -1) + t(0, 1) + t(0, 2)
    A[...] = c("0.5") * t(0, 0) + c("0.0625") * near


def laser2d(fields, scalars, t):
    A = fields["A"]
    c, a = numbers(A), inner(A, 1)
    y, x = np.indices(A.shape).astype(np.int64)
    y, x = (y - 8).astype(A.dtype), (x - t).astype(A.dtype)
    S = c(scalars.get("power", "5")) / (c(1) + y * y + x * x)
    s = inner(S, 1)
    flow = a(-1, 0) + a(1, 0) + a(0, -1) + a(0, 1) - c(4) * a(0, 0)
    near = s(-1, 0) + s(1, 0) + s(0, -1) + s(0, 1) + c(4) * s(0, 0)
    update(A, [1, 1], [1, 1], a(0, 0) + c("0.2") * flow + c("0.125") * near)


def tvupdate(fields, scalars):
    U, F = fields["U"], fields["F"]
    c, u, f = numbers(U), inner(U, 1), inner(F, 1)(0, 0)
    a, V = c(scalars.get("a", "1.001")), c(scalars.get("V", "1"))

    def coefficient(down, right):
        return u(0, 0) / np.sqrt(c("1e-8") + down * down + right * right) / V

    c1 = c3 = coefficient(u(1, 0) - u(0, 0), u(0, 1) - u(0, 0))
    c2 = coefficient(u(0, 0) - u(-1, 0), u(-1, 1) - u(-1, 0))
    c4 = coefficient(u(1, -1) - u(0, -1), u(0, 0) - u(0, -1))
    total = a * f + c1 * u(1, 0) + c2 * u(-1, 0) + c3 * u(0, 1) + c4 * u(0, -1)
    update(U, [1, 1], [1, 1], total / (a + c1 + c2 + c3 + c4))


def grayscott(fields, scalars):
    U, V = fields["U"], fields["V"]
    c, feed, kill = numbers(U), scalars.get("feed", "0.037"), scalars.get("kill", "0.06")
    feed, kill = c(feed), c(kill)

    def spread(field, rate):
        x = inner(field, 1)
        near = x(-1, 0) + x(1, 0) + x(0, -1) + x(0, 1) - c(4) * x(0, 0)
        return x(0, 0) + c(rate) * near

    u, v = inner(U, 1)(0, 0), inner(V, 1)(0, 0)
    new_u = spread(U, "0.2") - u * v * v + feed * (c(1) - u)
    new_v = spread(V, "0.1") + u * v * v - (feed + kill) * v
    update(U, [1, 1], [1, 1], new_u)
    update(V, [1, 1], [1, 1], new_v)


def life2d(fields, scalars):
    A = fields["A"]
    a = inner(A, 1)
    n = sum(a(*offset) for offset in box(2, 1) if any(offset))
    update(A, [1, 1], [1, 1], (n == 3) | ((n == 2) & (a(0, 0) == 1)))


def cell3d(fields, scalars):
    A = fields["A"]
    a = inner(A, 1)
    n = sum(a(*offset) for offset in box(3, 1) if any(offset))
    update(A, [1] * 3, [1] * 3, (n == 6) | ((a(0, 0, 0) == 1) & (n >= 5) & (n <= 7)))


def flow2d(fields, scalars):
    W, F = fields["W"], fields["F"]
    c, h, v, f = numbers(W["h"]), inner(W["h"], 1), inner(W["v"], 1), inner(F, 1)
    dt = c(scalars.get("dt", "0.05"))
    slope = np.stack([h(1, 0) - h(0, 0), h(0, 1) - h(0, 0)], axis=-1)
    new = v(0, 0) + dt * (f(0, 0) - slope)
    wet = (h(0, 0) > c("0.01"))[..., None]
    update(W["v"], [1, 1], [1, 1], np.where(wet, new, c("0.5") * new))
    out = v(0, 0)[..., 0] - v(-1, 0)[..., 0] + v(0, 0)[..., 1] - v(0, -1)[..., 1]
    update(W["h"], [1, 1], [1, 1], h(0, 0) - dt * out)


def advect2d(fields, scalars):
    A = fields["A"]
    a, c = anywhere(A, "periodic"), numbers(A)(scalars.get("c", "0.3"))
    A[...] = a(0, 0) - c * (a(0, 0) - a(-1, 0)) - c * (a(0, 0) - a(0, -1))


def heat(A, a, c):
    A[...] = a(0, 0) + c("0.2") * (a(-1, 0) + a(1, 0) + a(0, -1) + a(0, 1) - c(4) * a(0, 0))


def insulated2d(fields, scalars):
    A = fields["A"]
    heat(A, anywhere(A, "nearest"), numbers(A))


def driven2d(fields, scalars):
    A = fields["A"]
    c, inside = numbers(A), anywhere(A, "nearest")
    edge = c(scalars.get("hot", "2.0")) * np.arange(A.shape[0]).astype(A.dtype)[:, None]

    def a(row, column):
        beyond = (np.arange(A.shape[1]) + column < 0)[None, :]
        return np.where(beyond, edge, inside(row, column))

    heat(A, a, c)


def blur2d(fields, scalars):
    A = fields["A"]
    a, c = anywhere(A, "reflect"), numbers(A)
    ring = a(-2, 0) + a(-1, -1) + a(-1, 1) + a(0, -2) + a(0, 2) + a(1, -1) + a(1, 1) + a(2, 0)
    A[...] = c("0.2") * a(0, 0) + c("0.1") * ring


def ring1d(fields, scalars):
    A = fields["A"]
    a, c = anywhere(A, "periodic"), numbers(A)
    A[...] = a(0) + c("0.25") * (a(-1) - c(2) * a(0) + a(1))


def torus3d(fields, scalars):
    A = fields["A"]
    a, c = anywhere(A, "periodic"), numbers(A)
    ring = a(-1, 0, 0) + a(1, 0, 0) + a(0, -1, 0) + a(0, 1, 0) + a(0, 0, -1) + a(0, 0, 1)
    A[...] = a(0, 0, 0) + c("0.1") * (ring - c(6) * a(0, 0, 0))


# Programs whose fields have boundary rules, which not every strategy knows yet.
RULED = {
    "advect2d": advect2d,
    "insulated2d": insulated2d,
    "driven2d": driven2d,
    "blur2d": blur2d,
    "ring1d": ring1d,
    "torus3d": torus3d,
}

# A program's step, the fields that are read and written, and those that are only read.
def navier_stokes(fields, scalars):
    U, V, P = fields["U"], fields["V"], fields["P"]
    D = fields.setdefault("D", np.zeros_like(U))
    c = numbers(U)
    dt, nu = c(scalars.get("dt", "0.1")), c(scalars.get("nu", "0.2"))
    u, v = inner(U, 1), inner(V, 1)
    x, y = u(0, 0).copy(), v(0, 0).copy()

    def moved(q):
        here = q(0, 0)
        spread = q(-1, 0) + q(1, 0) + q(0, -1) + q(0, 1) - c(4) * here
        carried = (x * (q(0, 1) - q(0, -1)) + y * (q(1, 0) - q(-1, 0))) / c(2)
        return here + dt * (nu * spread - carried)

    new = moved(u), moved(v)
    u(0, 0)[:], v(0, 0)[:] = new
    inner(D, 1)(0, 0)[:] = (u(0, 1) - u(0, -1) + v(1, 0) - v(-1, 0)) / (c(2) * dt)
    for _ in range(20 if P.size else 0):
        at = around(P)
        P[:] = (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - D) / c(4)
    p = inner(P, 1)
    u(0, 0)[:] -= dt * (p(0, 1) - p(0, -1)) / c(2)
    v(0, 0)[:] -= dt * (p(1, 0) - p(-1, 0)) / c(2)


PROGRAMS = {
    "navier-stokes": (navier_stokes, ["U", "V", "P"], []),
    "heat2d": (heat2d, ["A"], ["K"]),
    "fdtd2d": (fdtd2d, ["Ex", "Ey", "Hz"], []),
    "lookup": (lookup, ["A"], ["rate", "weight"]),
    "pathfinder": (pathfinder, ["best"], ["cost"]),
    "yee2d": (yee2d, ["Ex", "Ey", "Hz"], []),
    "wave2d": (wave2d, ["P", "U"], ["C"]),
    "wave3d": (wave3d, ["P", "U"], ["C"]),
    "hotspot2d": (hotspot2d, ["T"], ["P"]),
    "gradient2d": (gradient2d, ["A"], []),
    "gradient": (gradient, ["A"], []),
    "poisson2d": (poisson2d, ["A"], []),
    "rician": (rician, ["U"], ["F"]),
    "tvupdate": (tvupdate, ["U"], ["F"]),
    "gauss2d": (gauss2d, ["A"], []),
    "fluxes2d": (fluxes2d, ["A"], ["K"]),
    "burgers1d": (burgers1d, ["A"], []),
    "ghost2d": (ghost2d, ["A"], []),
    "laser2d": (laser2d, ["A"], []),
    "grayscott": (grayscott, ["U", "V"], []),
    "plate": (mean((-1, 0), (0, -1), (0, 1), (1, 0)), ["A"], []),
    "platehalo": (mean(*[offset for offset in box(2, 1) if any(offset)]), ["A"], []),
    "life2d": (life2d, ["A"], []),
    "cell3d": (cell3d, ["A"], []),
    "flow2d": (flow2d, ["W"], ["F"]),
    **{name: (step, ["A"], []) for name, step in (JACOBI | AN5D | RULED).items()},
    **{f"{name}_f64": (step, ["A"], []) for name, step in JACOBI.items()},
    **WAVEFRONTS,
    **LATTICES,
    **REDUCTIONS,
    **QUANTA,
    **PLACES,
    **WAVES,
}


def rank(name):
    """Dimensions of a program's grid; a lattice's name, such as d3q19, begins with them."""
    return 1 if "1d" in name else 3 if "3d" in name or name.startswith("d3") else 2


# Types of cells that are no single float, from the float type.
DTYPES = {
    ("acoustic2d", "y"): lambda real: np.int32,
    ("acoustic2d", "x"): lambda real: np.int32,
    ("semi-lagrange2d", "V"): lambda real: (real, (2,)),
    ("life2d", "A"): lambda real: np.uint8,
    ("ising2d", "S"): lambda real: np.int8,
    ("ising2d", "R"): lambda real: np.uint32,
    ("schroedinger2d", "P"): lambda real: np.result_type(real, np.complex64),
    ("schroedinger2d", "U"): lambda real: np.result_type(real, np.complex64),
    ("cell3d", "A"): lambda real: np.int32,
    ("flow2d", "W"): lambda real: [("h", real), ("v", real, (2,))],
    ("flow2d", "F"): lambda real: (real, (2,)),
    ("d2q9", "F"): lambda real: (real, (9,)),
    ("d3q19", "F"): lambda real: [("rest", real), ("axes", real, (6,)), ("diagonals", real, (12,))],
    ("integral-histogram", "A"): lambda real: (np.int32, (4,)),
    ("integral-histogram", "image"): lambda real: np.int32,
    ("weno1d", "u"): lambda real: np.float64,
    ("conjugate-gradients", "X"): lambda real: np.float64,
    ("conjugate-gradients", "R"): lambda real: np.float64,
    ("implicit2d", "U"): lambda real: np.float64,
    ("lower-solve", "Y"): lambda real: np.float64,
    ("lower-solve", "b"): lambda real: np.float64,
    ("lower-solve", "above"): lambda real: np.float64,
    ("lower-solve", "left"): lambda real: np.float64,
    **{
        (program, field): lambda real: np.int32
        for program, fields in SEQUENCES.items()
        for field in fields
    },
}


def dtype(program, field, double=False):
    """Type of a field's cells; `double` for f64 where the program has f32."""
    real = "<f8" if double or program.endswith("_f64") else "<f4"
    return np.dtype(DTYPES.get((program, field), lambda real: real)(real))


# Shapes of the fields, for programs whose fields lie on several grids, from the sizes N, M, ...
SHAPES = {
    **SHAPES_OF_PLACES,
    "lookup": lambda n, m: {"A": (n, m), "rate": (n + m + 1,), "weight": (n,)},
    "pathfinder": lambda n, m: {"best": (m,), "cost": (n, m)},
    **{
        name: lambda n, m, fields=fields: {**dict.fromkeys(fields, (n, m)), "p": (n,), "q": (m,)}
        for name, fields in TABLES.items()
    },
    "affine-gap-score": lambda n, m: {"last": (m,), "p": (n,), "q": (m,)},
    "yee2d": lambda n, m: {"Ex": (n, m + 1), "Ey": (n + 1, m), "Hz": (n, m)},
}

# Sizes that a program has beside N, M, ..., from these.
MORE_SIZES = {
    "lookup": lambda n, m: {"K": n + m + 1},
    "acoustic2d": lambda *_: {"NT": 5, "R": 9},
}

# The least sizes of programs that do not take all.
LEAST = {"pathfinder": (1, 2), "fluxes2d": (1, 1), "burgers1d": (1,), "needleman-wunsch": (1, 1),
         "affine-gap-score": (1, 1), "srad": (1, 1), "shallow-water": (1, 1), "weno1d": (1,),
         **LEAST_OF_PLACES}

# Programs whose steps take their number.
NUMBERED = {"pathfinder", "laser2d", "acoustic2d"}


def shapes(name, sizes):
    """The shape of each field of a program."""
    _, state, const = PROGRAMS[name]
    return SHAPES[name](*sizes) if name in SHAPES else {field: sizes for field in state + const}
