"""Writes the tables and plots of docs/performance.md, and the chart of the README, from records
that table.py made.

    python3 test-suite/bench/page.py RECORD.tsv [OLDER.tsv] [--search SEARCH.tsv [OLDER.tsv]]

A search is a record of `table.py run --unchecked` over all schedules that the model looks at. It
gives the best schedule beside the chosen one, from the first search that has the row. An older
record fills in rows that the newer one lacks; they are marked. The tables lie between two marker
lines of the page; all other text is left as it is.
"""

import argparse
import math
import pathlib
import sys
import textwrap

import common

PAGE = common.ROOT / "docs/performance.md"
IMAGES = common.ROOT / "docs/images"
PART = "GCells/s, in brackets the part of the rate at the large size."
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
# Rates of others on the same kind of device (GCells/s), f32 and f64; the README says how taken.
# FastStencil ran at the sizes of its own paper.
PEERS = {
    "AN5D": {
        "j2d5pt": (1571, 272),
        "star2d1r": (1599, 630),
        "j2d9pt": (768, 248),
        "j2d9pt-gol": (721, None),
        "box2d1r": (728, 331),
        "star2d2r": (782, 325),
        "gradient2d": (1059, 258),
        "star3d1r": (471, 217),
        "j3d27pt": (290, 84),
    },
    "EBISU": {
        "j2d5pt": (901, 731),
        "j2d9pt": (581, 432),
        "j2d9pt-gol": (854, 540),
        "box2d1r": (854, 540),
        "star2d2r": (581, 432),
        "box2d2r": (443, 277),
    },
    "FastStencil": {
        "j2d5pt": (None, 2060),
        "star2d1r": (None, 2060),
        "j2d9pt": (None, 1071),
        "star2d2r": (None, 1071),
        "j2d9pt-gol": (None, 1350),
        "box2d1r": (None, 1350),
        "box2d2r": (None, 527),
        "star3d1r": (None, 566),
        "j3d27pt": (None, 326),
    },
}
COLORS = ["#1f6fb4", "#c44e2a", "#3a8f4d", "#7a52a3", "#8c6d1f", "#444444"]
NEEDED = ["commit", "date", "device", "driver", "copy_tbs", "steps", "other_steps"]
COLUMNS = [
    "program",
    "type",
    "cells",
    "why",
    "strategy",
    "tile",
    "height",
    "registers",
    "spilled",
    "gcells",
]
CHOSEN = ["strategy", "tile", "height"]
COMPARED = ["of_copy", "of_fma", "check"]


def read(path, checked=True):
    """Facts of a record, and its rows: the lines of one program, type, size and purpose."""
    facts, lines = common.read_record(path)
    common.require(path, facts, lines, NEEDED if checked else [], COLUMNS + COMPARED * checked)
    rows = {}
    for line in lines:
        if line.get("check", "none") in ("right", "none"):
            line["gcells"] = float(line["gcells"])
            key = (line["program"], line["type"], line["cells"], line["why"])
            rows.setdefault(key, []).append(line)
    return facts, rows


def merged(records):
    """Rows of all records, each from the first that has it; those of later ones get a mark."""
    found = {}
    for number, (_, rows) in enumerate(records):
        for key, lines in rows.items():
            found.setdefault(key, (lines, " *" if number else ""))
    return found


def best_other(key, lines, searches):
    """The best rate of the schedules not chosen, over that of the chosen one, and their number."""
    if len(lines) < 2:
        # A search of another choice tells nothing of this one.
        same = lambda found: all(found[0][name] == lines[0][name] for name in CHOSEN)
        found = (rows[key] for _, rows in searches if key in rows)
        lines = next((found for found in found if same(found)), [])
    chosen, *rates = [line["gcells"] for line in lines] or [0]
    return f"{max(rates) / chosen:.2f} of {len(rates)}" if rates else ""


def peer_rate(rates, line):
    """A peer's rate, and ours over it."""
    peer = rates.get(line["program"], (None, None))[line["type"] == "f64"]
    ratio = line["gcells"] / peer if peer else 0
    return f"{peer:,} ({ratio:.{1 if ratio >= 1.5 else 2}f}x)" if peer else ""


