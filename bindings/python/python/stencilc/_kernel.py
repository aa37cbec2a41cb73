"""Programs that are ready to run, and their results."""

from __future__ import annotations

import json
import os
from pathlib import Path

from . import _arguments, _stencilc

class Result(dict):
    """What a run gave: fields and reductions by name, as items or as attributes.

    State fields are arrays of the library that the arguments came from. Reductions are numbers.

    Attributes
    ----------
    steps : int
        Steps that were taken; fewer than asked for where an ``until`` ended the run early.
    launches : int
        Kernels that were launched.
    seconds : float or None
        What the steps took, where that is measured.
    met : bool or None
        Whether the condition of an ``until`` was met, where there is one.
    copies, copied_bytes : int
        Copies of whole fields. On a GPU, another layout of the arrays would avoid them; on the
        processor, each run copies the fields in and the state fields out.
    history : dict
        With ``every``: the values after these steps, and under "steps" their numbers.
    """

    __slots__ = ("steps", "launches", "seconds", "met", "copies", "copied_bytes", "history")

    def __init__(self, values, told):
        super().__init__(values)
        (
            self.steps,
            self.launches,
            self.seconds,
            self.met,
            self.copies,
            self.copied_bytes,
        ) = told
        self.history = None

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self)
            raise AttributeError(f"the run has no result {name!r}; it has {known}") from None

    def __repr__(self):
        def short(value):
            shape = getattr(value, "shape", None)
            return repr(value) if shape is None else f"<{value.dtype} {tuple(shape)}>"

        values = ", ".join(f"{name}={short(value)}" for name, value in self.items())
        return f"Result({values}, steps={self.steps}, launches={self.launches})"


class Kernel:
    """A program that runs on arrays. ``compile``, ``load`` and ``function`` make it.

    A version is compiled for each new set of sizes. They are kept on the disk.
    """

    def __init__(self, native):
        self._native = native
        self._run = native.run
        self._roles = {name: role for name, role, _, _ in native.fields}
        self._scalars = [name for name, _ in native.scalars]

    def __call__(
        self,
        *,
        steps=None,
        first_step=0,
        in_place=False,
        out=None,
        stream=None,
        progress=None,
        every=None,
        keep=None,
        params=None,
        **values,
    ):
        """Runs the program.

        Parameters
        ----------
        **values
            An array for each state and const field, by name; numbers for scalars; whole numbers
            for sizes that no shape tells. An array has the shape of the field's grid and its type:
            NumPy's ``float32`` for ``f32``, ``bool`` for ``bool``, ``complex64`` for
            ``complex64``. A field of structs takes a structured array, or a dict of members. A
            field of vecs takes one more dimension, the last.
        steps : int, optional
            Steps to take; by default the program's own number.
        first_step : int
            Steps that were taken before: what ``t`` gives in the first step.
        in_place : bool
            Write the arrays of the state fields. By default they are copied first.
        out : dict or array, optional
            Arrays that get the state fields, by name. The array itself where there is one state
            field. Not together with ``in_place``.
        stream : optional
            A CUDA stream (its handle, or an object of PyTorch or CuPy). By default the current
            one of the library that the arrays come from.
        progress : callable or True, optional
            Called with (steps done, steps of the run) from time to time; True shows a bar.
        every : int, optional
            Keep values after each so many steps, in ``history``.
        keep : list of str, optional
            What ``every`` keeps; by default all reductions.
        params : dict, optional
            More values, for names that are words of this list.

        Returns
        -------
        Result
            The state fields and reductions. Arrays on a device are ready for work in the same
            stream; the call does not wait for it, unless there are reductions.

        Raises
        ------
        ArgumentError
            A value is missing, unknown, or of another type or shape.
        CompileError
            The program can't be compiled for these sizes.
        DeviceError
            There is no device, or it failed.
        """
        if params is not None:
            values.update(params)
        _arguments.manner(in_place, out, progress)
        _arguments.no_gradients(self._scalars, values)
        steps = None if steps is None else _arguments.whole("steps", steps)
        first_step = _arguments.whole("first_step", first_step)
        if out is not None:
            out = _arguments.outputs(self._roles, values, out)
        if progress is False:
            progress = None
        if progress is True:
            from ._progress import bar

            with bar(self.name) as shown:
                return self.__call__(
                    steps=steps,
                    first_step=first_step,
                    in_place=in_place,
                    out=out,
                    stream=stream,
                    progress=shown,
                    every=every,
                    keep=keep,
                    params=values,
                )
        if every is not None:
            from ._history import with_history

            when = (steps, first_step, _arguments.whole("every", every))
            return with_history(self, values, when, keep, (in_place, out, stream, progress))
        if first_step:
            self._native.check_parts(first_step, None)
        outputs, told = self._run(values, steps, first_step, in_place, out, stream, progress)
        return Result(outputs, told)

    @property
    def name(self):
        """The program's name."""
        return self._native.name

    @property
    def target(self):
        """What it runs on: "cuda", "cpu", "reference" or "sim"."""
        return self._native.target

    @property
    def fields(self):
        """The declared fields: name to (role, dtype, dimensions)."""
        import numpy as np

        def dtype(kind):
            # NumPy itself has no bfloat16.
            return kind if kind == "bfloat16" else np.dtype(kind)

        return {name: (role, dtype(kind), rank) for name, role, kind, rank in self._native.fields}

    @property
    def scalars(self):
        """Scalars with their defaults; None where there is none."""
        return {name: _number(text) for name, text in self._native.scalars}

    @property
    def params(self):
        """Names of the sizes that are open."""
        return list(self._native.params)

    @property
    def ptx(self):
        """The PTX for the sizes of the last call; for open sizes before the first.

        Where the program runs on the processor, this is the code that a GPU would run.
        """
        return self._native.level("ptx", None)

    @property
    def plan(self):
        """The launch plan as a dict, for the same sizes as ``ptx``."""
        return json.loads(self._native.level("plan", None))

    def source(self, level="stencil", **sizes):
        """The text of a level: ast, stencil, tiled, gpu, nvvm, llvm, ptx or plan.

        For the sizes that are given; else for those of the last call, or open ones. Where the
        program runs on the processor, nvvm, ptx and plan are those of a GPU.
        """
        return self._native.level(level, sizes or None)

    def report(self, *, as_dict=False, **sizes):
        """The schedule, registers, spills, traffic and predicted rates, as text or as a dict.

        For the same sizes as ``source``, and for a GPU as there. Registers and spills need ptxas.
        """
        text = self._native.report(as_dict, sizes or None)
        return json.loads(text) if as_dict else text

    def __repr__(self):
        fields = ", ".join(self.fields)
        return f"<stencilc.Kernel {self.name} ({fields}) on {self.target}>"


