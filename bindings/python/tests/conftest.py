"""What the tests share."""

import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]

HEAT = """
param N
param M
scalar alpha : f32 = 0.1
grid G = [0..N-1, 0..M-1]
field A : f32 on G
const field K : f32 on G
fn heat -> A [1..N-2, 1..M-2] =
    A[0,0] + alpha * K[0,0] * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1] - 4*A[0,0])
reduce total : f64 = sum(f64(A[0,0])) on [0..N-1, 0..M-1]
steps 10
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Compiled programs of a test session lie in a folder of their own."""
    folder = os.environ.get("STENCILC_TEST_CACHE") or tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("STENCILC_CACHE", str(folder))


def heat(a, k, steps, alpha=0.1):
    """The reference: NumPy, in single precision, in the order of the program."""
    a = a.copy()
    alpha = np.float32(alpha)
    for _ in range(steps):
        c = a[1:-1, 1:-1]
        around = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - np.float32(4) * c
        a[1:-1, 1:-1] = c + alpha * k[1:-1, 1:-1] * around
    return a


def in_blocks(cells):
    """Rows of cells (N, M, K) as blocks of 32 cells, (N, M / 32, K, 32)."""
    rows, row, numbers = cells.shape
    blocks = cells.reshape(rows, row // 32, 32, numbers)
    return np.ascontiguousarray(blocks.transpose(0, 1, 3, 2))


@pytest.fixture
def plate():
    return np.random.default_rng(1).random((20, 33), dtype=np.float32)


@pytest.fixture
def rates():
    return np.random.default_rng(2).random((20, 33), dtype=np.float32)
