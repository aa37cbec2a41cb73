"""Python functions that can't become programs; the messages name the place and the remedy."""

import math
from typing import Annotated

import numpy as np
import pytest
import stencilc
from conftest import HEAT, heat

PLATE = np.zeros((4, 5))


def refuse(body, text, **values):
    function = stencilc.function(body, target="reference")
    with pytest.raises(stencilc.TraceError) as raised:
        function.kernel(**(values or {"A": PLATE, "B": PLATE}))
    assert text in str(raised.value), raised.value
    assert isinstance(raised.value, TypeError)


def test_a_field_is_no_sequence_and_no_number():
    def total(A, B):
        A[...] = sum(A)

    refuse(total, "A can't be iterated over")

    def listed(A, B):
        A[...] = list(A + B)[0]

    refuse(listed, "can't be iterated over")

    def counted(A, B):
        for _ in range(B):
            A[...] = 2 * A

    refuse(counted, "the field B is no number")

    def rooted(A, B):
        A[...] = math.sqrt(A + B)

    refuse(rooted, "use NumPy's functions")

    def array(A, B):
        A[...] = np.array(B)

    refuse(array, "B is no array")


def test_boxes_and_offsets():
    def whole(A, B):
        A[:], B[:] = B, A

    refuse(whole, "the whole field is A[:, :] or A[...]")

    def row(A, B):
        A[1:-1, 1:-1] = B[1, 1:-1]

    refuse(row, "by 2 slices, as B[1:-1, 2:]")

    def shifted(A, B):
        A[1:-1, 1:-1] = B[2:, :-2] + B[2:, 2:-1]

    refuse(shifted, "B[2:, 2:-1] has another shape than the box [1:-1, 1:-1]; B alone is the value")

    def whole_field(A, B):
        A[1:-1, 1:-1] = B[...]

    refuse(whole_field, "B[:, :] has another shape than the box")

    def half(A, B):
        A[...] = B[0.5, 0]

    refuse(half, "B[...] reads at 2 whole offsets from the point, not at (0.5, 0)")

    def word(A, B):
        A[:, :] = "abc"

    refuse(word, "A[...] = ...: a stencil function computes with fields and numbers, not with str")

    def array(A, B):
        A[:, :] = B + PLATE

    refuse(array, "an array becomes a field as an argument of the function")

    def temp(A, B):
        A[:, :] = stencilc.Field.temp(A + B)

    refuse(temp, "Field.temp(A) takes a field")

    def returned(A, B):
        A[:, :] = B
        return {"most": A}

    refuse(returned, "returns a dict of reductions")


@pytest.mark.parametrize(
    "boundary, text",
    [
        ("periodic", 'expected a dict of rules by field, as {"A": "periodic"}, not \'periodic\''),
        ({"A": "round"}, "'round' is no rule for `A`; give periodic, nearest, reflect or a number"),
        ({"A": None}, "None is no rule for `A`"),
    ],
)
def test_boundary_rules(boundary, text):
    with pytest.raises(stencilc.TraceError) as raised:
        stencilc.function(lambda A: None, boundary=boundary)
    assert text in str(raised.value)


def test_boundary_rules_of_other_fields_and_of_conditions():
    def f(A):
        A[:] = A[1]

    function = stencilc.function(f, target="reference", boundary={"A": True, "Z": 0})
    with pytest.raises(stencilc.TraceError, match="no field `Z`; there are A"):
        function(np.zeros(3, bool))
    function = stencilc.function(f, target="reference", boundary={"A": True})
    assert function(np.zeros(3, bool)).A.tolist() == [False, False, True]


def test_names_and_kinds_of_arguments():
    def word(A, steps):
        A[:] = steps * A

    def method(self, A):
        A[:] = 2 * A

    def many(*fields):
        fields[0][:] = 1

    def time(A, t):
        A[:] = t * A

    def letter(A, α):
        A[:] = α * A

    for body, text in [
        (time, "time: the argument `t` has a name of the stencil language; rename it"),
        (letter, "needs a name of the letters a to z"),
        (word, "`steps` is a word of calls"),
        (method, "a method can't be a stencil function"),
        (many, "`fields` must be"),
        (lambda A: None, "write it with `def` and a name"),
    ]:
        with pytest.raises(stencilc.TraceError) as raised:
            stencilc.function(body)
        assert text in str(raised.value)


def lap(A):
    return A[-1, 0] + A[1, 0] + A[0, -1] + A[0, 1] - 4 * A[0, 0]


