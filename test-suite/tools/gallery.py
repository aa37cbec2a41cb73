"""Inputs of the pictures in docs/gallery.md, and how near a result comes to what it should be.

gallery.py inputs FOLDER
    writes the inputs into FOLDER, made where it is missing; noise comes from a fixed seed.
gallery.py match SERIES OTHER COSTS PATH
    prints the cost of the best match of two series by time warping, from the costs of the best
    matches of their beginnings. Writes these costs up to five times that of the best match, whose
    cells have the highest. Fails where a cost differs from NumPy's.
gallery.py stack PATTERN STACK
    writes rows, the arrays of all files of a pattern in the order of the steps in their names, into
    one array; prints how many there are.
gallery.py psnr CLEAN BEFORE AFTER
    prints the peak signal-to-noise ratio of both images against the clean one, for a peak of 1, and
    fails where the second is not at least 3 dB above the first.
"""

import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "data"


def inputs(folder):
    folder.mkdir(parents=True, exist_ok=True)

    def save(name, array):
        np.save(folder / f"{name}.npy", array.astype(np.float32))

    random = np.random.default_rng(2012)
    # The magnitude of a complex signal with Gaussian noise in both parts is what a scanner shows.
    mri = np.load(DATA / "mri.npy").astype(np.float64)
    real, imaginary = random.normal(0, 0.08, (2, *mri.shape))
    save("mri", np.hypot(mri + real, imaginary))
    camera = np.load(DATA / "camera.npy").astype(np.float64)
    save("camera", np.clip(camera + random.normal(0, 0.1, camera.shape), 0, None))

    # Speckle multiplies: it is as strong as the echo beneath it. Nothing is without echo.
    echo = 0.1 + 0.9 * mri
    save("echo", echo)
    save("speckled", echo * np.random.default_rng(2002).gamma(16, 1 / 16, mri.shape))

    # A drop beside a disc in which waves are half as fast.
    y, x = np.mgrid[0:400, 0:600]
    drop = np.exp(-((y - 200.0) ** 2 + (x - 120) ** 2) / 50)
    save("drop", drop)
    save("speed", np.where((y - 200) ** 2 + (x - 330) ** 2 < 90**2, 0.1, 0.4))

    # Two profiles of the terrain, 20 rows apart. The costs' rims are matches with one cell of the
    # other series.
    terrain = np.load(DATA / "dem.npy").astype(np.float32)
    series, other = terrain[100], terrain[120]
    save("series", series)
    save("other", other)
    save("rims", rims(series, other))

    # A short pulse in rock with a fast layer; receivers along a row near the surface.
    time = np.arange(1000.0)
    phase = (np.pi * (time - 60) / 45) ** 2
    save("pulse", (1 - 2 * phase) * np.exp(-phase))
    rock = np.full((400, 600), 0.12)
    rock[220:300] = 0.36
    save("rock", rock)
    np.save(folder / "rows.npy", np.full(100, 40, np.int32))
    np.save(folder / "columns.npy", np.linspace(30, 570, 100).astype(np.int32))

    # A box whose lid moves.
    lid = np.zeros((128, 128))
    lid[0] = 1
    save("lid", lid)

    # Spins in disorder, and a state of xor-shift for each.
    spins = random.choice(np.array([-1, 1], np.int8), (400, 600))
    np.save(folder / "spins.npy", spins)
    np.save(folder / "states.npy", random.integers(1, 2**32, spins.shape, np.uint32))

    # Gosper's gun, which sends out a glider every 30 steps; a row for each line.
    gun = """
    ........................#
    ......................#.#
    ............##......##............##
    ...........#...#....##............##
    ##........#.....#...##
    ##........#...#.##....#.#
    ..........#.....#.......#
    ...........#...#
    ............##""".split()
    life = np.zeros((200, 300), np.uint8)
    for row, cells in enumerate(gun):
        for column, cell in enumerate(cells):
            life[row + 5, column + 5] = cell == "#"
    np.save(folder / "life.npy", life)

    # A vortex that turns faster the nearer to its middle.
    y, x = np.mgrid[0:512, 0:512] - 255.5
    speed = 0.02 * np.exp(-(y**2 + x**2) / 150**2)
    save("vortex", np.stack([speed * x, -speed * y], axis=-1))

    # Two charges; a frame that is bent up and down.
    y, x = np.mgrid[0:200, 0:300]
    spot = lambda row, column: np.exp(-((y - row) ** 2 + (x - column) ** 2) / 20)
    np.save(folder / "charges.npy", 0.05 * (spot(100, 90) - spot(100, 210)))
    edges = np.zeros((257, 385))
    edges[0], edges[-1] = (sign * np.sin(np.linspace(0, 2 * np.pi, 385)) for sign in (1, -1))
    save("edges", edges)

    # A packet on its way to a wall with two slits, now and a step of 0.1 before.
    y, x = np.mgrid[0:300, 0:400]
    packet = np.exp(-((x - 100.0) ** 2 + (y - 150) ** 2) / 1000 + 0.8j * x)
    packet[[0, -1]], packet[:, [0, -1]] = 0, 0
    slits = np.where((x >= 160) & (x < 166), 5, 0)
    for row in (130, 170):
        slits[row - 6 : row + 6] = 0
    save("slits", slits)
    np.save(folder / "packet.npy", packet.astype(np.complex64))
    before = packet * np.exp(0.1j * (1 - np.cos(0.8)))
    np.save(folder / "packet-before.npy", before.astype(np.complex64))

    # Water behind a round dam that breaks; three hills that become shocks.
    y, x = np.mgrid[0:200, 0:300]
    save("dam", np.where((y - 70) ** 2 + (x - 110) ** 2 < 40**2, 1.0, 0.0))
    x = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    np.save(folder / "hills.npy", np.sin(x) + 0.5 * np.sin(3 * x))

    # U is everywhere, V in some spots.
    u, v = np.ones((2, 256, 256)) * [[[1.0]], [[0.0]]]
    for row, column in random.integers(10, 240, (20, 2)):
        u[row : row + 6, column : column + 6], v[row : row + 6, column : column + 6] = 0.5, 0.25
    save("u", u)
    save("v", v)


