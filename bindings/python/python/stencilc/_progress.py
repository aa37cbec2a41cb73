"""A bar that shows how far a run is."""

from __future__ import annotations

import sys
from contextlib import contextmanager


@contextmanager
def bar(name):
    """Gives a callable for ``progress``; tqdm's bar where tqdm is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield _plain(name)
        sys.stderr.write("\n")
        return
    with tqdm(desc=name, unit="step") as shown:

        def report(done, total):
            shown.total = total
            shown.update(done - shown.n)

        yield report


def _plain(name):
    def report(done, total):
        part = done / total if total else 1.0
        filled = "#" * round(40 * part)
        sys.stderr.write(f"\r{name} [{filled:40}] {done}/{total} steps")
        sys.stderr.flush()

    return report
