"""Python functions that become programs."""

import numpy as np
import pytest
import stencilc
from conftest import heat
from stencilc import Field


@stencilc.function(steps=10, target="reference")
def diffuse(A, K, alpha=0.1):
    """Heat on a plate."""
    A[1:-1, 1:-1] = A + alpha * K * (A[-1, 0] + A[1, 0] + A[0, -1] + A[0, 1] - 4 * A)


def test_a_function_runs_as_a_program(plate, rates):
    assert np.array_equal(diffuse(plate, rates, steps=6).A, heat(plate, rates, 6))
    assert np.array_equal(diffuse(A=plate, K=rates, alpha=0.2).A, heat(plate, rates, 10, 0.2))
    assert diffuse.__doc__ == "Heat on a plate." and diffuse.__name__ == "diffuse"
    assert diffuse.source() == (
        "# traced from the Python function diffuse\n"
        "param N\nparam M\nscalar alpha : f32 = 0.1\ngrid G2 = [0..N-1, 0..M-1]\n"
        "field A : f32 on G2\nconst field K : f32 on G2\n"
        "fn diffuse_0 -> A [1..N-2, 1..M-2] =\n"
        "    A[0, 0] + alpha * K[0, 0] * (A[-1, 0] + A[1, 0] + A[0, -1] + A[0, 1] - 4 * A[0, 0])\n"
        "steps 10\n"
    )
    assert "stencil.apply" in diffuse.source("stencil")
    doubles = [array.astype(np.float64) for array in (plate, rates)]
    assert diffuse(*doubles).A.dtype == np.float64
    assert "field A : f64 on G2" in diffuse.source()


@stencilc.function(target="reference", boundary={"A": "periodic"})
def rules(A: Field["f64", 1], B: Field["bool", 1], shift: int = 3):
    slope = (A[1] - A[-1]) / 2
    T = Field.temp(A)
    T[:] = np.where((slope > 0) & ~B, np.sqrt(abs(slope)), -np.minimum(slope**2, 1.5)) + slope
    A[:] = np.maximum(T, 0) + 2.0 ** A + shift
    B[1:-1] = B | (A > 1)
    return {
        "most": A.max(),
        "total": A.sum(np.s_[1:-1]),
        "high": stencilc.reduction("count", A > 1),
        "some": stencilc.reduction("any", B & (A > 100)),
    }


def test_operators_functions_temps_and_reductions():
    a = np.random.default_rng(3).random(9) - 0.5
    b = a > 0.2
    slope = (np.roll(a, -1) - np.roll(a, 1)) / 2
    t = np.where((slope > 0) & ~b, np.sqrt(abs(slope)), -np.minimum(slope**2, 1.5)) + slope
    wanted = np.maximum(t, 0) + 2.0**a + 3
    result = rules(a, b)
    assert np.allclose(result.A, wanted, rtol=1e-14)
    inner = b.copy()
    inner[1:-1] |= wanted[1:-1] > 1
    assert np.array_equal(result.B, inner) and result.most == result.A.max()
    assert result.total == pytest.approx(wanted[1:-1].sum(), rel=1e-14)
    assert result.high == np.count_nonzero(result.A > 1) and result.some is False
    assert "let v0 = " in rules.source() and "scalar shift : i64 = 3" not in rules.source()


@stencilc.function(target="reference")
def leap(P, U):
    P[1:-1], U[1:-1] = U, 2 * U - P + (U[-1] + U[1] - 2 * U) / 4


def test_fields_that_are_computed_together():
    p, u = np.random.default_rng(4).random((2, 12))
    result = leap(p, u, steps=1)
    wanted = 2 * u[1:-1] - p[1:-1] + (u[:-2] + u[2:] - 2 * u[1:-1]) / 4
    assert np.array_equal(result.P[1:-1], u[1:-1]) and np.array_equal(result.U[1:-1], wanted)
    assert "-> (P, U) [1..N-2]" in leap.source()


def traced(body, **fields):
    body.__name__ = "f"
    return stencilc.function(body, target="reference").kernel(
        **(fields or {"A": np.zeros(5), "B": np.zeros(5)}))


def test_what_can_not_be_traced():
    def stale(A, B):
        old = A + 1
        A[1:-1] = 2 * A
        B[1:-1] = B + A
        B[:] = old

    with pytest.raises(stencilc.TraceError, match="before a statement that changed them"):
        traced(stale)

    def branch(A, B):
        if A > 0:
            A[:] = B

    with pytest.raises(stencilc.TraceError, match="use stencilc.where"):
        traced(branch)

    def strided(A, B):
        A[::2] = B

    with pytest.raises(stencilc.TraceError, match="slices without steps"):
        traced(strided)

    def other(A, B):
        A[:] = np.cumsum(B)

    with pytest.raises(stencilc.TraceError, match="can't use numpy"):
        traced(other)

    def outside(A, B):
        A[:] = B[-1]

    with pytest.raises(stencilc.CompileError, match="B"):
        traced(outside)

    def nothing(A, B):
        return A

    with pytest.raises(stencilc.TraceError, match="assigns no field"):
        traced(nothing)
    with pytest.raises(stencilc.ArgumentError, match="annotate"):
        stencilc.function(nothing).source()


