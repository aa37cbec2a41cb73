"""Arguments of calls, and of pictures, that are wrong or that NumPy would take."""

import os
import re
import signal
import sys
import time
import types

import numpy as np
import pytest
import stencilc
from conftest import HEAT, heat

TASKS = "/proc/self/task"


@pytest.fixture(scope="module")
def kernel():
    return stencilc.compile(HEAT, target="reference")


@pytest.mark.parametrize(
    "change, text",
    [
        (dict(out={"Z": 0}), "out: `Z` is no state field; the state fields are A"),
        (dict(out={"K": 0}), "out: `K` is no state field"),
        (dict(out={"total": 0}), "out: `total` is no state field"),
        (dict(out={"A": {"h": 0}}), "out: `A.h` has another form than the argument `A`"),
        (dict(out=(1, 2)), "out: `A` is no array but tuple"),
        (dict(out=np.zeros((20, 33), np.float32), in_place=True), "exclude each other"),
        (dict(in_place=1), "in_place: expected True or False, not 1"),
        (dict(steps=1.5), "steps: expected a whole number, not 1.5"),
        (dict(first_step="0"), "first_step: expected a whole number"),
        (dict(steps=2, every=1.5), "every: expected a whole number"),
        (dict(steps=2, every=1, keep=3), "keep: expected names"),
        (dict(progress=3), "progress: expected a callable or True, not 3"),
    ],
)
def test_what_a_call_refuses(kernel, plate, rates, change, text):
    before = plate.copy()
    with pytest.raises(stencilc.ArgumentError) as raised:
        kernel(**{**dict(A=plate, K=rates), **change})
    assert text in str(raised.value)
    assert np.array_equal(plate, before)


def test_a_scalar_in_an_array(kernel, plate, rates):
    result = kernel(A=plate, K=rates, alpha=np.array([0.25]))
    assert np.array_equal(result.A, kernel(A=plate, K=rates, alpha=0.25).A)
    with pytest.raises(stencilc.ArgumentError, match="the scalar `alpha` is no number"):
        kernel(A=plate, K=rates, alpha=np.ones(2))


def test_an_empty_program():
    for text in ("", "  "):
        with pytest.raises(stencilc.CompileError, match="program.stencil"):
            stencilc.compile(text)


def test_an_out_that_is_read_only(kernel, plate, rates):
    out = np.zeros_like(plate)
    out.flags.writeable = False
    with pytest.raises(stencilc.ArgumentError, match="`A` is read-only"):
        kernel(A=plate, K=rates, out=out)


def test_what_a_call_takes(kernel, plate, rates):
    result = kernel(A=plate, K=rates, steps=np.int64(3), first_step=np.int32(0), progress=False)
    assert np.array_equal(result.A, heat(plate, rates, 3))
    kept = kernel(A=plate, K=rates, steps=3, every=np.int64(1), keep="total")
    assert kept.history["total"].shape == (3,)


def test_out_of_a_struct():
    text = ("struct S { h : f32, u : f32 }\nparam N\ngrid G = [0..N-1]\nfield W : S on G\n"
            "fn f -> W [0..N-1] = S { h: W[0].h + 1, u: W[0].u }\nsteps 1\n")
    kernel = stencilc.compile(text, target="reference")
    members = {"h": np.zeros(4, np.float32), "u": np.zeros(4, np.float32)}
    out = {"h": np.empty(4, np.float32), "u": np.empty(4, np.float32)}
    result = kernel(W=members, out={"W": out})
    assert result.W["h"] is out["h"] and out["h"].tolist() == [1] * 4
    with pytest.raises(stencilc.ArgumentError, match="`W` has another form"):
        kernel(W=members, out={"W": np.zeros(4, [("h", "f4"), ("u", "f4")])})


NESTED = ("struct W { h : f32, v : vec<2, f32> }\nparam N\ngrid G = [0..N-1]\nfield S : W on G\n"
          "const field C : f32 on G\n"
          "fn f -> S [0..N-1] = W { h: S[0].h + C[0], v: S[0].v + 2 }\nsteps 1\n")


