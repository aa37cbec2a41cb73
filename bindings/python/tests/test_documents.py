"""The Python blocks of the documents run, one after the other, on the processor."""

import re

import pytest
from conftest import ROOT

DOCUMENTS = ["README.md", "docs/python.md", "bindings/python/README.md"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_blocks_run(document, tmp_path, monkeypatch):
    text = (ROOT / document).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        # Functions are traced from their source, so that blocks are files.
        exec(compile(block, document, "exec"), names)
    assert list(tmp_path.glob("*.png"))


def test_the_table_of_the_calls_arguments_is_whole():
    import inspect

    import stencilc

    text = (ROOT / "docs/python.md").read_text()
    parameters = inspect.signature(stencilc.Kernel.__call__).parameters.values()
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert f"`{parameter.name}" in text, parameter.name
    for name in stencilc.__all__:
        assert name in text or name == "Function", name


def test_the_stubs_have_all_public_names():
    import ast

    import stencilc

    folder = ROOT / "bindings/python/python/stencilc"
    tree = ast.parse((folder / "__init__.pyi").read_text())
    named = (ast.ClassDef, ast.FunctionDef)
    assert set(stencilc.__all__) <= {node.name for node in tree.body if isinstance(node, named)}
    assert (folder / "py.typed").exists()
    native = ast.parse((folder / "_stencilc.pyi").read_text())
    (stub,) = [node for node in native.body if isinstance(node, ast.ClassDef)]
    declared = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    declared |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    own = {name for name in dir(stencilc._stencilc.Native) if not name.startswith("_")}
    assert own == declared - {"__new__"}
