"""The cell magic, with what it uses of IPython."""

import sys
import types

import numpy as np
import pytest
import stencilc
from conftest import HEAT, heat


class Session:
    def __init__(self, **names):
        self.names = names

    def register_magic_function(self, function, kind, name):
        assert (kind, name) == ("cell", "stencil")
        self.magic = function

    def ev(self, text):
        return eval(text, {}, self.names)

    def push(self, names):
        self.names.update(names)


def test_a_cell_compiles_runs_and_shows(plate, rates, monkeypatch):
    display = types.ModuleType("IPython.display")
    display.Image = lambda data: ("image", data)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    session = Session(plate=plate, rates=rates)
    stencilc.load_ipython_extension(session)
    kind, data = session.magic("warm A=plate K=rates steps=2+1 show=A", HEAT)
    assert kind == "image" and data.startswith(b"\x89PNG")
    # A product and a sum may be rounded once.
    np.testing.assert_allclose(session.names["warm_result"].A, heat(plate, rates, 3), rtol=1e-6)
    assert session.names["warm"].name == session.magic("warm", HEAT).name


def test_values_are_expressions(plate, rates):
    session = Session(plate=plate, data={"the rates": rates})
    stencilc.load_ipython_extension(session)
    line = """warm A=plate K=data["the rates"] alpha=2 * 0.1 steps = max(1, 2) target='cpu' """
    session.magic(line + "options=dict(fp_contract='off')", HEAT)
    assert np.array_equal(session.names["warm_result"].A, heat(plate, rates, 2, 0.2))
    assert session.names["warm"].target == "cpu"
    assert session.magic("", HEAT) is session.names["kernel"]


@pytest.mark.parametrize(
    "line, text",
    [
        ("warm up A=plate", "`warm up` is no name"),
        ("0.1", "`0.1` is no name"),
        ("A=plate warm", "`A=plate warm` is no expression"),
        ("warm A= K=rates", "`A=` is no expression"),
        ("warm A=plate A=rates", "A is given twice"),
        ("warm A=(plate", "in `warm A="),
        ("warm A=plate K=rates show=K", "show=K: the results are the fields A"),
    ],
)
def test_lines_that_are_wrong(line, text, plate, rates):
    session = Session(plate=plate, rates=rates)
    stencilc.load_ipython_extension(session)
    with pytest.raises(stencilc.ArgumentError) as raised:
        session.magic(line, HEAT)
    assert text in str(raised.value)
    assert set(session.names) == {"plate", "rates"}
