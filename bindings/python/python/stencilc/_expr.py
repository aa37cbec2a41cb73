"""Expressions over fields: what Python computes while a function is traced."""

from __future__ import annotations

import numbers

import numpy as np

from ._errors import TraceError
from ._remedies import in_place_of, missing, of_torch

# From the loosest to the tightest, as in the language.
OR, AND, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(11)

FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
INTEGERS = {f"{sign}{bits}": f"{word}{bits}" for bits in (8, 16, 32, 64)
            for sign, word in (("i", "int"), ("u", "uint"))}
# The language's names of types, and NumPy's.
TYPES = {**FLOATS, **INTEGERS, "bool": "bool"}

UFUNCS = {
    "sqrt": "sqrt",
    "exp": "exp",
    "exp2": "exp2",
    "log": "log",
    "log2": "log2",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "tanh": "tanh",
    "arctan2": "atan2",
    "cbrt": "cbrt",
    "floor": "floor",
    "ceil": "ceil",
    "absolute": "abs",
    "sign": "sign",
    "fmin": "min",
    "fmax": "max",
    "power": "pow",
}
OPERATORS = {
    "add": ("+", SUM),
    "subtract": ("-", SUM),
    "multiply": ("*", PRODUCT),
    "less": ("<", COMPARE),
    "less_equal": ("<=", COMPARE),
    "greater": (">", COMPARE),
    "greater_equal": (">=", COMPARE),
    "equal": ("==", COMPARE),
    "not_equal": ("!=", COMPARE),
    "logical_and": ("&&", AND),
    "logical_or": ("||", OR),
}


class Expression(np.lib.mixins.NDArrayOperatorsMixin):
    """A value at each point. Python's operators and NumPy's functions make others of it.

    ``element`` is its type, as the language names it; None where all its parts are literals.
    """

    __slots__ = ()
    parts = ()
    element = None

    @property
    def is_condition(self):
        return self.element == "bool"

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        name = ufunc.__name__
        if method != "__call__" or options:
            given = "".join(f", {option}=..." for option in options)
            how = "" if method == "__call__" else f".{method}"
            raise TraceError(
                f"a stencil function can't use numpy.{name}{how}(...{given}); it can use "
                f"numpy.{name}(...) of values alone, and A.sum(), A.min() and A.max()"
            )
        if name in ("negative", "positive"):
            (value,) = map(wrap, inputs)
            return Unary("-", value) if name == "negative" else value
        if name in ("invert", "logical_not"):
            (value,) = map(wrap, inputs)
            if name == "logical_not" and not value.is_condition:
                return Binary("==", COMPARE, value, Literal(0))
            return Unary("!" if value.is_condition else "~", value)
        if name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
            return _bits(name, *map(wrap, inputs))
        if name == "square":
            (value,) = map(wrap, inputs)
            return Binary("*", PRODUCT, value, value)
        if name in NAMED:
            return NAMED[name](*map(wrap, inputs))
        if name == "power" and isinstance(inputs[1], numbers.Integral) and 1 <= inputs[1] <= 8:
            value = wrap(inputs[0])
            result = value
            for _ in range(inputs[1] - 1):
                result = Binary("*", PRODUCT, result, value)
            return result
        if name in OPERATORS:
            sign, level = OPERATORS[name]
            return Binary(sign, level, *map(wrap, inputs))
        if name in UFUNCS:
            return Call(UFUNCS[name], *map(wrap, inputs))
        known = ", ".join(sorted({**UFUNCS, **OPERATORS, **NAMED}))
        raise TraceError(f"a stencil function can't use numpy.{name}; it can use {known}")

    def __array_function__(self, function, types, arguments, options):
        if function is np.where and len(arguments) == 3 and not options:
            return where(*arguments)
        name = function.__name__
        raise TraceError(f"a stencil function can't use numpy.{name}; {in_place_of(name, 'A')}")

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        raise of_torch(getattr(function, "__name__", str(function)), {*UFUNCS, *OPERATORS, *NAMED})

    def __getattr__(self, name):
        raise missing(name, "a value of a field", None)

    def __getitem__(self, offsets):
        raise TraceError(
            "an expression has no neighbours, only a field has: keep it in a field of its own, "
            "T = stencilc.Field.temp(A), then T[1:-1, 1:-1] = ..., and read T[-1, 0]"
        )

    def __setitem__(self, box, value):
        raise TraceError("an expression can't be assigned to; assign a field: A[1:-1, 1:-1] = ...")

    def __len__(self):
        raise missing("shape", "a value of a field", None)

    def __bool__(self):
        raise TraceError(
            "a value of a field has no truth while the function is traced; use "
            "stencilc.where(condition, a, b), and & | ~ in place of and, or, not"
        )

    def __iter__(self):
        raise TraceError("a value of a field can't be iterated over while the function is traced")

    def __index__(self):
        raise TraceError(
            "a value of a field is no number while the function is traced; use NumPy's functions "
            "in place of those of math, and numbers of Python in range and in offsets"
        )

    __int__ = __float__ = __index__

    def __array__(self, dtype=None, copy=None):
        raise TraceError("a value of a field is no array while the function is traced")

    def astype(self, kind):
        """The value converted to another type: ``astype("f64")`` or ``astype(np.float64)``."""
        return Call(type_name(kind), self)


