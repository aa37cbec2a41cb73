"""Boxes of fields, and reads by slices: cells that lie beside those of a box."""

from __future__ import annotations

import operator

from ._errors import TraceError

SIZES = ("N", "M", "L")


def whole(value):
    """A whole number of Python or NumPy; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


class Cell(tuple):
    """Begin and end of the one cell at a number."""

    __slots__ = ()


def of_box(box, field):
    """A box, by begin and end in each dimension.

    Both are pairs: whether the place counts from the end of the field, and the place. The end is
    the first place behind the box.
    """
    box = _parts(box, field)
    if len(box) != field.rank:
        everything = ", ".join(":" * field.rank)
        raise TraceError(
            f"{field.name} has {field.rank} dimensions, the box has {len(box)}; the whole field is "
            f"{field.name}[{everything}] or {field.name}[...]"
        )
    return [_ends(part) for part in box]


def of_read(box, field):
    """The box of a read by slices."""
    box = _parts(box, field)
    if len(box) != field.rank or not all(isinstance(part, slice) for part in box):
        offsets = ", ".join(["0"] * (field.rank - 1) + ["1"])
        slices = ", ".join(["1:-1"] * (field.rank - 1) + ["2:"])
        raise TraceError(
            f"{field.name}[...] on the right of `=` reads at {field.rank} whole offsets from the "
            f"point, as {field.name}[{offsets}], or by {field.rank} slices, as "
            f"{field.name}[{slices}]"
        )
    return [_ends(part) for part in box]


def resolve(reads, box):
    """Gives reads by slices their offsets from the points of a box, as NumPy pairs their cells."""
    for read in reads:
        if read.box is None:
            continue
        name = read.field.name
        if len(read.box) != len(box):
            raise TraceError(f"{name} has another number of dimensions than the box")
        offsets = [_distance(own, other) for own, other in zip(read.box, box)]
        if not all(map(_count_alike, read.box, box)):
            raise TraceError(
                f"{name}[{python(read.box)}] and the box [{python(box)}] count from different "
                "ends of the field; count both from its begin, or both from its end by numbers "
                "below 0"
            )
        if None in offsets:
            raise TraceError(
                f"{name}[{python(read.box)}] has another shape than the box "
                f"[{python(box)}]; {name} alone is the value at each point of the box, and "
                f"{name}[{', '.join(['0'] * (len(box) - 1) + ['1'])}] that of a neighbour"
            )
        if read.offsets not in (None, tuple(offsets)):
            raise TraceError(
                f"{name}[{python(read.box)}] is read for two boxes; write it again for the second"
            )
        read.offsets = tuple(offsets)


def text(box, sizes):
    """A box as the language writes it."""
    ranges = []
    for size, (start, stop) in zip(sizes, box):
        low, high = _place(size, start), _place(size, (stop[0], stop[1] - 1))
        ranges.append(low if low == high else f"{low}..{high}")
    return f"[{', '.join(ranges)}]"


def _parts(box, field):
    """The dimensions of a box, with slices in place of ``...``."""
    box = box if isinstance(box, tuple) else (box,)
    places = [place for place, part in enumerate(box) if part is Ellipsis]
    if places:
        rest = (slice(None),) * (field.rank - len(box) + 1)
        box = (*box[: places[0]], *rest, *box[places[0] + 1 :])
    return box


def _ends(part):
    """Begin and end of a slice, or of the one cell at a number."""
    if not isinstance(part, slice):
        place = whole(part)
        if place is not None:
            return Cell(((place < 0, place), (place < 0, place + 1)))
    elif part.step in (None, 1):
        start = 0 if part.start is None else whole(part.start)
        stop = 0 if part.stop is None else whole(part.stop)
        if start is not None and stop is not None:
            return ((start < 0, start), (part.stop is None or stop < 0, stop))
    raise TraceError(f"a box is made of whole numbers and slices without steps: {part}")


def _count_alike(own, other):
    """Whether the begins of two ranges count from the same end of the field, and the ends too."""
    return all(one[0] == two[0] for one, two in zip(own, other))


def _distance(own, other):
    """How far a range lies behind another one of the same length; None where lengths differ."""
    (begin, end), (start, stop) = own, other
    return begin[1] - start[1] if begin[1] - start[1] == end[1] - stop[1] else None


def _place(size, place):
    """A coordinate: from the end of the grid where it counts from there."""
    return f"{size}-{-place[1]}" if place[0] else str(place[1])


def python(box):
    """A box as Python writes it."""
    def word(place, empty):
        return "" if place == empty else str(place[1])

    def part(ends):
        start, stop = ends
        if isinstance(ends, Cell):
            return str(start[1])
        return f"{word(start, (False, 0))}:{word(stop, (True, 0))}"

    return ", ".join(map(part, box))
