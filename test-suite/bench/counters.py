"""Compares the simulator's counters with the hardware's, read by Nsight Compute on a GPU machine.

    python3 test-suite/bench/counters.py [--stencilc FILE] [--out FILE.json]

For each case: 32-byte sectors of global loads and stores, and wavefronts of shared loads and stores.
Exit code 1 if any pair differs by more than 5 %.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIRS = {
    "global_read": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_write": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_read": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_write": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}
CASES = [
    "jacobi2d -D N=512 -D M=512 --in A=random:1 --steps 4 --strategy block --pyramid-height 4",
    "jacobi2d -D N=509 -D M=503 --in A=random:1 --steps 4 --strategy block --pyramid-height 4",
    "jacobi2d -D N=512 -D M=512 --in A=random:1 --steps 1 --strategy naive",
    "heat2d -D N=512 -D M=512 --in A=random:1 --in K=random:2 --steps 2 --strategy block --pyramid-height 2",
    "fdtd2d -D N=512 -D M=512 --in Ex=random:1 --in Ey=random:2 --in Hz=random:3 --steps 2 --strategy block --pyramid-height 2",
    "jacobi3d -D N=64 -D M=64 -D L=128 --in A=random:1 --steps 2 --strategy block --pyramid-height 2",
    "jacobi2d_f64 -D N=512 -D M=512 --in A=random:1 --steps 2 --strategy block --pyramid-height 2",
]


def command(stencilc, case, target):
    name, *rest = case.split()
    program = ROOT / f"test-suite/programs/{name}.stencil"
    return [stencilc, "run", str(program), "--target", target, "--fp-contract=off", *rest]


def simulated(stencilc, case):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(command(stencilc, case, "sim") + ["--report-json", file.name], check=True, capture_output=True)
        kernels = json.loads(pathlib.Path(file.name).read_text())["kernels"]
    (kernel,) = [kernel for kernel in kernels if kernel["launches"]]
    return {name: kernel["total"][name]["moved"] for name in PAIRS}


def measured(stencilc, case):
    ncu = ["ncu", "--clock-control", "none", "--csv", "--metrics", ",".join(PAIRS.values())]
    done = subprocess.run(ncu + command(stencilc, case, "cuda"), check=True, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    values = {row["Metric Name"]: int(row["Metric Value"].replace(",", "")) for row in csv.DictReader(lines)}
    return {name: values[metric] for name, metric in PAIRS.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencilc", default=str(ROOT / "target/release/stencilc"))
    parser.add_argument("--out")
    args = parser.parse_args()
    record, worst = [], 0.0
    for case in CASES:
        ours, hardware = simulated(args.stencilc, case), measured(args.stencilc, case)
        print(case)
        for name in PAIRS:
            gap = ours[name] / hardware[name] - 1 if hardware[name] else float(ours[name] != 0)
            worst = max(worst, abs(gap))
            print(f"    {name:13} simulated {ours[name]:9}  measured {hardware[name]:9}  {100 * gap:+.1f} %")
        record.append({"case": case, "simulated": ours, "measured": hardware})
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n")
    print(f"largest difference {100 * worst:.1f} %")
    sys.exit(worst > 0.05)


if __name__ == "__main__":
    main()
