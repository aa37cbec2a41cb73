"""Python functions over fields, traced to programs of the stencil language."""

from __future__ import annotations

import functools
import inspect

from ._errors import ArgumentError
from ._expr import Call, Expression, Name, Read, block, type_name, where, wrap

__all__ = ["Field", "Function", "function", "reduction", "where"]

SIZES = ("N", "M", "L")
REDUCTIONS = ("sum", "min", "max", "count", "any", "all")


class Field:
    """A field in a traced function; ``Field["f32", 2]`` annotates one: its type and dimensions.

    ``A`` is its value at the point, ``A[-1, 0]`` that one cell up, and ``A[1:-1, 1:-1] = ...``
    computes the points that are not at a rim, each from the values before the statement.
    """

    def __class_getitem__(cls, arguments):
        element, rank = arguments
        return Spec(type_name(element), int(rank))

    def __init__(self, trace, name, element, rank, temp=False):
        self._trace = trace
        self.name = name
        self.element = element
        self.rank = rank
        self.temp = temp
        self.written = False

    def center(self):
        """The value at the point."""
        return self[(0,) * self.rank]

    def __getitem__(self, offsets):
        offsets = offsets if isinstance(offsets, tuple) else (offsets,)
        if len(offsets) != self.rank or not all(isinstance(one, int) for one in offsets):
            raise TypeError(
                f"{self.name}[...] reads at {self.rank} whole offsets from the point, "
                f"not at {offsets}"
            )
        return Read(self, offsets, len(self._trace.statements))

    def __setitem__(self, box, value):
        if value is not self:
            self._trace.assign(self, _box(box, self), wrap(value))

    def __bool__(self):
        return bool(self.center())

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = [one.center() if isinstance(one, Field) else one for one in inputs]
        return getattr(ufunc, method)(*inputs, **options)

    def __array_function__(self, function, types, arguments, options):
        return self.center().__array_function__(function, types, arguments, options)

    def astype(self, kind):
        """The value at the point, converted to another type."""
        return self.center().astype(kind)

    def sum(self, box=None):
        """The sum over a box: a result of the function, as are those of the others."""
        return self._trace.reduce("sum", self.center(), box)

    def min(self, box=None):
        return self._trace.reduce("min", self.center(), box)

    def max(self, box=None):
        return self._trace.reduce("max", self.center(), box)


def _forward(name):
    def operator(self, *others):
        return getattr(self.center(), name)(
            *(one.center() if isinstance(one, Field) else one for one in others)
        )

    operator.__name__ = name
    return operator


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv pow rpow neg pos abs invert and rand or ror xor "
    "rxor lshift rlshift rshift rrshift lt le gt ge eq ne"
).split():
    setattr(Field, f"__{_name}__", _forward(f"__{_name}__"))
Field.__hash__ = object.__hash__


class Spec:
    """What an annotation says of a field."""

    def __init__(self, element, rank):
        self.element = element
        self.rank = rank


class Reduction:
    """A result that is one number. It is named by the dict that the function returns."""

    def __init__(self, operation, value, box, rank, element):
        self.operation = operation
        self.value = value
        self.box = box
        self.rank = rank
        self.element = element


def _box(box, field):
    box = box if isinstance(box, tuple) else (box,)
    if box == (Ellipsis,):
        box = (slice(None),) * field.rank
    if len(box) != field.rank:
        raise TypeError(f"{field.name} has {field.rank} dimensions, the box has {len(box)}")
    ranges = []
    for size, part in zip(SIZES, box):
        if isinstance(part, int):
            low = high = _end(size, part)
        elif isinstance(part, slice) and part.step in (None, 1):
            low = _end(size, 0 if part.start is None else part.start)
            stop = part.stop
            high = f"{size}-1" if stop is None else _end(size, stop, -1)
        else:
            raise TypeError(f"a box is made of whole numbers and slices without steps: {part}")
        ranges.append(low if low == high else f"{low}..{high}")
    return "[" + ", ".join(ranges) + "]"


