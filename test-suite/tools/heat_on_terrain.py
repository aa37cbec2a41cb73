"""The demonstration's inputs and its check, in NumPy: shares no code with the compiler.

heat_on_terrain.py conductivity TERRAIN K
    writes K, the conductivity, of the terrain's shape: 0 at the western edge, 1 at the eastern one.
heat_on_terrain.py check TERRAIN K RESULT STEPS ALPHA
    computes in f64 what RESULT should be and fails where it differs by more than f32 explains.
"""

import sys

import numpy as np


def conductivity(terrain):
    rows, columns = terrain.shape
    return np.tile(np.linspace(0, 1, columns, dtype=np.float32), (rows, 1))


def heat(field, k, steps, alpha):
    """The equation of programs/heat2d.stencil: explicit Euler steps, the rim held fixed."""
    field = field.astype(np.float64)
    factor = alpha * k.astype(np.float64)[1:-1, 1:-1]
    for _ in range(steps):
        inner = field[1:-1, 1:-1]
        neighbours = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
        field[1:-1, 1:-1] = inner + factor * (neighbours - 4 * inner)
    return field


def check(terrain, k, result, steps, alpha):
    if result.shape != terrain.shape or result.dtype != terrain.dtype:
        found, wanted = f"{result.shape} {result.dtype}", f"{terrain.shape} {terrain.dtype}"
        sys.exit(f"the result is {found}, not {wanted}")
    rim = np.ones(terrain.shape, dtype=bool)
    rim[1:-1, 1:-1] = False
    if not np.array_equal(result[rim], terrain[rim]):
        sys.exit("the rim, which no function writes, has changed")
    difference = np.abs(result - heat(terrain, k, steps, alpha))
    # A step rounds about eight times, by up to half a unit in the last place of the largest value
    # each. Signs are as good as random and a step averages, so the sum grows with the root of the
    # steps.
    tolerance = 4 * np.sqrt(steps) * np.spacing(np.abs(terrain).max())
    row, column = np.unravel_index(np.argmax(difference), difference.shape)
    largest = difference[row, column]
    if not largest <= tolerance:
        sys.exit(f"differs from NumPy by {largest:.3g} at [{row}, {column}]; "
                 f"rounding explains {tolerance:.3g}")
    print(f"equals NumPy's f64 result within {largest:.2g} "
          f"(rounding explains up to {tolerance:.2g})")


def main(arguments):
    match arguments:
        case ["conductivity", terrain, k]:
            np.save(k, conductivity(np.load(terrain)))
        case ["check", terrain, k, result, steps, alpha]:
            check(np.load(terrain), np.load(k), np.load(result), int(steps), float(alpha))
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