def markdown(columns, rows):
    """A table; empty where there are no rows."""
    lines = [columns, ["---"] * len(columns), *rows] if rows else []
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main_table(rows, searches):
    """The large size of each program."""
    columns = [
        "program",
        "type",
        "schedule",
        "T",
        "registers",
        "spilled",
        "GCells/s",
        "of copy, %",
        "of FMA, %",
    ]
    found = []
    for key, (lines, mark) in rows.items():
        line = lines[0]
        if key[3] != "main":
            continue
        mark += " (not compared)" if line["check"] == "none" else ""
        found.append(
            [
                line["program"],
                line["type"],
                f"{line['strategy']} {line['tile']}",
                line["height"],
                line["registers"],
                line["spilled"],
                f"{line['gcells']:,.0f}{mark}",
                f"{float(line['of_copy']):.0f}",
                f"{float(line['of_fma']):.0f}" if float(line["of_fma"]) else "",
                best_other(key, lines, searches),
                *(peer_rate(rates, line) for rates in PEERS.values()),
            ]
        )
    return markdown([*columns, "best other", *PEERS], found)


def size_tables(rows):
    """Rates at other sizes and their part of the large size's: a table a number of dimensions."""
    main = {key[:2]: lines[0]["gcells"] for key, (lines, _) in rows.items() if key[3] == "main"}
    ranks = {}
    for (program, kind, cells, why), (lines, mark) in rows.items():
        if why == "size":
            line = lines[0]
            whole = main.get((program, kind))
            part = f" ({100 * line['gcells'] / whole:.0f} %)" if whole else ""
            found = ranks.setdefault(cells.count("x"), {}).setdefault((program, kind), {})
            found[cells] = f"{line['gcells']:,.0f}{mark}{part}"
    tables = []
    for programs in ranks.values():
        sizes = sorted({cells for found in programs.values() for cells in found}, key=points)
        lines = [
            [*key, *(found.get(cells, "") for cells in sizes)] for key, found in programs.items()
        ]
        tables.append(markdown(["program", "type", *sizes], lines))
    return tables


def points(cells):
    """How many points a size such as 512x512x512 has."""
    return math.prod(map(int, cells.split("x")))


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
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="20" font-size="14">{title}</text>',
        f'<text x="{(left + width - 150) / 2:.0f}" y="{height - 10}" text-anchor="middle">'
        f"{axis}</text>",
    ]
    for number in range(int(most / step) + 1):
        y = at(points[0][0], number * step)[1]
        parts.append(
            f'<line x1="{left}" y1="{y:.1f}" x2="{width - 150}" y2="{y:.1f}" stroke="#dddddd"/>'
        )
        parts.append(
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{number * step:g}</text>'
        )
    for x in sorted({x for x, _ in points}):
        parts.append(
            f'<text x="{at(x, 0)[0]:.1f}" y="{height - 32}" text-anchor="middle">{x:g}</text>'
        )
    for number, (name, pairs) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*pair) for pair in sorted(pairs)))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{at(*pair)[0]:.1f}" cy="{at(*pair)[1]:.1f}" r="3" fill="{color}"/>'
            for pair in pairs
        ]
        parts.append(
            f'<text x="{width - 140}" y="{top + 18 * number + 10}" fill="{color}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def chart(title, names, rows):
    """An SVG of bars: `rows` maps a label to a number for each name, or none."""
    width, left, top, bar = 760, 100, 62, 12
    most = max(rate for rates in rows.values() for rate in rates if rate)
    height = top + sum(bar * sum(map(bool, rates)) + 10 for rates in rows.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14">{title}</text>',
    ]
    for number, name in enumerate(names):
        x, color = left + 110 * number, COLORS[number]
        parts.append(f'<rect x="{x}" y="36" width="{bar}" height="{bar}" fill="{color}"/>')
        parts.append(f'<text x="{x + bar + 6}" y="46">{name}</text>')
    y = top
    for label, rates in rows.items():
        middle = y + bar * sum(map(bool, rates)) / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle:.0f}" text-anchor="end">{label}</text>')
        for color, rate in zip(COLORS, rates):
            if rate:
                long = rate / most * (width - left - 60)
                parts.append(
                    f'<rect x="{left}" y="{y}" width="{long:.0f}" height="{bar - 2}" '
                    f'fill="{color}"/>'
                )
                parts.append(f'<text x="{left + long + 6:.0f}" y="{y + 9}">{rate:,.0f}</text>')
                y += bar
        y += 10
    return "\n".join([*parts, "</svg>"]) + "\n"


