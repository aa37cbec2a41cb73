"""Values over steps: a run in parts, each of which begins where the one before ended."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ._errors import ArgumentError
from ._picture import on_host


def with_history(kernel, values, when, keep, manner):
    """Runs ``every`` steps at a time, and keeps values after each part."""
    from ._kernel import Result

    steps, first_step, every = when
    in_place, out, stream, progress = manner
    roles = kernel._roles
    reductions = [name for name, role in roles.items() if role == "reduction"]
    keep = reductions if keep is None else [keep] if isinstance(keep, str) else keep
    if not isinstance(keep, Iterable):
        raise ArgumentError(f"keep: expected names of fields and reductions, not {keep!r}")
    keep = list(keep)
    known = [name for name, role in roles.items() if role in ("state", "reduction")]
    for name in keep:
        if name not in known:
            raise ArgumentError(f"the run has no result `{name}`; it has {', '.join(known)}")
    if every < 1:
        raise ArgumentError("every: expected a number of at least 1")
    if steps is None:
        raise ArgumentError("with `every`, give the number of steps too")
    kernel._native.check_parts(first_step, every)
    history = {name: [] for name in keep}
    taken = []
    total = [0, 0, 0.0, None, 0, 0]
    outputs = {}
    while True:
        part = min(every, steps - total[0])
        report = None
        if progress is not None:
            before = total[0]

            def report(done, _of, before=before):
                progress(before + done, steps)

        outputs, told = kernel._run(
            values, part, first_step + total[0], in_place, out, stream, report
        )
        total = _sum(total, told)
        taken.append(first_step + total[0])
        for name in keep:
            value = outputs[name]
            history[name].append(value if roles[name] == "reduction" else _copy(value))
        if told[0] < part or told[3] or total[0] >= steps:
            break
        # From now on the arrays are those of the result.
        values = {name: outputs.get(name, value) for name, value in values.items()}
        in_place, out = True, None
    result = Result(outputs, tuple(total))
    result.history = {name: np.asarray(kept) for name, kept in history.items()}
    result.history["steps"] = np.asarray(taken)
    return result


def _sum(total, told):
    seconds = None if told[2] is None or total[2] is None else total[2] + told[2]
    counts = [total[place] + told[place] for place in (0, 1)]
    return [*counts, seconds, told[3], total[4] + told[4], total[5] + told[5]]


def _copy(value):
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    return np.array(on_host(value))
