"""Programs whose step is one sum of weighted cells of one field."""

from itertools import product

from cells import inner, numbers, update


def weighted(radius, divisor, *terms):
    """The sum of weights times neighbours, in order, over a divisor. A term is a weight (none for
    1) with an offset; a divisor of none divides by nothing."""

    def step(fields, scalars):
        A = fields["A"]
        c, a = numbers(A), inner(A, radius)
        values = [a(*at) if weight is None else c(weight) * a(*at) for weight, at in terms]
        total = values[0]
        for value in values[1:]:
            total = total + value
        total = total if divisor is None else total / c(divisor)
        update(A, [radius] * A.ndim, [radius] * A.ndim, total)

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


def box(rank, radius):
    """Offsets of a box, the last dimension fastest."""
    return list(product(range(-radius, radius + 1), repeat=rank))


def star(rank, radius):
    """Offsets of a star, the last dimension innermost:
    `(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)`."""
    steps = [(along, o) for along in range(rank) for o in range(-radius, 0)]
    away = [tuple(o if d == along else 0 for d in range(rank)) for along, o in steps]
    back = [tuple(-o for o in offset) for offset in reversed(away)]
    return [*away, (0,) * rank, *back]


def constant(offsets, centre, places=5):
    """The sum of different weights times cells, which add up to about 1. The weight of the centre
    is given. Those of the others rise evenly around their mean m, by m / 5 in all, and are rounded
    to some decimal places: the k-th of n is m * (1 + (k - (n - 1) / 2) / (5 * n))."""
    radius = max(offsets[-1])
    others = [offset for offset in offsets if any(offset)]
    n, m = len(others), (1 - float(centre)) / (len(offsets) - 1)
    weight = lambda k: f"{m * (1 + (k - (n - 1) / 2) / (5 * n)):.{places}f}"
    weights = {offset: weight(k) for k, offset in enumerate(others)}
    return weighted(radius, None, *[(weights.get(offset, centre), offset) for offset in offsets])


JACOBI = {
    "jacobi1d3": mean(*box(1, 1)),
    "jacobi1d5": mean(*box(1, 2)),
    "jacobi1d7": mean(*box(1, 3)),
    "jacobi2d": mean(*star(2, 1)),
    "jacobi3d": mean(*star(3, 1)),
}

# The AN5D set: programs of one field and one sum of weighted cells.
AN5D = {
    "j2d5pt": weighted(1, 118, *row("5.1 12.1 15 12.2 5.2", *star(2, 1))),
    "j2d9pt": weighted(2, 118, *row("7.1 5.1 9.2 12.1 15 12.2 9.1 5.2 7.2", *star(2, 2))),
    "j2d9pt-gol": weighted(1, 118, *row("7.1 5.1 9.2 12.1 15 12.2 9.1 5.2 7.2", *box(2, 1))),
    "j3d27pt": weighted(1, 159, *row("3.2 4.5 5.8 7.8 9.7 7.8 5.8 4.5 3.2 "
                                     "3.3 4.6 5.9 7.8 9.8 7.8 5.9 4.6 3.3 "
                                     "3.4 4.7 6 7.9 9.8 7.9 6 4.7 3.4", *box(3, 1))),
    "star2d1r": weighted(1, None, *row("0.1873 0.1876 0.25 0.1877 0.1874", *star(2, 1))),
    "star3d1r": weighted(1, None, *row("0.1248 0.1249 0.125 0.25 0.1251 0.1252 0.1253",
                                       *star(3, 1))),
    "box2d1r": constant(box(2, 1), "0.2"),
    **{f"star2d{r}r": constant(star(2, r), "0.25") for r in (2, 3, 4)},
    **{f"star3d{r}r": constant(star(3, r), "0.25") for r in (2, 3, 4)},
    **{f"box2d{r}r": constant(box(2, r), "0.1") for r in (2, 3, 4)},
    **{f"box3d{r}r": constant(box(3, r), "0.1", places=7) for r in (1, 2, 3, 4)},
}
