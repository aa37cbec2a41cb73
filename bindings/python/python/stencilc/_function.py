"""Python functions as stencil programs: their arguments, and what they may be."""

from __future__ import annotations

import functools
import inspect
import numbers
import typing

from . import _kernel, _stencilc
from ._errors import ArgumentError, TraceError
from ._expr import FLOATS, Name, type_name, wrap
from ._slices import SIZES
from ._trace import Field, Reduction, Spec, Trace

RULES = ("periodic", "nearest", "reflect")
EMPTY = inspect.Parameter.empty


class Function:
    """A Python function as a stencil program; ``function`` makes it.

    Called with arrays, it is traced once for each set of their types and dimensions, and compiled.
    """

    def __init__(self, traced, steps, boundary, options):
        self._traced = traced
        self._steps = steps
        self._boundary = _rules(boundary)
        self._options = options
        _check_options(**options)
        self._kernels = {}
        self._last = None
        self._signature = inspect.signature(traced, eval_str=True)
        functools.update_wrapper(self, traced)
        _check_names(getattr(self, "__name__", repr(traced)), self._signature.parameters.values())

    def __call__(self, *arrays, **values):
        """Runs the program; the arguments are those of the function and of ``Kernel``."""
        names = list(self._signature.parameters)
        if len(arrays) > len(names):
            raise TypeError(f"{self.__name__} takes {len(names)} arguments, not {len(arrays)}")
        values.update(values.pop("params", None) or {})
        for name, array in zip(names, arrays):
            if name in values:
                raise TypeError(f"{self.__name__} got multiple values for {name}")
            values[name] = array
        return self.kernel(**values)(**values)

    def kernel(self, **values):
        """The ``Kernel`` for arguments like these; annotated ones may be left out."""
        fields, scalars = {}, {}
        for name, parameter in self._signature.parameters.items():
            spec, default = _spec(parameter.annotation), parameter.default
            value = values.get(name, default)
            if isinstance(spec, Spec):
                fields[name] = (spec.element, spec.rank)
            elif _is_array(value):
                fields[name] = (_element(name, value), len(value.shape))
            else:
                _check_scalar(name, spec, value)
                scalars[name] = (spec, None if default is EMPTY else default)
        if not fields:
            raise ArgumentError(
                f"{self.__name__} has no field yet: call it, or annotate its arguments: "
                'A: stencilc.Field["f32", 2]'
            )
        elements = [element for element, _ in fields.values()]
        usual = next((one for one in elements if one in FLOATS), elements[0])
        scalars = {name: (usual if spec in (EMPTY, float, int) else type_name(spec), default)
                   for name, (spec, default) in scalars.items()}
        key = (tuple(fields.items()), tuple(scalars.items()))
        if key not in self._kernels:
            text = self._trace(fields, scalars).text()
            self._kernels[key] = _kernel.compile(text, **self._options)
        self._last = self._kernels[key]
        return self._last

    def _trace(self, fields, scalars):
        trace = Trace(self.__name__, fields, scalars, self._boundary, self._steps)
        names = {name: Name(name, element) for name, (element, _) in scalars.items()}
        returned = self._traced(**trace.fields, **names)
        if not trace.statements:
            raise TraceError(f"{self.__name__} assigns no field: A[1:-1, 1:-1] = ...")
        returned = {} if returned is None else returned
        results = returned.values() if isinstance(returned, dict) else [None]
        if not all(isinstance(one, Reduction) for one in results):
            raise TraceError(
                f"{self.__name__} returns a dict of reductions, or nothing: "
                'return {"total": A.sum()}'
            )
        for name in returned:
            check_name(name, f"{self.__name__}: the reduction")
        trace.name_results(returned)
        for name in returned:
            if name in trace.fields or name in trace.scalars:
                kind = "an argument" if name in self._signature.parameters else "a temp field"
                raise TraceError(
                    f"{self.__name__}: the reduction `{name}` has the name of {kind}; rename it in "
                    "the dict that is returned"
                )
        for name in self._boundary:
            if name not in trace.fields:
                known = ", ".join(trace.fields)
                raise TraceError(f"boundary: there is no field `{name}`; there are {known}")
        return trace

    def source(self, level=None, **values):
        """The text of the program, or of a level of its compile."""
        if self._last is None or values:
            self.kernel(**values)
        return self._last._native.text if level is None else self._last.source(level)


