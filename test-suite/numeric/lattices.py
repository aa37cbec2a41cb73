"""Lattice Boltzmann programs, written once more in NumPy.

The populations of a cell are an array's last dimension. Each direction of a lattice is given as the
move of its population, slowest dimension first; opposite directions stand in pairs.
"""

import numpy as np

from cells import at, inner, numbers, update

D2Q9 = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)]


def total(terms):
    """The sum of signed terms from left to right; the first has the sign +."""
    result = terms[0][1]
    for sign, term in terms[1:]:
        result = result + term if sign > 0 else result - term
    return result


def velocity(f, moves, dimension):
    """The momentum along a dimension: each population with a component there, by its sign."""
    return total([
        (move[dimension], f[..., q]) for q, move in enumerate(moves) if move[dimension]
    ])


def d2q9(fields, scalars):
    F = fields["F"]
    if min(F.shape[:2]) < 3:
        return
    c = numbers(F)
    omega, lid = c(scalars.get("omega", "1.2")), c(scalars.get("lid", "0.05"))
    rows, columns = F.shape[0], F.shape[1]
    f = np.stack([
        at(F[..., q], [1, 1], [1, 1], -move[0], -move[1]) for q, move in enumerate(D2Q9)
    ], axis=-1)
    here = F[1:-1, 1:-1]
    i, j = np.indices((rows, columns))[:, 1:-1, 1:-1]
    for q, (down, right) in list(enumerate(D2Q9))[1:]:
        opposite = here[..., q + 1 if q % 2 else q - 1]
        # The cell that the population comes from is in the rim: a wall.
        beside = (right == 1) & (j == 1) | (right == -1) & (j == columns - 2)
        below = (down == -1) & (i == rows - 2)
        above = (down == 1) & (i == 1)
        drag = {1: opposite + lid / c(6), -1: opposite - lid / c(6), 0: opposite}[right]
        f[..., q] = np.where(above, drag, np.where(beside | below, opposite, f[..., q]))
    rho = total([(1, f[..., q]) for q in range(9)])
    x, y = velocity(f, D2Q9, 1) / rho, velocity(f, D2Q9, 0) / rho
    none = np.zeros_like(x)
    along = np.stack([none, x, -x, y, -y, x + y, -x - y, y - x, x - y], axis=-1)
    weight = np.array([4] + [1] * 8).astype(F.dtype) / np.array([9] * 5 + [36] * 4).astype(F.dtype)
    square = (x * x + y * y)[..., None]
    series = c(1) + c(3) * along + c("4.5") * along * along - c("1.5") * square
    here[...] = f + omega * (rho[..., None] * weight * series - f)


D3Q19 = [
    (0, 0, 1), (0, 0, -1), (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0),
    (0, 1, 1), (0, -1, -1), (0, 1, -1), (0, -1, 1), (1, 0, 1), (-1, 0, -1),
    (1, 0, -1), (-1, 0, 1), (1, 1, 0), (-1, -1, 0), (1, -1, 0), (-1, 1, 0),
]


def d3q19(fields, scalars):
    F = fields["F"]
    omega = numbers(F["rest"])(scalars.get("omega", "1.2"))
    c = numbers(F["rest"])
    r = F["rest"]
    moving = np.concatenate([F["axes"], F["diagonals"]], axis=-1)
    # np.roll takes each population from the neighbour that it comes from, around the box.
    f = np.stack([
        np.roll(moving[..., q], move, axis=(0, 1, 2)) for q, move in enumerate(D3Q19)
    ], axis=-1)
    rho = total([(1, r), *[(1, f[..., q]) for q in range(18)]])
    x, y, z = (velocity(f, D3Q19, dimension) / rho for dimension in (2, 1, 0))
    still = (c(1) - c("1.5") * (x * x + y * y + z * z))[..., None]
    axes = np.stack([x, -x, y, -y, z, -z], axis=-1)
    diagonals = np.stack([
        x + y, -x - y, y - x, x - y, x + z, -x - z, z - x, x - z, y + z, -y - z, z - y, y - z
    ], axis=-1)

    def relaxed(old, along, part):
        series = still + c(3) * along + c("4.5") * along * along
        return old + omega * ((rho / c(part))[..., None] * series - old)

    a, d = relaxed(f[..., :6], axes, 18), relaxed(f[..., 6:], diagonals, 36)
    F["rest"] = r + omega * (rho / c(3) * still[..., 0] - r)
    F["axes"], F["diagonals"] = a, d


# A program's step, the fields that are read and written, and those that are only read.
LATTICES = {"d2q9": (d2q9, ["F"], []), "d3q19": (d3q19, ["F"], [])}
