"""The arguments of a call that the extension does not check."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import numpy as np

from ._errors import ArgumentError


def whole(name, value):
    """A whole number of Python or NumPy."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: expected a whole number, not {value!r}") from None


def manner(in_place, out, progress):
    """Checks how a run treats its arrays, and what it calls."""
    if not isinstance(in_place, (bool, np.bool_)):
        raise ArgumentError(f"in_place: expected True or False, not {in_place!r}")
    if in_place and out is not None:
        raise ArgumentError("in_place=True and `out` exclude each other; leave one of them out")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ArgumentError(f"progress: expected a callable or True, not {progress!r}")


def no_gradients(scalars, values):
    """A run has no gradient, so a scalar can't require one."""
    for name in scalars:
        if getattr(values.get(name), "requires_grad", False):
            raise ArgumentError(
                f"`{name}` requires a gradient, and a run has none; give {name}.detach()"
            )


def outputs(roles, values, out):
    """``out`` as a dict of arrays, by state field or by member (``W.h``)."""
    states = [name for name, role in roles.items() if role == "state"]
    known = ", ".join(states)
    if not isinstance(out, Mapping):
        if len(states) != 1:
            raise ArgumentError(f"`out` is a dict here: the program has {known}")
        out = {states[0]: out}
    arrays, given = _flat(out), _flat(values)
    for name, array in arrays.items():
        field = name.partition(".")[0]
        if field not in states:
            raise ArgumentError(f"out: `{name}` is no state field; the state fields are {known}")
        if name not in given and any(one.partition(".")[0] == field for one in given):
            raise ArgumentError(
                f"out: `{name}` has another form than the argument `{field}`; give both as arrays, "
                "or both as dicts of the same members"
            )
        if not hasattr(array, "shape"):
            raise ArgumentError(f"out: `{name}` is no array but {type(array).__name__}")
        if not getattr(getattr(array, "flags", None), "writeable", True):
            raise ArgumentError(f"out: the array of `{name}` is read-only; give a copy")
        if getattr(array, "requires_grad", False):
            raise ArgumentError(f"out: the array of `{name}` requires a gradient; detach it")
    return arrays


def _flat(arrays, before=""):
    """Dicts of members, also in each other, as one of arrays by name (``W.v.0``)."""
    found = {}
    for name, array in arrays.items():
        inner = isinstance(array, Mapping)
        found.update(_flat(array, f"{before}{name}.") if inner else {f"{before}{name}": array})
    return found
