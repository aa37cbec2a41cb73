"""The programs that read values of their own sweep, in NumPy: cell by cell, in row-major order."""

import numpy as np


def sweep(field, lower, upper, value):
    """Computes the cells that lie `lower` from the first and `upper` from the last cell, in order.
    `value` gets the old values and the cell."""
    old = field.copy()
    box = [range(first, cells - last) for cells, first, last in zip(field.shape, lower, upper)]
    for cell in np.ndindex(*map(len, box)):
        at = tuple(cells[place] for cells, place in zip(box, cell))
        field[at] = value(old, *at)


def match(fields, i, j, same, other):
    """The score of a pair of letters."""
    return np.int32(same if fields["p"][i] == fields["q"][j] else other)


def smith_waterman(fields, scalars):
    H, one = fields["H"], np.int32(1)

    def score(_, i, j):
        best = max(H[i - 1, j] - one, H[i, j - 1] - one)
        return max(np.int32(0), max(H[i - 1, j - 1] + match(fields, i, j, 2, -1), best))

    sweep(H, [1, 1], [0, 0], score)


def needleman_wunsch(fields, scalars):
    H, two = fields["H"], np.int32(2)
    if H.size:
        H[:, 0] = -2 * np.arange(H.shape[0])
        H[0, 1:] = -2 * np.arange(1, H.shape[1])

    def score(_, i, j):
        best = max(H[i - 1, j] - two, H[i, j - 1] - two)
        return max(H[i - 1, j - 1] + match(fields, i, j, 1, -1), best)

    sweep(H, [1, 1], [0, 0], score)


def affine_gap(fields, scalars):
    E, F, H = fields["E"], fields["F"], fields["H"]
    one, three, zero = np.int32(1), np.int32(3), np.int32(0)

    def score(_, i, j):
        E[i, j] = max(E[i, j - 1] - one, H[i, j - 1] - three)
        F[i, j] = max(F[i - 1, j] - one, H[i - 1, j] - three)
        best = max(zero, H[i - 1, j - 1] + match(fields, i, j, 2, -1))
        return max(best, max(E[i, j], F[i, j]))

    sweep(H, [1, 1], [0, 0], score)


def affine_gap_score(fields, scalars):
    shape = len(fields["p"]), len(fields["q"])
    tables = {name: np.zeros(shape, np.int32) for name in "EFH"}
    affine_gap({**fields, **tables}, scalars)
    fields["last"][:] = tables["H"][-1]
    scores = tables["H"][1:, 1:]
    fields["end.best"] = np.max(scores, initial=np.iinfo(np.int32).min).astype(np.int32)
    fields["end"] = np.int64(np.argmax(scores) if scores.size else np.iinfo(np.int64).max)


def longest_subsequence(fields, scalars):
    L, p, q = fields["L"], fields["p"], fields["q"]

    def length(_, i, j):
        return L[i - 1, j - 1] + np.int32(1) if p[i] == q[j] else max(L[i - 1, j], L[i, j - 1])

    sweep(L, [1, 1], [0, 0], length)


def time_warping(fields, scalars):
    D, p, q = fields["D"], fields["p"], fields["q"]

    def cost(_, i, j):
        return abs(p[i] - q[j]) + min(D[i - 1, j - 1], min(D[i - 1, j], D[i, j - 1]))

    sweep(D, [1, 1], [0, 0], cost)


def summed(table, i, j, value):
    """A cell of a summed-area table, with zeros before the first row and column."""
    above = table[i - 1, j] if i else table.dtype.type(0)
    left = table[i, j - 1] if j else table.dtype.type(0)
    corner = table[i - 1, j - 1] if i and j else table.dtype.type(0)
    return value + above + left - corner


def summed_area(fields, scalars):
    A, w = fields["A"], fields["w"]
    sweep(A, [0, 0], [0, 0], lambda _, i, j: summed(A, i, j, w[i, j]))


