"""Writes docs/performance.md and its plots from records that table.py made.

    python3 test-suite/bench/page.py RECORD.json [OLDER.json] [--search SEARCH.json [OLDER.json]]

A search is a record of `table.py run --unchecked` over all schedules that the model looks at: what others than the chosen
one reached there stands in a column of its own, from the first of the searches that has the row. An older record fills in the rows that the newer one lacks; they are marked. The page's table lies between two marker lines; all other text of the page is left as it is.
"""

import argparse
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/performance.md"
IMAGES = ROOT / "docs/images"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
# Rates of others on the same kind of device (GCells/s), f32 and f64; the page says how they were measured.
PEERS = {
    "AN5D": {
        "j2d5pt": (1571, 272), "star2d1r": (1599, 630), "j2d9pt": (768, 248), "j2d9pt-gol": (721, None),
        "box2d1r": (728, 331), "star2d2r": (782, 325), "gradient2d": (1059, 258), "star3d1r": (471, 217),
        "j3d27pt": (290, 84),
    },
    "EBISU": {
        "j2d5pt": (901, 731), "j2d9pt": (581, 432), "j2d9pt-gol": (854, 540), "box2d1r": (854, 540),
        "star2d2r": (581, 432), "box2d2r": (443, 277),
    },
}
COLORS = ["#1f6fb4", "#c44e2a", "#3a8f4d", "#7a52a3", "#8c6d1f", "#444444"]


def read(path, checked=True):
    """A record with rows, whose results were compared."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"error: {path} can't be read: {error}")
    if not record.get("rows"):
        sys.exit(f"error: {path} has no rows; table.py run writes them, on a machine with a GPU")
    if checked and any(row.get("checked_steps") == 0 for row in record["rows"]):
        sys.exit(f"error: {path} has rows that were not checked; run table.py without --unchecked")
    return record


def right(row):
    """The row's results that passed their check, as the model ranked them."""
    return [result for result in row["results"] if result["check"] and result["check"]["passed"]]


def key(row):
    """What a row is about."""
    return row["program"], row["kind"], tuple(row["shape"]), row["why"]


def merged(records):
    """The rows of all records, each from the first that has it; those of later ones are marked."""
    found = {}
    for number, record in enumerate(records):
        for row in record["rows"]:
            found.setdefault(key(row), {**row, "mark": " *" if number else ""})
    order = {why: place for place, why in enumerate(["main", "size", "height", "radius"])}
    return sorted(found.values(), key=lambda row: order[row["why"]])


def others(row, searched):
    """The best rate of schedules that were not chosen over that of the chosen one in the same call, and of how many."""
    results = right(row)
    if len(results) < 2:
        results = next((one["results"] for one in searched if key(one) == key(row)), [])
    chosen, *rates = [result["gcells"]["median"] for result in results] or [0]
    return f"{max(rates) / chosen:.2f}x of {len(rates)}" if rates else ""