def compile(program, *, target="auto", define=None, cache=None, **options):
    """Checks a program, and makes a ``Kernel`` of it.

    Parameters
    ----------
    program : str or path
        A file, or the text of a program: what has a line break, or a blank and is no file. A file
        whose name ends in ``.mlir`` holds a module (stencil IR, or a function of affine loops),
        one in ``.sl`` a program of SL.
    target : str
        "cuda"; "cpu", the processor of this machine; "reference", a plain interpreter; "sim", a
        simulated GPU that checks every access; "auto", CUDA where there is a device, else "cpu",
        or "reference" for affine loops and where an option is for GPUs alone.
    define : dict, optional
        Sizes that are fixed when the program is compiled.
    cache : path or False, optional
        The folder of compiled programs, or no cache. By default that of the environment variable
        STENCILC_CACHE, or ``stencilc`` in XDG's cache folder.
    **options
        Options of ``stencilc run`` that describe a compile: fast_math=True, strategy="stream",
        tile=(32, 64), pyramid_height=4, device="A100", arch="sm_80", fp_contract="off", ...
        And ``devices``: 4 or "2x2" devices that share each run, or the numbers of GPUs, [0, 2];
        or ``device_memory="4GiB"`` for runs out of core. The arrays of a call then lie on the host.

    Raises
    ------
    CompileError
        The program or an option is wrong; the text shows where.
    OSError
        The file can't be read.
    """
    name, text = _read(program)
    words = words_of(target, define, options)
    return Kernel(_stencilc.Native(name, text, words, _cache(cache)))


def words_of(target, define, options):
    """Options as the command line has them."""
    words = [f"--target={target}"]
    for size, value in (define or {}).items():
        words += ["-D", f"{size}={value}"]
    for option, value in options.items():
        word = "--" + option.replace("_", "-")
        if value is True:
            words.append(word)
        elif option == "devices" and isinstance(value, (tuple, list, range)):
            # Behind the last number of a single one stands a comma too: "2" are two devices.
            words.append(f"{word}={','.join(map(str, value))}{',' * (len(value) == 1)}")
        elif isinstance(value, (tuple, list)):
            words.append(f"{word}={','.join(map(str, value))}")
        elif value is not None and value is not False:
            words.append(f"{word}={value}")
    return words


def load(plan, code=None):
    """A ``Kernel`` of a launch plan and its code, as ``stencilc --emit=ptx,plan`` writes them.

    Parameters
    ----------
    plan : path
        The file ``NAME.plan.json``.
    code : path, optional
        PTX or a cubin; by default ``NAME.ptx`` beside the plan.
    """
    plan = Path(plan)
    if code is None:
        stem = plan.name.removesuffix(".json").removesuffix(".plan")
        code = plan.with_name(stem + ".ptx")
    return Kernel(_stencilc.Native.load(plan.read_text(), Path(code).read_bytes(), str(plan)))


def _number(text):
    """A default as Python has it; none where there is none."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)


def _read(program):
    if isinstance(program, str):
        # A blank text is no name of a file; as a program it has a message.
        is_text = not program.strip() or "\n" in program
        is_text = is_text or (" " in program and not os.path.exists(program))
        if is_text:
            return "program.stencil", program
    return os.fspath(program), Path(program).read_text()


def _cache(folder):
    """The folder of the cache; none where there is to be no cache."""
    if folder is False:
        return None
    if folder is None:
        folder = os.environ.get("STENCILC_CACHE")
        if folder == "":
            return None
    if folder is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(home, "stencilc")
    return os.path.abspath(folder)
