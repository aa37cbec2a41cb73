"""Calls with arrays of NumPy, on the reference and on the simulator."""

import threading
import time

import numpy as np
import pytest
import stencilc
from conftest import HEAT, ROOT, heat, in_blocks


@pytest.fixture(scope="module")
def kernel():
    return stencilc.compile(HEAT, target="reference")


def test_a_run_returns_new_arrays(kernel, plate, rates):
    before = plate.copy()
    result = kernel(A=plate, K=rates, steps=7, alpha=0.2)
    assert np.array_equal(result.A, heat(plate, rates, 7, 0.2))
    assert np.array_equal(plate, before) and result.A is not plate
    assert result["A"] is result.A and set(result) == {"A", "total"}
    assert (result.steps, result.launches, result.met) == (7, 0, None)
    assert result.total == pytest.approx(float(result.A.sum(dtype=np.float64)), rel=1e-12)
    assert kernel(A=plate, K=rates).steps == 10


def test_in_place_and_out(kernel, plate, rates):
    wanted = heat(plate, rates, 3)
    out = np.empty_like(plate)
    assert kernel(A=plate, K=rates, steps=3, out=out).A is out
    assert np.array_equal(out, wanted)
    result = kernel(A=plate, K=rates, steps=3, in_place=True)
    assert result.A is plate and np.array_equal(plate, wanted)


WAVE = """
param N
grid G = [0..N-1]
field U : f64 on G
field P : f64 on G
fn wave -> (U, P) [1..N-2] = (2*U[0] - P[0] + 0.25*(U[-1] + U[1] - 2*U[0]), U[0])
steps 3
"""


def test_an_out_that_is_another_input():
    kernel = stencilc.compile(WAVE, target="reference")
    room = np.random.default_rng(1).random(40)
    u, p = room[:20].copy(), room[20:].copy()
    wanted = kernel(U=u, P=p)
    now, before = u.copy(), p.copy()
    kernel(U=now, P=before, out={"U": before, "P": now})
    assert np.array_equal(before, wanted.U) and np.array_equal(now, wanted.P)
    struct = WAVE.replace("field U : f64 on G\n", "struct S { u : f64, p : f64 }\n")
    struct = struct.replace("field P : f64 on G", "field W : S on G")
    struct = struct.replace("(U, P)", "W").replace("(2*U[0] - P[0]", "S { u: 2*W[0].u - W[0].p")
    struct = struct.replace("(U[-1] + U[1] - 2*U[0])", "(W[-1].u + W[1].u - 2*W[0].u)")
    struct = struct.replace(", U[0])", ", p: W[0].u }")
    now, before = u.copy(), p.copy()
    of_struct = stencilc.compile(struct, target="reference")
    of_struct(W={"u": now, "p": before}, out={"W": {"u": before, "p": now}})
    assert np.array_equal(before, wanted.U) and np.array_equal(now, wanted.P)
    # An array that only overlaps, and one that runs backwards.
    room[10:30] = p
    result = kernel(U=u, P=room[10:30], out={"U": room[:20], "P": np.empty(20)})
    assert np.array_equal(result.U, wanted.U) and np.array_equal(result.P, wanted.P)
    before = p.copy()
    result = kernel(U=u, P=before, out={"U": before[::-1], "P": np.empty(20)})
    assert np.array_equal(result.U, wanted.U) and np.array_equal(result.P, wanted.P)


@pytest.mark.parametrize("target", ["reference", "sim"])
def test_strides(target, plate, rates):
    kernel = stencilc.compile(HEAT, target=target, fp_contract="off", strategy="naive")
    wanted = heat(plate, rates, 4)
    room = np.zeros((33, 60), dtype=np.float32)
    part = room.T[5:45:2]
    part[...] = plate
    result = kernel(A=part, K=np.asfortranarray(rates), steps=4, in_place=True)
    assert result.A is part and np.array_equal(part, wanted) and result.copies > 0
    assert np.count_nonzero(room.T[4::2]) == 0
    assert np.array_equal(kernel(A=plate[::-1], K=rates[::-1], steps=4).A, wanted[::-1])
    wide = np.broadcast_to(np.float32(0.5), plate.shape)
    assert np.array_equal(kernel(A=plate, K=wide, steps=2).A, heat(plate, wide, 2))


