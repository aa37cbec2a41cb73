"""Pictures of arrays."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ._stencilc import png


def picture(array, path=None, *, colors="viridis", range=None):
    """A picture of an array of one or two dimensions, a pixel for each cell.

    Parameters
    ----------
    array : array of shape (height, width) or (width,)
        Numbers or bools of NumPy, CuPy, PyTorch or JAX. NaNs and infinities are magenta.
    path : str or path, optional
        Where the PNG file is written.
    colors : str
        "viridis", "gray", "inferno" or "coolwarm".
    range : (float, float), optional
        The values of the first and the last colour; by default the least and the greatest.

    Returns
    -------
    bytes
        The PNG file.

    Raises
    ------
    ArgumentError
        Where the array has other dimensions, or no cell.
    """
    cells = np.ascontiguousarray(on_host(array), dtype=np.float32)
    shape = cells.shape if cells.ndim == 2 else (1, cells.size) if cells.ndim == 1 else None
    if shape is None:
        from ._errors import ArgumentError

        raise ArgumentError(f"a picture has one or two dimensions, not {cells.ndim}")
    data = png(shape, cells.tobytes(), colors, range)
    if path is not None:
        Path(os.fspath(path)).write_bytes(data)
    return data


def on_host(array):
    """An array of NumPy with the same cells; a copy where they lie on a device."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get") and hasattr(array, "__cuda_array_interface__"):
        return array.get()
    if hasattr(array, "detach"):
        return array.detach().cpu().numpy()
    return np.asarray(array)
