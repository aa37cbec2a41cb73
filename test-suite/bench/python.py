"""The Python package on a GPU: copies, streams, the time of a call, and a table beside others.

    PYTHONPATH=SITE python3 python.py [OUT]

SITE holds the package with its wheel's contents. Each result of a run is compared with NumPy's or
with that of another library. Figures go to OUT/python.tsv.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import cupy as cp
import numpy as np
import torch

import stencilc
from stencilc._picture import on_host

HEAT = """param N
param M
scalar alpha : f32 = 0.1
grid G = [0..N-1, 0..M-1]
field A : f32 on G
const field K : f32 on G
fn heat -> A [1..N-2, 1..M-2] =
    A[0,0] + alpha * K[0,0] * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1] - 4*A[0,0])
steps 1000
"""
RAW = r"""
extern "C" __global__ void heat(const float* a, const float* k, float* b, int n, float alpha) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i > n - 2 || j > n - 2) return;
    int at = i * n + j;
    b[at] = a[at] + alpha * k[at] * (a[at-n] + a[at+n] + a[at-1] + a[at+1] - 4.0f * a[at]);
}
"""
FIRST = """
import time; begin = time.perf_counter()
import numpy as np, stencilc
loaded = time.perf_counter()
kernel = stencilc.compile(HEAT)
checked = time.perf_counter()
kernel(A=np.ones((512, 512), np.float32), K=np.ones((512, 512), np.float32), steps=100)
print(loaded - begin, checked - loaded, time.perf_counter() - checked)
"""
ROWS = []


def row(what, *values):
    ROWS.append((what, *values))
    print(what, *values, sep="\t", flush=True)


def reference(a, k, steps):
    a = a.copy()
    for _ in range(steps):
        c = a[1:-1, 1:-1]
        a[1:-1, 1:-1] = c + np.float32(0.1) * k[1:-1, 1:-1] * (
            a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - np.float32(4) * c)
    return a


def close(found, wanted):
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-6), np.abs(found - wanted).max()


def copies_and_streams(kernel):
    rng = np.random.default_rng(1)
    a, k = rng.random((2, 300, 500), dtype=np.float32)
    wanted = reference(a, k, 30)
    for library in ("cupy", "torch"):
        if library == "cupy":
            x, rates, pointer = cp.asarray(a), cp.asarray(k), lambda one: one.data.ptr
        else:
            x, rates = torch.tensor(a, device="cuda"), torch.tensor(k, device="cuda")
            pointer = torch.Tensor.data_ptr
        before = pointer(x)
        fresh = kernel(A=x, K=rates, steps=30)
        assert type(fresh.A) is type(x) and pointer(fresh.A) != before
        close(on_host(fresh.A), wanted)
        close(on_host(x), a)
        result = kernel(A=x, K=rates, steps=30, in_place=True)
        assert result.A is x and pointer(x) == before
        close(on_host(x), wanted)
        # Behind work of the same stream that takes long, and before what follows; no wait.
        stream = cp.cuda.Stream(non_blocking=True) if library == "cupy" else torch.cuda.Stream()
        within = stream if library == "cupy" else torch.cuda.stream(stream)
        with within:
            y = cp.zeros_like(x) if library == "cupy" else torch.zeros_like(x)
            kernel(A=y, K=rates, steps=30, in_place=True)
            source = cp.asarray(a) if library == "cupy" else torch.tensor(a, device="cuda")
            y[...] = source
            on_host(y * 2)
            raw = torch.cuda.ExternalStream(stream.ptr) if library == "cupy" else stream
            with torch.cuda.stream(raw):
                torch.cuda._sleep(300_000_000)
            begin = time.perf_counter()
            y[...] = source
            kernel(A=y, K=rates, steps=30, in_place=True)
            z = y * 2
            sent = time.perf_counter() - begin
            close(on_host(z), 2 * wanted)
            waited = time.perf_counter() - begin
        assert sent < waited / 5, (sent, waited)
        row("check", library, "pointers and stream order", "ok",
            f"sent after {sent * 1e6:.0f} us of {waited * 1e6:.0f}")
    import jax
    x, rates = jax.numpy.asarray(a), jax.numpy.asarray(k)
    result = kernel(A=x, K=rates, steps=30).A
    close(np.asarray(result), wanted)
    close(np.asarray(x), a)
    row("check", "jax", "result", "ok", type(result).__name__)
    tensor = torch.tensor(a, device="cuda", dtype=torch.bfloat16)
    half = stencilc.compile(HEAT.replace("f32", "bf16"))
    result = half(A=tensor, K=tensor.clone(), steps=3).A
    assert result.dtype == torch.bfloat16 and torch.isfinite(result).all()
    summed = stencilc.compile(HEAT + "reduce total : f32 = sum(A[0,0]) on [0..N-1, 0..M-1]\n")
    kept = summed(A=torch.tensor(a, device="cuda"), K=torch.tensor(k, device="cuda"), steps=30,
                  every=10)
    assert len(kept.history["total"]) == 3
    assert np.isclose(kept.total, wanted.sum(), rtol=1e-4)
    row("check", "torch", "bf16 and reductions", "ok", "")


def wall(call, times):
    """Microseconds of a call in a loop: those of the host, and those until all is done."""
    call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        call()
    sent = time.perf_counter() - begin
    torch.cuda.synchronize()
    return sent / times * 1e6, (time.perf_counter() - begin) / times * 1e6


def device(call, times):
    """Microseconds of the device for a call, with all calls sent before the first begins."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(20_000_000)
    begin.record()
    for _ in range(times):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / times * 1e3