def _end(size, place, more=0):
    """A coordinate: from the end of the grid where it is negative, as in Python."""
    place = int(place)
    if place < 0:
        return f"{size}-{-place - more}"
    return str(place + more)


class Trace:
    """A function as it is traced."""

    def __init__(self, name, fields, scalars, boundary, steps):
        self.name = name
        self.statements = []
        self.fields = {
            field: Field(self, field, element, rank) for field, (element, rank) in fields.items()
        }
        self.scalars = scalars
        self.boundary = boundary
        self.steps = steps
        self.reductions = {}

    def assign(self, field, box, value):
        """A statement; one of which the value was computed before the last one belongs to it."""
        if field.name in self.boundary and self.boundary[field.name] not in (
            "periodic", "nearest", "reflect",
        ) and not isinstance(self.boundary[field.name], (int, float)):
            raise TypeError(f"{self.boundary[field.name]!r} is no boundary rule")
        field.written = True
        count = len(self.statements)
        stale = {place for read in _reads(value) for place in self._writes_since(read)}
        if not stale:
            self.statements.append((box, [field], [value]))
            return
        last_box, targets, values = self.statements[-1]
        fresh = any(
            read.stamp == count and _holds(targets, read.field) for read in _reads(value)
        )
        if stale != {count - 1} or box != last_box or _holds(targets, field) or fresh:
            raise ValueError(
                f"{field.name}{box} is computed from values of before a statement that changed "
                f"them; keep them in a field of their own: T = stencilc.Field.temp(...)"
            )
        targets.append(field)
        values.append(value)

    def _writes_since(self, read):
        for place in range(read.stamp, len(self.statements)):
            if _holds(self.statements[place][1], read.field):
                yield place

    def reduce(self, operation, value, box):
        """A reduction over a box; over the whole grid where there is none."""
        reads = list(_reads(value))
        if not reads:
            raise TypeError("a reduction needs a field")
        field = reads[0].field
        element = {"count": "i64", "any": "bool", "all": "bool"}.get(operation, field.element)
        if isinstance(value, Call) and value.function in ("f16", "f32", "f64", "i32", "i64"):
            element = value.function
        box = _box(... if box is None else box, field)
        return Reduction(operation, value, box, field.rank, element)

    def text(self):
        """The program."""
        ranks = sorted({field.rank for field in self.fields.values()})
        lines = [f"# traced from the Python function {self.name}\n"]
        lines += [f"param {size}\n" for size in SIZES[: max(ranks)]]
        for name, (element, default) in self.scalars.items():
            value = "" if default is None else f" = {_number(default)}"
            lines.append(f"scalar {name} : {element}{value}\n")
        for rank in ranks:
            extents = ", ".join(f"0..{size}-1" for size in SIZES[:rank])
            lines.append(f"grid G{rank} = [{extents}]\n")
        for field in self.fields.values():
            kind = "temp field" if field.temp else "field" if field.written else "const field"
            lines.append(f"{kind} {field.name} : {field.element} on G{field.rank}\n")
        lines += [f"boundary {name} = {rule}\n" for name, rule in self.boundary.items()]
        for place, (box, targets, values) in enumerate(self.statements):
            names = [field.name for field in targets]
            target = names[0] if len(names) == 1 else f"({', '.join(names)})"
            lines.append(f"fn {self.name}_{place} -> {target} {box} =\n    {block(values)}\n")
        for name, one in self.reductions.items():
            value = block([one.value])
            lines.append(
                f"reduce {name} : {one.element} = {one.operation}({value}) on {one.box}\n"
            )
        lines.append(f"steps {self.steps}\n")
        return "".join(lines)


def _number(value):
    return repr(float(value)) if isinstance(value, float) else str(value)


def _holds(fields, field):
    """Whether a field is one of some; ``==`` makes expressions of fields."""
    return any(one is field for one in fields)


def _reads(value):
    if isinstance(value, Read):
        yield value
    for part in value.parts:
        yield from _reads(part)


