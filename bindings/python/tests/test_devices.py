"""Runs that several devices share: parts of the processor, simulated devices, and GPUs of the
driver of the runtime's own tests. Runs out of core on the processor."""

import os
import subprocess
import sys

import numpy as np
import pytest
import stencilc
from conftest import HEAT

DRIVER = os.environ.get("STENCILC_TEST_DRIVER")
PROCESSES = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"]
# Small tiles, so that each device has some. Another schedule would contract otherwise.
TILES = {"tile": (8, 64), "fp_contract": "off"}


@pytest.fixture(scope="module")
def fields():
    random = np.random.default_rng(5)
    return {name: random.random((97, 203), dtype=np.float32) for name in "AK"}


@pytest.mark.parametrize("devices", [2, "2x2", "3"])
def test_parts_of_the_processor_give_the_bits_of_one(fields, devices):
    alone = stencilc.compile(HEAT, target="cpu", **TILES)(**fields, steps=23)
    kernel = stencilc.compile(HEAT, target="cpu", devices=devices, **TILES)
    for _ in range(2):
        shared = kernel(**fields, steps=23)
        assert np.array_equal(shared.A, alone.A) and shared.total == alone.total
    into = np.empty_like(alone.A)
    assert kernel(**fields, steps=23, out=into).A is into
    assert np.array_equal(into, alone.A)


def test_simulated_devices_give_the_bits_of_one(fields):
    small = {name: field[:40, :64] for name, field in fields.items()}
    alone = stencilc.compile(HEAT, target="sim", fp_contract="off")(**small, steps=4)
    shared = stencilc.compile(HEAT, target="sim", devices="2", fp_contract="off")(**small, steps=4)
    assert np.array_equal(shared.A, alone.A) and shared.total == alone.total


def test_a_function_of_python_is_shared(fields):
    def smooth(A):
        A[1:-1, 1:-1] = 0.5 * A + 0.25 * (A[-1, 0] + A[1, 0])

    def run(**more):
        traced = stencilc.function(steps=9, target="cpu", **TILES, **more)(smooth)
        return traced(A=fields["A"]).A

    assert np.array_equal(run(devices=4), run())


def test_one_device_is_no_sharing():
    assert "on cpu" in repr(stencilc.compile(HEAT, target="cpu", devices=1))


@pytest.mark.parametrize("devices, target, text", [
    (0, "cpu", "expected a number such as 4"),
    ("2x", "cpu", "two such as 2x2"),
    (65, "cpu", "a process has 64 devices at most; take fewer"),
    ([0, 1], "cpu", "names GPUs, and the target is another one; give how many"),
    ([0, 0], "cuda", "a GPU is named twice"),
    ([], "cuda", "expected a number"),
    ([-1], "cuda", "expected the numbers of GPUs"),
    (2, "reference", "the reference has one device; add --target cuda, sim or cpu"),
])
def test_devices_that_can_not_be(devices, target, text):
    with pytest.raises(stencilc.CompileError, match=text):
        stencilc.compile(HEAT, target=target, devices=devices)


PLAIN = """param N
param M
grid G = [0..N-1, 0..M-1]
field A : f32 on G
const field K : f32 on G
fn f -> A [1..N-2, 1..M-2] = A[0,0] + 0.1 * K[0,0] * (A[-1,0] + A[1,0] - 2*A[0,0])
steps 23"""


@pytest.mark.parametrize("target, size", [("cpu", "1GiB"), ("cpu", "128KiB"), ("sim", "128KiB")])
def test_runs_out_of_core_give_the_bits_in_core(fields, target, size, tmp_path):
    options = {"target": target, "fp_contract": "off", "tile": (8, 64), "pyramid_height": 2}
    wanted = stencilc.compile(PLAIN, **options)(**fields).A
    kernel = stencilc.compile(PLAIN, device_memory=size, **options)
    mapped = {name: np.lib.format.open_memmap(tmp_path / name, "w+", field.dtype, shape=field.shape)
              for name, field in fields.items()}
    for name, field in mapped.items():
        field[:] = fields[name]
    for _ in range(2):
        assert np.array_equal(kernel(**mapped).A, wanted)
    # In a file that is mapped, the result stays.
    assert kernel(**mapped, in_place=True).A is mapped["A"]
    assert np.array_equal(np.load(tmp_path / "A"), wanted)


@pytest.mark.parametrize("options, text", [
    ({"device_memory": "much"}, "much"),
    ({"device_memory": "1GiB", "devices": 2}, "cannot be used with"),
    ({"device_memory": "1GiB", "target": "reference"}, "out of core is for"),
])
def test_memory_that_can_not_be(options, text):
    with pytest.raises(stencilc.CompileError, match=text):
        stencilc.compile(PLAIN, **{"target": "cpu", **options})


def test_too_little_memory_is_told(fields):
    with pytest.raises(stencilc.Error, match="1KiB is too small.*give more memory"):
        stencilc.compile(PLAIN, target="cpu", device_memory="1KiB")(**fields)


def test_reductions_are_refused_out_of_core(fields):
    with pytest.raises(stencilc.Error, match="total|reduction"):
        stencilc.compile(HEAT, target="cpu", device_memory="1GiB")(**fields)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_of_several_shares_nothing(monkeypatch, name):
    monkeypatch.setenv(name, "4")
    with pytest.raises(stencilc.CompileError, match="4 processes were started.*stencilc-mpi"):
        stencilc.compile(HEAT, target="cpu", devices=2)
    monkeypatch.setenv(name, "1")
    stencilc.compile(HEAT, target="cpu", devices=2)


def test_gpus_on_the_driver_of_the_tests(tmp_path):
    assert DRIVER, "STENCILC_TEST_DRIVER is the folder of the driver that the tests run on"
    log = tmp_path / "log"
    settings = {"LD_LIBRARY_PATH": DRIVER, "FAKE_CUDA_LOG": str(log), "FAKE_CUDA_DEVICES": "3"}
    process = subprocess.run(
        [sys.executable, __file__], env={**os.environ, **settings}, capture_output=True, text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    lines = [line.split() for line in log.read_text().splitlines()]
    calls = [name for name, *_ in lines]
    assert "FAULT" not in calls
    # Two programs are loaded, each on two GPUs, and once for all runs.
    assert calls.count("cuModuleLoadDataEx") == calls.count("cuModuleUnload") == 4
    assert calls.count("cuMemAlloc_v2") == calls.count("cuMemFree_v2") > 0


def gpus():
    """Runs in a process on the driver of the tests, whose kernels compute nothing."""
    import test_device

    a, k = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
    for devices in (2, [2, 0]):
        kernel = stencilc.compile(HEAT, target="cuda", devices=devices)
        for _ in range(2):
            assert kernel(A=a, K=k, steps=3).A.shape == a.shape
        cuda, stream = test_device.current_context()
        array = test_device.Array(cuda, a, stream.value)
        remedy = "lies on a device, and runs that devices share take arrays of the host; give it"
        with pytest.raises(stencilc.ArgumentError, match=remedy):
            kernel(A=array, K=k, steps=3, in_place=True)
        array.free()
        assert cuda.cuStreamDestroy_v2(stream) == 0
        assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
    for devices, missing in [(4, 3), ([1, 7], 7)]:
        with pytest.raises(stencilc.DeviceError, match=f"no CUDA device {missing}.*take fewer"):
            stencilc.compile(HEAT, target="cuda", devices=devices)(A=a, K=k)


if __name__ == "__main__":
    gpus()