# `e += 1` gives `e` a new value; other names of the old one keep it.
IN_PLACE = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
for _name in IN_PLACE:
    setattr(Expression, f"__i{_name}__", getattr(Expression, f"__{_name}__"))


class Literal(Expression):
    """A number of Python. It has no type of its own."""

    __slots__ = ("value", "element")

    def __init__(self, value):
        self.value = value
        self.element = "bool" if isinstance(value, bool) else None

    def text(self, _names):
        if isinstance(self.value, bool):
            return ("true" if self.value else "false"), ATOM
        if isinstance(self.value, int):
            return str(self.value), ATOM if self.value >= 0 else UNARY
        if not np.isfinite(self.value):
            raise TraceError(f"{self.value} is no literal of the language; give it as an argument")
        return repr(self.value), ATOM if self.value >= 0 else UNARY


class Name(Expression):
    """A scalar."""

    __slots__ = ("name", "element")

    def __init__(self, name, element):
        self.name = name
        self.element = element

    def text(self, _names):
        return self.name, ATOM


class Read(Expression):
    """A field's value beside the point, as it was before some statement."""

    __slots__ = ("field", "offsets", "stamp", "box", "element")

    def __init__(self, field, offsets, stamp, box=None):
        self.field = field
        # None for a read by slices, until the box is known that it is read for.
        self.offsets = offsets
        self.stamp = stamp
        self.box = box
        self.element = field.element

    def text(self, _names):
        return f"{self.field.name}[{', '.join(map(str, self.offsets))}]", ATOM


class Changed(Expression):
    """The value of ``A[1] += e``; it knows the read that was changed."""

    __slots__ = ("read", "parts", "element")

    def __init__(self, read, value):
        self.read = read
        self.parts = (value,)
        self.element = value.element

    def text(self, names):
        (value,) = self.parts
        return (names[id(value)], ATOM) if id(value) in names else value.text(names)


def _in_place(name):
    def operator(self, other):
        value = getattr(self, name)(other)
        return value if value is NotImplemented else Changed(self, value)

    return operator


for _name in IN_PLACE:
    setattr(Read, f"__i{_name}__", _in_place(f"__{_name}__"))


class Unary(Expression):
    __slots__ = ("sign", "parts", "element")

    def __init__(self, sign, value):
        self.sign = sign
        self.parts = (value,)
        self.element = value.element

    def text(self, names):
        return self.sign + inside(self.parts[0], UNARY + 1, names), UNARY


class Binary(Expression):
    __slots__ = ("sign", "level", "parts", "element")

    def __init__(self, sign, level, left, right):
        self.sign = sign
        self.level = level
        self.parts = (left, right)
        self.element = "bool" if level in (OR, AND, COMPARE) else common(left, right)

    def text(self, names):
        left, right = self.parts
        # Comparisons can't be chained; the other operators group from the left.
        own = self.level + 1 if self.level == COMPARE else self.level
        left, right = inside(left, own, names), inside(right, self.level + 1, names)
        return f"{left} {self.sign} {right}", self.level


class Call(Expression):
    __slots__ = ("function", "parts", "element")

    def __init__(self, function, *parts):
        self.function = function
        self.parts = parts
        self.element = function if function in TYPES else common(*parts)

    def text(self, names):
        return f"{self.function}({', '.join(inside(part, OR, names) for part in self.parts)})", ATOM


class Where(Expression):
    __slots__ = ("parts", "element")

    def __init__(self, condition, yes, no):
        self.parts = (condition, yes, no)
        self.element = common(yes, no)

    def text(self, names):
        condition, yes, no = (inside(part, OR, names) for part in self.parts)
        return f"if {condition} then {yes} else {no}", -1


def _bits(name, left, right):
    conditions = left.is_condition and right.is_condition
    if name == "bitwise_and":
        sign, level = ("&&", AND) if conditions else ("&", BIT_AND)
    elif name == "bitwise_or":
        sign, level = ("||", OR) if conditions else ("|", BIT_OR)
    elif name == "bitwise_xor":
        sign, level = ("!=", COMPARE) if conditions else ("^", BIT_XOR)
    else:
        sign, level = ("<<" if name == "left_shift" else ">>"), SHIFT
    return Binary(sign, level, left, right)


