"""Operations of traced functions mean what they mean in NumPy, or are refused."""

import numpy as np
import pytest
import stencilc


def run(body, target, *arrays):
    """The fields that a function assigns, by the names of its arguments."""
    return stencilc.function(body, target=target)(*arrays)


@pytest.mark.parametrize("target", ["reference", "cpu", "sim"])
def test_minimum_and_maximum_of_nans(target):
    def f(A, B, C, D):
        C[:] = np.maximum(np.maximum(A, B), -1)
        D[:] = np.minimum(A, B)
        A[:] = np.fmax(A, B)

    a = np.array([1, np.nan, 2, np.nan, -3.0])
    b = np.array([2, 1, np.nan, np.nan, -4.0])
    result = run(f, target, a, b, np.zeros(5), np.zeros(5))
    assert np.array_equal(result.C, np.maximum(np.maximum(a, b), -1), equal_nan=True)
    assert np.array_equal(result.D, np.minimum(a, b), equal_nan=True)
    assert np.array_equal(result.A, np.fmax(a, b), equal_nan=True)

    def g(A, B):
        A[:] = np.maximum(A, B)

    whole = np.zeros(3, np.int32)
    assert "!=" not in stencilc.function(g).source(A=whole, B=whole)


def test_a_maximum_of_many_parts_is_traced_at_once():
    def f(A):
        most = A
        for place in range(-12, 13):
            most = np.maximum(most, A[place])
        A[12:-12] = most

    a = np.random.default_rng(6).random(60)
    result = run(f, "reference", a)
    wanted = np.lib.stride_tricks.sliding_window_view(a, 25).max(axis=1)
    assert np.array_equal(result.A[12:-12], wanted)


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("kind", ["i1", "i4", "i8", "u4"])
def test_division_of_integers(target, kind):
    def f(A, B, C):
        B[:] = A // 3 + (A - 1) // 4
        C[:] = A % 3 + A % np.int64(7)

    a = np.arange(-9, 9).astype(kind)
    a[:2] = np.iinfo(kind).min, np.iinfo(kind).max
    with np.errstate(over="ignore"):
        wanted = a // 3 + (a - 1) // 4
    result = run(f, target, a, np.zeros_like(a), np.zeros_like(a))
    assert np.array_equal(result.B, wanted)
    assert np.array_equal(result.C, a % 3 + a % np.array(7, kind))


@pytest.mark.parametrize("divide", [
    lambda A, B: A / 2, lambda A, B: 1 / A, lambda A, B: np.true_divide(A, B),
    lambda A, B: A // B, lambda A, B: A % -2, lambda A, B: 7 // A, lambda A, B: A.astype("f64") % 2,
])
def test_division_that_is_refused(divide):
    def f(A, B):
        B[:] = divide(A, B)

    with pytest.raises(stencilc.TraceError, match='astype'):
        run(f, "reference", np.arange(4), np.arange(4))


def test_a_true_division_of_integers_that_are_converted():
    def f(A, B):
        B[:] = A.astype("f64") / 2

    assert run(f, "reference", np.arange(4), np.zeros(4)).B.tolist() == [0, 0.5, 1, 1.5]


def test_conversions_and_whole_numbers_of_numpy():
    def f(A, B, C):
        near = A[np.int64(-1)] + A[np.int8(1)]
        B[np.int64(1):np.int32(-1)] = near.astype("f8") + A.astype(float) + A.astype("float64")
        C[1:-1] = B.astype(int) + near.astype(np.dtype("i8")) + A.astype("i64")

    a = np.arange(6, dtype=np.float32)
    near = a[:-2] + a[2:]
    result = run(f, "reference", a, np.zeros(6), np.zeros(6, np.int64))
    assert np.array_equal(result.B[1:-1], near + a[1:-1] + a[1:-1])
    assert np.array_equal(result.C[1:-1], result.B[1:-1] + near + a[1:-1])


def test_conditions_that_are_converted_or_chosen():
    def f(A, B):
        B[:] = ~A.astype("bool") | np.logical_not(A) | np.where(A > 2, A > 3, False)

    result = run(f, "reference", np.arange(6), np.zeros(6, bool))
    assert result.B.tolist() == [True, False, False, False, True, True]


def test_boxes_with_an_ellipsis():
    def f(A, B):
        A[...], B[...] = B, +A
        A[..., 1:-1] = 0.0

    a, b = np.random.default_rng(7).random((2, 4, 5))
    result = run(f, "reference", a, b)
    assert np.array_equal(result.B, a) and np.array_equal(result.A[:, [0, -1]], b[:, [0, -1]])
    assert not result.A[:, 1:-1].any()
