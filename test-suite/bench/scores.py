"""Scores of alignments without a matrix in memory, on a GPU.

    python3 test-suite/bench/scores.py build FOLDER [--release FOLDER]
    python3 FOLDER/scores.py run FOLDER OUT.tsv [--repeat R] [--side N...]

`build` needs the compiled project and no GPU. FOLDER then holds all that `run` needs beside Python,
NumPy, CuPy and a GPU: plans, PTX, `stencil-bench` and the scripts.

`run` compiles a plain CUDA kernel, one launch for each diagonal of the matrix. It gives the last
row, the best score and its first place for the same sequences. Every plan must give the same,
bit for bit. Rates are cells of the matrix over the time of a run, all kernels included. The same
program with three stored matrices, and Smith-Waterman with one, are measured beside it where they
have room. Exit code 1 if a result is wrong or a run fails.
"""

import argparse
import json
import pathlib
import sys

import common
from table import measure

SCORE, LINEAR, STORED = "affine-gap-score", "linear-gap-score", "affine-gap"
SIDES = (32768, 65536, 131072)
# Rows of a block's strips; none for the compiler's choice.
SHAPES = (None, "128,32", "192,32", "256,32")
# Smith-Waterman with one value a cell, kept in the same way.
PROGRAMS = {
    LINEAR: """
param N
param M
grid  G = [0..N-1, 0..M-1]
grid  GI = [0..N-1]
grid  GJ = [0..M-1]
temp field H : i32 on G
const field p : i32 on GI
const field q : i32 on GJ
field last : i32 on GJ
fn sw -> H [i in 1..N-1, j in 1..M-1] =
    max(0, max(H'[-1,-1] + (if p(i) == q(j) then 2 else -1), max(H'[-1,0] - 1, H'[0,-1] - 1)))
fn keep -> last [j in 0..M-1] = H(N-1, j)
reduce end : i64 = argmax(H[0,0]) on [1..N-1, 1..M-1]
steps 1
""",
}
KERNEL = """
extern "C" __global__ void diagonal(
    const int *p, const int *q, int *h, int *e, int *f, int *last, unsigned long long *best,
    int side, int sum, int affine)
{
    // Cells (i, j) of the diagonal i + j = sum. Row i finds the cell to the left in its own place,
    // and those above in that of the row before; three copies follow each other.
    int i = max(1, sum - side + 1) + blockIdx.x * blockDim.x + threadIdx.x;
    int j = sum - i;
    if (i >= side || j < 1) return;
    int *now = h + (size_t)(sum % 3) * side, *one = h + (size_t)((sum + 2) % 3) * side;
    int *two = h + (size_t)((sum + 1) % 3) * side;
    int *f_now = f + (size_t)(sum % 2) * side, *f_one = f + (size_t)((sum + 1) % 2) * side;
    int left = j > 1 ? one[i] : 0, above = i > 1 ? one[i - 1] : 0;
    int corner = i > 1 && j > 1 ? two[i - 1] : 0;
    int match = p[i] == q[j] ? 2 : -1, value;
    if (affine) {
        int along = max((j > 1 ? e[i] : 0) - 1, left - 3);
        int down = max((i > 1 ? f_one[i - 1] : 0) - 1, above - 3);
        e[i] = along;
        f_now[i] = down;
        value = max(max(0, corner + match), max(along, down));
    } else {
        value = max(max(0, corner + match), max(above - 1, left - 1));
    }
    now[i] = value;
    if (i == side - 1) last[j] = value;
    // The largest value, and of those the point of the least number.
    unsigned long long number = (unsigned long long)(i - 1) * (side - 1) + (j - 1);
    unsigned long long key = (unsigned long long)value << 40 | ((1ull << 40) - 1 - number);
    if (key > *best) atomicMax(best, key);
}
"""


