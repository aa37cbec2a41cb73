"""What to write in place of names of NumPy that a traced function can't use."""

from __future__ import annotations

from ._errors import TraceError

# By the names of functions of NumPy and of methods of its arrays; {0} is the field.
REMEDIES = {
    "copy": "a statement reads the values of before: write {0} for them; to keep them longer, "
    "T = stencilc.Field.temp({0}) and T[...] = {0} + 0",
    "mean": 'return {{"total": {0}.sum()}}, and divide by the number of cells after the call',
    "shape": "sizes are those of the arrays of a call; give one as an argument of the function",
    "roll": 'read a neighbour, {0}[-1, 0], with boundary={{"A": "periodic"}} of stencilc.function',
    "pad": 'give boundary={{"A": "nearest"}} or another rule to stencilc.function',
    "gradient": "write the differences: ({0}[1, 0] - {0}[-1, 0]) / 2",
    "diff": "write the difference: {0}[1, 0] - {0}",
    "clip": "use np.minimum(np.maximum({0}, low), high)",
    "reduction": 'return {{"total": stencilc.reduction("{1}", e)}}, of "sum", "min" and "max"',
    "dtype": "convert by .astype(\"f64\"); {0}.element is its type, as the language names it",
    "where": "use np.where(condition, a, b)",
}
SAME = {"average": "mean", "size": "shape", "ndim": "shape", "empty_like": "copy",
        "zeros_like": "copy", "ones_like": "copy", "std": "mean", "var": "mean"}
REDUCED = {"sum": "sum", "min": "min", "max": "max", "amin": "min", "amax": "max"}


def in_place_of(name, own):
    """What to write in place of a name of NumPy."""
    if name in REDUCED:
        return REMEDIES["reduction"].format(own, REDUCED[name])
    remedy = REMEDIES.get(SAME.get(name, name))
    if remedy is None:
        return "it can use operators, np.where, stencilc.reduction, and functions of one cell " \
            "such as np.sqrt and np.minimum"
    return remedy.format(own)


# Names of PyTorch that NumPy does not have.
OF_TORCH = {
    "relu": "np.maximum(e, 0)",
    "sigmoid": "1 / (1 + np.exp(-e))",
    "rsqrt": "1 / np.sqrt(e)",
    "lerp": "a + w * (b - a)",
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "lt": "a < b",
    "le": "a <= b",
    "gt": "a > b",
    "ge": "a >= b",
    "eq": "a == b",
    "ne": "a != b",
}
RENAMED = {
    "pow": "power",
    "atan2": "arctan2",
    "clamp": "clip",
    "neg": "negative",
    "abs": "absolute",
}


def of_torch(name, known):
    """The error of a function of PyTorch; ``known`` are NumPy's that can be used."""
    name = name.strip("_")
    for prefix in ("", "r"):
        plain = name.removeprefix(prefix)
        if plain in OF_TORCH:
            remedy = f"write {OF_TORCH[plain]}"
            break
        plain = RENAMED.get(plain, plain)
        if plain in known or plain == "negative":
            remedy = f"use np.{plain}(...)"
            break
    else:
        remedy = in_place_of(RENAMED.get(name, name), "A")
    return TraceError(
        f"a stencil function can't use PyTorch's `{name}`, as its fields are no tensors while it "
        f"is traced; {remedy}"
    )


class MissingAttribute(TraceError, AttributeError):
    """An attribute that fields and expressions do not have; ``hasattr`` knows it as well."""


def missing(name, what, own):
    """The error of an attribute that a field or an expression does not have."""
    if name.startswith("_"):
        return AttributeError(name)
    return MissingAttribute(
        f"{what} has no `{name}` in a stencil function; {in_place_of(name, own or 'A')}"
    )