@pytest.mark.parametrize(
    "value, text",
    [
        (lambda A: lap(lap(A)), "keep it in a field of its own, T = stencilc.Field.temp(A)"),
        (lambda A: A.copy(), "the field A has no `copy` in a stencil function; a statement reads"),
        (lambda A: A.mean(), 'return {"total": A.sum()}, and divide by the number of cells'),
        (lambda A: (A + 1).mean(), "a value of a field has no `mean`"),
        (lambda A: (A + 1).sum(), 'stencilc.reduction("sum", e)'),
        (lambda A: A + A.shape[0], "give one as an argument of the function"),
        (lambda A: A + len(A), "give one as an argument of the function"),
        (lambda A: A.T, "it can use operators, np.where"),
        (lambda A: np.mean(A), "can't use numpy.mean; return"),
        (lambda A: np.sum(A), 'numpy.sum; return {"total": stencilc.reduction("sum", e)}'),
        (lambda A: np.roll(A, 1), "numpy.roll; read a neighbour, A[-1, 0], with boundary="),
        (lambda A: np.cumsum(A), "can't use numpy.cumsum"),
        (lambda A: np.sqrt(A, where=A > 0), "can't use numpy.sqrt(..., where=...)"),
        (lambda A: np.add.reduce(A), "can't use numpy.add.reduce(...)"),
        (lambda A: np.fft.fft(A), "a stencil function"),
        (lambda A: A @ A, "a stencil function"),
    ],
)
def test_what_arrays_of_numpy_have(value, text):
    def f(A):
        A[1:-1, 1:-1] = value(A)

    refuse(f, text, A=PLATE)


def test_operators_in_place():
    def field(A):
        A += 1
        A[:, :] = 2 * A

    refuse(field, "write A[...] += e for all of it", A=PLATE)

    def cell(A):
        A[1] += A[0]

    refuse(cell, "write A[1:2] += e", A=PLATE[0])

    def last(A):
        A[-1] *= 2

    refuse(last, "write A[-1:] += e", A=PLATE[0])

    def corner(A):
        A[0, 1] -= 1

    refuse(corner, "write A[0:1, 1:2] += e", A=PLATE)

    def cells(A):
        A[0] += 1
        A[1:2] += A[0:1]
        A[-1:] *= 2
        A[2:3] += A[1]

    array = np.arange(5.0)
    result = stencilc.function(cells, target="reference")(array)
    assert result.A.tolist() == [1, 2, 5, 3, 8]

    def value(A):
        total = A[-1]
        total += A[1]
        total *= 0.5
        A[1:-1] = total

    array = np.arange(5.0) ** 2
    result = stencilc.function(value, target="reference")(array)
    assert result.A.tolist() == [0, 2, 5, 10, 16]


def test_a_result_has_a_name():
    def alone(A):
        A[:] = 2 * A
        return A.sum()

    refuse(alone, "returns a dict of reductions", A=PLATE[0])

    def word(A):
        A[:] = 2 * A
        return {"max": A.max()}

    refuse(word, "the reduction `max` has a name of the stencil language; rename", A=PLATE[0])

    def same(A):
        A[:] = 2 * A
        return {"A": A.max()}

    refuse(same, "the reduction `A` has the name of an argument", A=PLATE[0])

    def temp(A):
        T = stencilc.Field.temp(A, "old")
        T[:] = 2 * A
        A[:] = T
        return {"old": A.max()}

    refuse(temp, "the reduction `old` has the name of a temp field", A=PLATE[0])

    def number(A):
        A[:] = 2 * A
        return {1: A.max()}

    refuse(number, "the reduction `1` needs a name of the letters", A=PLATE[0])


def test_options_are_checked_before_the_first_call():
    for options, text in [
        (dict(fast_maths=True), "did you mean --fast-math?"),
        (dict(zzz=9), "no option --zzz; there are"),
        (dict(region="all"), "'all'"),
        (dict(strategy="fast"), "'fast'"),
        (dict(device="H2000"), "H2000"),
        (dict(tile=(0, 3)), "tile"),
        (dict(target="gpu"), "gpu"),
    ]:
        with pytest.raises(stencilc.CompileError) as raised:
            stencilc.function(lap, **options)
        assert text in str(raised.value), raised.value
        with pytest.raises(stencilc.CompileError) as raised:
            stencilc.compile("param N\ngrid G = [0..N-1]\nfield A : f32 on G\n"
                             "fn f -> A [0..N-1] = 2 * A[0]\nsteps 1\n", **options)
        assert text in str(raised.value), raised.value


