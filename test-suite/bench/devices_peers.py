#!/usr/bin/env python3
"""star2d1r in JAX and PyTorch on several GPUs, each of which has a grid of its own: the rate in
10^9 cells a second of all of them. `devices.py peers` calls it.

    python3 test-suite/bench/devices_peers.py jax COUNT
    python3 -m torch.distributed.run --nproc-per-node COUNT test-suite/bench/devices_peers.py torch
"""

import os
import sys
import time

# Shorter grids, for a trial.
DIVIDE = int(os.environ.get("DIVIDE", "1"))

# The weights of star2d1r: north, west, own, east, south.
WEIGHTS = (0.1873, 0.1876, 0.25, 0.1877, 0.1874)
# Rows and columns of a device, and steps.
PEER = (16384 // DIVIDE, 16384 // DIVIDE, 200)


def jax_rate(devices):
    """star2d1r by shard_map and ppermute, with an exchange a step."""
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


if __name__ == "__main__":
    if sys.argv[1] == "jax":
        print(jax_rate(int(sys.argv[2])))
    else:
        torch_rank()
