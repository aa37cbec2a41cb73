"""The programs of the test suite, written once more in NumPy.

One function a program takes its fields by name and makes one step of them, in place. Every operation
is NumPy's own in the type of the field, in the order in which the program has it, so that results
agree bit for bit with any target that neither contracts nor re-associates.
"""

import numpy as np


def at(field, lower, upper, *offset):
    """A view of the box that lies `lower` cells from the first and `upper` cells from the last cell
    of each dimension, moved by an offset; empty where the grid is too small for it."""
    cut = []
    for cells, first, last, moved in zip(field.shape, lower, upper, offset):
        start = first + moved
        cut.append(slice(start, start + max(cells - first - last, 0)))
    return field[tuple(cut)]


def update(field, lower, upper, value):
    """Writes the new values of a box."""
    at(field, lower, upper, *[0] * field.ndim)[...] = value


def inner(field, radius):
    """Reads at offsets from the points that are at least `radius` cells away from the rim."""
    margin = [radius] * field.ndim
    return lambda *offset: at(field, margin, margin, *offset)


def numbers(field):
    """Makes a number of the field's type, rounded once from the decimal text, as the language has it."""
    return lambda text: np.array(str(text)).astype(field.dtype)[()]


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


def weighted(radius, divisor, *terms):
    """The sum of weights times neighbours, in order, over a divisor. A term is a weight (none for 1)
    with an offset; a divisor of none divides by nothing."""

    def step(fields, scalars):
        A = fields["A"]
        c, a = numbers(A), inner(A, radius)
        values = [a(*offset) if weight is None else c(weight) * a(*offset) for weight, offset in terms]
        total = values[0]
        for value in values[1:]:
            total = total + value
        update(A, [radius] * A.ndim, [radius] * A.ndim, total if divisor is None else total / c(divisor))

    return step


def row(weights, *offsets):
    """Weights in words with their offsets."""
    weights = weights.split()
    assert len(weights) == len(offsets)
    return list(zip(weights, offsets))


def mean(*offsets):
    """The mean of the cells at some offsets."""
    radius = max(abs(o) for offset in offsets for o in offset)
    return weighted(radius, len(offsets), *[(None, offset) for offset in offsets])


def square(radius):
    """Offsets of a box, row by row."""
    reach = range(-radius, radius + 1)
    return [(i, j) for i in reach for j in reach]


def cube(radius):
    """Offsets of a 3-D box, row by row."""
    reach = range(-radius, radius + 1)
    return [(i, j, k) for i in reach for j in reach for k in reach]


STAR5 = [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)]
STAR9 = [(-2, 0), (-1, 0), (0, -2), (0, -1), (0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]
STAR7 = [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]
STAR13 = [(-2, 0, 0), (-1, 0, 0), (0, -2, 0), (0, -1, 0), (0, 0, -2), (0, 0, -1), (0, 0, 0),
          (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 2, 0), (1, 0, 0), (2, 0, 0)]

JACOBI = {
    "jacobi1d3": mean((-1,), (0,), (1,)),
    "jacobi1d5": mean(*[(i,) for i in range(-2, 3)]),
    "jacobi1d7": mean(*[(i,) for i in range(-3, 4)]),
    "jacobi2d": mean(*STAR5),
    "jacobi3d": mean(*STAR7),
}

# A program's step, the fields that are read and written, and those that are only read.
PROGRAMS = {
    "heat2d": (heat2d, ["A"], ["K"]),
    "fdtd2d": (fdtd2d, ["Ex", "Ey", "Hz"], []),
    "yee2d": (yee2d, ["Ex", "Ey", "Hz"], []),
    "wave3d": (wave3d, ["P", "U"], ["C"]),
    "hotspot2d": (hotspot2d, ["T"], ["P"]),
    "gradient2d": (gradient2d, ["A"], []),
    **{name: (step, ["A"], []) for name, step in JACOBI.items()},
    **{f"{name}_f64": (step, ["A"], []) for name, step in JACOBI.items()},
    "j2d5pt": (weighted(1, 118, *row("5.1 12.1 15 12.2 5.2", *STAR5)), ["A"], []),
    "j2d9pt": (weighted(2, 118, *row("7.1 5.1 9.2 12.1 15 12.2 9.1 5.2 7.2", *STAR9)), ["A"], []),
    "j2d9pt-gol": (weighted(1, 118, *row("7.1 5.1 9.2 12.1 15 12.2 9.1 5.2 7.2", *square(1))), ["A"], []),
    "j3d27pt": (weighted(1, 159, *row("3.2 4.5 5.8 7.8 9.7 7.8 5.8 4.5 3.2 3.3 4.6 5.9 7.8 9.8 7.8 5.9 4.6 3.3 "
                                      "3.4 4.7 6 7.9 9.8 7.9 6 4.7 3.4", *cube(1))), ["A"], []),
    "box2d1r": (weighted(1, None, *row("0.09125 0.09375 0.09625 0.09875 0.2 0.10125 0.10375 0.10625 0.10875",
                                       *square(1))), ["A"], []),
    "box2d2r": (weighted(2, None, *row("0.03391 0.03422 0.03453 0.03484 0.03516 0.03547 0.03578 0.03609 0.03641 "
                                       "0.03672 0.03703 0.03734 0.1 0.03766 0.03797 0.03828 0.03859 0.03891 0.03922 "
                                       "0.03953 0.03984 0.04016 0.04047 0.04078 0.04109", *square(2))), ["A"], []),
    "star2d1r": (weighted(1, None, *row("0.1873 0.1876 0.25 0.1877 0.1874", *STAR5)), ["A"], []),
    "star2d2r": (weighted(2, None, *row("0.08555 0.08789 0.09023 0.09258 0.25 0.09492 0.09727 0.09961 0.10195",
                                        *STAR9)), ["A"], []),
    "star3d1r": (weighted(1, None, *row("0.1248 0.1249 0.125 0.25 0.1251 0.1252 0.1253", *STAR7)), ["A"], []),
    "star3d2r": (weighted(2, None, *row("0.05677 0.05781 0.05885 0.0599 0.06094 0.06198 0.25 0.06302 0.06406 0.0651 "
                                        "0.06615 0.06719 0.06823", *STAR13)), ["A"], []),
}


def rank(name):
    """Dimensions of a program's grid."""
    return 1 if "1d" in name else 3 if "3d" in name else 2


def dtype(name):
    """Type of a program's cells."""
    return np.float64 if name.endswith("_f64") else np.float32


# Shapes of the fields, for programs whose fields lie on several grids, from the sizes N, M, ...
SHAPES = {
    "yee2d": lambda n, m: {"Ex": (n, m + 1), "Ey": (n + 1, m), "Hz": (n, m)},
}


def shapes(name, sizes):
    """The shape of each field of a program."""
    _, state, const = PROGRAMS[name]
    return SHAPES[name](*sizes) if name in SHAPES else {field: sizes for field in state + const}