def test_options_are_checked_where_there_are_measured_schedules(monkeypatch, tmp_path):
    file = tmp_path / "schedules.json"
    file.write_text('{"entries": []}')
    monkeypatch.setenv("STENCILC_SCHEDULES", str(file))

    def twice(A):
        A[:] = 2 * A

    for options in [dict(), dict(schedules=file)]:
        function = stencilc.function(twice, target="reference", **options)
        assert function(np.ones(3)).A.tolist() == [2] * 3


def test_a_target_that_can_not_run_the_code_has_its_text():
    kernel = stencilc.compile(HEAT, target="cuda", arch="gfx942")
    assert "gpu.module" in kernel.source("gpu")


@stencilc.function(target="reference", steps=2)
def diffuse(A, K, alpha=0.1):
    A[1:-1, 1:-1] = A + alpha * K * (A[-1, 0] + A[1, 0] + A[0, -1] + A[0, 1] - 4 * A)


@pytest.mark.parametrize(
    "change, text",
    [
        (dict(K=None), "`K` is neither an array nor a number, but None"),
        (dict(K=[[1.0]]), "`K` is neither an array nor a number, but list"),
        (dict(alpha=True), "`alpha` is a bool, and a scalar is a number"),
        (dict(K=PLATE.astype(complex)), "`K`: dtype('complex128') is no type of a field"),
        (dict(K=np.zeros((1, 1, 1, 1))), "`K` has 4 dimensions; a field has 1 to 3"),
    ],
)
def test_values_of_a_call(change, text):
    with pytest.raises(stencilc.ArgumentError) as raised:
        diffuse(**{**dict(A=PLATE, K=PLATE), **change})
    assert text in str(raised.value)


def test_arguments_that_are_missing_or_repeated(plate, rates):
    with pytest.raises(stencilc.ArgumentError, match="`K` has no value; give an array or a number"):
        diffuse(plate)
    with pytest.raises(TypeError, match="diffuse got multiple values for A"):
        diffuse(plate, A=plate, K=rates)
    with pytest.raises(TypeError, match="diffuse takes 3 arguments, not 4"):
        diffuse(plate, rates, 0.1, 0.2)
    assert np.array_equal(diffuse(plate, params={"K": rates}).A, heat(plate, rates, 2))


def test_an_annotation_that_type_checkers_know():
    @stencilc.function
    def halve(A: Annotated[stencilc.Field, "f32", 2], by: float) -> None:
        A[...] = by * A

    assert "field A : f32 on G2" in halve.source() and "scalar by : f32" in halve.source()


@pytest.mark.parametrize(
    "options, text",
    [
        (dict(tile=(32,)), "tile has 1 number, and the grid has 2 dimensions"),
        (dict(per_thread=(1, 2, 3)), "per-thread has 3 numbers"),
        (dict(strategy="warp"), "the strategy warp is for grids of 1 dimension"),
        (dict(strategy="slab"), "the strategy slab is for processors"),
    ],
)
def test_options_are_checked_against_the_program(options, text):
    with pytest.raises(stencilc.CompileError) as raised:
        stencilc.compile(HEAT, target="sim", **options)
    assert text in str(raised.value)


def of_torch(name):
    """Calls the protocol as PyTorch's functions do."""

    def function(*arguments):
        first = next(one for one in arguments if hasattr(type(one), "__torch_function__"))
        return type(first).__torch_function__(function, (type(first),), arguments, {})

    function.__name__ = name
    return function


@pytest.mark.parametrize(
    "name, remedy",
    [
        ("where", r"use np.where\(condition, a, b\)"),
        ("relu", r"write np.maximum\(e, 0\)"),
        ("sqrt", r"use np.sqrt\(...\)"),
        ("pow", r"use np.power\(...\)"),
        ("__radd__", r"write a \+ b"),
        ("rsqrt", r"write 1 / np.sqrt\(e\)"),
        ("clamp", r"use np.minimum\(np.maximum"),
        ("roll", "read a neighbour"),
        ("conv2d", "it can use operators"),
    ],
)
def test_functions_of_pytorch(name, remedy):
    call = of_torch(name)

    def of_field(A):
        A[...] = call(A)

    def of_value(A):
        A[...] = call(1, A[0, 0] + 1)

    for function in (of_field, of_value):
        with pytest.raises(stencilc.TraceError, match=f"can't use PyTorch's .*; {remedy}"):
            stencilc.function(steps=1)(function)(np.ones((4, 4)))