@stencilc.function(target="reference", steps=3)
def sliced(A, K, alpha=0.1):
    around = A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:]
    A[1:-1, 1:-1] = A[1:-1, 1:-1] + alpha * K[1:-1, 1:-1] * (around - 4 * A)


def test_slices_read_the_cells_that_numpy_pairs(plate, rates):
    assert np.array_equal(sliced(plate, rates).A, heat(plate, rates, 3))
    assert "K[0, 0] * (A[-1, 0] + A[1, 0] + A[0, -1] + A[0, 1] - 4 * A[0, 0])" in sliced.source()

    def mixed(A, B):
        A[2:5] = B[-5:-2]

    wanted = r"B\[-5:-2\] and the box \[2:5\] count from different ends of the field"
    with pytest.raises(stencilc.TraceError, match=wanted):
        traced(mixed)

    def cell(A, B):
        A[-1] = B[-3:-1]

    with pytest.raises(stencilc.TraceError, match=r"another shape than the box \[-1\]"):
        traced(cell)

    def g(A, B):
        A[2:5] += B[0:3] + B[4:7]
        B[:-1] = A[1:] - B[:-1]
        A[-1] = B[-2:-1]
        return {"inner": stencilc.reduction("sum", A[1:-2] * B[2:-1], np.s_[2:-1])}

    a, b = np.random.default_rng(7).random((2, 9))
    result = traced(g, A=a, B=b)(A=a, B=b)
    a[2:5] += b[0:3] + b[4:7]
    b[:-1] = a[1:] - b[:-1]
    a[-1:] = b[-2:-1]
    assert np.array_equal(result.A, a) and np.array_equal(result.B, b)
    assert result.inner == pytest.approx((a[1:-2] * b[2:-1]).sum(), rel=1e-14)


def test_names_of_the_program_make_way_for_those_of_the_function():
    def f(N, M, G1, T0, v0, f_0, i=2):
        T = Field.temp(N)
        T[:] = (N + 1) * (N + 1) + (M + 1) * (M + 1)
        N[:] = T + G1 * T0 * v0 * f_0 * i

    a, b = np.random.default_rng(8).random((2, 5))
    result = stencilc.function(f, target="reference")(a, b, 1, 2, 3, 4)
    assert np.array_equal(result.N, (a + 1) * (a + 1) + (b + 1) * (b + 1) + 48)


def test_names_of_the_program_make_way_for_those_of_the_results():
    def f(A):
        T = Field.temp(A)
        T[:] = A + 1
        A[1:-1] = T[-1] + T[1]
        names = ["N", "M", "G1", "T0", "v0", "f_0"]
        return {name: A.sum(np.s_[place : place + 1]) for place, name in enumerate(names)}

    a = np.arange(7.0)
    result = stencilc.function(f, target="reference")(a)
    a[1:-1] = a[:-2] + a[2:] + 2
    assert [result[name] for name in ("N", "M", "G1", "T0", "v0", "f_0")] == a[:6].tolist()


def test_scalars_have_the_type_of_the_first_field_of_floats():
    def f(mask, A, by):
        A[:] = np.where(mask, A * by, A)

    a = np.arange(4, dtype=np.float32)
    function = stencilc.function(f, target="reference")
    assert function(a > 1, a, 0.5).A.tolist() == [0, 1, 1, 1.5]
    assert "scalar by : f32" in function.source()


def test_precedence():
    def f(A, B):
        A[:] = (A - (B - A)) / (A / B) * -(A + B) + (A if False else B) - (-A) * 2

    rng = np.random.default_rng(5)
    a, b = rng.random((2, 7)) + 1
    kernel = traced(f, A=a, B=b)
    assert np.array_equal(kernel(A=a, B=b).A, (a - (b - a)) / (a / b) * -(a + b) + b - (-a) * 2)

    def bits(A, B):
        A[:] = (A & 3 | B << 2) ^ A >> 1
        B[:] = stencilc.where((A > 3) | (B == 2), A, B)

    i, j = rng.integers(0, 9, (2, 7))
    result = traced(bits, A=i, B=j)(A=i, B=j)
    wanted = (i & 3 | j << 2) ^ i >> 1
    assert np.array_equal(result.A, wanted)
    assert np.array_equal(result.B, np.where((wanted > 3) | (j == 2), wanted, j))
