"""Arrays on a device, on the driver of the runtime's own tests, whose memory is the host's.

The driver is found in the place of libcuda.so, so the tests run in a process of their own. That of
the memory of versions runs on a real device too, where there is one.
"""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
import stencilc
from conftest import ROOT, in_blocks

PLAN = ROOT / "runtime/tests/data/smear.plan.json"
DRIVER = os.environ.get("STENCILC_TEST_DRIVER")
# Whether this process runs on the system's own driver.
IS_REAL = "FAKE_CUDA_LOG" not in os.environ


SMOOTH = """
param N
grid G = [0..N-1]
field A : f32 on G
fn smooth -> A [1..N-2] = 0.25 * A[-1] + 0.5 * A[0] + 0.25 * A[1]
steps 3
"""
# Versions whose memory on a device is kept, and versions that run.
KEPT, VERSIONS = 8, 10


def run_in_a_process(what, **environment):
    process = subprocess.run(
        [sys.executable, __file__, what], env={**os.environ, **environment}, capture_output=True,
        text=True, timeout=300,
    )
    assert process.returncode == 0, process.stderr


def on_driver(what, tmp_path):
    """Runs a part of this file on the driver of the tests; returns the names of its calls."""
    assert DRIVER, "STENCILC_TEST_DRIVER is the folder of the driver that the tests run on"
    log = tmp_path / "log"
    run_in_a_process(what, LD_LIBRARY_PATH=DRIVER, FAKE_CUDA_LOG=str(log))
    assert "FAULT" not in log.read_text()
    return [line.split()[0] for line in log.read_text().splitlines()]


def devices():
    """The devices of the system's own driver."""
    count = ctypes.c_int()
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    cuda.cuInit(0)
    cuda.cuDeviceGetCount(ctypes.byref(count))
    return count.value


def test_versions_free_their_memory_on_the_driver_of_the_tests(tmp_path):
    calls = on_driver("versions", tmp_path)
    assert calls.count("cuModuleLoadDataEx") == calls.count("cuModuleUnload") == VERSIONS + 2
    assert calls.count("cuMemAlloc_v2") == calls.count("cuMemFree_v2") > 0


@pytest.mark.skipif(devices() == 0, reason="the system has no CUDA device")
def test_versions_free_their_memory_on_a_device():
    run_in_a_process("versions")


@pytest.mark.skipif(devices() == 0, reason="the system has no CUDA device")
def test_layouts_of_vecs_on_a_device():
    run_in_a_process("layouts")


def test_on_the_driver_of_the_tests(tmp_path):
    calls = on_driver("arrays", tmp_path)
    for made, gone in [("cuMemAlloc_v2", "cuMemFree_v2"), ("cuGraphCreate", "cuGraphDestroy")]:
        assert calls.count(made) == calls.count(gone) > 0
    assert calls.count("cuModuleLoadDataEx") == calls.count("cuModuleUnload")


def smear(a, steps, first=0):
    """The recipe at the head of smear.ptx."""
    a = a.copy()
    for step in range(first, first + steps):
        total = (a[:-2] - a[1:-1]) + (a[2:] - a[1:-1])
        a[1:-1] = (a[1:-1] + np.float32(0.25) * total) + np.float32(step)
    return a


class Array:
    """An array on the device, by an interface that CuPy, PyTorch and Numba have."""

    def __init__(self, cuda, cells, stream=None, more=0):
        self.cuda, self.shape, self.nbytes = cuda, cells.shape, cells.nbytes
        self.address = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(self.address), cells.nbytes + more) == 0
        self.move(self.address.value, cells.ctypes.data)
        self.__cuda_array_interface__ = {
            "version": 3, "shape": cells.shape, "typestr": cells.dtype.str,
            "data": (self.address.value, False), "strides": None, "stream": stream,
        }

    def cells(self):
        cells = np.empty(self.shape, np.float32)
        self.move(cells.ctypes.data, self.address.value)
        return cells

    def move(self, to, source):
        if IS_REAL:
            to, source, size = map(ctypes.c_uint64, (to, source, self.nbytes))
            assert self.cuda.cuMemcpy(to, source, size) == 0
        else:
            ctypes.memmove(to, source, self.nbytes)

    def free(self):
        assert self.cuda.cuMemFree_v2(self.address) == 0


def calls(of):
    with open(os.environ["FAKE_CUDA_LOG"]) as log:
        return [line.split()[0] for line in log][of:]


def current_context(name="libcuda.so"):
    """The driver, with a stream in the context of the device that a run has opened."""
    cuda = ctypes.CDLL(name)
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
    return cuda, stream


def smoothed(a, steps):
    for _ in range(steps):
        a = np.concatenate([a[:1], 0.25 * a[:-2] + 0.5 * a[1:-1] + 0.25 * a[2:], a[-1:]])
    return a


def versions():
    """Versions for other sizes keep no module and no buffer of the device for good."""
    kernel = stencilc.compile(SMOOTH, target="cuda", cache=False)
    kernel(A=np.ones(64, np.float32))
    cuda, stream = current_context("libcuda.so.1" if IS_REAL else "libcuda.so")
    cells = 1 << (24 if IS_REAL else 7)

    def free():
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
        return free.value

    random = np.random.default_rng(3)
    starts = [random.random(cells + 8 * place, dtype=np.float32) for place in range(VERSIONS)]
    arrays = [Array(cuda, start, stream=stream.value) for start in starts]
    before = free() if IS_REAL else None
    # Nothing is waited for: versions lose their memory while their work may be under way. The
    # first one is made again.
    for array in [*arrays, arrays[0]]:
        kernel(A=array, in_place=True, stream=stream.value)
    if IS_REAL:
        assert before - free() < (KEPT + 0.5) * 4 * cells
        for place, (array, start) in enumerate(zip(arrays, starts)):
            wanted = smoothed(start, 6 if place == 0 else 3)
            assert np.allclose(array.cells(), wanted, rtol=1e-5, atol=1e-6)
    else:
        loaded = calls(0)
        modules = loaded.count("cuModuleLoadDataEx") - loaded.count("cuModuleUnload")
        buffers = loaded.count("cuMemAlloc_v2") - loaded.count("cuMemFree_v2") - len(arrays)
        assert modules == KEPT and 1 <= buffers <= 2 * KEPT, (modules, buffers)
    del kernel
    for array in arrays:
        array.free()
    assert cuda.cuStreamDestroy_v2(stream) == 0
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0


