"""Arrays on a device, on the driver of the runtime's own tests, whose memory is the host's.

The driver is found in the place of libcuda.so, so the tests run in a process of their own.
"""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
import stencilc
from conftest import ROOT

PLAN = ROOT / "runtime/tests/data/smear.plan.json"
DRIVER = os.environ.get("STENCILC_TEST_DRIVER")


def test_on_the_driver_of_the_tests(tmp_path):
    assert DRIVER, "STENCILC_TEST_DRIVER is the folder of the driver that the tests run on"
    log = tmp_path / "log"
    environment = {**os.environ, "LD_LIBRARY_PATH": DRIVER, "FAKE_CUDA_LOG": str(log)}
    process = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=60
    )
    assert process.returncode == 0, process.stderr
    calls = [line.split()[0] for line in log.read_text().splitlines()]
    assert "FAULT" not in log.read_text()
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
        ctypes.memmove(self.address.value, cells.ctypes.data, cells.nbytes)
        self.__cuda_array_interface__ = {
            "version": 3, "shape": cells.shape, "typestr": cells.dtype.str,
            "data": (self.address.value, False), "strides": None, "stream": stream,
        }

    def cells(self):
        cells = np.empty(self.shape, np.float32)
        ctypes.memmove(cells.ctypes.data, self.address.value, self.nbytes)
        return cells

    def free(self):
        assert self.cuda.cuMemFree_v2(self.address) == 0


def calls(of):
    with open(os.environ["FAKE_CUDA_LOG"]) as log:
        return [line.split()[0] for line in log][of:]


def main():
    # A run of the host opens the device, whose context the driver wants to be current.
    kernel = stencilc.load(PLAN)
    start = np.random.default_rng(1).random(700, dtype=np.float32)
    assert np.array_equal(kernel(A=start, steps=7).A, smear(start, 7))
    cuda = ctypes.CDLL("libcuda.so")
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
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
    main()