def build(args):
    """Compiles all plans into the folder."""
    common.take_along(args.folder, args.release, "scores.py", "table.py")
    plans = []

    def compiled(program, source, side, tile):
        stem = f"{program}.{side}.{(tile or 'chosen').replace(',', 'x')}"
        words = [args.release / "stencilc", source, "--emit=ptx,plan", "-o", args.folder / stem]
        words += common.pairs("-D", {"N": side, "M": side}) + (["--tile", tile] if tile else [])
        common.call(words)
        chosen = {"plan": f"{stem}.plan.json", "tile": tile or "chosen"}
        plans.append({"program": program, "side": side, **chosen})

    for name, text in PROGRAMS.items():
        (args.folder / f"{name}.stencil").write_text(text)
    folder = common.ROOT / "test-suite/programs"
    for side in SIDES:
        for tile in SHAPES:
            compiled(SCORE, folder / f"{SCORE}.stencil", side, tile)
        compiled(LINEAR, args.folder / f"{LINEAR}.stencil", side, None)
        compiled("smith-waterman", folder / "smith-waterman.stencil", side, None)
    compiled(STORED, folder / f"{STORED}.stencil", SIDES[0], None)
    manifest = {"commit": common.commit(), "plans": plans}
    (args.folder / "scores.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{len(plans)} plans in {args.folder}")


def sequences(folder, side):
    """Writes two sequences of four letters: a part of the second one is copied from the first."""
    import numpy

    random = numpy.random.default_rng(side)
    p, q = (random.integers(0, 4, side, dtype=numpy.int32) for _ in range(2))
    length = side // 16
    q[side // 3 : side // 3 + length] = p[side // 2 : side // 2 + length]
    for name, letters in (("p", p), ("q", q)):
        numpy.save(folder / f"{name}.{side}.npy", letters)
    return p, q


def expect(folder, side, affine):
    """Writes what a plain kernel gives; options that compare with it."""
    import cupy
    import numpy

    p, q = map(cupy.asarray, sequences(folder, side))
    code = cupy.RawKernel(KERNEL, "diagonal")
    zeros = lambda *shape: cupy.zeros(shape, "int32")
    h, e, f, last = zeros(3, side), zeros(side), zeros(2, side), zeros(side)
    best = cupy.zeros(1, "uint64")
    size = numpy.int32(side)
    for diagonal in range(2, 2 * side - 1):
        cells = min(diagonal - 1, 2 * side - 1 - diagonal)
        arguments = (p, q, h, e, f, last, best, size, numpy.int32(diagonal), numpy.int32(affine))
        code((-(-cells // 256),), (256,), arguments)
    key = int(best.get()[0])
    results = {
        "last": last.get(),
        "end": numpy.array([(1 << 40) - 1 - (key & ((1 << 40) - 1))], "int64"),
        "end.best": numpy.array([key >> 40], "int32"),
    }
    words = []
    for name, value in results.items():
        file = folder / f"{name}.{side}.{int(affine)}.npy"
        numpy.save(file, value)
        words += ["--expect", f"{name}={file}"]
    return words


def run(args):
    """Measures all plans that have room."""
    manifest = common.manifest(args.folder, "scores.json", "scores.py build")
    facts, rows, good, wanted = {"commit": manifest["commit"]}, [], True, {}
    for entry in manifest["plans"]:
        program, side = entry["program"], entry["side"]
        if args.side and side not in args.side:
            continue
        words = ["--graph", "--repeat", str(args.repeat), "--tolerance", "0"]
        if program in (SCORE, LINEAR):
            affine = program == SCORE
            if (side, affine) not in wanted:
                wanted[side, affine] = expect(args.folder, side, affine)
            words += [*wanted[side, affine], "--in", "last=zeros"]
        else:
            sequences(args.folder, side)
            tables = "HEF" if program == STORED else "H"
            words += [word for table in tables for word in ("--in", f"{table}=zeros")]
        for name in "pq":
            words += ["--in", f"{name}={args.folder}/{name}.{side}.npy"]
        found, right = measure(args.folder, [entry["plan"]], words)
        good &= right
        if not found or not found["results"]:
            continue
        facts |= common.device_facts(found, facts)
        (result,) = found["results"]
        check = common.measurement(result)["check"]
        # The fields of the plan are rows, so that it knows no cells of the matrix.
        rates = [f"{side * side / seconds * 1e-9:.6g}" for seconds in sorted(result["seconds"])]
        spread = {"gcells": rates[len(rates) // 2], "low": rates[-1], "high": rates[0]}
        row = {"program": program, "side": side, "tile": entry["tile"], **spread, "check": check}
        rows.append(row)
        print(*row.values(), flush=True)
    common.write_record(args.out, facts, rows)
    if not good:
        sys.exit(1)


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("build", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--release", type=pathlib.Path, default=common.ROOT / "target/release")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--side", type=int, nargs="*")
    args = parser.parse_args()
    if args.command == "build":
        return build(args)
    if args.out is None:
        sys.exit("error: run needs the file of the record")
    return run(args)


if __name__ == "__main__":
    main()
