"""Numba and Devito for some programs on a processor; an empty column where one can't be used."""

import importlib
import os
import time

import numpy

WEIGHTS = {
    "acoustic3d-order4": [-2.5, 1.3333334, -0.083333336],
    "acoustic3d-order8": [-2.8472223, 1.6, -0.2, 0.025396826, -0.0017857143],
}
REPEATS = 4


def versions():
    """Versions of the peers, as facts of a record; one may be missing, or not fit this NumPy."""
    found = {}
    for peer in ("numba", "devito"):
        try:
            found[peer] = importlib.import_module(peer).__version__
        except Exception as error:
            found[peer] = f"not usable: {type(error).__name__}"
    return found


def rate(peer, program, extents, threads, seconds):
    """Cells times steps per nanosecond; None where the peer can't be used."""
    if versions()[peer].startswith("not usable"):
        return None
    run = {"numba": by_numba, "devito": by_devito}[peer](program, extents, threads)
    run(2)
    begin = time.perf_counter()
    run(4)
    steps = max(4, int(seconds * 4 / (time.perf_counter() - begin)))
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        inner = run(steps)
        best = min(best, inner or time.perf_counter() - begin)
    return numpy.prod(extents) * steps / best * 1e-9


def by_numba(program, extents, threads):
    """Loops that Numba compiles, with `prange` over the slowest dimension and fast math."""
    import numba

    numba.set_num_threads(threads)
    source = heat_loops() if program == "heat2d" else wave_loops(WEIGHTS[program])
    names = {"numba": numba}
    exec(source, names)
    step = names["step"]
    noise = numpy.random.default_rng(1)
    a, b, k = (noise.random(extents, dtype=numpy.float32) for _ in range(3))
    b[...] = a

    def run(steps):
        first, second = a, b
        for _ in range(steps):
            step(first, second, k)
            first, second = second, first

    return run


def heat_loops():
    return """
@numba.njit(parallel=True, fastmath=True)
def step(a, b, k):
    for i in numba.prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = a[i, j] + numba.float32(0.1) * k[i, j] * (
                a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
                - numba.float32(4) * a[i, j])
"""


def wave_loops(weights):
    """The pressure before this step is in the array that takes the next one."""
    radius = len(weights) - 1
    constant = "numba.float32({})".format
    terms = [f"{constant(3 * weights[0])} * u[i, j, k]"]
    for away, weight in enumerate(weights[1:], 1):
        cells = [f"u[i + {s}, j, k] + u[i, j + {s}, k] + u[i, j, k + {s}]" for s in (-away, away)]
        terms.append(f"{constant(weight)} * ({' + '.join(cells)})".replace("+ -", "- "))
    return f"""
@numba.njit(parallel=True, fastmath=True)
def step(u, p, c):
    for i in numba.prange({radius}, u.shape[0] - {radius}):
        for j in range({radius}, u.shape[1] - {radius}):
            for k in range({radius}, u.shape[2] - {radius}):
                p[i, j, k] = numba.float32(2) * u[i, j, k] - p[i, j, k] + c[i, j, k] * (
                    {' + '.join(terms)})
"""


def by_devito(program, extents, threads):
    """Devito's C with OpenMP; the time is that of the operator's own loops."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import devito

    devito.configuration["language"] = "openmp"
    devito.configuration["log-level"] = "ERROR"
    grid = devito.Grid(shape=extents, extent=[n - 1 for n in extents], dtype=numpy.float32)
    order = {"heat2d": 2, "acoustic3d-order4": 4, "acoustic3d-order8": 8}[program]
    times = 1 if program == "heat2d" else 2
    field = devito.TimeFunction(name="u", grid=grid, space_order=order, time_order=times)
    rates = devito.Function(name="c", grid=grid)
    rates.data[...] = 0.1
    if program == "heat2d":
        update = field + 0.1 * rates * field.laplace
    else:
        update = 2 * field - field.backward + rates * field.laplace
    operator = devito.Operator([devito.Eq(field.forward, update)])

    def run(steps):
        field.data[...] = 1.0
        summary = operator.apply(time_m=1, time_M=steps, dt=1.0)
        return sum(part.time for part in summary.values())

    return run
