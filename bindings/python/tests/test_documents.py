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


def test_the_stubs_have_all_operators_of_fields():
    import ast

    import stencilc
    from stencilc._trace import IN_PLACE

    tree = ast.parse((ROOT / "bindings/python/python/stencilc/__init__.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    declared = {node.name for name in ("Field", "_Expression") for node in classes[name].body
                if isinstance(node, ast.FunctionDef)}
    # Those that only raise an exception, and those of every object.
    other = {"iter", "index", "int", "float", "bool", "array_function", "init", "repr"}
    other |= {"torch_function", "len", "getattr", "matmul", "rmatmul"}
    other |= {f"i{name}" for name in IN_PLACE}
    own = {name for name in vars(stencilc.Field) if callable(getattr(stencilc.Field, name))}
    assert own - {f"__{name}__" for name in other} - {"__hash__"} <= declared


def test_type_checkers_accept_the_annotated_function(tmp_path):
    from mypy import api as checker
    text = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    (block,) = [block for block in blocks if "Annotated" in block]
    more = "\n".join(f"    A[...] = {value}" for value in [
        "4 * A + 0.1 * A - A / 2 - -A + 2**A", "stencilc.where((A > 0) & ~(A == 2), A[-1, 0], 0)",
        "np.sqrt(A) + np.maximum(A, 0) + np.where(A > 0, A, 0)", "abs(A).astype('f32')"])
    file = tmp_path / "traced.py"
    file.write_text(f"import numpy as np\nimport stencilc\n{block}\n"
                    f"def more(A: Plate) -> None:\n{more}\n")
    said, errors, status = checker.run(["--strict", f"--cache-dir={tmp_path}", str(file)])
    assert status == 0, said + errors
