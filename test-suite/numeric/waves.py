"""Programs of waves in three dimensions, of higher order."""

from cells import inner, numbers, update


def acoustic(weights):
    """The wave equation by second derivatives with these weights: of the cell, then of the sum of
    its two neighbours at each distance."""
    first, *others = weights
    radius = len(others)

    def step(fields, scalars):
        P, U, C = fields["P"], fields["U"], fields["C"]
        number, p, u, c = numbers(U), inner(P, radius), inner(U, radius), inner(C, radius)

        def second(dimension):
            total = number(first) * u(0, 0, 0)
            for distance, weight in enumerate(others, 1):
                before, behind = ([0] * 3 for _ in range(2))
                before[dimension], behind[dimension] = -distance, distance
                total = total + number(weight) * (u(*before) + u(*behind))
            return total

        all_three = second(0) + second(1) + second(2)
        new = number(2) * u(0, 0, 0) - p(0, 0, 0) + c(0, 0, 0) * all_three
        old = u(0, 0, 0).copy()
        update(P, [radius] * 3, [radius] * 3, old)
        update(U, [radius] * 3, [radius] * 3, new)

    return step


def elastic3d(fields, scalars):
    rim = [2] * 3
    c = numbers(fields["VX"])
    rate, here = c(scalars.get("rate", "0.2")), (0, 0, 0)
    read = {name: inner(field, 2) for name, field in fields.items()}

    def slope(name, dimension, first):
        """The derivative from four cells in a row, the first so many before the point."""
        cells = [[0] * 3 for _ in range(4)]
        for number, cell in enumerate(cells):
            cell[dimension] = first + number
        before2, before, behind, behind2 = (read[name](*cell) for cell in cells)
        return c("1.125") * (behind - before) - c("0.041666668") * (behind2 - before2)

    z, y, x = range(3)
    changes = {
        "VX": (slope("XX", x, -1), slope("XY", y, -2), slope("XZ", z, -2)),
        "VY": (slope("XY", x, -2), slope("YY", y, -1), slope("YZ", z, -2)),
        "VZ": (slope("XZ", x, -2), slope("YZ", y, -2), slope("ZZ", z, -1)),
    }
    new = {name: read[name](*here) + rate * (a + b + d) for name, (a, b, d) in changes.items()}
    for name, values in new.items():
        update(fields[name], rim, rim, values)
    along = {"XX": slope("VX", x, -2), "YY": slope("VY", y, -2), "ZZ": slope("VZ", z, -2)}
    stiff, shear = read["lambda"](*here), read["mu"](*here)
    everywhere = stiff * (along["XX"] + along["YY"] + along["ZZ"])
    new = {name: read[name](*here) + everywhere + c(2) * shear * rate_of
           for name, rate_of in along.items()}
    across = {
        "XY": slope("VX", y, -1) + slope("VY", x, -1),
        "XZ": slope("VX", z, -1) + slope("VZ", x, -1),
        "YZ": slope("VY", z, -1) + slope("VZ", y, -1),
    }
    new |= {name: read[name](*here) + shear * both for name, both in across.items()}
    for name, values in new.items():
        update(fields[name], rim, rim, values)


WAVES = {
    "acoustic3d-order4": (acoustic(["-2.5", "1.3333334", "-0.083333336"]), ["P", "U"], ["C"]),
    "acoustic3d-order8": (
        acoustic(["-2.8472223", "1.6", "-0.2", "0.025396826", "-0.0017857143"]), ["P", "U"], ["C"],
    ),
    "elastic3d": (
        elastic3d, ["VX", "VY", "VZ", "XX", "YY", "ZZ", "XY", "XZ", "YZ"], ["lambda", "mu"],
    ),
}