@pytest.mark.parametrize(
    "change, text",
    [
        (dict(A=np.zeros((20, 33))), "field `A` is float32 in 2 dimensions, the array is float64"),
        (dict(A=np.zeros(20, np.float32)), "the array is float32 in 1 dimension"),
        (dict(A=[[1.0]]), "`A` is no array but list"),
        (dict(K=3), "`K` is no array but int"),
        (dict(K=np.zeros((21, 33), np.float32)), "N = 20"),
        (dict(A=np.zeros((20, 33), ">f4")), "byte order"),
        (dict(B=1), "has no `B`; it has A, K, alpha, N, M"),
        (dict(alpha="x"), "the scalar `alpha` is no number: x"),
        (dict(total=1.0), "`total` is a result, not an input"),
        (dict(steps=-1), "-1 steps can't be run"),
    ],
)
def test_wrong_arguments(kernel, plate, rates, change, text):
    with pytest.raises(stencilc.ArgumentError) as raised:
        kernel(**{**dict(A=plate, K=rates), **change})
    assert text in str(raised.value)
    assert isinstance(raised.value, ValueError)


def test_memory_that_can_not_be_used(kernel, plate, rates):
    with pytest.raises(stencilc.ArgumentError, match="field `K` has no data; give it as K=ARRAY"):
        kernel(A=plate)
    with pytest.raises(stencilc.ArgumentError, match="share memory"):
        kernel(A=plate, K=plate, in_place=True)
    plate.flags.writeable = False
    assert kernel(A=plate, K=rates, steps=1).A.flags.writeable
    with pytest.raises(stencilc.ArgumentError, match="read-only"):
        kernel(A=plate, K=rates, in_place=True)


def test_a_faulty_program_has_a_place(tmp_path):
    file = tmp_path / "wrong.stencil"
    file.write_text("param N\ngrid G = [0..N-1]\nfield A : f32 on G\n"
                    "fn f -> A [0..N-1] = A[-1]\nsteps 1\n")
    with pytest.raises(stencilc.CompileError) as raised:
        stencilc.compile(file)
    assert raised.value.place == (str(file), 4, 22)
    assert "A[-1]" in str(raised.value) and "boundary" in str(raised.value)
    with pytest.raises(stencilc.CompileError, match="--no-such"):
        stencilc.compile(HEAT, no_such=1)
    with pytest.raises(FileNotFoundError):
        stencilc.compile("missing.stencil")


def test_levels_and_report():
    kernel = stencilc.compile(HEAT, target="reference", arch="sm_90", define={"M": 64})
    assert ".entry" in kernel.ptx and kernel.plan["params"] == ["N"]
    assert "stencil.apply" in kernel.source() and "tiled." in kernel.source("tiled", N=64)
    report = kernel.report(as_dict=True, N=64)
    assert report["kernels"] and "GCells" in kernel.report(N=64)
    assert kernel.fields["A"] == ("state", np.dtype("f4"), 2)
    assert kernel.scalars == {"alpha": 0.1} and kernel.params == ["N"]
    with pytest.raises(stencilc.ArgumentError, match="there is no level"):
        kernel.source("sass")


def test_sizes_that_no_shape_tells():
    text = ("param N\nparam K\ngrid G = [0..N-1]\nfield A : i64 on G\n"
            "fn f -> A [0..N-1] = A[0] + K\nsteps 1\n")
    kernel = stencilc.compile(text, target="reference")
    zeros = np.zeros(4, np.int64)
    assert kernel(A=zeros, K=5, steps=2).A.tolist() == [10] * 4
    with pytest.raises(stencilc.ArgumentError, match="the size K has no value; give it as K=..."):
        kernel(A=zeros)
    with pytest.raises(stencilc.ArgumentError, match="no whole number"):
        kernel(A=zeros, K=1.5)