def layouts():
    """Arrays of vecs on a device, as they are and in blocks."""
    program = (ROOT / "test-suite/programs/d2q9.stencil").read_text()
    start = np.random.default_rng(4).random((40, 96, 9), dtype=np.float32) + np.float32(1)
    wanted = stencilc.compile(program, target="reference")(F=start, steps=5).F
    by_host = stencilc.compile(program, target="cuda", cache=False)(F=start, steps=5).F
    assert np.allclose(by_host, wanted, rtol=1e-5, atol=1e-6)
    cuda, stream = current_context("libcuda.so.1")
    for layout, stored in [("aos", start), ("blocks", in_blocks(start))]:
        kernel = stencilc.compile(program, target="cuda", layout=layout, cache=False)
        array = Array(cuda, stored, stream=stream.value)
        kernel(F=array, in_place=True, stream=stream.value, steps=5)
        assert cuda.cuStreamSynchronize(stream) == 0
        meant = in_blocks(wanted) if layout == "blocks" else wanted
        assert np.allclose(array.cells(), meant, rtol=1e-5, atol=1e-6), layout
        del kernel
        array.free()
    assert cuda.cuStreamDestroy_v2(stream) == 0
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0


def main():
    # A run of the host opens the device, whose context the driver wants to be current.
    kernel = stencilc.load(PLAN)
    start = np.random.default_rng(1).random(700, dtype=np.float32)
    assert np.array_equal(kernel(A=start, steps=7).A, smear(start, 7))
    cuda, stream = current_context()
    one, two = (Array(cuda, start, stream=stream.value) for _ in range(2))

    def run(array, **more):
        result = kernel(A=array, in_place=True, stream=stream.value, **more)
        assert result.A is array
        return result

    # In the array's own memory, and without a wait once it is known.
    for steps in (6, 7):
        run(one, steps=steps)
        begun = len(calls(0))
        run(two, steps=steps)
        run(one, steps=steps)
        made = calls(begun)
        assert not any("Synchronize" in call or "HtoD" in call for call in made), made
        assert made.count("cuGraphLaunch") == 2 and "cuMemAlloc_v2" not in made
        assert made.count("smear") == 2 * steps
    assert np.array_equal(one.cells(), smear(smear(smear(smear(start, 6), 6), 7), 7))
    assert np.array_equal(two.cells(), smear(smear(start, 6), 7))
    # An odd number of steps ends in the other buffer, from which one copy goes home.
    assert (run(one, steps=7).copies, run(one, steps=6).copies) == (1, 0)

    # Several parts, another alpha, another first step, another size, another stream.
    before = one.cells()
    seen, sent = [], len(calls(0))
    run(one, steps=150, progress=lambda done, of: seen.append((done, of)))
    assert np.array_equal(one.cells(), smear(before, 150)) and seen[-1] == (150, 150)
    # Three parts, two of which are alike; for other memory graphs get other addresses.
    graphs = calls(0)
    assert [graphs[sent:].count(f"cuGraph{what}") for what in ("Launch", "Create")] == [3, 2]
    before = two.cells()
    run(two, steps=150)
    assert np.array_equal(two.cells(), smear(before, 150))
    more = calls(len(graphs))
    assert more.count("cuGraphExecKernelNodeSetParams_v2") > 0 and "cuGraphCreate" not in more
    before = one.cells()
    run(one, steps=2, alpha=0.25, first_step=5)
    assert np.array_equal(one.cells(), smear(before, 2, first=5))
    small = Array(cuda, start[:90], stream=stream.value)
    run(small, steps=3)
    assert np.array_equal(small.cells(), smear(start[:90], 3))
    before = one.cells()
    other = ctypes.c_void_p()
    assert cuda.cuStreamCreate(ctypes.byref(other), 0) == 0
    kernel(A=one, in_place=True, stream=other.value, steps=4)
    run(one, steps=4)
    assert np.array_equal(one.cells(), smear(smear(before, 4), 4))
    # A stream that is gone may be the key of kept buffers; the program waits for its own event.
    assert cuda.cuStreamDestroy_v2(other) == 0

    with pytest.raises(stencilc.ArgumentError, match="can't be copied; copy it before the call"):
        kernel(A=one, steps=1)
    lost = Array(cuda, start)
    lost.__cuda_array_interface__["data"] = (1 << 50, False)
    with pytest.raises(stencilc.ArgumentError, match="knows no memory"):
        run(lost, steps=1)
    strided = Array(cuda, start)
    strided.__cuda_array_interface__.update(shape=(350,), strides=(8,))
    with pytest.raises(stencilc.ArgumentError, match="on a device with strides"):
        run(strided, steps=1)
    run(one, steps=0)
    del kernel, run
    for array in (one, two, small, lost, strided):
        array.free()
    assert cuda.cuStreamDestroy_v2(stream) == 0
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0


if __name__ == "__main__":
    {"arrays": main, "layouts": layouts, "versions": versions}[sys.argv[1]]()
