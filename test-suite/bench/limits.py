"""What the time of each row of the table is spent on: counters, and pictures of them.

    python3 test-suite/bench/limits.py build FOLDER [--only PROGRAM...]
    python3 FOLDER/limits.py count FOLDER OUT.tsv [--seconds S]        (needs ncu)
    python3 test-suite/bench/limits.py draw TABLE.tsv COUNTERS.tsv

`build` needs the compiled project and no GPU. It compiles the large size of every program of
table.py in both types, and keeps what `--report-json` says of the roofline. `count` reads counters
of one launch of each main kernel in the middle of a run. `draw` takes the rates of a record of
table.py; it writes pictures into docs/images and a table to the standard output.

| column | counter |
|---|---|
| issue | clocks of a scheduler in which it issues an instruction |
| f32, f64 | clocks in which the units of that type are busy |
| shared | clocks in which the first-level cache and shared memory move data |
| L2, memory | throughput of the second-level cache and of device memory |
| occupancy | resident warps over the most that a multiprocessor holds |
| stalls | of the clocks that a warp lives between two instructions, the share of each reason |
"""

import argparse
import csv
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import common

UNITS = {
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "f32": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "f64": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "shared": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "L2": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# A reason's counter and what it means.
STALLS = {
    "selected": "issues",
    "not_selected": "another warp issues",
    "wait": "result of a fixed number of clocks",
    "math_pipe_throttle": "units busy",
    "long_scoreboard": "device memory or L2",
    "short_scoreboard": "shared memory or shuffle",
    "barrier": "barrier",
    "mio_throttle": "queue of shared memory",
    "lg_throttle": "queue of memory",
    "no_instruction": "instructions",
    "dispatch_stall": "dispatch",
}
# Launches before the one that is counted.
BEFORE = 5


def build(args):
    """Compiles everything into a folder."""
    import table

    folder, rows = args.folder, []
    stencilc = common.ROOT / "target/release/stencilc"
    common.take_along(folder, common.ROOT / "target/release", "limits.py")
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.only or table.ROWS:
            for kind in ("f32", "f64"):
                source = common.ROOT / f"test-suite/programs/{name}.stencil"
                one = table.Builder(stencilc, folder, pathlib.Path(scratch), source, kind, None)
                rank = one.program.rank
                shape = {1: table.LINE, 2: table.SQUARE, 3: table.CUBE}[rank]
                report = folder / f"{one.stem}.report.json"
                (plan,) = one.compiled(table.MAIN.get(name, shape), "limits",
                                       ["--report-json", str(report)])
                facts = json.loads(report.read_text())
                rows.append({"program": name, "type": kind, "plan": plan,
                             "steps": facts["settings"]["pyramid_height"],
                             "kernel": facts["kernels"][0]["name"],
                             "bottleneck": facts["bottleneck"],
                             "predicted": facts["predicted"]["gcells"],
                             **{name: facts["roofline"][name]
                                for name in ("intensity", "peak", "bandwidth", "reached")}})
    (folder / "limits.json").write_text(json.dumps({"commit": common.commit(), "rows": rows}))


def counted(folder, row):
    """Counters of a launch of the main kernel; none where ncu has none."""
    metrics = [*UNITS.values(), *(STALL.format(name) for name in STALLS)]
    words = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--metrics",
             ",".join(metrics), "--kernel-name", row["kernel"], "--launch-skip", BEFORE,
             "--launch-count", 1, folder / "stencil-bench", folder / row["plan"], "--steps",
             row["steps"] * (BEFORE + 2), "--repeat", 1, "--warmup", 0, "--pause", 0]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    start = done.stdout.find('"ID"')
    if start < 0:
        print(done.stdout[-500:], done.stderr[-500:], file=sys.stderr, flush=True)
        return None
    lines = list(csv.DictReader(done.stdout[start:].splitlines()))

    def number(metric):
        text = (lines[-1].get(metric) or "").replace(",", "")
        return float(text) if re.fullmatch(r"[\d.e+-]+", text) else math.nan

    stalls = {name: number(STALL.format(name)) for name in STALLS}
    total = sum(value for value in stalls.values() if value == value) or 1
    return {**{name: f"{number(metric):.1f}" for name, metric in UNITS.items()},
            **{name: f"{100 * value / total:.1f}" for name, value in stalls.items()}}