CELLS = """
struct S {{ h : f32, v : vec<2, f64> }}
param N
grid G = [0..N-1]
field W : S on G
field Z : complex64 on G
field V : vec<3, i32> on G
field B : bool on G
fn w -> W [0..N-1] = S {{ h: W[0].h + 1, v: 2 * W[0].v }}
fn z -> Z [0..N-1] = cmul(Z[0], vec(0, 1))
fn v -> V [0..N-1] = V[0] + V[0]
fn b -> B [0..N-1] = !B[0]
reduce centre : complex64 = sum(Z[0]) on [0..N-1]
reduce some : bool = any(B[0]) on [0..N-1]
reduce most : i32 = max(V[0].2) on [0..N-1]
steps 1
"""


@pytest.mark.parametrize("target", ["reference", "cpu", "sim"])
def test_cells_that_are_no_numbers(target):
    kernel = stencilc.compile(CELLS.format().replace(
        "reduce centre : complex64 = sum(Z[0]) on [0..N-1]\n", ""), target=target)
    # Members in another order, and padding between them.
    dtype = np.dtype({"names": ["v", "h"], "formats": [("f8", 2), "f4"],
                      "offsets": [8, 0], "itemsize": 32})
    w = np.zeros(5, dtype)
    w["h"], w["v"] = np.arange(5), np.arange(10).reshape(5, 2)
    z = (np.arange(5) + 1j).astype(np.complex64)
    v = np.arange(15, dtype=np.int32).reshape(5, 3)
    b = np.array([True, False, True, False, True])
    result = kernel(W=w, Z=z, V=v, B=b)
    assert result.W["h"].tolist() == [1, 2, 3, 4, 5]
    assert np.array_equal(result.W["v"], 2 * w["v"]) and result.W.dtype == dtype
    assert np.array_equal(result.Z, z * 1j) and np.array_equal(result.V, 2 * v)
    assert np.array_equal(result.B, ~b) and result.some is True
    assert result.most == 28 and type(result.most) is int
    members = {"h": w["h"].copy(), "v.0": w["v"][:, 0].copy(), "v.1": w["v"][:, 1].copy()}
    again = kernel(W=members, Z=z, V=v, B=b)
    assert np.array_equal(again.W["v.1"], 2 * w["v"][:, 1])
    with pytest.raises(stencilc.ArgumentError, match="W` is a struct of h: float32, v: float64"):
        kernel(W=z, Z=z, V=v, B=b)
    with pytest.raises(stencilc.ArgumentError, match="V` is int32 with one more dimension of 3"):
        kernel(W=w, Z=z, V=np.zeros((5, 4), np.int32), B=b)
    assert kernel.fields["W"][1].names == ("h", "v")


def test_values_over_steps(kernel, plate, rates):
    seen = []
    result = kernel(A=plate, K=rates, steps=10, every=4, keep=["total", "A"],
                    progress=lambda done, of: seen.append((done, of)))
    assert result.history["steps"].tolist() == [4, 8, 10] and result.steps == 10
    assert np.array_equal(result.A, heat(plate, rates, 10))
    assert np.array_equal(result.history["A"][0], heat(plate, rates, 4))
    assert result.history["total"][-1] == result.total and seen[-1] == (10, 10)
    with pytest.raises(stencilc.ArgumentError, match="give the number of steps"):
        kernel(A=plate, K=rates, every=2)


def test_members_of_a_struct_that_are_vecs():
    text = ("struct W { h : f32, v : vec<2, f32> }\nparam N\ngrid G = [0..N-1]\n"
            "field S : W on G\n"
            "fn f -> S [0..N-1] = W { h: S[0].h + 1, v: S[0].v + 2 }\nsteps 1\n")
    kernel = stencilc.compile(text, target="reference")
    h, v = np.zeros(9, "f4"), np.arange(18, dtype="f4").reshape(9, 2)
    result = kernel(S={"h": h, "v": v}).S
    assert list(result) == ["h", "v"] and (result["h"] == 1).all()
    assert np.array_equal(result["v"], v + 2)
    lanes = kernel(S={"h": h, "v": {"0": v[:, 0], "1": v[:, 1]}}).S
    assert np.array_equal(lanes["v"]["1"], v[:, 1] + 2)
    into = np.empty_like(v)
    out = {"S": {"h": h.copy(), "v": into}}
    assert kernel(S={"h": h, "v": v}, out=out).S["v"] is into and np.array_equal(into, v + 2)
    for members, text in (
        ({"h": h, "u": v}, "has no member `u`; it has h, v.0, v.1"),
        ({"h": h, "v": v[:, :1]}, "the array is float32 in 2 dimensions, of the shape"),
        ({"h": h, "v": v, "v.0": h}, "the cells of `S.v.0` are given twice"),
    ):
        with pytest.raises(stencilc.ArgumentError, match=text):
            kernel(S=members)


