"""Runs in parts: what they refuse before anything is written, and what they accept."""

import json

import numpy as np
import pytest
import stencilc

LINE = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n"
TARGETS = ["reference", "sim", "cpu"]


def test_a_run_in_parts_loses_nothing():
    text = ("param N\ngrid G = [0..N-1]\nfield A : f32 on G\n"
            "fn f -> A [0..N-1] = A[0] + mean\n"
            "reduce mean : f32 = max(A[0]) on [0..N-1] initially 1\nsteps 3\n")
    kernel = stencilc.compile(text, target="reference")
    with pytest.raises(stencilc.ArgumentError, match="`mean`"):
        kernel(A=np.ones(4, np.float32), steps=3, every=1)


def test_a_run_in_parts_may_reduce_a_temp_field():
    text = ("param N\ngrid G = [0..N-1]\nfield A : f64 on G\ntemp field D : f64 on G\n"
            "fn d -> D [0..N-1] = A[0] / 2\nfn f -> A [0..N-1] = A[0] + D[0]\n"
            "reduce m : f64 = max(D[0]) on [0..N-1]\nsteps 3\n")
    result = stencilc.compile(text, target="reference")(A=np.ones(4), steps=3, every=1)
    assert result.history["m"].tolist() == [0.5, 0.75, 1.125]


def test_a_refused_run_in_parts_writes_nothing():
    text = ("param N\ngrid G = [0..N-1]\nfield A : f64 on G\ntemp field D : f64 on G\n"
            "fn f -> A [0..N-1] = A[0] + D[0]\nfn d -> D [0..N-1] = A[0]\nsteps 3\n")
    kernel = stencilc.compile(text, target="reference")
    a, out = np.ones(4), np.zeros(4)
    for manner in (dict(in_place=True), dict(out=out)):
        with pytest.raises(stencilc.ArgumentError, match="from step to step"):
            kernel(A=a, steps=3, every=1, **manner)
    assert (a == 1).all() and (out == 0).all()


def test_a_refusal_names_a_remedy_that_the_program_has():
    text = (LINE + "fn f -> A [0..N-1] = A[0] + mean\n"
            "reduce mean : f32 = max(A[0]) on [0..N-1] initially 1\nsteps 3\n")
    kernel = stencilc.compile(text, target="reference")
    with pytest.raises(stencilc.ArgumentError, match="a step reads the reduction `mean` of the"):
        kernel(A=np.ones(4, np.float32), steps=3, every=1)


@pytest.mark.parametrize("condition", ["abs(m) < 0.2", "2*m < 0.4", "m < 0.2"])
def test_a_condition_may_compute_with_a_reduction(condition):
    text = (LINE + "fn f -> A [0..N-1] = A[0] / 2\n"
            f"reduce m : f32 = max(A[0]) on [0..N-1]\nsteps 9 until {condition}\n")
    result = stencilc.compile(text, target="reference")(A=np.ones(4, "f4"), steps=9, every=1)
    assert result.history["m"].tolist() == [0.5, 0.25, 0.125] and result.met


def test_a_reduction_of_the_same_step_is_read_in_parts_too():
    text = ("struct S { total : f32 }\nparam N\ngrid G = [0..N-1]\nfield A : f32 on G\n"
            "field W : S on G\nreduce total : f32 = max(A[0]) on [0..N-1]\n"
            "fn f -> A [0..N-1] = A[0] + total\n"
            "fn g -> W [0..N-1] = S { total: W[0].total + 1 }\nsteps 3\n")
    kernel = stencilc.compile(text, target="reference")
    values = dict(A=np.ones(4, "f4"), W=np.zeros(4, [("total", "f4")]))
    result, whole = kernel(**values, steps=3, every=1), kernel(**values, steps=3)
    assert result.history["total"].tolist() == [1, 2, 4]
    assert (result.A == whole.A).all() and (result.W == whole.W).all()