def integral_histogram(fields, scalars):
    A, image = fields["A"], fields["image"]

    def count(_, i, j):
        level = np.fmod(image[i, j], np.int32(4))
        found = np.array([level == grey for grey in range(4)], dtype=np.int32)
        return found + A[i - 1, j] + A[i, j - 1] - A[i - 1, j - 1]

    sweep_of_vecs(A, count)


def sweep_of_vecs(field, value):
    """The same for cells of several lanes, from the second row and column on."""
    for i in range(1, field.shape[0]):
        for j in range(1, field.shape[1]):
            field[i, j] = value(None, i, j)


def heat2d_sweep(fields, scalars):
    A = fields["A"]
    four = A.dtype.type(4)

    def mean(old, i, j):
        return (A[i - 1, j] + A[i, j - 1] + old[i + 1, j] + old[i, j + 1]) / four

    sweep(A, [1, 1], [1, 1], mean)


def sor2d(fields, scalars):
    A = fields["A"]
    five = A.dtype.type(5)

    def mean(old, i, j):
        return (A[i - 1, j] + A[i, j - 1] + old[i, j] + old[i + 1, j] + old[i, j + 1]) / five

    sweep(A, [1, 1], [1, 1], mean)


def gauss_seidel3d(fields, scalars):
    A = fields["A"]
    six = A.dtype.type(6)

    def mean(old, i, j, k):
        new = A[i - 1, j, k] + A[i, j - 1, k] + A[i, j, k - 1]
        return (new + old[i, j, k + 1] + old[i, j + 1, k] + old[i + 1, j, k]) / six

    sweep(A, [1, 1, 1], [1, 1, 1], mean)


def lower_solve(fields, scalars):
    Y, b, above, left = (fields[name] for name in ("Y", "b", "above", "left"))

    def solve(_, i, j):
        return b[i, j] - above[i, j] * Y[i - 1, j] - left[i, j] * Y[i, j - 1]

    sweep(Y, [1, 1], [0, 0], solve)


def unsharp(fields, scalars):
    A = fields["A"]
    c = A.dtype.type
    S = np.zeros_like(A)
    sweep(S, [0, 0], [0, 0], lambda _, i, j: summed(S, i, j, A[i, j]))

    def sharpen(old, i, j):
        mean = S[i + 2, j + 2] - S[i - 3, j + 2] - S[i + 2, j - 3] + S[i - 3, j - 3]
        return c("1.5") * old[i, j] - c("0.02") * mean

    sweep(A, [3, 3], [2, 2], sharpen)


# The fields of whole numbers of the programs that compare two sequences, and the tables that all
# such programs fill.
SEQUENCES = {
    "smith-waterman": ["H", "p", "q"],
    "needleman-wunsch": ["H", "p", "q"],
    "affine-gap": ["H", "E", "F", "p", "q"],
    "affine-gap-score": ["last", "p", "q"],
    "longest-subsequence": ["L", "p", "q"],
}
TABLES = {
    **{
        name: [field for field in fields if field not in "pq"]
        for name, fields in SEQUENCES.items()
        if name != "affine-gap-score"
    },
    "time-warping": ["D"],
}

# Each with its step, its state fields and its const fields.
WAVEFRONTS = {
    "smith-waterman": (smith_waterman, ["H"], ["p", "q"]),
    "needleman-wunsch": (needleman_wunsch, ["H"], ["p", "q"]),
    "affine-gap": (affine_gap, ["H", "E", "F"], ["p", "q"]),
    "affine-gap-score": (affine_gap_score, ["last"], ["p", "q"]),
    "longest-subsequence": (longest_subsequence, ["L"], ["p", "q"]),
    "time-warping": (time_warping, ["D"], ["p", "q"]),
    "summed-area": (summed_area, ["A"], ["w"]),
    "integral-histogram": (integral_histogram, ["A"], ["image"]),
    "heat2d-sweep": (heat2d_sweep, ["A"], []),
    "sor2d": (sor2d, ["A"], []),
    "gauss-seidel3d": (gauss_seidel3d, ["A"], []),
    "lower-solve": (lower_solve, ["Y"], ["b", "above", "left"]),
    "unsharp": (unsharp, ["A"], []),
}
