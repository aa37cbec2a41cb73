"""Python functions that can't become programs; the messages name the place and the remedy."""

import math
from typing import Annotated

import numpy as np
import pytest
import stencilc
from conftest import heat

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

    def added(A, B):
        A[1:-1, 1:-1] += A[0, 1]

    refuse(added, "slices stand on the left of `=` alone: write A[1:-1] = A + e in place of +=")

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
    def size(A, N):
        A[:] = N * A

    def word(A, steps):
        A[:] = steps * A

    def method(self, A):
        A[:] = 2 * A

    def many(*fields):
        fields[0][:] = 1

    for body, text in [(size, "`N` is a size of the grid"), (word, "`steps` is a word of calls"),
                       (method, "a method can't be a stencil function"), (many, "`fields` must be"),
                       (lambda A: None, "write it with `def` and a name")]:
        with pytest.raises(stencilc.TraceError) as raised:
            stencilc.function(body)
        assert text in str(raised.value)


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
