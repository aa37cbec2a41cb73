#!/usr/bin/env python3
"""Programs on several GPUs of a host: results beside those of one GPU, rates, and other tools.

    python3 test-suite/bench/devices.py bits STENCILC COUNTS       results, bit for bit
    python3 test-suite/bench/devices.py rates STENCILC COUNTS OUT  weak and strong scaling
    python3 test-suite/bench/devices.py peers COUNTS OUT           star2d1r in JAX and PyTorch

COUNTS is a list such as 1,2,4, and 1 comes first. STENCILC is the compiler's file. A grid of weak
scaling is as many times as long along its slowest dimension as there are devices. Rates are in 10^9
cells a second, of all devices together: the median of three runs.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import common

PROGRAMS = common.ROOT / "test-suite/programs"
# Grids that no tile divides; the fields that are compared.
BITS = {
    "heat2d": ((2003, 1777), "A K", "A", 37),
    "box2d1r": ((2003, 1777), "A", "A", 37),
    "fdtd2d": ((2003, 1777), "Ex Ey Hz", "Ex Ey Hz", 37),
    "star3d1r": ((203, 150, 331), "A", "A", 37),
    "acoustic3d-order8": ((203, 150, 331), "P U C", "P U", 37),
    "torus3d": ((203, 150, 331), "A", "A", 37),
    "srad": ((2003, 1777), "J", "J", 20),
    "conjugate-gradients": ((2003, 1777), "X R", "X R", 200),
    "poisson2d": ((2003, 1777), "A", "A", 37),
    "semi-lagrange2d": ((2003, 1777), "A V", "A", 20),
    "d2q9": ((2003, 1777), "F", "F", 37),
    "ring1d": ((5000011,), "A", "A", 137),
}
RATES = {
    "star2d1r": ((16384, 16384), "A", 2000),
    "box2d1r": ((16384, 16384), "A", 1000),
    "fdtd2d": ((16384, 16384), "Ex Ey Hz", 500),
    "star3d1r": ((512, 512, 512), "A", 2000),
    "acoustic3d-order8": ((512, 512, 512), "P U C", 500),
}
RUNS = 3


def command(tool, program, devices, shape, fields, steps, *more):
    """A run of a program on random data."""
    sizes = common.pairs("--size", dict(zip("NML", shape)))
    seeds = {name: f"random:{seed}" for seed, name in enumerate(fields.split(), 1)}
    return [tool, "run", PROGRAMS / f"{program}.stencil", "--target", "cuda", "--devices",
            devices, *sizes, *common.pairs("--in", seeds), "--steps", steps, *more]


def bits(tool, counts):
    """Compares the results of several devices with those of one."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for program, (shape, fields, kept, steps) in BITS.items():
            first = None
            for devices in counts:
                files = {name: Path(folder) / f"{name}.npy" for name in kept.split()}
                outs = common.pairs("--out", files)
                # Schedules differ, and so does what is contracted.
                common.call(command(tool, program, devices, shape, fields, steps, *outs,
                                    "--fp-contract", "off"))
                found = [file.read_bytes() for file in files.values()]
                first = first or found
                wrong += found != first
                same = "same" if found == first else "DIFFERENT"
                print(program, devices, same, sep="\t", flush=True)
    sys.exit(wrong > 0)


def rates(tool, counts, out):
    """Measures weak and strong scaling."""
    rows = []
    for program, (shape, fields, steps) in RATES.items():
        alone = None
        for devices in counts:
            for way in ("weak", "strong"):
                if way == "strong" and devices == 1:
                    continue
                cells = (shape[0] * devices, *shape[1:]) if way == "weak" else shape
                run = command(tool, program, devices, cells, fields, steps)
                # The report of a run is on standard error.
                texts = [common.call(run).stderr for _ in range(RUNS)]
                found = [float(re.search(r"([\d.]+) GCells/s", text)[1]) for text in texts]
                rate = statistics.median(found)
                alone = alone or rate
                add(rows, {
                    "program": program, "way": way, "devices": devices,
                    "cells": common.size(cells), "steps": steps,
                    "launches": re.search(r"(\d+) launches", texts[0])[1],
                    "gcells": f"{rate:.0f}", "low": f"{min(found):.0f}",
                    "high": f"{max(found):.0f}", "times": f"{rate / alone:.2f}",
                    "percent of ideal": f"{100 * rate / alone / devices:.1f}"})
    common.write_record(out, facts(), rows)


def add(rows, row):
    """Adds a row of a record, and prints it."""
    rows.append(row)
    print(*row.values(), sep="\t", flush=True)


