"""The programs of the test suite in NumPy that read fields at computed places."""

import numpy as np

from cells import at, inner, numbers, update


def acoustic2d(fields, scalars, t):
    P, U, C, trace, source = (fields[name] for name in ("P", "U", "C", "trace", "source"))
    c, (n, m) = numbers(U), U.shape
    i, j = np.indices(U.shape)
    rim = np.minimum(np.minimum(i, n - 1 - i), np.minimum(j, m - 1 - j))
    depth = ((20 - rim) * (20 - rim)).astype(U.dtype)
    slowed = np.where(rim < 20, c(1) - c("0.001") * depth, c(1))
    here = (i == int(scalars.get("row", 100))) & (j == int(scalars.get("column", 150)))
    pushed = np.where(here, source[min(t, len(source) - 1)], c(0))
    u, p, speed, slow, push = (inner(field, 1) for field in (U, P, C, slowed, pushed))
    old = u(0, 0).copy()
    near = u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - c(4) * old
    new = old + slow(0, 0) * (old - p(0, 0)) + speed(0, 0) * near + push(0, 0)
    update(P, [1, 1], [1, 1], old)
    update(U, [1, 1], [1, 1], new)
    if t < len(trace):
        trace[t] = U[fields["y"].clip(0, n - 1), fields["x"].clip(0, m - 1)]


def multigrid2d(fields, scalars):
    U, F = fields["U"], fields["F"]
    c = numbers(U)
    u, f = inner(U, 1), inner(F, 1)(0, 0)

    def around(at):
        return at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)

    def relax(at, force, times):
        for _ in range(times):
            at(0, 0)[:] = at(0, 0) + c("0.2") * (force + around(at) - c(4) * at(0, 0))

    def residual():
        return f + (around(u) - c(4) * u(0, 0))

    def half(a, b, d):
        return c("0.25") * a + c("0.5") * b + c("0.25") * d

    relax(u, f, 3)
    S = np.zeros_like(U)
    inner(S, 1)(0, 0)[:] = residual()
    coarse = (U.shape[0] // 2 + 1, U.shape[1] // 2 + 1)
    E = np.zeros(coarse, U.dtype)
    rows, columns = 2 * np.arange(1, coarse[0] - 1), 2 * np.arange(1, coarse[1] - 1)
    s = lambda di, dj: S[np.ix_(rows + di, columns + dj)]
    D = c(4) * half(*(half(*(s(di, dj) for dj in (-1, 0, 1))) for di in (-1, 0, 1)))
    relax(inner(E, 1), D, 60)
    i, j = np.arange(1, U.shape[0] - 1), np.arange(1, U.shape[1] - 1)
    e = lambda di, dj: E[np.ix_((i + di) // 2, (j + dj) // 2)]
    u(0, 0)[:] += c("0.25") * (e(0, 0) + e(1, 0) + (e(0, 1) + e(1, 1)))
    relax(u, f, 3)
    fields["worst"] = np.max(abs(residual()), initial=-np.inf).astype(U.dtype)
    return fields["worst"] < c(scalars.get("tolerance", "1e-4"))


def semi_lagrange2d(fields, scalars):
    A, V = fields["A"], fields["V"]
    c, (n, m) = numbers(A), A.shape
    dt = c(scalars.get("dt", "4"))
    i, j = (index.astype(A.dtype) for index in np.indices(A.shape))
    y, x = i - dt * V[..., 0], j - dt * V[..., 1]
    k, l = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    below, right = y - np.floor(y), x - np.floor(x)
    a = lambda di, dj: A[(k + di).clip(0, n - 1), (l + dj).clip(0, m - 1)]
    between = lambda p, q, part: p + part * (q - p)
    above = between(a(0, 0), a(0, 1), right)
    A[...] = between(above, between(a(1, 0), a(1, 1), right), below)


# A program's step, the fields that are read and written, and those that are only read.
PLACES = {
    "acoustic2d": (acoustic2d, ["P", "U", "trace"], ["C", "source", "y", "x"]),
    "multigrid2d": (multigrid2d, ["U"], ["F"]),
    "semi-lagrange2d": (semi_lagrange2d, ["A"], ["V"]),
}

# Shapes of the fields on several grids, from the sizes N and M.
SHAPES_OF_PLACES = {
    "acoustic2d": lambda n, m: {
        **dict.fromkeys("PUC", (n, m)),
        "trace": (5, 9),
        "source": (5,),
        **dict.fromkeys("yx", (9,)),
    },
    "multigrid2d": lambda n, m: dict.fromkeys("UF", (2 * n + 1, 2 * m + 1)),
}

# The least sizes of programs that do not take all.
LEAST_OF_PLACES = {"acoustic2d": (1, 1), "semi-lagrange2d": (1, 1)}