def table(rows, searched):
    """The table of rates, a line a row."""
    lines = [
        "| program | type | cells | schedule | T | registers | spilled | GCells/s | of copy | of FMA | best other schedule | AN5D | EBISU | first result |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        found = right(row)
        if row["why"] not in ("main", "size") or not found:
            continue
        chosen = found[0]
        kernel, settings, rate = chosen["kernels"][0], chosen["settings"], chosen["gcells"]["median"]
        ratios = []
        for rates in PEERS.values():
            peer = rates.get(row["program"], (None, None))[row["kind"] == "f64"] if row["why"] == "main" else None
            ratios.append(f"{rate / peer:.2f}x of {peer:,}" if peer else "")
        cells = [
            row["program"], row["kind"], " x ".join(map(str, row["shape"])),
            f"{settings['strategy']} {' x '.join(map(str, settings['tile']))}", settings["pyramid_height"],
            kernel["registers"], kernel["local"], f"{rate:,.0f}{row['mark']}", f"{100 * chosen['of_copy_limit']:.0f} %",
            f"{100 * (chosen['of_fma_limit'] or 0):.0f} %", others(row, searched), *ratios,
            f"{1e3 * chosen['first_seconds']:.0f} ms",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def plot(title, axis, series, logarithmic):
    """An SVG of rates over a number; `series` maps a name to pairs."""
    width, height, left, top = 640, 360, 60, 40
    points = [point for pairs in series.values() for point in pairs]
    place = (lambda x: math.log2(x)) if logarithmic else (lambda x: x)
    low, high = min(place(x) for x, _ in points), max(place(x) for x, _ in points)
    most = max(y for _, y in points) * 1.05
    def at(x, y):
        return (
            left + (place(x) - low) / ((high - low) or 1) * (width - left - 150),
            height - 50 - y / most * (height - 50 - top),
        )
    step = 10 ** math.floor(math.log10(most))
    step = step / 2 if most / step < 3 else step
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="20" font-size="14">{title}</text>',
        f'<text x="{(left + width - 150) / 2:.0f}" y="{height - 10}" text-anchor="middle">{axis}</text>',
    ]
    for number in range(int(most / step) + 1):
        y = at(points[0][0], number * step)[1]
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 150}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{number * step:g}</text>')
    for x in sorted({x for x, _ in points}):
        parts.append(f'<text x="{at(x, 0)[0]:.1f}" y="{height - 32}" text-anchor="middle">{x:g}</text>')
    for number, (name, pairs) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*pair) for pair in sorted(pairs)))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{at(*pair)[0]:.1f}" cy="{at(*pair)[1]:.1f}" r="3" fill="{color}"/>' for pair in pairs]
        parts.append(f'<text x="{width - 140}" y="{top + 18 * number + 10}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def series(record):
    """What the plots show: rates over the size, the steps a launch and the radius."""
    sizes, heights, radii = {}, {}, {}
    for row in record["rows"]:
        found = right(row)
        name = f"{row['program']} {row['kind']}"
        square = len(row["shape"]) == 2 and row["shape"][0] == row["shape"][1]
        if found and square and row["why"] in ("main", "size"):
            sizes.setdefault(name, []).append((row["shape"][0], found[0]["gcells"]["median"]))
        if row["why"] == "height":
            heights[name] = [(result["settings"]["pyramid_height"], result["gcells"]["median"]) for result in found]
        if found and row["why"] == "radius":
            kind, radius = row["program"][:-2], int(row["program"][-2])
            radii.setdefault(f"{kind} {row['kind']}", []).append((radius, found[0]["gcells"]["median"]))
    several = lambda lines: {name: pairs for name, pairs in lines.items() if len(pairs) > 1}
    return [
        ("rates-size", "Rates over the size, GCells/s", "points of a side", {n: p for n, p in several(sizes).items() if len(p) > 3}, True),
        ("rates-steps", "Rates over the steps a launch, GCells/s", "steps a launch", several(heights), False),
        ("rates-radius", "Rates over the radius, GCells/s", "radius", several(radii), False),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path, nargs="+", help="the newest first")
    parser.add_argument("--search", type=pathlib.Path, nargs="+", default=[], help="rates of all schedules, not compared with any result")
    args = parser.parse_args()
    records = [read(path) for path in args.record]
    searched = [row for search in args.search for row in read(search, checked=False)["rows"]]
    record = records[0]
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    drawn, aged = {}, []
    for number, one in enumerate(records):
        for name, title, axis, lines, logarithmic in series(one):
            if lines and name not in drawn:
                (IMAGES / f"{name}.svg").write_text(plot(title, axis, lines, logarithmic))
                drawn[name] = f"![{title}](images/{name}.svg)"
                aged += [f"the plot over {axis}"] * (number > 0)
    state = record["state"]
    head = (
        f"{record['device']['name']}, driver {state['driver']}, {state['clock_mhz']} MHz after the last run; copy "
        f"{record['copy_bandwidth'] * 1e-12:.2f} TB/s; {record['steps']} steps, other sizes {record['other_steps']}; {record['date'][:10]}; commit `{record['commit'][:7]}`."
    )
    rows = merged(records)
    aged = ["rows with *"] * any(row["mark"] and row["why"] in ("main", "size") for row in rows) + aged
    if aged:
        commits = ", ".join(f"`{one['commit'][:7]}`" for one in records[1:])
        words = " and ".join([", ".join(aged[:-1]), aged[-1]] if aged[1:] else aged)
        head += f" Older, of commits {commits}: {words}."
    left = [row for one in records[-1:] for row in one.get("left_out", []) if row[3] == "main"]
    if left:
        head += f" Not reached within the time of that call: {', '.join(f'{name} {kind}' for name, kind, *_ in left)}."
    body = "\n\n".join([head, table(rows, searched), *drawn.values()])
    PAGE.write_text(f"{before}{BEGIN}\n{body}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
