"""Views of fields that the programs in NumPy share."""

import numpy as np


def at(field, lower, upper, *offset):
    """A view of the box that lies `lower` cells from the first and `upper` cells from the last cell
    of each dimension, moved by an offset; empty where the grid is too small for it."""
    cut = []
    for cells, first, last, moved in zip(field.shape, lower, upper, offset):
        start = first + moved
        cut.append(slice(start, start + max(cells - first - last, 0)))
    return field[tuple(cut)]


def update(field, lower, upper, value):
    """Writes the new values of a box."""
    at(field, lower, upper, *[0] * field.ndim)[...] = value


def inner(field, radius):
    """Reads at offsets from the points that are at least `radius` cells away from the rim."""
    margin = [radius] * field.ndim
    return lambda *offset: at(field, margin, margin, *offset)


def numbers(field):
    """Makes a number of the field's type, rounded once from the decimal text, as the language has
    it."""
    return lambda text: np.array(str(text)).astype(field.dtype)[()]


def mapped(rule, cells, offset):
    """For each cell of a dimension the one that a boundary rule gives at an offset from it."""
    there = np.arange(cells) + offset
    match rule:
        case "nearest":
            return there.clip(0, cells - 1)
        case "periodic":
            return there % max(cells, 1)
        case "reflect":
            there = abs(there) % max(2 * (cells - 1), 1)
            return np.minimum(there, 2 * (cells - 1) - there) if cells > 1 else there * 0


def anywhere(field, rule):
    """Reads at offsets from all points, by a boundary rule."""
    mapping = lambda offset: (mapped(rule, cells, by) for cells, by in zip(field.shape, offset))
    return lambda *offset: field[np.ix_(*mapping(offset))]