def common(*parts):
    """The type of the first part that has one."""
    return next((part.element for part in parts if part.element is not None), None)


def _divide(left, right):
    """A quotient of floats; that of NumPy's integers is a float, and the language's is not."""
    element = common(left, right)
    if element in INTEGERS:
        raise TraceError(
            f"`/` divides floats, and the operands are {element}: convert them first, by "
            '.astype("f64"); `//` divides integers by a whole number above 0'
        )
    return Binary("/", PRODUCT, left, right)


def _floor(sign, left, right):
    """NumPy's ``//`` and ``%``, of the language's operators, which cut off towards zero."""
    whole = isinstance(right, Literal) and type(right.value) is int and right.value > 0
    if left.element not in INTEGERS or not whole:
        name = "//" if sign == "/" else "%"
        raise TraceError(
            f"`{name}` takes an integer field and a whole number above 0; for others use "
            'np.floor(a / b) and a - b * np.floor(a / b), of integers after .astype("f64")'
        )
    cut = Binary(sign, PRODUCT, left, right)
    if left.element.startswith("u"):
        return cut
    rest = Binary("%", PRODUCT, left, right)
    below = Binary("<", COMPARE, rest, Literal(0))
    if sign == "/":
        return Where(below, Binary("-", SUM, cut, Literal(1)), cut)
    return Where(below, Binary("+", SUM, rest, right), rest)


def _extreme(function, left, right):
    """NumPy's minimum and maximum: a NaN where one is. The language's give the other number."""
    value = Call(function, left, right)
    for part in (right, left):
        if part.element in FLOATS:
            value = Where(Binary("!=", COMPARE, part, part), part, value)
    return value


# Functions of NumPy that are more than one operation of the language.
NAMED = {
    "divide": _divide,
    "floor_divide": lambda left, right: _floor("/", left, right),
    "remainder": lambda left, right: _floor("%", left, right),
    "maximum": lambda left, right: _extreme("max", left, right),
    "minimum": lambda left, right: _extreme("min", left, right),
}


def where(condition, yes, no):
    """``yes`` at the points where the condition holds, else ``no``."""
    parts = (condition, yes, no)
    if not any(isinstance(part, Expression) or _is_field(part) for part in parts):
        return np.where(condition, yes, no)
    return Where(wrap(condition), wrap(yes), wrap(no))


def _is_field(value):
    return hasattr(value, "_trace") and hasattr(value, "center")


def wrap(value):
    """A value as an expression; a field is its value at the point."""
    if isinstance(value, Expression):
        return value
    if _is_field(value):
        return value.center()
    if isinstance(value, (bool, np.bool_)):
        return Literal(bool(value))
    if isinstance(value, numbers.Integral):
        return Literal(int(value))
    if isinstance(value, numbers.Real):
        return Literal(float(value))
    raise TraceError(
        f"a stencil function computes with fields and numbers, not with {type(value).__name__}; "
        "an array becomes a field as an argument of the function"
    )


def inside(part, level, names):
    """The text of a part, in parentheses where it binds looser than that."""
    if id(part) in names:
        return names[id(part)]
    text, own = part.text(names)
    return text if own >= level else f"({text})"


def type_name(kind):
    """The language's name of a type: ``f32`` of ``"f32"``, ``"float32"`` or ``np.float32``.

    A name of the language comes first: ``"i8"`` has 8 bits, as in a program.
    """
    if isinstance(kind, str) and kind in TYPES:
        return kind
    found = str(kind).removeprefix("torch.")
    if kind is not None:
        try:
            found = np.dtype(kind).name
        except TypeError:
            pass  # A type of PyTorch has its name alone.
    for name, numpy_name in TYPES.items():
        if found == numpy_name:
            return name
    raise TraceError(f"{kind!r} is no type of a field; types are {', '.join(TYPES)}")


def block(expressions, taken):
    """The text of some values at a point; parts that occur several times get names."""
    counts = {}
    order = []

    def visit(node):
        counts[id(node)] = counts.get(id(node), 0) + 1
        if counts[id(node)] == 1:
            for part in node.parts:
                visit(part)
            order.append(node)

    for expression in expressions:
        visit(expression)
    names, lets = {}, []
    for node in order:
        if counts[id(node)] > 1 and node.parts:
            name = f"v{len(lets)}"
            while name in taken:
                name += "_"
            lets.append(f"    let {name} = {inside(node, -1, names)};\n")
            names[id(node)] = name
    values = [inside(expression, -1, names) for expression in expressions]
    value = values[0] if len(values) == 1 else f"({', '.join(values)})"
    return value if not lets else "{\n" + "".join(lets) + f"    {value}\n}}"