def facts():
    """When and where it was measured."""
    asked = ["nvidia-smi", "--query-gpu=name,clocks.max.sm,clocks.max.mem", "--format=csv,noheader"]
    return {"date": date.today(), "device": common.call(asked).stdout.splitlines()[0]}


# The weights of star2d1r: north, west, own, east, south.
WEIGHTS = (0.1873, 0.1876, 0.25, 0.1877, 0.1874)
# Rows and columns of a device, and steps.
PEER = (16384, 16384, 200)


def jax_rate(devices):
    """star2d1r by shard_map and ppermute, with an exchange a step."""
    import time

    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    rows, columns, steps = PEER
    mesh = Mesh(jax.devices()[:devices], ("x",))
    north, west, own, east, south = WEIGHTS

    def local(block):
        me = jax.lax.axis_index("x")

        def step(_, a):
            down = jax.lax.ppermute(a[-1:], "x", [(i, i + 1) for i in range(devices - 1)])
            up = jax.lax.ppermute(a[:1], "x", [(i + 1, i) for i in range(devices - 1)])
            b = jnp.concatenate([down, a, up])
            new = (north * b[:-2, 1:-1] + west * b[1:-1, :-2] + own * b[1:-1, 1:-1]
                   + east * b[1:-1, 2:] + south * b[2:, 1:-1])
            row = me * rows + jnp.arange(rows)[:, None]
            inner = (row > 0) & (row < devices * rows - 1)
            return a.at[:, 1:-1].set(jnp.where(inner, new, a[:, 1:-1]))

        return jax.lax.fori_loop(0, steps, step, block)

    mapped = jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))
    run = jax.jit(mapped, donate_argnums=0)
    place = NamedSharding(mesh, P("x", None))
    make = jax.jit(lambda: jax.random.uniform(jax.random.key(1), (devices * rows, columns)),
                   out_shardings=place)
    a = run(make()).block_until_ready()
    begin = time.perf_counter()
    a = run(a).block_until_ready()
    return devices * rows * columns * steps / (time.perf_counter() - begin) * 1e-9


def torch_rank():
    """A process of star2d1r in PyTorch: torch.compile, and rows sent through NCCL once a step."""
    import time

    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    rows, columns, steps = PEER
    north, west, own, east, south = WEIGHTS
    a = torch.rand(rows + 2, columns, device="cuda")
    b = a.clone()

    @torch.compile
    def update(b, a):
        b[1:-1, 1:-1] = (north * a[:-2, 1:-1] + west * a[1:-1, :-2] + own * a[1:-1, 1:-1]
                         + east * a[1:-1, 2:] + south * a[2:, 1:-1])

    def run(steps, a, b):
        for _ in range(steps):
            sends = []
            if rank > 0:
                sends += [dist.P2POp(dist.isend, a[1], rank - 1),
                          dist.P2POp(dist.irecv, a[0], rank - 1)]
            if rank < world - 1:
                sends += [dist.P2POp(dist.isend, a[-2], rank + 1),
                          dist.P2POp(dist.irecv, a[-1], rank + 1)]
            for one in dist.batch_isend_irecv(sends) if sends else []:
                one.wait()
            update(b, a)
            a, b = b, a
        return a, b

    a, b = run(10, a, b)
    torch.cuda.synchronize()
    dist.barrier()
    begin = time.perf_counter()
    run(steps, a, b)
    torch.cuda.synchronize()
    dist.barrier()
    if rank == 0:
        print(world * rows * columns * steps / (time.perf_counter() - begin) * 1e-9)
    dist.destroy_process_group()


def peers(counts, out):
    """Rates of star2d1r in JAX and PyTorch, weak scaling."""
    rows = []
    for devices in counts:
        this = Path(__file__).resolve()
        words = {
            "JAX": [sys.executable, this, "jax", devices],
            "PyTorch": [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", devices,
                        this, "torch"],
        }
        for tool, words in words.items():
            environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                                  env=environment)
            found = re.findall(r"^[\d.]+$", done.stdout, re.M)
            rate = f"{float(found[-1]):.0f}" if found else done.stderr[-200:].replace("\n", " ")
            add(rows, {"program": "star2d1r", "tool": tool, "devices": devices, "gcells": rate})
    common.write_record(out, facts(), rows)


if __name__ == "__main__":
    task, *places = sys.argv[1:]

    def list_of(text):
        return [int(word) for word in text.split(",")]

    if task == "bits":
        bits(places[0], list_of(places[1]))
    elif task == "rates":
        rates(places[0], list_of(places[1]), places[2])
    elif task == "peers":
        peers(list_of(places[0]), places[1])
    elif task == "jax":
        print(jax_rate(int(places[0])))
    else:
        torch_rank()
