"""Ten functions of affine loops in NumPy that were written after the passes were finished."""

import numpy as np


def gemm_tn(f, s):
    f["C"][:] = f["A"].T @ f["B"]


def two_products(f, s):
    f["R"][:] = s["alpha"] * (f["A"] @ f["B"] @ f["C"]) + s["beta"] * f["R"]


def syr2k(f, s):
    product = f["A"] @ f["B"].T
    whole = s["beta"] * f["C"] + s["alpha"] * (product + product.T)
    lower = np.tril_indices(len(whole))
    f["C"][lower] = whole[lower]


def jacobi1d(f, s):
    a, b = f["A"], f["B"]
    for _ in range(s["T"]):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def correlation(f, s):
    count = s["count"]
    f["mean"][:] = f["A"].sum(axis=0) / count
    dev = np.sqrt(((f["A"] - f["mean"])**2).sum(axis=0) / count)
    f["dev"][:] = np.where(dev <= 0.1, 1, dev)
    f["A"][:] = (f["A"] - f["mean"]) / (np.sqrt(count) * f["dev"])
    f["R"][:] = f["A"].T @ f["A"]
    np.fill_diagonal(f["R"], 1)


def nussinov(f, s):
    p, bases = f["P"], f["S"]
    n = len(p)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            pair = p[i + 1, j - 1] + (bases[i] + bases[j] == 3)
            p[i, j] = max(p[i, j - 1], p[i, j], p[i + 1, j], pair)
            for k in range(i + 1, j):
                p[i, j] = max(p[i, j], p[i, k] + p[k + 1, j])


def deriche(f, s):
    a, b = np.float32(s["a"]), np.float32(s["b"])
    given, m = f["I"], f["I"].shape[1]
    there, back = np.zeros_like(given), np.zeros_like(given)
    for j in range(2, m):
        there[:, j] = a * (a * given[:, j] + b * there[:, j - 1] - there[:, j - 2])
    for j in range(m - 3, -1, -1):
        back[:, j] = a * given[:, j + 2] + b * back[:, j + 1]
    f["O"][:] = there + back
    for i in range(1, len(given)):
        f["O"][i] += b * f["O"][i - 1]


def ludcmp(f, s):
    f["x"][:] = np.linalg.solve(f["A"], f["b"])
    a = f["A"]
    for k in range(len(a)):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])


def seidel2d(f, s):
    a = f["A"]
    for _ in range(s["T"]):
        for i, j in np.ndindex(*(max(cells - 2, 0) for cells in a.shape)):
            a[i + 1, j + 1] = a[i:i + 3, j:j + 3].sum() / 9


def floyd(f, s):
    for k in range(len(f["D"])):
        f["D"][:] = np.minimum(f["D"], f["D"][:, k:k + 1] + f["D"][k])


# As NESTS in nests.py.
NESTS = {
    "gemm-tn": (gemm_tn, {"C": "N M", "A": "K N", "B": "K M"}, 1, {}),
    "2mm": (two_products, {"R": "N M", "A": "N K", "B": "K D", "C": "D M"}, 1,
            {"alpha": 1.5, "beta": 0.25}),
    "syr2k": (syr2k, {"C": "N N", "A": "N K", "B": "N K"}, 1, {"alpha": 1.5, "beta": 0.25}),
    "jacobi1d": (jacobi1d, {"A": "N", "B": "N"}, 2, {}),
    "correlation": (correlation, {"R": "M M", "A": "N M", "mean": "M", "dev": "M"}, 4,
                    {"count": 40.0}),
    "nussinov": (nussinov, {"P": "N N", "S": "N"}, 1, {}),
    "deriche": (deriche, {"O": "N M", "I": "N M"}, 1, {"a": 0.3, "b": 0.5}),
    "ludcmp": (ludcmp, {"A": "N N", "x": "N", "b": "N"}, 2, {}),
    "seidel2d": (seidel2d, {"A": "N N"}, 1, {}),
    "floyd": (floyd, {"D": "N N"}, 1, {}),
}
ARGUMENTS = {"jacobi1d": "T", "seidel2d": "T"}
TYPES = {**dict.fromkeys(["2mm", "syr2k", "jacobi1d", "correlation", "ludcmp", "seidel2d"],
                         np.float64), "nussinov": np.int32, "floyd": np.int32}