def overhead(kernel):
    for size, steps in ((64, 1), (512, 1), (512, 12), (512, 100)):
        a, k = torch.rand((2, size, size), device="cuda")
        b, c = cp.asarray(a), cp.asarray(k)
        a, k = a.contiguous(), k.contiguous()
        run = kernel(A=a, K=k, steps=steps, in_place=True)
        for library, call in (
            ("torch", lambda: kernel(A=a, K=k, steps=steps, in_place=True)),
            ("cupy", lambda: kernel(A=b, K=c, steps=steps, in_place=True)),
            ("torch, new arrays", lambda: kernel(A=a, K=k, steps=steps)),
        ):
            host, whole = map(statistics.median, zip(*(wall(call, 300) for _ in range(5))))
            own = statistics.median(device(call, 50) for _ in range(5))
            row("call", library, f"{size}x{size}", f"{steps} steps", f"{run.launches} launches",
                f"host {host:.1f} us", f"loop {whole:.1f} us", f"device {own:.1f} us",
                f"beyond {whole - own:.1f} us")
    grid = (4, 16)
    raw = cp.RawKernel(RAW, "heat")
    a, k, b = cp.random.random((3, 64, 64), dtype=cp.float32)
    call = lambda: raw(grid, (32, 8), (a, k, b, np.int32(64), np.float32(0.1)))
    host, whole = map(statistics.median, zip(*(wall(call, 300) for _ in range(5))))
    row("call", "RawKernel", "64x64", "1 steps", "1 launches", f"host {host:.1f} us",
        f"loop {whole:.1f} us", f"device {device(call, 50):.1f} us", "")


def first_results(out):
    cache = Path(out) / "cache"
    environment = {**os.environ, "STENCILC_CACHE": str(cache)}
    for turn in ("first", "cached", "cached", "cached"):
        begin = time.perf_counter()
        said = subprocess.run([sys.executable, "-c", FIRST.replace("HEAT", repr(HEAT))],
                              env=environment, check=True, capture_output=True, text=True).stdout
        whole = time.perf_counter() - begin
        parts = " ".join(f"{float(part) * 1e3:.0f}" for part in said.split())
        row("process", turn, f"{whole * 1e3:.0f} ms", f"import, compile, call: {parts} ms")
    for file in cache.iterdir():
        file.unlink()
    cache.rmdir()


def timed(run, size, steps):
    run()
    torch.cuda.synchronize()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return size * size * steps / statistics.median(times) / 1e9


def table(size, steps):
    rng = np.random.default_rng(3)
    a, k = rng.random((2, size, size), dtype=np.float32)
    wanted = None

    def check(found):
        nonlocal wanted
        found = on_host(found)
        if wanted is None:
            wanted = found
        assert np.allclose(found, wanted, rtol=2e-3, atol=1e-4), np.abs(found - wanted).max()

    for name, make in MAKERS.items():
        try:
            run, result = make(a, k, size, steps)
            begin = time.perf_counter()
            run()
            torch.cuda.synchronize()
            ready = time.perf_counter() - begin
            check(result())
            rate = timed(run, size, steps)
            row("table", f"{size}x{size}", name, f"{rate:.1f} GCells/s", f"first {ready:.2f} s")
        except Exception as error:  # a library that is not there, or fails
            row("table", f"{size}x{size}", name, "-", repr(error)[:120])
        cp.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()


