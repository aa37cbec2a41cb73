"""The cell magic ``%%stencil``: a program in a cell of a notebook."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize

from ._errors import ArgumentError
from ._kernel import compile
from ._picture import picture

FORM = '%%stencil NAME A=plate steps=100 show=A target="cpu"'
# Arguments of the compile; all others are those of the call.
COMPILE = ("target", "define", "cache")


def load(ipython):
    """Registers the magic with a session of IPython."""

    def stencil(line, cell):
        """``%%stencil [NAME] [A=plate ...] [show=FIELD] [target="cpu"] [options={...}]``

        Compiles the cell and keeps the kernel as NAME (``kernel`` if left out). With arrays of the
        session (``A=plate``), it is run; the result is kept as NAME_result, and ``show=A`` gives a
        picture of a field. Values are expressions of Python. ``target``, ``define`` and ``cache``
        are those of ``compile``; ``options=dict(fast_math=True)`` has its others.
        """
        name, texts = split(line)
        shown = texts.pop("show", "").strip("\"'")
        values = {key: ipython.ev(text) for key, text in texts.items()}
        options = dict(values.pop("options", {}))
        options |= {key: values.pop(key) for key in COMPILE if key in values}
        kernel = compile(cell if cell.endswith("\n") else cell + "\n", **options)
        states = [field for field, (role, _, _) in kernel.fields.items() if role == "state"]
        if shown and shown not in states:
            known = ", ".join(states)
            raise ArgumentError(f"%%stencil: show={shown}: the results are the fields {known}")
        ipython.push({name: kernel})
        if not values:
            return kernel
        result = kernel(**values)
        ipython.push({f"{name}_result": result})
        if not shown:
            return result
        from IPython.display import Image

        return Image(picture(result[shown]))

    ipython.register_magic_function(stencil, "cell", "stencil")


def split(line):
    """The name of a line ``NAME key=EXPRESSION ...``, and its expressions by key, as text."""
    line = line.strip()
    keys = list(_keys(line))
    starts = [begin for _, begin, _ in keys] + [len(line)]
    name = line[: starts[0]].strip() or "kernel"
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ArgumentError(f"%%stencil: `{name}` is no name for the kernel; write {FORM}")
    texts = {}
    for (key, _, begin), end in zip(keys, starts[1:]):
        text = line[begin:end].strip()
        if key in texts:
            raise ArgumentError(f"%%stencil: {key} is given twice")
        try:
            ast.parse(text, mode="eval")
        except (SyntaxError, ValueError):
            raise ArgumentError(
                f"%%stencil: `{key}={text}` is no expression of Python; write {FORM}"
            ) from None
        texts[key] = text
    return name, texts


def _keys(line):
    """Each ``key=`` outside of brackets and quotes: the key, its place, that of its value."""
    before, depth = None, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.string == "=" and depth == 0 and before and before.type == tokenize.NAME:
                yield before.string, before.start[1], token.end[1]
            depth += (token.string in list("([{")) - (token.string in list(")]}"))
            before = token
    except tokenize.TokenError as error:
        raise ArgumentError(f"%%stencil: {error.args[0]} in `{line}`; write {FORM}") from None