@pytest.mark.parametrize("layout", ["aos", "aos-direct", "aos-relaid", "aos-blocks", "blocks"])
def test_layouts_of_vecs(layout):
    program = (ROOT / "test-suite/programs/d2q9.stencil").read_text()
    start = np.random.default_rng(4).random((7, 64, 9), dtype=np.float32) + np.float32(1)
    options = {"target": "sim", "fp_contract": "off"}
    wanted = stencilc.compile(program, **options)(F=start, steps=3).F
    stored = in_blocks if layout == "blocks" else np.copy
    kernel = stencilc.compile(program, layout=layout, **options)
    array = stored(start)
    assert np.array_equal(kernel(F=array, steps=3).F, stored(wanted))
    assert kernel(F=array, in_place=True, steps=3).F is array
    assert np.array_equal(array, stored(wanted))


def test_until():
    text = ("param N\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A [0..N-1] = A[0] / 2\n"
            "reduce most : f32 = max(A[0]) on [0..N-1]\nsteps 100 until most < 0.2 every 2\n")
    result = stencilc.compile(text, target="sim")(A=np.ones(4, np.float32))
    assert (result.steps, result.met, result.most) == (4, True, 0.0625)


def test_other_threads_run_meanwhile(kernel):
    big = np.ones((600, 600), np.float32)
    ticks, ended = [], threading.Event()

    def count():
        while not ended.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    begin = time.perf_counter()
    kernel(A=big, K=big, steps=150)
    end = time.perf_counter()
    ended.set()
    counter.join()
    within = [tick for tick in ticks if begin < tick < end]
    gaps = np.diff([begin, *within, end])
    assert end - begin > 0.05 and max(gaps) < (end - begin) / 2


def test_threads_share_a_kernel(kernel, plate, rates):
    results = {}

    def run(steps):
        results[steps] = kernel(A=plate, K=rates, steps=steps).A

    threads = [threading.Thread(target=run, args=(steps,)) for steps in range(1, 6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(np.array_equal(results[n], heat(plate, rates, n)) for n in range(1, 6))


def test_ctrl_c_ends_a_run(kernel):
    import os
    import signal

    big = np.ones((400, 400), np.float32)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        kernel(A=big, K=big, steps=1_000_000)
    assert time.perf_counter() - begin < 5


def test_a_callback_that_raises_ends_the_run(kernel):
    big = np.ones((400, 400), np.float32)

    def stop(done, of):
        raise LookupError(f"{done} of {of}")

    with pytest.raises(LookupError):
        kernel(A=big, K=big, steps=1_000_000, progress=stop)


def test_pictures(tmp_path, plate):
    file = tmp_path / "plate.png"
    data = stencilc.picture(plate, file, colors="inferno", range=(0, 1))
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and file.read_bytes() == data
    assert stencilc.picture(np.arange(5)) != data
    with pytest.raises(stencilc.ArgumentError, match="one or two dimensions"):
        stencilc.picture(np.zeros((2, 2, 2)))
    with pytest.raises(stencilc.ArgumentError, match="there are no colors `jet`"):
        stencilc.picture(plate, colors="jet")


def test_programs_of_the_suite_compile_as_files(plate, rates):
    kernel = stencilc.compile(ROOT / "test-suite/programs/heat2d.stencil", target="reference")
    assert np.array_equal(kernel(A=plate, K=rates, steps=5).A, heat(plate, rates, 5))
