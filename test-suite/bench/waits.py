"""Clocks around the waits of wavefront kernels: writes them into PTX, and reads what they wrote.

Only threads that wait read clocks. A block keeps a log: the clocks before and after each wait. At
its end it adds when it began and ended, and the clocks that it spent on signals.
"""

import re
import statistics

# 16 bytes a wait. A tile row has at most SIDE / 8 tiles, and few tile rows have the same block.
WAITS = 1 << 14
HEAD = 4


def with_clocks(text):
    """PTX with clocks around its waits and signals."""
    lines, out = text.splitlines(), []
    loops = False
    for place, line in enumerate(lines):
        word = line.strip()
        if word.startswith(".visible .entry"):
            out += [".visible .global .align 8 .u64 wait_log;"]
        out.append(line)
        if word == "{":
            out += [".reg .b64 %log, %here, %before, %after, %told, %began;", ".reg .b32 %own;"]
            out += ["mov.u64 %told, 0;", "mov.u64 %began, %globaltimer;"]
            out += ["ld.global.u64 %log, [wait_log];", "mov.u32 %own, %ctaid.x;"]
            out += [f"mad.wide.u32 %log, %own, {16 * WAITS}, %log;"]
            out += [f"add.s64 %here, %log, {16 * HEAD};"]
        elif word.startswith("fence.acq_rel.gpu"):
            out.insert(-1, "mov.u64 %before, %clock64;")
        elif word.startswith("ld.acquire.gpu"):
            loops = "nanosleep" in lines[place - 1]
            arrives = any("fence.acq_rel" in one for one in lines[max(0, place - 6) : place])
            if not loops and not arrives:
                out.insert(-1, "mov.u64 %before, %clock64;")
        elif match := re.match(r"@(%p\d+) bra ", word):
            near = [one.strip() for one in lines[max(0, place - 3) : place]]
            if any(one.startswith("ld.acquire.gpu") for one in near):
                said = [
                    "mov.u64 %after, %clock64;",
                    "st.global.v2.u64 [%here], {%before, %after};",
                    "add.s64 %here, %here, 16;",
                ]
                if loops:
                    out += said
                else:
                    out[-1:-1] = [f"@{match[1]} {one}" for one in said]
        elif word.startswith("st.release.gpu"):
            out.insert(-1, "mov.u64 %before, %clock64;")
            out += ["mov.u64 %after, %clock64;", "sub.s64 %after, %after, %before;"]
            out += ["add.s64 %told, %told, %after;"]
        elif word == "ret;":
            out[-1:-1] = [
                "mov.u32 %own, %tid.x;",
                "{ .reg .pred %lead; setp.eq.u32 %lead, %own, 0;",
                "mov.u64 %after, %globaltimer;",
                "@%lead st.global.v2.u64 [%log], {%began, %after};",
                "mov.u64 %after, %clock64;",
                "@%lead st.global.v2.u64 [%log+16], {%told, %here}; }",
            ]
    return "\n".join(out) + "\n"


def measure(kernel, arrays, side):
    """Means over the blocks of a sweep of a skewed or square kernel."""
    import cupy
    import numpy

    blocks = kernel.grid[0]
    log = cupy.zeros((blocks, WAITS, 2), "int64")
    kernel.module.get_global("wait_log").copy_from_host(
        numpy.array([log.data.ptr], "uint64").ctypes.data, 8
    )
    (seconds,) = kernel.seconds(arrays, 2)[1:]
    if kernel.turns > 1:
        return {"seconds": f"{seconds:.6g}"}
    head = log[:, :HEAD].get()
    began, ended = head[:, 0, 0], head[:, 0, 1]
    told = head[:, 1, 0]
    counts = (head[:, 1, 1] - log.data.ptr - numpy.arange(blocks) * 16 * WAITS) // 16 - HEAD
    most = int(counts.max())
    waited = log[:, HEAD : HEAD + most].get()
    spent = waited[:, :, 1] - waited[:, :, 0]
    spent[numpy.arange(most)[None, :] >= counts[:, None]] = 0

    height, width = kernel.entry["tile"]
    skewed = "square" not in kernel.entry["combination"]
    rows, tiles = -(-side // height), -(-(side + (height - 1) * skewed) // width)
    barriers = "barrier" in kernel.entry["combination"]
    step = round((most + 1 - tiles) / max(1, rows - 1)) if barriers else 0
    # Clocks a nanosecond, from the block with the longest log.
    long = int(counts.argmax())
    n = counts[long]
    clocks = (waited[long, n - 1, 1] - waited[long, 0, 0]) / max(1, ended[long] - began[long])
    corner, between, busy = [], [], []
    for block in range(blocks):
        own = range(block, rows, blocks)
        if not own:
            continue
        each = spent[block, : counts[block]]
        if barriers:
            first, last = own[0] * step, own[-1] * step + tiles - 1
            corners = each[:first].sum() + each[last:].sum()
        else:
            corners = each[0] if len(each) and block else 0
        late = (ended.max() - ended[block]) * clocks + (began[block] - began.min()) * clocks
        corner.append(corners + late)
        between.append(each.sum() - corners)
        busy.append((ended[block] - began[block]) * clocks - each.sum())
    whole = (ended.max() - began.min()) * clocks
    mean = statistics.fmean
    # A block that comes last to a barrier waits for nobody: what it spends is the barrier's cost.
    costs = spent.min(axis=0) if barriers else spent[spent > 0]
    cost = f"{numpy.median(costs) / clocks * 1e-3:.4g}"
    return {
        "blocks": blocks,
        "tiles": rows * tiles,
        "seconds": f"{seconds:.6g}",
        "mhz": f"{1e3 * clocks:.5g}",
        "waits": most,
        "wait_ms": f"{mean(spent.sum(axis=1)) / clocks * 1e-6:.5g}",
        "signal_ms": f"{mean(told) / clocks * 1e-6:.5g}",
        "barrier_us" if barriers else "median_wait_us": cost,
        "corner_idle": f"{mean(corner) / whole:.4f}",
        "other_idle": f"{mean(between) / whole:.4f}",
        "tile_us": f"{sum(busy) / (rows * tiles) / clocks * 1e-3:.5g}",
    }
