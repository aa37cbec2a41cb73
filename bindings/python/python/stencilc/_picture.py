"""Pictures of arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ._errors import ArgumentError
from ._stencilc import png


def picture(array, path=None, *, colors="viridis", range=None):
    """A picture of an array of one or two dimensions, a pixel for each cell.

    Parameters
    ----------
    array : array of shape (height, width) or (width,)
        Numbers or bools of NumPy, CuPy, PyTorch or JAX. Complex numbers are shown by their absolute
        values. NaNs and infinities are magenta.
    path : str or path, optional
        Where the PNG file is written; its name ends in ``.png``.
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
        Where the array has other cells, other dimensions or no cell, or the name another ending.
    """
    if path is not None and Path(path).suffix.lower() != ".png":
        raise ArgumentError(f"a picture is a PNG file; end the name in .png, not {str(path)!r}")
    cells = on_host(array)
    if np.iscomplexobj(cells):
        cells = np.abs(cells)
    try:
        cells = np.ascontiguousarray(cells, dtype=np.float32)
    except (TypeError, ValueError):
        raise ArgumentError(f"a picture shows numbers or bools, not {cells.dtype}") from None
    shape = cells.shape if cells.ndim == 2 else (1, cells.size) if cells.ndim == 1 else None
    if shape is None:
        raise ArgumentError(f"a picture has one or two dimensions, not {cells.ndim}")
    data = png(shape, cells.tobytes(), colors, range)
    if path is not None:
        Path(path).write_bytes(data)
    return data


def on_host(array):
    """An array of NumPy with the same cells; a copy where they lie on a device."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get") and hasattr(array, "__cuda_array_interface__"):
        return array.get()
    if hasattr(array, "detach"):
        # NumPy has no bfloat16.
        array = array.float() if str(array.dtype) == "torch.bfloat16" else array
        return array.detach().cpu().numpy()
    return np.asarray(array)