def _temp(like, name=None):
    """A field of the trace that holds values between statements; it starts a run as zeros."""
    trace = like._trace
    name = name or f"T{sum(field.temp for field in trace.fields.values())}"
    if name in trace.fields:
        raise ValueError(f"there is a field {name} already")
    field = Field(trace, name, like.element, like.rank, temp=True)
    trace.fields[name] = field
    return field


Field.temp = staticmethod(_temp)


class Function:
    """A Python function as a stencil program; ``function`` makes it.

    Called with arrays, it is traced once for each set of their types and dimensions, and compiled.
    """

    def __init__(self, traced, steps, boundary, options):
        self._traced = traced
        self._steps = steps
        self._boundary = dict(boundary or {})
        self._options = options
        self._kernels = {}
        self._last = None
        self._signature = inspect.signature(traced, eval_str=True)
        functools.update_wrapper(self, traced)

    def __call__(self, *arrays, **values):
        """Runs the program; the arguments are those of the function and of ``Kernel``."""
        names = list(self._signature.parameters)
        if len(arrays) > len(names):
            raise TypeError(f"{self.__name__} takes {len(names)} arguments, not {len(arrays)}")
        values.update(zip(names, arrays))
        return self.kernel(**values)(**values)

    def kernel(self, **values):
        """The ``Kernel`` for arguments like these; annotated ones may be left out."""
        fields, scalars = {}, {}
        for name, parameter in self._signature.parameters.items():
            spec, default = parameter.annotation, parameter.default
            if isinstance(spec, Spec):
                fields[name] = (spec.element, spec.rank)
            elif _is_array(values.get(name)):
                array = values[name]
                fields[name] = (type_name(array.dtype), len(array.shape))
            else:
                default = None if default is inspect.Parameter.empty else default
                scalars[name] = (spec, default, values.get(name, default))
        if not fields:
            raise ArgumentError(
                f"{self.__name__} has no field yet: call it, or annotate its arguments: "
                'A: stencilc.Field["f32", 2]'
            )
        usual = next(iter(fields.values()))[0]
        scalars = {name: (_scalar_type(spec, value, usual), default)
                   for name, (spec, default, value) in scalars.items()}
        key = (tuple(fields.items()), tuple(scalars.items()))
        if key not in self._kernels:
            from ._kernel import compile

            self._kernels[key] = compile(self._trace(fields, scalars).text(), **self._options)
        self._last = self._kernels[key]
        return self._last

    def _trace(self, fields, scalars):
        trace = Trace(self.__name__, fields, scalars, self._boundary, self._steps)
        arguments = {**trace.fields, **{name: Name(name) for name in scalars}}
        returned = self._traced(**arguments)
        if not trace.statements:
            raise ValueError(f"{self.__name__} assigns no field: A[1:-1, 1:-1] = ...")
        if returned is not None and not isinstance(returned, dict):
            raise TypeError(f"{self.__name__} returns a dict of reductions, or nothing")
        trace.reductions = returned or {}
        return trace

    def source(self, level=None, **values):
        """The text of the program, or of a level of its compile."""
        if self._last is None or values:
            self.kernel(**values)
        return self._last._native.text if level is None else self._last.source(level)


def _scalar_type(spec, value, usual):
    """The type of the first field, unless an annotation names one."""
    if spec is bool or isinstance(value, bool):
        raise TypeError("a scalar is a number, not a bool")
    if spec in (inspect.Parameter.empty, float, int):
        return usual
    return type_name(spec.element if isinstance(spec, Spec) else spec)


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
        What reads outside of a field give: "periodic", "nearest", "reflect" or a number.
    **options
        Those of ``compile``.

    Returns
    -------
    Function

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


def reduction(operation, value, box=None):
    """A reduction of an expression: of "sum", "min", "max", "count", "any" and "all"."""
    if operation not in REDUCTIONS:
        raise ValueError(f"there is no reduction {operation!r}; there are {', '.join(REDUCTIONS)}")
    value = wrap(value)
    reads = list(_reads(value))
    if not isinstance(value, Expression) or not reads:
        raise TypeError("a reduction needs a field")
    return reads[0].field._trace.reduce(operation, value, box)
