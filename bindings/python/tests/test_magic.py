"""The cell magic, with what it uses of IPython."""

import sys
import types

import numpy as np
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