def count(args):
    """Counts all rows, as many as the time allows."""
    manifest = common.manifest(args.folder, "limits.json", "limits.py build")
    facts = {"what": "counters of one launch by ncu, percent; then stalls in percent of a warp's "
             "clocks; intensity in floating-point instructions a byte",
             "commit": manifest["commit"]}
    start, lines, left = time.monotonic(), [], []
    for row in manifest["rows"]:
        if time.monotonic() - start > args.seconds:
            left.append(f"{row['program']} {row['type']}")
            continue
        counters = counted(args.folder, row)
        if counters:
            keep = {name: row[name] for name in row if name not in ("plan", "kernel")}
            lines.append({**keep, **counters})
        facts["left_out"] = ", ".join(left) or "none"
        common.write_record(args.out, facts, lines)
    facts["left_out"] = ", ".join(left) or "none"
    common.write_record(args.out, facts, lines)


def heat(title, columns, rows):
    """An SVG of percentages as a field of colours: `rows` maps a label to a number a column."""
    left, top, wide, high = 170, 78, 74, 20
    width, height = left + wide * len(columns) + 20, top + high * len(rows) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="22" font-size="14">{title}</text>',
    ]
    for place, column in enumerate(columns):
        for line, word in enumerate(column.split("|")):
            parts.append(f'<text x="{left + wide * (place + 0.5):.0f}" y="{46 + 14 * line}" '
                         f'text-anchor="middle">{word}</text>')
    for number, (label, values) in enumerate(rows.items()):
        y = top + high * number
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{label}</text>')
        for place, value in enumerate(values):
            if value != value:
                continue
            part = min(value / 100, 1)
            red, green, blue = (round(255 + part * (low - 255)) for low in (31, 111, 180))
            ink = "white" if part > 0.55 else "black"
            x = left + wide * place
            parts.append(f'<rect x="{x}" y="{y}" width="{wide - 1}" height="{high - 1}" '
                         f'fill="rgb({red},{green},{blue})"/>')
            parts.append(f'<text x="{x + wide / 2:.0f}" y="{y + 14}" text-anchor="middle" '
                         f'fill="{ink}">{value:.0f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def roofline(title, rows, peak, bandwidth):
    """An SVG of all rows under a roof: `rows` maps a label to intensity and rate in G/s."""
    import page

    width, height, left, top, bottom = 760, 520, 70, 40, 60
    xs = [x for x, _ in rows.values()] + [peak / bandwidth]
    low, high = math.log2(min(xs)) - 0.5, math.log2(max(xs)) + 0.5
    ys = [y for _, y in rows.values()] + [peak * 1e-9]
    floor, roof = math.log2(min(ys)) - 0.5, math.log2(max(ys)) + 0.5

    def at(x, y):
        return (left + (math.log2(x) - low) / (high - low) * (width - left - 30),
                height - bottom - (math.log2(y) - floor) / (roof - floor) * (height - bottom - top))

    ridge, first, last = peak / bandwidth, 2**low, 2**high
    line = [at(first, first * bandwidth * 1e-9), at(ridge, peak * 1e-9), at(last, peak * 1e-9)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14">{title}</text>',
        f'<clipPath id="inside"><rect x="{left}" y="{top}" width="{width - left - 30}" '
        f'height="{height - bottom - top}"/></clipPath>',
        f'<polyline points="{points}" fill="none" stroke="black" stroke-width="2" '
        'clip-path="url(#inside)"/>',
        f'<text x="{(left + width) / 2:.0f}" y="{height - 14}" text-anchor="middle">'
        "floating-point instructions a byte of device memory</text>",
    ]
    for power in range(math.ceil(low), math.floor(high) + 1):
        x = at(2**power, 2**floor)[0]
        parts.append(f'<text x="{x:.0f}" y="{height - bottom + 16}" text-anchor="middle">'
                     f"{2**power:g}</text>")
    for power in range(math.ceil(floor), math.floor(roof) + 1):
        y = at(first, 2**power)[1]
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 30}" y2="{y:.1f}" '
                     'stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{2**power:,}</text>')
    taken = []
    for number, (label, (x, y)) in enumerate(sorted(rows.items(), key=lambda row: row[1][1])):
        color = page.COLORS[number % len(page.COLORS)]
        px, py = at(x, y)
        parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{color}"/>')
        ty = py + 4
        # Labels that would lie on others move up.
        while any(abs(ty - other) < 11 and abs(px - place) < 110 for place, other in taken):
            ty -= 11
        taken.append((px, ty))
        parts.append(f'<text x="{px + 7:.1f}" y="{ty:.1f}" fill="{color}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def draw(args):
    """Pictures in docs/images, and a table."""
    import page

    _, rows = page.read(args.table)
    _, lines = common.read_record(args.counters)
    rates = {key[:2]: found[0]["gcells"] for key, found in rows.items() if key[3] == "main"}
    table = []
    for kind in ("f32", "f64"):
        ours = [line for line in lines if line["type"] == kind
                and (line["program"], kind) in rates]
        points = {}
        for line in ours:
            rate, predicted = rates[line["program"], kind], float(line["predicted"])
            # The rate of instructions that the measured rate of cells stands for.
            reached = float(line["reached"]) * 1e-9 * rate / predicted
            points[line["program"]] = (float(line["intensity"]), reached)
            busiest = max(("issue", kind, "shared", "L2", "memory"),
                          key=lambda name: float(line[name]))
            stalls = sorted((name for name in STALLS if name != "selected"),
                            key=lambda name: -float(line[name]))[:2]
            table.append([line["program"], kind, f"{rate:,.0f}", f"{predicted:,.0f}",
                          line["bottleneck"], f"{busiest}, {float(line[busiest]):.0f} %",
                          ", ".join(f"{STALLS[name]} {float(line[name]):.0f} %"
                                    for name in stalls)])
        peak, bandwidth = (float(ours[0][name]) for name in ("peak", "bandwidth"))
        (page.IMAGES / f"limits-roofline-{kind}.svg").write_text(roofline(
            f"{kind}: measured, with redundant work, in 10^9 floating-point instructions a second",
            points, peak, bandwidth))
        (page.IMAGES / f"limits-units-{kind}.svg").write_text(heat(
            f"{kind}: how busy each part of the chip is, percent", list(UNITS),
            {line["program"]: [float(line[name]) for name in UNITS] for line in ours}))
        (page.IMAGES / f"limits-stalls-{kind}.svg").write_text(heat(
            f"{kind}: what a warp does between two instructions, percent of its clocks",
            [name.replace("_", "|") for name in STALLS],
            {line["program"]: [float(line[name]) for name in STALLS] for line in ours}))
    print(page.markdown(["program", "type", "GCells/s", "predicted", "predicted limit",
                         "busiest part", "warps wait for"], table))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--only", nargs="*")
    one.set_defaults(task=build)
    two = commands.add_parser("count")
    two.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    two.add_argument("out", type=pathlib.Path)
    two.add_argument("--seconds", type=float, default=3600)
    two.set_defaults(task=count)
    three = commands.add_parser("draw")
    three.add_argument("table", type=pathlib.Path)
    three.add_argument("counters", type=pathlib.Path)
    three.set_defaults(task=draw)
    args = parser.parse_args()
    args.task(args)


if __name__ == "__main__":
    main()
