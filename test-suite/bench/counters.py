"""Compares the simulator's counters with the hardware's, read by Nsight Compute on a GPU machine.

    python3 test-suite/bench/counters.py [--stencilc FILE] [--out FILE.tsv]

Counted are 32-byte sectors of global loads and stores, and wavefronts of shared loads and stores.
Exit code 1 if any pair differs by more than 5 %.
"""

import argparse
import csv
import datetime
import json
import pathlib
import sys
import tempfile

import common

PAIRS = {
    "global_read": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_write": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_read": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_write": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}
SQUARE = "-D N=512 -D M=512"
BLOCK = "--strategy block --pyramid-height"
CASES = [
    f"jacobi2d {SQUARE} --in A=random:1 --steps 4 {BLOCK} 4",
    f"jacobi2d -D N=509 -D M=503 --in A=random:1 --steps 4 {BLOCK} 4",
    f"jacobi2d {SQUARE} --in A=random:1 --steps 1 --strategy naive",
    f"heat2d {SQUARE} --in A=random:1 --in K=random:2 --steps 2 {BLOCK} 2",
    f"fdtd2d {SQUARE} --in Ex=random:1 --in Ey=random:2 --in Hz=random:3 --steps 2 {BLOCK} 2",
    f"jacobi3d -D N=64 -D M=64 -D L=128 --in A=random:1 --steps 2 {BLOCK} 2",
    f"jacobi2d_f64 {SQUARE} --in A=random:1 --steps 2 {BLOCK} 2",
]


def command(stencilc, case, target):
    """The command that runs a case."""
    name, *rest = case.split()
    program = common.ROOT / f"test-suite/programs/{name}.stencil"
    return [stencilc, "run", program, "--target", target, "--fp-contract=off", *rest]


def simulated(stencilc, case):
    """The counts of the simulator."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        common.call([*command(stencilc, case, "sim"), "--report-json", file.name])
        kernels = json.loads(pathlib.Path(file.name).read_text())["kernels"]
    (kernel,) = [kernel for kernel in kernels if kernel["launches"]]
    return {name: kernel["total"][name]["moved"] for name in PAIRS}


def measured(stencilc, case):
    """The counts of Nsight Compute."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--metrics", ",".join(PAIRS.values())]
    said = common.call(ncu + command(stencilc, case, "cuda")).stdout
    lines = [line for line in said.splitlines() if line.startswith('"')]
    rows = csv.DictReader(lines)
    values = {row["Metric Name"]: int(row["Metric Value"].replace(",", "")) for row in rows}
    return {name: values[metric] for name, metric in PAIRS.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stencilc", default=common.ROOT / "target/release/stencilc")
    parser.add_argument("--out")
    args = parser.parse_args()
    record, worst = [], 0.0
    for case in CASES:
        ours, hardware = simulated(args.stencilc, case), measured(args.stencilc, case)
        print(case)
        for name in PAIRS:
            gap = ours[name] / hardware[name] - 1 if hardware[name] else float(ours[name] != 0)
            worst = max(worst, abs(gap))
            counts = f"simulated {ours[name]:9}  measured {hardware[name]:9}"
            print(f"    {name:13} {counts}  {100 * gap:+.1f} %")
        line = {f"{name}_simulated": count for name, count in ours.items()}
        record.append({"case": case, **line, **{f"{k}_measured": n for k, n in hardware.items()}})
    if args.out:
        today = datetime.date.today().isoformat()
        facts = {
            "what": "the simulator and Nsight Compute",
            "date": today,
            "commit": common.commit(),
        }
        common.write_record(args.out, facts, record)
    print(f"largest difference {100 * worst:.1f} %")
    sys.exit(worst > 0.05)


if __name__ == "__main__":
    main()
