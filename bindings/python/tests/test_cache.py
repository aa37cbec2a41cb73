"""Compiled programs on the disk."""

import os
import subprocess
import sys

import stencilc
from conftest import HEAT

COUNT = """
import sys, time, stencilc
kernel = stencilc.compile(sys.argv[1], target="reference", strategy="naive")
begin = time.perf_counter()
print(len(kernel.ptx), time.perf_counter() - begin)
"""

RUN = """
import sys, time, numpy, stencilc
begin = time.perf_counter()
kernel = stencilc.compile(sys.argv[1], target="cpu")
kernel(A=numpy.ones((40, 50), numpy.float32), K=numpy.ones((40, 50), numpy.float32), steps=2)
print(40, time.perf_counter() - begin)
"""


def begin(folder, text=HEAT, script=COUNT):
    environment = {**os.environ, "STENCILC_CACHE": str(folder)}
    return subprocess.Popen([sys.executable, "-c", script, text], env=environment,
                            stdout=subprocess.PIPE, text=True)


def seconds(process):
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    length, time = said.split()
    return int(length), float(time)


def test_a_second_process_finds_the_first_ones_work(tmp_path):
    length, compiled = seconds(begin(tmp_path))
    (file,) = tmp_path.iterdir()
    again, found = seconds(begin(tmp_path))
    assert again == length and found < compiled / 3
    # A file that was made from anything else, or is cut off, is not used.
    text = file.read_text()
    for damaged in [text.replace("alpha", "alphb", 1), text[:-10], "", "1 2\n", "x\n" + text]:
        file.write_text(damaged)
        kernel = stencilc.compile(HEAT, target="reference", strategy="naive", cache=tmp_path)
        assert len(kernel.ptx) == length
        assert file.read_text() == text
    seconds(begin(tmp_path, HEAT.replace("0.1", "0.2")))
    assert len(list(tmp_path.iterdir())) == 2


def test_machine_code_is_kept_too(tmp_path):
    _, compiled = seconds(begin(tmp_path, script=RUN))
    (file,) = tmp_path.iterdir()
    _, found = seconds(begin(tmp_path, script=RUN))
    assert found < compiled / 3
    # Code with a wrong bit is not run.
    kept = file.read_bytes()
    for place in (-1, -len(kept) // 8, kept.index(b'"format"') + 10):
        damaged = bytearray(kept)
        damaged[place] ^= 1
        file.write_bytes(damaged)
        seconds(begin(tmp_path, script=RUN))
        assert file.read_bytes() == kept


def test_processes_may_write_at_once(tmp_path):
    processes = [begin(tmp_path) for _ in range(3)]
    lengths = {seconds(process)[0] for process in processes}
    assert len(lengths) == 1 and len(list(tmp_path.iterdir())) == 1


def test_a_cache_that_can_not_be_written_is_left_out(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    kernel = stencilc.compile(HEAT, target="reference", strategy="naive", cache=file / "folder")
    assert ".entry" in kernel.ptx
    monkeypatch.setenv("STENCILC_CACHE", str(tmp_path / "none"))
    for cache in (False, None):
        stencilc.compile(HEAT, target="reference", strategy="naive", cache=cache).ptx
        assert (tmp_path / "none").exists() == (cache is None)
