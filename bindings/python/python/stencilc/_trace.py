"""Python functions over fields, traced to programs of the stencil language."""

from __future__ import annotations

import operator

from ._errors import TraceError
from ._expr import Read, block, type_name, wrap

SIZES = ("N", "M", "L")
REDUCTIONS = ("sum", "min", "max", "count", "any", "all")


class Field:
    """A field in a traced function; ``Field["f32", 2]`` annotates one: its type and dimensions.

    Type checkers know ``typing.Annotated[Field, "f32", 2]``, which means the same.
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
        if any(isinstance(one, slice) or one is Ellipsis for one in offsets):
            raise TraceError(
                f"{self.name}[...] reads at whole offsets from the point; slices stand on the left "
                f"of `=` alone: write {self.name}[1:-1] = {self.name} + e in place of +="
            )
        places = tuple(_whole(one) for one in offsets)
        if len(places) != self.rank or None in places:
            raise TraceError(
                f"{self.name}[...] reads at {self.rank} whole offsets from the point, "
                f"not at {offsets}"
            )
        return Read(self, places, len(self._trace.statements))

    def __setitem__(self, box, value):
        if value is self:
            return
        try:
            value = wrap(value)
        except TraceError as error:
            raise TraceError(f"{self.name}[...] = ...: {error}") from None
        self._trace.assign(self, _box(box, self), value)

    def __bool__(self):
        return bool(self.center())

    def __iter__(self):
        raise TraceError(
            f"the field {self.name} can't be iterated over while the function is traced; "
            f"{self.name}.sum(), .min() and .max() are its reductions"
        )

    def __index__(self):
        raise TraceError(
            f"the field {self.name} is no number while the function is traced; use NumPy's "
            "functions in place of those of math, and numbers of Python in range and in offsets"
        )

    __int__ = __float__ = __index__

    def __array__(self, dtype=None, copy=None):
        raise TraceError(f"the field {self.name} is no array while the function is traced")

    def __repr__(self):
        return f"<stencilc.Field {self.name}>"

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
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos abs "
    "invert and rand or ror xor rxor lshift rlshift rshift rrshift lt le gt ge eq ne"
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


def _whole(value):
    """A whole number of Python or NumPy; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _box(box, field):
    box = box if isinstance(box, tuple) else (box,)
    if any(part is Ellipsis for part in box):
        place = [part is Ellipsis for part in box].index(True)
        rest = (slice(None),) * (field.rank - len(box) + 1)
        box = (*box[:place], *rest, *box[place + 1 :])
    if len(box) != field.rank:
        whole = ", ".join(":" * field.rank)
        raise TraceError(
            f"{field.name} has {field.rank} dimensions, the box has {len(box)}; the whole field is "
            f"{field.name}[{whole}] or {field.name}[...]"
        )
    ranges = []
    for size, part in zip(SIZES, box):
        ends = (part.start, part.stop) if isinstance(part, slice) else (part, part)
        start, stop = (None if end is None else _whole(end) for end in ends)
        if not isinstance(part, slice) and start is not None:
            low = high = _end(size, start)
        elif isinstance(part, slice) and part.step in (None, 1) and ends == (start, stop):
            low = _end(size, start or 0)
            high = f"{size}-1" if stop is None else _end(size, stop, -1)
        else:
            raise TraceError(f"a box is made of whole numbers and slices without steps: {part}")
        ranges.append(low if low == high else f"{low}..{high}")
    return "[" + ", ".join(ranges) + "]"


def _end(size, place, more=0):
    """A coordinate: from the end of the grid where it is negative, as in Python."""
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
            raise TraceError(
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
        field = next(_reads(value)).field
        element = {"count": "i64", "any": "bool", "all": "bool"}.get(operation)
        element = element or value.element or field.element
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
    """The reads of an expression, in order. A part that occurs several times is visited once."""
    seen, open_parts = set(), [value]
    while open_parts:
        part = open_parts.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Read):
            yield part
        open_parts.extend(reversed(part.parts))


def _temp(like, name=None):
    """A field of the trace that holds values between statements; it starts a run as zeros."""
    if not isinstance(like, Field):
        raise TraceError("Field.temp(A) takes a field, whose type and dimensions it has")
    trace = like._trace
    name = name or f"T{sum(field.temp for field in trace.fields.values())}"
    if name in trace.fields:
        raise TraceError(f"there is a field {name} already")
    field = Field(trace, name, like.element, like.rank, temp=True)
    trace.fields[name] = field
    return field


Field.temp = staticmethod(_temp)


def reduction(operation, value, box=None):
    """A reduction of an expression: of "sum", "min", "max", "count", "any" and "all"."""
    if operation not in REDUCTIONS:
        raise TraceError(f"there is no reduction {operation!r}; there are {', '.join(REDUCTIONS)}")
    value = wrap(value)
    reads = list(_reads(value))
    if not reads:
        raise TraceError("a reduction needs a field")
    return reads[0].field._trace.reduce(operation, value, box)
