"""Expressions over fields: what Python computes while a function is traced."""

from __future__ import annotations

import numbers

import numpy as np

# From the loosest to the tightest, as in the language.
OR, AND, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(11)

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
    "fabs": "abs",
    "sign": "sign",
    "minimum": "min",
    "maximum": "max",
    "fmin": "min",
    "fmax": "max",
    "power": "pow",
    "float_power": "pow",
}
OPERATORS = {
    "add": ("+", SUM),
    "subtract": ("-", SUM),
    "multiply": ("*", PRODUCT),
    "divide": ("/", PRODUCT),
    "true_divide": ("/", PRODUCT),
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
    """A value at each point. Python's operators and NumPy's functions make others of it."""

    __slots__ = ()
    parts = ()
    is_condition = False

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        name = ufunc.__name__
        if method != "__call__" or options:
            return NotImplemented
        if name in ("negative", "positive"):
            (value,) = map(wrap, inputs)
            return Unary("-", value) if name == "negative" else value
        if name in ("invert", "logical_not"):
            (value,) = map(wrap, inputs)
            return Unary("!" if value.is_condition else "~", value)
        if name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
            return _bits(name, *map(wrap, inputs))
        if name == "square":
            (value,) = map(wrap, inputs)
            return Binary("*", PRODUCT, value, value)
        if name == "power" and isinstance(inputs[1], int) and 1 <= inputs[1] <= 8:
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
        known = ", ".join(sorted({**UFUNCS, **OPERATORS}))
        raise TypeError(f"a stencil function can't use numpy.{name}; it can use {known}")

    def __array_function__(self, function, types, arguments, options):
        if function is np.where and len(arguments) == 3 and not options:
            return where(*arguments)
        name = function.__name__
        raise TypeError(f"a stencil function can't use numpy.{name}; of such, it can use where")

    def __bool__(self):
        raise TypeError(
            "a value of a field has no truth while the function is traced; use "
            "stencilc.where(condition, a, b), and & | ~ in place of and, or, not"
        )

    def __iter__(self):
        raise TypeError("a value of a field can't be iterated over")

    def astype(self, kind):
        """The value converted to another type: ``astype("f64")`` or ``astype(np.float64)``."""
        return Call(type_name(kind), self)


class Literal(Expression):
    """A number of Python. It has no type of its own."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    @property
    def is_condition(self):
        return isinstance(self.value, bool)

    def text(self, _names):
        if isinstance(self.value, bool):
            return ("true" if self.value else "false"), ATOM
        if isinstance(self.value, int):
            return str(self.value), ATOM if self.value >= 0 else UNARY
        if not np.isfinite(self.value):
            raise ValueError(f"{self.value} is no literal of the language; give it as an argument")
        return repr(self.value), ATOM if self.value >= 0 else UNARY


class Name(Expression):
    """A scalar, a coordinate, the step."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def text(self, _names):
        return self.name, ATOM


class Read(Expression):
    """A field's value beside the point, as it was before some statement."""

    __slots__ = ("field", "offsets", "stamp", "is_condition")

    def __init__(self, field, offsets, stamp):
        self.field = field
        self.offsets = offsets
        self.stamp = stamp
        self.is_condition = field.element == "bool"

    def text(self, _names):
        return f"{self.field.name}[{', '.join(map(str, self.offsets))}]", ATOM


class Unary(Expression):
    __slots__ = ("sign", "parts")

    def __init__(self, sign, value):
        self.sign = sign
        self.parts = (value,)

    @property
    def is_condition(self):
        return self.sign == "!"

    def text(self, names):
        return self.sign + inside(self.parts[0], UNARY + 1, names), UNARY


class Binary(Expression):
    __slots__ = ("sign", "level", "parts")

    def __init__(self, sign, level, left, right):
        self.sign = sign
        self.level = level
        self.parts = (left, right)

    @property
    def is_condition(self):
        return self.level in (OR, AND, COMPARE)

    def text(self, names):
        left, right = self.parts
        # Comparisons can't be chained; the other operators group from the left.
        own = self.level + 1 if self.level == COMPARE else self.level
        left, right = inside(left, own, names), inside(right, self.level + 1, names)
        return f"{left} {self.sign} {right}", self.level


class Call(Expression):
    __slots__ = ("function", "parts")

    def __init__(self, function, *parts):
        self.function = function
        self.parts = parts

    def text(self, names):
        return f"{self.function}({', '.join(inside(part, OR, names) for part in self.parts)})", ATOM


class Where(Expression):
    __slots__ = ("parts",)

    def __init__(self, condition, yes, no):
        self.parts = (condition, yes, no)

    @property
    def is_condition(self):
        return self.parts[1].is_condition

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


def where(condition, yes, no):
    """``yes`` at the points where the condition holds, else ``no``."""
    parts = (condition, yes, no)
    if not any(isinstance(part, Expression) or hasattr(part, "center") for part in parts):
        return np.where(condition, yes, no)
    return Where(wrap(condition), wrap(yes), wrap(no))


def wrap(value):
    """A value as an expression; a field is its value at the point."""
    if isinstance(value, Expression):
        return value
    if hasattr(value, "center"):
        return value.center()
    if isinstance(value, (bool, np.bool_)):
        return Literal(bool(value))
    if isinstance(value, numbers.Integral):
        return Literal(int(value))
    if isinstance(value, numbers.Real):
        return Literal(float(value))
    raise TypeError(f"a stencil function can't compute with {type(value).__name__}")


def inside(part, level, names):
    """The text of a part, in parentheses where it binds looser than that."""
    if id(part) in names:
        return names[id(part)]
    text, own = part.text(names)
    return text if own >= level else f"({text})"


def type_name(kind):
    """The language's name of a type: ``f32`` of ``"f32"``, ``"float32"`` or ``np.float32``."""
    known = {f"f{bits}": f"float{bits}" for bits in (16, 32, 64)}
    known |= {f"{sign}{bits}": f"{word}{bits}" for bits in (8, 16, 32, 64)
              for sign, word in (("i", "int"), ("u", "uint"))}
    known |= {"bf16": "bfloat16", "bool": "bool"}
    if isinstance(kind, str):
        if kind in known:
            return kind
        found = kind
    else:
        found = getattr(kind, "__name__", None) or str(kind).removeprefix("torch.")
        if not isinstance(kind, type):
            found = getattr(kind, "name", found)
    if found == "float":
        found = "float64"
    for name, numpy_name in known.items():
        if found == numpy_name:
            return name
    raise TypeError(f"{kind!r} is no type of a field; types are {', '.join(known)}")


def block(expressions):
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
            lets.append(f"    let {name} = {inside(node, -1, names)};\n")
            names[id(node)] = name
    values = [inside(expression, -1, names) for expression in expressions]
    value = values[0] if len(values) == 1 else f"({', '.join(values)})"
    return value if not lets else "{\n" + "".join(lets) + f"    {value}\n}}"
