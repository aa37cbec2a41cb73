"""Shared by the scripts of this folder: programs, commands, and records of measurements.

A record is a text file. Its first lines, `# name: value`, are facts: what was measured, when, on
which device. One line names the columns, and each line after it is a measurement. Tabs separate
columns.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Program:
    """A program's text in one type, and what it declares."""

    def __init__(self, source, kind=None):
        text = source.read_text()
        self.stem, self.kind = source.stem, kind
        self.text = re.sub(r"\bf32\b", kind, text) if kind else text
        self.params = re.findall(r"^param\s+(\w+)\s*(?:#.*)?$", text, re.M)
        self.inputs = dict(re.findall(r"^(?:const )?field\s+(\w+)\s*:\s*(\w+)", text, re.M))
        self.outputs = re.findall(r"^field\s+(\w+)", text, re.M)
        self.rank = re.search(r"^grid[^=]*=\s*\[(.*?)\]", text, re.M).group(1).count(",") + 1


def call(words, **options):
    """Runs a command; the process that ended, whose failure ends this one."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, **options)
    except OSError as error:
        sys.exit(f"error: {words[0]}: {error.strerror}")
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done


def pairs(option, values):
    """`option name=value` for each."""
    return [word for name, value in values.items() for word in (option, f"{name}={value}")]


def size(shape):
    """A shape as one word: 512x512x512."""
    return "x".join(map(str, shape))


def commit():
    """The commit that is built."""
    return call(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]).stdout.strip()


def take_along(folder, release, *scripts):
    """Copies what a GPU machine needs beside plans: scripts, this one, and `stencil-bench`."""
    folder.mkdir(parents=True, exist_ok=True)
    for script in ("common.py", *scripts):
        shutil.copy(pathlib.Path(__file__).with_name(script), folder / script)
    call(["strip", "-o", folder / "stencil-bench", release / "stencil-bench"])


def manifest(folder, name, command):
    """The manifest that a build left for the GPU machine."""
    try:
        return json.loads((folder / name).read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"error: {folder / name} can't be read: {error}; {command} makes it")


def device_facts(found, before):
    """Facts of what stencil-bench wrote; the copy rate is the best of all calls."""
    # Without nvidia-smi nothing is known of the state.
    device, state = found["device"], found["state"] or {}
    copy = max(found["copy_bandwidth"] * 1e-12, float(before.get("copy_tbs", 0)))
    return {
        "date": found["date"],
        "device": f"{device['name']}, {device['uuid'][:12]}",
        "driver": state.get("driver", "unknown"),
        "clock_mhz": state.get("clock_mhz", "unknown"),
        "power_w": state.get("power", "unknown"),
        "copy_tbs": f"{copy:.4f}",
    }


def measurement(result):
    """Columns of one result of stencil-bench; kernels of fewer steps are left out."""
    settings, kernel, rate = result["settings"], result["kernels"][0], result["gcells"]
    check = result["check"]
    return {
        "strategy": settings["strategy"],
        "tile": size(settings["tile"]),
        "per_thread": size(settings["per_thread"]),
        "height": settings["pyramid_height"],
        "registers": kernel["registers"],
        "spilled": kernel["local"],
        "gcells": f"{rate['median']:.6g}",
        "low": f"{rate['min']:.6g}",
        "high": f"{rate['max']:.6g}",
        "check": "none" if check is None else "right" if check["passed"] else "wrong",
    }


def write_record(path, facts, rows):
    """Writes a record; columns are those of all rows, in the order in which they first appear."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"# {name}: {' '.join(str(value).split())}" for name, value in facts.items()]
    lines.append("\t".join(columns))
    for row in rows:
        cells = [
            " ".join(str("" if row.get(name) is None else row[name]).split()) for name in columns
        ]
        lines.append("\t".join(cells))
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def read_record(path):
    """Facts and rows of a record, all as text."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except (OSError, ValueError) as error:
        sys.exit(f"error: {path} can't be read: {getattr(error, 'strerror', None) or error}")
    facts = dict(
        line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line
    )
    columns, *rows = [line.split("\t") for line in lines if line and not line.startswith("#")] or [
        []
    ]
    for row in rows:
        if len(row) != len(columns):
            sys.exit(
                f"error: {path} is no record: it has {len(columns)} columns, "
                f"but {len(row)} in the line that begins with {row[0]!r}"
            )
    if not rows:
        sys.exit(f"error: {path} has no measurements")
    return facts, [dict(zip(columns, row, strict=True)) for row in rows]


def require(path, facts, rows, names, columns):
    """Ends the script where a record lacks facts or columns."""
    missing = [name for name in names if name not in facts] + [
        name for name in columns if name not in rows[0]
    ]
    if missing:
        sys.exit(f"error: {path} lacks {', '.join(missing)}")