@pytest.mark.parametrize("target", TARGETS)
def test_parts_end_where_the_program_looks(target):
    text = (LINE + "fn f -> A [0..N-1] = A[0] / 2\n"
            "reduce m : f32 = max(A[0]) on [0..N-1]\nsteps 9 until m < 0.03 every 2\n")
    kernel = stencilc.compile(text, target=target)
    a, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    for manner in (dict(in_place=True), dict(out=out)):
        for when in (dict(every=5), dict(every=2, first_step=1), dict(first_step=3)):
            with pytest.raises(stencilc.ArgumentError, match="only after multiples of 2"):
                kernel(A=a, steps=9, **when, **manner)
    assert (a == 1).all() and (out == 0).all()
    result = kernel(A=a, steps=9, every=4)
    assert result.history["steps"].tolist() == [4, 6] and result.met
    assert result.steps == kernel(A=a, steps=9).steps == 6
    assert kernel(A=a, steps=2, first_step=4).steps == 2


def loaded(tmp_path, text):
    """The kernel of the files of a compile."""
    kernel = stencilc.compile(text, target="reference")
    (tmp_path / "x.plan.json").write_text(json.dumps(kernel.plan))
    (tmp_path / "x.ptx").write_text(kernel.ptx)
    return stencilc.load(tmp_path / "x.plan.json")


@pytest.mark.parametrize(
    "items, message",
    [
        ("fn f -> A [0..N-1] = A[0] + m\nreduce m : f32 = max(A[0]) on [0..N-1] initially 1",
         "a step may read the reduction `m`"),
        ("fn f -> A [0..N-1] = A[0] + 1\nreduce m : f32 = max(m + A[0]) on [0..1] initially 1",
         "a step may read the reduction `m`"),
        ("temp field D : f32 on G\nfn f -> A [0..N-1] = A[0] + D[0]\nfn d -> D [0..N-1] = A[0]",
         "the kernels keep the temp field `D` in memory"),
        ("fn f -> A [0..N-1] = A[0] / 2\nreduce m : f32 = max(A[0]) on [0..N-1]", None),
        ("reduce m : f32 = max(A[0]) on [0..N-1]\nfn f -> A [0..N-1] = A[0] / (1 + m)", None),
    ],
)
def test_a_loaded_plan_in_parts(tmp_path, items, message):
    kernel = loaded(tmp_path, LINE + items + "\nsteps 3\n")
    if message is None:
        kernel._native.check_parts(0, 1)
        return
    with pytest.raises(stencilc.ArgumentError) as raised:
        kernel(A=np.ones(9000, np.float32), steps=3, every=1, in_place=True)
    assert message in str(raised.value) and "declare it" not in str(raised.value)


def test_a_loaded_plan_looks_after_multiples(tmp_path):
    text = (LINE + "fn f -> A [0..N-1] = A[0] / 2\n"
            "reduce m : f32 = max(A[0]) on [0..N-1]\nsteps 9 until m < 0.03 every 3\n")
    kernel = loaded(tmp_path, text)
    with pytest.raises(stencilc.ArgumentError, match="only after multiples of 3; 4 is none"):
        kernel(A=np.ones(9, np.float32), steps=9, every=4)
    kernel._native.check_parts(3, 6)


def test_members_by_their_names_go_on_in_the_next_part():
    text = ("struct S { h : f32, u : f32 }\nparam N\ngrid G = [0..N-1]\nfield W : S on G\n"
            "fn f -> W [0..N-1] = S { h: W[0].h + 1, u: W[0].u + W[0].h }\n"
            "reduce m : f32 = max(W[0].h) on [0..N-1]\nsteps 1\n")
    kernel = stencilc.compile(text, target="reference")
    values = {"W.h": np.zeros(4, "f4"), "W.u": np.zeros(4, "f4")}
    result = kernel(steps=3, every=1, params=values)
    assert result["W.h"].tolist() == [3] * 4 and result["W.u"].tolist() == [3] * 4
    assert result.history["m"].tolist() == [1, 2, 3]