def beside_peers(rows, place, kind):
    """Rates in a type of the programs that a peer has, with the peers'."""
    names = [name for name, rates in PEERS.items() if any(pair[place] for pair in rates.values())]
    found = {}
    for (program, type_of_row, _, why), (lines, _) in rows.items():
        peers = [PEERS[name].get(program, (None, None))[place] for name in names]
        if type_of_row == kind and why == "main" and any(peers):
            found[program] = [lines[0]["gcells"], *peers]
    title = f"{kind}, GCells/s on one H200 at the large size"
    return chart(title, ["stencilc", *names], found)


def series(rows):
    """The data of the plots: rates over the size, the steps per launch and the radius."""
    sizes, heights, radii = {}, {}, {}
    for (program, kind, cells, why), lines in rows.items():
        name, rate = f"{program} {kind}", lines[0]["gcells"]
        sides = [int(side) for side in cells.split("x")]
        if why in ("main", "size") and len(sides) == 2 and sides[0] == sides[1]:
            sizes.setdefault(name, []).append((sides[0], rate))
        if why == "height":
            heights[name] = [(int(line["height"]), line["gcells"]) for line in lines]
        if why == "radius":
            radii.setdefault(f"{program[:-2]} {kind}", []).append((int(program[-2]), rate))

    def at_least(count, lines):
        return {name: pairs for name, pairs in lines.items() if len(pairs) >= count}

    return [
        (
            "rates-size",
            "Rates over the size, GCells/s",
            "points of a side",
            at_least(4, sizes),
            True,
        ),
        (
            "rates-steps",
            "Rates over the steps a launch, GCells/s",
            "steps a launch",
            at_least(2, heights),
            False,
        ),
        ("rates-radius", "Rates over the radius, GCells/s", "radius", at_least(2, radii), False),
    ]


def draw(records):
    """Draws each plot from the first record that has it; links, and what older records drew."""
    drawn, aged = {}, []
    for number, (_, rows) in enumerate(records):
        for name, title, axis, lines, logarithmic in series(rows):
            if lines and name not in drawn:
                (IMAGES / f"{name}.svg").write_text(plot(title, axis, lines, logarithmic))
                drawn[name] = f"![{title}](images/{name}.svg)"
                aged += [f"the plot over {axis}"] * (number > 0)
    return list(drawn.values()), aged


def heading(records, rows, aged):
    """One paragraph: device, steps, date, and what comes from older records."""
    facts = records[0][0]
    text = (
        f"{facts['device'].split(',')[0]}, driver {facts['driver']}, "
        f"copy {float(facts['copy_tbs']):.2f} TB/s; "
        f"{int(facts['steps']):,} steps, other sizes {facts['other_steps']}; {facts['date'][:10]}, "
        f"commit `{facts['commit'][:7]}`."
    )
    marked = any(mark for key, (_, mark) in rows.items() if key[3] in ("main", "size"))
    aged = ["rows with *"] * marked + aged
    if aged:
        commits = ", ".join(f"`{older['commit'][:7]}`" for older, _ in records[1:])
        text += f" Older, of commits {commits}: {', '.join(aged)}."
    left = [
        word
        for word in records[-1][0].get("left_out", "none").split(", ")
        if word.endswith(" main")
    ]
    if left:
        text += f" Not reached in the time of that call: {', '.join(left)}."
    return textwrap.fill(text, 100)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=pathlib.Path, nargs="+", help="the newest first")
    parser.add_argument(
        "--search", type=pathlib.Path, nargs="+", default=[], help="rates of all schedules"
    )
    args = parser.parse_args()
    records = [read(path) for path in args.record]
    searches = [read(path, checked=False) for path in args.search]
    rows = merged(records)
    links, aged = draw(records)
    (IMAGES / "rates.svg").write_text(beside_peers(rows, 0, "f32"))
    (IMAGES / "rates-f64.svg").write_text(beside_peers(rows, 1, "f64"))
    links.insert(0, "![Rates in f64 beside others'](images/rates-f64.svg)")
    body = [heading(records, rows, aged), main_table(rows, searches), "### Other sizes", PART]
    body += [*size_tables(rows), *links]
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text("\n".join([before + BEGIN, "\n\n".join(body), END + after]))


if __name__ == "__main__":
    main()