def _rules(boundary):
    """Boundary rules by field, as the language writes them."""
    if boundary is not None and not isinstance(boundary, dict):
        raise TraceError(
            f'boundary: expected a dict of rules by field, as {{"A": "periodic"}}, not {boundary!r}'
        )
    rules = {}
    for name, rule in (boundary or {}).items():
        if not isinstance(rule, numbers.Real) and rule not in RULES:
            raise TraceError(
                f"boundary: {rule!r} is no rule for `{name}`; give {', '.join(RULES)} or a number"
            )
        rules[name] = rule if isinstance(rule, str) else wrap(rule).text({})[0]
    return rules


def _check_names(function, parameters):
    """A function's arguments have names that its program and its calls leave free."""
    if not function.isidentifier():
        raise TraceError(f"{function} can't be a stencil function: write it with `def` and a name")
    words = inspect.signature(_kernel.Kernel.__call__).parameters.values()
    words = [word.name for word in words if word.kind is word.KEYWORD_ONLY]
    for place, one in enumerate(parameters):
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise TraceError(
                f"{function}: `{one.name}` must be an argument that can be given by its name; "
                "*, ** and / can't be traced"
            )
        if place == 0 and one.name in ("self", "cls"):
            raise TraceError(
                f"{function}: a method can't be a stencil function, because `{one.name}` is no "
                "field; write it outside of the class"
            )
        if one.name in words:
            raise TraceError(f"{function}: `{one.name}` is a word of calls; rename the argument")
        check_name(one.name, f"{function}: the argument")


def _check_options(target="auto", define=None, cache=None, **options):
    """Checks the options of ``compile`` before there is a program; no device is looked for."""
    words = _kernel.words_of("cpu" if target == "auto" else target, define, options)
    _stencilc.check_options(words)


def check_name(name, what):
    """A name of a field, a scalar or a reduction is one of the language."""
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise TraceError(f"{what} `{name}` needs a name of the letters a to z, digits and _")
    if _stencilc.is_reserved(name):
        raise TraceError(
            f"{what} `{name}` has a name of the stencil language; rename it, for example to "
            f"`{name}_`"
        )


def _spec(annotation):
    """The spec of ``Annotated[Field, "f32", 2]``; any other annotation as it is."""
    if typing.get_origin(annotation) is typing.Annotated:
        kind, *more = typing.get_args(annotation)
        if kind is Field and len(more) == 2:
            return Field[tuple(more)]
    return annotation


def _element(name, array):
    """The type of an array's cells."""
    if len(array.shape) > len(SIZES):
        raise ArgumentError(f"`{name}` has {len(array.shape)} dimensions; a field has 1 to 3")
    try:
        return type_name(array.dtype)
    except TraceError as error:
        raise ArgumentError(f"`{name}`: {error}") from None


def _check_scalar(name, spec, value):
    """A scalar is a number; one that is annotated may be left out while it is traced."""
    if spec is bool or isinstance(value, bool):
        raise ArgumentError(
            f"`{name}` is a bool, and a scalar is a number; give 0 or 1, and compare: {name} > 0"
        )
    if value is EMPTY and spec is EMPTY:
        raise ArgumentError(
            f"`{name}` has no value; give an array or a number, or annotate it: "
            f'{name}: stencilc.Field["f32", 2]'
        )
    if value is not EMPTY and not hasattr(value, "__float__"):
        kind = "None" if value is None else type(value).__name__
        raise ArgumentError(f"`{name}` is neither an array nor a number, but {kind}")


def _is_array(value):
    return hasattr(value, "shape") and hasattr(value, "dtype") and len(value.shape) > 0


def function(traced=None, *, steps=1, boundary=None, **options):
    """Makes a stencil program of a Python function over fields.

    Parameters
    ----------
    traced : callable
        Its arguments are fields and scalars. It assigns boxes of fields, and may return a dict of
        reductions: ``{"total": A.sum()}``. It is run once, on expressions in place of arrays.
    steps : int
        How often the statements run; ``steps=`` of a call overrides it.
    boundary : dict, optional
        What reads outside of a field give, by its name: "periodic", "nearest", "reflect" or a
        number.
    **options
        Those of ``compile``.

    Returns
    -------
    Function

    Raises
    ------
    TraceError
        The function can't become a program; also from the first call, which traces it.

    Examples
    --------
    >>> @stencilc.function(steps=100)
    ... def heat(A, K, alpha=0.1):
    ...     A[1:-1, 1:-1] = A + alpha * K * (A[-1, 0] + A[1, 0] + A[0, -1] + A[0, 1] - 4 * A)
    >>> after = heat(plate, conductivity).A
    """
    if traced is None:
        return lambda traced: Function(traced, steps, boundary, options)
    return Function(traced, steps, boundary, options)