def test_out_of_members_in_members():
    kernel = stencilc.compile(NESTED, target="reference")
    h, v, c = np.zeros(5, "f4"), np.arange(10, dtype="f4").reshape(5, 2), np.ones(5, "f4")
    lanes = {"0": v[:, 0].copy(), "1": v[:, 1].copy()}
    with pytest.raises(stencilc.ArgumentError, match="`S.v` has another form"):
        kernel(S={"h": h, "v": lanes}, C=c, out={"S": {"h": h.copy(), "v": v.copy()}})
    into = {"h": np.empty(5, "f4"), "v": {"0": np.empty(5, "f4"), "1": np.empty(5, "f4")}}
    result = kernel(S={"h": h, "v": lanes}, C=c, out={"S": into})
    assert result.S["v"]["0"] is into["v"]["0"]
    for lane in (0, 1):
        assert np.array_equal(into["v"][str(lane)], v[:, lane] + 2)
    with pytest.raises(stencilc.ArgumentError, match="`S` has another form"):
        kernel(C=c, params={"S.h": h, "S.v": v}, out=np.zeros(5, [("h", "f4"), ("v", "2f4")]))


def test_all_arguments_are_read_before_an_output_is_written():
    kernel = stencilc.compile(NESTED, target="reference")
    h, v, c = np.zeros(5, "f4"), np.arange(10, dtype="f4").reshape(5, 2), np.ones(5, "f4")
    old = v.copy()
    # The second lane's result goes to where the first lane lies, and h's to the const field.
    lanes, other = {"0": v[:, 0].copy(), "1": v[:, 1].copy()}, np.empty(5, "f4")
    out = {"h": c, "v": {"0": other, "1": lanes["0"]}}
    kernel(S={"h": h, "v": lanes}, C=c, out={"S": out})
    assert np.array_equal(other, old[:, 0] + 2) and np.array_equal(lanes["0"], old[:, 1] + 2)
    assert c.tolist() == [1] * 5


@pytest.mark.parametrize("lane", ["00", "+0", "2", ""])
def test_a_lane_has_one_name(lane):
    kernel = stencilc.compile(NESTED, target="reference")
    h, v = np.zeros(5, "f4"), np.zeros(5, "f4")
    for members in ({"h": h, f"v.{lane}": v}, {"h": h, "v": {lane: v}}):
        with pytest.raises(stencilc.ArgumentError, match=f"has no member `.*{re.escape(lane)}`"):
            kernel(S=members, C=h)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_integers_keep_all_their_bits(target):
    def kernel(kind):
        return stencilc.compile(
            f"param N\nscalar k : {kind}\ngrid G = [0..N-1]\nfield A : {kind} on G\n"
            "fn f -> A [0..N-1] = A[0] + k\nsteps 1\n", target=target)

    class Tensor:
        """An array of one element, as PyTorch's are."""

        def __init__(self, value):
            self.value = value

        def item(self):
            return self.value

        def __float__(self):
            return float(self.value)

    signed, unsigned = kernel("i64"), kernel("u64")
    odd = 2**53 + 1
    for k in (odd, np.int64(odd), np.array(odd), np.array([odd]), Tensor(odd), -odd):
        result = signed(A=np.zeros(3, np.int64), k=k)
        assert result.A.tolist() == [k.item() if hasattr(k, "item") else k] * 3, k
    for k in (2**63, 2**64 - 1, np.uint64(2**64 - 1)):
        assert unsigned(A=np.zeros(3, np.uint64), k=k).A.tolist() == [int(k)] * 3
    with pytest.raises(stencilc.ArgumentError):
        unsigned(A=np.zeros(3, np.uint64), k=2**64)
    with pytest.raises(stencilc.ArgumentError):
        signed(A=np.zeros(3, np.int64), k=2**63)
    with pytest.raises(OverflowError):
        signed(A=np.zeros(3, np.int64), k=2**200)


def test_a_report_has_loads_and_stores(kernel):
    report = kernel.report(as_dict=True, N=64, M=64)
    assert report["traffic"]["kernels"] and report["traffic_of_a_step"][0] > 0


def test_a_scalar_that_requires_a_gradient(kernel, plate, rates):
    class Scalar:
        requires_grad = True

        def __float__(self):
            return 0.2

    with pytest.raises(stencilc.ArgumentError, match="alpha.detach()"):
        kernel(A=plate, K=rates, alpha=Scalar())
    out = plate.view(type("Array", (np.ndarray,), {"requires_grad": True})).copy()
    with pytest.raises(stencilc.ArgumentError, match="out: the array of `A` requires a gradient"):
        kernel(A=plate, K=rates, out=out)


