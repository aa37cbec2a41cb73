"""Inputs of the pictures in docs/gallery.md, and how near a result comes to what it should be.

gallery.py inputs FOLDER
    writes the inputs into FOLDER, made where it is missing; noise comes from a fixed seed.
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

    # A drop beside a disc in which waves are half as fast.
    y, x = np.mgrid[0:400, 0:600]
    drop = np.exp(-((y - 200.0) ** 2 + (x - 120) ** 2) / 50)
    save("drop", drop)
    save("speed", np.where((y - 200) ** 2 + (x - 330) ** 2 < 90**2, 0.1, 0.4))

    # U is everywhere, V in some spots.
    u, v = np.ones((2, 256, 256)) * [[[1.0]], [[0.0]]]
    for row, column in random.integers(10, 240, (20, 2)):
        u[row : row + 6, column : column + 6], v[row : row + 6, column : column + 6] = 0.5, 0.25
    save("u", u)
    save("v", v)


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
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
