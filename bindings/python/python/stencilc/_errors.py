"""The exceptions of the package."""

from __future__ import annotations


class Error(Exception):
    """Whatever the package raises of its own. Its text is the whole message."""


class CompileError(Error):
    """The program or an option of its compile is wrong.

    The text shows the source line. ``place`` is (file, line, column) of the first message, or None.
    """

    place: tuple[str, int, int] | None = None


class ArgumentError(Error, ValueError):
    """An argument of a call is missing, unknown, or does not fit: type, shape, strides, size."""


class TraceError(Error, TypeError):
    """A Python function can't become a program; the text names the remedy."""


class DeviceError(Error, RuntimeError):
    """There is no such device, it failed, or there is too little memory for a run."""


class Cancelled(Error):
    """The work was ended early."""


class InternalError(Error):
    """The compiler is wrong. Please report it with the program."""
