"""Python functions over fields, traced to programs of the stencil language."""

from __future__ import annotations

from . import _expr, _slices
from ._errors import TraceError
from ._expr import Changed, Read, block, type_name, wrap
from ._remedies import missing
from ._slices import SIZES

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

    # Whether the trace chose the name.
    unnamed = False

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
        stamp = len(self._trace.statements)
        if any(isinstance(one, slice) or one is Ellipsis for one in offsets):
            return Read(self, None, stamp, _slices.of_read(offsets, self))
        places = tuple(_slices.whole(one) for one in offsets)
        if len(places) != self.rank or None in places:
            raise TraceError(
                f"{self.name}[...] reads at {self.rank} whole offsets from the point, "
                f"not at {offsets}"
            )
        return Read(self, places, stamp)

    def __getattr__(self, name):
        raise missing(name, f"the field {self.name}", self.name)

    def __len__(self):
        raise missing("shape", f"the field {self.name}", self.name)

    def __setitem__(self, box, value):
        if value is self:
            return
        try:
            value = wrap(value)
        except TraceError as error:
            raise TraceError(f"{self.name}[...] = ...: {error}") from None
        _check_in_place(self, box, value)
        box = _slices.of_box(box, self)
        _slices.resolve(_reads(value), box)
        self._trace.assign(self, box, value)

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

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        return _expr.Expression.__torch_function__(function, types, arguments, options)

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
    "matmul rmatmul invert and rand or ror xor rxor lshift rlshift rshift rrshift lt le gt ge eq ne"
).split():
    setattr(Field, f"__{_name}__", _forward(f"__{_name}__"))
Field.__hash__ = object.__hash__


def _refuse_in_place(self, _other):
    raise TraceError(
        f"an operator such as `+=` changes a box of a field: write {self.name}[...] += e for all "
        "of it"
    )


IN_PLACE = (*_expr.IN_PLACE, "matmul")
for _name in IN_PLACE:
    setattr(Field, f"__i{_name}__", _refuse_in_place)


def _check_in_place(field, box, value):
    """Refuses ``A[1] += e``: it would change the cell 1 by the cell 2, its neighbour at 1."""
    if not isinstance(value, Changed) or value.read.field is not field:
        return
    offsets = value.read.offsets
    box = box if isinstance(box, tuple) else (box,)
    places = tuple(_slices.whole(place) for place in box)
    if value.read.box is None and places == offsets and any(offsets):
        cells = ", ".join(f"{at}:{'' if at == -1 else at + 1}" for at in places)
        at = ", ".join(map(str, places))
        raise TraceError(
            f"{field.name}[{at}] += e would read the neighbour at {at} of the cell {at}, "
            f"because a number on the right of `=` is an offset; write {field.name}[{cells}] "
            "+= e, and the same with other operators"
        )


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
                f"{field.name}[{_slices.python(box)}] is computed from values of before a "
                "statement that changed them; keep them in a field of their own: "
                "T = stencilc.Field.temp(...)"
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
        box = _slices.of_box(... if box is None else box, field)
        _slices.resolve(_reads(value), box)
        return Reduction(operation, value, box, field.rank, element)

    def name_results(self, reductions):
        """Names the results. Fields that have a name of the trace's own make way for them."""
        self.reductions = reductions
        taken = {*self.fields, *self.scalars, *reductions}
        for field in self.fields.values():
            if field.unnamed and field.name in reductions:
                field.name = free(field.name, taken)
                taken.add(field.name)
        self.fields = {field.name: field for field in self.fields.values()}

    def text(self):
        """The program."""
        ranks = sorted({field.rank for field in self.fields.values()})
        taken = {*self.fields, *self.scalars, *self.reductions}
        sizes = [free(size, taken) for size in SIZES]
        taken.update(sizes)
        grids = {rank: free(f"G{rank}", taken) for rank in ranks}
        lines = [f"# traced from the Python function {self.name}\n"]
        lines += [f"param {size}\n" for size in sizes[: max(ranks)]]
        for name, (element, default) in self.scalars.items():
            value = "" if default is None else f" = {_number(default)}"
            lines.append(f"scalar {name} : {element}{value}\n")
        for rank in ranks:
            extents = ", ".join(f"0..{size}-1" for size in sizes[:rank])
            lines.append(f"grid {grids[rank]} = [{extents}]\n")
        for field in self.fields.values():
            kind = "temp field" if field.temp else "field" if field.written else "const field"
            lines.append(f"{kind} {field.name} : {field.element} on {grids[field.rank]}\n")
        lines += [f"boundary {name} = {rule}\n" for name, rule in self.boundary.items()]
        for place, (box, targets, values) in enumerate(self.statements):
            names = [field.name for field in targets]
            target = names[0] if len(names) == 1 else f"({', '.join(names)})"
            own = "".join(one if one.isascii() else "_" for one in self.name)
            name = free(f"{own}_{place}", taken)
            box = _slices.text(box, sizes)
            lines.append(f"fn {name} -> {target} {box} =\n    {block(values, taken)}\n")
        for name, one in self.reductions.items():
            value, box = block([one.value], taken), _slices.text(one.box, sizes)
            lines.append(f"reduce {name} : {one.element} = {one.operation}({value}) on {box}\n")
        lines.append(f"steps {self.steps}\n")
        return "".join(lines)


def free(name, taken):
    """A name of the program's own that no argument and no result has."""
    while name in taken:
        name += "_"
    return name


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
    count = sum(field.temp for field in trace.fields.values())
    unnamed = name is None
    if unnamed:
        name = free(f"T{count}", {*trace.fields, *trace.scalars})
    if name in trace.fields:
        raise TraceError(f"there is a field {name} already")
    field = Field(trace, name, like.element, like.rank, temp=True)
    field.unnamed = unnamed
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
