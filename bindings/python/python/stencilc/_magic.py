"""The cell magic ``%%stencil``: a program in a cell of a notebook."""

from __future__ import annotations

import shlex

from ._kernel import compile
from ._picture import picture


def load(ipython):
    """Registers the magic with a session of IPython."""

    def stencil(line, cell):
        """``%%stencil [NAME] [show=FIELD] [steps=100] [A=plate ...]``

        Compiles the cell and keeps the kernel as NAME (``kernel`` if left out). With arrays of the
        session (``A=plate``), it is run; the result is kept as NAME_result, and ``show=A`` gives a
        picture of a field.
        """
        name, values, shown = "kernel", {}, None
        for word in shlex.split(line):
            key, separator, value = word.partition("=")
            if not separator:
                name = key
            elif key == "show":
                shown = value
            else:
                values[key] = ipython.ev(value)
        kernel = compile(cell if cell.endswith("\n") else cell + "\n")
        ipython.push({name: kernel})
        if not values:
            return kernel
        result = kernel(**values)
        ipython.push({f"{name}_result": result})
        if shown is None:
            return result
        from IPython.display import Image

        return Image(picture(result[shown]))

    ipython.register_magic_function(stencil, "cell", "stencil")
