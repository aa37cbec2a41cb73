"""Stencil programs on NumPy, CuPy, PyTorch and JAX arrays.

    heat = stencilc.compile("heat2d.stencil")
    after = heat(A=plate, K=conductivity, steps=100).A

``compile`` takes a program in the stencil language, ``function`` makes one of a Python function,
and ``load`` takes a launch plan with its PTX. All give a ``Kernel``, which is called with arrays.
"""

import importlib

from ._errors import (
    ArgumentError,
    Cancelled,
    CompileError,
    DeviceError,
    Error,
    InternalError,
    TraceError,
)
from ._kernel import Kernel, Result, compile, load

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Cancelled",
    "CompileError",
    "DeviceError",
    "Error",
    "Field",
    "Function",
    "InternalError",
    "Kernel",
    "Result",
    "TraceError",
    "compile",
    "function",
    "load",
    "picture",
    "reduction",
    "where",
]

# Tracing and pictures are half of the package's own modules, and few programs need them.
_LATER = {
    "Field": "_trace",
    "Function": "_function",
    "function": "_function",
    "picture": "_picture",
    "reduction": "_trace",
    "where": "_expr",
}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython):
    """``%load_ext stencilc`` makes the cell magic ``%%stencil``."""
    from ._magic import load

    load(ipython)
