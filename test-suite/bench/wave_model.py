"""The model of wavefronts beside measured rates, over the width of tiles.

    python3 test-suite/bench/wave_model.py RECORD.tsv [--svg FILE] [--stencilc FILE]

Needs the compiled project and a record of `wavefronts.py run`, and no GPU. For each program and
height of skewed tiles with flags, prints the best width as measured, the width that the model
prefers among those measured, how much longer that one takes, and predicted times over measured
ones. `--svg` draws both times of Smith-Waterman over the width (figure 9 of PeerWave).
"""

import argparse
import pathlib
import re

import common
import page
from wavefronts import SIDE

HEIGHTS = (128, 256, 512)
DRAWN = "smith-waterman"


def measured(rows):
    """Milliseconds of a sweep, by program, height and width."""
    found = {}
    for row in rows:
        if row["combination"] in ("flags, flexible", "flags, skewed"):
            height, width = map(int, row["tile"].split("x"))
            if height in HEIGHTS and width <= 256:
                times = found.setdefault((row["program"], height), {})
                times[width] = SIDE * SIDE * 1e-6 / float(row["gcells"])
    return dict(sorted(found.items()))


def predicted(stencilc, program, height, width):
    """Milliseconds of a sweep by the model."""
    source = common.ROOT / f"test-suite/programs/{program}.stencil"
    words = [stencilc, source, "--emit=plan", "-o", "/dev/null", "--report"]
    words += ["--strategy", "wavefront", "--tile", f"{height},{width}"]
    words += common.pairs("-D", {"N": SIDE, "M": SIDE})
    said = common.call(words)
    return float(re.search(r"predicted: ([\d.]+) ms a sweep", said.stderr + said.stdout)[1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("--stencilc", default=common.ROOT / "target/release/stencilc")
    args = parser.parse_args()
    found = measured(common.read_record(args.record)[1])
    models = {
        key: {width: predicted(args.stencilc, *key, width) for width in times}
        for key, times in found.items()
    }
    names = ["program", "rows", "best width", "the model's", "takes longer by", "predicted"]
    print("|", " | ".join([*names, "at all widths"]), "|")
    print("|---|---|---|---|---|---|---|")
    for (program, height), times in found.items():
        model = models[program, height]
        best, ours = (min(one, key=one.get) for one in (times, model))
        ratios = [model[width] / times[width] for width in times]
        print(
            f"| {program} | {height} | {best} | {ours} | "
            f"{100 * (times[ours] / times[best] - 1):.1f} % | {model[ours] / times[ours]:.2f} | "
            f"{min(ratios):.2f} to {max(ratios):.2f} |"
        )
    if args.svg:
        lines = {}
        for height in HEIGHTS:
            for name, times in (("measured", found), ("model", models)):
                lines[f"{height} rows, {name}"] = list(times[DRAWN, height].items())
        title = "Smith-Waterman, 32768 x 32768: milliseconds of a sweep"
        args.svg.write_text(page.plot(title, "width of a tile", lines, True))


if __name__ == "__main__":
    main()