def test_pictures_of_complex_numbers(plate):
    turned = plate * np.exp(1j * plate)
    assert stencilc.picture(turned.astype(np.complex128)) == stencilc.picture(abs(turned))
    with pytest.raises(stencilc.ArgumentError, match="numbers or bools"):
        stencilc.picture(np.zeros((2, 2), [("h", "f4"), ("u", "f4")]))


@pytest.mark.parametrize("name", ["x.jpg", "x"])
def test_a_picture_is_a_png_file(name, tmp_path, plate):
    with pytest.raises(stencilc.ArgumentError, match="end the name in .png"):
        stencilc.picture(plate, tmp_path / name)
    assert not list(tmp_path.iterdir())
    stencilc.picture(plate, str(tmp_path / "x.PNG"))


def test_arrays_are_told_of_calls_that_run_alone(monkeypatch, plate, rates):
    told = []

    class Tensor(np.ndarray):
        """An array with the attributes of PyTorch's."""

        requires_grad = is_cuda = False
        __module__ = "torch"
        get_device = lambda self: -1
        data_ptr = lambda self: self.ctypes.data
        stride = lambda self: tuple(step // self.itemsize for step in self.strides)
        copy_ = lambda self, other: np.copyto(self, other)

    graph = types.ModuleType("torch.autograd.graph")
    graph.increment_version = told.append
    for name in ("torch", "torch.autograd"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "torch.autograd.graph", graph)
    heat2d = stencilc.compile(HEAT, target="reference")
    tensor, out = plate.view(Tensor), np.zeros_like(plate).view(Tensor)
    for wrong in [dict(K=rates[1:]), dict(K=None), dict(K=rates, beta=1), dict(K=rates, steps=-1)]:
        for manner in [dict(in_place=True), dict(out=tensor), dict(out=out)]:
            with pytest.raises(stencilc.ArgumentError):
                heat2d(A=tensor, **wrong, **manner)
            assert not told and not out.any(), wrong
    heat2d(A=tensor, K=rates, in_place=True)
    heat2d(A=tensor, K=rates, out=tensor)
    assert [one is tensor for one in told] == [True, True]
    wanted = heat(plate, rates, 10)
    heat2d(A=tensor, K=rates, out=out)
    assert np.array_equal(out, wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_of_the_process_runs_on_the_processor(plate, rates):
    kernel = stencilc.compile(HEAT, target="cpu")
    wanted = kernel(A=plate, K=rates).A
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = [np.array_equal(kernel(A=plate, K=rates).A, wanted) for _ in range(3)]
            status = 0 if all(same) else 2
        finally:
            # An exception must not reach the test runner, of which this is a second one.
            os._exit(status)
    assert exit_status(child) == 0
    assert np.array_equal(kernel(A=plate, K=rates).A, wanted)


def exit_status(child, seconds=60):
    """The status of a process at its end; after a limit it is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pytest.fail(f"the process {child} did not end within {seconds} s")


def threads():
    """The numbers of this process's threads."""
    return set(os.listdir(TASKS))


@pytest.mark.skipif(not os.path.isdir(TASKS), reason="the system does not list threads")
def test_a_call_on_the_processor_loads_no_code(plate, rates):
    kernel = stencilc.compile(HEAT, target="cpu")
    before = threads()
    kernel(A=plate, K=rates)
    own = threads() - before
    assert own
    for _ in range(5):
        kernel(A=plate, K=rates, steps=1)
        assert threads() - before == own


@pytest.mark.skipif(not os.path.isdir(TASKS), reason="the system does not list threads")
def test_versions_for_other_sizes_end_their_threads():
    kernel = stencilc.compile(HEAT, target="cpu", threads=1)
    before = threads()
    for size in range(10, 22):
        array = np.ones((size, size), np.float32)
        kernel(A=array, K=array)
    for _ in range(500):
        count = len(threads() - before)
        if count <= 8:
            break
        time.sleep(0.01)
    assert 1 <= count <= 8