def rims(series, other):
    costs = np.zeros((len(series), len(other)), np.float32)
    costs[0] = np.cumsum(np.abs(series[0] - other), dtype=np.float32)
    costs[:, 0] = np.cumsum(np.abs(series - other[0]), dtype=np.float32)
    return costs


def best_match(series, other, found):
    """The cells of the best match."""
    costs = rims(series, other)
    for i in range(1, len(series)):
        apart = np.abs(series[i] - other)
        for j in range(1, len(other)):
            before = min(costs[i - 1, j - 1], costs[i - 1, j], costs[i, j - 1])
            costs[i, j] = apart[j] + before
    if not np.array_equal(costs, found):
        sys.exit("the costs differ from NumPy's")
    i, j = len(series) - 1, len(other) - 1
    path = [(i, j)]
    while i or j:
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min((cell for cell in before if min(cell) >= 0), key=lambda cell: costs[cell])
        path.append((i, j))
    return path


def psnr(image, clean):
    """Decibels."""
    error = np.mean((image.astype(np.float64) - clean.astype(np.float64)) ** 2)
    return -10 * np.log10(error)


def main(arguments):
    match arguments:
        case ["inputs", folder]:
            inputs(Path(folder))
        case ["psnr", clean, before, after]:
            clean, before, after = np.load(clean), np.load(before), np.load(after)
            first, second = psnr(before, clean), psnr(after, clean)
            print(f"PSNR {first:.1f} dB before, {second:.1f} dB after")
            if second < first + 3:
                sys.exit("the noise is still there")
        case ["stack", pattern, stack]:
            files = Path(pattern).parent.glob(Path(pattern).name)
            files = sorted(files, key=lambda file: int(file.stem.rpartition("-")[2]))
            np.save(stack, np.stack([np.load(file) for file in files]).astype(np.float32))
            print(f"{len(files)} rows")
        case ["match", series, other, costs, path]:
            series, other, costs = np.load(series), np.load(other), np.load(costs)
            cells = best_match(series, other, costs)
            straight = np.abs(series - other).sum(dtype=np.float64)
            farthest = max(abs(i - j) for i, j in cells)
            print(
                f"cost {costs[-1, -1]:.0f} m, {straight:.0f} m without warping; a match of "
                f"{len(cells)} pairs, up to {farthest} cells apart"
            )
            highest = 5 * costs[-1, -1]
            shown = np.minimum(costs, highest)
            for cell in cells:
                shown[cell] = highest
            np.save(path, shown)
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
