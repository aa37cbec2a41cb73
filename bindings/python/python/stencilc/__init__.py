"""Stencil programs on NumPy, CuPy, PyTorch and JAX arrays.

    heat = stencilc.compile("heat2d.stencil")
    after = heat(A=plate, K=conductivity, steps=100).A

``compile`` takes a program in the stencil language, ``function`` makes one of a Python function,
and ``load`` takes a launch plan with its PTX. All give a ``Kernel``, which is called with arrays.
"""

from ._errors import (
    ArgumentError,
    Cancelled,
    CompileError,
    DeviceError,
    Error,
    InternalError,
    TraceError,
)
from ._expr import where
from ._function import Function, function
from ._kernel import Kernel, Result, compile, load
from ._picture import picture
from ._trace import Field, reduction

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


def load_ipython_extension(ipython):
    """``%load_ext stencilc`` makes the cell magic ``%%stencil``."""
    from ._magic import load

    load(ipython)