def by_stencilc(a, k, size, steps, **options):
    x, rates = cp.asarray(a), cp.asarray(k)
    kernel = stencilc.compile(HEAT, **options)
    state = {}
    return lambda: state.update(kernel(A=x, K=rates, steps=steps)), lambda: state["A"]


def by_raw(a, k, size, steps):
    raw, grid = cp.RawKernel(RAW, "heat"), (-(-size // 32), -(-size // 8))
    x, rates = cp.asarray(a), cp.asarray(k)
    state = {}

    def run():
        one, two = x.copy(), x.copy()
        for _ in range(steps):
            raw(grid, (32, 8), (one, rates, two, np.int32(size), np.float32(0.1)))
            one, two = two, one
        state["a"] = one

    return run, lambda: state["a"]


def by_numba(a, k, size, steps):
    # Numba's part for CUDA names a function that NumPy 2.5 no longer has.
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack
    from numba import cuda

    @cuda.jit
    def heat(a, k, b, alpha):
        j, i = cuda.grid(2)
        if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:
            b[i, j] = a[i, j] + alpha * k[i, j] * (
                a[i-1, j] + a[i+1, j] + a[i, j-1] + a[i, j+1] - np.float32(4) * a[i, j])

    x, rates = cuda.to_device(a), cuda.to_device(k)
    state = {}

    def run():
        one, two = cuda.to_device(a), cuda.to_device(a)
        for _ in range(steps):
            heat[(-(-size // 32), -(-size // 8)), (32, 8)](one, rates, two, np.float32(0.1))
            one, two = two, one
        cuda.synchronize()
        state["a"] = one

    return run, lambda: state["a"].copy_to_host()


def by_jax(a, k, size, steps):
    import jax
    from jax import lax

    rates = jax.numpy.asarray(k)
    x = jax.numpy.asarray(a)

    def step(_, both):
        a, rates = both
        c = a[1:-1, 1:-1]
        a = a.at[1:-1, 1:-1].set(c + 0.1 * rates[1:-1, 1:-1] * (
            a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * c))
        return a, rates

    heat = jax.jit(lambda a, rates: lax.fori_loop(0, steps, step, (a, rates))[0])
    state = {}

    def run():
        state["a"] = heat(x, rates).block_until_ready()

    return run, lambda: np.asarray(state["a"])


def by_torch(a, k, size, steps):
    x, rates = torch.tensor(a, device="cuda"), torch.tensor(k, device="cuda")

    @torch.compile
    def step(a, b):
        c = a[1:-1, 1:-1]
        b[1:-1, 1:-1] = c + 0.1 * rates[1:-1, 1:-1] * (
            a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * c)

    state = {}

    def run():
        one, two = x.clone(), x.clone()
        for _ in range(steps):
            step(one, two)
            one, two = two, one
        state["a"] = one

    return run, lambda: state["a"]


MAKERS = {
    "stencilc": by_stencilc,
    "stencilc, fast math": lambda *job: by_stencilc(*job, fast_math=True),
    "CuPy RawKernel": by_raw,
    "Numba": by_numba,
    "JAX": by_jax,
    "torch.compile": by_torch,
}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "."
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("STENCILC_CACHE", str(Path(out) / "kernels"))
    facts = torch.cuda.get_device_properties(0)
    row("device", facts.name, f"{facts.multi_processor_count} SMs",
        f"driver {torch.cuda.driver_version() if hasattr(torch.cuda, 'driver_version') else ''}",
        f"cupy {cp.__version__}", f"torch {torch.__version__}")
    kernel = stencilc.compile(HEAT)
    parts = [lambda: copies_and_streams(kernel), lambda: overhead(kernel),
             lambda: first_results(out), lambda: table(512, 1000), lambda: table(8192, 1000)]
    failed = 0
    for part in parts:
        begin = time.perf_counter()
        try:
            part()
        except Exception:
            import traceback
            failed += 1
            row("FAILED", traceback.format_exc().replace("\n", " | ")[-900:])
        row("time", f"{time.perf_counter() - begin:.1f} s")
        Path(out, "python.tsv").write_text("".join("\t".join(r) + "\n" for r in ROWS))
    sys.exit(failed)


if __name__ == "__main__":
    main()
